package tui

import (
	"context"
	"fmt"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"

	"pawl/engine"
	"pawl/engine/machine"
	"pawl/views"
)

// runs is the tree of runs, read by pages as far as one has scrolled.
type runs struct {
	pages    []runPage
	search   string
	flat     []treeRow
	folded   map[machine.RunID]bool
	selected int
	offset   int
	more     bool // the last page was full: there are older ones
	asking   bool // a further page is on its way
}

type runPage struct {
	before machine.RunID // the last run of the page before
	lines  []engine.RunLine
}

// treeRow is a visible row of the tree.
type treeRow struct {
	run    *engine.RunLine // in its page
	tree   string
	parent bool
	folded bool
	needs  int // of it and everything below
}

// loaded takes a page.
func (r *runs) loaded(m *Model, msg runsLoadedMsg) tea.Cmd {
	if msg.before != "" {
		r.asking = false
	}
	if msg.err != nil {
		m.complain("The runs could not be read: " + msg.err.Error())
		return nil
	}
	if msg.search != r.search {
		return nil // of a filter that has changed since
	}
	at := slices.IndexFunc(r.pages, func(p runPage) bool { return p.before == msg.before })
	switch {
	case msg.before == "" && len(r.pages) > 0:
		// A new run shifts every page: what follows is read again when needed.
		if len(msg.lines) > 0 && len(r.pages) > 1 && r.pages[1].before != msg.lines[len(msg.lines)-1].ID {
			r.pages = r.pages[:1]
		}
		r.pages[0].lines = msg.lines
	case at >= 0:
		r.pages[at].lines = msg.lines
	case msg.before == "" || len(r.pages) > 0 && lastID(r.pages[len(r.pages)-1].lines) == msg.before:
		r.pages = append(r.pages, runPage{msg.before, msg.lines})
	default:
		return nil // the pages before it have changed
	}
	r.more = len(r.pages[len(r.pages)-1].lines) == pageRuns
	r.flatten()
	return nil
}

func lastID(lines []engine.RunLine) machine.RunID {
	if len(lines) == 0 {
		return ""
	}
	return lines[len(lines)-1].ID
}

// flatten makes the visible rows from the pages and what is folded. The
// selection stays on the same run.
func (r *runs) flatten() {
	cur, had := r.current()
	total, nested := 0, false
	for _, p := range r.pages {
		total += len(p.lines)
	}
	here := make(map[machine.RunID]bool, total)
	lines := make([]*engine.RunLine, 0, total)
	for _, p := range r.pages {
		for i := range p.lines {
			if l := &p.lines[i]; !here[l.ID] {
				here[l.ID] = true
				nested = nested || l.Parent != ""
				lines = append(lines, l)
			}
		}
	}
	kids := map[machine.RunID][]*engine.RunLine{}
	if nested {
		for _, l := range lines {
			if l.Parent != "" && here[l.Parent] {
				kids[l.Parent] = append(kids[l.Parent], l)
			}
		}
	}
	r.flat = make([]treeRow, 0, len(lines))
	for _, l := range lines {
		if l.Parent == "" || !here[l.Parent] {
			r.grow(kids, l, "", "", 0)
		}
	}
	if had {
		if i := r.find(cur.ID); i >= 0 {
			r.selected = i
		}
	}
	r.selected = max(min(r.selected, len(r.flat)-1), 0)
}

const deepest = 32 // levels of the tree that are drawn

// grow adds a run and what is below it, and returns how much waits in all of
// that, folded or not.
func (r *runs) grow(kids map[machine.RunID][]*engine.RunLine, l *engine.RunLine, lead, own string, depth int) int {
	at, below, folded := len(r.flat), kids[l.ID], r.folded[l.ID]
	r.flat = append(r.flat, treeRow{run: l, tree: own, parent: len(below) > 0, folded: folded})
	total := l.Needs
	if depth < deepest {
		for i, k := range below {
			branch, next := "├ ", "│ "
			if i == len(below)-1 {
				branch, next = "└ ", "  "
			}
			total += r.grow(kids, k, lead+next, lead+branch, depth+1)
		}
	}
	if folded {
		r.flat = r.flat[:at+1]
	}
	r.flat[at].needs = total
	return total
}

func (r *runs) find(id machine.RunID) int {
	return slices.IndexFunc(r.flat, func(t treeRow) bool { return t.run.ID == id })
}

func (r *runs) current() (engine.RunLine, bool) {
	if r.selected < len(r.flat) {
		return *r.flat[r.selected].run, true
	}
	return engine.RunLine{}, false
}

// move selects a row and asks for the next page when the end comes near.
func (r *runs) move(m *Model, to int) tea.Cmd {
	r.selected = max(min(to, len(r.flat)-1), 0)
	if !r.more || r.asking || r.selected < len(r.flat)-50 {
		return nil
	}
	r.asking = true
	q := engine.RunsQuery{Search: r.search, Before: lastID(r.pages[len(r.pages)-1].lines), Limit: pageRuns}
	return m.do(func(ctx context.Context) tea.Msg {
		lines, err := m.back.Runs(ctx, q)
		return runsLoadedMsg{search: q.Search, before: q.Before, lines: lines, err: err}
	})
}

// narrow searches the ledger, since not all runs are in memory.
func (r *runs) narrow(m *Model, search string) tea.Cmd {
	if search == r.search {
		return nil
	}
	r.search, r.pages, r.flat, r.selected, r.more, r.asking = search, nil, nil, 0, false, false
	return m.do(func(ctx context.Context) tea.Msg {
		lines, err := m.back.Runs(ctx, engine.RunsQuery{Search: search, Limit: pageRuns})
		return runsLoadedMsg{search: search, lines: lines, err: err}
	})
}

// fold hides or shows what is below the selected run; on a leaf, fold goes to its parent.
func (r *runs) fold(hide bool) {
	if r.selected >= len(r.flat) {
		return
	}
	t := r.flat[r.selected]
	if hide && (!t.parent || t.folded) && t.run.Parent != "" {
		if i := r.find(t.run.Parent); i >= 0 {
			r.selected = i
		}
		return
	}
	r.folded[t.run.ID] = hide
	r.flatten()
}

// standing is a state's one cell, and how it is meant.
func standing(s engine.Standing) (string, views.Tone) {
	switch s {
	case engine.Running:
		return "●", views.ToneGood
	case engine.Waiting:
		return "?", views.ToneWarn
	case engine.Interrupted:
		return "○", views.ToneWarn
	case engine.Paused:
		return "‖", views.ToneDim
	case engine.Done:
		return "✓", views.ToneGood
	case engine.Failed:
		return "✗", views.ToneBad
	case engine.Cancelled:
		return "–", views.ToneDim
	}
	return "·", views.TonePlain
}

// words are a run's state as the tree shows it.
func words(l *engine.RunLine) string {
	switch {
	case l.State == engine.Done && l.Landed:
		return "landed"
	case l.State == engine.Done && !l.Checked:
		return "unchecked"
	}
	return string(l.State)
}

func (m *Model) runsView(w, h int) []string {
	r := &m.runs
	_, ih := views.Inner(w, h)
	r.offset = views.Window(len(r.flat), ih, r.selected, r.offset)
	v := views.Runs{Selected: r.selected - r.offset, At: r.selected, Of: len(r.flat), Focus: m.focus == panelRuns, More: r.more}
	v.Filter, v.Typing = m.typing(panelRuns, r.search)
	switch {
	case !m.read:
		v.Empty = []string{"Reading the ledger…"}
	case r.search != "":
		v.Empty = []string{"No run of that name; esc clears the filter."}
	default:
		v.Empty = []string{
			"No run yet.",
			m.keys.of(ScopeGlobal, New).hint().Key + " starts one.",
			m.keys.of(ScopeGlobal, Demo).hint().Key + " plays the demo: a real repair on a small sample, killed in the worst moments and recovered. It needs no key and no network, and touches nothing of yours. (Also: pawl demo)",
		}
	}
	now := m.now()
	for _, t := range r.flat[r.offset:min(r.offset+ih, len(r.flat))] {
		v.Rows = append(v.Rows, runRow(t, now))
	}
	return v.Draw(m.pen, w, h)
}

func runRow(t treeRow, now time.Time) views.RunRow {
	l := t.run
	row := views.RunRow{Tree: t.tree, Goal: l.Goal, State: words(l), Turns: l.Turns, Age: views.Age(now.Sub(l.Updated)), Fold: " "}
	row.Sign, row.Tone = standing(l.State)
	if t.parent {
		row.Fold = "▼"
		if t.folded {
			row.Fold = "▶"
		}
	}
	if t.needs > 0 {
		row.Tone = views.ToneWarn
		if l.State != engine.Waiting {
			row.State = fmt.Sprintf("%s ▲%d", row.State, t.needs)
		}
	}
	if l.Spend > 0 || l.AtMost > 0 {
		row.Spend = fmt.Sprintf("$%.2f", l.Spend)
		if l.AtMost > 0 {
			row.Spend = fmt.Sprintf("≤$%.2f", l.Spend+l.AtMost)
		}
	}
	return row
}
