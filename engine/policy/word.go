package policy

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// literal returns what a word stands for if no shell could make anything else
// of it: no expansion, no pattern, no brace list, no home directory. Quotes and
// backslashes are removed as the shell would.
func literal(w *syntax.Word) (string, bool) {
	if w == nil {
		return "", false
	}
	if len(w.Parts) == 1 {
		// The test command's name; a lone bracket is no pattern.
		if lit, ok := w.Parts[0].(*syntax.Lit); ok && lit.Value == "[" {
			return "[", true
		}
	}
	var b strings.Builder
	var brace, list bool // a brace list needs both, in any unquoted parts
	for _, part := range w.Parts {
		switch p := part.(type) {
		case *syntax.Lit:
			if !bare(&b, p.Value) {
				return "", false
			}
			brace = brace || strings.Contains(p.Value, "{")
			list = list || strings.Contains(p.Value, ",") || strings.Contains(p.Value, "..")
		case *syntax.SglQuoted:
			if p.Dollar { // $'…' is read differently by bash and by plain sh
				return "", false
			}
			b.WriteString(p.Value)
		case *syntax.DblQuoted:
			if p.Dollar {
				return "", false
			}
			for _, q := range p.Parts {
				lit, ok := q.(*syntax.Lit)
				if !ok {
					return "", false
				}
				quoted(&b, lit.Value)
			}
		default:
			return "", false
		}
	}
	return b.String(), !(brace && list)
}

// bare appends an unquoted literal without its backslashes. It reports false
// if a shell may expand it: patterns, a tilde where a shell may put a home
// directory (also after = and :, which bash treats so), or an unquoted
// character whose meaning differs between shells.
func bare(b *strings.Builder, s string) bool {
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '\\':
			if i+1 == len(s) {
				return false
			}
			i++
			if s[i] != '\n' {
				b.WriteByte(s[i])
			}
		case '*', '?', '[', '$', '`', '<', '>', '(', ')':
			return false
		case '~':
			if i == 0 || s[i-1] == '=' || s[i-1] == ':' {
				return false
			}
			b.WriteByte(c)
		default:
			b.WriteByte(c)
		}
	}
	return true
}

// quoted appends the inside of double quotes, where a backslash only escapes
// the few characters that would be special there.
func quoted(b *strings.Builder, s string) {
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			switch s[i+1] {
			case '$', '`', '"', '\\':
				i++
			case '\n':
				i++
				continue
			}
		}
		b.WriteByte(s[i])
	}
}

// Quote returns s as one shell word that every POSIX shell reads as exactly s.
func Quote(s string) string {
	if s != "" && strings.IndexFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("%+,-./:@_", r))
	}) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// Join quotes words into a line that parses to them.
func Join(words []string) string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = Quote(w)
	}
	return strings.Join(out, " ")
}
