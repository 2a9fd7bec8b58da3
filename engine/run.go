package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"pawl/engine/machine"
	"pawl/engine/window"
	"pawl/engine/workspace"
	"pawl/ledger"
)

// request is what others may ask of a run's goroutine.
type request uint8

const (
	wake     request = iota // events may have come
	stopSafe                // stop at the next safe point
)

// run is one run that this process drives. Its goroutine owns every field but
// the channels and the atomics.
type run struct {
	e       *Engine
	id      machine.RunID
	epoch   int64
	claimed atomic.Int64 // epoch, for other goroutines
	state   machine.State
	space   *workspace.Workspace
	model   *bound
	packs   window.Builder // keeps what was rendered
	ready   *ready         // a dispatch that is committed and must be carried out at once

	asked   chan request // capacity 1 each way: a wake is never lost, never queued twice
	halt    chan struct{}
	halting atomic.Bool
	done    chan struct{}
	rest    atomic.Pointer[Rest] // last rest, nil while it moves
	rested  chan struct{}        // signalled at each rest

	root   machine.RunID           // of its tree; does not change once it is claimed
	judged map[machine.RunID]int64 // what of the runs below was looked at under a rule, and since when it stood so
}

// Rest says why a run does not move.
type Rest struct {
	Tail    int64
	Ended   bool
	Waits   []machine.Wait
	Phase   machine.Phase
	Checked bool
	Err     error // the run's goroutine ended with this
}

func (r *run) ask(q request) {
	if q == stopSafe && r.halting.CompareAndSwap(false, true) {
		close(r.halt)
	}
	select {
	case r.asked <- q:
	default:
	}
}

// Drive claims runs and drives them until they rest. A run that a living owner
// holds is an error that names the owner.
func (e *Engine) Drive(ctx context.Context, ids ...machine.RunID) error {
	var errs []error
	for _, id := range ids {
		if err := e.drive(ctx, id); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func (e *Engine) drive(ctx context.Context, id machine.RunID) error {
	if e.space == nil || e.o.Holder == "" {
		return errors.New("this process only looks at runs: it was opened without a state directory")
	}
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return errors.New("pawl is closing")
	}
	if old := e.runs[id]; old != nil {
		select {
		case <-old.done:
		default:
			e.mu.Unlock()
			old.ask(wake)
			return nil
		}
	}
	r := &run{e: e, id: id, asked: make(chan request, 1), halt: make(chan struct{}), done: make(chan struct{}), rested: make(chan struct{}, 1)}
	e.runs[id] = r
	e.mu.Unlock()
	if err := r.claim(ctx); err != nil {
		e.mu.Lock()
		delete(e.runs, id)
		e.mu.Unlock()
		close(r.done)
		return err
	}
	e.group.Add(1)
	e.start(func() { r.loop(e.ctx) })
	return nil
}

// claim takes the next epoch and, in the same transaction, says of everything
// that was in flight that its end was not observed.
func (r *run) claim(ctx context.Context) error {
	for try := 0; ; try++ {
		s, err := r.e.state(ctx, r.id)
		if err != nil {
			return err
		}
		leases, err := r.e.store.Leases(ctx, string(r.id))
		if err != nil {
			return fmt.Errorf("read the lease of %s: %w", r.id, err)
		}
		epoch := s.Epoch + 1
		if len(leases) > 0 {
			epoch = leases[0].Epoch + 1
		}
		next, err := r.e.commit(ctx, ledger.Lazy, s, batch{bodies: claimBodies(&s, r.e.o.Owner, r.e.self, r.e.o.Mono().Boot), claim: true, epoch: epoch})
		var moved *ledger.TailError
		var fenced *ledger.FencedError
		if (errors.As(err, &moved) || errors.As(err, &fenced)) && try < 100 {
			continue
		}
		if err != nil {
			return err
		}
		r.state, r.epoch = next, epoch
		r.root = cmp.Or(s.Charter.Root, r.id)
		r.claimed.Store(epoch)
		return nil
	}
}

// claimBodies are the events of a claim: whose it is now, and that nothing is
// known of the end of what was under way.
func claimBodies(s *machine.State, owner string, self machine.Identity, boot string) []machine.Body {
	bodies := []machine.Body{machine.RunClaimed{Owner: owner, Boot: boot, Self: self}}
	for _, f := range s.Open() {
		if f.State == machine.StateDispatched {
			bodies = append(bodies, machine.EffectAmbiguous{
				Effect: f.ID, Attempt: len(f.Attempts), Cause: "the process that ran it ended, or lost the run, before a result was recorded",
			})
		}
	}
	if t := s.LastTurn(); t != nil && t.State == machine.TurnAsked {
		bodies = append(bodies, machine.TurnFailed{
			Turn: t.N, Class: machine.FailLost, AtMost: t.Reserve, Message: "no answer was recorded before the process ended",
		})
	}
	return bodies
}

// loop is the life of a driven run: ask the machine, do, commit.
func (r *run) loop(ctx context.Context) {
	defer r.e.group.Done()
	defer close(r.done)
	err := r.spin(ctx)
	var fenced *ledger.FencedError
	if !errors.As(err, &fenced) {
		r.release()
	}
	rest := &Rest{Tail: r.state.Tail, Phase: r.state.Phase, Checked: r.state.Checked, Ended: r.state.Phase.Ended(), Waits: machine.Waits(&r.state), Err: err}
	r.rest.Store(rest)
	signal(r.rested)
	r.stir()
	r.e.broadcast()
}

func (r *run) spin(ctx context.Context) error {
	if err := r.openSpace(); err != nil {
		return err
	}
	for {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("stopped in flight: %w", err)
		}
		if r.halting.Load() && r.ready == nil {
			return nil
		}
		var err error
		if r.ready != nil {
			job := r.ready
			r.ready = nil
			err = r.perform(ctx, job)
		} else {
			a := machine.Next(&r.state)
			if a.Kind == machine.ActRest {
				return nil
			}
			if a.Kind == machine.ActAdopt {
				err = r.intendAdoption(ctx, a.Child)
			} else {
				err = r.do(ctx, a)
			}
		}
		if err = r.weather(ctx, err); err != nil {
			return err
		}
	}
}

// weather decides what an error means for the run: a moved tail is news, a
// ledger that cannot be written to is waited for, the rest ends the loop.
func (r *run) weather(ctx context.Context, err error) error {
	var moved *ledger.TailError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errMoved), errors.As(err, &moved):
		return r.catchUp(ctx)
	case stalled(err):
		r.e.o.Log("run %s waits: %v", r.id, err)
		r.rest.Store(&Rest{Tail: r.state.Tail, Phase: r.state.Phase, Err: err})
		signal(r.rested)
		return r.sleep(ctx, time.Second)
	}
	return err
}

// stalled reports whether the ledger cannot be written to now, and may be later.
func stalled(err error) bool {
	var full *ledger.FullError
	var busy *ledger.BusyError
	return errors.As(err, &full) || errors.As(err, &busy)
}

func (r *run) catchUp(ctx context.Context) error {
	s, err := r.e.catchUp(ctx, r.state, r.id)
	if err != nil {
		return err
	}
	if s.Epoch != r.epoch {
		return &ledger.FencedError{Run: string(r.id), Epoch: r.epoch, Current: s.Epoch, Owner: s.Owner}
	}
	r.state = s
	return nil
}

// decide commits what Next asked for. If the tail has moved nothing is
// written, the news is folded, and errMoved sends the caller back to Next.
func (r *run) decide(ctx context.Context, d ledger.Durability, b batch) error {
	b.epoch = r.epoch
	next, err := r.e.commit(ctx, d, r.state, b)
	if err != nil {
		var moved *ledger.TailError
		if errors.As(err, &moved) {
			return errMoved
		}
		return err
	}
	r.state = next
	r.e.remember(next)
	r.e.broadcast()
	return nil
}

// observe commits what was seen. It is true whatever else was decided
// meanwhile, so on a moved tail it is made again for the newer state.
func (r *run) observe(ctx context.Context, d ledger.Durability, make func(s *machine.State) (batch, error)) error {
	for {
		s := r.state
		b, err := make(&s)
		if err != nil {
			return err
		}
		err = r.decide(context.WithoutCancel(ctx), d, b)
		if err != nil {
			r.ready = nil // what this commit would have made ready is not in the ledger
		}
		switch {
		case errors.Is(err, errMoved):
			if err := r.catchUp(context.WithoutCancel(ctx)); err != nil {
				return err
			}
		case stalled(err) && ctx.Err() == nil && !r.halting.Load():
			// What was seen is kept in memory until the ledger takes it: without it
			// the effect would stand as under way, with nobody at work on it.
			if err := r.weather(ctx, err); err != nil {
				return err
			}
		default:
			return err
		}
	}
}

// record observes plain bodies.
func (r *run) record(ctx context.Context, d ledger.Durability, bodies ...machine.Body) error {
	return r.observe(ctx, d, func(*machine.State) (batch, error) { return batch{bodies: bodies}, nil })
}

// await blocks until someone asks something of the run, a look that can wait
// is due, or ctx ends. It reports the run's rest to whoever waits for it.
func (r *run) await(ctx context.Context, a machine.Action) error {
	if did, err := r.green(ctx); did || err != nil {
		return err
	}
	waits := a.Waits
	var due <-chan time.Time
	if a.Later != nil {
		d := time.Duration(a.Later.RetryAt-r.e.now()) * time.Microsecond
		if d <= 0 {
			return r.later(ctx, *a.Later)
		}
		c, stop := r.e.o.After(d)
		defer stop()
		due = c
	}
	still := true
	if hasWorking(&r.state) {
		if r.state.Phase == machine.PhaseRunning {
			r.raiseAll(ctx)
		}
		var below []machine.Wait
		still, below = r.kidsAtRest(ctx)
		waits = append(waits[:len(waits):len(waits)], below...)
	}
	if still && (len(waits) > 0 || r.state.Phase == machine.PhasePaused) {
		defer r.stir()
		r.rest.Store(&Rest{Tail: r.state.Tail, Phase: r.state.Phase, Waits: waits, Ended: r.state.Phase.Ended(), Checked: r.state.Checked})
		signal(r.rested)
		r.stir()
	}
	if t := r.e.o.Turns; t != nil {
		t.Park(func() bool { return len(due) > 0 || len(r.asked) > 0 || r.halting.Load() || ctx.Err() != nil })
		if len(due) > 0 {
			return nil // a replay must not depend on which of two ready channels is taken
		}
	}
	select {
	case <-r.asked:
	case <-due:
		return nil
	case <-r.halt:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
	r.rest.Store(nil)
	return r.catchUp(ctx)
}

// sleep waits for a time to pass; news or a stop end it early.
func (r *run) sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	c, stop := r.e.o.After(d)
	defer stop()
	if t := r.e.o.Turns; t != nil {
		t.Park(func() bool { return len(c) > 0 || len(r.asked) > 0 || r.halting.Load() || ctx.Err() != nil })
		if len(c) > 0 {
			return nil // a replay must not depend on which of two ready channels is taken
		}
	}
	select {
	case <-c:
		return nil
	case <-r.asked:
		return r.catchUp(ctx)
	case <-r.halt:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// stir lets the run above look again at whether those below it move.
func (r *run) stir() {
	if up := r.state.Charter.Parent; up != "" {
		r.e.nudge(up)
	}
}

func (r *run) release() {
	s := r.state
	b := batch{epoch: r.epoch, free: true}
	for range 100 {
		_, err := r.e.commit(context.Background(), ledger.Lazy, s, b)
		var moved *ledger.TailError
		if !errors.As(err, &moved) {
			return // released, or held by another: either way it is not ours
		}
		if s, err = r.e.catchUp(context.Background(), s, r.id); err != nil {
			return
		}
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Wait blocks until a driven run rests: it ended, waits for the operator, or
// stopped. A rest from before what is in the ledger now is none: whoever has
// just decided something gets what came of it.
func (e *Engine) Wait(ctx context.Context, id machine.RunID) (Rest, error) {
	e.mu.Lock()
	r := e.runs[id]
	e.mu.Unlock()
	if r == nil {
		return Rest{}, fmt.Errorf("run %s is not driven by this process", id)
	}
	tail, err := e.store.Tail(ctx, string(id))
	if err != nil {
		return Rest{}, err
	}
	for {
		if rest := r.rest.Load(); rest != nil {
			select {
			case <-r.done:
				return *r.rest.Load(), nil
			default:
			}
			if rest.Tail < tail && rest.Err == nil {
				r.ask(wake)
			} else if len(rest.Waits) > 0 || rest.Err != nil || rest.Phase == machine.PhasePaused {
				return *rest, nil
			}
		}
		select {
		case <-r.rested:
		case <-r.done:
			if rest := r.rest.Load(); rest != nil {
				return *rest, nil
			}
			return Rest{}, nil
		case <-ctx.Done():
			return Rest{}, ctx.Err()
		}
	}
}

// Driven lists the runs that this process drives now.
func (e *Engine) Driven() []machine.RunID {
	e.mu.Lock()
	defer e.mu.Unlock()
	var out []machine.RunID
	for id, r := range e.runs {
		select {
		case <-r.done:
		default:
			out = append(out, id)
		}
	}
	return out
}
