package views

import (
	"strings"

	"pawl/views/safe"
)

// piece is a grapheme cluster on its way into a line.
type piece struct {
	text string
	w    int
	made bool
}

// wrap breaks spans into lines of at most first, then rest cells. With words,
// it breaks at spaces where it can (which then are not drawn); without, every
// character is kept and lines are filled.
func (p Pen) wrap(spans []safe.Span, first, rest int, words bool) [][]safe.Span {
	first, rest = max(first, 1), max(rest, 1)
	var (
		out  [][]safe.Span
		line []piece
		used int
		room = first
	)
	flush := func(n, skip int) {
		out = append(out, weld(line[:n]))
		line = append(line[:0], line[n+skip:]...)
		used = 0
		for _, c := range line {
			used += c.w
		}
		room = rest
	}
	for _, sp := range spans {
		p.clusters(sp.Text, func(c string, w int) bool {
			for used+w > room && len(line) > 0 {
				if words && c == " " {
					flush(len(line), 0)
					return true
				}
				if i := lastSpace(line); words && i > 0 {
					flush(i, 1)
				} else {
					flush(len(line), 0)
				}
			}
			line = append(line, piece{c, w, sp.Made})
			used += w
			return true
		})
	}
	if len(line) > 0 || len(out) == 0 {
		out = append(out, weld(line))
	}
	return out
}

func lastSpace(line []piece) int {
	for i := len(line) - 1; i > 0; i-- {
		if line[i].text == " " {
			return i
		}
	}
	return 0
}

func weld(line []piece) []safe.Span {
	var out []safe.Span
	var b strings.Builder
	for i, c := range line {
		if i > 0 && c.made != line[i-1].made {
			out = append(out, safe.Span{Text: b.String(), Made: line[i-1].made})
			b.Reset()
		}
		b.WriteString(c.text)
	}
	if len(line) > 0 {
		out = append(out, safe.Span{Text: b.String(), Made: line[len(line)-1].made})
	}
	return out
}
