package wire

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// say makes a foreign text fit for a message: one line, bounded, without
// control characters and without the key.
func (a *Attempt) say(s string) string {
	if k := a.p.Key; len(k) >= 8 {
		s = strings.ReplaceAll(s, k, "(key)")
	}
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.In(r, unicode.Cf) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
	s = strings.Join(strings.Fields(s), " ")
	const most = 400
	if len(s) > most {
		n := most
		for !utf8.RuneStart(s[n]) {
			n--
		}
		s = s[:n] + "…"
	}
	return s
}
