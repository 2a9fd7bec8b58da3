// Package source reads the TOML files that people write for Pawl and says what
// is wrong with them: where, what, why, and what to do.
//
// It knows no meaning of any key. Whoever decodes a file checks what the values
// mean and asks Text for the line to blame.
package source

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/BurntSushi/toml"
)

// Problem is one fault of a file that a person wrote.
type Problem struct {
	File string
	Line int // 1 is the first; 0: the file as a whole
	What string
	Why  string
	Next string
	// Kept says what is in force instead, "" if nothing is.
	Kept string
}

// Error is the problem as one sentence.
func (p *Problem) Error() string {
	s := p.Place() + ": " + p.What
	if p.Why != "" {
		s += ": " + p.Why
	}
	if p.Next != "" {
		s += "; " + p.Next
	}
	if p.Kept != "" {
		s += " (" + p.Kept + ")"
	}
	return s
}

// Place names the file and the line.
func (p *Problem) Place() string {
	if p.Line > 0 {
		return fmt.Sprintf("%s, line %d", p.File, p.Line)
	}
	return p.File
}

// Text is a decoded file, for messages about what stands in it.
type Text struct {
	File string
	// lines is asked only if something is wrong.
	lines func() lines
}

// Read decodes text into a pointer to a struct. A key that the struct does not
// have is a fault, so that a misspelt promise is not taken for none.
func Read(file string, text []byte, into any) (*Text, []*Problem) {
	t := &Text{File: file, lines: sync.OnceValue(func() lines { return scan(string(text)) })}
	md, err := toml.Decode(string(text), into)
	if err != nil {
		return t, []*Problem{t.broken(err)}
	}
	var faults []*Problem
	var seen []string
	for _, key := range md.Undecoded() {
		path := key.String()
		if slices.ContainsFunc(seen, func(s string) bool { return strings.HasPrefix(path, s+".") }) {
			continue // it stands below one that is named already
		}
		seen = append(seen, path)
		faults = append(faults, t.unknown(key, into))
	}
	return t, faults
}

// Fault makes a problem about the key at a path: names of tables and keys, and
// numbers of entries in arrays of tables, counted from zero.
func (t *Text) Fault(path []any, what, why, next string) *Problem {
	return &Problem{File: t.File, Line: t.Line(path...), What: what, Why: why, Next: next}
}

// Line is the line of a key or table, or of the nearest thing around it.
func (t *Text) Line(path ...any) int {
	for n := len(path); n > 0; n-- {
		if l, ok := t.lines().exact[join(path[:n])]; ok {
			return l
		}
	}
	return 0
}

// misfit is how the decoder words a value of the wrong type.
var misfit = regexp.MustCompile(`^toml: line (\d+) \(last key "([^"]*)"\): (?s:(.*))$`)

func (t *Text) broken(err error) *Problem {
	p := &Problem{File: t.File, What: "the file cannot be read as TOML", Why: err.Error(), Next: "mend that line"}
	if m := misfit.FindStringSubmatch(err.Error()); m != nil {
		p.Line, _ = strconv.Atoi(m[1])
		p.What, p.Why = "the value of "+m[2]+" cannot be used", m[3]
	}
	var pe toml.ParseError
	if errors.As(err, &pe) {
		p.Line, p.Why = pe.Position.Line, pe.Message
		if p.Why == "" {
			p.Why = strings.TrimPrefix(pe.Error(), "toml: ")
		}
		if pe.LastKey != "" {
			p.What = "the value of " + pe.LastKey + " cannot be read"
			if l, ok := t.lines().loose[pe.LastKey]; ok && p.Line == 0 {
				p.Line = l
			}
		}
	}
	if strings.TrimSpace(p.Why) == "" {
		p.Why = err.Error()
	}
	return p
}

// unknown words a key that nothing reads, with the nearest one that is read.
func (t *Text) unknown(key toml.Key, into any) *Problem {
	p := &Problem{File: t.File, Line: t.lines().loose[key.String()], What: fmt.Sprintf("there is no key %s", key)}
	known := keysAt(reflect.TypeOf(into), key[:len(key)-1])
	p.Why = "nothing would act on it, so it may be a misspelt promise"
	p.Next = "take it out"
	if len(known) > 0 {
		p.Next = "known here are " + strings.Join(known, ", ")
	}
	if near := Nearest(key[len(key)-1], known); near != "" {
		p.Next = "did you mean " + near + "?"
	}
	return p
}

// keysAt lists the keys that a struct reads at a path.
func keysAt(t reflect.Type, path toml.Key) []string {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		if t.Kind() == reflect.Map && len(path) > 0 {
			path = path[1:]
		}
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	var out []string
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("toml"), ",")
		if f.Anonymous && name == "" {
			out = append(out, keysAt(f.Type, path)...)
			continue
		}
		if !f.IsExported() || name == "-" {
			continue
		}
		if name == "" {
			name = strings.ToLower(f.Name)
		}
		if len(path) > 0 {
			if name == path[0] {
				return keysAt(f.Type, path[1:])
			}
			continue
		}
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// Nearest is the known word that a misspelt one is probably meant to be, "" if
// none is near.
func Nearest(word string, known []string) string {
	best, at := "", 3
	word = strings.ToLower(strings.ReplaceAll(word, "-", "_"))
	for _, k := range known {
		if d := distance(word, k); d < at && d < max(len(k), 2) {
			best, at = k, d
		}
	}
	return best
}

// distance counts the edits between two words.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
