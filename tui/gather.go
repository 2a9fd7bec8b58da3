package tui

import (
	"fmt"
	"slices"
	"strings"

	"pawl/engine"
	"pawl/engine/machine"
)

// gather makes the rows that are shown from events: what belongs to one attempt
// of an effect (it was meant, sent, started, it ended) is one row that says how
// far it has come and unfolds to the rest, and a turn's request and answer are
// one too. What changes what is known about an effect (no result on record, a
// look, a verdict) always is a row of its own, at its own time. Rows stand where
// their first event stands; their number is that event's.
func gather(raw []engine.TimelineRow) []engine.TimelineRow {
	groups := make([][]int, 0, len(raw)) // indices into raw
	open := map[machine.EffectID]int{}   // group that takes an effect's next event
	last := -1                           // group of the event before
	asked := -1                          // newest event of an approval
	for i := range raw {
		r := &raw[i]
		at := -1
		switch r.Kind {
		case "EffectDispatched", "AttemptStarted", "EffectCompleted", "EffectRejected", "EffectCancelled", "SnapshotTaken", "QuiescenceProven":
			if g, ok := open[r.Effect]; ok && r.Effect != "" {
				at = g
			}
		case "PlanUpdated", "DecisionRecorded":
			if last >= 0 && raw[i-1].Kind == "EffectCompleted" {
				at = last
			}
		case "TurnResponded":
			if last >= 0 && raw[i-1].Kind == "TurnRequested" {
				at = last
			}
		}
		if r.Kind == "EffectDispatched" && at >= 0 && slices.ContainsFunc(groups[at], func(j int) bool {
			return raw[j].Kind == "EffectDispatched" || raw[j].Kind == "EffectAmbiguous"
		}) {
			at = -1 // another attempt
		}
		if r.Kind == "EffectDispatched" && at >= 0 && asked > groups[at][len(groups[at])-1] {
			at = -1 // you were asked in between: what followed stands after your answer
		}
		switch r.Kind {
		case "ApprovalRequested", "ApprovalGranted":
			asked = i
		}
		if at < 0 {
			at = len(groups)
			groups = append(groups, nil)
		}
		groups[at] = append(groups[at], i)
		switch r.Kind {
		case "EffectIntended", "EffectDispatched", "EffectAmbiguous":
			open[r.Effect] = at
		case "EffectSettled", "EffectForced", "EffectAbandoned":
			delete(open, r.Effect)
		}
		last = at
	}
	out := make([]engine.TimelineRow, 0, len(groups))
	for _, g := range groups {
		out = append(out, merge(raw, g))
	}
	return out
}

// merge is one row for several events: it says what the last telling one says.
func merge(raw []engine.TimelineRow, g []int) engine.TimelineRow {
	first := raw[g[0]]
	if len(g) == 1 {
		return first
	}
	head := g[0]
	for _, i := range g[1:] {
		switch raw[i].Kind {
		case "AttemptStarted", "SnapshotTaken", "QuiescenceProven", "PlanUpdated", "DecisionRecorded":
		default:
			head = i
		}
	}
	row := raw[head]
	row.N, row.At = first.N, first.At
	row.Detail = nil
	for _, i := range g {
		p := &raw[i]
		if p.Kind == "TurnRequested" {
			continue
		}
		if i != head && p.Kind != "PlanUpdated" && p.Kind != "DecisionRecorded" {
			row.Detail = append(row.Detail, p.At.Local().Format("15:04:05")+"  "+part(p))
		} else if i == head && p.Kind != "TurnResponded" {
			row.Detail = append(row.Detail, fmt.Sprintf("%s  %s, took %s", p.At.Local().Format("15:04:05"), part(p), took(raw[g[0]], *p)))
		}
		if p.Kind == "DecisionRecorded" {
			continue // its text is the title already
		}
		for _, d := range p.Detail {
			if p.Kind != "TurnResponded" {
				d = "          " + strings.ReplaceAll(d, "\n", "\n          ")
			}
			row.Detail = append(row.Detail, d)
		}
	}
	return row
}

// took is how long a row took from its first event to its last.
func took(first, last engine.TimelineRow) string {
	d := last.At.Sub(first.At)
	switch {
	case d < 0: // the clock was set back
		return "an unknown time"
	case d < 10e9:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return d.Round(1e9).String()
}

// part names an event within the row of its effect.
func part(r *engine.TimelineRow) string {
	switch r.Kind {
	case "EffectIntended":
		return "meant"
	case "EffectDispatched":
		return "sent"
	case "EffectCompleted":
		return "ended"
	case "EffectRejected":
		return "turned away"
	case "EffectCancelled":
		return "cancelled, never sent"
	case "EffectAmbiguous":
		return "no result on record"
	case "SnapshotTaken":
		return "snapshot of the files"
	case "QuiescenceProven":
		return "nothing of it can still land"
	}
	title, _, _ := strings.Cut(r.Title, ": ")
	return title
}
