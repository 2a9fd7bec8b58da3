package machine

import (
	"errors"
	"testing"
)

// A delegation makes one run, and its work is judged and taken over once.
func TestTreeGuards(t *testing.T) {
	const run, kid = RunID("r1"), RunID("r2")
	n, s := int64(0), State{}
	put := func(actor string, epoch int64, b Body) error {
		next, err := Fold(s, Event{N: n + 1, At: n + 1, Actor: actor, Epoch: epoch, Body: b})
		if err == nil {
			s, n = next, n+1
		}
		return err
	}
	must := func(actor string, epoch int64, b Body) {
		t.Helper()
		if err := put(actor, epoch, b); err != nil {
			t.Fatal(err)
		}
	}
	refused := func(g Guard, actor string, epoch int64, b Body) {
		t.Helper()
		var e *GuardError
		if err := put(actor, epoch, b); !errors.As(err, &e) || e.Guard != g {
			t.Fatalf("%s: want a refusal by %s, have %v", b.Kind(), g, err)
		}
	}
	own := func(b Body) { t.Helper(); must(ActorEngine, 1, b) }
	contract := Contract{Name: "delegate", Version: 1, Class: ClassRead, Sender: SenderLocal}
	own(RunCreated{Charter: Charter{ID: run, Goal: "g", Model: "m"}})
	own(RunClaimed{Owner: "o"})
	own(TurnRequested{Turn: 1, Attempt: 1, Window: 1})
	e1, e2 := EffectIDOf(run, 1), EffectIDOf(run, 2)
	own(TurnResponded{Turn: 1, Stop: StopTools, Calls: []Call{{Tool: ToolDelegate, Effect: e1}, {Tool: ToolDelegate, Effect: e2}}})
	for i, id := range []EffectID{e1, e2} {
		own(EffectIntended{Effect: id, Turn: 1, Call: i, Tool: ToolDelegate, ToolVersion: 1, Contract: contract, Digest: DigestOf([]byte(id))})
	}
	spawn := ChildSpawned{Child: kid, Effect: e1, Goal: "part"}
	refused(GuardSpawn, ActorEngine, 1, spawn) // not dispatched
	own(EffectDispatched{Effect: e1, Attempt: 1})
	refused(GuardEpoch, ActorEngine, 2, spawn)
	own(spawn)
	refused(GuardSpawn, ActorEngine, 1, spawn)
	refused(GuardSpawn, ActorEngine, 1, ChildSpawned{Child: "r3", Effect: e1, Goal: "another"})
	own(EffectCompleted{Effect: e1, Attempt: 1, Result: Result{OK: true}})

	accept := ChildReviewed{Child: kid, Verdict: ReviewAccept}
	refused(GuardFrom, ActorOperator+"ann", 0, accept) // at work
	report := ChildReported{Child: kid, Report: Report{Phase: PhaseDone, Files: []string{"a"}}}
	must(ActorChild+string(kid), 0, report)
	refused(GuardFrom, ActorChild+string(kid), 0, report)
	adopt := EffectIntended{Effect: s.NextEffect(), Turn: 1, Call: -1, Tool: ToolAdopt, ToolVersion: 1, Target: string(kid), Contract: Contract{Name: "adopt", Version: 1, Class: ClassWorkspace, Sender: SenderLocal}}
	refused(GuardAdopt, ActorEngine, 1, adopt) // nobody has accepted it
	must(ActorOperator+"ann", 0, accept)
	refused(GuardAdopt, ActorOperator+"bob", 0, ChildReviewed{Child: kid, Verdict: ReviewDiscard})
	refused(GuardAdopt, ActorChild+string(kid), 0, ChildResumed{Child: kid})
	own(adopt)
	again := adopt
	again.Effect = s.NextEffect()
	refused(GuardAdopt, ActorEngine, 1, again)
	own(EffectDispatched{Effect: adopt.Effect, Attempt: 1})
	own(EffectCompleted{Effect: adopt.Effect, Attempt: 1, Result: Result{OK: true, Code: "0"}})
	refused(GuardAdopt, ActorOperator+"ann", 0, accept)
	if c := s.Child(kid); c.Standing() != ChildAdopted || !c.Settled() {
		t.Errorf("it is %s", c.Standing())
	}
}
