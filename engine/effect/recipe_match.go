package effect

import (
	"regexp"
	"slices"
	"strings"
)

// fit is a line that fits a form: what it captured, or why it has no contract.
type fit struct {
	vars    Vars
	refused string
}

// fits reads a line's words by a form. An option that the form does not list
// makes it another line: what it would change is not known.
func (f *matchForm) fits(words []string) (fit, bool) {
	if len(words) == 0 || len(f.Words) == 0 || words[0] != f.Words[0] {
		return fit{}, false
	}
	m := matching{form: f, out: fit{vars: Vars{}}, given: map[string]bool{}}
	read := m.read(words[1:])
	if m.out.refused != "" {
		// It has no contract anyway; how its words go on does not matter.
		return m.out, m.subcommand()
	}
	if !read || !m.operands() {
		return fit{}, false
	}
	if len(f.Require) > 0 && !slices.ContainsFunc(f.Require, func(o string) bool { return m.given[o] }) {
		return fit{}, false
	}
	for k, v := range f.Set {
		m.out.vars[k] = v
	}
	for name, p := range f.Where {
		re, err := regexp.Compile("^(?:" + p + ")$")
		if err != nil || !re.MatchString(m.out.vars[name]) {
			return fit{}, false
		}
	}
	return m.out, true
}

type matching struct {
	form  *matchForm
	words []string // that are no options
	given map[string]bool
	out   fit
}

// read splits options from words. It reports false for an option that is not
// listed.
func (m *matching) read(args []string) bool {
	options := true
	for i := 0; i < len(args); i++ {
		w := args[i]
		if !options || len(w) < 2 || w[0] != '-' {
			m.words = append(m.words, w)
			continue
		}
		if w == "--" {
			options = false
			continue
		}
		next, ok := m.option(args, i)
		if !ok {
			return false
		}
		i = next
	}
	return true
}

// option reads the option at i and returns the index of its last word.
func (m *matching) option(args []string, i int) (int, bool) {
	w := args[i]
	if m.form.Style == "go" && !strings.HasPrefix(w, "--") {
		w = "-" + w // both spellings mean the same there
	}
	name, value, has := strings.Cut(w, "=")
	if m.form.Style == "go" {
		name = m.listed(name)
	}
	if strings.HasPrefix(w, "--") || m.form.Style == "go" {
		return m.long(name, value, has, args, i)
	}
	return m.cluster(w, args, i)
}

// listed finds an option in the spelling of the form.
func (m *matching) listed(name string) string {
	for _, o := range slices.Concat(m.form.Switches, keysOf(m.form.Values), keysOf(m.form.Forbid)) {
		if strings.TrimLeft(o, "-") == strings.TrimLeft(name, "-") {
			return o
		}
	}
	return name
}

func (m *matching) long(name, value string, has bool, args []string, i int) (int, bool) {
	if why, ok := m.form.Forbid[name]; ok {
		m.refuse(name, why)
		return i, true
	}
	if capture, ok := m.form.Values[name]; ok {
		if !has {
			if i++; i >= len(args) {
				return i, false
			}
			value = args[i]
		}
		m.take(name, capture, value)
		return i, true
	}
	m.given[name] = true
	return i, !has && slices.Contains(m.form.Switches, name)
}

// cluster reads one or several options of one letter, the last of which may
// have its value attached or in the next word.
func (m *matching) cluster(w string, args []string, i int) (int, bool) {
	for j := 1; j < len(w); j++ {
		o := "-" + w[j:j+1]
		if why, ok := m.form.Forbid[o]; ok {
			m.refuse(o, why)
			return i, true
		}
		if capture, ok := m.form.Values[o]; ok {
			if rest := w[j+1:]; rest != "" {
				m.take(o, capture, rest)
				return i, true
			}
			if i++; i >= len(args) {
				return i, false
			}
			m.take(o, capture, args[i])
			return i, true
		}
		if !slices.Contains(m.form.Switches, o) {
			return i, false
		}
		m.given[o] = true
	}
	return i, true
}

func (m *matching) refuse(option, why string) {
	m.given[option] = true
	if m.out.refused == "" {
		m.out.refused = "with " + option + " " + why
	}
}

func (m *matching) take(option, capture, value string) {
	m.given[option] = true
	if capture == "" {
		return
	}
	if old, ok := m.out.vars[capture]; ok && old != value && m.out.refused == "" {
		m.out.refused = "it gives " + option + " more than once"
	}
	m.out.vars[capture] = value
}

// operands compares the words that are no options: first the subcommand, then
// what the form names.
func (m *matching) operands() bool {
	if !m.subcommand() {
		return false
	}
	rest := m.words[len(m.form.Words)-1:]
	if len(rest) > len(m.form.Operands) {
		return false
	}
	for i, o := range m.form.Operands {
		if i >= len(rest) {
			if !o.Optional {
				return false
			}
			continue
		}
		if !m.operand(o, rest[i]) {
			return false
		}
	}
	return true
}

// subcommand reports whether the first words are the form's.
func (m *matching) subcommand() bool {
	want := m.form.Words[1:]
	return len(m.words) >= len(want) && slices.Equal(m.words[:len(want)], want)
}

func (m *matching) operand(o operandForm, word string) bool {
	if o.Pattern != "" {
		groups := o.re.FindStringSubmatch(word)
		if groups == nil {
			return false
		}
		for i, g := range o.re.SubexpNames() {
			if g != "" && groups[i] != "" {
				m.out.vars[g] = groups[i]
			}
		}
	}
	if word == "" {
		return false
	}
	m.out.vars[o.Name] = word
	return true
}
