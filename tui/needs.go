package tui

import (
	"strings"

	"pawl/engine"
	"pawl/views"
)

// needs is the list of what waits for the operator.
type needs struct {
	items    []engine.Item
	shown    []engine.Item // after the filter
	filter   string
	selected int
	offset   int
}

// take replaces the items, keeping the selection on the same item; if that is
// gone it stays at its place in the list. It returns the items that are new.
func (n *needs) take(items []engine.Item) []engine.Item {
	was := map[string]bool{}
	for _, it := range n.items {
		was[it.Kind+it.ID] = true
	}
	var fresh []engine.Item
	for _, it := range items {
		if !was[it.Kind+it.ID] {
			fresh = append(fresh, it)
		}
	}
	n.items = items
	n.narrow(n.filter)
	return fresh
}

// narrow filters by text.
func (n *needs) narrow(filter string) {
	cur, had := n.current()
	n.filter = filter
	n.shown = n.items
	if filter != "" {
		f := strings.ToLower(filter)
		n.shown = nil
		for _, it := range n.items {
			if strings.Contains(strings.ToLower(it.Kind+" "+it.Summary+" "+it.Goal+" "+it.ID), f) {
				n.shown = append(n.shown, it)
			}
		}
	}
	if had {
		for i, it := range n.shown {
			if it.ID == cur.ID && it.Kind == cur.Kind {
				n.selected = i
				return
			}
		}
	}
	n.selected = max(min(n.selected, len(n.shown)-1), 0)
}

func (n *needs) current() (engine.Item, bool) {
	if n.selected < len(n.shown) {
		return n.shown[n.selected], true
	}
	return engine.Item{}, false
}

func (n *needs) move(to int) { n.selected = max(min(to, len(n.shown)-1), 0) }

// sign is a kind's one cell, and how it is meant.
func sign(kind string) (string, views.Tone) {
	switch kind {
	case engine.KindAmbiguous:
		return "?", views.ToneWarn
	case engine.KindContradicted:
		return "≠", views.ToneBad
	case engine.KindApproval:
		return "!", views.ToneWarn
	case engine.KindQuestion:
		return "¿", views.ToneWarn
	case engine.KindReview:
		return "±", views.ToneWarn
	case engine.KindDrift:
		return "~", views.ToneWarn
	case engine.KindConflict:
		return "#", views.ToneBad
	case engine.KindOverflow:
		return "^", views.ToneWarn
	case engine.KindBudget:
		return "$", views.ToneWarn
	case engine.KindLimit:
		return "=", views.ToneWarn
	case engine.KindFinished:
		return "✓", views.ToneGood
	}
	return "·", views.TonePlain
}

func (m *Model) needsView(w, h int) []string {
	n := &m.needs
	_, ih := views.Inner(w, h)
	n.offset = views.Window(len(n.shown), ih, n.selected, n.offset)
	v := views.Needs{Selected: n.selected - n.offset, At: n.selected, Of: len(n.shown), Focus: m.focus == panelNeeds}
	v.Filter, v.Typing = m.typing(panelNeeds, n.filter)
	v.Empty = "Nothing needs you."
	if !m.read {
		v.Empty = "Reading the ledger…"
	} else if n.filter != "" && len(n.items) > 0 {
		v.Empty = "Nothing of that name waits; esc clears the filter."
	}
	now := m.now()
	for _, it := range n.shown[n.offset:min(n.offset+ih, len(n.shown))] {
		row := views.Need{Kind: it.Kind, Summary: it.Summary, Reach: it.Reach, Age: views.Age(now.Sub(it.Since))}
		row.Sign, row.Tone = sign(it.Kind)
		if row.Summary == "" {
			row.Summary = it.Goal
		}
		v.Rows = append(v.Rows, row)
	}
	return v.Draw(m.pen, w, h)
}
