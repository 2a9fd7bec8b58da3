package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"pawl/engine/confine"
	"pawl/engine/effect"
	"pawl/engine/machine"
	"pawl/engine/model"
	"pawl/engine/policy"
	"pawl/engine/tool"
	"pawl/ledger"
)

// script answers turn n with its n-th entry, then finishes.
type script [][]model.RawCall

func (s script) Complete(_ context.Context, req model.Request, _ func(string)) (model.Response, error) {
	if req.Turn > len(s) {
		return model.Response{Stop: machine.StopTools, Calls: []model.RawCall{{ProviderID: "f", Name: "finish", Args: `{"summary":"done"}`}}}, nil
	}
	return model.Response{Text: "next", Stop: machine.StopTools, Calls: s[req.Turn-1]}, nil
}

func send(what string) []model.RawCall {
	return []model.RawCall{{ProviderID: "c", Name: "send", Args: fmt.Sprintf(`{"n":%q}`, what)}}
}

// sender is an effect on a world that the test holds: how each attempt ends is
// the test's to say.
type sender struct {
	contract machine.Contract
	asks     bool
	end      func(attempt int) tool.Outcome // nil: observed, well

	mu    sync.Mutex
	world []string // what was really sent, with its key
}

func (*sender) Spec() tool.Spec {
	return tool.Spec{Name: "send", Version: 1, Description: "sends", Schema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"string"}},"required":["n"]}`)}
}

func (s *sender) Plan(_ context.Context, _ tool.Env, args json.RawMessage) (tool.Plan, error) {
	c := s.contract
	c.Name, c.Version, c.Sender = "send", 1, machine.SenderPawl
	return tool.Plan{Args: args, Summary: "send " + string(args), Text: string(args), Contract: c, Subject: policy.Subject{Tool: "send", Internal: !s.asks}}, nil
}

func (*sender) Measure(context.Context, tool.Env, machine.Contract, json.RawMessage) (tool.Measured, error) {
	return tool.Measured{}, nil
}

func (s *sender) Run(_ context.Context, env tool.Env, c tool.Call) tool.Outcome {
	s.mu.Lock()
	s.world = append(s.world, string(c.Args)+" "+c.Contract.Key)
	s.mu.Unlock()
	if s.end != nil {
		return s.end(c.Attempt)
	}
	return tool.Outcome{End: tool.EndCompleted, Result: machine.Result{OK: true, Code: "0"}}
}

func (s *sender) sent() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.world...)
}

func lost(env *machine.Instant) tool.Outcome {
	return tool.Outcome{End: tool.EndAmbiguous, Cause: "the connection broke", Closed: env}
}

// stand is one ledger in memory with engines on it, each a process.
type stand struct {
	t    *testing.T
	mem  *ledger.Mem
	dir  string
	tool *sender
	look Looker
}

func newStand(t *testing.T, s *sender) *stand {
	t.Helper()
	mem, err := ledger.NewMem(ledger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return &stand{t: t, mem: mem, dir: t.TempDir(), tool: s}
}

func (s *stand) engine(name string, m model.Provider) *Engine {
	s.t.Helper()
	h, err := s.mem.Open(name)
	if err != nil {
		s.t.Fatal(err)
	}
	e, err := New(Options{
		Store: h, Holder: h.Process(), StateDir: s.dir, Operator: name, Models: fixedModel{m}, Look: s.look,
		Tools: tool.All(tool.Options{More: []tool.Tool{s.tool}}), Level: &confine.Report{Level: confine.LevelNone},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := e.Close(ctx); err != nil {
			s.t.Error(err)
		}
	})
	return e
}

// rest drives a run until it rests.
func (s *stand) rest(e *Engine, id machine.RunID) Rest {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := e.Drive(ctx, id); err != nil {
		s.t.Fatal(err)
	}
	r, err := e.Wait(ctx, id)
	if err != nil || r.Err != nil {
		s.t.Fatalf("rest %+v: %v", r, err)
	}
	return r
}

func (s *stand) effect(e *Engine, id machine.EffectID) machine.Effect {
	s.t.Helper()
	st, err := e.State(context.Background(), id.Run())
	if err != nil {
		s.t.Fatal(err)
	}
	f := st.Effect(id)
	if f == nil {
		s.t.Fatalf("no effect %s", id)
	}
	return *f
}

// verify holds the rows against the events.
func (s *stand) verify(e *Engine) {
	s.t.Helper()
	v, err := e.Verify(context.Background(), nil)
	if err != nil || !v.OK {
		s.t.Fatalf("verify: %+v, %v", v.Problems, err)
	}
}

func TestTwoOperatorsDecideAtOnceAndOneIsToldWhoAndWhen(t *testing.T) {
	w := &sender{contract: machine.Contract{Class: machine.ClassIrreversible}, end: func(int) tool.Outcome { return lost(nil) }}
	s := newStand(t, w)
	ann, bob := s.engine("ann", script{send("a")}), s.engine("bob", script{})
	id := readyRun(t, ann, s.dir, 10)
	r := s.rest(ann, id)
	if len(r.Waits) != 1 || r.Waits[0].Kind != machine.WaitAmbiguous {
		t.Fatalf("waits %+v", r.Waits)
	}
	eid := machine.EffectID(r.Waits[0].Ref)
	errs := make(chan error, 2)
	for _, e := range []*Engine{ann, bob} {
		go func() {
			errs <- e.Settle(context.Background(), eid, machine.ChooseHappened, SettleWords{Reason: "seen", Confirm: eid.Short()})
		}()
	}
	var lostTo *NotPendingError
	won := 0
	for range 2 {
		switch err := <-errs; {
		case err == nil:
			won++
		case !errors.As(err, &lostTo):
			t.Fatal(err)
		}
	}
	if won != 1 || lostTo == nil || !(strings.Contains(lostTo.Why, "ann at 20") || strings.Contains(lostTo.Why, "bob at 20")) {
		t.Fatalf("%d won; the other was told %v", won, lostTo)
	}
	if r := s.rest(ann, id); r.Phase != machine.PhaseDone {
		t.Fatalf("the run rests as %+v", r)
	}
	if got := w.sent(); len(got) != 1 {
		t.Fatalf("sent %q", got)
	}
	s.verify(ann)
}

func TestALostKeyedRequestIsSentAgainWithTheSameKey(t *testing.T) {
	w := &sender{contract: machine.Contract{Class: machine.ClassKeyed}}
	w.end = func(n int) tool.Outcome {
		if n < 3 {
			return lost(nil)
		}
		return tool.Outcome{End: tool.EndCompleted, Result: machine.Result{OK: true, Code: "201"}}
	}
	s := newStand(t, w)
	e := s.engine("ann", script{send("pay")})
	id := readyRun(t, e, s.dir, 10)
	if r := s.rest(e, id); r.Phase != machine.PhaseDone {
		t.Fatalf("the run rests as %+v", r)
	}
	got := w.sent()
	if len(got) != 3 || got[0] != got[1] || got[1] != got[2] {
		t.Fatalf("sent %q", got)
	}
	if f := s.effect(e, machine.EffectIDOf(id, 1)); f.State != machine.StateCompleted || len(f.Attempts) != 3 {
		t.Fatalf("%s after %d attempts", f.State, len(f.Attempts))
	}
	s.verify(e)
}

func TestAKeyPastItsHorizonIsNotUsed(t *testing.T) {
	w := &sender{contract: machine.Contract{Class: machine.ClassKeyed, KeyHorizon: 1}, end: func(int) tool.Outcome { return lost(nil) }}
	s := newStand(t, w)
	e := s.engine("ann", script{send("pay")})
	id := readyRun(t, e, s.dir, 10)
	r := s.rest(e, id)
	if len(r.Waits) != 1 || r.Waits[0].Kind != machine.WaitAmbiguous || len(w.sent()) != 1 {
		t.Fatalf("rests as %+v, sent %q", r, w.sent())
	}
}

func TestAVerdictIsReopenedBeforeTheSecondAttempt(t *testing.T) {
	// Lost, and not there when looked at; it arrives late. The operator decides
	// "not, retry" while the run is paused; the look before the retry finds it.
	w := &sender{contract: machine.Contract{Class: machine.ClassProbeable, Probe: &machine.Probe{Kind: "test", ReadsOwnWrites: true}}, end: func(int) tool.Outcome { return lost(nil) }}
	s := newStand(t, w)
	var mu sync.Mutex
	there := false
	s.look = func(context.Context, *machine.Effect, effect.Request) effect.Finding {
		mu.Lock()
		defer mu.Unlock()
		if there {
			return effect.Finding{Verdict: machine.VerdictHappened, Text: "it is there"}
		}
		return effect.Finding{Verdict: machine.VerdictNotHappened, Text: "it is not there"}
	}
	e := s.engine("ann", script{send("late")})
	ctx := context.Background()
	id := readyRun(t, e, s.dir, 10)
	r := s.rest(e, id) // the sender lives and cannot be proven dead: it waits
	eid := machine.EffectID(r.Waits[0].Ref)
	if err := e.Pause(ctx, id, ""); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	there = true
	mu.Unlock()
	if err := e.Settle(ctx, eid, machine.ChooseRetry, SettleWords{Reason: "not in the list", Confirm: eid.Short()}); err != nil {
		t.Fatal(err)
	}
	for r = s.rest(e, id); r.Waits == nil || r.Waits[0].Kind != machine.WaitContradicted; r = s.rest(e, id) {
		if f := s.effect(e, eid); f.State != machine.StateForcedNot && f.State != machine.StateContradicted {
			t.Fatalf("it is %s: %+v", f.State, r)
		}
	}
	if got := w.sent(); len(got) != 1 {
		t.Fatalf("sent %q", got)
	}
	s.verify(e)
}

func TestARunIsUndoneBackwards(t *testing.T) {
	undo := func(n string) *machine.Compensation {
		return &machine.Compensation{Tool: "send", Args: fmt.Sprintf(`{"n":"undo %s"}`, n), Success: []string{"0"}}
	}
	w := &sender{contract: machine.Contract{Class: machine.ClassCompensable, Compensation: undo("x")}}
	s := newStand(t, w)
	e := s.engine("ann", script{send("a"), send("b")})
	ctx := context.Background()
	id := readyRun(t, e, s.dir, 10)
	if r := s.rest(e, id); r.Phase != machine.PhaseDone {
		t.Fatalf("rests as %+v", r)
	}
	if err := e.Rollback(ctx, id, "wrong"); err != nil {
		t.Fatal(err)
	}
	s.rest(e, id)
	for n := 1; n <= 2; n++ {
		if f := s.effect(e, machine.EffectIDOf(id, n)); f.State != machine.StateCompensated {
			t.Fatalf("e%d is %s", n, f.State)
		}
	}
	if first := s.effect(e, machine.EffectIDOf(id, 4)); first.Compensates != machine.EffectIDOf(id, 2) {
		t.Fatalf("undone first: %s", first.Compensates)
	}
	s.verify(e)
}
