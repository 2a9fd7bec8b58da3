// Package secret fills configured secrets into what is about to be sent, and
// hides them in what comes back. Everywhere else, in the ledger above all, a
// secret is its name: ${secret:NAME}.
//
// A value is read anew for each use, from where the operator keeps it. It is
// never stored, logged or put into an error.
package secret

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
)

// Source is where a secret is kept: one of the two.
type Source struct {
	Env  string `toml:"env"`  // a variable of Pawl's own environment
	File string `toml:"file"` // a file, read without its last line end
}

// Set is the secrets that are configured. A nil set holds none.
type Set struct {
	sources map[string]Source
	getenv  func(string) string
}

// New makes a set. Names are as ValidName says.
func New(sources map[string]Source, getenv func(string) string) *Set {
	return &Set{sources: sources, getenv: getenv}
}

var (
	name  = regexp.MustCompile(`^[A-Z][A-Z0-9_]{0,63}$`)
	place = regexp.MustCompile(`\$\{secret:([A-Za-z0-9_]*)\}`)
)

// ValidName reports whether a secret may have this name.
func ValidName(s string) bool { return name.MatchString(s) }

// Check says what is wrong with a source, "" if nothing is.
func (s Source) Check() string {
	switch {
	case s.Env == "" && s.File == "":
		return "it names no place: write env or file"
	case s.Env != "" && s.File != "":
		return "it names two places: write env or file, not both"
	case s.File != "" && !strings.HasPrefix(s.File, "/"):
		return "its file is not named from the root"
	}
	return ""
}

// Uses lists the secrets that texts ask for, by name, each once.
func Uses(texts ...string) []string {
	var out []string
	for _, t := range texts {
		for _, m := range place.FindAllStringSubmatch(t, -1) {
			if !slices.Contains(out, m[1]) {
				out = append(out, m[1])
			}
		}
	}
	return out
}

// Names lists the secrets, sorted.
func (s *Set) Names() []string {
	if s == nil {
		return nil
	}
	out := make([]string, 0, len(s.sources))
	for n := range s.sources {
		out = append(out, n)
	}
	slices.Sort(out)
	return out
}

// Known is an error, for the model, if one of the names is not configured.
func (s *Set) Known(names []string) error {
	for _, n := range names {
		if !slices.Contains(s.Names(), n) {
			have := "none is configured"
			if all := s.Names(); len(all) > 0 {
				have = "there are " + strings.Join(all, ", ")
			}
			return fmt.Errorf("there is no secret %q: %s", n, have)
		}
	}
	return nil
}

// Value reads a secret. Its errors name the place, never the value.
func (s *Set) Value(n string) (string, error) {
	if err := s.Known([]string{n}); err != nil {
		return "", err
	}
	src := s.sources[n]
	v := ""
	if src.Env != "" {
		if v = s.getenv(src.Env); v == "" {
			return "", fmt.Errorf("the secret %s is empty: the variable %s is not set for Pawl", n, src.Env)
		}
		return v, nil
	}
	b, err := os.ReadFile(src.File)
	if err != nil {
		return "", fmt.Errorf("the secret %s cannot be read: %w", n, err)
	}
	if v = strings.TrimRight(string(b), "\r\n"); v == "" {
		return "", fmt.Errorf("the secret %s is empty: there is nothing in %s", n, src.File)
	}
	return v, nil
}

// Fill puts the secrets into a text that is about to leave.
func (s *Set) Fill(text string) (string, error) {
	var errs []error
	out := place.ReplaceAllStringFunc(text, func(m string) string {
		v, err := s.Value(place.FindStringSubmatch(m)[1])
		errs = append(errs, err)
		return v
	})
	return out, errors.Join(errs...)
}

// Variable is the variable in which a command finds a secret.
func Variable(n string) string { return "PAWL_SECRET_" + n }

// Command turns a command line that asks for secrets into one that finds them in
// its environment, and that environment: so no value stands in a line.
func (s *Set) Command(line string) (string, []string, error) {
	var env []string
	for _, n := range Uses(line) {
		v, err := s.Value(n)
		if err != nil {
			return "", nil, err
		}
		env = append(env, Variable(n)+"="+v)
	}
	return place.ReplaceAllString(line, "$${PAWL_SECRET_${1}}"), env, nil
}

// minHidden is the least length of a value that is looked for: shorter ones
// occur by chance.
const minHidden = 6

// Hide puts names in the place of values in what came back.
func (s *Set) Hide(b []byte) []byte {
	for _, n := range s.Names() {
		v, err := s.Value(n)
		if err != nil || len(v) < minHidden || !bytes.Contains(b, []byte(v)) {
			continue
		}
		b = bytes.ReplaceAll(b, []byte(v), []byte("${secret:"+n+"}"))
	}
	return b
}
