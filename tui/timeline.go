package tui

import (
	"context"
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"pawl/engine"
	"pawl/engine/machine"
	"pawl/themes"
	"pawl/views"
	"pawl/views/safe"
)

const (
	keepRows = 2000 // timeline rows kept in memory
	nearEdge = 40   // rows from the edge of what is kept at which more is read
)

// timeline is a window of a run's rows, moved over its history by pages.
type timeline struct {
	run      machine.RunID
	raw      []engine.TimelineRow // by number, without gaps in what the ledger tells
	rows     []engine.TimelineRow // as shown, see gather
	first    bool                 // nothing comes before raw
	last     bool                 // nothing came after raw when it was read
	asking   bool
	selected int
	top      int // first row shown
	skip     int // lines of it scrolled away
	open     map[int64]bool
	w, h     int // of the panel when it was drawn last
	laid     laid
	// Of lists that are no history: what stands for the time, by number, a note
	// beside the title, and what an empty list says.
	labels map[int64]string
	note   string
	empty  string
	// layout makes the rows below a title, in place of the row's own detail.
	layout func(m *Model, i, w int) []string
}

// jump reads a run's newest rows, or its oldest, in place of those kept.
func (t *timeline) jump(m *Model, run machine.RunID, newest bool) tea.Cmd {
	if t.run != run {
		*t = timeline{run: run, open: map[int64]bool{}, w: t.w, h: t.h}
	}
	after, back := int64(0), false
	if newest {
		after, back = 0, true
	}
	return t.ask(m, after, back, true)
}

func (t *timeline) ask(m *Model, after int64, back, jump bool) tea.Cmd {
	t.asking = true
	run := t.run
	return m.do(func(ctx context.Context) tea.Msg {
		rows, err := m.back.Timeline(ctx, run, after, back, pageRows)
		return pageLoadedMsg{run: run, after: after, back: back, jump: jump, rows: rows, err: err}
	})
}

// tailQuery is how to read what came after the rows kept; false if they do not
// reach to the end anyway.
func (t *timeline) tailQuery() (pageLoadedMsg, bool) {
	if t.run == "" || !t.last {
		return pageLoadedMsg{}, false
	}
	after := int64(0)
	if n := len(t.raw); n > 0 {
		after = t.raw[n-1].N
	}
	return pageLoadedMsg{run: t.run, after: after}, true
}

// loaded takes a page.
func (t *timeline) loaded(m *Model, msg pageLoadedMsg) tea.Cmd {
	if msg.run != t.run {
		return nil
	}
	t.asking = false
	if msg.err != nil {
		m.complain("The timeline could not be read: " + msg.err.Error())
		return nil
	}
	rows := slices.Clone(msg.rows)
	slices.SortFunc(rows, func(a, b engine.TimelineRow) int { return int(a.N - b.N) })
	atEnd := t.selected >= len(t.rows)-1
	switch {
	case msg.jump:
		t.raw = rows
		t.first, t.last = !msg.back || len(rows) < pageRows, msg.back || len(rows) < pageRows
		t.top, t.skip, t.selected = 0, 0, 0
		t.rows = gather(t.raw)
		if msg.back {
			t.selected = max(len(t.rows)-1, 0)
		}
	case msg.back:
		if len(t.raw) == 0 || msg.after != t.raw[0].N {
			return nil // of a window that has moved on
		}
		if len(rows) == 0 {
			t.first = true
			return nil
		}
		t.raw = append(rows, t.raw...)
		if extra := len(t.raw) - keepRows; extra > 0 {
			t.raw, t.last = t.raw[:keepRows], false
		}
		t.regather()
	default:
		if n := len(t.raw); n > 0 && msg.after != t.raw[n-1].N {
			return nil
		}
		t.last = len(rows) < pageRows
		if len(rows) == 0 {
			return nil
		}
		t.raw = append(t.raw, rows...)
		if extra := len(t.raw) - keepRows; extra > 0 {
			t.raw, t.first = slices.Delete(t.raw, 0, extra), false
		}
		t.regather()
		if atEnd && t.last {
			t.selected = max(len(t.rows)-1, 0)
		}
	}
	return t.ensure(m)
}

// regather makes the rows anew. Selection and window stay on their rows; a row
// that has become part of another is followed there.
func (t *timeline) regather() {
	var sel, top int64
	if t.selected < len(t.rows) {
		sel = t.rows[t.selected].N
	}
	if t.top < len(t.rows) {
		top = t.rows[t.top].N
	}
	t.rows = gather(t.raw)
	t.laid.rows = nil
	find := func(n int64) int {
		i, _ := slices.BinarySearchFunc(t.rows, n, func(r engine.TimelineRow, n int64) int { return int(r.N - n) })
		return max(min(i, len(t.rows)-1), 0)
	}
	t.selected, t.top = find(sel), find(top)
}

// ensure keeps the selection on screen and reads on near an edge.
func (t *timeline) ensure(m *Model) tea.Cmd {
	t.selected = max(min(t.selected, len(t.rows)-1), 0)
	t.scrollTo(m)
	if t.asking || t.run == "" || len(t.rows) == 0 {
		return nil
	}
	if t.selected < nearEdge && !t.first {
		return t.ask(m, t.raw[0].N, true, false)
	}
	if t.selected > len(t.rows)-nearEdge && !t.last {
		return t.ask(m, t.raw[len(t.raw)-1].N, false, false)
	}
	return nil
}

// scrollTo moves the window so that the selected row's title shows.
func (t *timeline) scrollTo(m *Model) {
	_, ih := views.Inner(t.w, t.h)
	if ih <= 0 || len(t.rows) == 0 {
		return
	}
	ih = max(ih-t.liveRows(m), 1)
	t.top = min(t.top, len(t.rows)-1)
	if t.selected < t.top || t.selected == t.top && t.skip > 0 {
		t.top, t.skip = t.selected, 0
		return
	}
	// Lines from the top of the window to the selected title, itself included.
	need := 1 - t.skip
	for i := t.top; i < t.selected; i++ {
		need += t.height(m, i)
		if need > ih+detailGuard {
			break
		}
	}
	if need <= ih {
		return
	}
	// Go back from the selected row until the window is full.
	room := ih - 1
	t.top, t.skip = t.selected, 0
	for t.top > 0 {
		h := t.height(m, t.top-1)
		if h > room {
			if room > 0 {
				t.top--
				t.skip = h - room
			}
			return
		}
		room -= h
		t.top--
	}
}

// detailGuard bounds how far scrollTo looks before it takes the long way.
const detailGuard = 1000

func (t *timeline) height(m *Model, i int) int {
	if !t.open[t.rows[i].N] {
		return 1
	}
	e := t.event(m, i)
	return e.Height()
}

// laid are details laid out, for one width and one theme.
type laid struct {
	w      int
	styles *themes.Styles
	method ansi.Method
	rows   map[int64][]string // by event number
}

// event makes a row ready to draw. Details are laid out once.
func (t *timeline) event(m *Model, i int) views.Event {
	r := t.rows[i]
	e := views.Event{
		N: r.N, Clock: r.At.Local().Format("15:04:05"), Sign: r.Sign, Title: r.Title, Detail: r.Detail,
		Tone: views.Tone(r.Tone), Open: t.open[r.N],
	}
	if t.labels != nil {
		e.Words, e.Clock = true, t.labels[r.N]
	}
	if !e.Open {
		return e
	}
	if l := &t.laid; l.rows == nil || l.w != t.w || l.styles != m.pen.Styles || l.method != m.pen.Method || len(l.rows) > 200 {
		*l = laid{t.w, m.pen.Styles, m.pen.Method, map[int64][]string{}}
	}
	rows, ok := t.laid.rows[r.N]
	if !ok {
		if t.layout != nil {
			e.Rows = t.layout(m, i, t.w)
		} else {
			e.Layout(m.pen, t.w)
		}
		rows = e.Rows
		t.laid.rows[r.N] = rows
	}
	e.Rows = rows
	return e
}

// step moves by rows; within an unfolded row that is longer than the window it
// scrolls first.
func (t *timeline) step(m *Model, d int) tea.Cmd {
	_, ih := views.Inner(t.w, t.h)
	if d > 0 && t.selected < len(t.rows) && t.open[t.rows[t.selected].N] {
		// Lines of the selected row that do not show yet.
		below := t.height(m, t.selected) - ih
		for i := t.top; i < t.selected; i++ {
			below += t.height(m, i)
		}
		if below -= t.skip; below > 0 && (t.selected == t.top || below > 0) {
			t.scroll(m, min(d, below))
			return nil
		}
	}
	if d < 0 && t.selected == t.top && t.skip > 0 {
		t.scroll(m, max(d, -t.skip))
		return nil
	}
	t.selected += d
	return t.ensure(m)
}

// scroll moves the window by lines and takes the selection along.
func (t *timeline) scroll(m *Model, d int) {
	for ; d > 0 && t.top < len(t.rows); d-- {
		if t.skip++; t.skip >= t.height(m, t.top) {
			if t.top == len(t.rows)-1 {
				t.skip--
				return
			}
			t.top, t.skip = t.top+1, 0
		}
	}
	for ; d < 0; d++ {
		if t.skip > 0 {
			t.skip--
			continue
		}
		if t.top == 0 {
			break
		}
		t.top--
		t.skip = t.height(m, t.top) - 1
	}
	t.selected = max(t.selected, t.top)
}

// toggle unfolds the selected row, or folds it.
func (t *timeline) toggle(m *Model) tea.Cmd {
	if t.selected >= len(t.rows) {
		return nil
	}
	n := t.rows[t.selected].N
	if t.open[n] {
		delete(t.open, n)
	} else {
		t.open[n] = true
	}
	return t.ensure(m)
}

func (t *timeline) current() (engine.TimelineRow, bool) {
	if t.selected < len(t.rows) {
		return t.rows[t.selected], true
	}
	return engine.TimelineRow{}, false
}

// liveEvent is the model's text as it arrives, marked as such; nil if there is none.
func (t *timeline) liveEvent(m *Model) *views.Event {
	if !t.last || t.labels != nil {
		return nil
	}
	title := ""
	l, ok := m.live[t.run]
	if ok {
		title = fmt.Sprintf("turn %d is being written (live, not in the ledger yet)", l.Turn)
	} else if l, ok = m.output[t.run]; ok {
		title = "output of " + l.Effect.Short() + " (live, not in the ledger yet)"
	}
	if !ok || l.Done {
		return nil
	}
	text := l.Text
	if len(text) > 600 {
		text = "…" + text[len(safe.Head(text, len(text)-600)):]
	}
	e := &views.Event{Sign: "…", Title: title, Detail: []string{text}, Tone: views.ToneLive, Open: true}
	e.Layout(m.pen, t.w)
	return e
}

func (t *timeline) liveRows(m *Model) int {
	e := t.liveEvent(m)
	if e == nil {
		return 0
	}
	_, ih := views.Inner(t.w, t.h)
	return min(e.Height(), ih/2)
}

// view draws the window.
func (t *timeline) view(m *Model, title string, tab, w, h int) []string {
	if t.w != w || t.h != h {
		t.w, t.h = w, h
		t.scrollTo(m)
	}
	_, ih := views.Inner(w, h)
	v := views.Timeline{Title: title, Tabs: tabs, Tab: tab, Selected: -1, Skip: t.skip, Focus: m.focus == panelMain}
	for i := t.top; i < len(t.rows) && len(v.Events) < ih+1; i++ {
		if i == t.selected {
			v.Selected = len(v.Events)
		}
		v.Events = append(v.Events, t.event(m, i))
	}
	if t.labels != nil {
		v.Lead = 11
	}
	if e := t.liveEvent(m); e != nil && t.labels == nil {
		v.Events = append(v.Events, *e)
	}
	if len(t.rows) == 0 {
		if v.Empty = "Nothing has happened yet."; t.empty != "" {
			v.Empty = t.empty
		}
		if t.asking {
			v.Empty = "Reading…"
		}
	}
	if r, ok := t.current(); ok && t.labels == nil {
		v.Foot = fmt.Sprintf("event %d", r.N)
	} else if v.Foot = t.note; ok && len(t.rows) > ih {
		v.Foot = strings.TrimPrefix(fmt.Sprintf("%s · %d of %d", t.note, t.selected+1, len(t.rows)), " · ")
	}
	return v.Draw(m.pen, w, h)
}
