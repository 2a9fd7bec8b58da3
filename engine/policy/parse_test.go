package policy

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// names renders the simple commands of a line for comparison.
func names(c Commands) []string {
	var out []string
	for _, s := range c.Simple {
		t := strings.Join(s.Words, " ")
		if len(s.Wrapper) > 0 {
			t = strings.Join(s.Wrapper, ">") + ": " + t
		}
		if s.Open {
			t += " …"
		}
		out = append(out, t)
	}
	return out
}

func TestParseFindsEveryCommand(t *testing.T) {
	for _, tt := range []struct {
		line string
		want []string
	}{
		{`git status`, []string{"git status"}},
		{`a; b && c || d | e & f`, []string{"a", "b", "c", "d", "e", "f"}},
		{"a\nb", []string{"a", "b"}},
		{`a $(b "$(c)")`, []string{`a $(b "$(c)")`, `b "$(c)"`, "c"}},
		{`(a; { b; })`, []string{"a", "b"}},
		{`if a; then b; elif c; then d; else e; fi`, []string{"a", "b", "c", "d", "e"}},
		{`for x in 1 $(a); do b; done`, []string{"a", "b"}},
		{`while a; do b; done < <(c)`, []string{"", "a", "b", "c"}},
		{`case $(a) in x) b;; *) c;; esac`, []string{"a", "b", "c"}},
		{`f() { a; }; f`, []string{"a", "f"}},
		{"cat <<EOF\n$(a)\nEOF", []string{"cat", "a"}},
		{"cat <<'EOF'\n$(a)\nEOF", []string{"cat"}},
		{`diff <(a) >(b)`, []string{"diff <(a) >(b)", "a", "b"}},
		{`x=$(a) b`, []string{"b", "a"}},
		{`x=$(a)`, []string{"", "a"}},
		{`export X=$(a)`, []string{"export X=$(a)", "a"}},
		{`[ -f "$(a)" ]`, []string{`[ -f "$(a)" ]`, "a"}},
		{`[[ -f $(a) ]]`, []string{"a"}},
		{`echo $((1 + $(a)))`, []string{"echo $((1 + $(a)))", "a"}},
		{`env a b`, []string{"env a b", "env: a b"}},
		{`env -i -u HOME X=1 a b`, []string{"env -i -u HOME X=1 a b", "env: a b"}},
		{`env env a`, []string{"env env a", "env: env a", "env>env: a"}},
		{`sh -c 'a; b'`, []string{"sh -c a; b", "sh: a", "sh: b"}},
		{`bash -ec 'a'`, []string{"bash -ec a", "bash: a"}},
		{`bash -o pipefail -c a`, []string{"bash -o pipefail -c a", "bash: a"}},
		{`/bin/sh -c "sh -c 'a'"`, []string{"/bin/sh -c sh -c 'a'", "sh: sh -c a", "sh>sh: a"}},
		{"sh <<'EOF'\na\nEOF", []string{"sh", "sh: a"}},
		{`sh <<< a`, []string{"sh", "sh: a"}},
		{`xargs -n 1 -0 a b`, []string{"xargs -n 1 -0 a b", "xargs: a b …"}},
		{`xargs -I{} sh -c 'a {}'`, []string{"xargs -I{} sh -c a {}", "xargs: sh -c a {} …", "xargs>sh: a {}"}},
		{`find . -name x -exec a {} \; -exec b {} +`, []string{`find . -name x -exec a {} ; -exec b {} +`, "find: a {} …", "find: b {} …"}},
		{`sudo -u root -- a b`, []string{"sudo -u root -- a b", "sudo: a b"}},
		{`timeout -k 5 10s a b`, []string{"timeout -k 5 10s a b", "timeout: a b"}},
		{`timeout --signal=KILL 10s a`, []string{"timeout --signal=KILL 10s a", "timeout: a"}},
		{`nohup a &`, []string{"nohup a", "nohup: a"}},
		{`command a`, []string{"command a", "command: a"}},
		{`command -v a`, []string{"command -v a"}},
		{`exec a`, []string{"exec a", "exec: a"}},
		{`time a`, []string{"a"}},
		{`/usr/bin/time -v a`, []string{"/usr/bin/time -v a", "time: a"}},
		{`nice -10 a`, []string{"nice -10 a", "nice: a"}},
		{`nice -n 5 a`, []string{"nice -n 5 a", "nice: a"}},
		{`eval 'a; b'`, []string{"eval a; b", "eval: a", "eval: b"}},
		{`trap 'a' EXIT`, []string{"trap a EXIT", "trap: a"}},
		{`flock /tmp/l -c 'a; b'`, []string{"flock /tmp/l -c a; b", "flock: a", "flock: b"}},
		{`su -c 'a' bob`, []string{"su -c a bob", "su: a"}},
		{`busybox sh -c a`, []string{"busybox sh -c a", "busybox: sh -c a", "busybox>sh: a"}},
		{`sudo env X=1 nice sh -c 'timeout 5 a'`, []string{
			"sudo env X=1 nice sh -c timeout 5 a", "sudo: env X=1 nice sh -c timeout 5 a",
			"sudo>env: nice sh -c timeout 5 a", "sudo>env>nice: sh -c timeout 5 a",
			"sudo>env>nice>sh: timeout 5 a", "sudo>env>nice>sh>timeout: a",
		}},
	} {
		c, err := Parse(tt.line)
		if err != nil {
			t.Errorf("%q: %v", tt.line, err)
			continue
		}
		if got := names(c); !slices.Equal(got, tt.want) {
			t.Errorf("%q:\n got %q\nwant %q", tt.line, got, tt.want)
		}
	}
}

func TestParseUnquotesLikeTheShell(t *testing.T) {
	for line, want := range map[string]string{
		`a 'b c' "d e" f\ g`:       "a|b c|d e|f g",
		`a "x\"y" 'x\"y' x\"y`:     `a|x"y|x\"y|x"y`,
		`a "\z" "\\" "\$x"`:        `a|\z|\|$x`,
		"a b\\\nc":                 "a|bc",
		"a \"b\\\nc\"":             "a|bc",
		`a ''`:                     "a|",
		`a b''c"d"'e'`:             "a|bcde",
		`a '*' "?" \[`:             "a|*|?|[",
		`git show HEAD~1 HEAD@{1}`: "git|show|HEAD~1|HEAD@{1}",
		`a ';' '&&' "|" '$(x)'`:    "a|;|&&|||$(x)",
		`a x=y:z`:                  "a|x=y:z",
		`[ a = b ]`:                "[|a|=|b|]",
		`a {} {b} a,b`:             "a|{}|{b}|a,b",
	} {
		c, err := Parse(line)
		if err != nil || !c.Whole {
			t.Errorf("%q: whole %v, err %v, %q", line, c.Whole, err, c.Unresolved)
			continue
		}
		if got := strings.Join(c.Simple[0].Words, "|"); got != want {
			t.Errorf("%q: got %q, want %q", line, got, want)
		}
	}
}

func TestParseIsNotWhole(t *testing.T) {
	for _, line := range []string{
		"", "   ", "# comment", "a; b", "a &", "! a", "a > f", "a 2>&1", "x=1 a", "x=1", "(a)", "{ a; }",
		"a $x", "a ${x}", `a "$x"`, "a $(b)", "a `b`", "a *", "a ?", "a [ab]", "a {b,c}", "a {1..3}", `a {"b",c}`,
		"a ~", "a ~/x", "a b=~/x", "a b:~/x", "a $'x'", `a $"x"`, "a <(b)", "time a", "[[ a ]]", "((1))",
		"export A=b", "a <<E\nE", "a <<< b", "a &> f", "$a", "if a; then b; fi", "a |& b", "a @(b|c)",
		"a 'b", "a )", "a\x00b", "a \x1b[2K", "a \xff", "a\r", "let x=1", "a <> f", "f() { a; }",
	} {
		if c, _ := Parse(line); c.Whole {
			t.Errorf("%q counts as whole: %+v", line, c.Simple)
		}
	}
}

func TestParseSaysWhatIsUnresolved(t *testing.T) {
	for line, want := range map[string]string{
		`$a b`:                           "the program is not literal",
		`a $b`:                           "a word is not literal: $b",
		`a > $b`:                         "the target of a redirection",
		`a | sh`:                         "sh: runs what it reads",
		`sh x.sh`:                        "sh: runs what a file holds: x.sh",
		`sh -c "$x"`:                     "sh: the text that it runs is not literal",
		`sh -c`:                          "sh: -c without a text",
		`sh -c '('`:                      "sh: the line cannot be read",
		`eval $x`:                        "eval: what it runs is not literal",
		`env -S 'a b'`:                   "env: the option -S",
		`. ./env.sh`:                     ".: runs what a file holds",
		`xargs a`:                        "only its input knows",
		`find . -exec a {} \;`:           "only the run time knows",
		`find . -exec \;`:                "find: -exec without a command",
		`f() { a; }`:                     "defines a function",
		"a `b`":                          "backquotes",
		`sudo -i`:                        "sudo: the option -i",
		`sudo -u bob`:                    "sudo: no command is given",
		`su bob`:                         "su: starts a shell",
		"a 'b":                           "cannot be read as shell",
		"a\x00":                          "control character 0x00",
		"a \x1b[2K b":                    "control character 0x1b",
		"a \xff":                         "not valid UTF-8",
		strings.Repeat("a", 1e6):         "longer than 64 KiB",
		strings.Repeat("(", 5e3):         "nests too deeply",
		"cat <<E | sh\n$x\nE\n":          "sh: runs what it reads",
		strings.Repeat("env ", 40) + "a": "more than 16 wrappers",
	} {
		c, _ := Parse(line)
		if !slices.ContainsFunc(c.Unresolved, func(u string) bool { return strings.Contains(u, want) }) {
			t.Errorf("%.60q: %q does not mention %q", line, c.Unresolved, want)
		}
	}
	for _, line := range []string{"git status", "a; b", "env a", "sh -c 'a; b'", "a > f", "echo 'x' | cat", "command -v go"} {
		if c, err := Parse(line); err != nil || len(c.Unresolved) > 0 {
			t.Errorf("%q: %v %q", line, err, c.Unresolved)
		}
	}
}

func TestParseRedirects(t *testing.T) {
	c, err := Parse("a >out 2>>log <in 3>&1 >&both")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range c.Simple[0].Redirects {
		got = append(got, fmt.Sprintf("%s%s%s %v", r.N, r.Op, r.Target, r.Writes()))
	}
	want := []string{">out true", "2>>log true", "<in false", "3>&1 false", ">&both true"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Lines of a megabyte and lines that nest come back in bounded time.
func TestParseIsBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("parses many long lines")
	}
	for _, unit := range []string{"(", "{ ", "$(", "a|", "a&&", "! ", "`", "if a;then ", "$((", "$((-", "-", "${a:-", "<(", "a;", "a 'b' ", "env ", "eval ", "\n", "<<E ", "a\\", "\"", "sh -c "} {
		for _, size := range []int{maxLine, 1 << 20} {
			line := strings.Repeat(unit, size/len(unit))
			start := time.Now()
			c, err := Parse(line)
			if err == nil && len(c.Simple) > maxSimple {
				t.Errorf("%q: %d commands", unit, len(c.Simple))
			}
			if d := time.Since(start); d > 10*time.Second {
				t.Errorf("%q × %d took %v", unit, size/len(unit), d)
			}
		}
	}
	c, err := Parse("echo $((" + strings.Repeat("- ", 30000) + "1))")
	if c.Whole || err != nil && len(c.Unresolved) == 0 {
		t.Error("a deep expression counts as whole")
	}
}

// A quoted list of words is always one whole command of just these words.
func TestJoinRoundTrips(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.StringMatching(`[ -~äπ]{0,12}`), 1, 6).Draw(t, "words")
		c, err := Parse("cmd " + Join(words))
		if err != nil || !c.Whole {
			t.Fatalf("%q: %v %q", Join(words), err, c.Unresolved)
		}
		if !slices.Equal(c.Simple[0].Words[1:], words) {
			t.Fatalf("%q became %q", words, c.Simple[0].Words[1:])
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"git status", "a; b", "a $(b `c`)", "sh -c 'sh -c \"a\"'", "find . -exec a {} +", "cat <<E\n$(a)\nE", "a\x00", "\xff",
		"env -u A B=c d", "xargs -I{} a", "flock f -c 'a'", "[[ a ]]", "((1))", "a=(b c)", "coproc a", "{ a", "f() { f; }", "sh <<< x", "timeout", "env -",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		c, err := Parse(line)
		if err != nil && (c.Whole || len(c.Unresolved) == 0) {
			t.Fatalf("an error leaves the line whole or resolved: %v", err)
		}
		for _, s := range c.Simple {
			for _, o := range s.Opaque {
				if o < 0 || o >= len(s.Words) {
					t.Fatalf("opaque word %d of %d", o, len(s.Words))
				}
			}
			if len(s.Wrapper) > maxWrapped*maxNested {
				t.Fatalf("%d wrappers", len(s.Wrapper))
			}
		}
		if c.Whole {
			if len(c.Simple) == 0 || !c.Simple[0].Literal() {
				t.Fatal("whole without literal words")
			}
			again, err := Parse(Join(c.Simple[0].Words))
			if err == nil && again.Whole && !slices.Equal(again.Simple[0].Words, c.Simple[0].Words) {
				t.Fatalf("%q reads differently when quoted: %q", c.Simple[0].Words, again.Simple[0].Words)
			}
		}
		Decide([]string{"git status"}, Subject{Tool: "shell", Line: line, Commands: &c})
		Offer(Subject{Tool: "shell", Line: line, Commands: &c})
	})
}

func BenchmarkParse(b *testing.B) {
	for b.Loop() {
		if c, err := Parse(`git commit -m "fix: retry; twice" --author='A <a@b>'`); err != nil || !c.Whole {
			b.Fatal(err)
		}
	}
}
