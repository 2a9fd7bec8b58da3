package engine

import (
	"context"
	"strings"
	"testing"
	"time"

	"pawl/engine/machine"
	"pawl/engine/tool"
)

// TestRecoveryIsToldInSteps interrupts a run in the middle of an effect and
// reads what its recovery says before, during and after.
func TestRecoveryIsToldInSteps(t *testing.T) {
	ctx := context.Background()
	w := &sender{contract: machine.Contract{Class: machine.ClassIrreversible}}
	s := newStand(t, w)
	first := s.engine("first", script{send("letter")})
	id := readyRun(t, first, s.dir, 10)
	sent, dead := make(chan struct{}), make(chan struct{})
	w.end = func(n int) tool.Outcome {
		if n == 1 && len(w.sent()) == 1 {
			close(sent)
			<-dead
		}
		return tool.Outcome{End: tool.EndCompleted, Result: machine.Result{OK: true, Code: "0"}}
	}
	if err := first.Drive(ctx, id); err != nil {
		t.Fatal(err)
	}
	<-sent
	table, err := first.StateTable(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(table.Plug, "In flight, and without a result on record if it ended now: e1 (IRREVERSIBLE") {
		t.Errorf("while it is in flight the table says: %s", table.Plug)
	}
	if len(table.Kinds) != 7 {
		t.Errorf("%d kinds of state", len(table.Kinds))
	}
	for _, k := range table.Kinds {
		if k.Kind == "" || k.Now == "" || k.Lives == "" || k.Back == "" {
			t.Errorf("a row has a hole: %+v", k)
		}
	}
	if r, err := first.Recovery(ctx, id); err != nil || !r.Since.IsZero() || len(r.Steps) != 0 {
		t.Errorf("a run that was never interrupted: %+v, %v", r, err)
	}
	first.store.(interface{ Kill() }).Kill()
	close(dead)

	second := s.engine("second", script{send("letter")})
	step := func(r Recovery) RecoveryStep {
		t.Helper()
		if len(r.Steps) != 1 || r.Steps[0].Effect != machine.EffectIDOf(id, 1) {
			t.Fatalf("steps %+v", r.Steps)
		}
		return r.Steps[0]
	}
	r, err := second.Recovery(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	if st := step(r); st.Sort != StepYours || !r.Now || r.Yours != 1 {
		t.Errorf("before anybody took it over: %+v", r)
	}
	s.rest(second, id)
	if r, err = second.Recovery(ctx, id); err != nil {
		t.Fatal(err)
	}
	if st := step(r); st.Sort != StepYours || r.Now || r.Open != 1 || !strings.Contains(r.Next, "your word on e1") {
		t.Errorf("after it was taken over: %+v", r)
	}
	if err := second.Pause(ctx, id, "recovery"); err != nil {
		t.Fatal(err)
	}
	if err := second.Settle(ctx, machine.EffectIDOf(id, 1), machine.ChooseHappened, SettleWords{Reason: "it is in the box", Confirm: "e1"}); err != nil {
		t.Fatal(err)
	}
	if r, err = second.Recovery(ctx, id); err != nil {
		t.Fatal(err)
	}
	if st := step(r); st.Sort != StepDecided || !r.Held || r.Open != 0 || !strings.Contains(r.Next, "When it goes on: The model is asked for turn 2") {
		t.Errorf("after the decision, held: %+v", r)
	}
	if got := w.sent(); len(got) != 1 {
		t.Errorf("while it is held it sent %q", got)
	}
	changes := second.Changes()
	if err := second.Unpause(ctx, id); err != nil {
		t.Fatal(err)
	}
	for deadline := time.After(20 * time.Second); ; {
		st, err := second.State(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		if st.Phase == machine.PhaseDone {
			break
		}
		select {
		case <-changes:
		case <-deadline:
			t.Fatalf("the run is %s at event %d", st.Phase, st.Tail)
		}
	}
	if r, err = second.Recovery(ctx, id); err != nil || step(r).Sort != StepDecided {
		t.Errorf("read afterwards: %+v, %v", r, err)
	}

	list, err := second.Effects(ctx, id, 0, false, 100)
	if err != nil || len(list) < 2 || list[0].State != "forced_happened" || !list[0].Forced {
		t.Errorf("effects %+v, %v", list, err)
	}
	c, err := second.Context(ctx, id, 0)
	if err != nil || len(c.Sections) == 0 || c.Tokens == 0 {
		t.Fatalf("context %+v, %v", c, err)
	}
	for _, x := range c.Sections {
		if x.Name == "unresolved and forced effects" && strings.Contains(x.Text, "it is in the box") {
			return
		}
	}
	t.Error("the forced verdict does not stand in the context")
}
