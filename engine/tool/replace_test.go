package tool

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// B27: an old text with plain line ends fits any file, and only what the edit
// means to change differs afterwards.
func TestReplaceKeepsLineEnds(t *testing.T) {
	for _, c := range []struct {
		name, file, old, new, want string
		all                        bool
	}{
		{"one word, LF", "a\nb\nc\n", "b", "B", "a\nB\nc\n", false},
		{"one word, CRLF", "a\r\nb\r\nc\r\n", "b", "B", "a\r\nB\r\nc\r\n", false},
		{"across lines, CRLF", "a\r\nb\r\nc\r\n", "a\nb", "a\nB", "a\r\nB\r\nc\r\n", false},
		{"line with its end", "a\r\nb\r\nc\r\n", "b\n", "B\n", "a\r\nB\r\nc\r\n", false},
		{"more lines", "a\r\nb\r\nc\r\n", "b\n", "b\nb2\nb3\n", "a\r\nb\r\nb2\r\nb3\r\nc\r\n", false},
		{"more lines from a word", "a\r\nb\r\n", "b", "b1\nb2", "a\r\nb1\r\nb2\r\n", false},
		{"fewer lines", "a\r\nb\r\nc\r\nd\r\n", "b\nc\n", "x\n", "a\r\nx\r\nd\r\n", false},
		{"delete", "a\r\nb\r\nc\r\n", "b\n", "", "a\r\nc\r\n", false},
		{"mixed: neighbours keep their ends", "a\r\nb\nc\r\n", "a\nb\nc\n", "a\nB\nc\n", "a\r\nB\nc\r\n", false},
		{"mixed: changed lines keep their own", "a\r\nb\nc\r\n", "a\nb\nc\n", "1\n2\n3\n", "1\r\n2\n3\r\n", false},
		{"begins with a line end", "a\r\nb\r\n", "\nb", "\nB", "a\r\nB\r\n", false},
		{"no final line end", "a\r\nb", "b", "b\nc", "a\r\nb\r\nc", false},
		{"no line end at all", "ab", "b", "b\nc", "ab\nc", false},
		{"lone CR is data", "a\rb\nc\n", "c", "C", "a\rb\nC\n", false},
		{"lone CR can be named", "a\rb\n", "a\rb", "a b", "a b\n", false},
		{"CRLF can be taken away", "a\r\nb\r\n", "a\r\n", "a\n", "a\nb\r\n", false},
		{"CRLF spelled for a LF file", "a\nb\n", "a\r\nb", "A\r\nb", "A\nb\n", false},
		{"byte order mark", "\ufeffa\r\nb\r\n", "a", "A", "\ufeffA\r\nb\r\n", false},
		{"not UTF-8 elsewhere", "caf\xe9\r\nb\r\n", "b", "B", "caf\xe9\r\nB\r\n", false},
		{"all", "x\r\ny\r\nx\r\n", "x\n", "z\n", "z\r\ny\r\nz\r\n", true},
		{"all, overlapping", "aaaa", "aa", "b", "bb", true},
		{"same line twice in the text", "a\na\nb\n", "a\na\n", "a\nx\na\n", "a\nx\na\nb\n", false},
		{"text contains itself", "ab\n", "ab", "abab", "abab\n", false},
	} {
		got, _, err := replacement{old: c.old, new: c.new, all: c.all}.apply([]byte(c.file))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		} else if string(got) != c.want {
			t.Errorf("%s: have %q, want %q", c.name, got, c.want)
		}
	}
}

func TestReplaceSaysWhyNot(t *testing.T) {
	for _, c := range []struct{ file, old, want string }{
		{"a\nb\na\n", "a", "occurs 2 times (lines 1, 3)"},
		{strings.Repeat("a\n", 30), "a", "occurs 30 times (lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, …)"},
		{"a\r\nb\r\na\r\n", "a\r\n", "occurs 2 times (lines 1, 3)"},
		{"\tx := 1\n", "    x := 1\n", "Its first line does, on line 1: compare the white space"},
		{"a\n", "zzz", "Read the file again"},
		{"a\n", "  \n\n", "Read the file again"},
	} {
		_, _, err := replacement{old: c.old, new: "N"}.apply([]byte(c.file))
		if err == nil {
			t.Errorf("%q in %q: no error", c.old, c.file)
			continue
		}
		wantText(t, err.Error(), c.want, "Nothing was written")
	}
}

// In a file with one kind of line ends an edit is the edit of the plain text
// with that kind of line ends: nothing else differs.
func TestReplaceCommutesWithLineEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.SampledFrom([]string{"a", "b", "ab", "", "é", "  "})
		lines := func(name string, low int) string {
			s := strings.Join(rapid.SliceOfN(word, low, 6).Draw(t, name), "\n")
			if rapid.Bool().Draw(t, name+" open") {
				s += "\n"
			}
			return s
		}
		file, old, new := lines("file", 1), lines("old", 1), lines("new", 0)
		all := rapid.Bool().Draw(t, "all")
		if old == "" {
			old = "a"
		}
		r := replacement{old: old, new: new, all: all}
		plain, n, err := r.apply([]byte(file))
		if !strings.Contains(file, "\n") {
			return // nothing says what line ends such a file has
		}
		crlf, m, err2 := r.apply([]byte(strings.ReplaceAll(file, "\n", "\r\n")))
		if (err == nil) != (err2 == nil) || n != m {
			t.Fatalf("%d, %v and %d, %v", n, err, m, err2)
		}
		if err != nil {
			return
		}
		if want := strings.ReplaceAll(string(plain), "\n", "\r\n"); want != string(crlf) {
			t.Fatalf("have %q, want %q", crlf, want)
		}
		want := strings.Replace(file, old, new, map[bool]int{false: 1, true: -1}[all])
		if string(plain) != want {
			t.Fatalf("have %q, want %q", plain, want)
		}
	})
}

// The difference shown is the difference on disk: patch(1) as git has it makes
// the new bytes of it, in the fine and in the coarse form.
func TestDiffIsWhatChanges(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("needs git")
	}
	big := strings.Repeat("line of a large file\n", 20000)
	for name, c := range map[string]struct{ old, new string }{
		"small":         {"a\nb\nc\n", "a\nB\nc\n"},
		"crlf":          {"a\r\nb\r\n", "a\r\nB\r\n"},
		"no end":        {"a\nb", "a\nc"},
		"end added":     {"a\nb", "a\nb\n"},
		"emptied":       {"a\n", ""},
		"big, middle":   {big, big[:21*500] + "new\n" + big[21*600:]},
		"big, front":    {big, "new\n" + big},
		"big, no end":   {big, big + "x"},
		"big, end lost": {big + "x", big + "y"},
		"big, emptied":  {big, ""},
		"big, from nil": {"", big},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "f"), []byte(c.old), 0o644); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(git, "apply", "--unidiff-zero", "--whitespace=nowarn", "-")
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
			cmd.Stdin = strings.NewReader(unifiedDiff("f", c.old, c.new, true))
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			got, err := os.ReadFile(filepath.Join(dir, "f"))
			if err != nil && c.new != "" {
				t.Fatal(err)
			}
			if string(got) != c.new {
				t.Errorf("have %d bytes, want %d", len(got), len(c.new))
			}
		})
	}
}

func FuzzReplace(f *testing.F) {
	f.Add("a\r\nb\r\n", "a\nb", "c\nd", true)
	f.Add("\r\n\r\n", "\n", "\n\n", false)
	f.Fuzz(func(t *testing.T, file, old, new string, all bool) {
		if old == "" {
			return
		}
		got, n, err := replacement{old: old, new: new, all: all}.apply([]byte(file))
		if err == nil && n == 0 {
			t.Fatal("replaced nothing without an error")
		}
		if err == nil && !strings.Contains(file+old+new, "\r") {
			if want := strings.Replace(file, old, new, n); want != string(got) {
				t.Fatalf("have %q, want %q", got, want)
			}
		}
	})
}

func BenchmarkDiffWorst(b *testing.B) {
	var old, new strings.Builder
	for i := 0; old.Len() < maxFineDiff/2-100; i++ {
		old.WriteString(strings.Repeat(string(rune('a'+i*7%26)), i%40) + "\n")
		new.WriteString(strings.Repeat(string(rune('a'+i*11%26)), i%37) + "\n")
	}
	for b.Loop() {
		unifiedDiff("f", old.String(), new.String(), true)
	}
}
