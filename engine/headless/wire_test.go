package headless_test

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"pawl/engine"
	"pawl/engine/model/fakeopenai"
	"pawl/engine/model/scripted"
	"pawl/fixtures/sample"
	"pawl/fixtures/scripts"
	"pawl/fixtures/world"
)

// A server that speaks the wire format of OpenAI answers; the code for real
// providers asks it. What is repaired, pushed and posted is real.
func TestRepairWithTheRealProvidersCode(t *testing.T) {
	t.Parallel()
	s := newStand(t, nil)
	repo, err := sample.NewRepo(t.Context(), filepath.Dir(s.repo))
	if err != nil {
		t.Fatal(err)
	}
	text, err := scripts.Read(scripts.Repair)
	if err != nil {
		t.Fatal(err)
	}
	server := s.serve(string(text))

	args := []string{"run", sample.Goal, "--repo", repo.Path, "--model", "openai/x", "--check", sample.Test, "--headless"}
	const most = 20 // where commands cannot be sealed each of them asks
	for range most {
		e := s.pawl(args...)
		if e.code == 0 {
			break
		}
		if e.code != 3 {
			t.Fatal(e)
		}
		for _, i := range s.inbox() {
			if i.Kind != engine.KindApproval {
				t.Fatalf("unexpected in the inbox: %+v\n%s", i, e)
			}
			s.must(0, "approve", i.ID)
		}
		args = []string{"resume", string(s.only().ID)}
	}
	run := s.only()
	if run.State != engine.Done || !run.Checked {
		t.Errorf("the run is %s, checked %v", run.State, run.Checked)
	}
	remote, err := world.JudgeRemote(t.Context(), repo.Remote, scripts.RepairRefs(repo.Base), "refs/heads/"+sample.Branch)
	if err != nil {
		t.Fatal(err)
	}
	if v := world.Judge(s.world.Log(), scripts.RepairWant()).Merge(remote); !v.OK() {
		t.Errorf("the world says: %s", v)
	}
	s.must(0, "land", string(run.ID))
	s.must(0, "verify")
	for i, r := range server.Requests() {
		if err := paired(r.Body); err != "" {
			t.Errorf("request %d: %s", i+1, err)
		}
	}
}

// serve starts a server that answers a script over the wire of OpenAI, and
// points the stand's processes to it.
func (s *stand) serve(text string) *fakeopenai.Server {
	s.t.Helper()
	script, err := scripted.Parse("script.toml", []byte(text))
	if err != nil {
		s.t.Fatal(err)
	}
	server, err := fakeopenai.Start("127.0.0.1:0", fakeopenai.Options{Script: script, Vars: map[string]string{"WORLD": s.world.URL()}, Key: "a-key"})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = server.Close() })
	s.env = []string{"OPENAI_BASE_URL=" + server.URL, "OPENAI_API_KEY=a-key"}
	return server
}

// paired says what is wrong with the calls and results of a request, or nothing.
func paired(body []byte) string {
	var q struct {
		Messages []struct {
			Role       string `json:"role"`
			ToolCallID string `json:"tool_call_id"`
			ToolCalls  []struct {
				ID string `json:"id"`
			} `json:"tool_calls"`
		} `json:"messages"`
	}
	if err := json.Unmarshal(body, &q); err != nil {
		return err.Error()
	}
	open, seen := map[string]bool{}, map[string]bool{}
	for _, m := range q.Messages {
		for _, c := range m.ToolCalls {
			if seen[c.ID] || c.ID == "" || len(c.ID) > 64 {
				return "the id " + c.ID + " is used twice, or is none"
			}
			seen[c.ID], open[c.ID] = true, true
		}
		if m.Role == "tool" {
			if !open[m.ToolCallID] {
				return "a result without a call, or a second one: " + m.ToolCallID
			}
			delete(open, m.ToolCallID)
		}
	}
	for id := range open {
		return "a call without a result: " + id
	}
	return ""
}
