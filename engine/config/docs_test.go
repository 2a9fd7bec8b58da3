package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pawl/engine/effect"
)

// examples are the TOML blocks of a document.
func examples(t *testing.T, name string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", name))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, part := range strings.Split(string(text), "```toml\n")[1:] {
		block, _, ok := strings.Cut(part, "```")
		if !ok {
			t.Fatalf("%s has a block without an end", name)
		}
		out = append(out, block)
	}
	if len(out) == 0 {
		t.Fatalf("%s shows no TOML", name)
	}
	return out
}

// What the documents show is right.
func TestExamplesOfTheDocuments(t *testing.T) {
	tools, requests := 0, 0
	for _, text := range examples(t, "tools.md") {
		c := load(t, text)
		for _, p := range c.Problems {
			t.Errorf("docs/tools.md: %v", p)
		}
		tools, requests = tools+len(c.Tools), requests+len(c.Requests)
	}
	if tools == 0 || requests == 0 {
		t.Errorf("docs/tools.md shows %d tools and %d requests", tools, requests)
	}
	dir := t.TempDir()
	for _, text := range examples(t, "recipes.md") {
		if err := os.WriteFile(filepath.Join(dir, "make-deploy.toml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, faults := effect.LoadBook(dir)
		for _, p := range faults {
			t.Errorf("docs/recipes.md: %v", p)
		}
	}
}

func BenchmarkLoad(b *testing.B) {
	dir := b.TempDir()
	path := filepath.Join(dir, "config.toml")
	if err := os.WriteFile(path, []byte(good), 0o600); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if c := Load(Options{Path: path, Getenv: func(string) string { return "" }}); len(c.Tools) != 1 {
			b.Fatal(c.Problems)
		}
	}
}
