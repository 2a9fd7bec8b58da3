package fakeopenai_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pawl/engine/machine"
	"pawl/engine/model"
	"pawl/engine/model/fakeopenai"
	"pawl/engine/model/openai"
	"pawl/engine/model/scripted"
	"pawl/engine/window"
)

func start(t *testing.T, script string, o fakeopenai.Options) *fakeopenai.Server {
	t.Helper()
	s, err := scripted.Parse("test.toml", []byte(script))
	if err != nil {
		t.Fatal(err)
	}
	o.Script = s
	srv, err := fakeopenai.Start("127.0.0.1:0", o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = srv.Close() })
	return srv
}

func post(t *testing.T, url, body string) (int, string) {
	t.Helper()
	res, err := http.Post(url+"/chat/completions", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(b)
}

// What a strict provider refuses is refused here, so that tests against this
// server find requests that would end a real conversation.
func TestServerIsStrict(t *testing.T) {
	srv := start(t, "[[step]]\nsay=\"a\"\nrepeat=100\n", fakeopenai.Options{})
	called := `{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"c2","type":"function","function":{"name":"f","arguments":"{}"}}]}`
	result := func(id string) string { return `{"role":"tool","tool_call_id":"` + id + `","content":"x"}` }
	for _, c := range []struct {
		name, messages, says string
	}{
		{"missing result", called + "," + result("c1") + `,{"role":"user","content":"x"}`, "1 are missing"},
		{"missing result at the end", called + "," + result("c1"), "no result"},
		{"two results", called + "," + result("c1") + "," + result("c1"), "answers no open call"},
		{"result of nothing", result("zz"), "answers no open call"},
		{"id twice", called + "," + result("c1") + "," + result("c2") + "," + called, "used twice"},
		{"empty id", strings.Replace(called, `"c1"`, `""`, 1), "empty or longer"},
		{"illegal name", strings.Replace(called, `"name":"f"`, `"name":"a b"`, 1), "not legal"},
		{"arguments", strings.Replace(called, `"arguments":"{}"`, `"arguments":"{bro"`, 1), "no JSON object"},
		{"empty answer", `{"role":"assistant","content":""}`, "needs content or tool_calls"},
		{"NUL", `{"role":"user","content":"a\u0000b"}`, "NUL"},
		{"role", `{"role":"critic","content":"x"}`, "unknown role"},
	} {
		status, body := post(t, srv.URL, `{"model":"m","stream":true,"messages":[{"role":"user","content":"go"},`+c.messages+`]}`)
		if status != http.StatusBadRequest || !strings.Contains(body, c.says) {
			t.Errorf("%s: status %d, %s", c.name, status, body)
		}
	}
	if status, _ := post(t, srv.URL, `{"model":"m","stream":true,"messages":[{"role":"user","content":[{"type":"text","text":"go"}]},`+called+","+result("c2")+","+result("c1")+`]}`); status != http.StatusOK {
		t.Errorf("a legal conversation: status %d", status)
	}
	if status, body := post(t, srv.URL, `{"model":"m","messages":[{"role":"user","content":"go"}]}`); status != http.StatusBadRequest || !strings.Contains(body, "stream") {
		t.Errorf("without stream: status %d, %s", status, body)
	}
}

func TestKeyIsDemanded(t *testing.T) {
	srv := start(t, "[[step]]\nsay=\"a\"\n", fakeopenai.Options{Key: "right-key-1"})
	p, err := openai.New(openai.Options{BaseURL: srv.URL, Key: "wrong-key-1"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = p.Complete(context.Background(), model.Request{Turn: 1, Messages: []model.Message{{Role: model.RoleUser, Text: "x"}}}, nil)
	if e := model.AsError(err); e == nil || e.Class != machine.FailAuth || strings.Contains(e.Message, "wrong-key-1") {
		t.Errorf("%v", err)
	}
}

// A whole run through real provider code: packs that the window builds are
// accepted, turn after turn, whatever the model called.
func TestWindowPacksAreAccepted(t *testing.T) {
	srv := start(t, `
[[step]]
say = "two calls, one id"
[[step.call]]
tool = "read_file"
id = "same"
args = { path = "a" }
[[step.call]]
tool = "no such tool"
id = "same"
raw = "{broken"
[[step]]
expect = ["refused", "alpha"]
say = "thinking"
[[step]]
expect = ["held no tool call", "and the other thing"]
[[step.call]]
tool = "finish"
`, fakeopenai.Options{})
	p, err := openai.New(openai.Options{BaseURL: srv.URL})
	if err != nil {
		t.Fatal(err)
	}
	var s machine.State
	do := func(bodies ...machine.Body) {
		t.Helper()
		for _, b := range bodies {
			epoch := s.Epoch
			if _, ok := b.(machine.RunClaimed); ok {
				epoch++
			}
			next, err := machine.Fold(s, machine.Event{N: s.Tail + 1, Actor: machine.ActorEngine, Epoch: epoch, Body: b})
			if err != nil {
				t.Fatal(err)
			}
			s = next
		}
	}
	ask := func() model.Response {
		t.Helper()
		n := s.Turns.Len() + 1
		do(machine.TurnRequested{Turn: n, Attempt: 1, Window: 1})
		pack, err := window.Build(&s, nil, window.Options{})
		if err != nil {
			t.Fatal(err)
		}
		r, err := p.Complete(context.Background(), model.Request{Model: "m", System: pack.System, Messages: pack.Messages, Run: "r1", Turn: n, Attempt: 1}, nil)
		if err != nil {
			t.Fatal(err)
		}
		a := machine.TurnResponded{Turn: n, Stop: r.Stop, Text: machine.Text{Inline: r.Text}, RequestID: r.RequestID}
		for i, c := range r.Calls {
			a.Calls = append(a.Calls, machine.Call{Provider: c.ProviderID, Tool: c.Name, Args: machine.Text{Inline: c.Args}, Effect: machine.EffectIDOf("r1", s.Effects.Len()+1+i)})
		}
		do(a)
		return r
	}
	do(machine.RunCreated{Charter: machine.Charter{ID: "r1", Goal: "go", Prompt: window.PromptVersion}}, machine.RunClaimed{})
	ask()
	do(machine.EffectIntended{Effect: "r1.e1", Turn: 1, Call: 0, Tool: "read_file", Contract: machine.Contract{Class: machine.ClassRead, Sender: machine.SenderLocal}},
		machine.EffectRefused{Effect: "r1.e2", Turn: 1, Call: 1, Tool: "no such tool", Reason: "there is no such tool"},
		machine.EffectDispatched{Effect: "r1.e1", Attempt: 1},
		machine.EffectCompleted{Effect: "r1.e1", Attempt: 1, Result: machine.Result{OK: true, Output: machine.Text{Inline: "alpha"}}})
	ask()
	do(machine.Told{Text: "and the other thing"})
	if r := ask(); len(r.Calls) != 1 || r.Calls[0].Name != "finish" || r.Calls[0].Args != "{}" {
		t.Errorf("the third turn: %+v", r)
	}
}

func TestMainServes(t *testing.T) {
	dir := t.TempDir()
	script := filepath.Join(dir, "s.toml")
	if err := os.WriteFile(script, []byte("[[step]]\nsay=\"hello {{env.WHO}}\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{nil, 2, "-script FILE is needed"},
		{[]string{"-script", filepath.Join(dir, "none")}, 1, "cannot be read"},
		{[]string{"-script", script, "-addr", "256.0.0.1:x"}, 1, "listen"},
		{[]string{"-script", script, "-var", "x"}, 2, "NAME=VALUE"},
	} {
		var out, errs bytes.Buffer
		if code := fakeopenai.Main(context.Background(), c.args, strings.NewReader(""), &out, &errs); code != c.code || !strings.Contains(errs.String(), c.says) {
			t.Errorf("%v: code %d, %s", c.args, code, errs.String())
		}
	}
	in, alive := io.Pipe()
	out, w := io.Pipe()
	done := make(chan int)
	addr := filepath.Join(dir, "addr")
	go func() {
		done <- fakeopenai.Main(context.Background(), []string{"-script", script, "-var", "WHO=you", "-addr-file", addr, "-until-eof"}, in, w, io.Discard)
	}()
	line := make([]byte, 100)
	n, err := out.Read(line)
	if err != nil {
		t.Fatal(err)
	}
	url := strings.TrimSpace(string(line[:n]))
	if b, err := os.ReadFile(addr); err != nil || strings.TrimSpace(string(b)) != url {
		t.Errorf("address file %q, %v; printed %q", b, err, url)
	}
	status, body := post(t, url, `{"model":"m","stream":true,"messages":[{"role":"user","content":"x"}]}`)
	if status != http.StatusOK || !strings.Contains(body, "hello you") || !strings.HasSuffix(body, "data: [DONE]\n\n") {
		t.Errorf("status %d, %s", status, body)
	}
	var models struct{ Data []struct{ ID string } }
	res, err := http.Get(url + "/models")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.NewDecoder(res.Body).Decode(&models); err != nil || len(models.Data) != 1 {
		t.Errorf("models: %+v, %v", models, err)
	}
	_ = res.Body.Close()
	_ = alive.Close()
	if code := <-done; code != 0 {
		t.Errorf("ended with %d", code)
	}
}
