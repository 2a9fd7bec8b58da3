package tui

import (
	"context"

	tea "charm.land/bubbletea/v2"

	"pawl/engine/machine"
	"pawl/views"
)

// diff is what a run has changed so far.
type diff struct {
	run    machine.RunID
	text   string
	read   bool
	failed string
	rows   []string // laid out
	w      int
	offset int
	h      int // of the panel when it was drawn last
}

func (d *diff) load(m *Model, run machine.RunID) tea.Cmd {
	if d.run != run {
		*d = diff{run: run}
	}
	return m.do(func(ctx context.Context) tea.Msg {
		text, err := m.back.Diff(ctx, run)
		return diffLoadedMsg{run: run, text: text, err: err}
	})
}

func (p *mainPanel) diffLoaded(msg diffLoadedMsg) {
	d := &p.diff
	if msg.run != d.run {
		return
	}
	d.text, d.read, d.failed, d.rows = msg.text, true, "", nil
	if msg.err != nil {
		d.failed = msg.err.Error()
	}
}

func (d *diff) scroll(by int) { d.offset = max(min(d.offset+by, len(d.rows)-d.h), 0) }

func (d *diff) view(m *Model, title string, w, h int) []string {
	iw, ih := views.Inner(w, h)
	d.h = ih
	switch {
	case d.failed != "":
		d.rows = views.Prose(m.pen, views.ToneBad, "The diff could not be made: "+d.failed, iw)
	case !d.read:
		d.rows = views.Prose(m.pen, views.ToneDim, "Reading…", iw)
	case d.rows == nil || d.w != w:
		d.rows, d.w = views.DiffRows(m.pen, d.text, w), w
	}
	d.scroll(0)
	return views.Text{Title: title, Tabs: tabs, Tab: tabDiff, Rows: d.rows, Offset: d.offset, Focus: m.focus == panelMain}.Draw(m.pen, w, h)
}
