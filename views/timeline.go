package views

import (
	"fmt"

	"pawl/themes"
	"pawl/views/safe"
)

// Event is one row of a run's timeline, not yet sanitised.
type Event struct {
	N      int64
	Clock  string // time of day
	Sign   string // one cell
	Title  string
	Detail []string
	Tone   Tone
	Open   bool     // unfolded
	Words  bool     // Detail is prose: lines break at words
	Rows   []string // Detail laid out, see Layout
}

// Timeline is a window of a run's events: however long the history, drawing it
// costs what is on screen.
type Timeline struct {
	Title    string
	Tabs     []string // names of the panel's tabs; the first is this one
	Tab      int
	Events   []Event // from the first one shown
	Selected int     // index into Events, -1 for none
	Skip     int     // rows of the first event that are scrolled away
	Focus    bool
	Foot     string
	Empty    string
	Lead     int // cells of the column before the sign; 0: a time of day's
}

// Height is the number of rows that an event takes.
func (e Event) Height() int {
	if !e.Open {
		return 1
	}
	return 1 + len(e.Rows)
}

const detailMost = 400 // rows of detail that one event unfolds to

// Layout fills in the rows below an event's title, for a panel of w cells. They
// hold until the width or the theme changes.
func (e *Event) Layout(pen Pen, w int) {
	iw, _ := Inner(w, 2)
	room := iw - detailIndent - 1
	s := pen.Dim
	if e.Tone == ToneLive {
		s = pen.Live
	}
	e.Rows = nil
	for _, text := range e.Detail {
		lines, _ := safe.BlockSpans(safe.Output(safe.Head(text, 64<<10)))
		for _, l := range lines {
			for _, part := range pen.wrap(l, room, room, e.Words || e.Tone == ToneLive) {
				if len(e.Rows) == detailMost {
					e.Rows = append(e.Rows, pen.row(iw).gap(detailIndent).put(pen.Warn, "… more: pawl show gives all of it").end())
					return
				}
				e.Rows = append(e.Rows, pen.row(iw).gap(detailIndent).spans(s, part).end())
			}
		}
	}
}

const detailIndent = 14

// Draw returns h rows of w cells.
func (t Timeline) Draw(pen Pen, w, h int) []string {
	iw, ih := Inner(w, h)
	body := make([]string, 0, ih)
	skip := t.Skip
	add := func(r string) {
		if skip > 0 {
			skip--
			return
		}
		if len(body) < ih {
			body = append(body, r)
		}
	}
	for i, e := range t.Events {
		if len(body) >= ih {
			break
		}
		add(t.title(pen, e, iw, i == t.Selected))
		if !e.Open {
			continue
		}
		for _, l := range e.Rows {
			add(l)
		}
	}
	if len(t.Events) == 0 && t.Empty != "" {
		for _, l := range pen.wrap([]safe.Span{{Text: t.Empty}}, iw-2, iw-2, true) {
			body = append(body, pen.row(iw).gap(1).spans(pen.Dim, l).end())
		}
	}
	p := Panel{Title: t.title0(pen, iw), Focus: t.Focus, Body: body, Foot: t.Foot}
	return p.Draw(pen, w, h)
}

func (t Timeline) title0(pen Pen, w int) string {
	tabs := ""
	for i, n := range t.Tabs {
		if i > 0 {
			tabs += " · "
		}
		if i == t.Tab {
			n = "[" + n + "]"
		}
		tabs += n
	}
	if tabs == "" {
		return tight(t.Title, w)
	}
	if pen.Width(tabs) > w-6 { // the one that is shown must be readable
		tabs = fmt.Sprintf("[%s] %d of %d", t.Tabs[t.Tab], t.Tab+1, len(t.Tabs))
	}
	return tabs + " — " + tight(t.Title, w)
}

func (t Timeline) title(pen Pen, e Event, w int, selected bool) string {
	text, dim, fill := pen.tone(e.Tone), pen.Dim, themes.Style{}
	if selected {
		text = pen.selection(t.Focus)
		dim, fill = text, text
	}
	r := pen.row(w)
	lead := t.Lead
	if lead == 0 {
		lead = 9
	}
	r.column(dim, " "+e.Clock, lead).put(dim, " ").put(text, safe.Line(e.Sign)).put(text, " ")
	fold := " "
	if len(e.Detail) > 0 {
		fold = "▸"
		if e.Open {
			fold = "▾"
		}
	}
	return r.put(dim, fold).put(text, " ").put(text, tight(e.Title, w)).fill(fill)
}

// Text is a panel of plain text with tabs above it, such as a diff.
type Text struct {
	Title  string
	Tabs   []string
	Tab    int
	Rows   []string // each exactly the panel's inner width
	Offset int
	Focus  bool
}

// Draw returns h rows of w cells.
func (t Text) Draw(pen Pen, w, h int) []string {
	iw, ih := Inner(w, h)
	off := max(min(t.Offset, len(t.Rows)-ih), 0)
	p := Panel{
		Title: Timeline{Title: t.Title, Tabs: t.Tabs, Tab: t.Tab}.title0(pen, iw), Focus: t.Focus,
		Body: t.Rows[min(off, len(t.Rows)):min(off+ih, len(t.Rows))], Foot: position(min(off+ih, len(t.Rows))-1, len(t.Rows), ih),
	}
	return p.Draw(pen, w, h)
}
