package config

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"pawl/engine/config/source"
)

// Screen is how the screen looks and which keys it takes.
type Screen struct {
	// Theme is a palette's name; empty: dark or light, by the terminal's background.
	Theme string `toml:"theme"`
	// Silent: no notification and no bell when something new waits.
	Silent bool `toml:"silent"`
	// Keys replaces the keys of what can be done, by the names that the help shows.
	Keys map[string][]string `toml:"keys"`
}

// parseScreen keeps what is right of it. Whether a theme or a name of a key
// exists is known to the screen alone, which says so where it is used.
func (c *Config) parseScreen(t *source.Text, in Screen) {
	for name, keys := range in.Keys {
		if len(keys) == 0 || slices.Contains(keys, "") {
			p := t.Fault([]any{"screen", "keys", name}, "the keys for "+name+" cannot be used", "there is an empty list or an empty key", `write it as in: approve = ["y"]`)
			p.Kept = "the usual keys are in force for it"
			c.Problems = append(c.Problems, p)
			delete(in.Keys, name)
		}
	}
	c.Screen = in
}

// Themes holds the operator's own palettes; nil if there is no place for them.
// The directory need not exist.
func (c *Config) Themes() fs.FS {
	if c.Dir == "" {
		return nil
	}
	return os.DirFS(filepath.Join(c.Dir, "themes"))
}
