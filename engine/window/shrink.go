package window

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// OutputLimit is the size in bytes up to which an output is shown whole.
const OutputLimit = 16 << 10

// Shrink keeps the head and the tail of a text that is longer than limit bytes
// and states what is left out and how to read it. The result is never longer
// than the source, never cut inside a character, and not longer than limit
// where the statement itself fits into it. handle may be empty. The second
// result is the number of bytes left out.
//
// The tail gets the greater part: errors stand at the end.
func Shrink(s string, limit int, handle string) (string, int) {
	if len(s) <= limit {
		return s, 0
	}
	statement := func(bytes, lines int) string {
		how := ""
		if handle != "" {
			how = fmt.Sprintf("; read_evidence with handle %s shows them", handle)
		}
		return fmt.Sprintf("\n[… %d bytes (%d lines) left out here%s …]\n", bytes, lines, how)
	}
	room := max(limit, 0) - len(statement(len(s), strings.Count(s, "\n")))
	head, tail := "", ""
	if room > 0 {
		head = cutHead(s, room*2/5)
		tail = cutTail(s[len(head):], room-room*2/5)
	}
	gone := s[len(head) : len(s)-len(tail)]
	out := head + statement(len(gone), strings.Count(gone, "\n")) + tail
	if len(out) >= len(s) {
		return s, 0 // nothing would be saved
	}
	return out, len(gone)
}

// cutHead returns at most n bytes of the start of s, ending with a line if one
// ends in the last quarter.
func cutHead(s string, n int) string {
	if n >= len(s) {
		return s
	}
	n = boundary(s, n)
	if i := strings.LastIndexByte(s[:n], '\n'); i >= n-n/4 {
		n = i + 1
	}
	return s[:n]
}

// cutTail returns at most n bytes of the end of s, starting with a line if one
// starts in the first quarter.
func cutTail(s string, n int) string {
	if n >= len(s) {
		return s
	}
	from := len(s) - n
	for from < len(s) && boundary(s, from) != from {
		from++
	}
	if i := strings.IndexByte(s[from:], '\n'); i >= 0 && i <= n/4 {
		from += i + 1
	}
	return s[from:]
}

// boundary returns the greatest i ≤ n at which s may be cut: between
// characters, where a character holds its combining marks, joiners, variation
// selectors and skin tones, or its second half of a flag. A run of such marks
// longer than 64 bytes is cut between code points.
func boundary(s string, n int) int {
	at := n
	for at > 0 && at < len(s) && !utf8.RuneStart(s[at]) {
		at--
	}
	for i := at; i < len(s) && at-i < 64; {
		if i == 0 {
			return 0
		}
		r, _ := utf8.DecodeRuneInString(s[i:])
		prev, size := utf8.DecodeLastRuneInString(s[:i])
		if !extends(r) && prev != zwj && !splitsFlag(s, i, r, prev) && !(prev == '\r' && r == '\n') {
			return i
		}
		i -= size
	}
	return at
}

const zwj = '\u200d'

func extends(r rune) bool {
	return r == zwj || unicode.In(r, unicode.Mn, unicode.Me, unicode.Mc) ||
		(r >= 0x1f3fb && r <= 0x1f3ff) || (r >= 0xfe00 && r <= 0xfe0f) || (r >= 0xe0020 && r <= 0xe007f)
}

func isFlag(r rune) bool { return r >= 0x1f1e6 && r <= 0x1f1ff }

// splitsFlag reports whether a cut before r, at i, falls between the two
// letters of a flag: an odd number of flag letters stands before it.
func splitsFlag(s string, i int, r, prev rune) bool {
	if !isFlag(r) || !isFlag(prev) {
		return false
	}
	n := 0
	for n < 32 {
		p, size := utf8.DecodeLastRuneInString(s[:i])
		if !isFlag(p) {
			break
		}
		n++
		i -= size
	}
	return n%2 == 1
}

// Legible turns raw output into text that every provider accepts. Whatever
// holds a NUL byte, or is not UTF-8 for more than one byte in sixteen, is no
// text: ok is false. Other stray bytes become question marks, which are
// counted, and never make the text longer.
func Legible(b []byte) (text string, stray int, ok bool) {
	if utf8.Valid(b) {
		s := string(b)
		return s, 0, !strings.ContainsRune(s, 0)
	}
	var out strings.Builder
	out.Grow(len(b))
	for i := 0; i < len(b); {
		r, size := utf8.DecodeRune(b[i:])
		switch {
		case r == 0:
			return "", 0, false
		case r == utf8.RuneError && size == 1:
			stray++
			out.WriteByte('?')
		default:
			out.Write(b[i : i+size])
		}
		i += size
	}
	return out.String(), stray, stray*16 <= len(b)
}

// clean makes a short text of ours or of the operator safe for any request.
func clean(s string) string {
	if utf8.ValidString(s) && !strings.ContainsRune(s, 0) {
		return s
	}
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\ufffd"), "\x00", "\ufffd")
}
