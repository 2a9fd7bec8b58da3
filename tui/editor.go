package tui

import (
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"pawl/views"
	"pawl/views/safe"
)

// maxText is the number of bytes that an editor holds.
const maxText = 4 << 20

// editor is a text being typed. It keeps every byte that it is given, but that
// carriage returns count as newlines; what could harm a terminal is made
// visible when it is drawn. Its cost per key depends on the lines around the
// cursor, not on the length of the text. It belongs to the Update goroutine.
type editor struct {
	lines  []string // at least one
	row    int
	col    int  // byte offset in lines[row], at a cluster's edge
	single bool // one line: newlines become spaces
	size   int  // bytes in all
}

func newEditor(single bool) *editor { return &editor{lines: []string{""}, single: single} }

// Value is the text, newlines between its lines.
func (e *editor) Value() string { return strings.Join(e.lines, "\n") }

// Set replaces the text and puts the cursor at its end.
func (e *editor) Set(s string) {
	*e = editor{lines: []string{""}, single: e.single}
	e.Insert(s)
}

// Insert types s at the cursor. It reports whether all of it found room.
func (e *editor) Insert(s string) bool {
	whole := true
	if room := maxText - e.size; len(s) > room {
		s, whole = safe.Head(s, max(room, 0)), false
	}
	if strings.ContainsRune(s, '\r') {
		s = strings.ReplaceAll(s, "\r\n", "\n")
		s = strings.ReplaceAll(s, "\r", "\n")
	}
	if e.single {
		s = strings.ReplaceAll(s, "\n", " ")
	}
	e.size += len(s)
	parts := strings.Split(s, "\n")
	before, after := e.lines[e.row][:e.col], e.lines[e.row][e.col:]
	last := len(parts) - 1
	parts[0] = before + parts[0]
	e.col = len(parts[last])
	parts[last] += after
	e.lines = slices.Replace(e.lines, e.row, e.row+1, parts...)
	e.row += last
	return whole
}

// Key does what a key does in a text field; false if the key means nothing here.
func (e *editor) Key(k tea.KeyPressMsg) bool {
	switch k.Keystroke() {
	case "left", "ctrl+b":
		e.left()
	case "right", "ctrl+f":
		e.right()
	case "alt+left", "ctrl+left", "alt+b":
		e.wordLeft()
	case "alt+right", "ctrl+right", "alt+f":
		e.wordRight()
	case "up":
		e.vertical(-1)
	case "down":
		e.vertical(1)
	case "home", "ctrl+a":
		e.col = 0
	case "end", "ctrl+e":
		e.col = len(e.lines[e.row])
	case "ctrl+home":
		e.row, e.col = 0, 0
	case "ctrl+end":
		e.row = len(e.lines) - 1
		e.col = len(e.lines[e.row])
	case "backspace", "ctrl+h", "shift+backspace":
		r, c := e.row, e.col
		e.left()
		e.cut(e.row, e.col, r, c)
	case "delete", "ctrl+d":
		r, c := e.row, e.col
		e.right()
		e.cut(r, c, e.row, e.col)
	case "ctrl+w", "alt+backspace":
		r, c := e.row, e.col
		e.wordLeft()
		e.cut(e.row, e.col, r, c)
	case "ctrl+k":
		e.cut(e.row, e.col, e.row, len(e.lines[e.row]))
	case "ctrl+u":
		e.cut(e.row, 0, e.row, e.col)
	case "enter", "shift+enter", "ctrl+j", "kpenter":
		if e.single {
			return false
		}
		e.Insert("\n")
	default:
		if k.Text == "" || k.Mod&(tea.ModCtrl|tea.ModAlt|tea.ModMeta|tea.ModSuper) != 0 {
			return false
		}
		e.Insert(k.Text)
	}
	return true
}

// cut removes the text from r1,c1 to r2,c2 and leaves the cursor there.
func (e *editor) cut(r1, c1, r2, c2 int) {
	removed := len(e.lines[r2][:c2]) - c1
	if r1 != r2 {
		removed = len(e.lines[r1]) - c1 + 1 + c2
		for _, l := range e.lines[r1+1 : r2] {
			removed += len(l) + 1
		}
	}
	e.size -= removed
	joined := e.lines[r1][:c1] + e.lines[r2][c2:]
	e.lines = slices.Replace(e.lines, r1, r2+1, joined)
	e.row, e.col = r1, c1
}

func (e *editor) left() {
	if e.col > 0 {
		e.col = lastEdge(e.lines[e.row][:e.col])
		return
	}
	if e.row > 0 {
		e.row--
		e.col = len(e.lines[e.row])
	}
}

func (e *editor) right() {
	l := e.lines[e.row]
	if e.col < len(l) {
		e.col += firstEdge(l[e.col:])
		return
	}
	if e.row < len(e.lines)-1 {
		e.row++
		e.col = 0
	}
}

func (e *editor) wordLeft() {
	if e.col == 0 {
		e.left()
		return
	}
	l := strings.TrimRight(e.lines[e.row][:e.col], " ")
	e.col = strings.LastIndexByte(l, ' ') + 1
}

func (e *editor) wordRight() {
	l := e.lines[e.row]
	if e.col == len(l) {
		e.right()
		return
	}
	rest := strings.TrimLeft(l[e.col:], " ")
	e.col = len(l) - len(rest)
	if i := strings.IndexByte(rest, ' '); i >= 0 {
		e.col += i
	} else {
		e.col = len(l)
	}
}

// vertical moves by a line, keeping the column where it can.
func (e *editor) vertical(d int) {
	to := e.row + d
	if to < 0 || to >= len(e.lines) {
		return
	}
	want := ansi.StringWidth(safe.Line(e.lines[e.row][:e.col]))
	e.row, e.col = to, 0
	l := e.lines[to]
	for used := 0; e.col < len(l); {
		n := firstEdge(l[e.col:])
		used += ansi.StringWidth(safe.Line(l[e.col : e.col+n]))
		if used > want {
			break
		}
		e.col += n
	}
}

// firstEdge is the length of the first cluster of s, which is not empty.
func firstEdge(s string) int { return views.Cluster(s) }

// lastEdge is where the last cluster of s begins; s is not empty.
func lastEdge(s string) int {
	// A cluster is short: look at the end only, from an edge that is surely one.
	from := max(len(s)-256, 0)
	if from > 0 {
		if i := strings.LastIndexByte(s[:from], ' '); i >= 0 && from-i < 4096 {
			from = i
		} else {
			from = 0
		}
	}
	edge := from
	for i := from; i < len(s); {
		edge = i
		i += firstEdge(s[i:])
	}
	return edge
}

// Layout lays out the part of the text around the cursor as at most h rows of
// w cells, soft-wrapped.
func (e *editor) Layout(pen views.Pen, label, holder string, focus bool, w, h int) views.Input {
	w, h = max(w, 2), max(h, 1)
	rows, crow, ccol := wrapLine(pen, e.lines[e.row], e.col, w)
	for up := e.row - 1; up >= 0 && crow < h-1; up-- {
		above, _, _ := wrapLine(pen, e.lines[up], -1, w)
		rows = append(above, rows...)
		crow += len(above)
	}
	for down := e.row + 1; down < len(e.lines) && len(rows) < crow+h; down++ {
		below, _, _ := wrapLine(pen, e.lines[down], -1, w)
		rows = append(rows, below...)
	}
	// Show the end of what is above, and as much below as there is room for.
	from := max(min(crow-(h-1), len(rows)-h), 0)
	if crow < h && len(rows) > h {
		from = max(crow-(h-1), 0)
	}
	rows = rows[from:min(from+h, len(rows))]
	in := views.Input{Label: label, Holder: holder, Rows: rows, CursorRow: crow - from, CursorCol: ccol, Height: h}
	if !focus {
		in.CursorRow = -1
	}
	if len(e.lines) > h {
		in.Foot = fmt.Sprintf("line %d of %d", e.row+1, len(e.lines))
	}
	return in
}

// wrapLine soft-wraps one line into rows of w cells, made safe to draw, and
// finds the cursor's cell; at is its byte offset, -1 for none.
func wrapLine(pen views.Pen, l string, at, w int) (rows []string, crow, ccol int) {
	var b strings.Builder
	used := 0
	for i := 0; i < len(l); {
		n := firstEdge(l[i:])
		c := safe.Line(l[i : i+n])
		if l[i] == '\t' {
			c = "    "
		}
		cw := pen.Width(c)
		if used+cw > w && used > 0 {
			rows = append(rows, b.String())
			b.Reset()
			used = 0
		}
		if i == at {
			crow, ccol = len(rows), used
		}
		b.WriteString(c)
		used += cw
		i += n
	}
	if at >= len(l) {
		if used >= w { // the cursor goes to the next row
			rows = append(rows, b.String())
			b.Reset()
			used = 0
		}
		crow, ccol = len(rows), used
	}
	return append(rows, b.String()), crow, ccol
}
