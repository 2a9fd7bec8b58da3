package effect

import (
	"io/fs"
	"testing"

	"pawl/engine/policy"
)

// BenchmarkParseBuiltIn is what every start of the program pays.
func BenchmarkParseBuiltIn(b *testing.B) {
	names, err := fs.Glob(embedded, "recipes/*.toml")
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		for _, n := range names {
			text, err := embedded.ReadFile(n)
			if err != nil {
				b.Fatal(err)
			}
			if _, faults := parseRecipe(n, nameOf(n), text); len(faults) > 0 {
				b.Fatal(faults)
			}
		}
	}
}

// BenchmarkMatch is what every command line pays.
func BenchmarkMatch(b *testing.B) {
	c, err := policy.Parse("go test -race -shuffle=on ./...")
	if err != nil {
		b.Fatal(err)
	}
	book := BuiltIn()
	for b.Loop() {
		book.Match(&c)
	}
}
