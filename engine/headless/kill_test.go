package headless_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pawl/engine"
	"pawl/fixtures/world"
)

// deed is one effect that a run is killed in.
type deed struct {
	name   string
	step   string         // the script's step, as TOML
	line   string         // occurs in the effect's line, for arming
	points []engine.Point // the boundaries that it passes
	env    []string       // of every process
	sealed bool           // it is what it is only where commands can be sealed
	allow  func(s *stand) []string
	// done counts how often it is there, wherever it acts.
	done func(s *stand, run string) int
	// once: a number other than one is a fault. A read may happen any number of times.
	once bool
	// asks are the points after which nobody but a person can tell; look answers
	// for that person, who may tidy up before it is done again.
	asks []engine.Point
	look func(s *stand, run string) bool
	// again are points that recovery passes once more: there it is sent again.
	again []engine.Point
}

// bothEdits counts an edit of two files and complains about half of it.
func bothEdits(s *stand, run string) int {
	a, b := s.worked(run, "a.txt"), s.worked(run, "b.txt")
	if strings.Count(a, "one\n") != strings.Count(b, "two\n") {
		s.t.Errorf("the edit is half there: a.txt %q, b.txt %q", a, b)
	}
	return strings.Count(a, "one\n")
}

// commands pass all boundaries; others have no output that could be a moment
// to die in. What needs neither an approval nor a snapshot is dispatched by the
// commit that holds its intent, and a read by the one that holds its result.
var (
	ofCommand = engine.Points()
	ofEdit    = without(ofCommand, engine.PointWhileRunning)
	ofRequest = ofEdit
	ofMerged  = without(ofEdit, engine.PointBeforeDispatch)
	ofRead    = without(ofEdit, engine.PointAfterDispatch)
)

func without(ps []engine.Point, drop engine.Point) []engine.Point {
	return slices.DeleteFunc(slices.Clone(ps), func(p engine.Point) bool { return p == drop })
}

var deeds = []deed{
	{
		name: "sealed edit of two files",
		step: `[[step.call]]
tool = "shell"
args = { command = "printf 'one\\n' >> a.txt; echo first; sleep 1; printf 'two\\n' >> b.txt" }`,
		line: "printf", points: ofCommand, once: true, done: bothEdits, sealed: true,
		again: []engine.Point{engine.PointAfterDispatch, engine.PointWhileRunning, engine.PointAfterEffect},
	},
	{
		// Nothing is known of what it may have touched. That it never began is
		// known, though: its gate was shut.
		name: "unsealed edit of two files",
		step: `[[step.call]]
tool = "shell"
args = { command = "printf 'one\\n' >> a.txt; echo first; sleep 1; printf 'two\\n' >> b.txt" }`,
		line: "printf", points: ofCommand, once: true, env: []string{"PAWL_CONFINE_MAX=none"}, done: bothEdits,
		again: []engine.Point{engine.PointAfterDispatch, engine.PointWhileRunning},
		asks:  []engine.Point{engine.PointWhileRunning, engine.PointAfterEffect, engine.PointBeforeAck},
		look: func(s *stand, run string) bool {
			if strings.Contains(s.worked(run, "b.txt"), "two\n") {
				return true
			}
			s.write(filepath.Join(s.workspace(run), "a.txt"), "n = 1\n")
			return false
		},
	},
	{
		name: "own edit",
		step: `[[step.call]]
tool = "edit_file"
args = { path = "a.txt", old = "n = 1", new = "n = 1 + 1" }`,
		line: "edit_file", points: ofEdit, once: true, again: []engine.Point{engine.PointAfterDispatch},
		done: func(s *stand, run string) int { return strings.Count(s.worked(run, "a.txt"), "+ 1") },
	},
	{
		name: "push",
		step: `[[step.call]]
tool = "shell"
args = { command = "git push origin HEAD:refs/heads/out" }`,
		line: "git push", points: ofCommand, once: true, again: []engine.Point{engine.PointAfterDispatch},
		done: func(s *stand, _ string) int {
			v, err := world.JudgeRemote(s.t.Context(), s.remote(), []world.WantRef{{Name: "refs/heads/out", Base: "main"}}, "refs/heads/main")
			if err != nil {
				s.t.Fatal(err)
			}
			n := 0
			for _, c := range v.Actions {
				if c.Kind == world.RefUpdated {
					n += c.Times
				}
			}
			return n
		},
	},
	{
		name: "payment with a key",
		step: `[[step.call]]
tool = "http_request"
args = { method = "POST", url = "{{env.WORLD}}/payments", key_header = "Payment-Key", headers = { Content-Type = "application/json" }, body = '{"to":"ada","amount":1700}' }`,
		line: "/payments", points: ofMerged, once: true, again: []engine.Point{engine.PointAfterDispatch, engine.PointAfterEffect},
		allow: func(s *stand) []string { return []string{"--allow", "http POST " + s.world.URL() + "/payments"} },
		done:  func(s *stand, _ string) int { return s.happened(world.PaymentMade) },
	},
	{
		name: "ticket without a key",
		step: `[[step.call]]
tool = "http_request"
args = { method = "POST", url = "{{env.WORLD}}/tickets", headers = { Content-Type = "application/json" }, body = '{"title":"once"}' }`,
		line: "/tickets", points: ofRequest, once: true, again: []engine.Point{engine.PointAfterDispatch},
		done: func(s *stand, _ string) int { return s.happened(world.TicketCreated) },
		asks: []engine.Point{engine.PointAfterDispatch, engine.PointAfterEffect, engine.PointBeforeAck},
		look: func(s *stand, _ string) bool {
			found, err := world.Tickets(s.t.Context(), s.world.URL(), "once")
			if err != nil {
				s.t.Fatal(err)
			}
			return len(found) > 0
		},
	},
	{
		name: "read",
		step: `[[step.call]]
tool = "read_file"
args = { path = "a.txt" }`,
		line: "read_file", points: ofRead,
		done: func(*stand, string) int { return 1 },
	},
}

// worked reads a file of the run's workspace.
func (s *stand) worked(run, name string) string {
	s.t.Helper()
	b, err := os.ReadFile(filepath.Join(s.workspace(run), name))
	if err != nil {
		s.t.Fatal(err)
	}
	return string(b)
}

// workspace is where a run works.
func (s *stand) workspace(run string) string {
	s.t.Helper()
	if path := s.show(run).Workspace.Path; path != "" {
		return path
	}
	s.t.Fatalf("run %s has no workspace", run)
	return ""
}

// happened counts actions of a kind in the world's own log.
func (s *stand) happened(k world.Kind) int {
	n := 0
	for _, e := range s.world.Log() {
		if e.Kind == k {
			n++
		}
	}
	return n
}

func (s *stand) remote() string { return filepath.Join(filepath.Dir(s.repo), "origin.git") }

// withRemote gives the project a bare remote that counts its pushes, and a
// commit that is not there yet.
func (s *stand) withRemote() {
	s.t.Helper()
	s.git("init", "--quiet", "--template=", "--bare", "-b", "main", s.remote())
	s.git("--git-dir", s.remote(), "config", "core.logAllRefUpdates", "always")
	s.git("remote", "add", "origin", s.remote())
	s.git("push", "--quiet", "origin", "main")
	s.write(filepath.Join(s.repo, "c.txt"), "to be pushed\n")
	s.git("add", "--all")
	s.git("-c", "user.name=A", "-c", "user.email=a@example.com", "-c", "commit.gpgSign=false", "commit", "--quiet", "-m", "more")
}

// driven is what became of a run that was driven to its end.
type driven struct {
	run   string
	kills int
	asked int // verdicts that a person gave
}

// drive takes a run to its end with one process after the other, as a person
// would who has only the command line. Each process is armed with the crash
// point until it has killed that many times.
func (s *stand) drive(d deed, crash string, kills int, start []string) driven {
	s.t.Helper()
	var got driven
	args := start
	const most = 16
	for range most {
		var env []string
		if got.kills < kills {
			env = []string{"PAWL_CRASH=" + crash}
		}
		e := s.start(env, args...).wait()
		got.run = string(s.only().ID)
		args = []string{"resume", got.run}
		switch {
		case e.killed && len(env) > 0:
			got.kills++
		case e.code == 0:
			return got
		case e.code != 3:
			s.t.Fatalf("not done and not waiting: %s", e)
		}
		s.decide(d, &got)
	}
	s.t.Fatalf("no end after %d processes", most)
	return got
}

// decide answers everything that is in the inbox.
func (s *stand) decide(d deed, got *driven) {
	s.t.Helper()
	for _, i := range s.inbox() {
		switch i.Kind {
		case engine.KindApproval:
			s.must(0, "approve", i.ID)
		case engine.KindAmbiguous:
			if d.look == nil {
				s.t.Fatalf("a person is asked about what can be found out: %+v\n%s", i, s.must(0, "log", got.run).out)
			}
			got.asked++
			choice := "retry"
			if d.look(s, got.run) {
				choice = "happened"
			}
			_, short, _ := strings.Cut(i.ID, ".")
			s.must(0, "settle", i.ID, choice, "--reason", "I looked", "--confirm", short)
		default:
			s.t.Fatalf("unexpected in the inbox: %+v", i)
		}
	}
}

// killAndJudge drives a deed that is killed at a point, and judges its end.
func killAndJudge(t *testing.T, d deed, p engine.Point, kills int) driven {
	t.Helper()
	s := newStand(t, map[string]string{"a.txt": "n = 1\n", "b.txt": "\n"})
	s.env = d.env
	if d.sealed {
		needsSeal(s)
	}
	if strings.Contains(d.step, "git push") {
		s.withRemote()
	}
	script := s.script("[[step]]\nsay = \"I do it.\"\n" + d.step + "\n[[step]]\n[[step.call]]\ntool = \"finish\"\nargs = { summary = \"done\" }\n")
	at := string(p) + "@" + d.line
	if p == engine.PointBeforeIntent {
		at = string(p) + "@turn 1"
	}
	var allow []string
	if d.allow != nil {
		allow = d.allow(s)
	}
	got := s.drive(d, at, kills, s.run(script, allow...))
	if got.kills != kills {
		t.Fatalf("it was killed %d times at %s", got.kills, at)
	}
	if n := d.done(s, got.run); d.once && n != 1 {
		t.Errorf("it is there %d times", n)
	}
	if st := s.only().State; st != engine.Done {
		t.Errorf("the run is %s", st)
	}
	s.must(0, "verify")
	return got
}

// Wherever a process dies, what it did to the world is there once: not twice,
// not lost, and the ledger still is what its events say.
func TestKilledAtEachPointEverythingHappensOnce(t *testing.T) {
	for _, d := range deeds {
		for _, p := range d.points {
			t.Run(fmt.Sprintf("%s/%s", strings.ReplaceAll(d.name, " ", "-"), p), func(t *testing.T) {
				t.Parallel()
				got := killAndJudge(t, d, p, 1)
				want := 0
				if slices.Contains(d.asks, p) {
					want = 1
				}
				if got.asked != want {
					t.Errorf("a person was asked %d times instead of %d", got.asked, want)
				}
			})
		}
	}
}

// A process that dies while it recovers is no other case than one that dies
// at work.
func TestKilledAgainWhileItRecovers(t *testing.T) {
	for _, d := range deeds {
		for _, p := range d.again {
			t.Run(fmt.Sprintf("%s/%s", strings.ReplaceAll(d.name, " ", "-"), p), func(t *testing.T) {
				t.Parallel()
				killAndJudge(t, d, p, 2)
			})
		}
	}
}
