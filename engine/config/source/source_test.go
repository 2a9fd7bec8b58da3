package source_test

import (
	"strings"
	"testing"

	"pawl/engine/config/source"
)

type doc struct {
	Name  string          `toml:"name"`
	Wait  source.Duration `toml:"wait"`
	Codes source.Codes    `toml:"codes"`
	Entry []entry         `toml:"entry"`
	Inner struct {
		Deep map[string]entry `toml:"deep"`
	} `toml:"inner"`
}

type entry struct {
	Command []string `toml:"command"`
	Class   string   `toml:"class"`
	Sub     *struct {
		Key string `toml:"key"`
	} `toml:"sub"`
}

func TestFaultsNameTheirLine(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		line       int
		want       []string
	}{
		{"no TOML", "name = \"a\"\nwait = = 3\n", 2, []string{"cannot be read"}},
		{"not closed", "name = \"a\n", 1, []string{"cannot be read"}},
		{"wrong type", "name = 3\n", 1, []string{"name"}},
		{"a span that is none", "name = \"a\"\nwait = \"soon\"\n", 2, []string{"soon", "90s"}},
		{"a negative span", "wait = \"-3s\"\n", 1, []string{"negative"}},
		{"codes that are none", "\n\ncodes = [true]\n", 3, []string{"neither a number nor a word"}},
		{"an unknown key", "name = \"a\"\nnmae = \"b\"\n", 2, []string{"no key nmae", "did you mean name?"}},
		{"an unknown key of an entry", "[[entry]]\ncommand = []\n[[entry]]\ncomand = []\n", 4, []string{"entry.comand", "did you mean command?"}},
		{"an unknown key further down", "[[entry]]\n[entry.sub]\nkee = 1\n", 3, []string{"entry.sub.kee", "did you mean key?"}},
		{"in a table of tables", "[inner.deep.x]\nclazz = \"\"\n", 2, []string{"did you mean class?"}},
		{"an unknown table", "name = \"a\"\n\n[colours]\nred = 1\nblue = 2\n", 3, []string{"no key colours", "codes, entry, inner, name, wait"}},
		{"a string that looks like keys", "name = \"\"\"\nnmae = 1\n\"\"\"\nnmae = 2\n", 4, []string{"no key nmae"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var d doc
			_, faults := source.Read("f.toml", []byte(tt.text), &d)
			if len(faults) != 1 {
				t.Fatalf("%d faults: %v", len(faults), faults)
			}
			f := faults[0]
			if f.Line != tt.line || f.File != "f.toml" || f.Next == "" || f.Why == "" {
				t.Errorf("line %d, want %d: %+v", f.Line, tt.line, f)
			}
			for _, w := range tt.want {
				if !strings.Contains(f.Error(), w) {
					t.Errorf("%q is not in %q", w, f)
				}
			}
		})
	}
}

func TestLinesOfEntries(t *testing.T) {
	var d doc
	text, faults := source.Read("f.toml", []byte(`name = "x"
codes = [0, "reset"]
[[entry]]
class = "A"
[entry.sub]
key = "1"

[[entry]]
command = [
  "a = b",
]
[entry.sub]
key = "2"
`), &d)
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	if d.Codes[0] != "0" || d.Codes[1] != "reset" {
		t.Errorf("codes %v", d.Codes)
	}
	for want, path := range map[int][]any{
		1:  {"name"},
		3:  {"entry", 0},
		4:  {"entry", 0, "class"},
		6:  {"entry", 0, "sub", "key"},
		8:  {"entry", 1, "class"}, // not there: the entry is blamed
		9:  {"entry", 1, "command"},
		13: {"entry", 1, "sub", "key"},
		0:  {"nothing"},
	} {
		if have := text.Line(path...); have != want {
			t.Errorf("%v stands on line %d, want %d", path, have, want)
		}
	}
}

func TestNearest(t *testing.T) {
	known := []string{"class", "command", "compensate", "in_flight"}
	for word, want := range map[string]string{
		"clas": "class", "Command": "command", "in-flight": "in_flight", "inflight": "in_flight", "colour": "", "x": "",
	} {
		if have := source.Nearest(word, known); have != want {
			t.Errorf("%q: %q, want %q", word, have, want)
		}
	}
}
