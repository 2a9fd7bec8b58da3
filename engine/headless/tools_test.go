package headless

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pawl/engine/tool"
)

const checkedTools = `[[tool]]
name = "deploy"
description = "Deploy a service. It takes a while."
command = ["./deploy", "{service}", "--times={times}"]
class = "COMPENSABLE"
arg = [ { name = "service" }, { name = "times", type = "integer" } ]
[tool.probe]
command = ["grep", "-qx", "{service}", "deployed"]
reads_own_writes = true
tested = true
baseline = false
[[tool.probe.answer]]
verdict = "happened"
codes = [0]
[[tool.probe.answer]]
verdict = "not_happened"
codes = [1]
[tool.compensate]
command = ["./deploy", "--undo", "{service}"]

[[tool]]
name = "liar"
description = "Its probe says yes to everything."
command = ["true"]
class = "PROBEABLE"
[tool.probe]
command = ["true"]
baseline = false
[[tool.probe.answer]]
verdict = "happened"
codes = [0]

[[tool]]
name = "blind"
description = "Its probe is missing."
command = ["true"]
class = "PROBEABLE"
[tool.probe]
command = ["no-such-program-here"]
reads_own_writes = true
tested = true
[[tool.probe.answer]]
verdict = "happened"
codes = [0]
[[tool.probe.answer]]
verdict = "not_happened"
codes = [1]

[[tool]]
name = "picky"
description = "It takes only ids."
command = ["true", "{id}"]
arg = [ { name = "id", pattern = "^ID-[0-9]+$" } ]

[[http]]
name = "orders"
method = "POST"
url = "https://api.example.com/orders"
`

func TestToolsAreListed(t *testing.T) {
	t.Parallel()
	p := newPawl(t)
	config := p.write("config.toml", checkedTools)
	rows := p.do("tools", "--json", "--config", config).want(ExitDone).objects()
	seen := map[string]map[string]any{}
	for _, r := range rows {
		for _, key := range []string{"name", "class", "probe", "compensate", "source"} {
			if _, ok := r[key]; !ok {
				t.Errorf("%v has no %s", r, key)
			}
		}
		if r["class"] == "" {
			t.Errorf("%v has no class", r["name"])
		}
		seen[r["name"].(string)] = r
	}
	for _, name := range tool.BuiltInNames() {
		if name != "land" && name != "adopt" && seen[name]["source"] != "built in" {
			t.Errorf("%s is not listed", name)
		}
	}
	if r := seen["deploy"]; r["source"] != config || r["class"] != "COMPENSABLE" || r["probe"] != "grep -qx {service} deployed" || r["compensate"] != "./deploy --undo {service}" {
		t.Errorf("%v", r)
	}
	if r := seen["picky"]; r["class"] != "IRREVERSIBLE" {
		t.Errorf("undeclared: %v", r)
	}
	if r := seen["http_request POST https://api.example.com/orders"]; r["class"] != "IRREVERSIBLE" || r["about"] != "orders" {
		t.Errorf("%v", r)
	}
	p.do("tools", "--config", config).want(ExitDone).has("deploy", "COMPENSABLE", "Deploy a service")
	p.do("tools", "--config", filepath.Join(p.dir, "none.toml")).want(ExitDone).has("none.toml", "check --config", "shell")
}

func TestToolsAreRehearsed(t *testing.T) {
	t.Parallel()
	p := newPawl(t)
	config := p.write("config.toml", checkedTools)
	dir := filepath.Dir(p.write("work/deployed", "web\n"))
	check := func(code int, args ...string) said {
		t.Helper()
		return p.do(append([]string{"tools", "check", "--config", config, "--dir", dir}, args...)...).want(code)
	}
	r := check(ExitDone, "deploy", "--json").object()
	if r["ok"] != true || r["class"] != "COMPENSABLE" || r["runs"] != "./deploy pawl-rehearsal '--times=1'" || r["probe"] != "grep -qx pawl-rehearsal deployed" ||
		r["compensation"] != "./deploy --undo pawl-rehearsal" {
		t.Errorf("%v", r)
	}
	states := map[string]string{}
	for _, c := range r["checks"].([]any) {
		c := c.(map[string]any)
		states[c["promise"].(string)] = c["state"].(string)
	}
	if states["look"] != "kept" || states["undo"] != "unchecked" || states["look finds what is there"] != "unchecked" {
		t.Errorf("%v", states)
	}
	check(ExitDone, "deploy").has("a clean negative", "(not run)")
	check(ExitError, "deploy", "--arg", "service=web").has("broken", "though nobody did it")
	check(ExitError, "liar").has("every lost answer would count as a success")
	check(ExitError, "blind").has("there is no program no-such-program-here")
	check(ExitError, "picky").has("cannot be made up", "--arg")
	check(ExitDone, "picky", "--arg", "id=ID-7").has("there is no probe")
	check(ExitUsage, "picky", "--arg", "ident=7").has("it takes id")
	check(ExitUsage, "picky", "--arg", "id").has("NAME=VALUE")
	check(ExitError, "nothing").has("there is no tool", "deploy")
	p.do("tools", "check", "deploy", "--config", config, "--dir", filepath.Join(p.dir, "none")).want(ExitError).has("--dir")
	// A line that is a recipe is rehearsed as one, and one that is not says why.
	p.write("work/package.json", `{"name": "a", "version": "1.0.0"}`)
	check(ExitDone, "shell", "--arg", "command=make deploy").has("make deploy")
	r = check(ExitDone, "shell", "--arg", "command=npm publish --dry-run", "--json").object()
	if !strings.Contains(r["card"].(string), "it only rehearses") {
		t.Errorf("%v", r)
	}
	// Nothing was written.
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 2 {
		t.Errorf("%v %v", left, err)
	}
}

func TestRecipesAreListed(t *testing.T) {
	t.Parallel()
	p := newPawl(t)
	rows := p.do("recipes", "--json").want(ExitDone).objects()
	if len(rows) < 16 {
		t.Errorf("%d recipes", len(rows))
	}
	for _, r := range rows {
		for _, key := range []string{"name", "match", "class", "in_flight", "probe", "compensate", "tested"} {
			if _, ok := r[key]; !ok {
				t.Errorf("%v has no %s", r, key)
			}
		}
	}
	p.write(".config/pawl/recipes/npm-publish.toml", "name = \"npm-publish\"\nclas = \"READ\"\n")
	p.write(".config/pawl/recipes/my-own.toml", "name = \"my-own\"\nclass = \"IRREVERSIBLE\"\n[[match]]\nwords = [\"mine\"]\n")
	p.do("recipes").want(ExitDone).has("npm-publish.toml, line 2", "did you mean class?", "the built-in recipe npm-publish stays in force", "my-own", "happened (not tested)", "both ways")
}
