package source

import (
	"fmt"
	"regexp"
	"strings"
)

// lines tells where keys and tables stand. The decoder checks the grammar; this
// only has to find what is there, and a line that it misses costs a line number.
type lines struct {
	exact map[string]int // with the numbers of array entries: "tool[1].command"
	loose map[string]int // without: "tool.command"; the first one counts
}

var (
	headLine = regexp.MustCompile(`^\s*(\[\[?)\s*([^\]]+?)\s*\]`)
	keyLine  = regexp.MustCompile(`^\s*((?:"[^"]*"|'[^']*'|[A-Za-z0-9_-]+)(?:\s*\.\s*(?:"[^"]*"|'[^']*'|[A-Za-z0-9_-]+))*)\s*=`)
)

// scan reads the headers and keys of a file.
func scan(text string) lines {
	l := lines{exact: map[string]int{}, loose: map[string]int{}}
	counts := map[string]int{}
	table, plain := "", ""
	n, quote := 0, ""
	for s := range strings.Lines(text) {
		n++
		if quote != "" { // inside a string of several lines
			if strings.Contains(s, quote) {
				quote = ""
			}
			continue
		}
		if m := headLine.FindStringSubmatch(s); m != nil {
			table, plain = enter(m[2], m[1] == "[[", counts)
			l.put(table, plain, n)
			continue
		}
		if m := keyLine.FindStringSubmatch(s); m != nil {
			key := strings.Join(parts(m[1]), ".")
			l.put(dot(table, key), dot(plain, key), n)
		}
		for _, q := range []string{`"""`, `'''`} {
			if strings.Count(s, q)%2 == 1 {
				quote = q
			}
		}
	}
	return l
}

func (l *lines) put(exact, loose string, n int) {
	if _, ok := l.exact[exact]; !ok {
		l.exact[exact] = n
	}
	if _, ok := l.loose[loose]; !ok {
		l.loose[loose] = n
	}
}

// enter names a table with the number of each array entry that it lies in.
func enter(header string, array bool, counts map[string]int) (exact, plain string) {
	all := parts(header)
	for i, p := range all {
		exact, plain = dot(exact, p), dot(plain, p)
		if i == len(all)-1 && array {
			counts[exact]++
		}
		if c := counts[exact]; c > 0 {
			exact = fmt.Sprintf("%s[%d]", exact, c-1)
		}
	}
	return exact, plain
}

// parts splits a dotted key.
func parts(key string) []string {
	var out []string
	for key != "" {
		key = strings.TrimLeft(key, " \t.")
		if key == "" {
			break
		}
		end := strings.IndexByte(key, '.')
		if q := key[0]; q == '"' || q == '\'' {
			if close := strings.IndexByte(key[1:], q); close >= 0 {
				out, key = append(out, key[1:close+1]), key[close+2:]
				continue
			}
		}
		if end < 0 {
			end = len(key)
		}
		out, key = append(out, strings.TrimSpace(key[:end])), key[end:]
	}
	return out
}

func dot(a, b string) string {
	if a == "" {
		return b
	}
	return a + "." + b
}

// join writes a path the way scan does.
func join(path []any) string {
	out := ""
	for _, p := range path {
		switch p := p.(type) {
		case int:
			out += fmt.Sprintf("[%d]", p)
		case string:
			out = dot(out, p)
		}
	}
	return out
}
