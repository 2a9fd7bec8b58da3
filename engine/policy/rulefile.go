package policy

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/BurntSushi/toml"
)

// fileRule is a [[rule]] as it stands in a policy file.
type fileRule struct {
	Decision   string            `toml:"decision"`
	Reason     string            `toml:"reason"`
	Tool       string            `toml:"tool"`
	Command    string            `toml:"command"`
	HTTP       string            `toml:"http"`
	Paths      []string          `toml:"paths"`
	Writes     []string          `toml:"writes"`
	Network    *bool             `toml:"network"`
	LevelBelow string            `toml:"level_below"`
	LevelFrom  string            `toml:"level_from"`
	SpentOver  float64           `toml:"spent_over_usd"`
	Args       map[string]string `toml:"args"`
	Expires    string            `toml:"expires"`
}

// FileError is what is wrong with a policy file: what, why, and what next.
type FileError struct {
	File string
	Line int // from 1; 0 if it is about the whole file
	Why  string
	Next string
}

func (e *FileError) Error() string {
	where := e.File
	if e.Line > 0 {
		where = fmt.Sprintf("%s, line %d", e.File, e.Line)
	}
	return fmt.Sprintf("%s: %s; %s", where, e.Why, e.Next)
}

// ParseFile reads the rules of a policy file. name is for messages. Either all
// rules of a file hold or none: half a policy is not one.
func ParseFile(name string, text []byte, scope Scope) ([]Entry, error) {
	var file struct {
		Rule []fileRule `toml:"rule"`
	}
	md, err := toml.Decode(string(text), &file)
	if err != nil {
		return nil, syntaxError(name, err)
	}
	lines := ruleLines(string(text))
	lineOf := func(i int) int {
		if i < len(lines) {
			return lines[i]
		}
		return 0
	}
	if un := md.Undecoded(); len(un) > 0 {
		key := un[0][len(un[0])-1]
		return nil, &FileError{File: name, Line: lineWith(string(text), key), Why: fmt.Sprintf("the key %q is not known", un[0].String()), Next: nearest(key, len(un[0]))}
	}
	out := make([]Entry, 0, len(file.Rule))
	for i, f := range file.Rule {
		e, err := f.entry(scope)
		if err != nil {
			return nil, &FileError{File: name, Line: lineOf(i), Why: fmt.Sprintf("rule %d %v", i+1, err), Next: "mend it, and the file is read again by itself"}
		}
		e.From = fmt.Sprintf("%s, line %d", name, lineOf(i))
		out = append(out, e)
	}
	return out, nil
}

func syntaxError(name string, err error) error {
	var pe toml.ParseError
	if errors.As(err, &pe) {
		return &FileError{File: name, Line: pe.Position.Line, Why: pe.Message, Next: "mend it, and the file is read again by itself"}
	}
	return &FileError{File: name, Why: strings.TrimPrefix(err.Error(), "toml: "), Next: "mend it, and the file is read again by itself"}
}

// ruleLines are the lines on which rules begin.
func ruleLines(text string) []int {
	var out []int
	for i, l := range strings.Split(text, "\n") {
		l, _, _ = strings.Cut(l, "#")
		if strings.Join(strings.Fields(l), "") == "[[rule]]" {
			out = append(out, i+1)
		}
	}
	return out
}

func lineWith(text, key string) int {
	for i, l := range strings.Split(text, "\n") {
		if rest, ok := strings.CutPrefix(strings.TrimLeft(l, " \t["), key); ok && strings.HasPrefix(strings.TrimLeft(rest, " \t]"), "=") {
			return i + 1
		}
	}
	for i, l := range strings.Split(text, "\n") {
		if strings.Contains(l, key) {
			return i + 1
		}
	}
	return 0
}

var fileKeys = []string{
	"decision", "reason", "tool", "command", "http", "paths", "writes", "network", "level_below", "level_from", "spent_over_usd", "args", "expires",
}

func nearest(key string, depth int) string {
	if depth == 1 {
		return "a policy file holds [[rule]] tables only"
	}
	best, most := "", 2 // a distance above that is another word
	for _, k := range fileKeys {
		if d := distance(key, k); d <= most {
			best, most = k, d-1
		}
	}
	if best != "" {
		return fmt.Sprintf("did you mean %q?", best)
	}
	return "a rule knows " + strings.Join(fileKeys, ", ")
}

// distance counts the letters that must change to make b out of a.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diag := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := diag
			if a[i-1] != b[j-1] {
				cost++
			}
			diag = row[j]
			row[j] = min(cost, row[j]+1, row[j-1]+1)
		}
	}
	return row[len(b)]
}

// entry checks one rule. Errors continue the words "rule N …".
func (f fileRule) entry(scope Scope) (Entry, error) {
	e := Entry{Scope: scope, Reason: strings.TrimSpace(f.Reason), Tool: f.Tool, Paths: f.Paths, Writes: f.Writes, Network: f.Network, Below: f.LevelBelow, Reached: f.LevelFrom, Args: f.Args}
	switch f.Decision {
	case "allow":
		e.Decision = Allow
	case "ask":
		e.Decision = Ask
	case "deny":
		e.Decision = Deny
	case "":
		return e, errors.New("says no decision: write allow, ask or deny")
	default:
		return e, fmt.Errorf("decides %q: write allow, ask or deny", f.Decision)
	}
	if f.Command != "" && f.HTTP != "" {
		return e, errors.New("names a command and a request: no action is both")
	}
	text := f.Command
	if f.HTTP != "" {
		text = "http " + f.HTTP
	}
	if text != "" {
		r, err := ParseRule(text)
		if err != nil {
			return e, fmt.Errorf("cannot be used: %w", err)
		}
		if (r.method != "") != (f.HTTP != "") {
			return e, errors.New(`names a request as a command: write http = "METHOD URL"`)
		}
		e.Pattern = &r
	}
	for _, g := range slices.Concat(f.Paths, f.Writes) {
		if _, err := path.Match(g, ""); err != nil || g == "" {
			return e, fmt.Errorf("holds the path %q, which is no pattern: use *, ? and ** between slashes", g)
		}
		if strings.HasPrefix(g, "~") {
			return e, fmt.Errorf("holds the path %q: a policy knows no home directory, write the path out", g)
		}
	}
	for _, l := range []string{f.LevelBelow, f.LevelFrom} {
		if l != "" && !slices.Contains(levels, l) {
			return e, fmt.Errorf("names the level %q: there are %s", l, strings.Join(levels, ", "))
		}
	}
	if f.LevelBelow == levels[0] {
		return e, errors.New("matches nothing: no level lies below none")
	}
	if f.LevelBelow != "" && f.LevelFrom != "" && levelRank(f.LevelFrom) >= levelRank(f.LevelBelow) {
		return e, fmt.Errorf("matches nothing: no level is below %s and from %s on", f.LevelBelow, f.LevelFrom)
	}
	if f.SpentOver < 0 || f.SpentOver > 1e9 {
		return e, errors.New("names a spend that is not between 0 and 1e9 dollars")
	}
	e.Over = int64(f.SpentOver * 1e6)
	if f.Expires != "" {
		d, err := time.ParseDuration(f.Expires)
		if err != nil || d < time.Second {
			return e, fmt.Errorf("expires after %q: write a time of at least a second, as in 30m or 8h", f.Expires)
		}
		if e.Decision != Ask {
			return e, fmt.Errorf("expires, and decides %s: only what is asked can expire", e.Decision)
		}
		e.Expires = d.Microseconds()
	}
	if !e.conditional() {
		return e, errors.New("has no condition, so it would match nothing: name a tool, command, http, paths, writes, network, level or spend")
	}
	if e.Decision == Allow && e.Pattern == nil && len(e.Paths) == 0 && len(e.Writes) == 0 && len(e.Args) == 0 {
		return e, errors.New("allows without saying what: a tool's name, a level or the network alone lets too much go; name a command, http, paths, writes or args")
	}
	return e, nil
}
