package glob

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestPattern(t *testing.T) {
	for _, c := range []struct {
		pattern, rel string
		want         bool
	}{
		{"*.go", "a.go", true},
		{"*.go", "x/y/a.go", true},
		{"*.go", "a.gox", false},
		{"./*.go", "a.go", true},
		{"x/*.go", "x/a.go", true},
		{"x/*.go", "x/y/a.go", false},
		{"x/*.go", "z/x/a.go", false},
		{"**/a.go", "a.go", true},
		{"**/a.go", "p/q/a.go", true},
		{"x/**", "x/a", true},
		{"x/**", "x", false},
		{"x/**/z", "x/z", true},
		{"x/**/z", "x/1/2/z", true},
		{"*.{js,ts}", "a/b.ts", true},
		{"*.{js,ts}", "a/b.css", false},
		{"{a,b}/{c,d}", "b/c", true},
		{"[!a]x", "bx", true},
		{"[!a]x", "ax", false},
		{"*", "caf\xe9", true},
	} {
		p, err := Compile(c.pattern)
		if err != nil {
			t.Fatalf("Compile(%q): %v", c.pattern, err)
		}
		if got := p.Match(c.rel); got != c.want {
			t.Errorf("%q on %q: %v, want %v", c.pattern, c.rel, got, c.want)
		}
	}
}

func TestPatternRefused(t *testing.T) {
	for _, p := range []string{"", "[a", strings.Repeat("{a,b}", 9)} {
		if _, err := Compile(p); err == nil {
			t.Errorf("Compile(%q) has no error", p)
		}
	}
}

// The reference is git itself: each path is asked for by its own name, as a
// walk meets it.
func TestIgnoredAgreesWithGit(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("needs git")
	}
	dir := t.TempDir()
	run := func(stdin string, args ...string) string {
		c := exec.Command(git, args...)
		c.Dir, c.Stdin = dir, strings.NewReader(stdin)
		c.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
		out, err := c.Output()
		if _, exit := err.(*exec.ExitError); err != nil && !exit {
			t.Fatal(err)
		}
		return string(out)
	}
	run("", "init", "-q")
	files := map[string]string{
		".gitignore":     "# comment\n*.log\n!keep.log\n/build\nnode_modules/\ndoc/*.txt\n**/cache\na/**/z\ntrail \nkept\\ \n\\#hash\n\\!bang\n[bc]at\n[!x]yz\nfoo/**\nx**y\n\n!\n/\n",
		"sub/.gitignore": "*.tmp\n!/build\n/only\nkeep.log\n",
	}
	for name, body := range files {
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(body), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	paths := []string{
		"x.log", "keep.log", "sub/x.log", "sub/keep.log", "build", "sub/build", "q/build", "doc/a.txt", "q/doc/a.txt",
		"cache", "q/r/cache", "a/z", "a/1/z", "a/1/2/z", "b/a/z", "trail", "kept ", "#hash", "!bang", "cat", "bat", "rat",
		"ayz", "xyz", "sub/a.tmp", "a.tmp", "sub/only", "sub/q/only", "x1y", "xy", "q/x12y", "README",
	}
	dirs := []string{"node_modules", "q/node_modules", "build.d", "foo"}
	for _, d := range dirs {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	r := Rules{}.With("", []byte(files[".gitignore"])).With("sub", []byte(files["sub/.gitignore"]))
	ask := func(p string) bool {
		return strings.Contains(run(p+"\n", "check-ignore", "--no-index", "--stdin"), p)
	}
	for _, p := range paths {
		if got, want := r.Ignored(p, false), ask(p); got != want {
			t.Errorf("file %q: %v, git says %v", p, got, want)
		}
	}
	for _, p := range dirs {
		if got, want := r.Ignored(p, true), ask(p); got != want {
			t.Errorf("directory %q: %v, git says %v", p, got, want)
		}
	}
}

func BenchmarkIgnored(b *testing.B) {
	var file strings.Builder
	for i := range 60 {
		fmt.Fprintf(&file, "*.ext%d\n/dir%d/\n", i, i)
	}
	r := Rules{}.With("", []byte(file.String()))
	for b.Loop() {
		r.Ignored("some/path/to/a/file.go", false)
	}
}
