package machine

import (
	"fmt"
	"slices"
	"strings"
)

// Limits that a run starts with; the operator can extend each.
const (
	MaxAutoAttempts  = 3
	DefaultMaxTurns  = 200
	LimitRepeats     = 6 // identical turns, or two in alternation
	LimitMisfits     = 3 // turns in a row with nothing but refused calls
	LimitSilent      = 3 // turns in a row without a call
	LimitModelTries  = 8 // requests for one turn
	MaxDecisionBytes = 500
)

// Fold applies one event. It is deterministic and leaves s as it was. An error
// means that the event must not follow this state.
func Fold(s State, e Event) (State, error) {
	if err := GuardNext.need(e.N == s.Tail+1, e.Body, string(s.Charter.ID), "event %d does not follow %d", e.N, s.Tail); err != nil {
		return s, err
	}
	next, err := fold(s, e)
	if err != nil {
		return s, err
	}
	next.Tail = e.N
	next.Updated = e.At
	if strings.HasPrefix(e.Actor, ActorOperator) {
		next.LastOp = e.At
	}
	return next, nil
}

// FoldAll folds events in order.
func FoldAll(s State, events ...Event) (State, error) {
	for _, e := range events {
		var err error
		if s, err = Fold(s, e); err != nil {
			return s, fmt.Errorf("event %d: %w", e.N, err)
		}
	}
	return s, nil
}

func fold(s State, e Event) (State, error) {
	switch b := e.Body.(type) {
	case RunCreated:
		return foldCreated(s, e, b)
	case RunClaimed:
		return foldClaimed(s, e, b)
	case WorkspaceReady, WorkspaceChanged, WorkspaceRestored, WorkspaceRebuilt, SnapshotTaken:
		return foldWorkspace(s, e)
	case TurnRequested, TurnResponded, TurnFailed:
		return foldTurn(s, e)
	case TurnHeld, WindowOpened, NoteWritten, MemoryRead:
		return foldWindow(s, e)
	case EffectRefused, EffectIntended, EffectCancelled:
		return foldIntent(s, e)
	case ApprovalRequested, ApprovalGranted, ApprovalDenied, ApprovalClosed:
		return foldApproval(s, e)
	case EffectDispatched, AttemptStarted, EffectCompleted, EffectRejected, EffectAmbiguous:
		return foldAttempt(s, e)
	case QuiescenceProven, EvidenceAdded, EffectSettled:
		return foldEvidence(s, e)
	case EffectForced, EffectAbandoned, ProbeAsked:
		return foldVerdict(s, e)
	case CompensationAsked, CompensationEnded, RollbackAsked, RollbackEnded:
		return foldCompensation(s, e)
	case QuestionAsked, QuestionAnswered:
		return foldQuestion(s, e)
	case PlanUpdated:
		s.Plan = b.Items
		return s, nil
	case DecisionRecorded:
		s.Decisions = append(slices.Clip(s.Decisions), Decision{Text: b.Text, At: e.At, N: e.N})
		return s, nil
	case ChildSpawned, ChildReported, ChildReviewed, ChildResumed, ChildFunded, MessageReceived:
		return foldChild(s, e)
	case Told, RunPaused, RunUnpaused, RunCancelled, RunFinished, RunFailed, LandAsked:
		return foldRun(s, e)
	}
	return s, fmt.Errorf("machine: no fold for %T", e.Body)
}

func foldCreated(s State, e Event, b RunCreated) (State, error) {
	if err := GuardFrom.need(s.Tail == 0, b, string(b.Charter.ID), "the run exists already"); err != nil {
		return s, err
	}
	s = State{Charter: b.Charter, Created: e.At, Phase: PhaseRunning, MaxTurns: b.Charter.MaxTurns, Budget: b.Charter.Budget, Window: 1, LastOp: e.At}
	s.MaxTokens, s.MaxWall = b.Charter.MaxTokens, b.Charter.MaxWall
	if s.MaxTurns == 0 {
		s.MaxTurns = DefaultMaxTurns
	}
	s.Limits = Limits{Repeats: LimitRepeats, Misfits: LimitMisfits, Silent: LimitSilent, Tries: LimitModelTries}
	return s, nil
}

func foldClaimed(s State, e Event, b RunClaimed) (State, error) {
	if err := GuardEpoch.need(e.Epoch > s.Epoch, b, string(s.Charter.ID), "epoch %d is not above %d", e.Epoch, s.Epoch); err != nil {
		return s, err
	}
	s.Epoch, s.Owner, s.Boot, s.Self = e.Epoch, b.Owner, b.Boot, b.Self
	return s, nil
}

func foldWorkspace(s State, e Event) (State, error) {
	if err := s.current(e); err != nil {
		return s, err
	}
	switch b := e.Body.(type) {
	case WorkspaceReady:
		known := s.Space.Known
		s.Space = Workspace{Ready: true, Path: b.Path, Branch: b.Branch, Base: b.Base, Mode: b.Mode, Level: b.Level, Data: b.Data, Note: b.Note, Known: known}
	case WorkspaceChanged:
		turn := 0
		if t := s.LastTurn(); t != nil {
			turn = t.N
		}
		s.Changes = s.Changes.push(Change{From: b.From, To: b.To, Files: b.Files, N: e.N, At: e.At, Turn: turn})
		s.Space.Known = b.To
	case WorkspaceRestored:
		s.Space.Known = b.To
	case WorkspaceRebuilt:
		return foldRebuilt(s, e, b)
	case SnapshotTaken:
		f, err := s.mutable(b, b.Effect)
		if err != nil {
			return s, err
		}
		if b.Attempt > 0 && b.Attempt <= len(f.Attempts) {
			f.Attempts[b.Attempt-1].Post = b.Snapshot
			s.putEffect(f, e.At)
		}
		s.Space.Known = b.Snapshot
	}
	return s, nil
}

// current is the fence: an event of the engine carries the epoch of the claim
// it was written under.
func (s *State) current(e Event) error {
	return GuardEpoch.need(e.Epoch > 0 && e.Epoch == s.Epoch, e.Body, string(s.Charter.ID), "epoch %d, current is %d", e.Epoch, s.Epoch)
}

// authored is the fence for what both the engine and an operator may write.
func (s *State) authored(e Event) error {
	if e.Epoch == 0 && strings.HasPrefix(e.Actor, ActorOperator) {
		return nil
	}
	return s.current(e)
}

// putEffect stores an effect and keeps the list of open ones.
func (s *State) putEffect(e Effect, at int64) {
	e.Updated = at
	s.noteAdoption(&e, at)
	i := e.Ord - 1
	s.Effects = s.Effects.set(i, e)
	s.open = member(s.open, i, isOpen(&e))
	s.unproven = member(s.unproven, i, isUnproven(e.State))
}

// member returns the ascending set with i in it, or without it. It never
// writes to the set it was given.
func member(set []int, i int, in bool) []int {
	pos, found := slices.BinarySearch(set, i)
	switch {
	case in && !found:
		return slices.Insert(slices.Clone(set), pos, i)
	case !in && found:
		return slices.Delete(slices.Clone(set), pos, pos+1)
	}
	return set
}

// isUnproven: something was or may have been done, and nothing proves which.
func isUnproven(s EffectState) bool {
	switch s {
	case StateAmbiguous, StateAbandoned, StateContradicted, StateForcedHappened, StateForcedNot:
		return true
	case StateUnknown, StateProposed, StateRefused, StateIntended, StateCancelled, StateDispatched, StateCompleted,
		StateRejected, StateHappened, StateNotHappened, StateCompensating, StateCompensated:
		return false
	}
	return false
}

func isOpen(e *Effect) bool {
	return (!e.State.Settled() && !e.GivenUp) || len(e.Evidence) > e.Considered
}

// mutable returns a copy of an effect that may be changed and put back.
func (s *State) mutable(b Body, id EffectID) (Effect, error) {
	e := s.Effect(id)
	if e == nil {
		return Effect{}, &GuardError{Guard: GuardFrom, Event: b.Kind(), Ref: string(id), Why: "no such effect in this run"}
	}
	return e.clone(), nil
}

func foldRun(s State, e Event) (State, error) {
	id := string(s.Charter.ID)
	switch b := e.Body.(type) {
	case Told:
		s.Told = append(slices.Clip(s.Told), Instruction{Text: b.Text, At: e.At, By: e.Actor, N: e.N})
		if s.Phase == PhaseDone || s.Phase == PhaseFailed {
			s.Phase, s.Reason, s.Misfits, s.Repeats, s.Silent = PhaseRunning, "", 0, 0, 0
		}
	case RunPaused:
		if err := GuardFrom.need(s.Phase == PhaseRunning, b, id, "the run is %s", s.Phase); err != nil {
			return s, err
		}
		s.Phase, s.Reason = PhasePaused, b.Reason
	case RunUnpaused:
		if err := GuardFrom.need(s.Phase == PhasePaused, b, id, "the run is %s", s.Phase); err != nil {
			return s, err
		}
		s.Phase, s.Reason = PhaseRunning, ""
	case RunCancelled:
		if err := GuardFrom.need(!s.Phase.Ended(), b, id, "the run is %s", s.Phase); err != nil {
			return s, err
		}
		s.Phase, s.Reason, s.Finished = PhaseCancelled, b.Reason, e.At
	case RunFinished:
		if err := s.current(e); err != nil {
			return s, err
		}
		if err := GuardFrom.need(s.Phase == PhaseRunning, b, id, "the run is %s", s.Phase); err != nil {
			return s, err
		}
		s.Phase, s.Summary, s.Checked, s.Finished = PhaseDone, b.Summary, b.Checked, e.At
		s.Landed = nil
	case RunFailed:
		if err := s.current(e); err != nil {
			return s, err
		}
		s.Phase, s.Reason, s.Finished = PhaseFailed, b.Reason, e.At
	case LandAsked:
		if err := GuardFrom.need(s.Landed == nil && s.LandAsk == nil, b, id, "it has landed, or is about to"); err != nil {
			return s, err
		}
		s.LandAsk = &b
	}
	return s, nil
}

// noteLanding takes over the outcome of a landing that is known to have happened.
func (s *State) noteLanding(f *Effect) {
	if f.Tool != ToolLand || (f.State == StateCompleted && !f.Result.OK) {
		return
	}
	a := f.Last()
	s.Landed = &Landing{Onto: f.Target, Commit: a.Params["commit"], Effect: f.ID, At: a.At}
}
