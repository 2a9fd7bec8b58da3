package machine

import (
	"errors"
	"testing"
)

// at brings a fresh run to an effect in a state.
type at struct {
	*story
	id EffectID
}

func intended(t *testing.T, c Contract, asks bool) at {
	y := begin(t)
	return at{y, y.turn(c, asks)}
}

func dispatched(t *testing.T, c Contract) at {
	a := intended(t, c, false)
	a.dispatch(a.id)
	return a
}

func ambiguous(t *testing.T, c Contract) at {
	a := dispatched(t, c)
	a.claim()
	a.state(a.id, StateAmbiguous)
	return a
}

// saw appends a probe's finding at a time.
func (a at) saw(v Verdict, mono int64) at {
	a.t.Helper()
	a.do(EvidenceAdded{Effect: a.id, Evidence: Evidence{Verdict: v, Authority: AuthProbe, Covers: len(a.s.Effect(a.id).Attempts), Started: Instant{boot, mono}}})
	return a
}

func (a at) quiet(mono int64) at {
	a.t.Helper()
	a.do(QuiescenceProven{Effect: a.id, Quiescence: Quiescence{Covers: len(a.s.Effect(a.id).Attempts), Proof: "process", At: Instant{boot, mono}}})
	return a
}

func (a at) settle(to EffectState) at {
	a.t.Helper()
	a.do(EffectSettled{Effect: a.id, State: to})
	return a
}

func (a at) force(c Choice) at {
	a.t.Helper()
	a.op(EffectForced{Effect: a.id, Choice: c, Reason: "seen", Typed: a.id.Short()})
	return a
}

func notHappened(t *testing.T) at {
	return ambiguous(t, pushC).quiet(10).saw(VerdictNotHappened, 200).settle(StateNotHappened)
}

var undoC = Contract{
	Name: "undoable", Class: ClassCompensable, Sender: SenderPawl, InFlight: 100,
	Probe: &Probe{Kind: "p", ReadsOwnWrites: true, ProvesNot: true}, Compensation: &Compensation{Tool: "undo", NullSafe: true},
}

// undoing brings an effect of state from to COMPENSATING, with its undoing intended.
func undoing(t *testing.T, prepare func(*testing.T) at) (at, EffectID) {
	a := prepare(t)
	a.op(CompensationAsked{Effect: a.id, At: Instant{boot, 1000}})
	a.state(a.id, StateCompensating)
	a.next(ActCompensate)
	by := a.s.NextEffect()
	a.do(EffectIntended{Effect: by, Call: -1, Tool: "undo", Contract: keyedC, Compensates: a.id, Digest: DigestOf([]byte(by))})
	a.next(ActDispatch)
	a.dispatch(by)
	return a, by
}

func completedUndoable(t *testing.T) at {
	a := dispatched(t, undoC)
	a.do(EffectCompleted{Effect: a.id, Attempt: 1, Result: Result{OK: true, Code: "0"}})
	return a
}

// TestTransitions has one case for each row of the table of an effect's life:
// the transition, and what its guard refuses.
func TestTransitions(t *testing.T) {
	refuse := func(t *testing.T, a at, g Guard, actor string, epoch int64, b Body) {
		t.Helper()
		err := a.event(actor, epoch, b)
		var ge *GuardError
		if !errors.As(err, &ge) || ge.Guard != g {
			t.Fatalf("%s: want guard %q, got %v", b.Kind(), g, err)
		}
	}
	ann := ActorOperator + "ann"
	rows := []struct {
		name string
		run  func(t *testing.T)
	}{
		{"proposed → refused, in the turn's own commit", func(t *testing.T) {
			y := begin(t)
			y.do(TurnRequested{Turn: 1, Attempt: 1}, TurnResponded{Turn: 1, Stop: StopTools, Calls: []Call{{Tool: "nope", Effect: "r1.e1"}}},
				EffectRefused{Effect: "r1.e1", Turn: 1, Tool: "nope", Reason: "no such tool"})
			y.state("r1.e1", StateRefused)
			y.next(ActRequest)
		}},
		{"proposed → intended, only with a class and a whole response", func(t *testing.T) {
			y := begin(t)
			y.do(TurnRequested{Turn: 1, Attempt: 1})
			y.refused(GuardStopReason, TurnResponded{Turn: 1, Calls: []Call{{Tool: "x"}}})
			y.refused(GuardStopReason, EffectIntended{Effect: "r1.e1", Turn: 1, Contract: readC})
			y.do(TurnResponded{Turn: 1, Stop: StopTools, Calls: []Call{{Tool: "x", Effect: "r1.e1"}}})
			y.refused(GuardClass, EffectIntended{Effect: "r1.e1", Turn: 1})
			y.do(EffectIntended{Effect: "r1.e1", Turn: 1, Contract: readC})
			y.state("r1.e1", StateIntended)
		}},
		{"intended → refused by denial, with feedback; a sibling stays", func(t *testing.T) {
			a := intended(t, postC, true)
			a.op(ApprovalDenied{Approval: "r1.a1", Feedback: "not on a Friday"})
			a.state(a.id, StateRefused)
			if f := a.s.Effect(a.id); f.Reason != "not on a Friday" {
				t.Fatalf("feedback %q", f.Reason)
			}
		}},
		{"intended → cancelled, never what was dispatched", func(t *testing.T) {
			a := intended(t, postC, true)
			a.do(EffectCancelled{Effect: a.id, Reason: "expired"})
			a.state(a.id, StateCancelled)
			if ap := a.s.Approval("r1.a1"); ap.State != ApprovalSuperseded {
				t.Fatalf("its approval is %s", ap.State)
			}
			b := dispatched(t, postC)
			b.refused(GuardFrom, EffectCancelled{Effect: b.id})
		}},
		{"intended → cancelled by an edit: the new effect stands for the call", func(t *testing.T) {
			a := intended(t, postC, true)
			a.op(EffectCancelled{Effect: a.id, Reason: "edited"})
			a.op(EffectIntended{Effect: "r1.e2", Turn: 1, Call: 0, Tool: "post", Contract: postC, Replaces: a.id, Digest: DigestOf([]byte("new"))})
			if got := a.s.Resolve(a.id); got.ID != "r1.e2" {
				t.Fatalf("the call resolves to %s", got.ID)
			}
			if act := a.next(ActDispatch); act.Effect != "r1.e2" {
				t.Fatalf("dispatches %s", act.Effect)
			}
		}},
		{"intended → dispatched: epoch, grant, barrier, digest, snapshot", func(t *testing.T) {
			a := intended(t, sealedC, true)
			d := EffectDispatched{Effect: a.id, Attempt: 1, Approval: "r1.a1", Pre: Snapshot{Tree: "t"}}
			a.refused(GuardGrantOnce, d)
			a.op(ApprovalGranted{Approval: "r1.a1", Digest: a.s.Effect(a.id).Digest})
			refuse(t, a, GuardEpoch, ActorEngine, a.s.Epoch-1, d)
			swapped := d
			swapped.Digest = DigestOf([]byte("swapped"))
			a.refused(GuardApproval, swapped)
			bare := d
			bare.Pre = Snapshot{}
			a.refused(GuardSnapshot, bare)
			a.op(RunPaused{})
			a.refused(GuardBarrier, d)
			a.op(RunUnpaused{})
			a.do(d)
			a.state(a.id, StateDispatched)
		}},
		{"dispatched → completed: any exit code is the result", func(t *testing.T) {
			a := intended(t, sealedC, false)
			a.do(EffectDispatched{Effect: a.id, Attempt: 1, Pre: Snapshot{Tree: "t"}})
			a.refused(GuardIdentity, EffectCompleted{Effect: a.id, Attempt: 1})
			a.do(AttemptStarted{Effect: a.id, Attempt: 1, Identity: Identity{PID: 3}})
			a.do(EffectCompleted{Effect: a.id, Attempt: 1, Result: Result{Code: "2"}})
			a.state(a.id, StateCompleted)
			a.next(ActRequest)
		}},
		{"dispatched → rejected: a listed code, every earlier attempt proven", func(t *testing.T) {
			a := dispatched(t, postC)
			a.refused(GuardBeforeEffect, EffectRejected{Effect: a.id, Attempt: 1, Code: "timeout"})
			a.do(EffectRejected{Effect: a.id, Attempt: 1, Code: "connection_refused"})
			a.state(a.id, StateRejected)
		}},
		{"dispatched → ambiguous: no observed end", func(t *testing.T) {
			a := dispatched(t, postC)
			a.do(EffectAmbiguous{Effect: a.id, Attempt: 1, Cause: "the connection broke"})
			a.state(a.id, StateAmbiguous)
		}},
		{"ambiguous → happened: a positive look, or a late ack", func(t *testing.T) {
			ambiguous(t, pushC).saw(VerdictHappened, 1).settle(StateHappened)
			a := ambiguous(t, postC)
			a.refused(GuardEvidence, EffectSettled{Effect: a.id, State: StateHappened})
			if err := a.event("engine:late", 0, EvidenceAdded{Effect: a.id, Evidence: Evidence{Verdict: VerdictHappened, Authority: AuthLateAck, Covers: 1}}); err != nil {
				t.Fatal(err)
			}
			a.settle(StateHappened)
		}},
		{"ambiguous → not happened: quiescence first, then the look", func(t *testing.T) {
			a := ambiguous(t, pushC).saw(VerdictNotHappened, 500)
			a.refused(GuardQuiescence, EffectSettled{Effect: a.id, State: StateNotHappened})
			a.quiet(600)
			a.refused(GuardQuiescence, EffectSettled{Effect: a.id, State: StateNotHappened})
			a.saw(VerdictNotHappened, 700).settle(StateNotHappened)
		}},
		{"ambiguous → not happened: a lagging probe waits for its settle time", func(t *testing.T) {
			c := pushC
			c.Probe = &Probe{Kind: "p", Settle: 50, ProvesNot: true}
			a := ambiguous(t, c).quiet(0).saw(VerdictNotHappened, 149)
			a.refused(GuardQuiescence, EffectSettled{Effect: a.id, State: StateNotHappened})
			a.saw(VerdictNotHappened, 150).settle(StateNotHappened)
		}},
		{"ambiguous → not happened: never by a probe that was not tested", func(t *testing.T) {
			c := pushC
			c.Probe = &Probe{Kind: "p", ReadsOwnWrites: true}
			a := ambiguous(t, c).quiet(0).saw(VerdictNotHappened, 900)
			a.refused(GuardQuiescence, EffectSettled{Effect: a.id, State: StateNotHappened})
			a.next(ActWait)
		}},
		{"not happened → dispatched again: after a look newer than the verdict", func(t *testing.T) {
			a := notHappened(t)
			a.refused(GuardFreshProbe, EffectDispatched{Effect: a.id, Attempt: 2})
			a.saw(VerdictNotHappened, 300).settle(StateNotHappened)
			a.dispatch(a.id)
		}},
		{"forced not → dispatched again: the operator's retry is the grant", func(t *testing.T) {
			a := intended(t, postC, true)
			a.op(ApprovalGranted{Approval: "r1.a1", Digest: a.s.Effect(a.id).Digest})
			a.dispatch(a.id)
			a.claim()
			a.refused(GuardClass, EffectDispatched{Effect: a.id, Attempt: 2, Approval: "r1.a1"})
			a.force(ChooseRetry)
			a.op(RunPaused{}) // his own retry passes even that
			a.do(EffectDispatched{Effect: a.id, Attempt: 2})
			a.state(a.id, StateDispatched)
		}},
		{"ambiguous → dispatched again by itself: READ, WORKSPACE, KEYED only, three times", func(t *testing.T) {
			for _, c := range []Contract{pushC, undoC, postC} {
				a := ambiguous(t, c)
				a.refused(GuardClass, EffectDispatched{Effect: a.id, Attempt: 2})
			}
			a := ambiguous(t, keyedC)
			for n := 2; n < MaxAutoAttempts+2; n++ {
				a.dispatch(a.id)
				a.claim()
			}
			a.refused(GuardCap, EffectDispatched{Effect: a.id, Attempt: MaxAutoAttempts + 2})
			a.next(ActWait)
		}},
		{"ambiguous → forced: who, why, the typed id", func(t *testing.T) {
			a := ambiguous(t, postC)
			a.refused(GuardTyped, EffectForced{Effect: a.id, Choice: ChooseHappened, Reason: "r", Typed: "e2"})
			a.force(ChooseHappened)
			if f := a.s.Effect(a.id); f.State != StateForcedHappened || !f.Forced || f.By != ann || f.Reason != "seen" {
				t.Fatalf("%+v", f)
			}
		}},
		{"ambiguous → abandoned: the task goes on", func(t *testing.T) {
			a := ambiguous(t, postC)
			a.op(EffectAbandoned{Effect: a.id})
			a.state(a.id, StateAbandoned)
			a.next(ActRequest)
		}},
		{"abandoned → the proven state; forced → proven keeps its mark", func(t *testing.T) {
			a := ambiguous(t, pushC)
			a.op(EffectAbandoned{Effect: a.id})
			a.saw(VerdictHappened, 1).settle(StateHappened)
			b := ambiguous(t, pushC).force(ChooseHappened).saw(VerdictHappened, 1)
			b.next(ActSettle)
			b.settle(StateHappened)
			if !b.s.Effect(b.id).Forced {
				t.Fatal("the forced mark is gone from the history")
			}
		}},
		{"completed, happened, forced happened → compensating → compensated", func(t *testing.T) {
			for _, prepare := range []func(*testing.T) at{
				completedUndoable,
				func(t *testing.T) at { return ambiguous(t, undoC).saw(VerdictHappened, 1).settle(StateHappened) },
				func(t *testing.T) at { return ambiguous(t, undoC).force(ChooseHappened) },
			} {
				a, by := undoing(t, prepare)
				a.do(EffectCompleted{Effect: by, Attempt: 1, Result: Result{OK: true, Code: "0"}})
				if act := a.next(ActCompensated); !act.OK {
					t.Fatal("not undone")
				}
				a.do(CompensationEnded{Effect: a.id, By: by, OK: true})
				a.state(a.id, StateCompensated)
			}
		}},
		{"ambiguous → compensating: null-safe, and nothing can land any more", func(t *testing.T) {
			a := ambiguous(t, undoC)
			ask := func(mono int64) Body { return CompensationAsked{Effect: a.id, At: Instant{boot, mono}} }
			refuse(t, a, GuardNullSafe, ann, 0, ask(900))
			a.quiet(100)
			refuse(t, a, GuardNullSafe, ann, 0, ask(199))
			a.op(ask(200))
			a.state(a.id, StateCompensating)
			c := undoC
			c.Compensation = &Compensation{Tool: "undo"}
			b := ambiguous(t, c).quiet(0)
			refuse(t, b, GuardNullSafe, ann, 0, CompensationAsked{Effect: b.id, At: Instant{boot, 900}})
		}},
		{"compensating → the state before: it ended otherwise, and the inbox says so", func(t *testing.T) {
			a, by := undoing(t, completedUndoable)
			a.do(EffectCompleted{Effect: by, Attempt: 1, Result: Result{Code: "1"}})
			act := a.next(ActCompensated)
			a.do(CompensationEnded{Effect: a.id, By: by, OK: act.OK, Text: act.Why})
			a.state(a.id, StateCompleted)
			if w := Waits(&a.s); len(w) != 1 || w[0].Ref != string(a.id) {
				t.Fatalf("waits: %+v", w)
			}
			a.op(EffectAbandoned{Effect: a.id}) // taken note of
			if w := Waits(&a.s); len(w) != 0 {
				t.Fatalf("waits: %+v", w)
			}
		}},
		{"a compensation may itself be ambiguous, and is settled like anything", func(t *testing.T) {
			a, by := undoing(t, completedUndoable)
			a.claim()
			a.state(by, StateAmbiguous)
			a.next(ActDispatch) // keyed: the same key again
			a.dispatch(by)
			a.do(EffectCompleted{Effect: by, Attempt: 2, Result: Result{OK: true, Code: "0"}})
			a.next(ActCompensated)
		}},
		{"any final verdict → contradicted → the operator's word", func(t *testing.T) {
			for _, a := range []at{
				ambiguous(t, pushC).force(ChooseRetry).saw(VerdictHappened, 1),
				notHappened(t).saw(VerdictHappened, 900),
				ambiguous(t, pushC).force(ChooseHappened).quiet(10).saw(VerdictNotHappened, 900),
			} {
				a.next(ActSettle)
				a.settle(StateContradicted)
				if w := Waits(&a.s); len(w) != 1 || w[0].Kind != WaitContradicted {
					t.Fatalf("waits: %+v", w)
				}
				a.next(ActWait)
				a.force(ChooseHappened)
				a.state(a.id, StateForcedHappened)
			}
		}},
	}
	for _, r := range rows {
		t.Run(r.name, r.run)
	}
}

// TestClasses has one case for each row of the table of classes: what is done
// by itself after an interruption, and what is left to the operator.
func TestClasses(t *testing.T) {
	t.Run("READ runs again", func(t *testing.T) { ambiguous(t, readC).next(ActDispatch) })
	t.Run("WORKSPACE proves the tree dead, then replays", func(t *testing.T) {
		a := ambiguous(t, sealedC)
		a.next(ActProve)
		a.quiet(5).next(ActReplay)
	})
	t.Run("WORKSPACE waits where something is not ours to overwrite", func(t *testing.T) {
		a := ambiguous(t, sealedC).quiet(5)
		a.saw(VerdictConflict, 9).next(ActWait)
	})
	t.Run("WORKSPACE waits where death cannot be proven", func(t *testing.T) {
		a := ambiguous(t, sealedC)
		a.do(EvidenceAdded{Effect: a.id, Evidence: Evidence{Verdict: VerdictInconclusive, Authority: AuthDeath, Covers: 1, Started: Instant{boot, 3}}})
		a.next(ActWait)
	})
	t.Run("the operator's retry of a sealed command is a replay as well", func(t *testing.T) {
		a := ambiguous(t, sealedC).force(ChooseRetry)
		a.next(ActProve)
		a.quiet(5).next(ActReplay)
	})
	t.Run("an own edit needs no proof of death", func(t *testing.T) {
		c := sealedC
		c.Sender = SenderLocal
		ambiguous(t, c).next(ActReplay)
	})
	t.Run("KEYED sends the same key again, before its horizon", func(t *testing.T) {
		a := ambiguous(t, keyedC)
		a.next(ActDispatch)
		a.do(EvidenceAdded{Effect: a.id, Evidence: Evidence{Verdict: VerdictInconclusive, Authority: AuthHorizon, Covers: 1}})
		a.refused(GuardHorizon, EffectDispatched{Effect: a.id, Attempt: 2})
		a.next(ActWait)
	})
	t.Run("KEYED past its horizon looks, if it can", func(t *testing.T) {
		c := keyedC
		c.Probe = pushC.Probe
		a := ambiguous(t, c)
		a.do(EvidenceAdded{Effect: a.id, Evidence: Evidence{Verdict: VerdictInconclusive, Authority: AuthHorizon, Covers: 1}})
		a.next(ActProbe)
	})
	t.Run("PROBEABLE looks, proves, looks", func(t *testing.T) {
		a := ambiguous(t, pushC)
		a.next(ActProbe)
		a.saw(VerdictNotHappened, 1).next(ActProve)
		a.quiet(2).next(ActProbe)
	})
	t.Run("PROBEABLE asks on conflict", func(t *testing.T) { ambiguous(t, pushC).saw(VerdictConflict, 1).next(ActWait) })
	t.Run("PROBEABLE asks when looking leads nowhere", func(t *testing.T) {
		a := ambiguous(t, pushC).saw(VerdictInconclusive, 1).quiet(2)
		for i := range maxProbes {
			a.saw(VerdictInconclusive, int64(1000+i))
		}
		a.next(ActWait)
	})
	t.Run("COMPENSABLE is looked at, and undone by nobody but the operator", func(t *testing.T) { ambiguous(t, undoC).next(ActProbe) })
	t.Run("IRREVERSIBLE asks", func(t *testing.T) { ambiguous(t, postC).next(ActWait) })
	t.Run("IRREVERSIBLE with a probe looks", func(t *testing.T) {
		c := postC
		c.Probe = pushC.Probe
		ambiguous(t, c).next(ActProbe)
	})
	t.Run("declared by the operator counts as re-runnable", func(t *testing.T) {
		c := postC
		c.Declared, c.Sender = true, SenderCommand
		ambiguous(t, c).quiet(1).next(ActReplay)
	})
}

// TestUndoingARunGoesBackwards stops where it must ask.
func TestUndoingARunGoesBackwards(t *testing.T) {
	y := begin(t)
	a := at{y, y.turn(undoC, false)}
	a.dispatch(a.id)
	a.do(EffectCompleted{Effect: a.id, Attempt: 1, Result: Result{OK: true, Code: "0"}})
	b := at{y, y.turn(postC, false)}
	b.dispatch(b.id)
	b.do(EffectCompleted{Effect: b.id, Attempt: 1, Result: Result{OK: true, Code: "201"}})
	if err := y.event(ActorOperator+"ann", 0, RollbackAsked{}); err == nil {
		t.Fatal("a run at work was undone")
	}
	y.op(RunPaused{}, RollbackAsked{Reason: "wrong ticket"})
	act := y.next(ActAsk) // the newest first: it cannot be undone
	if act.Effect != b.id {
		t.Fatalf("asks about %s", act.Effect)
	}
	y.do(QuestionAsked{Question: "r1.q1", Sort: SortConflict, Effect: b.id, Text: "?", Data: []byte("rollback"), Choices: []string{"skip", "stop"}})
	if w := Waits(&y.s); len(w) != 1 || w[0].Kind != WaitConflict {
		t.Fatalf("waits: %+v", w)
	}
	y.op(QuestionAnswered{Question: "r1.q1", Answer: AnswerSkip})
	if act = y.next(ActUndo); act.Effect != a.id {
		t.Fatalf("undoes %s", act.Effect)
	}
	y.do(CompensationAsked{Effect: a.id})
	by := y.s.NextEffect()
	y.do(EffectIntended{Effect: by, Call: -1, Tool: "undo", Contract: keyedC, Compensates: a.id})
	y.dispatch(by)
	y.do(EffectCompleted{Effect: by, Attempt: 1, Result: Result{OK: true, Code: "0"}}, CompensationEnded{Effect: a.id, By: by, OK: true})
	y.next(ActUndone)
	y.do(RollbackEnded{Undone: 1, Left: 1})
	y.next(ActRest)
}

// TestLooksGoOnAfterAVerdictWithoutProof, backed off and bounded.
func TestLooksGoOnAfterAVerdictWithoutProof(t *testing.T) {
	a := ambiguous(t, pushC).force(ChooseHappened)
	last := int64(0)
	for range laterLooks {
		act := Next(&a.s)
		if act.Kind != ActRequest || act.Later == nil || act.Later.RetryAt <= last {
			t.Fatalf("%+v, later %+v", act, act.Later)
		}
		last = act.Later.RetryAt
		a.saw(VerdictInconclusive, 1)
		a.next(ActSettle)
		a.settle(StateForcedHappened)
	}
	if act := Next(&a.s); act.Later != nil {
		t.Fatalf("still looks: %+v", act.Later)
	}
}
