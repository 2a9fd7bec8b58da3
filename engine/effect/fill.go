package effect

import (
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"pawl/engine/machine"
	"pawl/engine/policy"
)

// slot is a place in a template: {name}, or in patterns {name|json} for the
// value as it stands in JSON.
var slot = regexp.MustCompile(`\{([a-z][a-z0-9_]*)(\|json)?\}`)

// KeyName is the slot of the idempotency key.
const KeyName = "key"

// keyLater stands for a key that is made from the effect's id, which a plan
// does not know yet. Bind puts the key in its place.
const keyLater = "\ue000key\ue000"

// Slots lists the names that templates use, each once.
func Slots(templates ...string) []string {
	var out []string
	for _, t := range templates {
		for _, m := range slot.FindAllStringSubmatch(t, -1) {
			if !slices.Contains(out, m[1]) {
				out = append(out, m[1])
			}
		}
	}
	return out
}

// Vars are the values of slots. A name that is not in it has no value.
type Vars map[string]string

// KeyLater gives the key its place until the effect has an id.
func (v Vars) KeyLater() { v[KeyName] = keyLater }

// has reports whether every slot of a template has a value; missing is the
// first that has none.
func (v Vars) has(template string) (missing string, ok bool) {
	for _, n := range Slots(template) {
		if _, there := v[n]; !there {
			return n, false
		}
	}
	return "", true
}

// Words fills an argument list. A word with a slot that has no value is left
// out. A value that would be read as an option, at the start of a word and
// before a "--", is an error: it would say something else than its name.
func (v Vars) Words(templates []string) ([]string, error) {
	var out []string
	options := true
	for _, t := range templates {
		if _, ok := v.has(t); !ok {
			continue
		}
		w := v.text(t)
		at := slot.FindStringIndex(t)
		if options && at != nil && at[0] == 0 && strings.HasPrefix(w, "-") {
			return nil, fmt.Errorf("the value %q would be taken for an option", clipText(w, 60))
		}
		if strings.ContainsRune(w, 0) {
			return nil, fmt.Errorf("the value of %s holds a NUL byte", t)
		}
		if t == "--" {
			options = false
		}
		out = append(out, w)
	}
	return out, nil
}

// Text fills a text for people, or a body.
func (v Vars) Text(template string) string { return v.text(template) }

func (v Vars) text(template string) string {
	return slot.ReplaceAllStringFunc(template, func(s string) string {
		m := slot.FindStringSubmatch(s)
		if m[2] != "" {
			return jsonText(v[m[1]])
		}
		return v[m[1]]
	})
}

// OriginName is the slot of scheme, host and port of a request's own URL. It
// alone may stand before the path.
const OriginName = "origin"

// URL fills a URL's template, escaped for where each value stands.
func (v Vars) URL(template string) string {
	var b strings.Builder
	last, query := 0, false
	for _, m := range slot.FindAllStringSubmatchIndex(template, -1) {
		literal := template[last:m[0]]
		b.WriteString(literal)
		query = query || strings.Contains(literal, "?")
		name := template[m[2]:m[3]]
		switch {
		case name == OriginName, v[name] == keyLater:
			b.WriteString(v[name])
		case query:
			b.WriteString(url.QueryEscape(v[name]))
		default:
			b.WriteString(url.PathEscape(v[name]))
		}
		last = m[1]
	}
	b.WriteString(template[last:])
	return b.String()
}

// Pattern fills a regular expression; values stand for themselves in it.
func (v Vars) Pattern(template string) string {
	return slot.ReplaceAllStringFunc(template, func(s string) string {
		m := slot.FindStringSubmatch(s)
		if m[2] != "" {
			return regexp.QuoteMeta(jsonText(v[m[1]]))
		}
		return regexp.QuoteMeta(v[m[1]])
	})
}

func jsonText(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		return `""` // strings always encode
	}
	return string(b)
}

// Bind puts an effect's idempotency key where its contract left room for it.
func Bind(c *machine.Contract, key string) {
	put := func(s string) string { return strings.ReplaceAll(s, keyLater, key) }
	if p := c.Probe; p != nil {
		q := *p
		q.URL = put(p.URL)
		q.Command = slices.Clone(p.Command)
		for i := range q.Command {
			q.Command[i] = put(q.Command[i])
		}
		q.Answers = slices.Clone(p.Answers)
		for i := range q.Answers {
			q.Answers[i].Match = put(q.Answers[i].Match)
		}
		c.Probe = &q
	}
	if p := c.Compensation; p != nil {
		q := *p
		q.Args = put(p.Args)
		c.Compensation = &q
	}
	if line, ok := c.Params[ParamLine]; ok && strings.Contains(line, keyLater) {
		// What runs gets the key, too: the line of the record is the line that runs.
		m := make(map[string]string, len(c.Params))
		for k, v := range c.Params {
			m[k] = v
		}
		m[ParamLine] = put(line)
		c.Params = m
	}
}

// Keyed is a command line with the key in its place.
func Keyed(line, key string) string { return strings.ReplaceAll(line, keyLater, key) }

// ParamLine is the command line of a declared tool.
const ParamLine = "line"

// shellArgs are the arguments of the shell tool for a command of these words.
func shellArgs(words []string, network bool) string {
	a := map[string]any{"command": policy.Join(words)}
	if network {
		a["network"] = true
	}
	b, err := json.Marshal(a)
	if err != nil {
		return "{}" // plain values always encode
	}
	return string(b)
}

func clipText(s string, n int) string {
	r := []rune(s)
	if len(r) > n {
		return string(r[:n]) + "…"
	}
	return s
}
