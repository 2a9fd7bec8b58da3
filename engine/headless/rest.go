package headless

import (
	"context"
	"fmt"
	"io"
	"strings"

	"pawl/engine"
	"pawl/engine/machine"
)

// nexts makes the commands of inbox items name the ledger of this invocation.
func (a *app) nexts(items []engine.Item) []engine.Item {
	out := make([]engine.Item, len(items))
	for i, item := range items {
		if a.path != "" {
			item.Next = strings.ReplaceAll(item.Next, "pawl ", a.command(""))
		}
		out[i] = item
	}
	return out
}

// tellRest says of a run that stays driven what it waits for.
func (a *app) tellRest(ctx context.Context, s *session, w io.Writer, id machine.RunID, rest engine.Rest) {
	if rest.Err != nil {
		p := explain(rest.Err)
		fmt.Fprintf(w, "run %s tries again: %s (%s)\n", id, line(p.What, 0), line(p.Why, 0))
		return
	}
	items, err := s.Inbox(ctx)
	if err != nil {
		return
	}
	var mine []engine.Item
	for _, i := range items {
		if root, err := s.RootOf(ctx, i.Run); i.Run == id || err == nil && root == id {
			mine = append(mine, i)
		}
	}
	if rest.Phase == machine.PhasePaused {
		fmt.Fprintf(w, "\nrun %s is paused; `%s` lets it go on\n", id, a.command("unpause", string(id)))
	}
	if len(mine) == 0 {
		return
	}
	fmt.Fprintf(w, "\nrun %s waits for you:\n", id)
	a.tellItems(w, mine)
	fmt.Fprintln(w, "\nIt goes on here as soon as you have decided.")
}

// tellItems prints what waits and the commands that look at it and decide it.
func (a *app) tellItems(w io.Writer, items []engine.Item) {
	for _, i := range a.nexts(items) {
		fmt.Fprintf(w, "  %-12s %s\n", i.Kind, line(i.Summary, a.o.Width))
		if i.Kind != engine.KindFinished {
			fmt.Fprintf(w, "    look:   %s\n", a.command("show", i.ID))
		}
		fmt.Fprintf(w, "    decide: %s\n", line(i.Next, 0))
	}
}

// tellEnd says how a run stands when this process lets go of it.
func (d *driver) tellEnd(l engine.RunLine, rest engine.Rest, waits []engine.Item) {
	a, w, id := d.a, d.w, l.ID
	cost := fmt.Sprintf("%s, %s", count(l.Turns, "turn"), money(l.Spend))
	if l.AtMost > 0 {
		cost += fmt.Sprintf(" (lost calls: at most %s more)", money(l.AtMost))
	}
	fmt.Fprintln(w)
	switch st := standingOf(rest); {
	case rest.Err != nil:
		p := explain(rest.Err)
		fmt.Fprintf(w, "run %s stopped: %s\n", id, line(p.What, 0))
		if p.Why != "" {
			fmt.Fprintf(w, "  why:  %s\n", line(p.Why, 0))
		}
		if p.Next != "" {
			fmt.Fprintf(w, "  next: %s\n", line(a.own(p.Next), 0))
		}
	case st == engine.Interrupted && d.atOnce:
		fmt.Fprintf(w, "run %s is stopped (%s); what was in flight is unknown until somebody looks.\n", id, cost)
	case st == engine.Interrupted && d.stopped:
		fmt.Fprintf(w, "run %s is stopped at a safe point (%s). Nothing is lost.\n", id, cost)
	case st == engine.Waiting:
		fmt.Fprintf(w, "run %s waits for you (%s):\n", id, cost)
	default:
		fmt.Fprintf(w, "run %s is %s (%s)\n", id, line(described(l, st), 0), cost)
	}
	a.tellItems(w, waits)
	if next := a.nextOf(id, rest); next != "" {
		fmt.Fprintf(w, "%s\n", next)
	}
}

// described is a run's standing with the note that goes with it.
func described(l engine.RunLine, st engine.Standing) string {
	switch st {
	case engine.Done, engine.Failed, engine.Cancelled:
		if strings.HasPrefix(l.Note, string(st)) {
			return l.Note
		}
	case engine.Running, engine.Waiting, engine.Interrupted, engine.Paused:
	}
	return string(st)
}

// nextOf is the sentence on how a run goes on, "" if it has ended.
func (a *app) nextOf(id machine.RunID, rest engine.Rest) string {
	resume := fmt.Sprintf("`%s`", a.command("resume", string(id)))
	switch standingOf(rest) {
	case engine.Waiting:
		return "Decide, then " + resume + " goes on."
	case engine.Paused:
		return fmt.Sprintf("`%s` lifts the pause, then %s goes on.", a.command("unpause", string(id)), resume)
	case engine.Interrupted, engine.Running:
		return resume + " goes on."
	case engine.Done, engine.Failed, engine.Cancelled:
		for _, w := range rest.Waits {
			if w.Kind != machine.WaitFinished {
				return "Decide, then " + resume + " carries it out."
			}
		}
	}
	return ""
}
