package tui

import (
	"context"
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"pawl/engine"
	"pawl/engine/machine"
	"pawl/views"
)

// The tabs of a run.
const (
	tabTimeline = iota
	tabEffects
	tabDiff
	tabChildren
	tabContext
	tabState
)

var tabs = []string{"Timeline", "Effects", "Diff", "Children", "Context", "State"}

// sheetEffects is how many of a run's newest effects the tab lists.
const sheetEffects = 1000

// sheet is a tab whose rows are read whole: a list that folds, as the timeline is one.
type sheet struct {
	list   timeline
	tab    int
	window int    // of the context; 0: the next request
	note   string // beside the title
	failed string
	// to is where a row leads, by its number.
	to map[int64]subject
}

// sheetLoadedMsg is a tab that was read.
type sheetLoadedMsg struct {
	run    machine.RunID
	tab    int
	window int
	rows   []sheetRow
	note   string
	empty  string
	at     int64 // number of the row to begin at, 0: the first
	err    error
}

// sheetRow is a row of it.
type sheetRow struct {
	label  string
	row    engine.TimelineRow
	to     subject
	opened bool
}

// readTab reads the tab that is shown, unless it needs no reading of its own.
func (p *mainPanel) readTab(m *Model) tea.Cmd {
	run := p.subject.run
	switch p.tab {
	case tabTimeline:
		return nil
	case tabDiff:
		return p.diff.load(m, run)
	}
	if p.sheet.list.run != run || p.sheet.tab != p.tab {
		p.sheet = sheet{list: timeline{run: run, open: map[int64]bool{}, asking: true}, tab: p.tab}
	}
	tab, window := p.tab, p.sheet.window
	return m.do(func(ctx context.Context) tea.Msg { return readSheet(ctx, m.back, run, tab, window) })
}

func readSheet(ctx context.Context, b Backend, run machine.RunID, tab, window int) sheetLoadedMsg {
	msg := sheetLoadedMsg{run: run, tab: tab, window: window}
	switch tab {
	case tabEffects:
		var list []engine.EffectLine
		if list, msg.err = b.Effects(ctx, run, 0, true, sheetEffects); msg.err == nil {
			msg.effects(list)
		}
	case tabChildren:
		var list []engine.RunLine
		if list, msg.err = b.Children(ctx, run); msg.err == nil {
			msg.children(list)
		}
	case tabContext:
		var c engine.ContextView
		if c, msg.err = b.Context(ctx, run, window); msg.err == nil {
			msg.context(c)
		}
	case tabState:
		var t engine.StateTable
		if t, msg.err = b.StateTable(ctx, run); msg.err == nil {
			msg.state(t)
		}
	}
	return msg
}

func (msg *sheetLoadedMsg) effects(list []engine.EffectLine) {
	slices.SortFunc(list, func(a, b engine.EffectLine) int { return a.ID.Ord() - b.ID.Ord() })
	msg.empty = "No effect yet: the model has not asked for anything to be done."
	msg.at = int64(len(list))
	if len(list) == sheetEffects {
		msg.note = fmt.Sprintf("the newest %d; pawl show lists all", len(list))
	}
	for _, f := range list {
		sign, tone := effectSign(f.State)
		title := f.Summary + " · " + strings.ReplaceAll(f.State, "_", " ")
		if f.Forced && !strings.HasPrefix(f.State, "forced") {
			title += " (forced)"
		}
		if f.Attempts > 1 {
			title += fmt.Sprintf(" · %d attempts", f.Attempts)
		}
		msg.rows = append(msg.rows, sheetRow{
			label: f.ID.Short(), to: subject{showEffect, msg.run, string(f.ID)},
			row: engine.TimelineRow{Sign: sign, Tone: tone, Title: title, Effect: f.ID},
		})
	}
}

// effectSign is a state's one cell, and its tone. The word stands beside it.
func effectSign(state string) (string, string) {
	var s machine.EffectState
	if s.UnmarshalText([]byte(state)) != nil {
		return "·", "plain"
	}
	switch s {
	case machine.StateCompleted, machine.StateHappened:
		return "✓", "good"
	case machine.StateAmbiguous:
		return "?", "warn"
	case machine.StateContradicted:
		return "≠", "bad"
	case machine.StateForcedHappened, machine.StateForcedNot, machine.StateAbandoned:
		return "◆", "warn"
	case machine.StateRejected:
		return "✗", "bad"
	case machine.StateRefused, machine.StateCancelled, machine.StateNotHappened:
		return "⊘", "dim"
	case machine.StateDispatched:
		return "→", "plain"
	case machine.StateCompensating, machine.StateCompensated:
		return "↶", "warn"
	case machine.StateIntended, machine.StateProposed:
		return "○", "dim"
	case machine.StateUnknown:
	}
	return "·", "plain"
}

func (msg *sheetLoadedMsg) children(list []engine.RunLine) {
	msg.empty = "This run has given no part of its work to another."
	for _, l := range list {
		sign, tone := standing(l.State)
		title := l.Goal + " · " + words(&l) + fmt.Sprintf(" · turn %d", l.Turns)
		if l.Needs > 0 {
			title += fmt.Sprintf(" · ▲%d", l.Needs)
		}
		msg.rows = append(msg.rows, sheetRow{
			label: string(l.ID), to: subject{kind: showRun, run: l.ID},
			row: engine.TimelineRow{Sign: sign, Tone: string(tone), Title: title, Detail: []string{l.Note}},
		})
	}
}

func (msg *sheetLoadedMsg) context(c engine.ContextView) {
	msg.note = fmt.Sprintf("window %d of %d · %s tokens", c.Window, c.Windows, thousands(c.Tokens))
	if c.Budget > 0 {
		msg.note += fmt.Sprintf(" of %s (%d %%)", thousands(c.Budget), 100*c.Tokens/c.Budget)
	}
	most := 1
	for _, s := range c.Sections {
		most = max(most, s.Tokens)
	}
	for _, s := range c.Sections {
		r := engine.TimelineRow{Sign: "▤", Tone: "plain", Title: fmt.Sprintf("%-30s %s", s.Name, strings.Repeat("▇", (s.Tokens*24+most-1)/most))}
		if len(s.From) > 0 {
			r.Detail = append(r.Detail, "made of "+strings.Join(s.From, ", "), " ")
		}
		r.Detail = append(r.Detail, s.Text)
		msg.rows = append(msg.rows, sheetRow{label: thousands(s.Tokens), row: r})
	}
	for _, l := range c.Left {
		r := engine.TimelineRow{Sign: "…", Tone: "dim", Title: "not whole: " + l.What, Detail: []string{fmt.Sprintf("%s; %s bytes left out", l.Why, thousands(int(l.Bytes)))}}
		if l.Handle != "" {
			r.Detail = append(r.Detail, "the model can read it: read_evidence "+l.Handle)
		}
		msg.rows = append(msg.rows, sheetRow{label: "", row: r})
	}
}

func thousands(n int) string {
	switch {
	case n >= 1e6:
		return fmt.Sprintf("%.1fM", float64(n)/1e6)
	case n >= 1e4:
		return fmt.Sprintf("%.1fk", float64(n)/1e3)
	}
	return fmt.Sprint(n)
}

func (msg *sheetLoadedMsg) state(t engine.StateTable) {
	msg.note = fmt.Sprintf("%d events", t.Tail)
	msg.rows = append(msg.rows, sheetRow{label: "plug", opened: true, row: engine.TimelineRow{
		Sign: "!", Tone: "warn", Title: "if the plug were pulled now", Detail: []string{t.Plug, " "},
	}})
	for _, k := range t.Kinds {
		d := append([]string{"lives in: " + k.Lives, "comes back by: " + k.Back}, k.More...)
		msg.rows = append(msg.rows, sheetRow{label: k.Kind, row: engine.TimelineRow{Sign: "■", Tone: "plain", Title: k.Now, Detail: d}})
	}
}

// loaded takes what was read.
func (s *sheet) loaded(m *Model, msg sheetLoadedMsg) tea.Cmd {
	t := &s.list
	if msg.run != t.run || msg.tab != s.tab || msg.window != s.window {
		return nil
	}
	if s.failed = ""; msg.err != nil {
		s.failed = msg.err.Error()
		return nil
	}
	fresh := t.asking
	atEnd := t.selected >= len(t.rows)-1
	s.note, t.empty = msg.note, msg.empty
	t.asking, t.first, t.last = false, true, true
	t.rows, t.labels, s.to = nil, map[int64]string{}, map[int64]subject{}
	t.laid.rows = nil
	for i, r := range msg.rows {
		n := int64(i + 1)
		r.row.N = n
		t.labels[n] = r.label
		if r.to.kind != showNothing {
			s.to[n] = r.to
		}
		if fresh && r.opened {
			t.open[n] = true
		}
		t.rows = append(t.rows, r.row)
	}
	if msg.at > 0 && (fresh || atEnd) {
		t.selected = int(msg.at) - 1
	}
	return t.ensure(m)
}

// view draws the tab.
func (s *sheet) view(m *Model, title string, w, h int) []string {
	if s.failed != "" {
		iw, _ := views.Inner(w, h)
		return views.Text{Title: title, Tabs: tabs, Tab: s.tab, Rows: views.Prose(m.pen, views.ToneBad, "This could not be read: "+s.failed, iw), Focus: m.focus == panelMain}.Draw(m.pen, w, h)
	}
	s.list.note = s.note
	return s.list.view(m, title, s.tab, w, h)
}

// list is the folding list that the shown tab is.
func (p *mainPanel) list() *timeline {
	switch p.tab {
	case tabTimeline:
		return &p.line
	case tabDiff:
		return &p.diff.list
	}
	return &p.sheet.list
}

// openRow follows a row of a list to what it is about; false if it only unfolds.
func (m *Model) openRow() (tea.Cmd, bool) {
	p := &m.main
	if p.tab == tabTimeline || p.tab == tabDiff {
		return nil, false
	}
	r, ok := p.sheet.list.current()
	if !ok {
		return nil, false
	}
	to, ok := p.sheet.to[r.N]
	if !ok {
		return nil, false
	}
	back := p.subject
	cmd := p.show(m, to)
	p.before = &back
	return cmd, true
}

// turnTab goes to another tab of the run.
func (m *Model) turnTab(by int) tea.Cmd {
	p := &m.main
	p.tab = (p.tab + by + len(tabs)) % len(tabs)
	return p.readTab(m)
}

// turnWindow shows another context window of the run.
func (m *Model) turnWindow(by int) tea.Cmd {
	p := &m.main
	if p.tab != tabContext || p.subject.kind != showRun {
		m.say("Windows are turned on the Context tab.")
		return nil
	}
	var now, of int
	if _, err := fmt.Sscanf(p.sheet.note, "window %d of %d", &now, &of); err != nil {
		return nil
	}
	to := now + by
	if to < 1 || to > of {
		m.say(fmt.Sprintf("There are %d windows so far.", of))
		return nil
	}
	p.sheet.window = to
	if to == of {
		p.sheet.window = 0
	}
	return p.readTab(m)
}
