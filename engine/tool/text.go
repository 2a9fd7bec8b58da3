package tool

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"pawl/engine/machine"
)

// bom is the byte order mark of UTF-8.
const bom = "\ufeff"

// textKind is what the bytes of a file turned out to be.
type textKind struct {
	crlf, lf, cr int  // line ends of each sort; cr counts lone carriage returns
	bom          bool // begins with a byte order mark
	open         bool // does not end with a line end
	invalid      int  // offset of the first byte that is no UTF-8, -1 if none
	nul          int  // offset of the first NUL, -1 if none
}

// inspect looks through a whole text once.
func inspect(b []byte) textKind {
	k := textKind{invalid: -1, nul: bytes.IndexByte(b, 0)}
	k.bom = bytes.HasPrefix(b, []byte(bom))
	if !utf8.Valid(b) {
		for i := 0; i < len(b); {
			r, n := utf8.DecodeRune(b[i:])
			if r == utf8.RuneError && n <= 1 {
				k.invalid = i
				break
			}
			i += n
		}
	}
	lf, cr := bytes.Count(b, []byte("\n")), bytes.Count(b, []byte("\r"))
	k.crlf = bytes.Count(b, []byte("\r\n"))
	k.lf, k.cr = lf-k.crlf, cr-k.crlf
	k.open = len(b) > 0 && b[len(b)-1] != '\n'
	return k
}

// text reports whether the bytes can be shown as text.
func (k textKind) text() bool { return k.nul < 0 && k.invalid < 0 }

// lineEnds describes the line ends where they are not plain line feeds.
func (k textKind) lineEnds() string {
	switch {
	case k.crlf > 0 && k.lf == 0 && k.cr == 0:
		return "CRLF line ends"
	case k.crlf > 0 || k.cr > 0:
		return fmt.Sprintf("mixed line ends (%d LF, %d CRLF, %d lone CR; each CR is shown as ␍)", k.lf, k.crlf, k.cr)
	}
	return ""
}

// notes lists what an editor of this text must know, for a header line.
func (k textKind) notes() []string {
	var out []string
	if s := k.lineEnds(); s != "" {
		out = append(out, s)
	}
	if k.bom {
		out = append(out, "begins with a byte order mark")
	}
	if k.open {
		out = append(out, "no line end at the end")
	}
	return out
}

// describeBytes says what bytes are that cannot be shown as text.
func describeBytes(name string, b []byte, k textKind) string {
	why := fmt.Sprintf("holds a NUL byte at offset %d", k.nul)
	if k.nul < 0 {
		why = fmt.Sprintf("is not UTF-8 from offset %d on", k.invalid)
	}
	return fmt.Sprintf("%s is binary: it %s. %s, sha256 %s.", name, why, count(len(b), "byte"), machine.DigestOf(b))
}

// lineSplit cuts a text into lines that keep their ends.
func lineSplit(s string) []string {
	if s == "" {
		return nil
	}
	lines := strings.SplitAfter(s, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// count words a number with its noun: "1 byte", "2 bytes", "3 entries".
func count[T ~int | ~int64](n T, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	if p, ok := strings.CutSuffix(noun, "y"); ok && !strings.HasSuffix(p, "a") {
		return strconv.FormatInt(int64(n), 10) + " " + p + "ies"
	}
	if strings.HasSuffix(noun, "ch") {
		noun += "e"
	}
	return strconv.FormatInt(int64(n), 10) + " " + noun + "s"
}

// quoteName shows a file name on one line: as it is when it is plain, else
// quoted, so that two names that look alike stay distinct and no control
// character goes through.
func quoteName(name string) string {
	if name == "" || !utf8.ValidString(name) || name != strings.TrimSpace(name) {
		return strconv.QuoteToASCII(name)
	}
	for _, r := range name {
		if r == '"' || r == '\\' || !unicode.IsPrint(r) {
			return strconv.Quote(name)
		}
	}
	return name
}

// clip shortens a text to n runes, at a character's border.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	i := 0
	for at := range s {
		if i == n {
			return s[:at] + "…"
		}
		i++
	}
	return s
}

// oneLine makes a summary of a text: its first line, clipped.
func oneLine(s string, n int) string {
	s = strings.TrimSpace(s)
	first, rest, _ := strings.Cut(s, "\n")
	first = clip(strings.TrimRight(first, "\r"), n)
	if strings.TrimSpace(rest) != "" && !strings.HasSuffix(first, "…") {
		first += " …"
	}
	return first
}

// slash turns a path of this system into one with slashes.
func slash(p string) string { return filepath.ToSlash(p) }

// upper makes a sentence of a phrase.
func upper(s string) string {
	r, n := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(r)) + s[n:]
}
