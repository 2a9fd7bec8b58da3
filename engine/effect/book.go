package effect

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"pawl/engine/config/source"
	"pawl/engine/machine"
	"pawl/engine/policy"
)

//go:embed recipes/*.toml
var embedded embed.FS

// Book is the recipes of one Pawl. It does not change once it is made. The
// built-in ones are read when the first line has to be judged, since most
// starts of the program judge none.
type Book struct {
	own []bookEntry // the user's
	all func() []bookEntry
}

type bookEntry struct {
	file   *recipeFile
	source string // "built in", or the path of the user's file
}

// BuiltIn are the recipes that come with Pawl.
var BuiltIn = sync.OnceValue(func() *Book { return &Book{all: builtIns} })

// builtInNames lists the recipes that come with Pawl, without reading them.
var builtInNames = sync.OnceValue(func() []string {
	files, err := fs.Glob(embedded, "recipes/*.toml")
	if err != nil {
		panic(err) // a pattern of ours
	}
	names := make([]string, len(files))
	for i, f := range files {
		names[i] = nameOf(f)
	}
	return names
})

var builtIns = sync.OnceValue(func() []bookEntry {
	var out []bookEntry
	for _, name := range builtInNames() {
		file := "recipes/" + name + ".toml"
		text, err := embedded.ReadFile(file)
		if err != nil {
			panic(err) // it is part of the program
		}
		r, faults := parseRecipe(file, name, text)
		if len(faults) > 0 {
			panic(faults[0]) // a fault of the program: a test sees it first
		}
		out = append(out, bookEntry{file: r, source: sourceBuiltIn})
	}
	return out
})

// withBase puts the user's recipes before the built-in ones that they do not replace.
func withBase(own []bookEntry) *Book {
	b := &Book{own: own}
	b.all = sync.OnceValue(func() []bookEntry {
		out := slices.Clone(own)
		for _, e := range builtIns() {
			if !b.owns(e.file.Name) {
				out = append(out, e)
			}
		}
		return out
	})
	return b
}

func (b *Book) owns(name string) bool {
	return slices.ContainsFunc(b.own, func(e bookEntry) bool { return e.file.Name == name })
}

const sourceBuiltIn = "built in"

func nameOf(path string) string { return strings.TrimSuffix(filepath.Base(path), ".toml") }

// maxRecipe bounds a recipe's file.
const maxRecipe = 256 << 10

// LoadBook adds the recipes of a directory to the built-in ones. A file whose
// recipe has the name of a built-in one takes its place; one with a fault does
// not, and is named. A directory that is not there holds none.
func LoadBook(dir string) (*Book, []*source.Problem) {
	base := BuiltIn()
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) || dir == "" {
		return base, nil
	}
	if err != nil {
		return base, []*source.Problem{{File: dir, What: "your recipes cannot be read", Why: plainError(err), Next: "check who may read the directory", Kept: "the built-in ones stay in force"}}
	}
	var own []bookEntry
	var faults []*source.Problem
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".toml") || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		path := filepath.Join(dir, e.Name())
		r, bad := readRecipe(path)
		for _, f := range bad {
			f.Kept = "lines that it is for stay undeclared"
			if base.Knows(nameOf(path)) {
				f.Kept = fmt.Sprintf("the built-in recipe %s stays in force", nameOf(path))
			}
		}
		faults = append(faults, bad...)
		if r != nil {
			own = append(own, bookEntry{file: r, source: path})
		}
	}
	return withBase(own), faults
}

func readRecipe(path string) (*recipeFile, []*source.Problem) {
	st, err := os.Stat(path)
	if err == nil && (!st.Mode().IsRegular() || st.Size() > maxRecipe) {
		err = fmt.Errorf("it is no regular file of at most %d KiB", maxRecipe>>10)
	}
	var text []byte
	if err == nil {
		text, err = os.ReadFile(path)
	}
	if err != nil {
		return nil, []*source.Problem{{File: path, What: "the recipe cannot be read", Why: plainError(err), Next: "check the file"}}
	}
	return parseRecipe(path, nameOf(path), text)
}

// Knows reports whether there is a recipe of this name.
func (b *Book) Knows(name string) bool {
	return name == PushName || b.owns(name) || slices.Contains(builtInNames(), name)
}

// Match recognises a line by its words alone. Only a line that is exactly one
// simple command matches: what stands beside it would be outside the contract.
func (b *Book) Match(c *policy.Commands) (Recipe, bool) {
	if c == nil || !c.Whole || len(c.Simple) == 0 {
		return Recipe{}, false
	}
	words := c.Simple[0].Words
	if p, ok := matchPush(words); ok {
		return Recipe{Name: PushName, Version: pushVersion, push: &p}, true
	}
	for _, e := range b.all() {
		for i := range e.file.Match {
			if f, ok := e.file.Match[i].fits(words); ok {
				return Recipe{Name: e.file.Name, Version: e.file.Version, shaped: &shaped{file: e.file, fit: f, line: policy.Join(words)}}, true
			}
		}
	}
	return Recipe{}, false
}

// Listing is a recipe as it is shown.
type Listing struct {
	Name       string   `json:"name"`
	Match      []string `json:"match"` // one form a line
	Class      string   `json:"class"`
	InFlight   string   `json:"in_flight"`
	Probe      string   `json:"probe"`
	Compensate string   `json:"compensate"`
	Tested     bool     `json:"tested"`     // the probe, against the real thing
	ProvesNot  bool     `json:"proves_not"` // it may prove that nothing happened
	Source     string   `json:"source"`
	About      string   `json:"about"`
	Gets       []string `json:"gets"` // variables, paths and sockets beside the usual
}

// List tells about every recipe, by name.
func (b *Book) List() []Listing {
	out := []Listing{{
		Name: PushName, Match: []string{"git push [REMOTE [REFSPEC]]"}, Class: machine.ClassProbeable.String(),
		InFlight: "0s for a path, " + networkInFlight.String() + " over a network", Probe: "git ls-remote, compared with the values before and after",
		Tested: true, ProvesNot: true, Source: sourceBuiltIn,
		About: "Push one branch or tag, delete one, or move one by force. Over a network the probe may prove only that it happened.",
		Gets:  []string{"SSH_AUTH_SOCK", "~/.ssh", "~/.git-credentials"},
	}}
	for _, e := range b.all() {
		out = append(out, e.listing())
	}
	slices.SortFunc(out, func(a, b Listing) int { return strings.Compare(a.Name, b.Name) })
	return out
}

func (e bookEntry) listing() Listing {
	r := e.file
	l := Listing{
		Name: r.Name, Class: r.class.String(), InFlight: time.Duration(r.InFlight).String(), Source: e.source, About: strings.TrimSpace(r.About), Match: []string{}, Gets: []string{},
	}
	for _, f := range r.Match {
		l.Match = append(l.Match, f.usage())
	}
	if p := r.Probe; p != nil {
		l.Probe, l.Tested = p.Usage(), p.Tested
		l.ProvesNot = p.Tested && slices.ContainsFunc(p.Answer, func(a AnswerDecl) bool { return a.Verdict == "not_happened" })
	}
	if c := r.Compensate; c != nil {
		l.Compensate = c.Usage()
	}
	l.Gets = append(append(l.Gets, r.Env...), r.Sockets...)
	for _, p := range r.Reveal {
		l.Gets = append(l.Gets, "~/"+p)
	}
	return l
}

// usage shows a form as manuals do.
func (f *matchForm) usage() string {
	out := slices.Clone(f.Words)
	if len(f.Require) > 0 {
		out = append(out, strings.Join(f.Require, "|"))
	}
	for _, o := range f.Operands {
		w := strings.ToUpper(o.Name)
		if o.Optional {
			w = "[" + w + "]"
		}
		out = append(out, w)
	}
	for _, k := range keysOf(f.Where) {
		if p := strings.Trim(f.Where[k], "|"); p != "" {
			out = append(out, "("+k+" "+p+")")
		}
	}
	return strings.Join(out, " ")
}

// Usage shows on one line how the probe asks, slots included.
func (p *ProbeDecl) Usage() string {
	if p.URL != "" {
		return "GET " + p.URL
	}
	return shown(p.Command)
}

// Usage shows on one line what the compensation does, slots included.
func (c *CompensateDecl) Usage() string {
	if c.URL != "" {
		return c.Method + " " + c.URL
	}
	return shown(c.Command)
}

// shown joins words for people; slots are left as they are.
func shown(words []string) string {
	out := slices.Clone(words)
	for i, w := range out {
		if plain := slot.ReplaceAllString(w, "x"); w == "" || policy.Quote(plain) != plain && strings.ContainsAny(w, " \t\n\"'$;|&<>()`\\") {
			out[i] = policy.Quote(w)
		}
	}
	return strings.Join(out, " ")
}
