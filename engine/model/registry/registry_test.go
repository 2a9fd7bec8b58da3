package registry_test

import (
	"context"
	"strings"
	"testing"

	"pawl/engine/model"
	"pawl/engine/model/catalog"
	"pawl/engine/model/fakeopenai"
	"pawl/engine/model/registry"
	"pawl/engine/model/scripted"
)

func env(kv ...string) func(string) string {
	return func(k string) string {
		for i := 0; i+1 < len(kv); i += 2 {
			if kv[i] == k {
				return kv[i+1]
			}
		}
		return ""
	}
}

func TestResolveSaysWhatIsMissing(t *testing.T) {
	ctx := context.Background()
	for _, c := range []struct {
		name string
		env  []string
		says string
	}{
		{"gpt", nil, "no PROVIDER/MODEL"},
		{"/x", nil, "no PROVIDER/MODEL"},
		{"openai/", nil, "no PROVIDER/MODEL"},
		{"openai/gpt-5", nil, "set OPENAI_API_KEY"},
		{"openrouter/a/b", nil, "set OPENROUTER_API_KEY"},
		{"nobody/x", nil, `no provider is called "nobody"`},
		{"anthropic/claude-x", nil, "set ANTHROPIC_API_KEY"},
		{"bedrock/claude-x", nil, "openrouter/claude-x"},
		{"script/x", nil, "--script FILE"},
		{"openai/x", []string{"OPENAI_BASE_URL", "nonsense"}, "no http or https address"},
		{"openai/x", []string{"OPENAI_BASE_URL", "https://llm.example.com/v1"}, "set OPENAI_API_KEY"},
	} {
		_, _, _, err := registry.New(registry.Options{Env: env(c.env...)}).Resolve(ctx, c.name, nil)
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want something with %q", c.name, err, c.says)
		}
	}
	_, _, _, err := registry.New(registry.Options{}).Resolve(ctx, "script/x", []byte("[[step]\n"))
	if err == nil || !strings.Contains(err.Error(), "line") {
		t.Errorf("a script that does not parse: %v", err)
	}
}

func TestResolveKnowsPricesOfPublicModelsOnly(t *testing.T) {
	ctx := context.Background()
	id := ""
	for _, m := range catalog.Models("openai") {
		if m.Limits.Priced && m.Limits.CachedPrice < m.Limits.InPrice {
			id = m.ID
			break
		}
	}
	if id == "" {
		t.Fatal("the table has no priced OpenAI model with a cache")
	}
	r := registry.New(registry.Options{Env: env("OPENAI_API_KEY", "k")})
	p, name, l, err := r.Resolve(ctx, "openai/"+id, nil)
	if err != nil || name != id || !l.Priced || l.Context == 0 || l.CachedPrice <= 0 || l.CachedPrice >= l.InPrice {
		t.Fatalf("%s: %+v, %v", id, l, err)
	}
	if q, _, _, _ := r.Resolve(ctx, "openai/"+id, nil); q != p {
		t.Error("a second look makes a second provider")
	}
	_, _, l, err = registry.New(registry.Options{Env: env("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")}).Resolve(ctx, "openai/"+id, nil)
	if err != nil || l.Priced {
		t.Errorf("a local server: %+v, %v", l, err)
	}
	want := model.Limits{Context: 9, Priced: true, InPrice: 1}
	_, _, l, err = registry.New(registry.Options{Env: env("OLLAMA_HOST", "gpu:11434"), Limits: map[string]model.Limits{"ollama/q": want}}).Resolve(ctx, "ollama/q", nil)
	if err != nil || l != want {
		t.Errorf("configured limits: %+v, %v", l, err)
	}
	if len(r.List("openai")) == 0 || !r.List("openai")[0].Ready || r.List("groq")[0].Ready {
		t.Error("the list does not tell which keys are set")
	}
}

func TestResolvedProvidersAnswer(t *testing.T) {
	text := []byte("[[step]]\nsay=\"hello {{env.X}}\"\n")
	s, err := scripted.Parse("hi.toml", text)
	if err != nil {
		t.Fatal(err)
	}
	srv, err := fakeopenai.Start("127.0.0.1:0", fakeopenai.Options{Script: s, Vars: map[string]string{"X": "you"}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = srv.Close() }()
	r := registry.New(registry.Options{Env: env("OPENAI_BASE_URL", srv.URL)})
	for _, name := range []string{"script/hi", "openai/gpt-x"} {
		p, id, l, err := r.Resolve(context.Background(), name, text)
		if err != nil {
			t.Fatal(err)
		}
		req := model.Request{Model: id, Turn: 1, Run: "r1", Attempt: 1, Vars: map[string]string{"X": "you"}, Messages: []model.Message{{Role: model.RoleUser, Text: "x"}}}
		a, err := p.Complete(context.Background(), req, nil)
		if err != nil || a.Text != "hello you" || a.Usage.Cost != 0 {
			t.Errorf("%s: %+v, %v (limits %+v)", name, a, err, l)
		}
	}
}
