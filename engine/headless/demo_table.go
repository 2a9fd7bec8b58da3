package headless

import (
	"io"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// column is one column of a table whose cells hold sentences: they wrap.
type column struct {
	head  string
	wide  int // its share of the width, in cells at the default width
	cells []string
}

type columns []column

// add appends one row; text from outside is made harmless here.
func (c columns) add(cells ...string) {
	for i := range cells {
		c[i].cells = append(c[i].cells, line(cells[i], 0))
	}
}

// write lays the columns out side by side in width cells, a blank line before
// each row, because rows are several lines high.
func (c columns) write(w io.Writer, width int) {
	const gap = 2
	total, room := 0, width-gap*(len(c)-1)
	for _, col := range c {
		total += col.wide
	}
	wide := make([]int, len(c))
	for i, col := range c {
		wide[i] = max(col.wide*room/total, 6)
	}
	c.row(w, wide, func(col column) string { return col.head })
	for n := range c[0].cells {
		_, _ = io.WriteString(w, "\n")
		c.row(w, wide, func(col column) string { return col.cells[n] })
	}
}

func (c columns) row(w io.Writer, wide []int, cell func(column) string) {
	lines := make([][]string, len(c))
	high := 0
	for i, col := range c {
		lines[i] = wrap(cell(col), wide[i])
		high = max(high, len(lines[i]))
	}
	for n := range high {
		var b strings.Builder
		for i := range c {
			text := ""
			if n < len(lines[i]) {
				text = lines[i][n]
			}
			b.WriteString(text + strings.Repeat(" ", max(wide[i]-ansi.StringWidth(text), 0)+2))
		}
		_, _ = io.WriteString(w, strings.TrimRight(b.String(), " ")+"\n")
	}
}
