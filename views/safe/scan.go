package safe

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

type mode int

const (
	lineMode mode = iota
	titleMode
	blockMode
)

// scanner walks over a text once and cuts it into spans.
type scanner struct {
	mode  mode
	spans []Span
	buf   strings.Builder // of the span under way
	made  bool            // what the span under way is
	found Found

	col    int // columns since the last newline, for tabs
	spaces int // spaces not yet written
	blank  int // newlines not yet written
	marks  int // combining marks on the current base
	extra  int // marks left out
	prev   rune
}

func scan(s string, m mode) ([]Span, Found) {
	z := &scanner{mode: m}
	z.buf.Grow(len(s) + 16)
	odd := lookAlikes(s)
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			z.found.Invalid++
			z.mark(fmt.Sprintf(`\x%02x`, s[i]))
		case odd[i]:
			z.found.LookAlike++
			z.mark(fmt.Sprintf(`\u%04x`, r))
		case r == '\n' && m == blockMode:
			z.newline()
		case (r == '\n' || r == '\r' || r == '\t') && m == titleMode:
			z.space(1)
		case r == '\t' && m == blockMode:
			z.space(tabStop - (z.col+z.spaces)%tabStop)
		case r == ' ':
			z.space(1)
		case unicode.In(r, unicode.Mn, unicode.Me) && !invisible(r):
			z.combine(s[i : i+n])
		case !invisible(r) || z.joins(r, s[i+n:]):
			z.put(s[i:i+n], r)
		case r == blackFlag:
			z.put(s[i:i+n], r)
		default:
			z.escape(r)
		}
		if r == blackFlag {
			if t := flagTags(s[i+n:]); t > 0 {
				z.put(s[i+n:i+n+t], 0)
				n += t
			}
		}
		z.prev = r
		i += n
	}
	z.flushMarks()
	z.flushSpace()
	z.cut()
	return z.spans, z.found
}

// put writes characters that are drawn as they are.
func (z *scanner) put(s string, r rune) {
	z.flushMarks()
	z.flushSpace()
	z.write(s, false)
	if r < 0x7f {
		z.col++
	} else {
		z.col += ansi.StringWidth(s)
	}
	z.marks = 0
}

// combine writes a mark on the character before it, up to a bound.
func (z *scanner) combine(s string) {
	if z.spaces > 0 || z.blank > 0 {
		z.flushSpace()
		z.marks = 0
	}
	if z.marks++; z.marks > maxMarks {
		z.extra++
		return
	}
	z.write(s, false)
}

func (z *scanner) flushMarks() {
	if z.extra > 0 {
		n := z.extra
		z.extra = 0
		z.found.Hidden += n
		z.mark(fmt.Sprintf("[+%d marks]", n))
	}
}

func (z *scanner) space(n int) {
	z.flushMarks()
	z.flushBlank()
	z.spaces += n
	z.marks = 0
}

func (z *scanner) newline() {
	z.flushMarks()
	z.flushRun()
	z.blank++
	z.col, z.marks = 0, 0
}

func (z *scanner) flushSpace() {
	z.flushBlank()
	z.flushRun()
}

func (z *scanner) flushRun() {
	n := z.spaces
	if n == 0 {
		return
	}
	z.spaces = 0
	if n > maxSpaces {
		z.found.Padding++
		z.mark(fmt.Sprintf("[%d spaces]", n))
		return
	}
	z.write(strings.Repeat(" ", n), false)
	z.col += n
}

func (z *scanner) flushBlank() {
	n := z.blank
	if n == 0 {
		return
	}
	z.blank = 0
	if n > maxBlank+1 {
		z.found.Padding++
		z.write("\n", false)
		z.mark(fmt.Sprintf("[%d empty lines]", n-1))
		z.write("\n", false)
		z.col = 0
		return
	}
	z.write(strings.Repeat("\n", n), false)
}

// escape writes an invisible character as text.
func (z *scanner) escape(r rune) {
	switch {
	case unicode.Is(unicode.Bidi_Control, r):
		z.found.Bidi++
	case unicode.IsControl(r) || r == 0x2028 || r == 0x2029:
		z.found.Controls++
	default:
		z.found.Hidden++
	}
	switch {
	case r == '\n':
		z.mark(`\n`)
	case r == '\r':
		z.mark(`\r`)
	case r == '\t':
		z.mark(`\t`)
	case r < 0x80:
		z.mark(fmt.Sprintf(`\x%02x`, r))
	case r <= 0xffff:
		z.mark(fmt.Sprintf(`\u%04x`, r))
	default:
		z.mark(fmt.Sprintf(`\U%08x`, r))
	}
}

// mark writes a text that stands for something else.
func (z *scanner) mark(s string) {
	z.flushMarks()
	z.flushSpace()
	z.write(s, true)
	z.col += len(s)
	z.marks = 0
}

func (z *scanner) write(s string, made bool) {
	if made != z.made {
		z.cut()
		z.made = made
	}
	z.buf.WriteString(s)
}

func (z *scanner) cut() {
	if z.buf.Len() > 0 {
		z.spans = append(z.spans, Span{z.buf.String(), z.made})
		z.buf.Reset()
	}
}
