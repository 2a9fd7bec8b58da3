package views

import (
	"pawl/views/safe"
)

// Dialog is a box over the screen.
type Dialog struct {
	Title string
	Rows  []string // each exactly DialogInner cells
	Keys  []KeyHint
	Note  string
	Tone  Tone
	Foot  string
}

// DialogWidth is how wide a dialog is on a screen of w cells.
func DialogWidth(w int) int { return max(min(w-4, 84), min(w, 20)) }

// DialogInner is the width of a dialog's rows on a screen of w cells.
func DialogInner(w int) int { return max(DialogWidth(w)-2, 1) }

// DialogRoom is how many rows a dialog can hold on a screen of w×h.
func (d Dialog) Room(pen Pen, w, h int) int {
	return max(h-2-len(d.foot(pen, DialogInner(w))), 1)
}

func (d Dialog) foot(pen Pen, iw int) []string {
	var rows []string
	if d.Note != "" {
		for _, l := range pen.wrap(titleSpans(d.Note), iw-2, iw-2, true) {
			rows = append(rows, pen.row(iw).gap(1).spans(pen.tone(d.Tone), l).end())
		}
	}
	return append(rows, hintRows(pen, d.Keys, iw)...)
}

// Draw returns the box's rows, at most h of them.
func (d Dialog) Draw(pen Pen, w, h int) []string {
	iw := DialogInner(w)
	foot := d.foot(pen, iw)
	rows := append([]string(nil), d.Rows...)
	if room := h - 2 - len(foot) - 1; len(rows) > room {
		rows = rows[:max(room, 0)]
	}
	rows = append(rows, pad(iw))
	rows = append(rows, foot...)
	p := Panel{Title: d.Title, Focus: true, Body: rows, Foot: d.Foot}
	return p.Draw(pen, DialogWidth(w), min(len(rows)+2, h))
}

// Prose wraps text for a dialog's rows of w cells.
func Prose(pen Pen, t Tone, text string, w int) []string {
	d := &doc{pen: pen, w: w}
	d.prose(pen.tone(t), text)
	return d.rows
}

// FieldRows lays out labelled values for rows of w cells.
func FieldRows(pen Pen, fields []Field, w int) []string {
	d := &doc{pen: pen, w: w}
	d.fields(fields)
	return d.rows
}

// Pick is a list to choose from in a dialog.
type Pick struct {
	Rows     []PickRow
	Selected int
	Offset   int
}

// PickRow is one line of it.
type PickRow struct{ Left, Right string }

// Draw returns at most h rows of w cells.
func (p Pick) Draw(pen Pen, w, h int) []string {
	var rows []string
	for i := p.Offset; i < len(p.Rows) && len(rows) < h; i++ {
		text, dim := pen.Text, pen.Key
		if i == p.Selected {
			text, dim = pen.Select, pen.Select
		}
		right := pen.Cut(tight(p.Rows[i].Right, w), w/3)
		r := pen.row(w - pen.Width(right) - 1)
		r.put(text, " ").put(text, tight(p.Rows[i].Left, w))
		rows = append(rows, r.fill(text)+dim.Paint(right+" "))
	}
	return rows
}

// Input is a text being typed, laid out: rows of text and where the cursor is.
type Input struct {
	Label string
	Rows  []string // sanitised, each at most Width cells
	// CursorRow and CursorCol say where typing goes, in cells; CursorRow is -1
	// if this input has no focus.
	CursorRow, CursorCol int
	Holder               string // shown while it is empty
	Height               int    // rows at least
	Foot                 string
}

// Draw returns the input as rows of w cells: its label, then its text behind a bar.
func (in Input) Draw(pen Pen, w int) []string {
	var rows []string
	edge, label := pen.Border, pen.Dim
	if in.CursorRow >= 0 {
		edge, label = pen.Focus, pen.Strong
	}
	if in.Label != "" {
		r := pen.row(w).gap(1).put(label, in.Label)
		if in.Foot != "" {
			r.put(pen.Dim, "  "+in.Foot)
		}
		rows = append(rows, r.end())
	}
	empty := len(in.Rows) == 0 || len(in.Rows) == 1 && in.Rows[0] == ""
	n := max(len(in.Rows), in.Height, 1)
	for i := range n {
		text := ""
		if i < len(in.Rows) {
			text = in.Rows[i]
		}
		r := pen.row(w).gap(1).put(edge, "┃").gap(1)
		if i == in.CursorRow {
			before, at, after := split(pen, text, in.CursorCol)
			if at == "" {
				at = " "
			}
			r.put(pen.Input, before).put(pen.Cursor, at).put(pen.Input, after)
		} else {
			r.put(pen.Input, text)
		}
		if empty && i == 0 && in.Holder != "" {
			r.put(pen.Dim, safe.Line(in.Holder))
		}
		rows = append(rows, r.end())
	}
	return rows
}

// split cuts a row around the cluster at column col.
func split(pen Pen, s string, col int) (before, at, after string) {
	used, n := 0, 0
	pen.clusters(s, func(c string, w int) bool {
		if used >= col {
			at = c
			return false
		}
		used += w
		n += len(c)
		return true
	})
	return s[:n], at, s[n+len(at):]
}
