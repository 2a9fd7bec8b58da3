package tool

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestSpecsAreProductText(t *testing.T) {
	var b bytes.Buffer
	for _, s := range All(Options{}).Specs() {
		fmt.Fprintf(&b, "## %s (version %d)\n\n%s\n\n", s.Name, s.Version, s.Description)
		if err := json.Indent(&b, s.Schema, "", "  "); err != nil {
			t.Fatal(err)
		}
		b.WriteString("\n\n")
	}
	const file = "testdata/specs.golden"
	if *update {
		if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, b.Bytes()) {
		t.Errorf("the descriptions differ from %s; if that is meant, raise the tool's version and run the test with -update:\n%s",
			file, unifiedDiff(file, string(want), b.String(), true))
	}
}

func TestMoreTools(t *testing.T) {
	extra := &internalTool{spec: Spec{Name: "extra", Version: 1, Schema: schema(`{"type":"object"}`)}}
	s := All(Options{More: []Tool{extra}})
	if s.Get("extra") != Tool(extra) || s.Get("shell") == nil || s.Names()[len(s.Names())-1] != "extra" {
		t.Error(s.Names())
	}
	if _, err := s.Validate("extra", `{"any":1}`); err != nil {
		t.Error(err)
	}
	if _, err := newSet(&readFile{}, &readFile{}); err == nil {
		t.Error("two tools share a name")
	}
}

// B54: an unknown tool or a wrong schema gives one clear sentence to act on.
func TestValidateNamesWhatIsWrong(t *testing.T) {
	s := All(Options{})
	for _, c := range []struct {
		tool, raw string
		want      []string
	}{
		{"read", `{}`, []string{`There is no tool "read"`, "read_file", "finish"}},
		{"Read-File", `{}`, []string{"You may mean read_file."}},
		{"x\x1b[2J" + strings.Repeat("y", 500), `{}`, []string{`\x1b[2J`, "…"}},
		{"read_file", `{}`, []string{`"path" is missing`, "It takes path and optionally offset, limit."}},
		{"read_file", ``, []string{`"path" is missing`}},
		{"read_file", `{"path":3}`, []string{`"path" must be a string, not a number`}},
		{"read_file", `{"path":"a","offset":0}`, []string{`"offset" must be at least 1`}},
		{"read_file", `{"path":"a","offset":"1"}`, []string{`"offset" must be an integer, not a string`}},
		{"read_file", `{"path":"a","limit":99999}`, []string{`"limit" must be at most 20000`}},
		{"read_file", `{"file":"a"}`, []string{`there is no argument "file"`, `"path" is missing`}},
		{"read_file", `{"path":"a"`, []string{"not valid JSON", "too early"}},
		{"read_file", `{broken`, []string{"not valid JSON"}},
		{"read_file", `["a"]`, []string{"not a JSON object"}},
		{"read_file", `{"path":"a"} {"path":"b"}`, []string{"text behind the closing brace"}},
		{"read_file", `{"path":"a","path":"b"}`, []string{`the key "path" is given twice`}},
		{"read_file", "{\"path\":\"\xff\"}", []string{"not valid UTF-8"}},
		{"read_file", `{"path":"\ud800"}`, []string{"half a surrogate pair"}},
		{"read_file", `{"path":"\udc00x"}`, []string{"half a surrogate pair"}},
		{"read_file", `{"path":""}`, []string{`"path" must not be empty`}},
		{"http_request", `{"method":"get","url":"http://x"}`, []string{`"method" must be one of`, `"GET"`, `not "get"`}},
		{"update_plan", `{"items":[{"text":"a","state":"todo"},{"text":"","state":"later"}]}`, []string{`"items[1].text" must not be empty`, `"items[1].state" must be one of "todo"`}},
		{"ask_operator", `{"question":"q","choices":["a","a"]}`, []string{`"choices" holds the same entry twice`}},
		{"shell", `{"command":"x","timeout_s":1e99}`, []string{`"timeout_s"`}},
		{"read_evidence", `{"handle":"0123abcd","offset":1e999}`, []string{"out of range"}},
		{"shell", `{"command":"x","timeout_s":1.5}`, []string{`"timeout_s" must be an integer`}},
	} {
		_, err := s.Validate(c.tool, c.raw)
		var ae *ArgError
		if !errors.As(err, &ae) {
			t.Errorf("%s %s: no refusal but %v", c.tool, c.raw, err)
			continue
		}
		wantText(t, ae.Text, c.want...)
		if strings.ContainsAny(ae.Text, "\n\x1b") {
			t.Errorf("%s %s: not one clean line: %q", c.tool, c.raw, ae.Text)
		}
	}
}

func TestValidateDeepNesting(t *testing.T) {
	raw := strings.Repeat(`{"a":`, 100000) + "1" + strings.Repeat("}", 100000)
	_, err := All(Options{}).Validate("read_file", raw)
	if err == nil {
		t.Fatal("accepted")
	}
	wantText(t, err.Error(), "nest deeper")
}

func TestCanonicalIsOneSpelling(t *testing.T) {
	s := All(Options{})
	want := `{"limit":20,"offset":1,"path":"a/ü<&>\n"}`
	for _, raw := range []string{
		`{"path":"a/ü<&>\n","offset":1,"limit":20}`,
		` { "limit" : 2e1 , "path":"a\/\u00fc\u003c&>\u000a","offset": 1.0 } `,
		"{\"offset\":10e-1,\t\"limit\":20.00,\"path\":\"a/ü<&>\\n\"}",
	} {
		got, err := s.Validate("read_file", raw)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != want {
			t.Errorf("%s\n gives %s\n  want %s", raw, got, want)
		}
	}
	got, err := s.Validate("list_dir", `{"path":null,"depth":null}`)
	if err != nil || string(got) != "{}" {
		t.Errorf("null for what is optional: %s, %v", got, err)
	}
	if _, err := s.Validate("read_file", `{"path":null}`); err == nil {
		t.Error("null for what is needed is accepted")
	}
	pair, err := s.Validate("read_file", `{"path":"\ud83d\ude00 \\ud800"}`)
	if err != nil || string(pair) != `{"path":"😀 \\ud800"}` {
		t.Errorf("a surrogate pair: %s, %v", pair, err)
	}
}

// Canonical bytes mean what the raw ones meant, and are their own canonical form.
func TestCanonicalKeepsTheMeaning(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := map[string]any{}
		for range rapid.IntRange(0, 5).Draw(t, "n") {
			k := rapid.String().Draw(t, "key")
			v[strings.ToValidUTF8(k, "?")] = rapid.OneOf(
				rapid.Map(rapid.String(), func(s string) any { return strings.ToValidUTF8(s, "?") }),
				rapid.Map(rapid.Int32(), func(i int32) any { return float64(i) }),
				rapid.Map(rapid.Float64Range(-1e20, 1e20), func(f float64) any { return f }),
				rapid.Map(rapid.Bool(), func(b bool) any { return b }),
				rapid.Just[any](nil),
				rapid.Just[any]([]any{"x", map[string]any{"b": 1.5, "a": true}}),
			).Draw(t, "value")
		}
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		c, err := Canonical(string(raw))
		if err != nil {
			t.Fatalf("%s: %v", raw, err)
		}
		var back map[string]any
		if err := json.Unmarshal(c, &back); err != nil {
			t.Fatalf("%s: %v", c, err)
		}
		if !reflect.DeepEqual(v, back) {
			t.Fatalf("%s became %s", raw, c)
		}
		again, err := Canonical(string(c))
		if err != nil || string(again) != string(c) {
			t.Fatalf("%s is not its own canonical form: %s, %v", c, again, err)
		}
	})
}

func FuzzCanonical(f *testing.F) {
	for _, s := range []string{`{}`, `{"a":[1,2.5e3,{"b":null}]}`, `{"\ud83d\ude00":"\u0000"}`, `{"a":1e400}`, "{\"a\":\"\xff\"}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		c, err := Canonical(raw)
		if err != nil {
			return
		}
		again, err := Canonical(string(c))
		if err != nil || string(again) != string(c) {
			t.Fatalf("%q gives %q, which gives %q, %v", raw, c, again, err)
		}
	})
}
