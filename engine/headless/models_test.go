package headless

import (
	"testing"

	"pawl/engine/model/fakeopenai"
	"pawl/engine/model/scripted"
)

func TestModelsSaysWhoAnswers(t *testing.T) {
	sc, err := scripted.Parse("tiny", []byte("[[step]]\nsay=\"a\"\n"))
	if err != nil {
		t.Fatal(err)
	}
	srv, err := fakeopenai.Start("127.0.0.1:0", fakeopenai.Options{Script: sc})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = srv.Close() }()
	p := newPawl(t)
	// Nobody listens on the first port.
	p.env = map[string]string{"OPENAI_BASE_URL": srv.URL, "OLLAMA_HOST": "127.0.0.1:1"}
	p.do("models").want(ExitDone).has("openai", "yes", srv.URL, "ollama", "not reached")
	p.do("models", "--all").want(ExitDone).has("set ANTHROPIC_API_KEY", "set OPENROUTER_API_KEY")
	p.do("models", "openai").want(ExitDone).has("openai/tiny", "yes")
	p.do("models", "nobody").want(ExitUsage).has("nobody", "--all")
}
