package machine

import (
	"slices"
	"strings"
)

func foldEvidence(s State, e Event) (State, error) {
	switch b := e.Body.(type) {
	case QuiescenceProven:
		if err := s.current(e); err != nil {
			return s, err
		}
		f, err := s.mutable(b, b.Effect)
		if err != nil {
			return s, err
		}
		ok := b.Quiescence.Covers > 0 && b.Quiescence.Covers <= len(f.Attempts) && f.State != StateDispatched
		if err := GuardFrom.need(ok, b, string(b.Effect), "it is %s with %d attempts", f.State, len(f.Attempts)); err != nil {
			return s, err
		}
		q := b.Quiescence
		q.N = e.N
		f.Quiescence = &q
		s.putEffect(f, e.At)
	case EvidenceAdded:
		f, err := s.mutable(b, b.Effect)
		if err != nil {
			return s, err
		}
		v := b.Evidence
		v.N, v.At, v.Actor = e.N, e.At, e.Actor
		f.Evidence = append(slices.Clip(f.Evidence), v)
		if v.Authority == AuthProbe {
			f.Probing = false
		}
		if v.Authority == AuthHorizon {
			f.KeyPast = true
		}
		if b.Result != nil && v.Verdict == VerdictHappened {
			f.Result = *b.Result
		}
		s.putEffect(f, e.At)
	case EffectSettled:
		if err := s.current(e); err != nil {
			return s, err
		}
		return foldSettled(s, e, b)
	}
	return s, nil
}

func foldSettled(s State, e Event, b EffectSettled) (State, error) {
	f, err := s.mutable(b, b.Effect)
	if err != nil {
		return s, err
	}
	ref := string(b.Effect)
	fresh := f.Evidence[f.Considered:]
	if b.State == f.State { // the evidence agrees: it is weighed, and moves nothing
		if err := GuardEvidence.need(len(fresh) > 0, b, ref, "there is no new evidence"); err != nil {
			return s, err
		}
		f.Considered = len(f.Evidence)
		s.putEffect(f, e.At)
		return s, nil
	}
	switch b.State {
	case StateHappened:
		ok := f.State == StateAmbiguous || f.State == StateAbandoned || f.State == StateForcedHappened
		if err := GuardFrom.need(ok, b, ref, "it is %s", f.State); err != nil {
			return s, err
		}
		if err := GuardEvidence.need(says(fresh, VerdictHappened), b, ref, "no new evidence says that it happened"); err != nil {
			return s, err
		}
		f.mark(EndHappened, false)
		s.noteLanding(&f)
	case StateNotHappened:
		ok := f.State == StateAmbiguous || f.State == StateAbandoned || f.State == StateForcedNot
		if err := GuardFrom.need(ok, b, ref, "it is %s", f.State); err != nil {
			return s, err
		}
		if err := GuardEvidence.need(says(fresh, VerdictNotHappened) && !says(fresh, VerdictHappened), b, ref, "the new evidence does not say so"); err != nil {
			return s, err
		}
		if err := GuardQuiescence.need(ProvesNot(&f), b, ref, "no look came after the proof that nothing can still land"); err != nil {
			return s, err
		}
		f.mark(EndNotHappened, false)
	case StateContradicted:
		if err := GuardEvidence.need(Contradicts(&f), b, ref, "the new evidence does not contradict %s", f.State); err != nil {
			return s, err
		}
	case StateUnknown, StateProposed, StateRefused, StateIntended, StateCancelled, StateDispatched, StateCompleted,
		StateRejected, StateAmbiguous, StateForcedHappened, StateForcedNot, StateAbandoned, StateCompensating, StateCompensated:
		if err := GuardFrom.need(false, b, ref, "evidence does not lead to %s", b.State); err != nil {
			return s, err
		}
	}
	switch {
	case f.State == StateForcedNot && b.State == StateNotHappened:
		// It agrees with the operator: his grant and the look both stand.
		f.State, f.Reason = b.State, b.Text
	default:
		f.State, f.Reason, f.By, f.Decided, f.DecidedN = b.State, b.Text, e.Actor, e.At, e.N
		f.Retry = false
	}
	f.Considered = len(f.Evidence)
	s.putEffect(f, e.At)
	return s, nil
}

// mark notes a verdict on every attempt whose end is still open.
func (e *Effect) mark(end AttemptEnd, forced bool) {
	for i := range e.Attempts {
		a := &e.Attempts[i]
		switch {
		case a.End == EndCompleted || a.End == EndRejected:
		case end == EndHappened && i < len(e.Attempts)-1 && a.End == EndNotHappened:
		default:
			a.End, a.Forced = end, forced
		}
	}
}

func says(evidence []Evidence, v Verdict) bool {
	return slices.ContainsFunc(evidence, func(x Evidence) bool { return x.Verdict == v })
}

// ProvesNot reports whether new evidence proves that no attempt happened: a
// look that began after the proof of quiescence plus the in-flight bound (plus
// the settle time of a probe that does not read its own writes), by a probe
// that may prove it; or a gate that never opened.
func ProvesNot(f *Effect) bool {
	for _, v := range f.Evidence[f.Considered:] {
		if v.Verdict != VerdictNotHappened || v.Covers < len(f.Attempts) {
			continue
		}
		if v.Authority == AuthGate {
			return true
		}
		q, p := f.Quiescence, f.Contract.Probe
		if q == nil || p == nil || !p.ProvesNot || q.Covers < len(f.Attempts) || v.N <= q.N {
			continue
		}
		wait := f.Contract.InFlight
		if !p.ReadsOwnWrites {
			wait += p.Settle
		}
		if us, ok := v.Started.Since(q.At); ok && us >= wait {
			return true
		}
	}
	return false
}

// Contradicts reports whether new evidence speaks against a final verdict.
func Contradicts(f *Effect) bool {
	fresh := f.Evidence[f.Considered:]
	switch f.State {
	case StateHappened, StateForcedHappened, StateCompleted:
		return says(fresh, VerdictConflict) || (says(fresh, VerdictNotHappened) && ProvesNot(f))
	case StateNotHappened, StateForcedNot, StateRejected, StateCancelled:
		return says(fresh, VerdictHappened) || says(fresh, VerdictConflict)
	case StateUnknown, StateProposed, StateRefused, StateIntended, StateDispatched, StateAmbiguous, StateAbandoned,
		StateCompensating, StateCompensated, StateContradicted:
		return false
	}
	return false
}

// Reconcile names the state that the evidence not yet weighed leads to, and a
// sentence why; ok is false if it moves nothing.
func Reconcile(f *Effect) (to EffectState, why string, ok bool) {
	fresh := f.Evidence[f.Considered:]
	if len(fresh) == 0 {
		return f.State, "", false
	}
	if Contradicts(f) {
		return StateContradicted, "new evidence contradicts the verdict: " + texts(fresh), true
	}
	switch f.State {
	case StateAmbiguous, StateAbandoned:
		switch {
		case says(fresh, VerdictHappened) && (ProvesNot(f) || says(fresh, VerdictConflict)):
			// They speak against each other: a person weighs them.
		case says(fresh, VerdictHappened):
			return StateHappened, texts(fresh, VerdictHappened), true
		case ProvesNot(f):
			return StateNotHappened, texts(fresh, VerdictNotHappened), true
		}
		if f.State == StateAmbiguous {
			return f.State, "", false
		}
		// What was abandoned holds nothing up: a look that proves nothing is
		// weighed, or the run would wait for it for ever.
	case StateForcedHappened:
		if says(fresh, VerdictHappened) {
			return StateHappened, texts(fresh, VerdictHappened), true
		}
	case StateForcedNot:
		if ProvesNot(f) {
			return StateNotHappened, texts(fresh, VerdictNotHappened), true
		}
	case StateUnknown, StateProposed, StateRefused, StateIntended, StateCancelled, StateDispatched, StateCompleted,
		StateRejected, StateHappened, StateNotHappened, StateCompensating, StateCompensated, StateContradicted:
	}
	// It agrees or says nothing: weighed, and the state stays.
	return f.State, texts(fresh), true
}

func texts(evidence []Evidence, only ...Verdict) string {
	var out []string
	for _, v := range evidence {
		if len(only) == 0 || slices.Contains(only, v.Verdict) {
			out = append(out, v.Text)
		}
	}
	return strings.Join(out, "; ")
}

func foldVerdict(s State, e Event) (State, error) {
	switch b := e.Body.(type) {
	case EffectForced:
		f, err := s.mutable(b, b.Effect)
		if err != nil {
			return s, err
		}
		return foldForced(s, e, b, f)
	case EffectAbandoned:
		f, err := s.mutable(b, b.Effect)
		if err != nil {
			return s, err
		}
		switch {
		case f.State == StateAmbiguous || f.State == StateContradicted:
			f.State = StateAbandoned
		case f.State == StateNotHappened || f.State == StateForcedNot:
			f.GivenUp = true
		case f.Failed != "":
			f.Failed = "" // it stays done; the failed compensation is taken note of
		default:
			return s, &GuardError{Guard: GuardFrom, Event: b.Kind(), Ref: string(b.Effect), Why: "it is " + f.State.String()}
		}
		f.Reason, f.By, f.Decided, f.DecidedN, f.Retry = b.Reason, e.Actor, e.At, e.N, false
		f.Considered = len(f.Evidence)
		s.putEffect(f, e.At)
	case ProbeAsked:
		f, err := s.mutable(b, b.Effect)
		if err != nil {
			return s, err
		}
		f.Probing, f.Waiting = b.Choice == ChooseProbe, b.Choice == ChooseWait
		f.By = e.Actor
		s.putEffect(f, e.At)
	}
	return s, nil
}

func foldForced(s State, e Event, b EffectForced, f Effect) (State, error) {
	ref := string(b.Effect)
	if f.State == StateNotHappened && b.Choice == ChooseRetry {
		f.Retry, f.By, f.Decided = true, e.Actor, e.At // proven already: the word is only the grant
		s.putEffect(f, e.At)
		return s, nil
	}
	ok := f.State == StateAmbiguous || f.State == StateContradicted
	if err := GuardFrom.need(ok, b, ref, "it is %s", f.State); err != nil {
		return s, err
	}
	typed := b.Typed == f.ID.Short() && strings.TrimSpace(b.Reason) != ""
	if err := GuardTyped.need(typed, b, ref, "a forced verdict needs a reason and %q typed out", f.ID.Short()); err != nil {
		return s, err
	}
	switch b.Choice {
	case ChooseHappened:
		f.State = StateForcedHappened
		f.mark(EndHappened, true)
	case ChooseRetry:
		f.State, f.Retry = StateForcedNot, true
		f.mark(EndNotHappened, true)
	case ChooseWait, ChooseProbe, ChooseCompensate, ChooseAbandon:
		return s, &GuardError{Guard: GuardFrom, Event: b.Kind(), Ref: ref, Why: "not a verdict: " + string(b.Choice)}
	}
	f.Forced, f.Reason, f.By, f.Decided, f.DecidedN = true, b.Reason, e.Actor, e.At, e.N
	f.Considered = len(f.Evidence)
	s.putEffect(f, e.At)
	return s, nil
}

func foldCompensation(s State, e Event) (State, error) {
	switch b := e.Body.(type) {
	case RollbackAsked:
		id := string(s.Charter.ID)
		if err := GuardFrom.need(s.Phase != PhaseRunning, b, id, "the run is still at work: pause or cancel it first"); err != nil {
			return s, err
		}
		if err := GuardFrom.need(s.Rollback == nil, b, id, "it is being undone already"); err != nil {
			return s, err
		}
		s.Rollback = &Rollback{By: e.Actor, Reason: b.Reason, At: e.At, From: s.Effects.n}
		if !s.Phase.Ended() {
			s.Phase, s.Reason, s.Finished = PhaseCancelled, "undone: "+b.Reason, e.At
		}
	case RollbackEnded:
		if err := s.current(e); err != nil {
			return s, err
		}
		s.Rollback = nil
	case CompensationAsked:
		f, err := s.mutable(b, b.Effect)
		if err != nil {
			return s, err
		}
		if err := mayCompensate(&f, b); err != nil {
			return s, err
		}
		f.Before, f.State, f.Compensation, f.Failed = f.State, StateCompensating, "", ""
		f.By, f.Decided, f.DecidedN = e.Actor, e.At, e.N
		s.putEffect(f, e.At)
	case CompensationEnded:
		if err := s.current(e); err != nil {
			return s, err
		}
		f, err := s.mutable(b, b.Effect)
		if err != nil {
			return s, err
		}
		c := s.Effect(b.By)
		ok := f.State == StateCompensating && f.Compensation == b.By
		if b.By == "" {
			ok = ok && !b.OK // it could not even be intended
		} else {
			ok = ok && c != nil && b.OK == Undid(&f, c)
		}
		if err := GuardFrom.need(ok, b, string(b.Effect), "it is %s and %s does not bear that out", f.State, b.By); err != nil {
			return s, err
		}
		if b.OK {
			f.State = StateCompensated
			if s.Rollback != nil {
				r := *s.Rollback
				r.Undone++
				s.Rollback = &r
			}
		} else {
			f.State, f.Failed = f.Before, b.Text
			s.failed = append(slices.Clip(s.failed), f.Ord-1)
		}
		s.putEffect(f, e.At)
	}
	return s, nil
}

func mayCompensate(f *Effect, b CompensationAsked) error {
	ref := string(b.Effect)
	if err := GuardFrom.need(f.Contract.Compensation != nil, b, ref, "its contract names no compensation"); err != nil {
		return err
	}
	switch f.State {
	case StateCompleted, StateHappened, StateForcedHappened, StateContradicted:
		return nil
	case StateAmbiguous:
		q := f.Quiescence
		ok := f.Contract.Compensation.NullSafe && q != nil && q.Covers >= len(f.Attempts)
		if ok && f.Contract.InFlight > 0 {
			us, same := b.At.Since(q.At)
			ok = same && us >= f.Contract.InFlight
		}
		return GuardNullSafe.need(ok, b, ref, "confirm first: it may still land, or undoing what never happened may do harm")
	case StateUnknown, StateProposed, StateRefused, StateIntended, StateCancelled, StateDispatched, StateRejected,
		StateNotHappened, StateForcedNot, StateAbandoned, StateCompensating, StateCompensated:
	}
	return GuardFrom.need(false, b, ref, "it is %s", f.State)
}

// Undid reports whether compensation c has undone f: completed with a code
// that its contract calls success, or happened.
func Undid(f, c *Effect) bool {
	switch c.State {
	case StateHappened, StateForcedHappened:
		return true
	case StateCompleted:
		ok := f.Contract.Compensation.Success
		if len(ok) == 0 {
			ok = []string{"0"}
		}
		return slices.Contains(ok, c.Result.Code)
	case StateUnknown, StateProposed, StateRefused, StateIntended, StateCancelled, StateDispatched, StateRejected,
		StateAmbiguous, StateNotHappened, StateForcedNot, StateAbandoned, StateCompensating, StateCompensated, StateContradicted:
	}
	return false
}
