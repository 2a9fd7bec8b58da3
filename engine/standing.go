package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"pawl/engine/machine"
	"pawl/ledger"
)

// desk is the folded chain of what the operator laid down across runs, as far
// as it was read.
type desk struct {
	mu sync.Mutex
	s  machine.Standing
}

// Standing returns what the operator laid down across runs, as it is now.
func (e *Engine) Standing(ctx context.Context) (machine.Standing, error) {
	e.desk.mu.Lock()
	s := e.desk.s
	e.desk.mu.Unlock()
	const page = 512
	for {
		evs, err := e.store.Events(ctx, string(machine.DeskRun), s.Tail, page)
		if err != nil {
			return s, fmt.Errorf("read standing grants: %w", err)
		}
		for _, raw := range evs {
			ev, err := decode(raw)
			if err != nil {
				return s, err
			}
			if s, err = machine.FoldStanding(s, ev); err != nil {
				return s, fmt.Errorf("standing grants, event %d: %w", raw.N, err)
			}
		}
		if len(evs) < page {
			break
		}
	}
	e.desk.mu.Lock()
	if s.Tail > e.desk.s.Tail {
		e.desk.s = s
	}
	e.desk.mu.Unlock()
	return s, nil
}

// deskPart makes the ledger's part of events for the desk.
func (e *Engine) deskPart(s machine.Standing, b batch) (ledger.Part, error) {
	actor := b.actor
	if actor == "" {
		actor = e.operator
	}
	now := e.now()
	p := ledger.Part{Run: string(machine.DeskRun), Tail: s.Tail, Blobs: b.blobs, Cmd: e.command()}
	for _, body := range b.bodies {
		payload, err := machine.Encode(body)
		if err != nil {
			return p, err
		}
		if s, err = machine.FoldStanding(s, machine.Event{N: s.Tail + 1, At: now, Actor: actor, Body: body}); err != nil {
			return p, err
		}
		p.Events = append(p.Events, ledger.NewEvent{Kind: body.Kind(), At: now, Actor: actor, Payload: payload})
	}
	return p, nil
}

// lay appends to the desk under compare-and-set; make is asked again when
// another process was faster.
func (e *Engine) lay(ctx context.Context, make func(s *machine.Standing) (batch, error)) error {
	for {
		s, err := e.Standing(ctx)
		if err != nil {
			return err
		}
		b, err := make(&s)
		if err != nil || len(b.bodies) == 0 {
			return err
		}
		p, err := e.deskPart(s, b)
		if err != nil {
			return err
		}
		done, err := e.store.Commit(ctx, ledger.Full, p)
		var moved *ledger.TailError
		if errors.As(err, &moved) {
			continue
		}
		if err == nil {
			for _, c := range done {
				e.own.add(c.FirstSeq, int64(len(p.Events)))
			}
			e.broadcast()
		}
		return err
	}
}

// actBoth is act for a decision that lays something down for later as well: both
// or neither is in the ledger.
func (e *Engine) actBoth(ctx context.Context, id machine.RunID, make func(s *machine.State, st *machine.Standing) (run, desk batch, err error)) error {
	for {
		s, err := e.state(ctx, id)
		if err != nil {
			return err
		}
		st, err := e.Standing(ctx)
		if err != nil {
			return err
		}
		rb, db, err := make(&s, &st)
		if err != nil || len(rb.bodies) == 0 {
			return err
		}
		rb.actor = e.operator
		next, part, err := e.part(s, rb)
		if err != nil {
			return err
		}
		parts := []ledger.Part{part}
		if len(db.bodies) > 0 {
			p, err := e.deskPart(st, db)
			if err != nil {
				return err
			}
			parts = append(parts, p)
		}
		done, err := e.store.Commit(ctx, ledger.Full, parts...)
		var moved *ledger.TailError
		if errors.As(err, &moved) {
			continue
		}
		if err != nil {
			return err
		}
		for i, c := range done {
			e.own.add(c.FirstSeq, int64(len(parts[i].Events)))
		}
		e.remember(next)
		e.nudge(id)
		e.broadcast()
		return nil
	}
}

// RevokeGrant ends a standing grant; what it let go before stays done.
func (e *Engine) RevokeGrant(ctx context.Context, id, reason string) (machine.Grant, error) {
	var was machine.Grant
	err := e.lay(ctx, func(s *machine.Standing) (batch, error) {
		g := s.Grant(id)
		if g == nil {
			return batch{}, &NotPendingError{ID: id, Why: "nobody gave such a grant", Next: "`pawl grants` lists them"}
		}
		if g.Revoked != 0 {
			return batch{}, &NotPendingError{ID: id, Why: fmt.Sprintf("%s revoked it at %s", who(g.Revoker), wall(g.Revoked).Format(stamp))}
		}
		was = *g
		return batch{bodies: []machine.Body{machine.GrantRevoked{Grant: id, Reason: reason}}}, nil
	})
	return was, err
}

// Grants lists the standing grants, revoked ones only if asked for.
func (e *Engine) Grants(ctx context.Context, revoked bool) ([]machine.Grant, error) {
	s, err := e.Standing(ctx)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(s.Grants), func(g machine.Grant) bool { return g.Revoked != 0 && !revoked }), nil
}
