package headless

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"pawl/views/safe"
)

// object writes v as one line of JSON. Text from outside stays exact: what a
// terminal could obey is written as \u escapes, which a parser reads back.
func object(w io.Writer, v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("write JSON: %w", err)
	}
	_, err := w.Write(escape(b.Bytes()))
	return err
}

// escape replaces the characters that encoding/json leaves as they are and a
// terminal may act upon. They occur in JSON inside strings only.
func escape(b []byte) []byte {
	if !bytes.ContainsFunc(b, steers) {
		return b
	}
	out := make([]byte, 0, len(b)+64)
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		if steers(r) {
			out = fmt.Appendf(out, `\u%04x`, r)
		} else {
			out = append(out, b[:n]...)
		}
		b = b[n:]
	}
	return out
}

// steers reports whether r moves the cursor, reorders text, or cannot be seen.
func steers(r rune) bool {
	switch {
	case r >= 0x7F && r <= 0x9F, // DEL and C1 controls
		r >= 0x200B && r <= 0x200F, r >= 0x2028 && r <= 0x202E, r >= 0x2060 && r <= 0x206F,
		r == 0x061C, r == 0xFEFF:
		return true
	}
	return false
}

// line is text from outside on one line, harmless and cut to at most max cells.
func line(s string, max int) string {
	s = safe.Line(safe.Head(s, 4*1024))
	if max > 0 {
		s = ansi.Truncate(s, max, "…")
	}
	return s
}

// block is text from outside on several lines, harmless, each indented.
func block(s, indent string) string {
	text, found := safe.Block(strings.TrimRight(s, "\n"))
	var b strings.Builder
	for l := range strings.SplitSeq(text, "\n") {
		b.WriteString(strings.TrimRight(indent+l, " "))
		b.WriteByte('\n')
	}
	if found.Any() {
		b.WriteString(indent + "(" + found.Warning() + ")\n")
	}
	return b.String()
}

// table aligns rows by display width. The last column is cut so that no row
// is wider than the terminal; elsewhere nothing is cut.
type table struct {
	head []string
	rows [][]string
}

func (t *table) add(cells ...string) {
	for i := range cells {
		cells[i] = line(cells[i], 0)
	}
	t.rows = append(t.rows, cells)
}

func (t *table) write(w io.Writer, width int) error {
	wide := make([]int, len(t.head))
	all := append([][]string{t.head}, t.rows...)
	for _, r := range all {
		for i, c := range r {
			wide[i] = max(wide[i], ansi.StringWidth(c))
		}
	}
	var b strings.Builder
	for _, r := range all {
		used := 0
		for i, c := range r {
			if i == len(r)-1 {
				if width > 0 {
					c = ansi.Truncate(c, max(width-used, 10), "…")
				}
				b.WriteString(c)
				break
			}
			pad := wide[i] - ansi.StringWidth(c) + 2
			b.WriteString(c + strings.Repeat(" ", pad))
			used += wide[i] + 2
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(w, trimLines(b.String()))
	return err
}

func trimLines(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

// age is how long ago t was, in the largest unit that fits.
func age(now, t time.Time) string {
	if t.IsZero() || t.UnixMicro() == 0 {
		return "-"
	}
	d := now.Sub(t)
	switch {
	case d < time.Second:
		return "now"
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}

// money is an amount in US dollars.
func money(usd float64) string {
	if usd != 0 && usd < 0.01 {
		return fmt.Sprintf("$%.4f", usd)
	}
	return fmt.Sprintf("$%.2f", usd)
}

// count is a number of things.
func count[N int | int64](n N, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// quote makes one word for a POSIX shell of s, so that printed commands can be copied.
func quote(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-:=@%+,", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
