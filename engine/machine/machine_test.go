package machine

import (
	"errors"
	"strings"
	"testing"
)

// story folds events the way an engine would write them.
type story struct {
	t *testing.T
	s State
}

const boot = "boot-1"

func begin(t *testing.T) *story {
	t.Helper()
	y := &story{t: t}
	y.op(RunCreated{Charter: Charter{ID: "r1", Root: "r1", Goal: "mend it", Model: "script/x", Check: "go test ./..."}})
	y.claim()
	y.do(WorkspaceReady{Path: "/w", Mode: "worktree", Level: "sealed"})
	return y
}

func (y *story) event(actor string, epoch int64, b Body) error {
	raw, err := Encode(b)
	if err != nil {
		y.t.Fatal(err)
	}
	back, err := Decode(b.Kind(), raw)
	if err != nil {
		y.t.Fatal(err)
	}
	next, err := Fold(y.s, Event{N: y.s.Tail + 1, At: 1000 + y.s.Tail, Actor: actor, Epoch: epoch, Body: back})
	if err != nil {
		return err
	}
	y.s = next
	return nil
}

func (y *story) do(bodies ...Body) {
	y.t.Helper()
	for _, b := range bodies {
		if err := y.event(ActorEngine, y.s.Epoch, b); err != nil {
			y.t.Fatalf("%s: %v", b.Kind(), err)
		}
	}
}

func (y *story) op(bodies ...Body) {
	y.t.Helper()
	for _, b := range bodies {
		if err := y.event(ActorOperator+"ann", 0, b); err != nil {
			y.t.Fatalf("%s: %v", b.Kind(), err)
		}
	}
}

func (y *story) claim() {
	y.t.Helper()
	if err := y.event(ActorEngine, y.s.Epoch+1, RunClaimed{Owner: "p1", Boot: boot}); err != nil {
		y.t.Fatal(err)
	}
	for _, f := range y.s.Open() {
		if f.State == StateDispatched {
			y.do(EffectAmbiguous{Effect: f.ID, Attempt: len(f.Attempts), Cause: "crash"})
		}
	}
	if t := y.s.LastTurn(); t != nil && t.State == TurnAsked {
		y.do(TurnFailed{Turn: t.N, Class: FailLost, AtMost: t.Reserve})
	}
}

// refused asserts that a guard holds.
func (y *story) refused(g Guard, b Body) {
	y.t.Helper()
	err := y.event(ActorEngine, y.s.Epoch, b)
	var ge *GuardError
	if !errors.As(err, &ge) || ge.Guard != g {
		y.t.Fatalf("%s: want guard %q, got %v", b.Kind(), g, err)
	}
}

func (y *story) next(kind ActionKind) Action {
	y.t.Helper()
	a := Next(&y.s)
	if a.Kind != kind {
		y.t.Fatalf("next is %q (%+v), want %q", a.Kind, a, kind)
	}
	return a
}

// turn answers the next turn with one call of a contract and intends it.
func (y *story) turn(c Contract, asks bool) EffectID {
	y.t.Helper()
	a := y.next(ActRequest)
	id := y.s.NextEffect()
	y.do(
		TurnRequested{Turn: a.Turn, Attempt: a.Attempt, Window: 1},
		TurnResponded{Turn: a.Turn, Stop: StopTools, Calls: []Call{{Tool: c.Name, Args: Text{Inline: string(id)}, Effect: id}}},
		EffectIntended{Effect: id, Turn: a.Turn, Call: 0, Tool: c.Name, Contract: c, Digest: DigestOf([]byte(id)), Asks: asks, Summary: c.Name},
	)
	if asks {
		y.do(ApprovalRequested{Approval: y.s.NextApproval(), Effect: id, Digest: DigestOf([]byte(id))})
	}
	return id
}

func (y *story) dispatch(id EffectID) {
	y.t.Helper()
	f := y.s.Effect(id)
	d := EffectDispatched{Effect: id, Attempt: len(f.Attempts) + 1, Digest: f.Digest, Approval: f.Approval}
	if f.Contract.Writes {
		d.Pre = Snapshot{Commit: "c", Tree: "t"}
	}
	y.do(d)
	if f.Contract.Sender == SenderCommand {
		y.do(AttemptStarted{Effect: id, Attempt: d.Attempt, Identity: Identity{Boot: boot, PID: 7, Start: 1, Inner: "ns"}})
	}
}

func (y *story) state(id EffectID, want EffectState) {
	y.t.Helper()
	if got := y.s.Effect(id).State; got != want {
		y.t.Fatalf("%s is %s, want %s", id, got, want)
	}
}

var (
	readC   = Contract{Name: "read_file", Class: ClassRead, Sender: SenderPawl}
	sealedC = Contract{Name: "shell", Class: ClassWorkspace, Sender: SenderCommand, Writes: true}
	pushC   = Contract{Name: "git-push", Class: ClassProbeable, Sender: SenderCommand, InFlight: 100, Probe: &Probe{Kind: "git-ref", ReadsOwnWrites: true, ProvesNot: true}}
	postC   = Contract{Name: "post", Class: ClassIrreversible, Sender: SenderPawl, BeforeEffect: []string{"connection_refused"}}
	keyedC  = Contract{Name: "pay", Class: ClassKeyed, Sender: SenderPawl, Key: "k", KeyHorizon: 1000}
)

func TestASealedCommandIsProvenDeadAndRunAgain(t *testing.T) {
	y := begin(t)
	id := y.turn(sealedC, false)
	y.next(ActDispatch)
	y.refused(GuardSnapshot, EffectDispatched{Effect: id, Attempt: 1, Digest: y.s.Effect(id).Digest})
	y.dispatch(id)
	y.claim()
	y.state(id, StateAmbiguous)
	y.next(ActProve)
	y.refused(GuardQuiescence, EffectDispatched{Effect: id, Attempt: 2, Pre: Snapshot{Tree: "t"}})
	y.do(QuiescenceProven{Effect: id, Quiescence: Quiescence{Covers: 1, Proof: "pid-namespace", At: Instant{boot, 5}}})
	if a := y.next(ActReplay); a.Attempt != 2 {
		t.Fatalf("attempt %d", a.Attempt)
	}
	y.do(WorkspaceRestored{Effect: id, To: Snapshot{Tree: "t"}})
	y.dispatch(id)
	y.do(EffectCompleted{Effect: id, Attempt: 2, Result: Result{OK: true, Code: "0"}})
	y.next(ActRequest)
}

func TestReplaysAreBounded(t *testing.T) {
	y := begin(t)
	id := y.turn(keyedC, false)
	y.dispatch(id)
	for i := range MaxAutoAttempts {
		y.claim()
		if a := y.next(ActDispatch); a.Attempt != i+2 {
			t.Fatalf("attempt %d", a.Attempt)
		}
		y.dispatch(id)
	}
	y.claim()
	y.next(ActWait)
	y.refused(GuardCap, EffectDispatched{Effect: id, Attempt: MaxAutoAttempts + 2, Digest: y.s.Effect(id).Digest})
}

func TestAnInterruptedPushIsLookedAtBeforeAnythingElse(t *testing.T) {
	y := begin(t)
	id := y.turn(pushC, true)
	y.next(ActWait)
	y.refused(GuardGrantOnce, EffectDispatched{Effect: id, Attempt: 1, Digest: y.s.Effect(id).Digest, Approval: "r1.a1"})
	y.op(ApprovalGranted{Approval: "r1.a1", Digest: y.s.Effect(id).Digest})
	y.next(ActDispatch)
	y.dispatch(id)
	y.claim()
	y.refused(GuardClass, EffectDispatched{Effect: id, Attempt: 2, Digest: y.s.Effect(id).Digest, Approval: "r1.a1"})
	y.next(ActProbe)
	found := func(v Verdict, mono int64) {
		y.do(EvidenceAdded{Effect: id, Evidence: Evidence{Verdict: v, Authority: AuthProbe, Covers: len(y.s.Effect(id).Attempts), Text: "the remote says so", Started: Instant{boot, mono}}})
	}
	found(VerdictNotHappened, 10)
	// It may still land: a negative look before quiescence proves nothing.
	y.refused(GuardQuiescence, EffectSettled{Effect: id, State: StateNotHappened})
	y.next(ActProve)
	y.do(QuiescenceProven{Effect: id, Quiescence: Quiescence{Covers: 1, Proof: "pid-namespace", At: Instant{boot, 20}}})
	if a := y.next(ActProbe); a.After.Mono != 120 {
		t.Fatalf("looks at %d, want proof plus in-flight bound", a.After.Mono)
	}
	found(VerdictNotHappened, 119)
	y.refused(GuardQuiescence, EffectSettled{Effect: id, State: StateNotHappened})
	found(VerdictNotHappened, 120)
	y.next(ActSettle)
	y.do(EffectSettled{Effect: id, State: StateNotHappened, Text: "not there"})
	// A retry follows a look newer than the verdict.
	y.next(ActProbe)
	y.refused(GuardFreshProbe, EffectDispatched{Effect: id, Attempt: 2, Digest: y.s.Effect(id).Digest, Approval: "r1.a1"})
	found(VerdictNotHappened, 130)
	y.next(ActSettle)
	y.do(EffectSettled{Effect: id, State: StateNotHappened})
	y.next(ActDispatch)
	y.dispatch(id)
	y.claim()
	found(VerdictHappened, 140)
	if a := y.next(ActSettle); a.State != StateHappened {
		t.Fatalf("settles as %s", a.State)
	}
	y.do(EffectSettled{Effect: id, State: StateHappened})
	y.next(ActRequest)
}

func TestALateArrivalReopensAVerdict(t *testing.T) {
	y := begin(t)
	id := y.turn(pushC, false)
	y.dispatch(id)
	y.claim()
	y.op(EffectForced{Effect: id, Choice: ChooseRetry, Reason: "I looked", Typed: "e1"})
	y.state(id, StateForcedNot)
	y.next(ActProbe)
	y.do(EvidenceAdded{Effect: id, Evidence: Evidence{Verdict: VerdictHappened, Authority: AuthProbe, Covers: 1, Started: Instant{boot, 9}}})
	if a := y.next(ActSettle); a.State != StateContradicted {
		t.Fatalf("settles as %s", a.State)
	}
	y.do(EffectSettled{Effect: id, State: StateContradicted})
	y.next(ActWait)
	y.refused(GuardFrom, EffectDispatched{Effect: id, Attempt: 2, Digest: y.s.Effect(id).Digest})
	if w := Waits(&y.s); len(w) != 1 || w[0].Kind != WaitContradicted {
		t.Fatalf("waits: %+v", w)
	}
}

func TestAForcedVerdictNeedsAReasonAndTheTypedID(t *testing.T) {
	y := begin(t)
	id := y.turn(postC, false)
	y.dispatch(id)
	y.claim()
	if w := Waits(&y.s); len(w) != 1 || w[0].Kind != WaitAmbiguous {
		t.Fatalf("waits: %+v", w)
	}
	y.refused(GuardTyped, EffectForced{Effect: id, Choice: ChooseHappened, Reason: "seen"})
	y.refused(GuardTyped, EffectForced{Effect: id, Choice: ChooseHappened, Typed: "e1"})
	y.op(EffectForced{Effect: id, Choice: ChooseHappened, Reason: "seen", Typed: "e1"})
	y.state(id, StateForcedHappened)
	y.next(ActRequest)
}

func TestNothingProposedPassesAPauseOrAnUnresolvedEffect(t *testing.T) {
	y := begin(t)
	id := y.turn(postC, false)
	y.op(RunPaused{})
	y.next(ActWait)
	y.refused(GuardBarrier, EffectDispatched{Effect: id, Attempt: 1, Digest: y.s.Effect(id).Digest})
	y.op(RunUnpaused{})
	y.dispatch(id)
	y.claim()
	y.refused(GuardHold, TurnRequested{Turn: 2, Attempt: 1})
	y.op(RunCancelled{})
	y.next(ActWait) // still unknown, and still answerable
	y.op(EffectAbandoned{Effect: id})
	y.next(ActRest)
}

func TestTheGateThatNeverOpenedIsProof(t *testing.T) {
	y := begin(t)
	c := pushC
	c.Class, c.Probe = ClassIrreversible, nil
	id := y.turn(c, true)
	y.op(ApprovalGranted{Approval: "r1.a1", Digest: y.s.Effect(id).Digest})
	y.do(EffectDispatched{Effect: id, Attempt: 1, Digest: y.s.Effect(id).Digest, Approval: "r1.a1"})
	y.claim()
	y.next(ActGate)
	y.do(EvidenceAdded{Effect: id, Evidence: Evidence{Verdict: VerdictNotHappened, Authority: AuthGate, Covers: 1}})
	y.next(ActSettle)
	y.do(EffectSettled{Effect: id, State: StateNotHappened})
	y.next(ActDispatch)
	y.dispatch(id) // covered by the consumed grant: proven, equal digest
}

func TestRejectedOnlyByAListedCodeWithNothingOpenBefore(t *testing.T) {
	y := begin(t)
	id := y.turn(postC, false)
	y.dispatch(id)
	y.refused(GuardBeforeEffect, EffectRejected{Effect: id, Attempt: 1, Code: "timeout"})
	y.claim()
	y.op(EffectForced{Effect: id, Choice: ChooseRetry, Reason: "not in the list", Typed: "e1"})
	y.next(ActDispatch)
	y.dispatch(id)
	y.refused(GuardBeforeEffect, EffectRejected{Effect: id, Attempt: 2, Code: "connection_refused"})
}

func TestAnApprovalIsForOneDigestAndOnce(t *testing.T) {
	y := begin(t)
	id := y.turn(postC, true)
	if err := y.event(ActorOperator+"ann", 0, ApprovalGranted{Approval: "r1.a1", Digest: DigestOf([]byte("other"))}); err == nil {
		t.Fatal("a grant for another digest was taken")
	}
	y.op(ApprovalGranted{Approval: "r1.a1", Digest: y.s.Effect(id).Digest})
	if err := y.event(ActorOperator+"bob", 0, ApprovalGranted{Approval: "r1.a1", Digest: y.s.Effect(id).Digest}); err == nil || !strings.Contains(err.Error(), "not pending") {
		t.Fatalf("second answer: %v", err)
	}
	y.refused(GuardApproval, EffectDispatched{Effect: id, Attempt: 1, Digest: DigestOf([]byte("swapped")), Approval: "r1.a1"})
	y.dispatch(id)
	if a := y.s.Approval("r1.a1"); a.State != ApprovalConsumed {
		t.Fatalf("approval is %s", a.State)
	}
}

func TestAModelThatGoesInCirclesIsStopped(t *testing.T) {
	y := begin(t)
	for range LimitRepeats + 1 {
		a := y.next(ActRequest)
		id := y.s.NextEffect()
		y.do(
			TurnRequested{Turn: a.Turn, Attempt: 1, Window: 1},
			TurnResponded{Turn: a.Turn, Stop: StopTools, Calls: []Call{{Tool: "read_file", Args: Text{Inline: "{}"}, Effect: id}}},
			EffectIntended{Effect: id, Turn: a.Turn, Tool: "read_file", Contract: readC},
			EffectDispatched{Effect: id, Attempt: 1},
			EffectCompleted{Effect: id, Attempt: 1},
		)
	}
	if a := y.next(ActAsk); a.Limit != "repeats" {
		t.Fatalf("limit %q", a.Limit)
	}
	y.do(QuestionAsked{Question: "r1.q1", Sort: SortLimit, Text: "?", Data: []byte("repeats"), Choices: []string{"extend N", "stop"}})
	y.next(ActWait)
	y.op(QuestionAnswered{Question: "r1.q1", Answer: AnswerExtend, Number: 5})
	y.next(ActRequest)
}

func TestAStaleEpochWritesNothing(t *testing.T) {
	y := begin(t)
	id := y.turn(postC, false)
	y.claim()
	for _, b := range []Body{EffectDispatched{Effect: id, Attempt: 1}, TurnRequested{Turn: 2, Attempt: 1}, RunFinished{}} {
		err := y.event(ActorEngine, y.s.Epoch-1, b)
		var ge *GuardError
		if !errors.As(err, &ge) || ge.Guard != GuardEpoch {
			t.Errorf("%s under a stale epoch: %v", b.Kind(), err)
		}
	}
	// Late evidence is the exception; it moves no state.
	y.dispatch(id)
	y.claim()
	before := y.s.Effect(id).State
	if err := y.event("engine:late", 0, EvidenceAdded{Effect: id, Evidence: Evidence{Verdict: VerdictHappened, Authority: AuthLateAck, Covers: 1}}); err != nil {
		t.Fatal(err)
	}
	y.state(id, before)
	y.next(ActSettle)
}

func TestFoldLeavesTheOldStateAlone(t *testing.T) {
	y := begin(t)
	id := y.turn(sealedC, false)
	old := y.s
	y.dispatch(id)
	y.do(EffectCompleted{Effect: id, Attempt: 1, Result: Result{OK: true}})
	if old.Effect(id).State != StateIntended || len(old.Effect(id).Attempts) != 0 || Next(&old).Kind != ActDispatch {
		t.Fatal("folding changed an earlier state")
	}
}

func TestEveryEventKindRoundTrips(t *testing.T) {
	for _, k := range Kinds() {
		b, err := Decode(k, []byte{0xa0})
		if err != nil {
			t.Errorf("%s: %v", k, err)
			continue
		}
		if b.Kind() != k {
			t.Errorf("%s decodes as %s", k, b.Kind())
		}
	}
	if _, err := Decode("FromTheFuture", nil); err == nil {
		t.Error("an unknown kind was decoded")
	}
}
