// Package views draws panels from plain values. A view does no I/O, holds no
// state, knows no engine and no key: it is given a rectangle and returns
// exactly that many rows, each exactly that wide. Text from outside goes
// through views/safe on its way in; colour comes from the styles it is handed.
package views

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"pawl/themes"
	"pawl/views/safe"
)

// Pen is what a view draws with: the styles, and how this terminal measures text.
type Pen struct {
	*themes.Styles
	// Method is how many cells a character takes: by grapheme cluster where the
	// terminal says that it does so too, else by code point. Both sides must
	// agree, or columns do not line up.
	Method ansi.Method
}

// Width is the number of cells that s takes. s holds no control sequences.
func (p Pen) Width(s string) int {
	if ascii(s) {
		return len(s)
	}
	return p.Method.StringWidth(s)
}

// Cut returns s, shortened with an ellipsis to at most w cells, never within a
// cluster.
func (p Pen) Cut(s string, w int) string {
	if w <= 0 {
		return ""
	}
	if ascii(s) {
		if len(s) <= w {
			return s
		}
		return s[:w-1] + "…"
	}
	// The cut that comes with ansi does not measure by code point as that
	// package's own widths do, nor as the renderer does.
	used, keep := 0, 0 // cells, and bytes that leave room for the ellipsis
	whole := true
	at := 0
	p.clusters(s, func(c string, cw int) bool {
		if used += cw; used > w {
			whole = false
			return false
		}
		at += len(c)
		if used <= w-1 {
			keep = at
		}
		return true
	})
	if whole {
		return s
	}
	return s[:keep] + "…"
}

// clusters calls f with each grapheme cluster of s and its width, until f returns false.
func (p Pen) clusters(s string, f func(c string, w int) bool) {
	if ascii(s) {
		for i := range len(s) {
			if !f(s[i:i+1], 1) {
				return
			}
		}
		return
	}
	for s != "" {
		n, w := p.cluster(s)
		if !f(s[:n], w) {
			return
		}
		s = s[n:]
	}
}

// cluster returns the length in bytes and the width of the first grapheme
// cluster of s, which is not empty.
func (p Pen) cluster(s string) (n, w int) {
	_, w, n, _ = p.Method.DecodeSequenceInString(s, 0, nil)
	if n <= 1 {
		n = 1
		for n < len(s) && s[n] >= 0x80 { // marks on an ASCII letter
			r, size := utf8.DecodeRuneInString(s[n:])
			if !unicode.In(r, unicode.Mn, unicode.Me) {
				break
			}
			n += size
		}
	}
	return n, w
}

// Cluster is the length in bytes of the first grapheme cluster of s, which is
// not empty: what one key deletes, and what is never cut.
func Cluster(s string) int {
	n, _ := Pen{Method: ansi.GraphemeWidth}.cluster(s)
	return n
}

func ascii(s string) bool {
	for i := range len(s) {
		if s[i] < 0x20 || s[i] > 0x7e {
			return false
		}
	}
	return true
}

const spaces = "                                                                                                    "

func pad(n int) string {
	switch {
	case n <= 0:
		return ""
	case n <= len(spaces):
		return spaces[:n]
	}
	return strings.Repeat(" ", n)
}

// row builds one line of exactly w cells from styled pieces.
type row struct {
	pen  Pen
	b    strings.Builder
	left int // cells not yet used
}

func (p Pen) row(w int) *row {
	r := &row{pen: p, left: w}
	r.b.Grow(w + 64)
	return r
}

// put appends text in a style; what does not fit is cut with an ellipsis.
func (r *row) put(s themes.Style, text string) *row {
	if r.left <= 0 || text == "" {
		return r
	}
	w := r.pen.Width(text)
	if w > r.left {
		text = r.pen.Cut(text, r.left)
		w = r.pen.Width(text)
	}
	r.left -= w
	r.b.WriteString(s.Paint(text))
	return r
}

// spans appends sanitised spans, the made-up parts set off.
func (r *row) spans(s themes.Style, spans []safe.Span) *row {
	for _, sp := range spans {
		if sp.Made {
			r.put(r.pen.Mark, sp.Text)
		} else {
			r.put(s, sp.Text)
		}
	}
	return r
}

// column appends text cut or padded to exactly w cells.
func (r *row) column(s themes.Style, text string, w int) *row {
	w = min(w, r.left)
	if w <= 0 {
		return r
	}
	text = r.pen.Cut(text, w)
	return r.put(s, text+pad(w-r.pen.Width(text)))
}

// gap appends n spaces.
func (r *row) gap(n int) *row {
	n = min(n, r.left)
	if n > 0 {
		r.b.WriteString(pad(n))
		r.left -= n
	}
	return r
}

// end pads the row and returns it.
func (r *row) end() string { return r.fill(themes.Style{}) }

// fill pads the row in a style and returns it.
func (r *row) fill(s themes.Style) string {
	if r.left > 0 {
		r.b.WriteString(s.Paint(pad(r.left)))
		r.left = 0
	}
	return r.b.String()
}

// tight sanitises what goes on one row of at most w cells: it is cut by bytes
// first, since a cell holds at most a few dozen of them.
func tight(s string, w int) string {
	return safe.Title(safe.Head(s, 32*max(w, 8)))
}
