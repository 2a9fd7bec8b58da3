package scripted

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

type fieldKind uint8

const (
	fieldEnv fieldKind = iota
	fieldLast
)

// field is one {{…}} of a template, at s[from:to].
type field struct {
	kind     fieldKind
	arg      string
	from, to int
}

// fields finds the templates in a text. Anything else in double braces is
// plain text: files that a model writes are full of it.
func fields(s string) []field {
	var out []field
	for at := 0; ; {
		i := strings.Index(s[at:], "{{")
		if i < 0 {
			return out
		}
		from := at + i
		end := strings.Index(s[from:], "}}")
		if end < 0 {
			return out
		}
		end += from
		for end+2 < len(s) && s[end+2] == '}' { // {{last:x{2}}} ends at the last brace
			end++
		}
		body := s[from+2 : end]
		f := field{from: from, to: end + 2}
		switch {
		case strings.HasPrefix(body, "env."):
			f.kind, f.arg = fieldEnv, strings.TrimPrefix(body, "env.")
		case strings.HasPrefix(body, "last:"), strings.HasPrefix(body, "last."):
			f.kind, f.arg = fieldLast, body[len("last:"):]
		default:
			at = from + 2
			continue
		}
		out = append(out, f)
		at = f.to
	}
}

// filler fills templates in from one turn's view.
type filler struct {
	shown string
	vars  map[string]string
}

func (t filler) fill(s string) (string, error) {
	fs := fields(s)
	if len(fs) == 0 {
		return s, nil
	}
	var b strings.Builder
	at := 0
	for _, f := range fs {
		b.WriteString(s[at:f.from])
		at = f.to
		switch f.kind {
		case fieldEnv:
			v, ok := t.vars[f.arg]
			if !ok {
				return "", fmt.Errorf("it uses {{env.%s}}, and this run was given no variable %s", f.arg, f.arg)
			}
			b.WriteString(v)
		case fieldLast:
			re, err := regexp.Compile(f.arg)
			if err != nil {
				return "", fmt.Errorf("{{last:%s}}: %w", f.arg, err)
			}
			m := re.FindStringSubmatch(t.shown)
			if len(m) < 2 {
				return "", fmt.Errorf("it takes {{last:%s}} from what the model was shown, and nothing there matches", f.arg)
			}
			b.WriteString(m[1])
		}
	}
	b.WriteString(s[at:])
	return b.String(), nil
}

// args fills a call's arguments in and writes them as JSON with sorted keys.
func (t filler) args(c call) (string, error) {
	if c.rawd {
		return t.fill(c.raw)
	}
	v, err := t.value(c.args)
	if err != nil {
		return "", err
	}
	if m, ok := v.(map[string]any); ok && m == nil {
		return "{}", nil
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return "", fmt.Errorf("arguments of %s: %w", c.tool, err)
	}
	return strings.TrimSuffix(b.String(), "\n"), nil
}

func (t filler) value(v any) (any, error) {
	switch x := v.(type) {
	case string:
		return t.fill(x)
	case map[string]any:
		if x == nil {
			return x, nil
		}
		out := make(map[string]any, len(x))
		for k, e := range x {
			w, err := t.value(e)
			if err != nil {
				return nil, err
			}
			out[k] = w
		}
		return out, nil
	case []map[string]any:
		out := make([]any, len(x))
		for i, e := range x {
			w, err := t.value(e)
			if err != nil {
				return nil, err
			}
			out[i] = w
		}
		return out, nil
	case []any:
		out := make([]any, len(x))
		for i, e := range x {
			w, err := t.value(e)
			if err != nil {
				return nil, err
			}
			out[i] = w
		}
		return out, nil
	}
	return v, nil
}
