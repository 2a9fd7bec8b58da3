package tool

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"pawl/engine/machine"
)

func TestReadFileShowsWhatAnEditMustKnow(t *testing.T) {
	b := newBench(t, Options{})
	for _, c := range []struct {
		name, content string
		want          []string
		not           string
	}{
		{"plain.txt", "a\n\nb\n", []string{"plain.txt: 3 lines, 5 bytes\n     1\ta\n     2\t\n     3\tb\n"}, "["},
		{"one.txt", "a", []string{"1 line, 1 byte, no line end at the end"}, ""},
		{"empty.txt", "", []string{"empty.txt is empty."}, ""},
		{"crlf.txt", "a\r\nb\r\n", []string{"CRLF line ends", "     1\ta\n     2\tb\n"}, "␍"},
		{"mixed.txt", "a\r\nb\nc\rd\n", []string{"mixed line ends (2 LF, 1 CRLF, 1 lone CR", "     1\ta␍\n     2\tb\n     3\tc␍d\n"}, ""},
		{"bom.txt", "\ufeffa\n", []string{"begins with a byte order mark", "     1\ta\n"}, "\ufeff"},
		{"nul.bin", "a\x00b", []string{"binary", "NUL byte at offset 1", "3 bytes", machine.DigestOf([]byte("a\x00b")).String()}, "\x00"},
		{"latin.txt", "caf\xe9\n", []string{"not UTF-8 from offset 3", "5 bytes"}, "\xe9"},
	} {
		b.put(c.name, c.content)
		o := b.do("read_file", m{"path": c.name})
		wantEnd(t, o, EndCompleted, "0")
		wantText(t, text(t, o), c.want...)
		if c.not != "" && strings.Contains(text(t, o), c.not) {
			t.Errorf("%s: %q is in\n%s", c.name, c.not, text(t, o))
		}
	}
}

func TestReadFileWindows(t *testing.T) {
	b := newBench(t, Options{})
	b.put("f", strings.Repeat("x\n", 10))
	o := b.do("read_file", m{"path": "f", "offset": 4, "limit": 2})
	wantText(t, text(t, o), "     4\tx\n     5\tx\n[lines 4 to 5 of 10; go on with offset 6]\n")
	o = b.do("read_file", m{"path": "f", "offset": 9, "limit": 5})
	wantText(t, text(t, o), "[lines 9 to 10 of 10]\n")
	o = b.do("read_file", m{"path": "f", "offset": 11})
	wantEnd(t, o, EndCompleted, CodeNotFound)
	b.put("long", strings.Repeat("é", 5000)+"\nend\n")
	got := text(t, b.do("read_file", m{"path": "long"}))
	wantText(t, got, "6000 bytes of this line left out", "     2\tend")
}

func TestReadFileFaultsAreResults(t *testing.T) {
	b := newBench(t, Options{})
	b.put("dir/f", "")
	if err := syscall.Mkfifo(filepath.Join(b.env.Space.Path, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("gone", filepath.Join(b.env.Space.Path, "dangling")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ path, code, want string }{
		{"none", CodeNotFound, "none does not exist."},
		{"dir/none/x", CodeNotFound, "(the directory dir does)"},
		{"dir", CodeUnreadable, "list_dir"},
		{"pipe", CodeUnreadable, "a named pipe"},
		{"dangling", CodeNotFound, "gone does not exist."},
	} {
		o := b.do("read_file", m{"path": c.path})
		if o.Result.OK || o.End != EndCompleted {
			t.Errorf("%s: %+v", c.path, o)
		}
		if o.Result.Code != c.code {
			t.Errorf("%s: code %s, want %s", c.path, o.Result.Code, c.code)
		}
		wantText(t, text(t, o), c.want)
	}
	wantText(t, b.refused("read_file", m{"path": "a\x00b"}), "NUL byte")
	wantText(t, b.refused("read_file", m{"path": "dir/f/x"}), "cannot be followed: not a directory")
}

// Reading outside is asked about, whichever way the path gets there.
func TestReadsOutsideAreSaidToPolicy(t *testing.T) {
	b := newBench(t, Options{})
	out := t.TempDir()
	if err := os.WriteFile(filepath.Join(out, "secret"), []byte("s"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(out, filepath.Join(b.env.Space.Path, "link")); err != nil {
		t.Fatal(err)
	}
	b.put("in", "x")
	b.put(".git/config", "x")
	for _, c := range []struct {
		path   string
		inside bool
	}{
		{"in", true},
		{filepath.Join(b.env.Space.Path, "in"), true},
		{"link/secret", false},
		{"../secret", false},
		{filepath.Join(out, "secret"), false},
		{".git/config", false},
		{".GIT/config", false},
	} {
		p := b.mustPlan("read_file", m{"path": c.path})
		if len(p.Subject.Reads) != 1 || p.Subject.Reads[0].Inside != c.inside {
			t.Errorf("%s: %+v, want inside %v", c.path, p.Subject.Reads, c.inside)
		}
		if p.Contract.Class != machine.ClassRead || p.Subject.Class != machine.ClassRead {
			t.Errorf("%s: class %s", c.path, p.Contract.Class)
		}
	}
	p := b.mustPlan("read_file", m{"path": "link/secret"})
	if p.Target != filepath.Join(out, "secret") {
		t.Errorf("the target shown is %s", p.Target)
	}
}

// B28: a link swapped after the call was judged leads nowhere.
func TestLinkSwappedAfterJudgementIsNotFollowed(t *testing.T) {
	b := newBench(t, Options{})
	out := t.TempDir()
	if err := os.WriteFile(filepath.Join(out, "f"), []byte("outside"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.put("d/f", "inside")
	swap := func() {
		d := filepath.Join(b.env.Space.Path, "d")
		if err := os.RemoveAll(d); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(out, d); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		tool string
		args m
	}{
		{"read_file", m{"path": "d/f"}},
		{"list_dir", m{"path": "d"}},
		{"search", m{"pattern": "outside", "path": "d"}},
		{"write_file", m{"path": "d/f", "content": "new"}},
		{"edit_file", m{"path": "d/f", "old": "inside", "new": "new"}},
	} {
		if err := os.RemoveAll(filepath.Join(b.env.Space.Path, "d")); err != nil {
			t.Fatal(err)
		}
		b.put("d/f", "inside")
		p := b.mustPlan(c.tool, c.args)
		call := b.call(p)
		var err error
		if call.Measured, err = b.set.Get(c.tool).Measure(t.Context(), b.env, p.Contract, p.Args); err != nil {
			t.Fatal(err)
		}
		swap()
		o := b.set.Get(c.tool).Run(t.Context(), b.env, call)
		wantEnd(t, o, EndCompleted, CodeMoved)
		if got, _ := os.ReadFile(filepath.Join(out, "f")); string(got) != "outside" {
			t.Fatalf("%s wrote outside: %s", c.tool, got)
		}
	}
}

// B33, B37: names that could break a line or a screen are quoted and stay distinct.
func TestListDirShowsAnyName(t *testing.T) {
	b := newBench(t, Options{})
	names := []string{
		"plain", "with space", "new\nline", "ends\n", "tab\t", `quo"te`, `back\slash`, "-dash", "esc\x1b[2J", "caf\xe9", "café", "cafe\u0301",
		"bidi\u202egpj", "zero\u200bwidth", strings.Repeat("n", 255),
	}
	for _, n := range names {
		b.put(n, "x")
	}
	got := text(t, b.do("list_dir", m{}))
	lines := strings.Split(strings.TrimSuffix(got, "\n"), "\n")
	if len(lines) != len(names)+1 {
		t.Errorf("%d lines for %d names:\n%s", len(lines), len(names), got)
	}
	seen := map[string]bool{}
	for _, l := range lines {
		if seen[l] {
			t.Errorf("two names look alike: %q", l)
		}
		seen[l] = true
	}
	for _, r := range got {
		if r < ' ' && r != '\n' || r == '\u202e' || r == '\u200b' || r == 0xFFFD {
			t.Errorf("the character %U goes through", r)
		}
	}
	for _, n := range names {
		o := b.do("write_file", m{"path": n, "content": "new"})
		if strings.Contains(n, "\xe9") { // cannot be spelled in JSON
			continue
		}
		wantEnd(t, o, EndCompleted, "0")
		if b.disk(n) != "new" {
			t.Errorf("%q was not written", n)
		}
	}
	if b.disk("caf\xe9") != "x" {
		t.Error("another file was hit")
	}
}

func TestListDirDepthAndIgnored(t *testing.T) {
	b := newBench(t, Options{})
	b.put(".gitignore", "node_modules/\n*.log\n")
	b.put(".git/HEAD", "ref")
	b.put("a/b/c/d.go", "x")
	b.put("node_modules/m/index.js", "x")
	if err := os.Symlink("a/b", filepath.Join(b.env.Space.Path, "l")); err != nil {
		t.Fatal(err)
	}
	got := text(t, b.do("list_dir", m{"depth": 3}))
	want := ".: 7 entries\n.git/\n.gitignore  20 bytes\na/\n  b/\n    c/\nl -> a/b\nnode_modules/  (ignored, not entered)\n"
	if got != want {
		t.Errorf("have\n%s\nwant\n%s", got, want)
	}
	wantText(t, text(t, b.do("list_dir", m{"path": "a", "depth": 5})), "a: 3 entries", "d.go  1 byte")
	o := b.do("list_dir", m{"path": ".gitignore"})
	wantEnd(t, o, EndCompleted, CodeUnreadable)
	for i := range 1100 {
		b.put("many/f"+strings.Repeat("x", i%7)+string(rune('a'+i%26))+strings.Repeat("y", i/26), "")
	}
	wantText(t, text(t, b.do("list_dir", m{"path": "many"})), "entries left out")
}

func TestSearch(t *testing.T) {
	b := newBench(t, Options{})
	b.put(".gitignore", "*.log\n/out/\n")
	b.put("a.go", "package a\n\nfunc Retry() {}\r\n")
	b.put("sub/b.go", "// retry\n")
	b.put("sub/.gitignore", "c.go\n")
	b.put("sub/c.go", "retry\n")
	b.put("x.log", "retry\n")
	b.put("out/y.go", "retry\n")
	b.put(".git/config", "retry\n")
	b.put("bin", "retry\x00\n")
	b.put("latin", "caf\xe9 retry\n")
	b.put("long", strings.Repeat("é", 1000)+"retry"+strings.Repeat("ü", 1000)+"\n")
	got := text(t, b.do("search", m{"pattern": "(?i)retry"}))
	wantText(t, got, "a.go:3: func Retry() {}\n", "sub/b.go:1: // retry\n", `latin:1: caf\xe9 retry`, "long:1: …", "retryü", "ü…\n",
		"[4 matching lines in 6 searched files; passed over: 1 binary]")
	if strings.Contains(got, "c.go") || strings.Contains(got, ".log") || strings.Contains(got, "out/") || strings.Contains(got, ".git/") {
		t.Errorf("ignored files were searched:\n%s", got)
	}
	got = text(t, b.do("search", m{"pattern": "retry", "glob": "*.go", "path": "sub"}))
	if got != "sub/b.go:1: // retry\n[1 matching line in 1 searched file]\n" {
		t.Errorf("narrowed: %s", got)
	}
	if got := text(t, b.do("search", m{"pattern": "retry", "glob": "sub/*.go", "path": "sub"})); !strings.Contains(got, "1 matching line") {
		t.Errorf("a glob from the workspace: %s", got)
	}
	wantText(t, text(t, b.do("search", m{"pattern": "retry", "path": "x.log"})), "x.log:1: retry")
	wantEnd(t, b.do("search", m{"pattern": "x", "path": "none"}), EndCompleted, CodeNotFound)
	wantText(t, b.refused("search", m{"pattern": "(a"}), "no regular expression", "RE2")
	wantText(t, b.refused("search", m{"pattern": "a", "glob": "[a"}), "glob")
	b.put("many", strings.Repeat("needle\n", 500))
	got = text(t, b.do("search", m{"pattern": "needle"}))
	wantText(t, got, "200 matching lines", "stopped at 200", "narrow it")
}

func BenchmarkSearch(b *testing.B) {
	dir := b.TempDir()
	line := strings.Repeat("some words of a line that does not match ", 2) + "\n"
	for i := range 500 {
		d := filepath.Join(dir, "d"+string(rune('a'+i%20)))
		if err := os.MkdirAll(d, 0o755); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(d, "f"+strings.Repeat("x", i/20)), []byte(strings.Repeat(line, 100)), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	re, _, err := searchArgs{Pattern: `Retry\w+\(`}.compile()
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		w, err := newWalk(place{root: dir, abs: dir, rel: ".", inside: true})
		if err != nil {
			b.Fatal(err)
		}
		s := searcher{walk: w, re: re}
		if err := s.dir(b.Context(), ".", w.rules); err != nil || s.files != 500 {
			b.Fatal(s.files, err)
		}
		b.SetBytes(s.scanned)
		w.close()
	}
}
