// Package safe makes text from outside harmless to draw: what a model, a tool,
// a file name or a commit message says may look like anything, but it never
// moves the cursor, recolours the screen, reorders a line or hides a part of
// itself.
//
// Four functions, by where the text goes:
//
//   - Line: one line of a card or a list, newlines shown as \n.
//   - Block: several lines of a card; what is shown equals what would run.
//   - Title: a label, where line breaks and tabs count as plain spaces.
//   - Output: what a command printed: codes dropped, a progress line shown in
//     its last state.
//
// Keys of well-known shapes are masked by all of them; what runs never is.
//
// None of them returns a byte below U+0020 but \n, none returns U+007F–U+009F,
// and none returns invalid UTF-8. Ordinary Arabic, Hebrew, Indic, CJK,
// combining marks and emoji pass unchanged. The package does no I/O; the command
// line uses it too.
package safe

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"pawl/views/safe/mask"
)

// Limits above which repeated space is named instead of drawn, since it serves
// to push the rest of a line or of a card out of sight.
const (
	maxSpaces = 40 // columns of horizontal space in a row
	maxBlank  = 8  // empty lines in a row
	maxMarks  = 8  // combining marks on one base
	tabStop   = 4  // columns
)

// Found counts what was made visible, so that a card can warn.
type Found struct {
	Controls int // C0, DEL, C1 and line separators
	Bidi     int // characters that reorder what follows
	Hidden   int // zero-width, tag and other invisible characters, piled-up marks
	Invalid  int // bytes that are not UTF-8
	Padding  int // runs of space long enough to hide something
	Masked   int // keys of well-known shapes, which are hidden
	// LookAlike: letters of other scripts in host names, posing as Latin ones.
	LookAlike int
}

// Any reports whether anything was made visible.
func (f Found) Any() bool { return f != Found{} }

// Add sums two counts.
func (f Found) Add(g Found) Found {
	return Found{
		f.Controls + g.Controls, f.Bidi + g.Bidi, f.Hidden + g.Hidden,
		f.Invalid + g.Invalid, f.Padding + g.Padding, f.Masked + g.Masked,
		f.LookAlike + g.LookAlike,
	}
}

// Warning says in one sentence what was found; empty if nothing was.
func (f Found) Warning() string {
	var parts []string
	add := func(n int, one, many string) {
		switch {
		case n == 1:
			parts = append(parts, "1 "+one)
		case n > 1:
			parts = append(parts, fmt.Sprintf("%d %s", n, many))
		}
	}
	add(f.Controls, "control code", "control codes")
	add(f.Bidi, "reordering character", "reordering characters")
	add(f.Hidden, "hidden character", "hidden characters")
	add(f.Invalid, "byte that is not text", "bytes that are not text")
	add(f.LookAlike, "letter of another script in the name of a host", "letters of other scripts in names of hosts")
	add(f.Masked, "masked key", "masked keys")
	add(f.Padding, "very long run of space", "very long runs of space")
	if len(parts) == 0 {
		return ""
	}
	if f.Masked == 0 {
		return "Contains " + listed(parts) + ", shown here as marked text."
	}
	return "Contains " + listed(parts) + ", shown here as marked text; what runs is not masked."
}

// listed joins parts as a sentence does.
func listed(parts []string) string {
	list := parts[0]
	if n := len(parts); n > 1 {
		list = strings.Join(parts[:n-1], ", ") + " and " + parts[n-1]
	}
	return list
}

// Span is a piece of sanitised text. Made is true where it stands for
// characters that could not be drawn as they are, so that a view can set it off:
// the four letters \x1b typed by someone and the one byte ESC differ in this.
type Span struct {
	Text string
	Made bool
}

// Line returns s on one line: every newline, tab and control becomes visible.
func Line(s string) string {
	s, _ = mask.Text(s)
	if plain(s) {
		return s
	}
	out, _ := join(scan(s, lineMode))
	return out
}

// Title returns s on one line, with line breaks and tabs as spaces.
func Title(s string) string {
	s, _ = mask.Text(s)
	if plain(s) {
		return s
	}
	out, _ := join(scan(s, titleMode))
	return strings.TrimSpace(out)
}

// Block returns s with its newlines kept and its tabs expanded to the next
// multiple of four columns; everything else invisible becomes visible.
func Block(s string) (string, Found) {
	return join(masked(s, blockMode))
}

// masked hides keys before anything else is looked at, and counts them.
func masked(s string, m mode) ([]Span, Found) {
	s, n := mask.Text(s)
	spans, found := scan(s, m)
	found.Masked = n
	return spans, found
}

// LineSpans is Line with the made-up parts marked.
func LineSpans(s string) ([]Span, Found) {
	s, n := mask.Text(s)
	if plain(s) {
		if s == "" {
			return nil, Found{}
		}
		return []Span{{Text: s}}, Found{Masked: n}
	}
	spans, found := scan(s, lineMode)
	found.Masked = n
	return spans, found
}

// BlockSpans is Block, one slice of spans per line, with the made-up parts marked.
func BlockSpans(s string) ([][]Span, Found) {
	spans, found := masked(s, blockMode)
	lines := [][]Span{nil}
	for _, sp := range spans {
		for i, part := range strings.Split(sp.Text, "\n") {
			if i > 0 {
				lines = append(lines, nil)
			}
			if part != "" {
				last := len(lines) - 1
				lines[last] = append(lines[last], Span{part, sp.Made})
			}
		}
	}
	return lines, found
}

// Head returns at most n bytes of s, cut between characters: rows are cut
// before they are measured, so that a line of ten megabytes costs what its
// visible part costs.
func Head(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// plain reports whether s is printable ASCII without a long run of spaces: by
// far the most common case, and one that needs no copy.
func plain(s string) bool {
	run := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c < 0x20 || c > 0x7e {
			return false
		}
		if c == ' ' {
			if run++; run > maxSpaces {
				return false
			}
		} else {
			run = 0
		}
	}
	return true
}

func join(spans []Span, found Found) (string, Found) {
	if len(spans) == 1 {
		return spans[0].Text, found
	}
	var b strings.Builder
	for _, s := range spans {
		b.WriteString(s.Text)
	}
	return b.String(), found
}
