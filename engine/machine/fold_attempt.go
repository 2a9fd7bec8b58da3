package machine

import "slices"

func foldAttempt(s State, e Event) (State, error) {
	if err := s.current(e); err != nil {
		return s, err
	}
	switch b := e.Body.(type) {
	case EffectDispatched:
		return foldDispatched(s, e, b)
	case AttemptStarted:
		f, a, err := s.inFlight(b, b.Effect, b.Attempt)
		if err != nil {
			return s, err
		}
		a.Identity, a.Started = b.Identity, true
		s.putEffect(f, e.At)
	case EffectCompleted:
		f, a, err := s.inFlight(b, b.Effect, b.Attempt)
		if err != nil {
			return s, err
		}
		known := f.Contract.Sender != SenderCommand || a.Started
		if err := GuardIdentity.need(known, b, string(b.Effect), "its process was never recorded, so its end cannot have been observed"); err != nil {
			return s, err
		}
		a.End, a.Code, a.Ended = EndCompleted, b.Result.Code, e.At
		f.State, f.Result = StateCompleted, b.Result
		s.noteLanding(&f)
		if f.Contract.Writes {
			s.Space.Known = Snapshot{} // until the snapshot after it is taken
		}
		s.putEffect(f, e.At)
	case EffectRejected:
		f, a, err := s.inFlight(b, b.Effect, b.Attempt)
		if err != nil {
			return s, err
		}
		if err := mayReject(&f, b); err != nil {
			return s, err
		}
		a.End, a.Code, a.Ended = EndRejected, b.Code, e.At
		f.State, f.Result = StateRejected, b.Result
		s.putEffect(f, e.At)
	case EffectAmbiguous:
		f, a, err := s.inFlight(b, b.Effect, b.Attempt)
		if err != nil {
			return s, err
		}
		a.End, a.Cause, a.Partial, a.Closed, a.Ended = EndUnknown, b.Cause, b.Output, b.Closed, e.At
		f.State, f.Retry = StateAmbiguous, false
		f.Waiting, f.Probing = false, false
		s.putEffect(f, e.At)
	}
	return s, nil
}

func mayReject(f *Effect, b EffectRejected) error {
	listed := slices.Contains(f.Contract.BeforeEffect, b.Code)
	if err := GuardBeforeEffect.need(listed, b, string(b.Effect), "%q is not listed as before-effect", b.Code); err != nil {
		return err
	}
	for _, a := range f.Attempts[:len(f.Attempts)-1] {
		ok := !a.Forced && (a.End == EndNotHappened || a.End == EndRejected)
		if err := GuardBeforeEffect.need(ok, b, string(b.Effect), "attempt %d is not proven not to have happened", a.N); err != nil {
			return err
		}
	}
	return nil
}

// inFlight returns a mutable effect that is DISPATCHED and its last attempt.
func (s *State) inFlight(b Body, id EffectID, attempt int) (Effect, *Attempt, error) {
	f, err := s.mutable(b, id)
	if err != nil {
		return f, nil, err
	}
	ok := f.State == StateDispatched && len(f.Attempts) == attempt && attempt > 0
	if err := GuardFrom.need(ok, b, string(id), "it is %s with %d attempts, this is about attempt %d", f.State, len(f.Attempts), attempt); err != nil {
		return f, nil, err
	}
	if len(f.Attempts) == 0 {
		return f, nil, &GuardError{Guard: GuardFrom, Event: b.Kind(), Ref: string(id), Why: "it was never dispatched"}
	}
	return f, &f.Attempts[len(f.Attempts)-1], nil
}

func foldDispatched(s State, e Event, b EffectDispatched) (State, error) {
	f, err := s.mutable(b, b.Effect)
	if err != nil {
		return s, err
	}
	if b.Digest.IsZero() {
		b.Digest = f.Digest
	}
	if b.Level == "" {
		b.Level = f.Level
	}
	if err := s.mayDispatch(&f, b, e.At); err != nil {
		return s, err
	}
	if b.Approval != "" {
		if a := s.Approval(b.Approval); a != nil && a.State == ApprovalGrantedS {
			c := *a
			c.State = ApprovalConsumed
			s.Approvals = s.Approvals.set(c.ID.Ord()-1, c)
		}
	}
	if len(f.Attempts) > 0 && !f.Retry {
		f.Auto++
	}
	if f.Retry {
		f.Auto = 0
	}
	var sender Identity
	if f.Contract.Sender != SenderCommand {
		sender = s.Self
	}
	f.Attempts = append(f.Attempts, Attempt{
		N: b.Attempt, Event: e.N, Epoch: e.Epoch, Boot: s.Boot, At: e.At, Digest: b.Digest, Approval: b.Approval, Pre: b.Pre,
		Ignored: b.Ignored, Level: b.Level, Old: b.Old, New: b.New, Params: b.Params, Identity: sender,
	})
	f.State, f.Digest = StateDispatched, b.Digest
	f.Retry, f.Waiting, f.Probing, f.Quiescence = false, false, false, nil
	f.Considered = len(f.Evidence)
	if !b.Pre.IsZero() {
		s.Space.Known = b.Pre
	}
	s.putEffect(f, e.At)
	return s, nil
}

// mayDispatch holds the guards of every dispatch, first or repeated.
func (s *State) mayDispatch(f *Effect, b EffectDispatched, at int64) error {
	ref := string(b.Effect)
	if err := GuardNext.need(b.Attempt == len(f.Attempts)+1, b, ref, "attempt %d follows %d", b.Attempt, len(f.Attempts)); err != nil {
		return err
	}
	switch f.State {
	case StateIntended, StateNotHappened, StateForcedNot:
	case StateAmbiguous:
		c := f.Contract
		ok := c.Class == ClassRead || c.Class == ClassWorkspace || c.Class == ClassKeyed || c.Declared
		if err := GuardClass.need(ok, b, ref, "class %s is not sent again while it is ambiguous", c.Class); err != nil {
			return err
		}
		if err := GuardHorizon.need(c.Class != ClassKeyed || !f.KeyPast, b, ref, "the key's horizon has passed"); err != nil {
			return err
		}
		if c.Sender == SenderCommand {
			q := f.Quiescence
			if err := GuardQuiescence.need(q != nil && q.Covers >= len(f.Attempts), b, ref, "the old process tree is not proven dead"); err != nil {
				return err
			}
		}
	case StateUnknown, StateProposed, StateRefused, StateCancelled, StateDispatched, StateCompleted, StateRejected,
		StateHappened, StateForcedHappened, StateAbandoned, StateCompensating, StateCompensated, StateContradicted:
		if err := GuardFrom.need(false, b, ref, "it is %s", f.State); err != nil {
			return err
		}
	}
	if err := s.mayPass(f, b); err != nil {
		return err
	}
	if err := s.mayUseGrant(f, b, at); err != nil {
		return err
	}
	if f.Contract.Writes && s.Space.Ready {
		if err := GuardSnapshot.need(!b.Pre.IsZero(), b, ref, "no snapshot was taken"); err != nil {
			return err
		}
	}
	if !f.Retry {
		if err := GuardCap.need(len(f.Attempts) == 0 || f.Auto < MaxAutoAttempts, b, ref, "%d automatic attempts were made", f.Auto); err != nil {
			return err
		}
	}
	if f.Contract.Probe != nil && (f.State == StateNotHappened || f.State == StateForcedNot) {
		if err := GuardFreshProbe.need(LookedSince(f, f.DecidedN), b, ref, "nobody has looked since the verdict"); err != nil {
			return err
		}
	}
	return nil
}

// mayPass holds the barriers: pause, cancel, end, and the hold while something is unresolved.
func (s *State) mayPass(f *Effect, b EffectDispatched) error {
	if f.Retry || !f.Proposed() {
		return nil // the operator's own retry, compensation or landing
	}
	ref := string(b.Effect)
	if err := GuardBarrier.need(s.Phase == PhaseRunning, b, ref, "the run is %s", s.Phase); err != nil {
		return err
	}
	for _, i := range s.open {
		o := s.Effects.at(i)
		if o.ID == f.ID || o.State == StateIntended {
			continue
		}
		if err := GuardHold.need(false, b, ref, "%s is %s", o.ID, o.State); err != nil {
			return err
		}
	}
	return nil
}

// mayUseGrant checks what the dispatch consumes or is covered by.
func (s *State) mayUseGrant(f *Effect, b EffectDispatched, at int64) error {
	if !f.Asks || f.Retry {
		return nil
	}
	ref := string(b.Effect)
	a := s.Approval(b.Approval)
	if a == nil {
		return GuardApproval.need(false, b, ref, "it needs an approval")
	}
	ok := a.Effect == f.ID && a.Digest == b.Digest
	if err := GuardApproval.need(ok, b, ref, "approval %s is for digest %s of %s", a.ID, a.Digest.Short(), a.Effect); err != nil {
		return err
	}
	if a.State == ApprovalGrantedS {
		return GuardExpiry.need(!a.Lapsed(at), b, ref, "approval %s has expired", a.ID)
	}
	// A consumed grant covers re-sends of the same action only.
	covered := a.State == ApprovalConsumed && len(f.Attempts) > 0 && f.Last().Digest == b.Digest &&
		(f.State == StateAmbiguous || f.State == StateNotHappened)
	return GuardGrantOnce.need(covered, b, ref, "approval %s is %s", a.ID, a.State)
}

// LookedSince reports whether a probe's finding is newer than event n.
func LookedSince(f *Effect, n int64) bool {
	for _, v := range f.Evidence {
		if v.Authority == AuthProbe && v.N > n {
			return true
		}
	}
	return false
}
