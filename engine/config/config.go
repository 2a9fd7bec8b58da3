// Package config reads the operator's configuration: one TOML file and a
// directory of recipes beside it, into plain structs.
//
// A file that cannot be read, or a part of it that contradicts itself, never
// stops Pawl: what is wrong is named with its line, what is right counts, and
// everything else is as if it were not there. Half a promise about a tool is
// taken for none.
package config

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"pawl/engine/config/source"
	"pawl/engine/effect"
	"pawl/engine/secret"
)

// PathEnv names the variable that names the file.
const PathEnv = "PAWL_CONFIG"

// Config is what the operator configured. Its zero value is the default.
type Config struct {
	Path     string // of the file, whether it is there or not; "" if there is no place for one
	Dir      string // of recipes and palettes
	Tools    []Tool
	Requests []Request
	Book     *effect.Book // never nil after Load
	// Secrets are where the operator keeps what calls may ask for by name.
	Secrets  map[string]secret.Source
	Screen   Screen
	Problems []*source.Problem
}

// Options say where to look.
type Options struct {
	Path     string // given on the command line: it must be there
	Getenv   func(string) string
	Reserved []string // names that no tool may have
}

// file is the whole of config.toml.
type file struct {
	Tool []Tool    `toml:"tool"`
	HTTP []Request `toml:"http"`

	Secrets map[string]secret.Source `toml:"secrets"`
	Screen  Screen                   `toml:"screen"`
}

// maxFile bounds the file.
const maxFile = 1 << 20

// Load reads the configuration. Nothing is an error: what is wrong is in
// Problems.
func Load(o Options) Config {
	c := Config{}
	named := o.Path != "" || o.Getenv(PathEnv) != ""
	c.Path, c.Dir = place(o)
	if c.Dir == "" {
		c.Book = effect.BuiltIn()
	} else {
		var faults []*source.Problem
		c.Book, faults = effect.LoadBook(filepath.Join(c.Dir, "recipes"))
		c.Problems = append(c.Problems, faults...)
	}
	if c.Path == "" {
		return c
	}
	text, fault := read(c.Path, named)
	if fault != nil {
		c.Problems = append(c.Problems, fault)
		return c
	}
	c.parse(text, o.Reserved)
	return c
}

// place finds the file and the directory: what the command line names, then the
// environment, then the usual place.
func place(o Options) (path, dir string) {
	base := o.Getenv("XDG_CONFIG_HOME")
	if !filepath.IsAbs(base) { // a relative one is to be ignored, says the XDG specification
		base = ""
		if home := o.Getenv("HOME"); filepath.IsAbs(home) {
			base = filepath.Join(home, ".config")
		}
	}
	if base != "" {
		dir = filepath.Join(base, "pawl")
		path = filepath.Join(dir, "config.toml")
	}
	if p := o.Getenv(PathEnv); p != "" {
		path = p
	}
	if o.Path != "" {
		path = o.Path
	}
	return path, dir
}

func read(path string, named bool) ([]byte, *source.Problem) {
	st, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) && !named {
		return nil, nil
	}
	if err == nil && (!st.Mode().IsRegular() || st.Size() > maxFile) {
		err = fmt.Errorf("it is no regular file of at most %d KiB", maxFile>>10)
	}
	var text []byte
	if err == nil {
		text, err = os.ReadFile(path)
	}
	if err == nil {
		return text, nil
	}
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	next := "check who may read it"
	if errors.Is(err, fs.ErrNotExist) {
		next = "check --config and " + PathEnv
	}
	return nil, &source.Problem{File: path, What: "the configuration cannot be read", Why: err.Error(), Next: next, Kept: "the defaults are in force, without any tools of yours"}
}

func (c *Config) parse(text []byte, reserved []string) {
	var f file
	t, faults := source.Read(c.Path, text, &f)
	if len(faults) > 0 {
		for _, p := range faults {
			p.Kept = "the defaults are in force, without any tools of yours"
		}
		c.Problems = append(c.Problems, faults...)
		return
	}
	names := map[string]bool{}
	for _, n := range reserved {
		names[n] = true
	}
	for i := range f.Tool {
		tool := &f.Tool[i]
		bad := tool.check(t, i, names)
		for _, p := range bad {
			p.Kept = "the tool " + orUnnamed(tool.Name) + " is left out"
		}
		c.Problems = append(c.Problems, bad...)
		if len(bad) == 0 {
			names[tool.Name] = true
			c.Tools = append(c.Tools, *tool)
		}
	}
	c.parseSecrets(t, f.Secrets)
	c.parseScreen(t, f.Screen)
	for i := range f.HTTP {
		r := &f.HTTP[i]
		bad := r.check(t, i)
		for _, p := range bad {
			p.Kept = "requests that it is for stay as they are without it"
		}
		c.Problems = append(c.Problems, bad...)
		if len(bad) == 0 {
			c.Requests = append(c.Requests, *r)
		}
	}
}

// parseSecrets keeps the secrets whose places are right.
func (c *Config) parseSecrets(t *source.Text, in map[string]secret.Source) {
	for _, n := range slices.Sorted(maps.Keys(in)) {
		why := in[n].Check()
		if !secret.ValidName(n) {
			why = "its name is not made of capital letters, digits and _"
		}
		if why != "" {
			c.Problems = append(c.Problems, &source.Problem{
				File: t.File, What: "the secret " + n + " cannot be used", Why: why,
				Next: `write it as in: [secrets] TOKEN = { env = "MY_TOKEN" }`, Kept: "calls that ask for it are refused",
			})
			continue
		}
		if c.Secrets == nil {
			c.Secrets = map[string]secret.Source{}
		}
		c.Secrets[n] = in[n]
	}
}

func orUnnamed(name string) string {
	if name == "" {
		return "without a name"
	}
	return name
}
