package engine

import (
	"context"
	"errors"
	"fmt"

	"pawl/engine/machine"
	"pawl/ledger"
)

// errMoved says that the run has events this process had not seen. Whoever
// gets it has the newer state by now and derives its decision again.
var errMoved = errors.New("the run has moved on")

// batch is what one commit appends to one run.
type batch struct {
	bodies []machine.Body
	blobs  []ledger.Blob
	actor  string // default: engine
	claim  bool
	epoch  int64
	free   bool // release the lease afterwards
	seen   *folded
}

// folded is the state after the first n bodies of a batch, folded already.
type folded struct {
	n     int
	now   int64
	state machine.State
}

// ahead folds a batch over a state without committing it, to see what Next
// would be. The batch remembers it: its commit goes on from there.
func (b *batch) ahead(s machine.State, now int64) (machine.State, error) {
	for _, body := range b.bodies {
		var err error
		if s, err = machine.Fold(s, machine.Event{N: s.Tail + 1, At: now, Actor: b.author(), Epoch: b.epoch, Body: body}); err != nil {
			return s, err
		}
	}
	b.seen = &folded{n: len(b.bodies), now: now, state: s}
	return s, nil
}

func (b *batch) author() string {
	if b.actor == "" {
		return machine.ActorEngine
	}
	return b.actor
}

// part folds a batch over a state and makes the ledger's part of it: events,
// and the rows that the new state projects to.
func (e *Engine) part(s machine.State, b batch) (machine.State, ledger.Part, error) {
	actor, now, done := b.author(), e.now(), 0
	next := s
	if k := b.seen; k != nil && k.n <= len(b.bodies) && k.state.Tail == s.Tail+int64(k.n) {
		next, now, done = k.state, k.now, k.n
	}
	p := ledger.Part{Run: string(runOf(s, b)), Epoch: b.epoch, Tail: s.Tail, Claim: b.claim, Release: b.free, Blobs: b.blobs, Cmd: e.command()}
	if b.epoch > 0 {
		p.Holder = e.o.Holder
	}
	p.Events = make([]ledger.NewEvent, 0, len(b.bodies))
	for i, body := range b.bodies {
		payload, err := machine.Encode(body)
		if err != nil {
			return s, p, err
		}
		if i >= done {
			ev := machine.Event{N: next.Tail + 1, At: now, Actor: actor, Epoch: b.epoch, Body: body}
			if next, err = machine.Fold(next, ev); err != nil {
				return s, p, err
			}
		}
		p.Events = append(p.Events, ledger.NewEvent{Kind: body.Kind(), At: now, Actor: actor, Payload: payload})
	}
	p.Rows = project(&s, &next)
	return next, p, nil
}

func runOf(s machine.State, b batch) machine.RunID {
	if s.Charter.ID != "" {
		return s.Charter.ID
	}
	for _, body := range b.bodies {
		if c, ok := body.(machine.RunCreated); ok {
			return c.Charter.ID
		}
	}
	return ""
}

func (e *Engine) command() ledger.CommandID {
	var id ledger.CommandID
	if _, err := e.o.Rand.Read(id[:]); err != nil {
		panic(fmt.Sprintf("no randomness: %v", err)) // the operating system's source does not fail
	}
	return id
}

// commit appends a batch to a state and returns the new one. A tail that has
// moved is reported as *ledger.TailError with s untouched.
func (e *Engine) commit(ctx context.Context, d ledger.Durability, s machine.State, b batch) (machine.State, error) {
	next, p, err := e.part(s, b)
	if err != nil {
		return s, err
	}
	if hasKin(&s, &next) {
		return e.commitKin(ctx, d, s, next, b)
	}
	done, err := e.store.Commit(ctx, d, p)
	if err != nil {
		return s, err
	}
	for _, c := range done {
		e.own.add(c.FirstSeq, int64(len(p.Events)))
	}
	return next, nil
}

// catchUp folds what others appended to a run since s.
func (e *Engine) catchUp(ctx context.Context, s machine.State, id machine.RunID) (machine.State, error) {
	const page = 512
	for {
		evs, err := e.store.Events(ctx, string(id), s.Tail, page)
		if err != nil {
			return s, fmt.Errorf("read run %s: %w", id, err)
		}
		for _, raw := range evs {
			ev, err := decode(raw)
			if err != nil {
				return s, err
			}
			if s, err = machine.Fold(s, ev); err != nil {
				return s, fmt.Errorf("run %s, event %d: %w", id, raw.N, err)
			}
		}
		if len(evs) < page {
			return s, nil
		}
	}
}

func decode(raw ledger.Event) (machine.Event, error) {
	body, err := machine.Decode(raw.Kind, raw.Payload)
	if err != nil {
		return machine.Event{}, fmt.Errorf("run %s, event %d: %w", raw.Run, raw.N, err)
	}
	return machine.Event{N: raw.N, At: raw.At, Actor: raw.Actor, Epoch: raw.Epoch, Body: body}, nil
}

// state returns the run as it is in the ledger now. The returned value is a
// snapshot that nobody writes to.
func (e *Engine) state(ctx context.Context, id machine.RunID) (machine.State, error) {
	e.mu.Lock()
	var s machine.State
	if c := e.cache[id]; c != nil {
		s = *c
	}
	e.mu.Unlock()
	s, err := e.catchUp(ctx, s, id)
	if err != nil {
		return s, err
	}
	if s.Tail == 0 {
		return s, &ledger.NotFoundError{What: "run", ID: string(id)}
	}
	e.remember(s)
	return s, nil
}

// cached bounds how many folded runs are kept for reading.
const cached = 64

func (e *Engine) remember(s machine.State) {
	e.mu.Lock()
	defer e.mu.Unlock()
	id := s.Charter.ID
	if old := e.cache[id]; old != nil {
		if old.Tail < s.Tail {
			e.cache[id] = &s
		}
		return
	}
	if len(e.order) >= cached {
		delete(e.cache, e.order[0])
		e.order = e.order[1:]
	}
	e.cache[id] = &s
	e.order = append(e.order, id)
}
