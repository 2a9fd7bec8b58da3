package views

import (
	"pawl/themes"
	"pawl/views/safe"
)

// Tone says how a text is meant.
type Tone string

// The tones. An unknown one is drawn plain.
const (
	TonePlain Tone = "plain"
	ToneGood  Tone = "good"
	ToneBad   Tone = "bad"
	ToneWarn  Tone = "warn"
	ToneDim   Tone = "dim"
	ToneLive  Tone = "live"
)

func (p Pen) tone(t Tone) themes.Style {
	switch t {
	case ToneGood:
		return p.Good
	case ToneBad:
		return p.Bad
	case ToneWarn:
		return p.Warn
	case ToneDim:
		return p.Dim
	case ToneLive:
		return p.Live
	case TonePlain:
		return p.Text
	}
	return p.Text
}

// Need is one row of Needs you. Its texts are sanitised when drawn.
type Need struct {
	Sign    string // one cell
	Kind    string
	Summary string
	Reach   string // how far it reaches
	Age     string
	Tone    Tone
}

// Needs is the list of what waits for the operator.
type Needs struct {
	Rows     []Need // those that show; further ones are not drawn
	Selected int    // index into Rows, -1 for none
	At, Of   int    // place of the selection in the whole list, from 0
	Focus    bool
	Filter   string // what the list is narrowed to
	Typing   bool   // the filter is being typed
	Empty    string // what to say when there is none
}

// Draw returns h rows of w cells.
func (n Needs) Draw(pen Pen, w, h int) []string {
	iw, ih := Inner(w, h)
	kind := 10
	for _, r := range n.Rows {
		kind = max(kind, min(len(r.Kind), 12))
	}
	body := make([]string, 0, ih)
	for i, r := range n.Rows[:min(len(n.Rows), ih)] {
		age := pen.Cut(r.Age, 5)
		main := pen.row(iw - pen.Width(age) - 2)
		sign, text, dim := pen.tone(r.Tone), pen.Text, pen.Dim
		if i == n.Selected {
			sign = pen.selection(n.Focus)
			text, dim = sign, sign
		}
		main.put(text, " ").put(sign, safe.Line(r.Sign)).put(text, " ")
		if iw >= 30 {
			main.column(sign, safe.Line(r.Kind), kind).put(text, " ")
		}
		main.put(text, tight(r.Summary, iw))
		if reach := " · " + tight(r.Reach, iw); r.Reach != "" && main.left >= pen.Width(reach) {
			main.put(dim, reach)
		}
		fill := themes.Style{}
		if i == n.Selected {
			fill = text
		}
		body = append(body, main.fill(fill)+dim.Paint(" "+age+" "))
	}
	if len(n.Rows) == 0 {
		body = append(body, pen.row(iw).put(pen.Dim, " "+n.Empty).end())
	}
	p := Panel{
		Title: filtered("Needs you", n.Filter, n.Typing), Focus: n.Focus, Body: body,
		Foot: position(n.At, n.Of, ih),
	}
	return p.Draw(pen, w, h)
}

func (p Pen) selection(focus bool) themes.Style {
	if focus {
		return p.Select
	}
	return p.Shade
}

func filtered(title, filter string, typing bool) string {
	switch {
	case typing:
		return title + " / " + safe.Line(filter) + "_"
	case filter != "":
		return title + " / " + safe.Line(filter)
	}
	return title
}

// RunRow is one row of the tree of runs. Its texts are sanitised when drawn.
type RunRow struct {
	Tree  string // the lines of the tree before it: "  ├ "
	Fold  string // "▼", "▶" or a space
	Goal  string
	Sign  string
	State string
	Needs int
	Turns int
	Spend string
	Age   string
	Tone  Tone
}

// Runs is the tree of runs.
type Runs struct {
	Rows     []RunRow // those that show; further ones are not drawn
	Selected int      // index into Rows, -1 for none
	At, Of   int      // place of the selection in the whole list, from 0
	Focus    bool
	Filter   string
	Typing   bool
	More     bool // there are older ones, not read yet
	Empty    []string
}

// Draw returns h rows of w cells.
func (r Runs) Draw(pen Pen, w, h int) []string {
	iw, ih := Inner(w, h)
	body := make([]string, 0, ih)
	state := 0 // width of the widest state that shows
	rows := r.Rows[:min(len(r.Rows), ih)]
	for _, x := range rows {
		state = max(state, min(pen.Width(safe.Line(x.State)), 14))
	}
	for i, x := range rows {
		body = append(body, r.row(pen, x, iw, state, i == r.Selected))
	}
	if len(r.Rows) == 0 {
		for _, l := range r.Empty {
			for _, line := range pen.wrap([]safe.Span{{Text: l}}, iw-2, iw-2, true) {
				body = append(body, pen.row(iw).put(pen.Dim, " ").spans(pen.Dim, line).end())
			}
		}
	}
	foot := position(r.At, r.Of, ih)
	if r.More && foot != "" {
		foot += "+"
	}
	p := Panel{Title: filtered("Runs", r.Filter, r.Typing), Focus: r.Focus, Body: body, Foot: foot}
	return p.Draw(pen, w, h)
}

func (r Runs) row(pen Pen, x RunRow, w, stateW int, selected bool) string {
	text, dim, state, fill := pen.Text, pen.Dim, pen.tone(x.Tone), themes.Style{}
	if selected {
		text = pen.selection(r.Focus)
		dim, state, fill = text, text, text
	}
	tail := pen.row(w)
	tail.put(text, " ").put(state, safe.Line(x.Sign)+" ").column(state, safe.Line(x.State), stateW)
	if w >= 64 {
		tail.put(dim, rightText(pen, x.Spend, 8))
	}
	tail.put(dim, rightText(pen, x.Age, 5)).put(dim, " ")
	tw := w - tail.left
	if w < 30 {
		tail, tw = pen.row(2), 2
		tail.column(state, safe.Line(x.Sign), 1).column(state, "", 1)
	}
	main := pen.row(w - tw)
	main.put(text, " ").put(dim, x.Tree).put(dim, x.Fold).put(text, " ").put(text, tight(x.Goal, w))
	return main.fill(fill) + tail.b.String()
}

func rightText(pen Pen, s string, w int) string {
	s = pen.Cut(s, w)
	return pad(w-pen.Width(s)) + s
}
