package views

import (
	"fmt"
	"strings"

	"pawl/themes"
	"pawl/views/safe"
)

// Header is the top line.
type Header struct {
	Needs    int
	Running  int
	Runs     int
	Spend    float64 // US dollars
	Budget   float64 // 0: none
	Ledger   string  // its file name
	ReadOnly bool
	Loading  bool // nothing has been read yet
}

// Draw returns one row of w cells.
func (h Header) Draw(pen Pen, w int) string {
	bar := pen.Header
	right := safe.Line(h.Ledger)
	switch {
	case h.ReadOnly:
		right += " · view only "
	default:
		right += " ✓ "
	}
	if h.Budget > 0 {
		right = fmt.Sprintf("$%.2f of $%.2f · ", h.Spend, h.Budget) + right
	} else if h.Spend > 0 {
		right = fmt.Sprintf("$%.2f · ", h.Spend) + right
	}
	left := pen.row(w)
	left.put(bar, " pawl  ")
	switch {
	case h.Loading:
		left.put(bar, "reading the ledger…")
	case h.Needs > 0:
		left.put(pen.Alert, " ▲ "+NeedYou(h.Needs)+" ")
	default:
		left.put(bar, "nothing needs you")
	}
	if !h.Loading {
		left.put(bar, fmt.Sprintf(" · %d running · %s", h.Running, count(h.Runs, "run", "runs")))
	}
	rw := pen.Width(right)
	if left.left < rw+2 {
		right, rw = pen.Cut(safe.Line(h.Ledger), max(left.left-3, 0))+" ", 0
		rw = pen.Width(right)
		if left.left < 12 {
			return left.fill(bar)
		}
	}
	left.put(bar, pad(left.left-rw)).put(bar, right)
	return left.fill(bar)
}

// NeedYou says how many decisions wait.
func NeedYou(n int) string {
	if n == 1 {
		return "1 needs you"
	}
	return fmt.Sprintf("%d need you", n)
}

// Count is a number with its noun.
func Count(n int, one, many string) string { return count(n, one, many) }

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// KeyHint is a key and what it does here.
type KeyHint struct{ Key, Does string }

// HelpLine is the bottom line.
type HelpLine struct {
	Hints []KeyHint
	Right string // where one is; sanitised when drawn
}

// Draw returns one row of w cells. Hints that do not fit whole are left out.
func (h HelpLine) Draw(pen Pen, w int) string {
	right := ""
	if h.Right != "" && w >= 60 {
		right = pen.Cut(tight(h.Right, w), w/3) + " "
	}
	rw := pen.Width(right)
	r := pen.row(w - rw)
	r.gap(1)
	putHints(r, pen, h.Hints)
	return r.end() + pen.Dim.Paint(right)
}

func putHints(r *row, pen Pen, hints []KeyHint) {
	for i, k := range hints {
		need := pen.Width(k.Key) + 1 + pen.Width(k.Does)
		if i > 0 {
			need += 2
		}
		if need > r.left {
			return
		}
		if i > 0 {
			r.gap(2)
		}
		r.put(pen.Key, k.Key).gap(1).put(pen.Dim, k.Does)
	}
}

// hintRows lays hints out on as many rows as they need.
func hintRows(pen Pen, hints []KeyHint, w int) []string {
	var rows []string
	for len(hints) > 0 {
		n, used := 0, 1
		for _, k := range hints {
			used += pen.Width(k.Key) + 1 + pen.Width(k.Does)
			if n > 0 {
				used += 2
			}
			if used > w && n > 0 {
				break
			}
			n++
		}
		r := pen.row(w).gap(1)
		for i, k := range hints[:n] {
			if i > 0 {
				r.gap(2)
			}
			r.put(pen.Key, k.Key).gap(1).put(pen.Dim, k.Does)
		}
		rows = append(rows, r.end())
		hints = hints[n:]
	}
	return rows
}

// Notice fills a terminal that is too small for panels: what is most important
// still shows, how many decisions wait.
func Notice(pen Pen, w, h, needs, minW, minH int) []string {
	lines := []string{"nothing needs you"}
	style := pen.Text
	if needs > 0 {
		lines[0] = "▲ " + NeedYou(needs)
		style = pen.Warn
	}
	lines = append(lines, fmt.Sprintf("%d×%d is too small,", w, h), fmt.Sprintf("%d×%d shows more.", minW, minH), "q quits")
	rows := make([]string, 0, h)
	for i, l := range lines {
		if len(rows) == h {
			break
		}
		s := pen.Dim
		if i == 0 {
			s = style
		}
		rows = append(rows, pen.row(w).put(s, l).end())
	}
	return append(rows, blank(w, h-len(rows))...)
}

// Toast is a passing message, drawn over the lowest rows of a screen.
func Toast(pen Pen, text string, bad bool, w, most int) []string {
	s := pen.Toast
	if bad {
		s = pen.Error
	}
	lines := pen.wrap(titleSpans(text), w-2, w-2, true)
	if len(lines) > most {
		lines = lines[:most]
		last := lines[most-1]
		if n := len(last); n > 0 {
			last[n-1].Text = pen.Cut(last[n-1].Text+" …", w-2)
		}
	}
	rows := make([]string, len(lines))
	for i, l := range lines {
		rows[i] = pen.row(w).put(s, " ").spans(s, l).fill(s)
	}
	return rows
}

func titleSpans(s string) []safe.Span {
	return []safe.Span{{Text: safe.Title(s)}}
}

// Gauge is a bar of w cells, full at 1.
func Gauge(pen Pen, full float64, w int, s themes.Style) string {
	n := int(min(max(full, 0), 1)*float64(w) + 0.5)
	return s.Paint(strings.Repeat("█", n)) + pen.Dim.Paint(strings.Repeat("░", w-n))
}
