package main_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// module is the path of this module; every package of ours starts with it.
const module = "pawl"

// layers says which packages of ours a package may import, itself and what
// lies below it aside. The longest prefix counts; "..." at the end of an entry
// means the package and all below it. Arrows point one way:
//
//	main → tui, engine/headless → engine → engine/machine, … → ledger
//	tui → views → themes
//
// A package that is not listed falls under the nearest one above it; the first
// entry speaks for the root alone.
var layers = []struct {
	pkg     string
	imports []string
	tests   []string // what its tests may import besides
	why     string
}{
	{pkg: "pawl", imports: []string{"pawl/..."}, why: "flags and wiring"},
	{pkg: "pawl/ledger", why: "durable truth stands on nothing of ours"},
	{pkg: "pawl/views/safe/mask", why: "screen and models are shown the same masks, so they stand below both"},
	{pkg: "pawl/themes", why: "palettes stand on nothing of ours"},
	{pkg: "pawl/views", imports: []string{"pawl/themes/..."}, why: "views draw plain values"},
	{
		pkg: "pawl/tui", imports: []string{"pawl/views/...", "pawl/themes/...", "pawl/engine", "pawl/engine/machine", "pawl/engine/config", "pawl/engine/watch"},
		tests: []string{"pawl/engine/...", "pawl/ledger/...", "pawl/fixtures/..."}, why: "the screen reaches the ledger through the engine",
	},
	{pkg: "pawl/fixtures", tests: []string{"pawl/engine/model/..."}, why: "a judge shares nothing with what it judges"},
	{
		pkg: "pawl/engine", imports: []string{"pawl/engine/...", "pawl/ledger/..."},
		tests: []string{"pawl/fixtures/..."}, why: "the runtime knows no screen and no fixture",
	},
	{pkg: "pawl/engine/headless", imports: []string{"pawl/engine/...", "pawl/ledger/...", "pawl/fixtures/...", "pawl/views/safe", "pawl/themes"}, why: "the demo runs on the fixtures, what it prints goes through the screen's sanitiser, and it lists the palettes"},
	{pkg: "pawl/engine/drill", imports: []string{"pawl/engine/...", "pawl/ledger/...", "pawl/fixtures/..."}, why: "drills act on the fixtures"},
	{pkg: "pawl/engine/machine", why: "the core stands on nothing of ours"},
	{pkg: "pawl/engine/window", imports: []string{"pawl/engine/machine", "pawl/views/safe/mask"}, tests: []string{"pawl/engine/..."}, why: "a pack is a function of the state"},
	{pkg: "pawl/engine/policy", imports: []string{"pawl/engine/machine"}, tests: []string{"pawl/engine/..."}, why: "a rule is a function of values"},
	{pkg: "pawl/engine/confine", tests: []string{"pawl/fixtures/..."}, why: "the box stands on nothing of ours"},
}

// owners says which packages alone may import an outside package and what lies
// below it. Tests are held to it as well, but for those listed.
var owners = []struct {
	outside string
	only    []string
	tests   []string
}{
	{outside: "github.com/fsnotify/fsnotify", only: []string{"pawl/engine/watch"}},
	{outside: "database/sql", only: []string{"pawl/ledger/..."}},
	{outside: "github.com/mattn/go-sqlite3", only: []string{"pawl/ledger/..."}},
	{outside: "charm.land/bubbletea/v2", only: []string{"pawl", "pawl/tui/..."}},
	{outside: "charm.land/bubbles/v2", only: []string{"pawl", "pawl/tui/..."}},
	{outside: "charm.land/lipgloss/v2", only: []string{"pawl", "pawl/tui/...", "pawl/views/...", "pawl/themes/...", "pawl/engine/headless/..."}},
	{outside: "charm.land/fang/v2", only: []string{"pawl", "pawl/engine/headless/..."}},
	{outside: "github.com/spf13/cobra", only: []string{"pawl", "pawl/engine/headless/..."}},
	{outside: "github.com/openai/openai-go/v3", only: []string{"pawl/engine/model/..."}},
	{outside: "github.com/anthropics/anthropic-sdk-go/v2", only: []string{"pawl/engine/model/..."}},
	{outside: "charm.land/catwalk", only: []string{"pawl/engine/model/..."}},
	{outside: "github.com/landlock-lsm/go-landlock", only: []string{"pawl/engine/confine/..."}},
	{outside: "github.com/elastic/go-seccomp-bpf", only: []string{"pawl/engine/confine/..."}},
}

// pure packages are functions of values: no I/O, no clock, no chance, no
// goroutines. Their tests are free.
var pure = []string{"pawl/engine/machine/...", "pawl/engine/window/...", "pawl/engine/policy/...", "pawl/views/..."}

// impure packages of the standard library and around it, with what lies below them.
var impure = []string{
	"os", "net", "syscall", "golang.org/x/sys", "database/sql", "math/rand", "crypto/rand",
	"log", "os/exec", "io/ioutil", "runtime/debug", "plugin", "golang.org/x/term",
}

// stillPure lies below an impure package and does no I/O.
var stillPure = []string{"net/url", "net/netip"}

// impureCalls are the functions that make an otherwise pure package impure.
var impureCalls = map[string][]string{
	"time":          {"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"},
	"fmt":           {"Print", "Printf", "Println", "Scan", "Scanf", "Scanln"},
	"path/filepath": {"Abs", "EvalSymlinks", "Glob", "Walk", "WalkDir"},
	"runtime":       {"GC", "Gosched", "NumGoroutine"},
}

// source is one Go file.
type source struct {
	file string // slash-separated, below the module's root
	text []byte
}

// pkg returns the import path of the package that the file lies in.
func (s source) pkg() string {
	if dir := path.Dir(s.file); dir != "." {
		return module + "/" + dir
	}
	return module
}

func (s source) test() bool { return strings.HasSuffix(s.file, "_test.go") }

// within reports whether pkg is named by one of the entries.
func within(pkg string, entries []string) bool {
	return slices.ContainsFunc(entries, func(e string) bool {
		if root, all := strings.CutSuffix(e, "/..."); all {
			return below(pkg, root)
		}
		return pkg == e
	})
}

func below(pkg, root string) bool { return pkg == root || strings.HasPrefix(pkg, root+"/") }

// violations returns what breaks the tables above, one sentence each.
func violations(s source) ([]string, error) {
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, s.file, s.text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var found []string
	report := func(at token.Pos, format string, args ...any) {
		found = append(found, fmt.Sprintf("%s: %s", files.Position(at), fmt.Sprintf(format, args...)))
	}
	isPure := within(s.pkg(), pure) && !s.test()
	names := map[string]string{} // local name → import path
	for _, spec := range f.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, err
		}
		names[localName(spec, imported)] = imported
		if why := layerBroken(s, imported); why != "" {
			report(spec.Pos(), "%s must not import %s: %s", s.pkg(), imported, why)
		}
		for _, o := range owners {
			if below(imported, o.outside) && !within(s.pkg(), o.only) && !(s.test() && within(s.pkg(), o.tests)) {
				report(spec.Pos(), "%s must not import %s: only %s may", s.pkg(), imported, strings.Join(o.only, ", "))
			}
		}
		if isPure && !slices.Contains(stillPure, imported) && slices.ContainsFunc(impure, func(p string) bool { return below(imported, p) }) {
			report(spec.Pos(), "%s is pure and must not import %s", s.pkg(), imported)
		}
	}
	if isPure {
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				report(n.Pos(), "%s is pure and must not start goroutines", s.pkg())
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && slices.Contains(impureCalls[names[x.Name]], n.Sel.Name) {
					report(n.Pos(), "%s is pure and must not use %s.%s", s.pkg(), x.Name, n.Sel.Name)
				}
			}
			return true
		})
	}
	return found, nil
}

func localName(spec *ast.ImportSpec, imported string) string {
	if spec.Name != nil {
		return spec.Name.Name
	}
	return path.Base(imported)
}

// layerBroken says why a package of ours must not be imported, or nothing.
func layerBroken(s source, imported string) string {
	if !below(imported, module) {
		return ""
	}
	best := -1
	for i, l := range layers {
		if below(s.pkg(), l.pkg) && (best < 0 || len(l.pkg) > len(layers[best].pkg)) {
			best = i
		}
	}
	l := layers[best]
	if l.pkg == module && s.pkg() != module {
		return "its folder stands in no layer; add it to the table in imports_test.go"
	}
	if l.pkg != module && below(imported, l.pkg) || within(imported, l.imports) || s.test() && within(imported, l.tests) {
		return ""
	}
	return l.why
}

// sources returns every Go file of the module.
func sources(t *testing.T) []source {
	t.Helper()
	var found []source
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && name != "." && (strings.HasPrefix(d.Name(), ".") || strings.HasPrefix(d.Name(), "_") || d.Name() == "testdata") {
			return fs.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(name, ".go") {
			return nil
		}
		text, err := os.ReadFile(name)
		found = append(found, source{file: filepath.ToSlash(name), text: text})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestImports holds the module to its table of layers.
func TestImports(t *testing.T) {
	for _, s := range sources(t) {
		found, err := violations(s)
		if err != nil {
			t.Error(err)
		}
		for _, v := range found {
			t.Error(v)
		}
	}
}

// TestImportsNoticesViolations holds the test above to its word.
func TestImportsNoticesViolations(t *testing.T) {
	for _, c := range []struct {
		file, text string
		want       string // "" for none
	}{
		{"ledger/db.go", `import "database/sql"`, ""},
		{"ledger/db.go", `import "pawl/engine/machine"`, "durable truth"},
		{"ledger/db_test.go", `import "pawl/ledger/ledgertest"`, ""},
		{"ledger/ledgertest/run.go", `import "pawl/ledger"`, ""},
		{"views/card.go", `import "pawl/themes"`, ""},
		{"views/card.go", `import "pawl/engine"`, "plain values"},
		{"views/card.go", `import "pawl/ledger"`, "plain values"},
		{"views/card.go", `import tea "charm.land/bubbletea/v2"`, "only pawl, pawl/tui/... may"},
		{"views/safe/text.go", `import "os"`, "must not import os"},
		{"themes/load.go", `import "os"`, ""},
		{"themes/load.go", `import "pawl/views"`, "stand on nothing"},
		{"tui/model.go", `import ("charm.land/bubbletea/v2"; "pawl/engine"; "pawl/views")`, ""},
		{"tui/model.go", `import "pawl/ledger"`, "through the engine"},
		{"tui/model.go", `import "pawl/engine/headless"`, "through the engine"},
		{"tui/model.go", `import "github.com/fsnotify/fsnotify"`, "only pawl/engine/watch may"},
		{"engine/run.go", `import "pawl/ledger"`, ""},
		{"engine/run.go", `import "pawl/tui"`, "no screen"},
		{"engine/run.go", `import "pawl/fixtures/world"`, "no fixture"},
		{"engine/run_test.go", `import "pawl/fixtures/world"`, ""},
		{"engine/run.go", `import "database/sql"`, "only pawl/ledger/... may"},
		{"engine/headless/demo.go", `import "pawl/fixtures/world"`, ""},
		{"engine/headless/demo.go", `import "charm.land/bubbletea/v2"`, "may"},
		{"engine/headless/demo.go", `import "pawl/tui"`, "demo runs on"},
		{"engine/watch/watch.go", `import "github.com/fsnotify/fsnotify"`, ""},
		{"engine/machine/fold.go", `import "pawl/ledger"`, "core stands on nothing"},
		{"engine/machine/fold.go", `import "time"; var d = 3 * time.Second`, ""},
		{"engine/machine/fold.go", `import "time"; var now = time.Now`, "must not use time.Now"},
		{"engine/machine/fold.go", `import clock "time"; func f() { clock.Sleep(1) }`, "must not use clock.Sleep"},
		{"engine/machine/fold_test.go", `import "time"; var now = time.Now`, ""},
		{"engine/machine/fold.go", `func f() { go f() }`, "must not start goroutines"},
		{"engine/machine/sub/x.go", `import "math/rand/v2"`, "must not import math/rand/v2"},
		{"engine/window/build.go", `import "net/http"`, "must not import net/http"},
		{"engine/policy/host.go", `import ("net/netip"; "net/url")`, ""},
		{"engine/policy/exec.go", `import "os/exec"`, "must not import os/exec"},
		{"engine/policy/tool.go", `import "pawl/engine/tool"`, "function of values"},
		{"fixtures/world/w.go", `import "pawl/engine"`, "shares nothing"},
		{"newfolder/x.go", `import "pawl/ledger"`, "stands in no layer"},
		{"main.go", `import ("pawl/engine/headless"; "pawl/tui")`, ""},
	} {
		found, err := violations(source{file: c.file, text: []byte("package p\n" + c.text + "\n")})
		if err != nil {
			t.Fatal(err)
		}
		got := strings.Join(found, "\n")
		if (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s with %s: found %q, want %q", c.file, c.text, got, c.want)
		}
	}
}
