package views

import (
	"fmt"
	"strconv"
	"strings"

	"pawl/themes"
	"pawl/views/safe"
)

// DiffFile is one file of a unified diff, not yet sanitised.
type DiffFile struct {
	Name           string
	Note           string // "new", "deleted", "renamed from x", "binary"
	Added, Removed int
	First          int // line of the first change in the new file, from 1; 0: none
	Lines          []DiffLine
	Cut            int // lines left out because there are too many
}

// DiffLine is a line of it.
type DiffLine struct {
	Kind     byte // ' ', '+', '-', '@' for a hunk's heading, '\\' for a remark
	Old, New int  // its number in either file, 0: it is not in that one
	Text     string
}

const diffMost = 20000 // lines of one file that are kept

// ParseDiff takes a unified diff, as git prints it, apart. What it cannot make
// out is kept as a remark, so that nothing is hidden.
func ParseDiff(diff string) []DiffFile {
	var (
		out      []DiffFile
		f        *DiffFile
		old, new int
		left     [2]int // lines of the hunk still to come, old and new
	)
	start := func(name string) {
		out = append(out, DiffFile{Name: name})
		f = &out[len(out)-1]
		left = [2]int{}
	}
	add := func(l DiffLine) {
		if len(f.Lines) < diffMost {
			f.Lines = append(f.Lines, l)
		} else {
			f.Cut++
		}
	}
	for line := range strings.Lines(diff) {
		line = strings.TrimRight(line, "\r\n")
		inHunk := left[0] > 0 || left[1] > 0
		if f == nil || !inHunk {
			switch {
			case strings.HasPrefix(line, "diff --git "):
				_, name, _ := strings.Cut(line, " b/")
				start(name)
				continue
			case f == nil:
				start("changes")
			case strings.HasPrefix(line, "--- "):
				continue
			case strings.HasPrefix(line, "+++ "):
				if name, ok := strings.CutPrefix(line, "+++ b/"); ok {
					f.Name = name
				}
				continue
			}
			switch {
			case strings.HasPrefix(line, "@@"):
				old, new = 0, 0
				left = [2]int{1, 1}
				parts := strings.Fields(line)
				for _, p := range parts[1:min(3, len(parts))] {
					at, n, ok := strings.Cut(p[1:], ",")
					a, _ := strconv.Atoi(at) // a heading that is none says line 0
					count := 1
					if ok {
						count, _ = strconv.Atoi(n)
					}
					if p[0] == '-' {
						old, left[0] = a, count
					} else if p[0] == '+' {
						new, left[1] = a, count
					}
				}
				add(DiffLine{Kind: '@', Text: line, New: new})
			case strings.HasPrefix(line, "new file"):
				f.Note = "new"
			case strings.HasPrefix(line, "deleted file"):
				f.Note = "deleted"
			case strings.HasPrefix(line, "rename from "):
				f.Note = "renamed from " + line[len("rename from "):]
			case strings.HasPrefix(line, "Binary files "), strings.HasPrefix(line, "GIT binary"):
				f.Note = "binary"
			case strings.HasPrefix(line, "index "), strings.HasPrefix(line, "similarity "), strings.HasPrefix(line, "rename to "), line == "":
			default:
				add(DiffLine{Kind: '\\', Text: line})
			}
			continue
		}
		kind, text := byte(' '), ""
		if line != "" {
			kind, text = line[0], line[1:]
		}
		l := DiffLine{Kind: kind, Text: text}
		switch kind {
		case '+':
			l.New = new
			if f.Added++; f.First == 0 {
				f.First = new
			}
			new++
			left[1]--
		case '-':
			l.Old = old
			if f.Removed++; f.First == 0 {
				f.First = max(new, 1)
			}
			old++
			left[0]--
		case '\\':
		default:
			l.Kind, l.Old, l.New = ' ', old, new
			old, new = old+1, new+1
			left[0]--
			left[1]--
		}
		add(l)
	}
	return out
}

// Counts is how much of a file changed, in a few cells.
func (f DiffFile) Counts() string { return fmt.Sprintf("+%d −%d", f.Added, f.Removed) }

// Rows lays a file's changes out for w cells: the old file's lines beside the
// new one's, or one below the other. Within a line that was changed, the part
// that differs is set off. Lines are cut at the edge: a diff is read by columns.
func (f DiffFile) Rows(pen Pen, w int, beside bool) []string {
	var rows []string
	add, del := pen.Good.Invert(), pen.Bad.Invert()
	lw := 4
	for i := 0; i < len(f.Lines); {
		l := f.Lines[i]
		switch l.Kind {
		case '@', '\\':
			s := pen.Accent
			if l.Kind == '\\' {
				s = pen.Dim
			}
			rows = append(rows, pen.row(w).gap(1).put(s, tight(l.Text, w)).end())
			i++
			continue
		case ' ':
			if beside {
				half := (w - 1) / 2
				r := pen.row(w)
				pen.diffCell(r, half, l.Old, lw, ' ', pen.Dim, []diffPiece{{l.Text, false}}, pen.Dim)
				r.put(pen.Border, "│")
				pen.diffCell(r, w-half-1, l.New, lw, ' ', pen.Dim, []diffPiece{{l.Text, false}}, pen.Dim)
				rows = append(rows, r.end())
			} else {
				r := pen.row(w)
				pen.diffCell(r, w, l.New, lw, ' ', pen.Dim, []diffPiece{{l.Text, false}}, pen.Dim)
				rows = append(rows, r.end())
			}
			i++
			continue
		}
		// A block of removed lines and the added ones after it.
		from := i
		for i < len(f.Lines) && f.Lines[i].Kind == '-' {
			i++
		}
		minus := f.Lines[from:i]
		from = i
		for i < len(f.Lines) && f.Lines[i].Kind == '+' {
			i++
		}
		plus := f.Lines[from:i]
		a, b := make([][]diffPiece, len(minus)), make([][]diffPiece, len(plus))
		for k := range max(len(minus), len(plus)) {
			switch {
			case k < len(minus) && k < len(plus):
				a[k], b[k] = differ(minus[k].Text, plus[k].Text)
			case k < len(minus):
				a[k] = []diffPiece{{minus[k].Text, false}}
			default:
				b[k] = []diffPiece{{plus[k].Text, false}}
			}
		}
		if beside {
			half := (w - 1) / 2
			for k := range max(len(minus), len(plus)) {
				r := pen.row(w)
				if k < len(minus) {
					pen.diffCell(r, half, minus[k].Old, lw, '-', pen.Bad, a[k], del)
				} else {
					r.gap(half)
				}
				r.put(pen.Border, "│")
				if k < len(plus) {
					pen.diffCell(r, w-half-1, plus[k].New, lw, '+', pen.Good, b[k], add)
				}
				rows = append(rows, r.end())
			}
			continue
		}
		for k := range minus {
			r := pen.row(w)
			pen.diffCell(r, w, minus[k].Old, lw, '-', pen.Bad, a[k], del)
			rows = append(rows, r.end())
		}
		for k := range plus {
			r := pen.row(w)
			pen.diffCell(r, w, plus[k].New, lw, '+', pen.Good, b[k], add)
			rows = append(rows, r.end())
		}
	}
	if f.Cut > 0 {
		rows = append(rows, pen.row(w).gap(1).put(pen.Warn, fmt.Sprintf("… %d more lines: pawl diff gives all of them", f.Cut)).end())
	}
	return rows
}

// diffCell draws one line into exactly w cells of r.
func (p Pen) diffCell(r *row, w, n, lw int, sign byte, s themes.Style, text []diffPiece, changed themes.Style) {
	inner := p.row(w)
	num := ""
	if n > 0 {
		num = strconv.Itoa(n)
	}
	inner.put(p.Dim, rightText(p, num, lw)+" ").put(s, string(sign)+" ")
	for _, t := range text {
		lines, _ := safe.BlockSpans(safe.Head(t.text, 32*max(w, 8)))
		st := s
		if t.changed {
			st = changed
		}
		inner.spans(st, lines[0])
	}
	r.b.WriteString(inner.end())
	r.left -= w
}

// diffPiece is a part of a changed line.
type diffPiece struct {
	text    string
	changed bool
}

// differ sets off what differs between two lines: what stands between the
// words that they begin and end with alike. Lines that have little in common
// are left whole, since marking everything marks nothing.
func differ(a, b string) (x, y []diffPiece) {
	wa, wb := words(a), words(b)
	head := 0
	for head < min(len(wa), len(wb)) && wa[head] == wb[head] {
		head++
	}
	tail := 0
	for tail < min(len(wa), len(wb))-head && wa[len(wa)-1-tail] == wb[len(wb)-1-tail] {
		tail++
	}
	same := 0
	for _, w := range wa[:head] {
		same += len(strings.TrimSpace(w))
	}
	for _, w := range wa[len(wa)-tail:] {
		same += len(strings.TrimSpace(w))
	}
	if 3*same < min(len(strings.TrimSpace(a)), len(strings.TrimSpace(b))) {
		return []diffPiece{{a, false}}, []diffPiece{{b, false}}
	}
	cut := func(w []string) []diffPiece {
		return []diffPiece{
			{strings.Join(w[:head], ""), false}, {strings.Join(w[head:len(w)-tail], ""), true}, {strings.Join(w[len(w)-tail:], ""), false},
		}
	}
	return cut(wa), cut(wb)
}

// words cuts a line into runs of letters and digits, and what stands between them.
func words(s string) []string {
	var out []string
	start, was := 0, -1
	for i, r := range s {
		kind := 0
		switch {
		case r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= 0x80:
			kind = 1
		case r == ' ' || r == '\t':
			kind = 2
		}
		if was >= 0 && (kind != was || kind == 0) {
			out = append(out, s[start:i])
			start = i
		}
		was = kind
	}
	if start < len(s) {
		out = append(out, s[start:])
	}
	return out
}
