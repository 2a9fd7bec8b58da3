package main_test

import (
	"os"
	"strings"
	"testing"
)

// TestDependenciesAreExplained holds docs/dependencies.md to go.mod: what is
// required directly, and each tool, has its line.
func TestDependenciesAreExplained(t *testing.T) {
	mod, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := os.ReadFile("docs/dependencies.md")
	if err != nil {
		t.Fatal(err)
	}
	explained := map[string]bool{}
	for line := range strings.Lines(string(doc)) {
		if rest, ok := strings.CutPrefix(line, "| `"); ok {
			name, _, _ := strings.Cut(rest, "`")
			explained[name] = true
		}
	}
	direct := directModules(string(mod))
	if len(direct) == 0 {
		t.Fatal("go.mod seems to require nothing")
	}
	for _, name := range direct {
		if !explained[name] && !explainedAbove(explained, name) {
			t.Errorf("%s is in go.mod and has no line in docs/dependencies.md", name)
		}
	}
}

// explainedAbove finds a tool's module by the tool's package.
func explainedAbove(explained map[string]bool, pkg string) bool {
	for i := strings.LastIndexByte(pkg, '/'); i > 0; i = strings.LastIndexByte(pkg, '/') {
		if pkg = pkg[:i]; explained[pkg] {
			return true
		}
	}
	return false
}

// directModules returns the modules of the require lines that are not marked
// as indirect, and the packages of the tool lines.
func directModules(mod string) []string {
	var found []string
	block := ""
	for line := range strings.Lines(mod) {
		line = strings.TrimSpace(line)
		if name, ok := strings.CutSuffix(line, " ("); ok {
			block = name
			continue
		}
		if line == ")" {
			block = ""
			continue
		}
		verb, rest := block, line
		if block == "" {
			verb, rest, _ = strings.Cut(line, " ")
		}
		name, _, _ := strings.Cut(rest, " ")
		if verb == "tool" || verb == "require" && !strings.HasSuffix(line, "// indirect") {
			found = append(found, name)
		}
	}
	return found
}

func TestDirectModules(t *testing.T) {
	got := strings.Join(directModules("module m\n\ngo 1.26\n\nrequire (\n\ta.b/c v1.0.0\n\td.e/f v1.0.0 // indirect\n)\n\nrequire g.h/i v1.2.3\n\ntool (\n\tj.k/l/cmd/m\n)\n\ntool n.o/p\n"), " ")
	if want := "a.b/c g.h/i j.k/l/cmd/m n.o/p"; got != want {
		t.Errorf("found %q, want %q", got, want)
	}
}
