package engine

import (
	"context"
	"errors"
	"fmt"

	"pawl/engine/machine"
	"pawl/engine/workspace"
	"pawl/ledger"
)

// forks is what a Space can do beyond the work tree of one run. A space that
// cannot has no delegation.
type forks interface {
	Fork(ctx context.Context, ws workspace.Workspace, child string) (string, error)
	WorkOf(ctx context.Context, ws workspace.Workspace) (workspace.Work, error)
	PreviewAdopt(ctx context.Context, parent, child workspace.Workspace, only []string) (workspace.AdoptPlan, error)
	Adopt(ctx context.Context, parent workspace.Workspace, p workspace.AdoptPlan) error
	Keep(ctx context.Context, ws workspace.Workspace) (string, error)
	Clash(ctx context.Context, parent, first, then workspace.Workspace) ([]string, error)
}

var _ forks = (*workspace.Manager)(nil)

// leg is what one commit does to one of several runs.
type leg struct {
	s machine.State
	b batch
}

// commitLegs appends to several runs in one transaction, or to none. It returns
// their new states, in order.
func (e *Engine) commitLegs(ctx context.Context, d ledger.Durability, legs ...leg) ([]machine.State, error) {
	parts := make([]ledger.Part, 0, len(legs))
	next := make([]machine.State, 0, len(legs))
	for _, l := range legs {
		n, p, err := e.part(l.s, l.b)
		if err != nil {
			return nil, err
		}
		parts, next = append(parts, p), append(next, n)
	}
	done, err := e.store.Commit(ctx, d, parts...)
	if err != nil {
		return nil, err
	}
	for i, c := range done {
		e.own.add(c.FirstSeq, int64(len(parts[i].Events)))
	}
	return next, nil
}

// commitKin commits a batch together with what it means to the run's relatives:
// the end of a delegated run is noted by the run above in the same transaction,
// and the end of a run pauses whatever still works below it. If only a relative
// has moved, it is looked at again; if the run itself has, that is the caller's.
func (e *Engine) commitKin(ctx context.Context, d ledger.Durability, s, next machine.State, b batch) (machine.State, error) {
	for {
		more, err := e.kin(ctx, &s, &next)
		if err != nil {
			return s, err
		}
		legs := append([]leg{{s, b}}, more...)
		states, err := e.commitLegs(ctx, d, legs...)
		var moved *ledger.TailError
		if errors.As(err, &moved) && moved.Run != string(s.Charter.ID) {
			continue
		}
		if err != nil {
			return s, err
		}
		e.tellKin(states[1:])
		return states[0], nil
	}
}

// tellKin wakes the runs that were written to beside the caller's own.
func (e *Engine) tellKin(states []machine.State) {
	for i := range states {
		e.remember(states[i])
		e.nudge(states[i].Charter.ID)
	}
}

// hasKin reports whether a step of a run concerns others of its tree.
func hasKin(s, next *machine.State) bool {
	ended, resumed := !s.Phase.Ended() && next.Phase.Ended(), s.Phase.Ended() && !next.Phase.Ended()
	if s.Tail == 0 {
		return false
	}
	return (ended || resumed || s.Budget != next.Budget) && next.Charter.Parent != "" || ended && hasWorking(next)
}

func hasWorking(s *machine.State) bool {
	for _, c := range s.Children.All() {
		if c.Report == nil {
			return true
		}
	}
	return false
}

// kin makes what a step of a run means to its relatives.
func (e *Engine) kin(ctx context.Context, s, next *machine.State) ([]leg, error) {
	var legs []leg
	if next.Charter.Parent != "" {
		up, err := e.upward(ctx, s, next)
		if err != nil {
			return nil, err
		}
		legs = append(legs, up...)
	}
	if s.Phase.Ended() || !next.Phase.Ended() {
		return legs, nil
	}
	below, err := e.below(ctx, next)
	if err != nil {
		return nil, err
	}
	why := fmt.Sprintf("run %s, which delegated it, ended", next.Charter.ID)
	for i := range below {
		if below[i].Phase == machine.PhaseRunning {
			legs = append(legs, leg{below[i], batch{bodies: []machine.Body{machine.RunPaused{Reason: why}}, actor: machine.ActorEngine}})
		}
	}
	return legs, nil
}

// upward makes what a step of a delegated run means to the runs above it.
func (e *Engine) upward(ctx context.Context, s, next *machine.State) ([]leg, error) {
	parent, err := e.state(ctx, next.Charter.Parent)
	if err != nil {
		return nil, err
	}
	c := parent.Child(next.Charter.ID)
	if c == nil {
		return nil, fmt.Errorf("run %s does not know run %s, which names it as its parent: `pawl verify` tells more", parent.Charter.ID, next.Charter.ID)
	}
	b := batch{actor: machine.ActorChild + string(next.Charter.ID)}
	switch {
	case !s.Phase.Ended() && next.Phase.Ended():
		r, blobs := e.report(ctx, next)
		b.bodies, b.blobs = []machine.Body{machine.ChildReported{Child: next.Charter.ID, Report: r}}, blobs
	case s.Phase.Ended() && !next.Phase.Ended():
		if c.Adopted || c.Verdict == machine.ReviewAccept && c.Trouble == "" {
			return nil, fmt.Errorf("the work of run %s was accepted by run %s and is not taken up again: tell %s what is to be done", c.ID, parent.Charter.ID, parent.Charter.ID)
		}
		b.bodies = []machine.Body{machine.ChildResumed{Child: next.Charter.ID, Reserve: next.Budget}}
	case next.Budget != s.Budget:
		b.bodies = []machine.Body{machine.ChildFunded{Child: next.Charter.ID, By: next.Budget - s.Budget}}
	default:
		return nil, nil
	}
	legs := []leg{{parent, b}}
	if after, err := b.ahead(parent, e.now()); err == nil && after.Budget != parent.Budget && parent.Charter.Parent != "" {
		above, err := e.upward(ctx, &parent, &after)
		if err != nil {
			return nil, err
		}
		legs = append(legs, above...)
	}
	legs[0].b.seen = nil
	return legs, nil
}

// below lists the states of all runs below a run, parents before children.
func (e *Engine) below(ctx context.Context, s *machine.State) ([]machine.State, error) {
	var out []machine.State
	for _, c := range s.Children.All() {
		k, err := e.state(ctx, c.ID)
		if err != nil {
			return nil, err
		}
		out = append(out, k)
		deeper, err := e.below(ctx, &k)
		if err != nil {
			return nil, err
		}
		out = append(out, deeper...)
	}
	return out, nil
}

// phaseOfTree moves a run and all runs below it to another phase in one
// transaction. A spawn that is under way is either in the set, or finds that
// its run has moved and does not happen.
func (e *Engine) phaseOfTree(ctx context.Context, id machine.RunID, b machine.Body, from ...machine.Phase) error {
	for {
		top, err := e.state(ctx, id)
		if err != nil {
			return err
		}
		if !in(top.Phase, from) {
			return fmt.Errorf("run %s is %s already", id, top.Phase)
		}
		below, err := e.below(ctx, &top)
		if err != nil {
			return err
		}
		legs, err := e.treeLegs(ctx, append([]machine.State{top}, below...), b, from)
		if err != nil {
			return err
		}
		states, err := e.commitLegs(ctx, ledger.Full, legs...)
		var moved *ledger.TailError
		if errors.As(err, &moved) {
			continue
		}
		if err != nil {
			return err
		}
		e.tellKin(states)
		e.broadcast()
		return nil
	}
}

func in(p machine.Phase, set []machine.Phase) bool {
	for _, x := range set {
		if p == x {
			return true
		}
	}
	return false
}

// treeLegs makes one leg for each run of a tree that moves. Runs are worked
// through from the bottom, since a run notes the end of those below it before
// its own.
func (e *Engine) treeLegs(ctx context.Context, runs []machine.State, b machine.Body, from []machine.Phase) ([]leg, error) {
	reports := map[machine.RunID][]machine.Body{}
	blobs := map[machine.RunID][]ledger.Blob{}
	var legs []leg
	for i := len(runs) - 1; i >= 0; i-- {
		s := runs[i]
		id := s.Charter.ID
		bodies := reports[id]
		if in(s.Phase, from) {
			bodies = append(bodies, b)
		}
		if len(bodies) == 0 {
			continue
		}
		l := leg{s, batch{bodies: bodies, actor: e.operator, blobs: blobs[id]}}
		legs = append(legs, l)
		next, err := l.b.ahead(s, e.now())
		if err != nil {
			return nil, err
		}
		if s.Charter.Parent == "" || s.Phase.Ended() || !next.Phase.Ended() {
			continue
		}
		r, more := e.report(ctx, &next)
		up := s.Charter.Parent
		note := machine.ChildReported{Child: id, Report: r}
		if i > 0 {
			reports[up], blobs[up] = append(reports[up], note), append(blobs[up], more...)
			continue
		}
		parent, err := e.state(ctx, up) // the run above the tree goes on
		if err != nil {
			return nil, err
		}
		legs = append(legs, leg{parent, batch{bodies: []machine.Body{note}, blobs: more, actor: machine.ActorChild + string(id)}})
	}
	return legs, nil
}
