package engine

import (
	"context"
	"fmt"
	"time"

	"pawl/engine/machine"
	"pawl/ledger"
)

// do carries out one action of the machine.
func (r *run) do(ctx context.Context, a machine.Action) error {
	if needsSpace(a.Kind) {
		if err := r.standing(ctx); err != nil {
			return err
		}
	}
	switch a.Kind {
	case machine.ActWait:
		return r.await(ctx, a)
	case machine.ActPrepare:
		return r.prepare(ctx)
	case machine.ActRequest:
		if a.Later != nil && r.e.now() >= a.Later.RetryAt {
			return r.later(ctx, *a.Later)
		}
		return r.request(ctx, a)
	case machine.ActPage:
		p, err := r.provider(ctx)
		if err != nil {
			return r.failTurn(ctx, a.Turn, 0, err, 0)
		}
		_, err = r.page(ctx, a, p)
		return err
	case machine.ActDispatch:
		return r.dispatch(ctx, a)
	case machine.ActReplay:
		return r.replay(ctx, a)
	case machine.ActProve:
		return r.prove(ctx, a)
	case machine.ActGate:
		return r.gate(ctx, a)
	case machine.ActProbe:
		return r.probe(ctx, a)
	case machine.ActSettle:
		return r.decide(ctx, ledger.Full, batch{bodies: []machine.Body{machine.EffectSettled{Effect: a.Effect, State: a.State, Text: a.Why}}})
	case machine.ActCompensate:
		return r.compensate(ctx, a)
	case machine.ActCompensated:
		f := r.state.Effect(a.Effect)
		return r.decide(ctx, ledger.Full, batch{bodies: []machine.Body{machine.CompensationEnded{Effect: a.Effect, By: f.Compensation, OK: a.OK, Text: a.Why}}})
	case machine.ActUndo:
		ask := machine.CompensationAsked{Effect: a.Effect, Reason: "the run is undone: " + r.state.Rollback.Reason, At: r.e.o.Mono()}
		return r.decide(ctx, ledger.Full, batch{bodies: []machine.Body{ask}})
	case machine.ActUndone:
		back := r.state.Rollback
		return r.decide(ctx, ledger.Full, batch{bodies: []machine.Body{machine.RollbackEnded{Undone: back.Undone, Left: len(back.Skipped)}}})
	case machine.ActAsk:
		q := machine.QuestionAsked{Question: r.state.NextQuestion(), Sort: a.Sort, Effect: a.Effect, Text: a.Why, Data: []byte(a.Limit), Choices: answersTo(&r.state, a)}
		return r.decide(ctx, ledger.Lazy, batch{bodies: []machine.Body{q}})
	case machine.ActLand:
		return r.intendLanding(ctx)
	case machine.ActFinish:
		f := r.state.Effect(a.Effect)
		return r.finish(ctx, f, a.OK)
	case machine.ActFail:
		return r.decide(ctx, ledger.Full, batch{bodies: []machine.Body{machine.RunFailed{Reason: a.Why}}})
	case machine.ActCancel:
		return r.decide(ctx, ledger.Full, batch{bodies: []machine.Body{machine.EffectCancelled{Effect: a.Effect, Reason: a.Why}}})
	case machine.ActAdopt:
		return r.intendAdoption(ctx, a.Child)
	case machine.ActExpire:
		return r.later(ctx, a)
	case machine.ActRest:
		return nil
	}
	return fmt.Errorf("engine: unknown action %q", a.Kind)
}

// answersTo lists what the operator may say to a question of the machine.
func answersTo(s *machine.State, a machine.Action) []string {
	if a.Limit != "rollback" {
		return []string{"extend N", machine.AnswerStop}
	}
	if f := s.Effect(a.Effect); f != nil {
		if ok, _ := mayCompensate(f); ok {
			return []string{machine.AnswerUndo, machine.AnswerSkip, machine.AnswerStop}
		}
	}
	return []string{machine.AnswerSkip, machine.AnswerStop}
}

// until waits for an instant of this boot. It reports whether the time has
// come; news may end the wait early, and Next is asked again.
func (r *run) until(ctx context.Context, at machine.Instant) (bool, error) {
	us, ok := at.Since(r.e.o.Mono())
	if !ok || us <= 0 {
		return true, nil
	}
	tail := r.state.Tail
	if err := r.sleep(ctx, time.Duration(us)*time.Microsecond); err != nil {
		return false, err
	}
	us, _ = at.Since(r.e.o.Mono())
	return us <= 0 && r.state.Tail == tail, nil
}

// job is work outside the ledger: a model call, a command, a probe. While it
// runs in a goroutine of its own, the run's goroutine keeps serving: it folds
// news, commits what the job reports, and stops it when the run is cancelled.
type job struct {
	turns  Turns
	ask    chan func() error // run in the run's goroutine; holds one
	answer chan error        // holds one
}

// commit runs f in the run's goroutine and returns its error; ctx is the job's.
func (j *job) commit(ctx context.Context, f func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	j.ask <- f // never blocks: a job asks one thing at a time, and is answered before it ends
	if j.turns != nil {
		j.turns.Park(func() bool { return len(j.answer) > 0 })
	}
	return <-j.answer
}

// during runs work beside the run's goroutine. stop decides, after news, whether
// the work's context is cancelled. The state may have moved when it returns.
func (r *run) during(ctx context.Context, stop func(s *machine.State) bool, work func(ctx context.Context, j *job)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	turns := r.e.o.Turns
	j := &job{turns: turns, ask: make(chan func() error, 1), answer: make(chan error, 1)}
	done := make(chan struct{})
	r.e.start(func() {
		defer close(done)
		work(ctx, j)
	})
	var lost error
	asked := r.asked
	for {
		if turns != nil {
			turns.Park(func() bool { return closed(done) || len(j.ask) > 0 || len(r.asked) > 0 })
			if closed(done) {
				return lost // a replay must not depend on which of two ready channels is taken
			}
			if asked = r.asked; len(j.ask) > 0 {
				asked = nil
			}
		}
		select {
		case <-done:
			return lost
		case f := <-j.ask:
			err := lost
			if err == nil {
				err = f()
			}
			j.answer <- err
		case <-asked:
			if lost != nil {
				continue
			}
			if err := r.catchUp(ctx); err != nil {
				lost = err // fenced, or the ledger is unreadable: the work ends, its result may still be evidence
				cancel()
				continue
			}
			if stop(&r.state) {
				cancel()
			}
		}
	}
}

func ended(s *machine.State) bool { return s.Phase.Ended() }

func (r *run) finish(ctx context.Context, f *machine.Effect, checked bool) error {
	text, err := r.summary(ctx, f)
	if err != nil {
		return err
	}
	return r.decide(ctx, ledger.Full, batch{bodies: []machine.Body{machine.RunFinished{Summary: text, Checked: checked}}})
}
