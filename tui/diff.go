package tui

import (
	"context"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"pawl/engine"
	"pawl/engine/machine"
	"pawl/views"
)

// diff is what a run has changed so far: its files, each of which unfolds.
type diff struct {
	list   timeline
	run    machine.RunID
	text   string
	files  []views.DiffFile
	failed string
	beside bool // the old file's lines stand beside the new one's
}

const (
	openFiles = 12  // so many files are unfolded at first
	besideW   = 100 // cells from which two columns are worth it
)

func (d *diff) load(m *Model, run machine.RunID) tea.Cmd {
	if d.run != run {
		*d = diff{run: run, beside: d.beside, list: timeline{run: run, open: map[int64]bool{}, asking: true}}
	}
	return m.do(func(ctx context.Context) tea.Msg {
		text, err := m.back.Diff(ctx, run)
		return diffLoadedMsg{run: run, text: text, files: views.ParseDiff(text), err: err}
	})
}

func (p *mainPanel) diffLoaded(m *Model, msg diffLoadedMsg) tea.Cmd {
	d := &p.diff
	if msg.run != d.run {
		return nil
	}
	t := &d.list
	fresh := t.asking
	d.text, d.files, d.failed = msg.text, msg.files, ""
	if msg.err != nil {
		d.failed = msg.err.Error()
	}
	t.asking, t.first, t.last = false, true, true
	t.empty = "No change yet."
	t.rows, t.labels, t.laid.rows = nil, map[int64]string{}, nil
	added, removed := 0, 0
	for i, f := range d.files {
		n := int64(i + 1)
		title := f.Name
		if f.Note != "" {
			title += " · " + f.Note
		}
		row := engine.TimelineRow{N: n, Sign: "±", Tone: "plain", Title: title}
		if len(f.Lines) > 0 {
			row.Detail = []string{""} // it unfolds
		}
		t.labels[n] = f.Counts()
		t.rows = append(t.rows, row)
		if fresh && len(d.files) <= openFiles && len(f.Lines) <= 2000 {
			t.open[n] = true
		}
		added, removed = added+f.Added, removed+f.Removed
	}
	t.note = ""
	if len(d.files) > 0 {
		t.note = views.Count(len(d.files), "file", "files") + " · " + views.DiffFile{Added: added, Removed: removed}.Counts()
	}
	t.layout = func(m *Model, i, w int) []string {
		iw, _ := views.Inner(w, 2)
		return d.files[i].Rows(m.pen, iw, d.beside && iw >= besideW)
	}
	return t.ensure(m)
}

// turn puts the two sides beside each other, or one below the other.
func (d *diff) turn(m *Model) tea.Cmd {
	d.beside = !d.beside
	d.list.laid.rows = nil
	if d.beside && d.list.w-2 < besideW {
		m.say("There is too little room for two columns here: it stays as it is until the panel is wider.")
	}
	return d.list.ensure(m)
}

func (d *diff) view(m *Model, title string, w, h int) []string {
	if d.failed != "" {
		iw, _ := views.Inner(w, h)
		return views.Text{
			Title: title, Tabs: tabs, Tab: tabDiff, Focus: m.focus == panelMain,
			Rows: views.Prose(m.pen, views.ToneBad, "The diff could not be made: "+d.failed, iw),
		}.Draw(m.pen, w, h)
	}
	return d.list.view(m, title, tabDiff, w, h)
}

// file is the selected file and a line in it where something changed.
func (d *diff) file() (name string, line int, ok bool) {
	if i := d.list.selected; i < len(d.files) {
		f := d.files[i]
		return f.Name, max(f.First, 1), !slices.Contains([]string{"deleted", "binary"}, f.Note) && !strings.HasPrefix(f.Name, "/")
	}
	return "", 0, false
}
