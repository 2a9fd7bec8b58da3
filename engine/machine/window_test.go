package machine

import (
	"errors"
	"testing"
)

// Pages are turned one by one, between turns, forward only, by the lease holder.
func TestPagesAreTurnedForwardOnly(t *testing.T) {
	var s State
	do := func(epoch int64, b Body) error {
		next, err := Fold(s, Event{N: s.Tail + 1, At: s.Tail, Actor: ActorEngine, Epoch: epoch, Body: b})
		if err == nil {
			s = next
		}
		return err
	}
	must := func(b Body) {
		t.Helper()
		if err := do(1, b); err != nil {
			t.Fatal(err)
		}
	}
	refused := func(g Guard, epoch int64, b Body) {
		t.Helper()
		var e *GuardError
		if err := do(epoch, b); !errors.As(err, &e) || e.Guard != g {
			t.Errorf("%+v: %v, want %s", b, err, g)
		}
	}
	must(RunCreated{Charter: Charter{ID: "r1", Goal: "g"}})
	must(RunClaimed{})
	refused(GuardFrom, 1, WindowOpened{Window: 2, Turn: 2, Keep: 1})
	must(TurnRequested{Turn: 1, Attempt: 1, Window: 1})
	refused(GuardFrom, 1, WindowOpened{Window: 2, Turn: 2, Keep: 1}) // it is being asked for
	refused(GuardFrom, 1, TurnHeld{Turn: 1, Until: 9})
	must(TurnResponded{Turn: 1, Stop: StopEnd})
	refused(GuardEpoch, 2, WindowOpened{Window: 2, Turn: 2, Keep: 1})
	refused(GuardNext, 1, WindowOpened{Window: 3, Turn: 2, Keep: 1})
	refused(GuardNext, 1, WindowOpened{Window: 2, Turn: 2, Keep: 3})
	must(WindowOpened{Window: 2, Turn: 2, Keep: 2, Budget: 100})
	refused(GuardNext, 1, WindowOpened{Window: 3, Turn: 2, Keep: 1}) // what was left out stays left out
	if s.Limit != 0 {
		t.Error("an ordinary page teaches a limit")
	}
	refused(GuardFrom, 1, MemoryRead{}) // a run is told before its first turn

	// A hold is obeyed by Next, and ends with the request.
	must(WorkspaceReady{Path: "/w", Mode: "folder"})
	must(TurnHeld{Turn: 2, Until: 99, Why: "limit"})
	if a := Next(&s); a.Kind != ActRequest || a.RetryAt != 99 {
		t.Errorf("next %+v", a)
	}
	must(TurnRequested{Turn: 2, Attempt: 1, Window: 2})
	if s.Hold != nil {
		t.Error("still held")
	}

	// Too long: a page once, then the operator.
	must(TurnFailed{Turn: 2, Class: FailContext, Message: "too long"})
	if a := Next(&s); a.Kind != ActPage || a.Turn != 2 {
		t.Errorf("next %+v", a)
	}
	must(WindowOpened{Window: 3, Turn: 2, Keep: 2, Budget: 50, Learned: true})
	if a := Next(&s); a.Kind != ActRequest || a.Attempt != 2 || s.Limit != 50 {
		t.Errorf("next %+v, limit %d", a, s.Limit)
	}
	must(TurnRequested{Turn: 2, Attempt: 2, Window: 3})
	must(TurnFailed{Turn: 2, Class: FailContext, Message: "still too long"})
	if a := Next(&s); a.Kind != ActAsk || a.Limit != "tries" {
		t.Errorf("next %+v", a)
	}
}

// The memory's chain stands alone: ids count up, what is forgotten is gone.
func TestMemoryChain(t *testing.T) {
	var m Memory
	do := func(b Body) error {
		next, err := FoldMemory(m, Event{N: m.Tail + 1, Actor: "operator:ann", Body: b})
		if err == nil {
			m = next
		}
		return err
	}
	for _, x := range []MemoryEntry{{ID: "m1", Text: "a"}, {ID: "m2", Text: "b", Repo: "/p"}} {
		if err := do(MemoryKept{Entry: x}); err != nil {
			t.Fatal(err)
		}
	}
	if do(MemoryKept{Entry: MemoryEntry{ID: "m2"}}) == nil || do(MemoryForgotten{ID: "m9"}) == nil || do(Told{}) == nil {
		t.Error("what must not follow does")
	}
	if n := len(m.For("/q")); n != 1 {
		t.Errorf("%d entries for another folder", n)
	}
	before := m
	if err := do(MemoryForgotten{ID: "m1"}); err != nil || len(m.For("/p")) != 1 || len(before.Entries) != 2 || m.NextID() != "m3" {
		t.Errorf("%v: %+v, before %+v", err, m, before)
	}
}
