package config

import (
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pawl/engine/effect"
	"pawl/engine/machine"
)

const good = `[[tool]]
name = "deploy"
description = "Deploy a service."
command = ["./deploy.sh", "{service}", "--version={version}", "--mark={key}"]
class = "COMPENSABLE"
in_flight = "30s"
network = true
env = ["DEPLOY_TOKEN"]
reveal = [".config/deploy"]
approval = "policy"

[[tool.arg]]
name = "service"
enum = ["web", "api"]

[[tool.arg]]
name = "version"
description = "what to deploy"

[[tool.arg]]
name = "times"
type = "integer"
optional = true

[tool.probe]
command = ["./deploy.sh", "--show", "{service}"]
reads_own_writes = true
tested = true

[[tool.probe.answer]]
verdict = "happened"
codes = [0]
match = "^{version}$"

[[tool.probe.answer]]
verdict = "not_happened"
codes = [0]

[tool.compensate]
command = ["./deploy.sh", "--rollback", "{service}"]

[[http]]
name = "orders"
method = "POST"
url = "https://api.example.com/shops/{shop}/orders"
class = "KEYED"
key_header = "Idempotency-Key"
key_horizon = "1h"

[http.probe]
url = "{origin}/shops/{shop}/orders?ref={body_ref}"
baseline = false

[[http.probe.answer]]
verdict = "happened"
codes = [200]
match = '"ref":{body_ref|json}'

[http.compensate]
method = "DELETE"
url = "{origin}/shops/{shop}/orders/{key}"
`

// load reads text as the file of a configuration directory.
func load(t *testing.T, text string) Config {
	t.Helper()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "pawl"), 0o700); err != nil {
		t.Fatal(err)
	}
	if text != "" {
		if err := os.WriteFile(filepath.Join(dir, "pawl", "config.toml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return Load(Options{Getenv: env(map[string]string{"XDG_CONFIG_HOME": dir}), Reserved: []string{"shell"}})
}

func env(m map[string]string) func(string) string { return func(k string) string { return m[k] } }

func TestWholeConfiguration(t *testing.T) {
	c := load(t, good)
	if len(c.Problems) > 0 || len(c.Tools) != 1 || len(c.Requests) != 1 || c.Book == nil {
		t.Fatalf("%+v", c)
	}
	d := c.Tools[0]
	if d.Contract() != machine.ClassCompensable || d.Bound() != 30*time.Second || d.Version != 1 || strings.Join(d.Scalars(), " ") != "service times version" || d.Needs().Env[0] != "DEPLOY_TOKEN" {
		t.Errorf("%+v", d)
	}
	var schema struct {
		Required   []string
		Properties map[string]map[string]any
	}
	if err := json.Unmarshal(d.JSONSchema(), &schema); err != nil || strings.Join(schema.Required, " ") != "service version" ||
		schema.Properties["times"]["type"] != "integer" || schema.Properties["version"]["minLength"] != 1.0 {
		t.Errorf("%s %v", d.JSONSchema(), err)
	}
	r := c.Requests[0]
	if r.Contract() != machine.ClassKeyed || r.Bound() != 2*time.Minute || r.Horizon() != time.Hour {
		t.Errorf("%+v", r)
	}
}

func TestNoConfiguration(t *testing.T) {
	if c := load(t, ""); len(c.Problems) > 0 || len(c.Tools) > 0 || c.Book != effect.BuiltIn() || !strings.HasSuffix(c.Path, "pawl/config.toml") {
		t.Errorf("no file: %+v", c)
	}
	if c := Load(Options{Getenv: env(nil)}); len(c.Problems) > 0 || c.Path != "" || c.Book != effect.BuiltIn() {
		t.Errorf("no home: %+v", c)
	}
	home := t.TempDir()
	if c := Load(Options{Getenv: env(map[string]string{"HOME": home, "XDG_CONFIG_HOME": "relative"})}); c.Path != filepath.Join(home, ".config/pawl/config.toml") {
		t.Errorf("a relative directory counts: %s", c.Path)
	}
	for name, o := range map[string]Options{
		"named on the command line": {Path: filepath.Join(home, "none.toml"), Getenv: env(nil)},
		"named by the environment":  {Getenv: env(map[string]string{PathEnv: filepath.Join(home, "none.toml")})},
		"a folder":                  {Path: home, Getenv: env(nil)},
	} {
		c := Load(o)
		if len(c.Problems) != 1 || c.Problems[0].Next == "" || c.Problems[0].Kept == "" {
			t.Errorf("%s: %+v", name, c.Problems)
		}
	}
}

// What is wrong is named with its line; what is right beside it counts.
func TestFaultsOfAConfiguration(t *testing.T) {
	const tool = "[[tool]]\nname = \"a\"\ndescription = \"d\"\ncommand = [\"x\"]\n" // 4 lines
	const probe = "[tool.probe]\ncommand = [\"y\"]\n[[tool.probe.answer]]\nverdict = \"happened\"\ncodes = [0]\n"
	const undo = "[tool.compensate]\ncommand = [\"z\"]\n"
	const http = "[[http]]\nmethod = \"POST\"\nurl = \"https://h.example/x\"\n"
	for _, tt := range []struct {
		name, text string
		line       int
		want       string
	}{
		{"no TOML", "[[tool]\n", 2, "cannot be read"},
		{"an unknown key", tool + "clas = \"READ\"\n", 5, "did you mean class?"},
		{"an unknown table", "[themes]\nx = 1\n", 1, "no key themes"},
		{"no name", strings.Replace(tool, `"a"`, `"A b"`, 1), 2, "no name for a tool"},
		{"a name that is taken", strings.Replace(tool, `"a"`, `"shell"`, 1), 2, "there is a tool shell already"},
		{"twice the same", tool + tool, 6, "there is a tool a already"},
		{"no description", strings.Replace(tool, `"d"`, `" "`, 1), 3, "no description"},
		{"no command", strings.Replace(tool, "command = [\"x\"]\n", "", 1), 1, "runs nothing"},
		{"two commands", tool + "shell = \"y\"\n", 5, "runs two things"},
		{"an argument as program", strings.Replace(tool, `"x"`, `"{p}"`, 1) + "[[tool.arg]]\nname = \"p\"\n", 4, "program is not named"},
		{"a slot in a shell line", strings.Replace(tool, "command = [\"x\"]", "shell = \"rm {p}\"", 1) + "[[tool.arg]]\nname = \"p\"\n", 4, "no slots"},
		{"a slot without a value", strings.Replace(tool, `"x"`, `"x", "{p}"`, 1), 4, "{p} in command has no value"},
		{"a class that is none", tool + "class = \"SAFE\"\n", 5, "is no class"},
		{"PROBEABLE without a probe", tool + "class = \"PROBEABLE\"\n", 5, "no probe"},
		{"COMPENSABLE without a compensation", tool + "class = \"COMPENSABLE\"\n", 5, "no compensation"},
		{"KEYED without a key", tool + "class = \"KEYED\"\n", 5, "no key"},
		{"KEYED, and the key stays here", tool + "class = \"KEYED\"\nkey = \"{effect}\"\n", 4, "not passed on"},
		{"KEYED by always the same key", strings.Replace(tool, `"x"`, `"x", "{key}"`, 1) + "class = \"KEYED\"\nkey = \"one\"\n", 6, "always the same"},
		{"a key without KEYED", tool + "key = \"{effect}\"\n", 5, "not KEYED"},
		{"a horizon without a key", tool + "key_horizon = \"1h\"\n", 5, "no key"},
		{"WORKSPACE with the network", tool + "class = \"WORKSPACE\"\nnetwork = true\n", 6, "cannot be undone by a snapshot"},
		{"WORKSPACE in flight", tool + "class = \"WORKSPACE\"\nin_flight = \"1s\"\n", 6, "nothing is under way"},
		{"READ with a probe", tool + "class = \"READ\"\n" + probe, 6, "nothing outside to look at"},
		{"READ with a compensation", tool + "class = \"READ\"\n" + undo, 7, "nothing to compensate"},
		{"a compensation without a class", tool + undo, 6, "no class"},
		{"a tested probe without a bound", tool + "class = \"PROBEABLE\"\nnetwork = true\n" + strings.Replace(probe, "]\n[[", "]\ntested = true\nreads_own_writes = true\n[[", 1), 1, "no in-flight bound"},
		{"an approval that is none", tool + "approval = \"never\"\n", 5, "no kind of approval"},
		{"a variable with a value", tool + "env = [\"A=b\"]\n", 5, "no name of a variable"},
		{"a path from the root", tool + "reveal = [\"/etc\"]\n", 5, "below the home"},
		{"a socket by its name", tool + "sockets = [\"docker.sock\"]\n", 5, "no absolute path"},
		{"a code in two lists", tool + "before_effect = [3]\nproves_nothing = [3]\n", 5, "contradicts itself"},
		{"arguments given twice", tool + "schema = { type = \"object\" }\n[[tool.arg]]\nname = \"p\"\n", 5, "given twice"},
		{"a schema that is none", tool + "[tool.schema]\ntype = \"object\"\nproperties = 3\n", 5, "cannot be used"},
		{"a schema of a list", tool + "[tool.schema]\ntype = \"array\"\n", 5, "not one of an object"},
		{"an argument called key", tool + "[[tool.arg]]\nname = \"key\"\n", 6, "is taken"},
		{"an argument of no type", tool + "[[tool.arg]]\nname = \"p\"\ntype = \"list\"\n", 7, "no type"},
		{"two arguments of one name", tool + "[[tool.arg]]\nname = \"p\"\n[[tool.arg]]\nname = \"p\"\n", 8, "two arguments"},
		{"a header that cannot be sent", tool + "class = \"IRREVERSIBLE\"\n[tool.compensate]\nmethod = \"POST\"\nurl = \"https://h/\"\nheader = { \"A b\" = \"c\" }\n", 9, "cannot be sent"},
		{"a secret in what undoes it", tool + "class = \"IRREVERSIBLE\"\n[tool.compensate]\nmethod = \"POST\"\nurl = \"https://h/\"\nheader = { Authorization = \"${env:T}\" }\n", 9, "secrets are not put on record"},
		{"a refusal that is everything", tool + "proves_nothing = [1]\nrefused = [\"\"]\n", 6, "fits everything"},
		{"a refusal without a code", tool + "refused = [\"no\"]\n", 5, "no code that proves nothing"},
		{"a method that is none", strings.Replace(http, "POST", "SEND", 1), 2, "is no method"},
		{"a pattern that is no URL", strings.Replace(http, "https://", "", 1), 3, "cannot be used"},
		{"a slot for the host", strings.Replace(http, "h.example", "{h}.example", 1), 3, "host is named"},
		{"half a segment", strings.Replace(http, "/x", "/x{y}", 1), 3, "whole segment"},
		{"a query in the pattern", strings.Replace(http, "/x", "/x?a=b", 1), 3, "more than scheme"},
		{"KEYED without a header", http + "class = \"KEYED\"\n", 4, "no key_header"},
		{"a header without KEYED", http + "key_header = \"K\"\n", 1, "no class"},
		{"a header that is none", http + "class = \"KEYED\"\nkey_header = \"a b\"\n", 5, "no name of a header"},
		{"a request of class WORKSPACE", http + "class = \"WORKSPACE\"\n", 4, "never WORKSPACE"},
		{"a GET that is IRREVERSIBLE", strings.Replace(http, "POST", "GET", 1) + "class = \"IRREVERSIBLE\"\n", 4, "only look"},
		{"a probe at another host", http + "class = \"PROBEABLE\"\n[http.probe]\nurl = \"https://{x}/\"\n", 6, "host is named"},
		{"a request's compensation without a class", http + "[http.compensate]\nurl = \"{origin}/y\"\nmethod = \"DELETE\"\n", 4, "no class"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := load(t, tt.text)
			var all []string
			found := false
			for _, p := range c.Problems {
				all = append(all, p.Error())
				if p.What == "" || p.Next == "" || p.Kept == "" {
					t.Errorf("a part is missing: %+v", p)
				}
				found = found || strings.Contains(p.Error(), tt.want) && p.Line == tt.line
			}
			if !found {
				t.Errorf("no fault on line %d says %q:\n%s", tt.line, tt.want, strings.Join(all, "\n"))
			}
			if len(c.Tools) > 0 && tt.name != "twice the same" || len(c.Requests) > 0 {
				t.Errorf("it is taken: %+v %+v", c.Tools, c.Requests)
			}
			// The whole file beside it stays right, unless it cannot be read at all.
			if both := load(t, good+tt.text); len(both.Tools) == 0 && len(both.Problems) > 0 && !strings.Contains(both.Problems[0].Kept, "defaults") {
				t.Errorf("what is right was left out, too: %v", both.Problems)
			}
		})
	}
}

func TestRequestsAreRecognised(t *testing.T) {
	r := load(t, good).Requests[0]
	for in, want := range map[string]bool{
		"POST https://api.example.com/shops/s1/orders":              true,
		"POST https://API.example.com:443/shops/s1/orders?x=1":      true,
		"PUT https://api.example.com/shops/s1/orders":               false,
		"POST http://api.example.com/shops/s1/orders":               false,
		"POST https://api.example.com:8443/shops/s1/orders":         false,
		"POST https://api.example.com/shops/s1/orders/":             false,
		"POST https://api.example.com/shops//orders":                false,
		"POST https://api.example.com/shops/../orders":              false,
		"POST https://api.example.com/shops/a%2Fb/orders":           false,
		"POST https://api.example.com/x/shops/s1/orders":            false,
		"POST https://api.example.com.evil.example/shops/s1/orders": false,
	} {
		method, raw, _ := strings.Cut(in, " ")
		u, err := url.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		v, ok := r.Vars(method, u, `{"ref": "r 1", "n": 2.5, "list": [1], "deep": {"x": 1}}`)
		if ok != want {
			t.Errorf("%s: %v", in, ok)
		}
		if ok && (v["shop"] != "s1" || v["body_ref"] != "r 1" || v["body_n"] != "2.5" || v["body_list"] != "" || v["origin"] != "https://api.example.com") {
			t.Errorf("%s: %v", in, v)
		}
	}
}

// No names of tools in a file can make two tools of one name.
func TestReservedNames(t *testing.T) {
	c := load(t, good+strings.ReplaceAll(good[:strings.Index(good, "[[http]]")], "deploy\"", "other\""))
	var names []string
	for _, d := range c.Tools {
		names = append(names, d.Name)
	}
	if !slices.Equal(names, []string{"deploy", "other"}) {
		t.Errorf("%v %v", names, c.Problems)
	}
}
