package headless_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"pawl/engine"
	"pawl/fixtures/scripts"
	"pawl/fixtures/world"
)

// gate is a service that holds each request until it is let go, so that a test
// can do things to a process that is in the middle of a call.
type gate struct {
	*httptest.Server
	came chan struct{} // one for each request that arrived
	open chan struct{}
	once sync.Once
}

func newGate(t *testing.T) *gate {
	g := &gate{came: make(chan struct{}, 16), open: make(chan struct{})}
	g.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.came <- struct{}{}
		select {
		case <-g.open:
		case <-r.Context().Done():
			return
		}
		_, _ = w.Write([]byte("through"))
	}))
	t.Cleanup(func() {
		g.letGo()
		g.CloseClientConnections()
		g.Close()
	})
	return g
}

func (g *gate) letGo() { g.once.Do(func() { close(g.open) }) }

// arrived waits for a request.
func (g *gate) arrived(t *testing.T) {
	t.Helper()
	select {
	case <-g.came:
	case <-time.After(patience):
		t.Fatal("no request came")
	}
}

// held is a stand whose run stands in the middle of a request to a gate.
func held(t *testing.T) (*stand, *gate, *proc) {
	t.Helper()
	g := newGate(t)
	s := newStand(t, map[string]string{"a.txt": "a\n"})
	script := s.script(fmt.Sprintf(`
[[step]]
say = "I send it."
[[step.call]]
tool = "http_request"
args = { method = "POST", url = %q, body = "x" }
[[step]]
[[step.call]]
tool = "finish"
args = { summary = "sent" }
`, g.URL+"/slow"))
	p := s.start(nil, s.run(script, "--allow", "http POST "+g.URL+"/slow")...)
	g.arrived(t)
	return s, g, p
}

// B01: the process dies after the first of two calls has its result and while
// the second is under way.
func TestOpenCallOfATurnIsSettledOnceAndAnsweredOnce(t *testing.T) {
	t.Parallel()
	s := newStand(t, map[string]string{"a.txt": "content of a\n"})
	server := s.serve(`
[[step]]
say = "Two things at once."
[[step.call]]
tool = "read_file"
args = { path = "a.txt" }
[[step.call]]
tool = "http_request"
args = { method = "POST", url = "{{env.WORLD}}/tickets", body = '{"title":"second call"}' }
[[step]]
expect = ["content of a", "unknown"]
[[step.call]]
tool = "finish"
args = { summary = "done" }
`)
	p := s.start([]string{"PAWL_CRASH=after-effect@/tickets"}, "run", "two things", "--repo", s.repo, "--model", "openai/x", "--headless",
		"--allow", "http POST "+s.world.URL()+"/tickets")
	if e := p.wait(); !e.killed {
		t.Fatalf("it lives: %s", e)
	}
	run := string(s.only().ID)

	s.must(3, "resume", run)
	first := s.kinds(run)
	s.must(3, "resume", run)
	second := s.kinds(run)
	delete(first, "RunClaimed")
	delete(second, "RunClaimed")
	if fmt.Sprint(first) != fmt.Sprint(second) {
		t.Errorf("the second reopening added something:\n%v\n%v", first, second)
	}
	if first["EffectAmbiguous"] != 1 {
		t.Errorf("the open call was settled %d times", first["EffectAmbiguous"])
	}
	items := s.inbox()
	if len(items) != 1 || items[0].Kind != engine.KindAmbiguous {
		t.Fatalf("the inbox holds %+v", items)
	}
	if e := s.effect(run, items[0].ID); e.State != "ambiguous" || e.Verdict != "unknown" {
		t.Errorf("the call is %s, %q", e.State, e.Verdict)
	}

	s.must(0, "settle", items[0].ID, "abandon")
	s.must(0, "resume", run)
	if n := s.happened(world.TicketCreated); n != 1 {
		t.Errorf("%d tickets", n)
	}
	requests := server.Requests()
	if len(requests) != 2 {
		t.Errorf("%d requests to the model", len(requests))
	}
	for i, r := range requests {
		if err := paired(r.Body); err != "" {
			t.Errorf("request %d: %s", i+1, err)
		}
	}
	s.must(0, "verify")
}

// B03: the machine freezes in the middle of a call and never wakes.
func TestFrozenAndKilledProcessLeavesAResumableRun(t *testing.T) {
	t.Parallel()
	s, g, p := held(t)
	run := string(s.only().ID)
	if err := p.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if st := s.only().State; st != engine.Running {
		t.Errorf("frozen, but owned: the run is %s", st)
	}

	other := *s
	other.ledger = filepath.Join(t.TempDir(), "copy", "ledger.db")
	if out, err := exec.Command("cp", "-a", filepath.Dir(s.ledger), filepath.Dir(other.ledger)).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	other.must(0, "verify")
	if st := other.only().State; st != engine.Waiting && st != engine.Interrupted {
		t.Errorf("in the copy, which nobody drives, the run is %s", st)
	}
	if items := other.inbox(); len(items) != 1 || items[0].Kind != engine.KindAmbiguous {
		t.Errorf("the copy's inbox holds %+v", items)
	}

	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	p.wait()
	items := s.inbox()
	if len(items) != 1 || items[0].Kind != engine.KindAmbiguous {
		t.Fatalf("the inbox holds %+v", items)
	}
	if st := s.only().State; st == engine.Running {
		t.Error("nobody drives it, and it is called running")
	}
	g.letGo()
	_, short, _ := strings.Cut(items[0].ID, ".")
	s.must(0, "settle", items[0].ID, "retry", "--reason", "the service never answered it", "--confirm", short)
	s.must(0, "resume", run)
	s.must(0, "verify")
}

// B05: which run is gone on with follows the operator's last word, not who
// wrote last; and it is named before it moves.
func TestResumeNamesTheRunOfTheLastWordFirst(t *testing.T) {
	t.Parallel()
	s := newStand(t, map[string]string{"a.txt": "a\n"})
	needsSeal(s) // else the steps ask first
	step := `
[[step.call]]
tool = "shell"
args = { command = "echo %s" }
`
	script := s.script("[[step]]\nsay = \"look at this line\"\n" + fmt.Sprintf(step, "one") + "[[step]]\n" + fmt.Sprintf(step, "two") +
		"[[step]]\n[[step.call]]\ntool = \"finish\"\nargs = { summary = \"x\" }\n")
	begin := func(goal, crash string) string {
		e := s.start([]string{"PAWL_CRASH=" + crash}, "run", goal, "--repo", s.repo, "--script", script, "--headless").wait()
		if !e.killed {
			t.Fatalf("it lives: %s", e)
		}
		for _, l := range objects[engine.RunLine](t, s.must(0, "list", "--json").out) {
			if l.Goal == goal {
				return string(l.ID)
			}
		}
		t.Fatalf("the run for %q is not in the list", goal)
		return ""
	}
	older := begin("the older task", "before-ack@echo one")
	newer := begin("the newer task", "before-ack@echo one")
	if e := s.start([]string{"PAWL_CRASH=before-ack@echo two"}, "resume", older).wait(); !e.killed {
		t.Fatalf("it lives: %s", e) // now the older one has the newest event
	}
	e := s.must(2, "resume")
	if a, b := strings.Index(e.err, newer), strings.Index(e.err, older); a < 0 || b < 0 || a > b {
		t.Errorf("the run of the last word is not named first: %s", e)
	}
	s.must(0, "resume", older)
	e = s.must(0, "resume")
	goal, line := strings.Index(e.out, "the newer task"), strings.Index(e.out, "last:")
	if moved := strings.Index(e.out, "restored"); goal != strings.Index(e.out, "run "+newer)+len("run "+newer+": ") || line < goal || moved >= 0 && moved < line {
		t.Errorf("it does not say which run it goes on with before anything moves:\n%s", e.out)
	}
}

// B06: an approval outlives the process that asked; it is answered once.
func TestApprovalSurvivesAKillAndIsAnsweredOnce(t *testing.T) {
	t.Parallel()
	s := newStand(t, map[string]string{"a.txt": "a\n"})
	script := s.script(`
[[step]]
[[step.call]]
tool = "http_request"
args = { method = "POST", url = "{{env.WORLD}}/tickets", body = '{"title":"asked first"}' }
[[step]]
[[step.call]]
tool = "finish"
args = { summary = "done" }
`)
	s.must(3, s.run(script)...)
	run := string(s.only().ID)
	p := s.start(nil, "resume", run, "--wait")
	until(t, "a process drives the run", func() bool { return s.only().Owner != "" })
	before := s.inbox()
	if len(before) != 1 || before[0].Kind != engine.KindApproval {
		t.Fatalf("the inbox holds %+v", before)
	}
	id := before[0].ID
	card := s.must(0, "show", id, "--json").out
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	p.wait()

	if after := s.inbox(); len(after) != 1 || after[0] != before[0] {
		t.Errorf("after the kill the inbox holds %+v, before it %+v", after, before)
	}
	if again := s.must(0, "show", id, "--json").out; again != card {
		t.Errorf("what would run has changed:\n%s\n%s", card, again)
	}
	s.must(0, "approve", id)
	for _, wrong := range []string{id, run + ".a99", "r0000000.a1"} {
		for _, how := range []string{"approve", "deny"} {
			if e := s.must(1, how, wrong); !strings.Contains(e.err, "not pending") {
				t.Errorf("%s is not told that it is not pending: %s", wrong, e)
			}
		}
	}
	if n := s.happened(world.TicketCreated); n != 0 {
		t.Errorf("%d tickets before anybody went on", n)
	}
	s.must(0, "resume", run)
	if n := s.happened(world.TicketCreated); n != 1 {
		t.Errorf("%d tickets", n)
	}
	if e := s.must(1, "approve", id); !strings.Contains(e.err, "consumed") {
		t.Errorf("a used grant is answered with %s", e)
	}
	s.must(0, "verify")
}

// B15: what a command leaves behind holds its output open, ignores TERM, or
// has left its session; none of it holds up the call or outlives it.
func TestTimedOutCommandEndsWithAllItsChildren(t *testing.T) {
	t.Parallel()
	s := newStand(t, map[string]string{"a.txt": "a\n"})
	needsSeal(s)
	mark := fmt.Sprintf("31%d", os.Getpid())
	command := fmt.Sprintf(`sleep %[1]s.1 & setsid sleep %[1]s.2 & bash -c 'trap "" TERM; sleep %[1]s.3' & echo begun; sleep %[1]s.4`, mark)
	script := s.script(fmt.Sprintf(`
[[step]]
[[step.call]]
tool = "shell"
args = { command = %q, timeout_s = 2 }
[[step]]
expect = ["stopped after 2s", "begun"]
[[step.call]]
tool = "shell"
args = { command = %q, timeout_s = 3000 }
[[step]]
[[step.call]]
tool = "finish"
args = { summary = "x" }
`, command, "echo twice; "+command))
	if e := s.start([]string{"PAWL_CRASH=while-running@echo twice"}, s.run(script)...).wait(); !e.killed {
		t.Fatalf("the first call holds on, or the second did not begin: %s", e)
	}
	until(t, "nothing that the commands started is alive", func() bool { return len(alive(mark+".")) == 0 })
	s.must(0, "verify")
}

// alive lists processes with a word in their command line that begins with mark.
func alive(mark string) []string {
	var found []string
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			continue
		}
		for _, word := range strings.Split(string(b), "\x00") {
			if strings.HasPrefix(word, mark) {
				found = append(found, f)
			}
		}
	}
	return found
}

// needsSeal skips where commands cannot be sealed.
func needsSeal(s *stand) {
	s.t.Helper()
	var d struct{ Confinement string }
	out := s.must(0, "doctor", "--json").out
	if err := json.Unmarshal([]byte(out), &d); err != nil {
		s.t.Fatalf("%v in %s", err, out)
	}
	if d.Confinement != "sealed" {
		s.t.Skipf("commands run %s here", d.Confinement)
	}
}

// B47: of two processes that want one run, one drives it and the other says who does.
func TestOfTwoProcessesOneDrivesTheRun(t *testing.T) {
	t.Parallel()
	s, g, p := held(t)
	run := string(s.only().ID)
	e := s.must(1, "resume", run)
	if want := fmt.Sprintf("pid %d", p.cmd.Process.Pid); !strings.Contains(e.err, want) {
		t.Errorf("the second process does not name %s: %s", want, e)
	}
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	p.wait()

	// The owner is dead. Two want its run at the same moment.
	item := s.inbox()[0]
	_, short, _ := strings.Cut(item.ID, ".")
	s.must(0, "settle", item.ID, "retry", "--reason", "the service says so", "--confirm", short)
	pair := []*proc{s.start(nil, "resume", run), s.start(nil, "resume", run)}
	g.arrived(t) // one of them has sent it again
	var loser ended
	var winner *proc
	select {
	case <-pair[0].done:
		loser, winner = pair[0].wait(), pair[1]
	case <-pair[1].done:
		loser, winner = pair[1].wait(), pair[0]
	case <-time.After(patience):
		t.Fatal("both go on")
	}
	if want := fmt.Sprintf("pid %d", winner.cmd.Process.Pid); loser.code != 1 || !strings.Contains(loser.err, want) {
		t.Errorf("the loser does not name %s: %s", want, loser)
	}
	g.letGo()
	if e := winner.wait(); e.code != 0 {
		t.Errorf("the winner: %s", e)
	}
	select {
	case <-g.came:
		t.Error("both of them sent the request")
	default:
	}
	s.must(0, "verify")
}

// B54: a model that goes in circles stops at the operator, with what it cost so far.
func TestModelThatGoesInCirclesWaitsForTheOperator(t *testing.T) {
	t.Parallel()
	for _, name := range []string{scripts.UnknownTool, scripts.BadArgs, scripts.SameRead} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStand(t, map[string]string{"retry.go": "package retry\n"})
			text, err := scripts.Read(name)
			if err != nil {
				t.Fatal(err)
			}
			s.must(3, s.run(s.script(string(text)))...)
			run := s.only()
			items := s.inbox()
			if len(items) != 1 || items[0].Kind != engine.KindLimit || !strings.Contains(items[0].Summary, "turns") || !strings.Contains(items[0].Summary, "$") {
				t.Fatalf("the inbox holds %+v", items)
			}
			if run.Turns > 15 {
				t.Errorf("it was stopped after %d turns", run.Turns)
			}
			if n := s.kinds(string(run.ID))["ApprovalRequested"]; n > 0 {
				t.Errorf("%d approvals were asked for", n)
			}
			s.must(2, "answer", items[0].ID)
			s.must(1, "answer", items[0].ID, "perhaps")
			s.must(0, "answer", items[0].ID, "extend", "3")
			s.must(3, "resume", string(run.ID))
			if now := s.only(); now.Turns <= run.Turns {
				t.Errorf("extended, it went from %d to %d turns", run.Turns, now.Turns)
			}
			next := s.inbox()
			if len(next) != 1 || next[0].ID == items[0].ID {
				t.Fatalf("the inbox holds %+v", next)
			}
			s.must(0, "answer", next[0].ID, "stop")
			s.must(4, "resume", string(run.ID))
			s.must(0, "verify")
		})
	}
}

// B55: ids that a provider uses twice name nothing here.
func TestCallsThatShareAnIDEachHaveTheirOwnResult(t *testing.T) {
	t.Parallel()
	s := newStand(t, map[string]string{"backoff.go": "package retry\n\nfunc doubled() {}\n", "jitter.go": "package retry\n\nfunc shortened() {}\n"})
	text, err := scripts.Read(scripts.SameID)
	if err != nil {
		t.Fatal(err)
	}
	s.must(0, s.run(s.script(string(text)))...)
	ids := map[string]bool{}
	for _, e := range s.show(string(s.only().ID)).Effects {
		if ids[e.ID] || len(e.Attempts) != 1 {
			t.Errorf("effect %s: %d attempts", e.ID, len(e.Attempts))
		}
		ids[e.ID] = true
	}
	if len(ids) != 4 {
		t.Errorf("%d effects", len(ids))
	}
	s.must(0, "verify")
}

// A model that is told "unknown" and tries the same another way comes no
// further than a person's yes, rule or no rule.
func TestUnresolvedEffectIsNotWorkedAround(t *testing.T) {
	t.Parallel()
	s := newStand(t, map[string]string{"a.txt": "a\n"})
	text, err := scripts.Read(scripts.Workaround)
	if err != nil {
		t.Fatal(err)
	}
	args := s.run(s.script(string(text)), "--allow", "http POST "+s.world.URL()+"/tickets")
	if e := s.start([]string{"PAWL_CRASH=after-effect@/tickets"}, args...).wait(); !e.killed {
		t.Fatalf("it lives: %s", e)
	}
	run := string(s.only().ID)
	s.must(0, "settle", s.inbox()[0].ID, "abandon", "--reason", "nobody can look today")
	for _, what := range []string{"curl", "again=1"} {
		s.must(3, "resume", run)
		items := s.inbox()
		if len(items) != 1 || items[0].Kind != engine.KindApproval || !strings.Contains(items[0].Summary, what) {
			t.Fatalf("the inbox holds %+v, want an approval for %q", items, what)
		}
		if card := s.must(0, "show", items[0].ID).out; !strings.Contains(card, "e1") {
			t.Errorf("the card does not show the effect that it resembles:\n%s", card)
		}
		s.must(0, "deny", items[0].ID, "--reason", "it may exist already")
	}
	s.must(0, "resume", run)
	if n := s.happened(world.TicketCreated); n != 1 {
		t.Errorf("%d tickets", n)
	}
	s.must(0, "verify")
}

// An interrupt stops at a safe point: the call under way is waited for.
func TestInterruptLosesNothing(t *testing.T) {
	t.Parallel()
	s, g, p := held(t)
	if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	select {
	case <-p.done:
		t.Fatalf("it did not wait for the call: %s", p.wait())
	case <-ctx.Done():
	}
	g.letGo()
	if e := p.wait(); e.code != 3 || !strings.Contains(e.out+e.err, "resume") {
		t.Errorf("it does not say how to go on: %s", e)
	}
	run := string(s.only().ID)
	if n := s.kinds(run)["EffectAmbiguous"]; n > 0 {
		t.Errorf("%d effects without an observed end", n)
	}
	s.must(0, "resume", run)
	s.must(0, "verify")
}
