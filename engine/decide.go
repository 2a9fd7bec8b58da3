package engine

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"pawl/engine/machine"
	"pawl/ledger"
)

// NotPendingError answers a decision about something that is not open: decided
// already, superseded, or never asked.
type NotPendingError struct {
	ID   string
	Why  string // "bob granted it at 14:03"
	Next string
}

func (e *NotPendingError) Error() string {
	s := fmt.Sprintf("%s is not pending: %s", e.ID, e.Why)
	if e.Next != "" {
		s += "; " + e.Next
	}
	return s
}

// act appends an operator's decision under compare-and-set. make judges it on
// the newest state and is asked again when that has moved.
func (e *Engine) act(ctx context.Context, id machine.RunID, make func(s *machine.State) ([]machine.Body, error)) error {
	for {
		s, err := e.state(ctx, id)
		if err != nil {
			return err
		}
		bodies, err := make(&s)
		if err != nil || len(bodies) == 0 {
			return err
		}
		next, err := e.commit(ctx, ledger.Full, s, batch{bodies: bodies, actor: e.operator})
		var moved *ledger.TailError
		if errors.As(err, &moved) {
			continue
		}
		if err != nil {
			return err
		}
		e.remember(next)
		e.nudge(id)
		e.broadcast()
		return nil
	}
}

// nudge wakes the run's goroutine if this process drives it.
func (e *Engine) nudge(id machine.RunID) {
	e.mu.Lock()
	r := e.runs[id]
	e.mu.Unlock()
	if r != nil {
		r.ask(wake)
	}
}

// Approve grants a pending approval for the digest that was shown. A zero
// digest means the one that is asked for now.
func (e *Engine) Approve(ctx context.Context, id machine.ApprovalID, shown machine.Digest) error {
	return e.act(ctx, id.Run(), func(s *machine.State) ([]machine.Body, error) {
		a, err := pendingApproval(s, id, e.now())
		if err != nil {
			return nil, err
		}
		if !shown.IsZero() && shown != a.Digest {
			return nil, changedSince(id)
		}
		return []machine.Body{machine.ApprovalGranted{Approval: id, Digest: a.Digest}}, nil
	})
}

// Deny refuses a pending approval; feedback goes to the model.
func (e *Engine) Deny(ctx context.Context, id machine.ApprovalID, feedback string) error {
	return e.act(ctx, id.Run(), func(s *machine.State) ([]machine.Body, error) {
		if _, err := pendingApproval(s, id, e.now()); err != nil {
			return nil, err
		}
		return []machine.Body{machine.ApprovalDenied{Approval: id, Feedback: feedback}}, nil
	})
}

func pendingApproval(s *machine.State, id machine.ApprovalID, now int64) (*machine.Approval, error) {
	a := s.Approval(id)
	if a == nil {
		return nil, &NotPendingError{ID: string(id), Why: "nobody asked for it", Next: "`pawl inbox` lists what is asked"}
	}
	if a.State != machine.ApprovalPending {
		return nil, &NotPendingError{ID: string(id), Why: fmt.Sprintf("it is %s, by %s at %s", a.State, who(a.By), wall(a.Answered).Format(stamp)), Next: "nothing was run on your word"}
	}
	if s.Phase.Ended() {
		return nil, &NotPendingError{ID: string(id), Why: "the run is " + string(s.Phase)}
	}
	if a.Lapsed(now) {
		return nil, &NotPendingError{ID: string(id), Why: "it expired at " + wall(a.Expires).UTC().Format(stamp) + " UTC", Next: "nothing was run; the model is told and may propose it again"}
	}
	return a, nil
}

func who(actor string) string {
	if actor == "" {
		return "nobody yet"
	}
	return strings.TrimPrefix(actor, machine.ActorOperator)
}

// Answer settles a question. What may be answered depends on its sort.
func (e *Engine) Answer(ctx context.Context, id machine.QuestionID, text string) error {
	return e.act(ctx, id.Run(), func(s *machine.State) ([]machine.Body, error) {
		q := s.Question(id)
		if q == nil {
			return nil, &NotPendingError{ID: string(id), Why: "nobody asked it", Next: "`pawl inbox` lists what is asked"}
		}
		if q.Answered {
			return nil, &NotPendingError{ID: string(id), Why: fmt.Sprintf("%s answered %q at %s", who(q.By), preview(q.Answer, 80), wall(q.At).Format(stamp))}
		}
		if s.Phase.Ended() {
			return nil, &NotPendingError{ID: string(id), Why: "the run is " + string(s.Phase)}
		}
		b := machine.QuestionAnswered{Question: id, Answer: text}
		if err := readAnswer(s, q, &b); err != nil {
			return nil, err
		}
		return []machine.Body{b}, nil
	})
}

func readAnswer(s *machine.State, q *machine.Question, b *machine.QuestionAnswered) error {
	text := strings.TrimSpace(b.Answer)
	if text == "" {
		return errors.New("the answer is empty: say something, or leave the question open")
	}
	if q.Sort == machine.SortQuestion {
		b.Answer = text
		if len(q.Choices) == 0 {
			return nil
		}
		for _, c := range q.Choices {
			if strings.EqualFold(c, text) {
				b.Answer = c
				return nil
			}
		}
		return fmt.Errorf("%q is none of the choices (%s): give one of them; to say something else, use `pawl tell %s` as well", text, strings.Join(q.Choices, ", "), q.ID.Run())
	}
	word, number, _ := strings.Cut(text, " ")
	ok := false
	for _, c := range q.Choices {
		first, _, _ := strings.Cut(c, " ")
		ok = ok || first == word
	}
	if !ok {
		return fmt.Errorf("%q is no answer to this %s: give one of %s", text, q.Sort, strings.Join(q.Choices, ", "))
	}
	b.Answer = word
	if word == machine.AnswerRetire {
		var err error
		b.Answer, err = readRetire(s, text)
		return err
	}
	if word != machine.AnswerExtend {
		return nil
	}
	n, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if err != nil || n <= 0 || n > 1e6 {
		return fmt.Errorf("say by how much to extend, as in `extend 5` (%s)", unitOf(q))
	}
	b.Number = int64(n)
	switch data := string(q.Data); {
	case data == "budget":
		b.Number = int64(n * 1e6)
	case data == "wall":
		b.Number = int64(n * 60e6)
	case b.Number < 1:
		return fmt.Errorf("extend by at least 1 (%s)", unitOf(q))
	}
	return nil
}

func unitOf(q *machine.Question) string {
	switch string(q.Data) {
	case "budget":
		return "US dollars"
	case "tokens":
		return "tokens"
	case "wall":
		return "minutes from now"
	case "turns":
		return "turns"
	case "tries":
		return "tries"
	default:
		return "turns like these"
	}
}

// SettleWords go with a verdict: a reason, and the effect's short id typed out.
type SettleWords struct{ Reason, Confirm string }

// Settle records an operator's choice about an effect.
func (e *Engine) Settle(ctx context.Context, id machine.EffectID, c machine.Choice, w SettleWords) error {
	if err := e.disown(ctx, id.Run()); err != nil {
		return err
	}
	return e.act(ctx, id.Run(), func(s *machine.State) ([]machine.Body, error) {
		f := s.Effect(id)
		if f == nil {
			return nil, &NotPendingError{ID: string(id), Why: "there is no such effect", Next: "`pawl show " + string(id.Run()) + "` lists them"}
		}
		return settleBodies(s, f, c, w, e.o.Mono())
	})
}

func settleBodies(s *machine.State, f *machine.Effect, c machine.Choice, w SettleWords, now machine.Instant) ([]machine.Body, error) {
	if f.State == machine.StateDispatched {
		return nil, &NotPendingError{ID: string(f.ID), Why: "it is under way right now", Next: "wait for its end, or cancel the run"}
	}
	view := choice(s, f, c, now)
	if view == nil || !view.Open {
		why := "it is " + f.State.String()
		if f.By != "" && f.State != machine.StateAmbiguous {
			why += fmt.Sprintf(", decided by %s at %s", who(f.By), wall(f.Decided).Format(stamp))
		}
		if view != nil && view.Why != "" {
			why += "; " + string(c) + " is not possible: " + view.Why
		}
		return nil, &NotPendingError{ID: string(f.ID), Why: why}
	}
	if view.Forced {
		if strings.TrimSpace(w.Reason) == "" {
			return nil, fmt.Errorf("%s is your word against the missing record: give a reason with --reason, it is kept beside your name", c)
		}
		if w.Confirm != f.ID.Short() {
			return nil, fmt.Errorf("%s cannot be proven here: type the effect's short id with --confirm %s", c, f.ID.Short())
		}
	}
	switch c {
	case machine.ChooseWait, machine.ChooseProbe:
		return []machine.Body{machine.ProbeAsked{Effect: f.ID, Choice: c}}, nil
	case machine.ChooseHappened, machine.ChooseRetry:
		return []machine.Body{machine.EffectForced{Effect: f.ID, Choice: c, Reason: w.Reason, Typed: w.Confirm}}, nil
	case machine.ChooseCompensate:
		return []machine.Body{machine.CompensationAsked{Effect: f.ID, Reason: w.Reason, At: now}}, nil
	case machine.ChooseAbandon:
		return []machine.Body{machine.EffectAbandoned{Effect: f.ID, Reason: w.Reason}}, nil
	}
	return nil, fmt.Errorf("%q is no choice: wait, probe, happened, retry, compensate, abandon", c)
}

// Rollback undoes a run backwards, effect by effect. What cannot be undone, or
// is not proven, is asked about. The run must not be at work.
func (e *Engine) Rollback(ctx context.Context, id machine.RunID, reason string) error {
	if err := e.disown(ctx, id); err != nil {
		return err
	}
	return e.act(ctx, id, func(s *machine.State) ([]machine.Body, error) {
		switch {
		case s.Phase == machine.PhaseRunning:
			return nil, fmt.Errorf("run %s is still at work: pause or cancel it first", id)
		case s.Rollback != nil:
			return nil, fmt.Errorf("run %s is being undone already, by %s", id, who(s.Rollback.By))
		}
		return []machine.Body{machine.RollbackAsked{Reason: reason}}, nil
	})
}

// disown claims a run whose owner is gone, says in the same transaction that
// the end of what was in flight is unknown, and gives the lease back. The
// decision that follows rests on that record.
func (e *Engine) disown(ctx context.Context, id machine.RunID) error {
	s, err := e.state(ctx, id)
	if err != nil {
		return err
	}
	inFlight := false
	for _, f := range s.Open() {
		inFlight = inFlight || f.State == machine.StateDispatched
	}
	if !inFlight || e.o.Holder == "" {
		return nil
	}
	e.mu.Lock()
	r := e.runs[id]
	e.mu.Unlock()
	if r != nil {
		select {
		case <-r.done:
		default:
			return nil // it is ours and alive
		}
	}
	c := &run{e: e, id: id}
	var held *ledger.HeldError
	if err := c.claim(ctx); errors.As(err, &held) {
		return nil // a living owner: the decision is judged on what it wrote
	} else if err != nil {
		return err
	}
	e.remember(c.state)
	c.release()
	return nil
}

// Pause holds every dispatch that the run's model proposes, from its commit on,
// and of the runs below it.
func (e *Engine) Pause(ctx context.Context, id machine.RunID, reason string) error {
	return e.phaseOfTree(ctx, id, machine.RunPaused{Reason: reason}, machine.PhaseRunning)
}

// Unpause lets a paused run go on, and those below it.
func (e *Engine) Unpause(ctx context.Context, id machine.RunID) error {
	return e.phaseOfTree(ctx, id, machine.RunUnpaused{}, machine.PhasePaused)
}

// Cancel stops a run and all runs below it for good. What is in flight is shown as in flight until
// its end is known.
func (e *Engine) Cancel(ctx context.Context, id machine.RunID, reason string) error {
	return e.phaseOfTree(ctx, id, machine.RunCancelled{Reason: reason}, machine.PhaseRunning, machine.PhasePaused)
}

// Tell gives a run a binding instruction, verbatim in everything its model is
// shown from now on. A finished run is taken up again.
func (e *Engine) Tell(ctx context.Context, id machine.RunID, text string) error {
	text = strings.TrimSpace(text)
	if text == "" {
		return errors.New("the instruction is empty")
	}
	if len(text) > 4<<10 {
		return fmt.Errorf("the instruction is %d bytes long, at most %d fit: it stays in every later context; put details into a file", len(text), 4<<10)
	}
	return e.act(ctx, id, func(s *machine.State) ([]machine.Body, error) {
		if s.Phase == machine.PhaseCancelled {
			return nil, fmt.Errorf("run %s is cancelled and takes no instructions: start a new one with `pawl run`", id)
		}
		return []machine.Body{machine.Told{Text: text}}, nil
	})
}
