package headless_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pawl/engine"
	"pawl/fixtures/world"
)

// policyFile is the operator's own policy of a stand.
func (s *stand) policyFile() string {
	return filepath.Join(filepath.Dir(s.ledger), "..", "policy.toml")
}

// post is a step that posts a ticket.
func post(title string) string {
	return fmt.Sprintf(`
[[step.call]]
tool = "http_request"
args = { method = "POST", url = "{{env.WORLD}}/tickets", body = '{"title":%q}' }
`, title)
}

const finishStep = `
[[step]]
[[step.call]]
tool = "finish"
args = { summary = "done" }
`

// asked is the one approval that waits.
func (s *stand) asked() engine.Item {
	s.t.Helper()
	var items []engine.Item
	for _, it := range s.inbox() {
		if it.Kind == engine.KindApproval {
			items = append(items, it)
		}
	}
	if len(items) != 1 {
		s.t.Fatalf("%d approvals wait, want one: %+v", len(items), items)
	}
	return items[0]
}

// B07: several calls in one turn; agreeing to one agrees to that one only.
func TestDecisionIsForOneCallOfATurn(t *testing.T) {
	t.Parallel()
	s := newStand(t, map[string]string{"a.txt": "a\n"})
	s.must(3, s.run(s.script("[[step]]"+post("one")+post("two")+post("three")+finishStep))...)
	run := string(s.only().ID)
	items := s.inbox()
	if len(items) != 3 {
		t.Fatalf("%d approvals wait, want 3: %+v", len(items), items)
	}
	s.must(0, "approve", run+".a2")
	s.must(3, "resume", run)
	if n := s.happened(world.TicketCreated); n != 0 {
		t.Errorf("%d tickets: calls run in their order, and the first is not agreed to", n)
	}
	s.must(0, "deny", run+".a1", "--reason", "not this one")
	s.must(3, "resume", run)
	if n := s.happened(world.TicketCreated); n != 1 {
		t.Errorf("%d tickets after one of three calls was agreed to", n)
	}
	if it := s.asked(); it.ID != run+".a3" {
		t.Errorf("%s waits, want the third", it.ID)
	}
	// The same again, by an id that was used: it does not count.
	if e := s.pawl("approve", run+".a2"); e.code == 0 || !strings.Contains(e.err, "not pending") {
		t.Errorf("a used approval was granted again: %s", e)
	}
}

// A script that was agreed to and swapped before it ran is not run: what
// differs is shown, and asked about.
func TestSwappedScriptIsAskedAboutAgain(t *testing.T) {
	t.Parallel()
	s := newStand(t, map[string]string{"deploy.sh": "echo harmless > out.txt\n"})
	s.must(3, s.run(s.script(`
[[step]]
[[step.call]]
tool = "shell"
args = { command = "bash deploy.sh", network = true }
`+finishStep))...)
	run := string(s.only().ID)
	s.must(0, "approve", s.asked().ID)
	place := s.show(run).Workspace.Path
	s.write(filepath.Join(place, "deploy.sh"), "echo evil > out.txt\n")
	s.must(3, "resume", run)
	if _, err := os.Stat(filepath.Join(place, "out.txt")); err == nil {
		t.Fatal("the swapped script ran")
	}
	it := s.asked()
	var card struct {
		Drift string `json:"drift"`
	}
	out := s.must(0, "show", it.ID, "--json").out
	if err := json.Unmarshal([]byte(out), &card); err != nil || !strings.Contains(card.Drift, "deploy.sh") {
		t.Errorf("the difference is not shown (%v): %s", err, out)
	}
	s.must(0, "approve", it.ID)
	s.must(0, "resume", run)
	if got, err := os.ReadFile(filepath.Join(place, "out.txt")); err != nil || string(got) != "evil\n" {
		t.Errorf("what was agreed to at last did not run: %q, %v", got, err)
	}
	if n := s.kinds(run)["EffectDispatched"]; n != 2 { // the script, and finish
		t.Errorf("%d dispatches", n)
	}
}

// An approval given and not used survives a kill; once used it is used up.
func TestApprovalIsUsedOnceAcrossKills(t *testing.T) {
	t.Parallel()
	s := newStand(t, map[string]string{"a.txt": "a\n"})
	s.must(3, s.run(s.script("[[step]]"+post("once")+finishStep))...)
	run := string(s.only().ID)
	id := s.asked().ID
	s.must(0, "approve", id)
	if e := s.start([]string{"PAWL_CRASH=before-dispatch@/tickets"}, "resume", run).wait(); !e.killed {
		t.Fatalf("it lives: %s", e)
	}
	if n := s.happened(world.TicketCreated); n != 0 {
		t.Fatalf("%d tickets before the dispatch", n)
	}
	if e := s.start([]string{"PAWL_CRASH=after-dispatch@/tickets"}, "resume", run).wait(); !e.killed {
		t.Fatalf("it lives: %s", e)
	}
	s.must(3, "resume", run) // killed after the dispatch: unknown, and not sent again on the old word
	if n := s.happened(world.TicketCreated); n != 0 {
		t.Errorf("%d tickets: a used approval let it go again", n)
	}
	if e := s.pawl("approve", id); e.code == 0 || !strings.Contains(e.err, "consumed") {
		t.Errorf("a used approval was granted again: %s", e)
	}
}

// Two terminals decide about one approval: one wins, the other is told.
func TestOfTwoTerminalsOneDecides(t *testing.T) {
	t.Parallel()
	s := newStand(t, map[string]string{"a.txt": "a\n"})
	s.must(3, s.run(s.script("[[step]]"+post("x")+finishStep))...)
	id := s.asked().ID
	a, b := s.start(nil, "approve", id), s.start(nil, "deny", id, "--reason", "no")
	won := 0
	for _, e := range []ended{a.wait(), b.wait()} {
		switch {
		case e.code == 0:
			won++
		case !strings.Contains(e.err, "not pending"):
			t.Errorf("the loser is not told why: %s", e)
		}
	}
	if won != 1 {
		t.Errorf("%d of two decisions counted", won)
	}
}

// A standing grant lets the same go without a question, is listed as the rule
// that it adds, and can be taken back.
func TestStandingGrant(t *testing.T) {
	t.Parallel()
	s := newStand(t, map[string]string{"a.txt": "a\n"})
	step := "[[step]]" + post("again")
	s.must(3, s.run(s.script(step+step+step+finishStep))...)
	run := string(s.only().ID)
	out := s.must(0, "approve", s.asked().ID, "--for", "run").out
	if !strings.Contains(out, "grant g1") || !strings.Contains(out, "http POST") {
		t.Errorf("the rule is not shown: %s", out)
	}
	s.must(0, "resume", run)
	if n := s.happened(world.TicketCreated); n != 3 {
		t.Errorf("%d tickets under a standing grant, want 3", n)
	}
	grants := objects[struct{ ID, Rule, Scope, Run string }](t, s.must(0, "grants", "--json").out)
	if len(grants) != 1 || grants[0].Scope != "run" || grants[0].Run != run || !strings.HasPrefix(grants[0].Rule, "http POST ") {
		t.Fatalf("the grants are %+v", grants)
	}
	// Another run on the same project asks.
	s.must(3, s.run(s.script(step+step+finishStep))...)
	it := s.asked()
	s.must(0, "approve", it.ID, "--for", "project")
	s.must(0, "resume", string(it.Run))
	// A third one is covered by the project's grant, until it is taken back.
	s.must(0, s.run(s.script(step+finishStep))...)
	s.must(0, "grants", "revoke", "g2", "--reason", "enough")
	if e := s.pawl("grants", "revoke", "g2"); e.code == 0 {
		t.Errorf("a grant was taken back twice: %s", e)
	}
	s.must(3, s.run(s.script(step+finishStep))...)
	if n := s.happened(world.TicketCreated); n != 6 {
		t.Errorf("%d tickets, want 6", n)
	}
	s.must(0, "verify")
}

// An approval that was given and not used can be taken back; it is asked again.
func TestApprovalIsTakenBack(t *testing.T) {
	t.Parallel()
	s := newStand(t, map[string]string{"a.txt": "a\n"})
	s.must(3, s.run(s.script("[[step]]"+post("x")+finishStep))...)
	run := string(s.only().ID)
	s.must(0, "approve", run+".a1")
	s.must(0, "grants", "revoke", run+".a1")
	s.must(3, "resume", run)
	if n := s.happened(world.TicketCreated); n != 0 {
		t.Errorf("%d tickets on a word that was taken back", n)
	}
	if it := s.asked(); it.ID != run+".a2" {
		t.Errorf("%s is asked, want a new question", it.ID)
	}
	s.must(0, "approve", run+".a2")
	s.must(0, "resume", run)
	if e := s.pawl("grants", "revoke", run+".a2"); e.code == 0 || !strings.Contains(e.err, "was used") {
		t.Errorf("a used approval was taken back: %s", e)
	}
	s.must(0, "verify")
}

// An edit runs in place of what was proposed, once, and the model is told.
func TestEditedApproval(t *testing.T) {
	t.Parallel()
	s := newStand(t, map[string]string{"a.txt": "a\n"})
	s.must(3, s.run(s.script("[[step]]"+post("as proposed")+`
[[step]]
expect = ["edited"]
[[step.call]]
tool = "finish"
args = { summary = "done" }
`))...)
	run := string(s.only().ID)
	if e := s.pawl("approve", run+".a1", "--edit", `{"method":"POST"}`); e.code == 0 || !strings.Contains(e.err, "url") {
		t.Errorf("an edit without its arguments was taken: %s", e)
	}
	s.must(0, "approve", run+".a1", "--edit", fmt.Sprintf(`{"method":"POST","url":%q,"body":"{\"title\":\"as edited\"}"}`, s.world.URL()+"/tickets"))
	if e := s.pawl("approve", run+".a1"); e.code == 0 || !strings.Contains(e.err, "superseded") {
		t.Errorf("what was edited can still be approved: %s", e)
	}
	s.must(0, "resume", run)
	if n := s.happened(world.TicketCreated); n != 1 {
		t.Errorf("%d tickets", n)
	}
	if e := s.effect(run, run+".e1"); e.State != "cancelled" || len(e.Attempts) != 0 {
		t.Errorf("the proposal is %s with %d attempts", e.State, len(e.Attempts))
	}
	s.must(0, "verify")
}

// A rule can bound how long a question stays open.
func TestApprovalExpiresByRule(t *testing.T) {
	t.Parallel()
	s := newStand(t, map[string]string{"a.txt": "a\n"})
	s.write(s.policyFile(), `
[[rule]]
decision = "ask"
http = "POST `+s.world.URL()+`/tickets"
expires = "4s"
`)
	s.must(3, s.run(s.script("[[step]]"+post("late")+`
[[step]]
expect = ["expired"]
[[step.call]]
tool = "finish"
args = { summary = "done" }
`))...)
	run := string(s.only().ID)
	until(t, "the approval expires", func() bool {
		e := s.pawl("approve", run+".a1", "--digest", strings.Repeat("1", 64)) // never the right digest
		return strings.Contains(e.err, "expired")
	})
	s.must(0, "resume", run)
	if n := s.happened(world.TicketCreated); n != 0 {
		t.Errorf("%d tickets without an answer", n)
	}
	s.must(0, "verify")
}

// A project's own file may forbid and ask; what it allows counts only while
// the operator trusts exactly its content.
func TestProjectPolicyTightensOnly(t *testing.T) {
	t.Parallel()
	s := newStand(t, map[string]string{"a.txt": "a\n"})
	file := filepath.Join(s.repo, ".pawl", "policy.toml")
	rules := `
[[rule]]
decision = "allow"
http = "POST ` + s.world.URL() + `/tickets"

[[rule]]
decision = "deny"
command = "curl"
reason = "this project downloads nothing"
`
	s.write(file, rules)
	step := "[[step]]" + post("x")
	s.must(3, s.run(s.script(step+finishStep))...)
	s.must(0, "deny", s.asked().ID)
	s.must(0, "policy", "trust", file)
	s.must(0, s.run(s.script(step+finishStep))...)
	if n := s.happened(world.TicketCreated); n != 1 {
		t.Errorf("%d tickets under a trusted policy", n)
	}
	x := s.must(0, "policy", "explain", "curl https://example.com", "--repo", s.repo, "--json").out
	if !strings.Contains(x, `"decision":"deny"`) || !strings.Contains(x, "downloads nothing") {
		t.Errorf("what the project forbids: %s", x)
	}
	// One byte more, and it is another file.
	s.write(file, rules+"\n")
	s.must(3, s.run(s.script(step+finishStep))...)
	s.must(0, "deny", s.asked().ID)
	// A run that was made under a rule keeps it, whatever becomes of the file.
	s.must(3, s.run(s.script(`
[[step]]
[[step.call]]
tool = "ask_operator"
args = { question = "Shall I go on?" }
[[step]]
[[step.call]]
tool = "shell"
args = { command = "curl https://example.com" }
[[step]]
expect = ["downloads nothing"]
[[step.call]]
tool = "finish"
args = { summary = "done" }
`))...)
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	q := s.inbox()[0]
	s.must(0, "answer", q.ID, "go", "on")
	s.must(0, "resume", string(q.Run))
}

// A policy file is read again when it changes; one that breaks leaves the old
// rules in force, in other processes too, and says so.
func TestPolicyFileIsReloadedAndMayBreak(t *testing.T) {
	t.Parallel()
	s := newStand(t, map[string]string{"a.txt": "a\n"})
	allow := "[[rule]]\ndecision = \"allow\"\nhttp = \"POST " + s.world.URL() + "/tickets\"\n"
	s.write(s.policyFile(), allow)
	step := "[[step]]" + post("x")
	ask := `
[[step]]
[[step.call]]
tool = "ask_operator"
args = { question = "Shall I go on?" }
`
	p := s.start(nil, s.run(s.script(step+ask+step+ask+step+finishStep))...)
	p.wait()
	run := string(s.only().ID)
	if n := s.happened(world.TicketCreated); n != 1 {
		t.Fatalf("%d tickets under a rule that allows", n)
	}
	resumed := s.start(nil, "resume", run, "--wait")
	s.write(s.policyFile(), allow+"[[rule]]\ndecision = \"alow\"\ntool = \"shell\"\n")
	s.must(0, "answer", run+".q1", "go")
	until(t, "the second question", func() bool { return len(s.inbox()) == 1 && s.inbox()[0].ID == run+".q2" })
	if n := s.happened(world.TicketCreated); n != 2 {
		t.Errorf("%d tickets: a broken file must keep the rules from before", n)
	}
	s.write(s.policyFile(), strings.ReplaceAll(allow, `"allow"`, `"deny"`))
	s.must(0, "answer", run+".q2", "go")
	e := resumed.wait()
	if e.code != 0 {
		t.Fatalf("%s", e)
	}
	if !strings.Contains(e.err, "policy file is broken") || !strings.Contains(e.err, "line 4") {
		t.Errorf("the broken file is not named: %s", e)
	}
	if n := s.happened(world.TicketCreated); n != 2 {
		t.Errorf("%d tickets: the rule that denies was not read", n)
	}
}

// Budgets stop before the request that would break them, and can be extended.
func TestBudgets(t *testing.T) {
	t.Parallel()
	s := newStand(t, map[string]string{"a.txt": "a\n"})
	say := "[[step]]\nsay = \"thinking\"\ncost_usd = 0.4\n[[step.call]]\ntool = \"read_file\"\nargs = { path = \"a.txt\" }\n"
	s.must(3, s.run(s.script(say+say+say+finishStep), "--budget-usd", "0.7")...)
	it := s.inbox()[0]
	if it.Kind != engine.KindBudget || !strings.Contains(it.Summary, "$0.80") {
		t.Fatalf("the inbox holds %+v", it)
	}
	s.must(0, "answer", it.ID, "extend", "5")
	s.must(0, "resume", string(it.Run))

	s.must(3, s.run(s.script(say+finishStep), "--budget-tokens", "10")...)
	it = s.inbox()[0]
	if it.Kind != engine.KindBudget || !strings.Contains(it.Summary, "tokens") {
		t.Fatalf("the inbox holds %+v", it)
	}
	s.must(0, "answer", it.ID, "extend", "1000000")
	s.must(0, "resume", string(it.Run))

	s.must(3, s.run(s.script(say+finishStep), "--max-wall", "1us")...)
	it = s.inbox()[0]
	if it.Kind != engine.KindBudget || !strings.Contains(it.Summary, "time") {
		t.Fatalf("the inbox holds %+v", it)
	}
	s.must(0, "answer", it.ID, "extend", "600")
	s.must(0, "resume", string(it.Run))
	s.must(0, "verify")
}

// A configured secret reaches the world and nothing else: not the ledger, not
// the model, not the screen. What uses one asks.
func TestSecretsAreFilledInAtDispatch(t *testing.T) {
	t.Parallel()
	const value = "zq-93-very-private"
	s := newStand(t, map[string]string{"a.txt": "a\n"})
	config := filepath.Join(filepath.Dir(s.ledger), "..", "config.toml")
	s.write(config, "[secrets]\nTICKETS = { env = \"MY_TICKETS\" }\nBROKEN = { file = \"x\" }\n")
	s.env = append(s.env, "MY_TICKETS="+value, "PAWL_CONFIG="+config)
	e := s.must(3, s.run(s.script(`
[[step]]
[[step.call]]
tool = "http_request"
args = { method = "POST", url = "{{env.WORLD}}/tickets", body = '{"title":"by ${secret:TICKETS}"}' }
[[step.call]]
tool = "shell"
args = { command = 'echo "got ${secret:TICKETS}"' }
[[step.call]]
tool = "shell"
args = { command = "echo ${secret:OTHER}" }
[[step]]
expect = ["got ${secret:TICKETS}", "There is no secret"]
reject = ["`+value+`"]
[[step.call]]
tool = "finish"
args = { summary = "done" }
`))...)
	if !strings.Contains(e.err, "BROKEN") {
		t.Errorf("what is wrong with a secret is not said: %s", e)
	}
	run := string(s.only().ID)
	for _, it := range s.inbox() {
		shown := s.must(0, "show", it.ID).out
		if strings.Contains(shown, value) || !strings.Contains(shown, "${secret:TICKETS}") {
			t.Errorf("the card shows %s", shown)
		}
		s.must(0, "approve", it.ID)
	}
	s.must(0, "resume", run)
	if n := s.happened(world.TicketCreated); n != 1 {
		t.Fatalf("%d tickets", n)
	}
	log, err := json.Marshal(s.world.Log())
	if err != nil || !strings.Contains(string(log), "by "+value) {
		t.Errorf("the world got something else (%v): %s", err, log)
	}
	// Nothing of it is kept beside the ledger, which is compressed: it is read back.
	out := s.must(0, "log", run, "--json").out + s.must(0, "show", run, "--json").out + s.must(0, "context", run).out
	if strings.Contains(out, value) {
		t.Error("the ledger holds the secret's value")
	}
	outputs, err := filepath.Glob(filepath.Join(filepath.Dir(s.ledger), "outputs", "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range outputs {
		if b, err := os.ReadFile(f); err == nil && strings.Contains(string(b), value) {
			t.Errorf("%s holds the secret's value", filepath.Base(f))
		}
	}
}

// Rules hold for Pawl's own tools as for commands, and the model is told why.
func TestRulesHoldForEdits(t *testing.T) {
	t.Parallel()
	s := newStand(t, map[string]string{"locked/a.txt": "a\n", "b.txt": "b\n"})
	s.write(s.policyFile(), "[[rule]]\ndecision = \"deny\"\nwrites = [\"locked/**\"]\nreason = \"these files are generated\"\n")
	s.must(0, s.run(s.script(`
[[step]]
[[step.call]]
tool = "write_file"
args = { path = "locked/a.txt", content = "x" }
[[step.call]]
tool = "shell"
args = { command = "cd locked && echo x > a.txt" }
[[step.call]]
tool = "write_file"
args = { path = "b.txt", content = "written" }
[[step]]
expect = ["these files are generated"]
[[step.call]]
tool = "finish"
args = { summary = "done" }
`))...)
	run := s.only()
	place := s.show(string(run.ID)).Workspace.Path
	for name, want := range map[string]string{"locked/a.txt": "a\n", "b.txt": "written"} {
		if got, err := os.ReadFile(filepath.Join(place, name)); err != nil || string(got) != want {
			t.Errorf("%s holds %q, %v", name, got, err)
		}
	}
	if n := s.kinds(string(run.ID))["EffectRefused"]; n != 2 {
		t.Errorf("%d calls were refused, want 2", n)
	}
}
