package views

import (
	"fmt"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"pawl/themes"
)

// Panel is a frame around rows.
type Panel struct {
	Title string // sanitised by the caller
	Note  string // at the right of the top edge
	Foot  string // at the right of the bottom edge
	Focus bool
	Body  []string // rows of exactly Inner width; missing ones stay empty
}

// Inner is the room inside a panel of w×h.
func Inner(w, h int) (int, int) { return max(w-2, 0), max(h-2, 0) }

// Draw returns h rows of w cells.
func (p Panel) Draw(pen Pen, w, h int) []string {
	if w < 2 || h < 2 {
		return blank(w, h)
	}
	edge, title := pen.Border, pen.Dim
	if p.Focus {
		edge, title = pen.Focus, pen.Strong
	}
	rows := make([]string, 0, h)
	rows = append(rows, rule(pen, edge, title, "╭", "╮", p.Title, p.Note, w))
	side := edge.Paint("│")
	for i := range h - 2 {
		body := ""
		if i < len(p.Body) {
			body = p.Body[i]
		} else {
			body = pad(w - 2)
		}
		rows = append(rows, side+body+side)
	}
	return append(rows, rule(pen, edge, pen.Dim, "╰", "╯", "", p.Foot, w))
}

// rule draws a horizontal edge with a text at its left and one at its right.
func rule(pen Pen, edge, text themes.Style, l, r, left, right string, w int) string {
	room := w - 2
	if right != "" {
		right = " " + pen.Cut(right, max(room-4, 0)) + " "
	}
	rw := pen.Width(right)
	if rw+2 > room {
		right, rw = "", 0
	}
	if left != "" {
		left = pen.Cut(left, room-rw-3)
	}
	if left != "" {
		left = " " + left + " "
	}
	lw := pen.Width(left)
	var b strings.Builder
	b.WriteString(edge.Paint(l))
	b.WriteString(text.Paint(left))
	line := room - lw - rw
	if rw > 0 {
		line--
	}
	b.WriteString(edge.Paint(strings.Repeat("─", max(line, 0))))
	if rw > 0 {
		b.WriteString(pen.Dim.Paint(right))
		b.WriteString(edge.Paint("─"))
	}
	b.WriteString(edge.Paint(r))
	return b.String()
}

// blank returns h empty rows of w cells.
func blank(w, h int) []string {
	rows := make([]string, max(h, 0))
	for i := range rows {
		rows[i] = pad(w)
	}
	return rows
}

// Beside puts b to the right of a; both have the same number of rows.
func Beside(a, b []string) []string {
	rows := make([]string, len(a))
	for i := range a {
		rows[i] = a[i] + b[i]
	}
	return rows
}

// Overlay draws box over rows (of w cells each) at column x, row y, and returns
// new rows.
func Overlay(pen Pen, rows, box []string, w, x, y int) []string {
	out := append([]string(nil), rows...)
	for i, b := range box {
		n := y + i
		if n < 0 || n >= len(out) {
			continue
		}
		bw := pen.Method.StringWidth(b)
		left, right := around(pen, out[n], x, x+bw, w)
		out[n] = left + b + right
	}
	return out
}

// around returns what of a styled row stays to the left of column from, and to
// the right of column to, of w. A wide character that an edge would cut gives
// way to spaces. Rows hold no sequences but those of styles.
func around(pen Pen, row string, from, to, w int) (left, right string) {
	var l, r strings.Builder
	l.Grow(len(row) + 8)
	col, lw, rw := 0, 0, 0
	active := "" // styles in force
	for i := 0; i < len(row); {
		if row[i] == 0x1b {
			end := strings.IndexByte(row[i:], 'm')
			if end < 0 {
				break
			}
			seq := row[i : i+end+1]
			switch {
			case col < from:
				l.WriteString(seq)
			case rw > 0:
				r.WriteString(seq)
			}
			if active += seq; seq == ansi.ResetStyle {
				active = ""
			}
			i += end + 1
			continue
		}
		c, n, cw := row[i:i+1], 1, 1
		if row[i] >= 0x80 || i+1 < len(row) && row[i+1] >= 0x80 {
			n, cw = pen.cluster(row[i:])
			c = row[i : i+n]
		}
		switch {
		case col+cw <= from:
			l.WriteString(c)
			lw += cw
		case col >= to:
			if rw == 0 {
				r.WriteString(pad(col-to) + active)
				rw = col - to
			}
			r.WriteString(c)
			rw += cw
		}
		col += cw
		i += n
	}
	return l.String() + ansi.ResetStyle + pad(from-lw), r.String() + ansi.ResetStyle + pad(w-to-rw)
}

// Center is where a box of bw×bh goes in the middle of w×h.
func Center(w, h, bw, bh int) (x, y int) { return max((w-bw)/2, 0), max((h-bh)/2, 0) }

// Window returns the offset with which a list of n rows, h of them visible,
// shows row selected, moved as little as possible from offset.
func Window(n, h, selected, offset int) int {
	if h <= 0 {
		return 0
	}
	if selected < offset {
		offset = selected
	}
	if selected >= offset+h {
		offset = selected - h + 1
	}
	return max(min(offset, n-h), 0)
}

// position says where in a list one is, for a panel's foot; empty if all of it shows.
func position(selected, n, h int) string {
	if n <= h || n == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d", selected+1, n)
}
