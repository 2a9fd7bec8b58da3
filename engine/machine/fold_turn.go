package machine

import "slices"

func foldTurn(s State, e Event) (State, error) {
	if err := s.current(e); err != nil {
		return s, err
	}
	switch b := e.Body.(type) {
	case TurnRequested:
		return foldRequested(s, e, b)
	case TurnResponded:
		return foldResponded(s, e, b)
	case TurnFailed:
		t, err := s.asked(b, b.Turn)
		if err != nil {
			return s, err
		}
		t.State, t.Fail, t.Message, t.RetryAt, t.Spent = TurnBroken, b.Class, b.Message, b.RetryAt, b.Spent
		s.AtMost += b.AtMost
		s.Spent += b.Cost
		if b.Class == FailLost || b.Class == FailCut {
			s.TokensMay += t.Tokens
		}
		s.Turns = s.Turns.set(t.N-1, t)
	}
	return s, nil
}

func foldRequested(s State, e Event, b TurnRequested) (State, error) {
	id := string(s.Charter.ID)
	if err := GuardBarrier.need(s.Phase == PhaseRunning, b, id, "the run is %s", s.Phase); err != nil {
		return s, err
	}
	t := Turn{N: b.Turn, Window: b.Window, At: e.At}
	switch last := s.LastTurn(); {
	case last != nil && last.N == b.Turn:
		if err := GuardFrom.need(last.State == TurnBroken, b, id, "turn %d is %s", b.Turn, last.State); err != nil {
			return s, err
		}
		t = *last
	default:
		if err := GuardNext.need(b.Turn == s.Turns.n+1, b, id, "turn %d follows %d", b.Turn, s.Turns.n); err != nil {
			return s, err
		}
		if err := GuardFrom.need(last == nil || last.State == TurnAnswered, b, id, "the turn before has no answer"); err != nil {
			return s, err
		}
		if err := GuardHold.need(len(s.open) == 0, b, id, "%d effects are not settled", len(s.open)); err != nil {
			return s, err
		}
	}
	if err := GuardNext.need(b.Attempt == t.Attempts+1, b, id, "request %d follows %d", b.Attempt, t.Attempts); err != nil {
		return s, err
	}
	if over := s.OverBudget(b.Reserve, b.Tokens, 0); over != nil {
		if err := GuardBudget.need(false, b, id, "%s", over.Why); err != nil {
			return s, err
		}
	}
	t.State, t.Attempts, t.Epoch, t.Reserve, t.Fail, t.Message, t.RetryAt = TurnAsked, b.Attempt, e.Epoch, b.Reserve, "", "", 0
	t.Tokens = b.Tokens
	t.Told, t.Mail, t.Window, t.Extended = len(s.Told), len(s.Mail), b.Window, false
	s.Turns = s.Turns.set(t.N-1, t)
	s.Hold = nil
	return s, nil
}

// asked returns a copy of the turn that is being asked for.
func (s *State) asked(b Body, n int) (Turn, error) {
	t := s.Turn(n)
	ok := t != nil && t.State == TurnAsked && n == s.Turns.n
	if err := GuardFrom.need(ok, b, string(s.Charter.ID), "turn %d is not being asked for", n); err != nil {
		return Turn{}, err
	}
	if t == nil {
		return Turn{N: n}, nil
	}
	return *t, nil
}

func foldResponded(s State, e Event, b TurnResponded) (State, error) {
	t, err := s.asked(b, b.Turn)
	if err != nil {
		return s, err
	}
	if err := GuardStopReason.need(b.Stop != "", b, string(s.Charter.ID), "turn %d has no stop reason", b.Turn); err != nil {
		return s, err
	}
	t.State, t.Stop, t.Text, t.Calls, t.Usage, t.RequestID = TurnAnswered, b.Stop, b.Text, b.Calls, b.Usage, b.RequestID
	t.Tail, t.Pack, t.Guess = e.N, b.Pack, b.Guess
	s.Turns = s.Turns.set(t.N-1, t)
	s.Spent += b.Usage.Cost
	s.TokensIn += b.Usage.Input
	s.TokensOut += b.Usage.Output
	s.countLoops(b)
	return s, nil
}

// countLoops keeps the counters that stop a model which goes in circles: the
// same turn again, or two in alternation.
func (s *State) countLoops(b TurnResponded) {
	if len(b.Calls) == 0 {
		s.Silent++
		return
	}
	s.Silent = 0
	var buf []byte
	for _, c := range b.Calls {
		buf = append(buf, c.Tool...)
		buf = append(buf, 0)
		if c.Args.Blob.IsZero() {
			buf = append(buf, c.Args.Inline...)
		} else {
			buf = append(buf, c.Args.Blob[:]...)
		}
		buf = append(buf, 0)
	}
	key := DigestOf(buf)
	if key == s.keys[0] || key == s.keys[1] {
		s.Repeats++
	} else {
		s.Repeats = 0
	}
	s.keys = [2]Digest{key, s.keys[0]}
	s.Misfits++ // taken back by the first call of the turn that is intended
}

func foldIntent(s State, e Event) (State, error) {
	switch b := e.Body.(type) {
	case EffectIntended:
		return foldIntended(s, e, b)
	case EffectRefused:
		if err := s.current(e); err != nil {
			return s, err
		}
		if err := s.checkProposal(b, b.Effect, b.Turn, b.Call); err != nil {
			return s, err
		}
		f := Effect{ID: b.Effect, Ord: s.Effects.n + 1, Turn: b.Turn, Call: b.Call, Tool: b.Tool, State: StateRefused, Reason: b.Reason, At: e.At, Summary: b.Tool}
		if t := s.Turn(b.Turn); t != nil && b.Call >= 0 && b.Call < len(t.Calls) {
			f.Args = t.Calls[b.Call].Args
		}
		s.putEffect(f, e.At)
	case EffectCancelled:
		if err := s.authored(e); err != nil {
			return s, err
		}
		f, err := s.mutable(b, b.Effect)
		if err != nil {
			return s, err
		}
		if err := GuardFrom.need(f.State == StateIntended, b, string(b.Effect), "it is %s, only what was never dispatched can be cancelled", f.State); err != nil {
			return s, err
		}
		f.State, f.Reason, f.By = StateCancelled, b.Reason, e.Actor
		s.putEffect(f, e.At)
		s.closeApproval(f.Approval, ApprovalSuperseded, e)
	}
	return s, nil
}

func (s *State) checkProposal(b Body, id EffectID, turn, call int) error {
	if err := GuardNext.need(id == s.NextEffect(), b, string(id), "the next effect is %s", s.NextEffect()); err != nil {
		return err
	}
	if call < 0 {
		return nil
	}
	t := s.Turn(turn)
	ok := t != nil && t.State == TurnAnswered && t.Stop != "" && call < len(t.Calls)
	return GuardStopReason.need(ok, b, string(id), "turn %d holds no whole response with call %d", turn, call)
}

func foldIntended(s State, e Event, b EffectIntended) (State, error) {
	if err := s.authored(e); err != nil {
		return s, err
	}
	if err := s.checkProposal(b, b.Effect, b.Turn, b.Call); err != nil {
		return s, err
	}
	if err := GuardClass.need(b.Contract.Class != ClassUnknown, b, string(b.Effect), "no class is declared"); err != nil {
		return s, err
	}
	if t := s.Turn(b.Turn); b.Args.IsZero() && b.Call >= 0 && t != nil {
		b.Args = t.Calls[b.Call].Args
	}
	f := Effect{
		ID: b.Effect, Ord: s.Effects.n + 1, Turn: b.Turn, Call: b.Call, Tool: b.Tool, ToolVersion: b.ToolVersion,
		Args: b.Args, Summary: b.Summary, Target: b.Target, Contract: b.Contract, Digest: b.Digest, Level: b.Level,
		Rule: b.Rule, Asks: b.Asks, Files: b.Files, State: StateIntended, Compensates: b.Compensates,
		Replaces: b.Replaces, At: e.At,
	}
	if b.Compensates != "" {
		o, err := s.mutable(b, b.Compensates)
		if err != nil {
			return s, err
		}
		if err := GuardFrom.need(o.State == StateCompensating && o.Compensation == "", b, string(b.Compensates), "it is %s", o.State); err != nil {
			return s, err
		}
		o.Compensation = b.Effect
		s.putEffect(o, e.At)
	}
	if b.Replaces != "" {
		o, err := s.mutable(b, b.Replaces)
		if err != nil {
			return s, err
		}
		if err := GuardFrom.need(o.State == StateCancelled && o.ReplacedBy == "", b, string(b.Replaces), "only a cancelled effect is replaced, once"); err != nil {
			return s, err
		}
		o.ReplacedBy = b.Effect
		s.putEffect(o, e.At)
	}
	if b.Call >= 0 {
		s.Misfits = 0
	}
	if b.Tool == ToolLand {
		s.LandAsk = nil
	}
	if b.Tool == ToolAdopt && b.Call < 0 {
		if err := s.intendAdoption(b, e.At); err != nil {
			return s, err
		}
	}
	s.putEffect(f, e.At)
	return s, nil
}

func foldApproval(s State, e Event) (State, error) {
	switch b := e.Body.(type) {
	case ApprovalRequested:
		if err := s.authored(e); err != nil {
			return s, err
		}
		f, err := s.mutable(b, b.Effect)
		if err != nil {
			return s, err
		}
		if err := GuardNext.need(b.Approval == s.NextApproval(), b, string(b.Approval), "the next approval is %s", s.NextApproval()); err != nil {
			return s, err
		}
		ok := f.State == StateIntended || f.State == StateAmbiguous || f.State == StateNotHappened || f.State == StateForcedNot
		if err := GuardFrom.need(ok, b, string(b.Effect), "it is %s", f.State); err != nil {
			return s, err
		}
		s.closeApproval(f.Approval, ApprovalSuperseded, e)
		f.Approval, f.Asks, f.Digest = b.Approval, true, b.Digest
		if b.Files != nil {
			f.Files = b.Files
		}
		s.putEffect(f, e.At)
		s.Approvals = s.Approvals.push(Approval{ID: b.Approval, Effect: b.Effect, Digest: b.Digest, State: ApprovalPending, Why: b.Why, Drift: b.Drift, Like: b.Like, Asked: e.At, DigestFor: b.Files, Expires: b.Expires})
	case ApprovalGranted:
		a, err := s.pending(b, b.Approval)
		if err != nil {
			return s, err
		}
		if err := GuardApproval.need(a.Digest == b.Digest, b, string(b.Approval), "the grant is for %s, asked was %s", b.Digest.Short(), a.Digest.Short()); err != nil {
			return s, err
		}
		if err := GuardExpiry.need(!a.Lapsed(e.At), b, string(b.Approval), "it expired"); err != nil {
			return s, err
		}
		a.State, a.By, a.Answered, a.Grant = ApprovalGrantedS, e.Actor, e.At, b.Grant
		s.Approvals = s.Approvals.set(a.ID.Ord()-1, a)
	case ApprovalDenied:
		a, err := s.pending(b, b.Approval)
		if err != nil {
			return s, err
		}
		a.State, a.By, a.Answered, a.Feedback = ApprovalDeniedS, e.Actor, e.At, b.Feedback
		s.Approvals = s.Approvals.set(a.ID.Ord()-1, a)
		f, err := s.mutable(b, a.Effect)
		if err != nil {
			return s, err
		}
		if f.State == StateIntended {
			f.State, f.Reason, f.By = StateRefused, b.Feedback, e.Actor
			s.putEffect(f, e.At)
		}
	case ApprovalClosed:
		if err := s.authored(e); err != nil {
			return s, err
		}
		return s.closeAsked(e, b)
	}
	return s, nil
}

// closeAsked ends an approval that is open or granted and not used.
func (s State) closeAsked(e Event, b ApprovalClosed) (State, error) {
	a := s.Approval(b.Approval)
	ok := a != nil && (a.State == ApprovalPending || a.State == ApprovalGrantedS)
	if err := GuardGrantOnce.need(ok, b, string(b.Approval), "it is not open"); err != nil {
		return s, err
	}
	if b.State == ApprovalExpired && a != nil {
		if err := GuardExpiry.need(a.Lapsed(e.At), b, string(b.Approval), "it has not expired"); err != nil {
			return s, err
		}
	}
	s.closeApproval(b.Approval, b.State, e)
	return s, nil
}

// Lapsed reports whether the approval's time is over, at a time in Unix µs.
func (a *Approval) Lapsed(at int64) bool { return a.Expires != 0 && at >= a.Expires }

func (s *State) pending(b Body, id ApprovalID) (Approval, error) {
	a := s.Approval(id)
	if a == nil {
		return Approval{}, &GuardError{Guard: GuardGrantOnce, Event: b.Kind(), Ref: string(id), Why: "no such approval"}
	}
	if err := GuardGrantOnce.need(a.State == ApprovalPending, b, string(id), "it is %s, not pending", a.State); err != nil {
		return Approval{}, err
	}
	return *a, nil
}

func (s *State) closeApproval(id ApprovalID, to ApprovalState, e Event) {
	a := s.Approval(id)
	if a == nil || (a.State != ApprovalPending && a.State != ApprovalGrantedS) {
		return
	}
	c := *a
	c.State, c.By, c.Answered = to, e.Actor, e.At
	s.Approvals = s.Approvals.set(c.ID.Ord()-1, c)
}

func foldQuestion(s State, e Event) (State, error) {
	switch b := e.Body.(type) {
	case QuestionAsked:
		if err := s.current(e); err != nil {
			return s, err
		}
		if err := GuardNext.need(b.Question == s.NextQuestion(), b, string(b.Question), "the next question is %s", s.NextQuestion()); err != nil {
			return s, err
		}
		s.Questions = s.Questions.push(Question{ID: b.Question, Sort: b.Sort, Effect: b.Effect, Text: b.Text, Choices: b.Choices, Data: b.Data, Asked: e.At})
	case QuestionAnswered:
		q := s.Question(b.Question)
		if q == nil {
			return s, &GuardError{Guard: GuardFrom, Event: b.Kind(), Ref: string(b.Question), Why: "no such question"}
		}
		if err := GuardGrantOnce.need(!q.Answered, b, string(b.Question), "%s answered it already", q.By); err != nil {
			return s, err
		}
		a := *q
		a.Answered, a.Answer, a.By, a.At = true, b.Answer, e.Actor, e.At
		s.Questions = s.Questions.set(a.ID.Ord()-1, a)
		return s.applyAnswer(e, a, b)
	}
	return s, nil
}

// Answers that every engine question understands.
const (
	AnswerStop   = "stop"
	AnswerExtend = "extend"
	AnswerAdopt  = "adopt"
	AnswerBeside = "beside"
	AnswerRetry  = "retry"
	AnswerSkip   = "skip"
	AnswerUndo   = "compensate"
)

// applyAnswer lets an answer take effect on the run.
func (s State) applyAnswer(e Event, q Question, b QuestionAnswered) (State, error) {
	if q.Sort == SortQuestion {
		f := s.Effect(q.Effect)
		if f != nil && f.State == StateIntended {
			g := f.clone()
			g.State, g.By = StateCompleted, e.Actor
			g.Result = Result{OK: true, Output: Text{Inline: b.Answer}}
			s.putEffect(g, e.At)
		}
		return s, nil
	}
	if b.Answer == AnswerStop && string(q.Data) != "rollback" {
		if !s.Phase.Ended() {
			s.Phase, s.Reason, s.Finished = PhaseCancelled, "stopped by the operator: "+q.Text, e.At
		}
		return s, nil
	}
	if q.Effect != "" && string(q.Data) == "rollback" {
		return s.answerRollback(e, q, b)
	}
	n := int(max(b.Number, 1))
	switch string(q.Data) {
	case "turns":
		s.MaxTurns += n
	case "budget":
		s.Budget += b.Number
	case "tokens":
		s.MaxTokens += b.Number
	case "wall":
		s.MaxWall = e.At - s.Created + b.Number
	case "repeats":
		s.Limits.Repeats += n
	case "misfits":
		s.Limits.Misfits += n
	case "silent":
		s.Limits.Silent += n
	case "tries":
		s.Limits.Tries += n
		if t := s.LastTurn(); t != nil && t.State == TurnBroken {
			c := *t
			c.RetryAt, c.Extended = 0, true
			s.Turns = s.Turns.set(c.N-1, c)
		}
	case "workspace":
		s.Space.Tries = 0
	case "window":
		s.retire(b.Answer)
	}
	return s, nil
}

// answerRollback says what becomes of an effect at which an undoing stopped.
func (s State) answerRollback(e Event, q Question, b QuestionAnswered) (State, error) {
	if s.Rollback == nil {
		return s, nil
	}
	r := *s.Rollback
	switch b.Answer {
	case AnswerUndo:
		f, err := s.mutable(b, q.Effect)
		if err != nil {
			return s, err
		}
		if err := mayCompensate(&f, CompensationAsked{Effect: q.Effect}); err != nil {
			return s, err
		}
		f.Before, f.State, f.Compensation, f.Failed = f.State, StateCompensating, "", ""
		f.By, f.Decided, f.DecidedN = e.Actor, e.At, e.N
		s.putEffect(f, e.At)
	case AnswerStop:
		r.From = 0
	default:
		r.Skipped = append(slices.Clip(r.Skipped), q.Effect)
	}
	s.Rollback = &r
	return s, nil
}
