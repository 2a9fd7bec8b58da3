// Package themes owns colour: palettes are files, each names a colour for
// every token that the views draw with, and nothing else in Pawl knows a
// colour. It does no I/O beyond reading the embedded files or a file system
// that it is given.
package themes

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
)

//go:embed *.toml
var builtin embed.FS

// Theme is one palette.
type Theme struct {
	Name  string `toml:"name"`
	About string `toml:"about"` // one line for a list of themes
	Dark  bool   `toml:"dark"`  // made for a dark background
	// Grounds are the terminal backgrounds it must be readable on. Pawl leaves
	// the terminal's own background alone unless Paint is set, and then paints
	// the first of them.
	Grounds []string `toml:"grounds"`
	Paint   bool     `toml:"paint"`
	Ink     Inks     `toml:"ink"`
}

// Inks gives each token its colours.
type Inks struct {
	Text   Ink `toml:"text"`   // what is read
	Dim    Ink `toml:"dim"`    // what may be skipped
	Strong Ink `toml:"strong"` // headings
	Accent Ink `toml:"accent"` // names, ids, links
	Good   Ink `toml:"good"`   // proven, done
	Bad    Ink `toml:"bad"`    // failed, denied
	Warn   Ink `toml:"warn"`   // waits for a person, unknown
	Live   Ink `toml:"live"`   // model text as it arrives; not in the ledger
	Key    Ink `toml:"key"`    // a key to press
	Border Ink `toml:"border"` // panel without focus; a line, not text
	Focus  Ink `toml:"focus"`  // panel with focus; a line, not text
	Header Ink `toml:"header"` // the top line
	Alert  Ink `toml:"alert"`  // the count of what waits, in the top line
	Select Ink `toml:"select"` // selected row of the panel with focus
	Shade  Ink `toml:"shade"`  // selected row of another panel
	Mark   Ink `toml:"mark"`   // text that stands for hidden characters
	Toast  Ink `toml:"toast"`  // a passing message
	Error  Ink `toml:"error"`  // a message about something that went wrong
	Input  Ink `toml:"input"`  // text being typed
	Cursor Ink `toml:"cursor"` // the cell where typing goes
}

// Ink is a foreground on a background; without BG it stands on the ground.
type Ink struct {
	FG     string `toml:"fg"`
	BG     string `toml:"bg"`
	Bold   bool   `toml:"bold"`
	Italic bool   `toml:"italic"`
}

// Default is the theme for a background.
func Default(dark bool) string {
	if dark {
		return "dark"
	}
	return "light"
}

// Names lists the themes that come with Pawl, sorted.
func Names() []string {
	files, _ := fs.Glob(builtin, "*.toml") // the pattern is valid
	for i, f := range files {
		files[i] = strings.TrimSuffix(f, ".toml")
	}
	slices.Sort(files)
	return files
}

// Load reads a theme by name: from own, which may be nil, if it has a file
// NAME.toml, else from those that come with Pawl.
func Load(name string, own fs.FS) (Theme, error) {
	text, err := Source(name, own)
	if err != nil {
		return Theme{}, err
	}
	return parse(name+".toml", []byte(text))
}

// Source is the text of a theme's file, found as Load finds it.
func Source(name string, own fs.FS) (string, error) {
	file := name + ".toml"
	if own != nil && fs.ValidPath(file) {
		b, err := fs.ReadFile(own, file)
		switch {
		case err == nil:
			return string(b), nil
		case !errors.Is(err, fs.ErrNotExist):
			return "", fmt.Errorf("theme %s cannot be read: %w", name, err)
		}
	}
	if !slices.Contains(Names(), name) {
		return "", fmt.Errorf("there is no theme %q: choose one of %s, or put %s into the themes folder",
			name, strings.Join(Names(), ", "), file)
	}
	b, err := builtin.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("theme %s: %w", name, err)
	}
	return string(b), nil
}

// parse reads one palette and refuses what it does not know, so that a
// misspelt token is told instead of silently drawn in another colour.
func parse(file string, b []byte) (Theme, error) {
	var t Theme
	md, err := toml.Decode(string(b), &t)
	if err != nil {
		return Theme{}, fmt.Errorf("theme file %s does not parse: %w", file, err)
	}
	if un := md.Undecoded(); len(un) > 0 {
		return Theme{}, fmt.Errorf("theme file %s has an unknown key %q: see themes/dark.toml for the keys there are", file, un[0].String())
	}
	if t.Name == "" || len(t.Grounds) == 0 {
		return Theme{}, fmt.Errorf("theme file %s needs a name and at least one of grounds, the backgrounds it is made for", file)
	}
	for _, g := range t.Grounds {
		if !colour.MatchString(g) {
			return Theme{}, badColour(file, "grounds", g)
		}
	}
	for token, ink := range t.Ink.All() {
		if !colour.MatchString(ink.FG) {
			return Theme{}, badColour(file, "ink."+token+".fg", ink.FG)
		}
		if ink.BG != "" && !colour.MatchString(ink.BG) {
			return Theme{}, badColour(file, "ink."+token+".bg", ink.BG)
		}
	}
	return t, nil
}

func badColour(file, key, v string) error {
	if v == "" {
		return fmt.Errorf("theme file %s does not set %s: give it a colour like \"#d7dae0\"", file, key)
	}
	return fmt.Errorf("theme file %s has %s = %q: a colour is written \"#d7dae0\"", file, key, v)
}

var colour = regexp.MustCompile(`^#[0-9a-fA-F]{6}$`)

// All maps each token's name to its ink.
func (i Inks) All() map[string]Ink {
	v := reflect.ValueOf(i)
	out := make(map[string]Ink, v.NumField())
	for n := range v.NumField() {
		out[v.Type().Field(n).Tag.Get("toml")] = v.Field(n).Interface().(Ink)
	}
	return out
}
