package scripted

import (
	"errors"
	"strings"
	"testing"
)

func mustParse(t *testing.T, text string) *Script {
	t.Helper()
	s, err := Parse("test.toml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestParseReadsEveryKey(t *testing.T) {
	s := mustParse(t, `
name = "all"
[[step]]
label = "start"
expect = ["a"]
reject = ["b"]
say = "hello"
delay_ms = 5
stop = "length"
repeat = 3
cost_usd = 0.02
[[step.call]]
tool = "shell"
id = "x1"
args = { command = "ls", deep = { list = ["{{env.A}}", 1, true], tables = [{ k = "v" }] } }
[[step.call]]
tool = "shell"
raw = "{broken"
[[step.branch]]
match = ["FAIL"]
say = "again"
goto = "start"
fail = "rate_limit"
fail_times = 2
retry_after_ms = 2000
[[step.branch.call]]
tool = "read_file"
args = { path = "x" }
[[step]]
repeat_until = ["done"]
say = "poll"
`)
	if s.Name != "all" || s.Len() != 2 {
		t.Fatalf("name %q, %d steps", s.Name, s.Len())
	}
	st := s.steps[0]
	if st.line != 3 || st.label != "start" || st.repeat != 3 || st.own.cost != 20_000 || st.own.stop != "length" || len(st.own.calls) != 2 {
		t.Errorf("step 1 read as %+v", st)
	}
	if b := st.branches[0]; b.next != 0 || b.fail != "rate_limit" || b.failTimes != 2 || b.retryAfter.Seconds() != 2 || b.calls[0].tool != "read_file" {
		t.Errorf("branch read as %+v", b)
	}
	if s.steps[1].repeat != maxRepeat {
		t.Errorf("repeat_until without repeat is bounded by %d, want %d", s.steps[1].repeat, maxRepeat)
	}
}

func TestParseErrorsNameFileLineAndMend(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"syntax", "name = \"x\"\n[[step]\n", "line 3: expected end of table array"},
		{"wrong type", "[[step]]\nsay = 3\n", "line 2"},
		{"unknown key", "[[step]]\nsay = \"a\"\nexpct = [\"b\"]\n", `line 3: "step.expct" is no key of a script`},
		{"unknown table", "[[step]]\nsay = \"a\"\n[[step.cal]]\ntool = \"x\"\n", `line 3: "step.cal" is no key`},
		{"no step", "name = \"x\"\n", "it has no step"},
		{"empty step", "[[step]]\nsay=\"a\"\n\n[[step]]\nlabel = \"z\"\n", "line 4: step 2: it says nothing and calls nothing"},
		{"unknown label", "[[step]]\nsay=\"a\"\ngoto=\"nowhere\"\n", `line 1: step 1: ` + "`goto`" + ` names the label "nowhere"`},
		{"label twice", "[[step]]\nlabel=\"l\"\nsay=\"a\"\n[[step]]\nlabel=\"l\"\nsay=\"b\"\n", "line 4: step 2 has the label \"l\", which step 1 has already"},
		{"bad stop", "[[step]]\nsay=\"a\"\nstop=\"now\"\n", "Use one of end, tools, length, refusal"},
		{"bad fail", "[[step]]\nsay=\"a\"\nfail=\"boom\"\n", "Use one of cut, rate_limit"},
		{"fail_at alone", "[[step]]\nsay=\"a\"\nfail_at=\"text\"\n", "mean nothing without `fail`"},
		{"fail_at args without call", "[[step]]\nsay=\"a\"\nfail=\"cut\"\nfail_at=\"args\"\n", "there is no call"},
		{"raw and args", "[[step]]\n[[step.call]]\ntool=\"a\"\nraw=\"x\"\nargs={}\n", "both `raw` and `args`"},
		{"repeat", "[[step]]\nsay=\"a\"\nrepeat=0\n", "`repeat` is 0"},
		{"branch without match", "[[step]]\nsay=\"a\"\n[[step.branch]]\nsay=\"b\"\n", "branch 1 has no `match`"},
		{"bad regexp", "[[step]]\nsay=\"{{last:(}}\"\n", "regular expression"},
		{"regexp without group", "[[step]]\n[[step.call]]\ntool=\"a\"\nargs={x=[\"{{last:abc}}\"]}\n", "has no group"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Parse("bad.toml", []byte(c.text))
			var pe *ParseError
			if !errors.As(err, &pe) {
				t.Fatalf("err = %v, want a *ParseError", err)
			}
			if !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "bad.toml") {
				t.Errorf("message %q lacks %q or the file's name", err, c.want)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("[[step]]\nsay = \"a\"\n"))
	f.Add([]byte("[[step]]\nsay = \"{{last:(a{2}}}{{env.X}}\"\n[[step.branch]]\nmatch=[\"a\"]\ngoto=\"x\"\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := Parse("f.toml", b)
		if (s == nil) == (err == nil) {
			t.Fatalf("script %v and error %v", s, err)
		}
	})
}
