// Package glob matches paths against patterns as .gitignore files and people
// write them. It is pure: it reads no file.
//
// Paths are relative, with slashes, without a leading one. A name is a string
// of bytes; what is no UTF-8 matches only itself and "*".
package glob

import (
	"fmt"
	"path"
	"strings"
)

// maxAlternatives bounds what the braces of one pattern may expand to.
const maxAlternatives = 64

// Pattern is a compiled file pattern such as "*.go", "cmd/**/*.ts" or
// "*.{js,ts}".
type Pattern struct{ alts []segments }

// segments is one pattern, cut at its slashes; "**" is any number of levels.
type segments []string

// Compile reads a pattern. Without a slash it speaks of the base name at any
// depth, else of the whole path.
func Compile(pattern string) (Pattern, error) {
	if pattern == "" {
		return Pattern{}, fmt.Errorf("the pattern is empty")
	}
	words, err := expand(pattern)
	if err != nil {
		return Pattern{}, err
	}
	var p Pattern
	for _, w := range words {
		segs, err := split(strings.TrimPrefix(w, "./"))
		if err != nil {
			return Pattern{}, err
		}
		p.alts = append(p.alts, segs)
	}
	return p, nil
}

// Match reports whether the pattern fits a path.
func (p Pattern) Match(rel string) bool {
	parts := strings.Split(rel, "/")
	for _, a := range p.alts {
		if a.match(parts) {
			return true
		}
	}
	return false
}

// split cuts a pattern into segments and proves that each of them is well formed.
func split(pattern string) (segments, error) {
	anchored := strings.Contains(strings.TrimSuffix(pattern, "/"), "/")
	segs := segments(strings.Split(strings.Trim(pattern, "/"), "/"))
	for i, s := range segs {
		s = strings.ReplaceAll(s, "[!", "[^")
		if s != "**" && strings.Contains(s, "**") {
			for strings.Contains(s, "**") { // inside a name it is one star
				s = strings.ReplaceAll(s, "**", "*")
			}
		}
		if _, err := path.Match(s, ""); err != nil {
			return nil, fmt.Errorf("the pattern %q is malformed near %q", pattern, s)
		}
		segs[i] = s
	}
	if !anchored {
		segs = append(segments{"**"}, segs...)
	}
	return segs, nil
}

// match fits segments to the parts of a path. A trailing "**" wants at least
// one level, as git reads "dir/**".
func (s segments) match(parts []string) bool {
	for len(s) > 0 {
		if s[0] == "**" {
			for len(s) > 1 && s[1] == "**" {
				s = s[1:]
			}
			if len(s) == 1 {
				return len(parts) > 0
			}
			for i := range parts {
				if s[1:].match(parts[i:]) {
					return true
				}
			}
			return false
		}
		if len(parts) == 0 {
			return false
		}
		if ok, err := path.Match(s[0], parts[0]); err != nil || !ok {
			return false
		}
		s, parts = s[1:], parts[1:]
	}
	return len(parts) == 0
}

// expand writes out braces: "a.{b,c}" is "a.b" and "a.c".
func expand(pattern string) ([]string, error) {
	open, shut := -1, -1
	for i := 0; i < len(pattern); i++ {
		switch pattern[i] {
		case '\\':
			i++
		case '{':
			open = i
		case '}':
			if open >= 0 {
				shut = i
			}
		}
		if shut >= 0 {
			break
		}
	}
	if shut < 0 {
		return []string{pattern}, nil
	}
	var out []string
	for alt := range strings.SplitSeq(pattern[open+1:shut], ",") {
		more, err := expand(pattern[:open] + alt + pattern[shut+1:])
		if err != nil {
			return nil, err
		}
		out = append(out, more...)
		if len(out) > maxAlternatives {
			return nil, fmt.Errorf("the braces of the pattern stand for more than %d alternatives", maxAlternatives)
		}
	}
	return out, nil
}
