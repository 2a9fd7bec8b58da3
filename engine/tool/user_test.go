package tool

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"pawl/engine/config"
	"pawl/engine/confine"
	"pawl/engine/effect"
	"pawl/engine/machine"
	"pawl/engine/policy"
)

// declared reads a configuration and makes the tools' options of it.
func declared(t *testing.T, text string) Options {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c := config.Load(config.Options{Path: path, Getenv: func(string) string { return "" }, Reserved: BuiltInNames()})
	if len(c.Problems) > 0 {
		t.Fatal(c.Problems)
	}
	return Options{Declared: c.Tools, Requests: c.Requests, Recipes: c.Book, Home: t.TempDir(), Environ: append(os.Environ(), "DEPLOY_TOKEN=t0p", "OTHER=x")}
}

const deployTool = `[[tool]]
name = "deploy"
description = "Deploy a service."
command = ["./deploy.sh", "{service}", "--note={note}", "--mark={key}", "--", "{version}"]
class = "COMPENSABLE"
env = ["DEPLOY_TOKEN"]
before_effect = [69]
proves_nothing = [75]
approval = "policy"
arg = [ { name = "service" }, { name = "version" }, { name = "note", optional = true } ]
[tool.probe]
command = ["grep", "-qx", "{service} {version}", "deployed"]
reads_own_writes = true
tested = true
[[tool.probe.answer]]
verdict = "happened"
codes = [0]
[[tool.probe.answer]]
verdict = "not_happened"
codes = [1]
[tool.compensate]
command = ["./deploy.sh", "--undo", "{service}"]
`

const deployScript = `#!/bin/sh
printf '<%s>' "$@"; echo
echo "token=$DEPLOY_TOKEN other=$OTHER key=$PAWL_KEY args=$PAWL_ARGS"
case $1 in busy) exit 75 ;; refused) exit 69 ;; broken) exit 3 ;; esac
for last; do :; done
echo "$1 $last" >> deployed
`

func newDeploy(t *testing.T, text string) *bench {
	t.Helper()
	b := newBench(t, declared(t, text))
	b.put("deploy.sh", deployScript)
	b.put("deployed", "")
	if err := os.Chmod(filepath.Join(b.env.Space.Path, "deploy.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	return b
}

func TestDeclaredToolsContract(t *testing.T) {
	b := newDeploy(t, deployTool)
	p := b.mustPlan("deploy", m{"service": "web app", "version": "1.0"})
	c := p.Contract
	if c.Name != "deploy" || c.Class != machine.ClassCompensable || c.Sender != machine.SenderCommand || !c.Writes || c.Network || !c.Probe.ProvesNot || !c.Probe.Baseline {
		t.Errorf("%+v", c)
	}
	if got := strings.Join(c.Probe.Command, "|"); got != "grep|-qx|web app 1.0|deployed" {
		t.Errorf("probe %q", got)
	}
	if c.Compensation.Tool != "shell" || c.Compensation.Args != `{"command":"./deploy.sh --undo 'web app'"}` {
		t.Errorf("compensation %+v", c.Compensation)
	}
	if _, err := b.set.Validate(c.Compensation.Tool, c.Compensation.Args); err != nil {
		t.Error(err)
	}
	if len(p.Files) != 1 || p.Files[0].Path != "deploy.sh" {
		t.Errorf("the approval covers %v", p.Files)
	}
	wantText(t, p.Text, "./deploy.sh 'web app'", "look    grep", "undo    ./deploy.sh", "gets    DEPLOY_TOKEN", "class   COMPENSABLE")
	if strings.Contains(p.Text, "t0p") || strings.Contains(p.Text, "--note") {
		t.Errorf("the card tells too much: %s", p.Text)
	}
	// Arguments are checked by the schema, and never become options.
	wantText(t, b.refused("deploy", m{"service": "web"}), `"version" is missing`)
	wantText(t, b.refused("deploy", m{"service": "web", "version": "1", "x": 1}), "no argument")
	wantText(t, b.refused("deploy", m{"service": "--all", "version": "1"}), "taken for an option")
	wantText(t, b.refused("deploy", m{"service": "a\x00b", "version": "1"}), "NUL byte")
	p = b.mustPlan("deploy", m{"service": "web", "version": "--all"}) // stands behind --
	wantText(t, p.Contract.Params[effect.ParamLine], "-- --all")
}

func TestDeclaredToolRuns(t *testing.T) {
	atEachLevel(t, declared(t, deployTool), func(t *testing.T, b *bench) {
		b.put("deploy.sh", deployScript)
		b.put("deployed", "")
		if err := os.Chmod(filepath.Join(b.env.Space.Path, "deploy.sh"), 0o755); err != nil {
			t.Fatal(err)
		}
		p := b.mustPlan("deploy", m{"service": "it's", "version": "$(x)", "note": "a b"})
		c := b.call(p)
		key := KeyFor(c.Effect)
		effect.Bind(&c.Contract, key)
		tl := b.set.Get("deploy")
		params, err := tl.Measure(t.Context(), b.env, c.Contract, c.Args)
		if err != nil || params.Params["before"] != "not_happened" {
			t.Fatalf("measured %v %v", params, err)
		}
		o := tl.Run(t.Context(), b.env, c)
		wantEnd(t, o, EndCompleted, "0")
		wantText(t, text(t, o), "<it's><--note=a b><--mark="+key+"><--><$(x)>", "token=t0p other= key="+key, `"service":"it's"`)
		if b.disk("deployed") != "it's $(x)\n" {
			t.Errorf("deployed: %q", b.disk("deployed"))
		}
		f := effect.Probe(t.Context(), effect.Request{Contract: c.Contract, Params: params.Params, Place: b.set.Place(b.env)})
		if f.Verdict != machine.VerdictHappened {
			t.Errorf("%+v", f)
		}
		wantEnd(t, b.do("deploy", m{"service": "refused", "version": "1"}), EndRejected, "69")
		wantEnd(t, b.do("deploy", m{"service": "broken", "version": "1"}), EndCompleted, "3")
		if o := b.do("deploy", m{"service": "busy", "version": "1"}); o.End != EndAmbiguous || !strings.Contains(o.Cause, "75") {
			t.Errorf("%+v", o)
		}
	})
}

// The words that a program gets are the values, whatever they hold.
func TestDeclaredWordsAreValues(t *testing.T) {
	o := declared(t, `[[tool]]
name = "say"
description = "d"
command = ["say", "--to={to}", "--", "{what}"]
arg = [ { name = "to" }, { name = "what" } ]
`)
	tl := All(o).Get("say").(*userTool)
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching("[ -~]{1,20}|[äß€ \"'`$\\\\;&|<>(){}*?~#!=-]{1,12}")
		to, what := text.Draw(t, "to"), text.Draw(t, "what")
		raw, err := json.Marshal(map[string]string{"to": to, "what": what})
		if err != nil {
			t.Fatal(err)
		}
		p, err := tl.prepare(raw)
		if err != nil {
			t.Fatal(err)
		}
		c, err := policy.Parse(p.line)
		if err != nil || !c.Whole || !slices.Equal(c.Simple[0].Words, []string{"say", "--to=" + to, "--", what}) {
			t.Fatalf("%q: %+v %v", p.line, c, err)
		}
	})
}

// A probe's script that the model could write to is worth nothing once it has
// changed.
func TestDeclaredProbeThatWasTamperedWith(t *testing.T) {
	b := newBench(t, declared(t, `[[tool]]
name = "ship"
description = "d"
command = ["true"]
class = "PROBEABLE"
[tool.probe]
command = ["sh", "probe.sh"]
baseline = false
[[tool.probe.answer]]
verdict = "happened"
codes = [0]
`))
	b.put("probe.sh", "exit 7\n")
	p := b.mustPlan("ship", m{})
	look := func() effect.Finding {
		return effect.Probe(t.Context(), effect.Request{Contract: p.Contract, Place: b.set.Place(b.env)})
	}
	if f := look(); f.Verdict != machine.VerdictInconclusive || !strings.Contains(f.Text, "answered with 7") {
		t.Errorf("%+v", f)
	}
	b.put("probe.sh", "exit 0\n")
	if f := look(); f.Verdict != machine.VerdictInconclusive || !strings.Contains(f.Text, "probe.sh is not what it was") {
		t.Errorf("%+v", f)
	}
}

// What was agreed to is what runs, whatever the file says by then.
func TestDeclaredToolThatWasEdited(t *testing.T) {
	b := newDeploy(t, deployTool)
	p := b.mustPlan("deploy", m{"service": "web", "version": "1"})
	c := b.call(p)
	edited := newBench(t, declared(t, strings.Replace(deployTool, `"--note={note}"`, `"--force"`, 1)))
	edited.env = b.env
	o := edited.set.Get("deploy").Run(t.Context(), b.env, c)
	wantEnd(t, o, EndRejected, CodeNotStarted)
	wantText(t, text(t, o), "declaration of deploy has changed")
	if b.disk("deployed") != "" {
		t.Error("it ran")
	}
}

func TestDeclaredToolsAndPolicy(t *testing.T) {
	const local = `[[tool]]
name = "fmt"
description = "d"
command = ["true"]
class = "WORKSPACE"
approval = "policy"
[[tool]]
name = "fmt_asked"
description = "d"
command = ["true"]
class = "WORKSPACE"
[[tool]]
name = "count"
description = "d"
shell = "ls | wc -l"
class = "READ"
approval = "policy"
[[tool]]
name = "send"
description = "d"
command = ["send", "it"]
network = true
approval = "policy"
[[tool]]
name = "send_asked"
description = "d"
command = ["send", "it"]
network = true
`
	b := newBench(t, declared(t, local))
	decide := func(name string, allow ...string) policy.Verdict {
		return policy.Decide(allow, b.mustPlan(name, m{}).Subject).Verdict
	}
	for _, tt := range []struct {
		level confine.Level
		name  string
		allow string
		want  policy.Verdict
		class machine.Class
	}{
		{confine.LevelSealed, "fmt", "", policy.Allow, machine.ClassWorkspace},
		{confine.LevelSealed, "fmt_asked", "", policy.Ask, machine.ClassWorkspace},
		{confine.LevelSealed, "fmt_asked", "true", policy.Ask, machine.ClassWorkspace}, // always means always
		{confine.LevelSealed, "count", "", policy.Allow, machine.ClassRead},
		{confine.LevelNone, "count", "", policy.Ask, machine.ClassRead},
		{confine.LevelNone, "fmt", "", policy.Ask, machine.ClassIrreversible}, // no silent downgrade: it is not WORKSPACE here
		{confine.LevelNone, "fmt", "true", policy.Allow, machine.ClassIrreversible},
		{confine.LevelSealed, "send", "", policy.Ask, machine.ClassIrreversible},
		{confine.LevelSealed, "send", "send it", policy.Allow, machine.ClassIrreversible},
		{confine.LevelSealed, "send_asked", "send it", policy.Ask, machine.ClassIrreversible},
	} {
		b.env.Level = tt.level
		var allow []string
		if tt.allow != "" {
			allow = append(allow, tt.allow)
		}
		if v := decide(tt.name, allow...); v != tt.want {
			t.Errorf("%s at %s with %q: %s, want %s", tt.name, tt.level, tt.allow, v, tt.want)
		}
		if c := b.mustPlan(tt.name, m{}).Contract.Class; c != tt.class {
			t.Errorf("%s at %s: class %s, want %s", tt.name, tt.level, c, tt.class)
		}
	}
	b.env.Level = confine.LevelNone
	wantText(t, b.mustPlan("fmt", m{}).Text, "declared WORKSPACE", "only a sealed one")
}

// A shell line finds its arguments in variables: nothing that a model writes
// becomes part of the program.
func TestDeclaredShellLine(t *testing.T) {
	b := newBench(t, declared(t, `[[tool]]
name = "greet"
description = "d"
shell = 'printf "%s %s" "$arg_who" "$arg_times"; exit 4'
arg = [ { name = "who" }, { name = "times", type = "integer" } ]
`))
	o := b.do("greet", m{"who": `"; touch broken; echo "$(id)`, "times": 3})
	wantEnd(t, o, EndCompleted, "4")
	if got := text(t, o); got != `"; touch broken; echo "$(id) 3` {
		t.Errorf("%q", got)
	}
}

// A tool that promised to read cannot write, and a lost answer of it is an
// answer.
func TestDeclaredReadOnly(t *testing.T) {
	o := declared(t, `[[tool]]
name = "look"
description = "d"
shell = 'cat kept; echo x 2>/dev/null > new && echo written; if [ -n "$arg_die" ]; then kill -9 $$; fi'
class = "READ"
arg = [ { name = "die", optional = true } ]
[[tool]]
name = "slow"
description = "d"
command = ["sleep", "1000"]
class = "READ"
timeout = "300ms"
`)
	b := newBench(t, o).sealed()
	b.put("kept", "content\n")
	got := b.do("look", m{})
	wantText(t, text(t, got), "content")
	if _, err := os.Stat(filepath.Join(b.env.Space.Path, "new")); err == nil || strings.Contains(text(t, got), "written") {
		t.Error("it wrote to the workspace")
	}
	if got.End != EndCompleted {
		t.Errorf("%+v", got)
	}
	wantEnd(t, b.do("look", m{"die": "y"}), EndCompleted, CodeNoAnswer)
	wantEnd(t, b.do("slow", m{}), EndCompleted, CodeNoAnswer)
}

func TestDeclaredKey(t *testing.T) {
	b := newBench(t, declared(t, `[[tool]]
name = "pay"
description = "d"
command = ["echo", "{order}", "{key}"]
class = "KEYED"
key = "order-{order}"
key_horizon = "2h"
arg = [ { name = "order" } ]
[[tool]]
name = "pay_once"
description = "d"
command = ["echo", "{key}"]
class = "KEYED"
key = "{effect}"
`))
	p := b.mustPlan("pay", m{"order": "7"})
	if p.Contract.Key != "order-7" || p.Contract.KeyHorizon != (2*time.Hour).Microseconds() || p.Contract.Class != machine.ClassKeyed {
		t.Errorf("%+v", p.Contract)
	}
	wantText(t, text(t, b.do("pay", m{"order": "7"})), "7 order-7")
	p = b.mustPlan("pay_once", m{})
	if p.Contract.Key != "" {
		t.Errorf("a key that nobody can know yet: %+v", p.Contract)
	}
	c := b.call(p)
	effect.Bind(&c.Contract, KeyFor(c.Effect))
	o := b.set.Get("pay_once").Run(t.Context(), b.env, c)
	if got := strings.TrimSpace(text(t, o)); got != KeyFor(c.Effect) {
		t.Errorf("%q", got)
	}
}

// A declared request is KEYED, probed and undone as the operator says.
func TestDeclaredRequest(t *testing.T) {
	seen := map[string]string{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodPost:
			seen[r.Header.Get("Idempotency-Key")] = r.URL.Path
		case seen[r.URL.Query().Get("key")] == "":
			w.WriteHeader(http.StatusNotFound)
		default:
			_, _ = w.Write([]byte(`{"ref":"a b"}`))
		}
	}))
	defer srv.Close()
	b := newBench(t, declared(t, strings.ReplaceAll(`[[http]]
name = "orders"
method = "POST"
url = "SRV/shops/{shop}/orders"
class = "KEYED"
key_header = "Idempotency-Key"
in_flight = "5s"
[http.probe]
url = "{origin}/shops/{shop}/orders?key={key}"
baseline = false
reads_own_writes = true
tested = true
[[http.probe.answer]]
verdict = "happened"
codes = [200]
match = '"ref":{body_ref|json}'
[[http.probe.answer]]
verdict = "not_happened"
codes = [404]
[http.compensate]
method = "DELETE"
url = "{origin}/shops/{shop}/orders/{key}"
body = '{"why": {body_ref|json}}'
`, "SRV", srv.URL)))
	call := m{"method": "POST", "url": srv.URL + "/shops/s 1/orders", "body": `{"ref": "a b"}`}
	call["url"] = srv.URL + "/shops/s%201/orders"
	p := b.mustPlan("http_request", call)
	if p.Contract.Class != machine.ClassKeyed || p.Contract.InFlight != (5*time.Second).Microseconds() || p.Contract.Key != "" {
		t.Errorf("%+v", p.Contract)
	}
	wantText(t, p.Text, "Idempotency-Key: (a key made from the effect's id)", "declared orders KEYED", "look    GET "+srv.URL)
	c := b.call(p)
	key := KeyFor(c.Effect)
	c.Contract.Key = key
	effect.Bind(&c.Contract, key)
	place := b.set.Place(b.env)
	if f := effect.Probe(t.Context(), effect.Request{Contract: c.Contract, Place: place}); f.Verdict != machine.VerdictNotHappened {
		t.Errorf("before: %+v", f)
	}
	wantEnd(t, b.set.Get("http_request").Run(t.Context(), b.env, c), EndCompleted, "200")
	if seen[key] != "/shops/s 1/orders" {
		t.Errorf("the server saw %v", seen)
	}
	if f := effect.Probe(t.Context(), effect.Request{Contract: c.Contract, Place: place}); f.Verdict != machine.VerdictHappened {
		t.Errorf("after: %+v", f)
	}
	undo := c.Contract.Compensation
	canonical, err := b.set.Validate(undo.Tool, undo.Args)
	if err != nil {
		t.Fatal(err)
	}
	var a httpArgs
	if err := json.Unmarshal(canonical, &a); err != nil || a.Method != "DELETE" || a.URL != srv.URL+"/shops/s%201/orders/"+key || *a.Body != `{"why": "a b"}` {
		t.Errorf("%s %v", canonical, err)
	}
	// Another place keeps what its method says; a reference that is not given is told.
	if c := b.mustPlan("http_request", m{"method": "POST", "url": srv.URL + "/other", "body": "x"}).Contract; c.Class != machine.ClassIrreversible || c.Probe != nil {
		t.Errorf("%+v", c)
	}
	delete(call, "body")
	wantText(t, b.refused("http_request", call), "need body_ref")
}

// A recipe's line gets what the recipe names, and codes that prove that nothing
// happened are a rejection.
func TestRecipeLines(t *testing.T) {
	b := newBench(t, Options{Home: t.TempDir()})
	p := b.mustPlan("shell", m{"command": "curl -sS -d x http://127.0.0.1:1/"})
	if p.Contract.Name != "curl-send" || p.Contract.Class != machine.ClassIrreversible || !p.Subject.Network || p.Subject.Recipe != "curl-send" {
		t.Errorf("%+v", p)
	}
	wantEnd(t, b.do("shell", m{"command": "curl -sS -d x http://127.0.0.1:1/"}), EndRejected, "7")
	wantEnd(t, b.do("shell", m{"command": "curl -sS -d x http://no-such-host.invalid/"}), EndRejected, "6")
	if c := b.mustPlan("shell", m{"command": "curl -sS http://127.0.0.1:1/", "network": true}).Contract; c.Class != machine.ClassRead {
		t.Errorf("%+v", c)
	}
	if c := b.mustPlan("shell", m{"command": "curl -sS -d x http://127.0.0.1:1/ | tee f", "network": true}).Contract; c.Name != "shell" {
		t.Errorf("%+v", c)
	}
	p = b.mustPlan("shell", m{"command": "curl -d x --retry 2 http://127.0.0.1:1/", "network": true})
	wantText(t, p.Text, "curl-send is not recognised here: with --retry curl sends it again by itself")
	if p.Contract.Name != "shell" {
		t.Errorf("%+v", p.Contract)
	}
}
