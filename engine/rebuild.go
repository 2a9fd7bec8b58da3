package engine

import (
	"context"
	"fmt"

	"pawl/engine/machine"
	"pawl/engine/workspace"
	"pawl/ledger"
)

// needsSpace says whether an action, or what the model will ask for, needs the workspace.
func needsSpace(k machine.ActionKind) bool {
	return k == machine.ActRequest || k == machine.ActDispatch || k == machine.ActReplay || k == machine.ActLand
}

// standing makes a workspace again that is gone: deleted, or left on another
// machine. It returns errMoved if it did, since the state is another then. A
// folder of the operator's own is not made again but asked about.
func (r *run) standing(ctx context.Context) error {
	if r.space == nil {
		return nil
	}
	why := r.e.space.Gone(*r.space)
	if why == "" {
		return nil
	}
	from, after := r.state.Newest()
	var res workspace.Restored
	var err error
	ws, ignored := *r.space, lastIgnored(&r.state)
	lost := r.during(ctx, ended, func(ctx context.Context, _ *job) {
		if res, err = r.e.space.Rebuild(ctx, ws, unpackSnapshot(from)); err == nil && !ignored.IsZero() {
			if _, _, lack := r.e.space.PutBackIgnored(ctx, ws, ignored); lack != nil {
				r.e.o.Log("run %s: the ignored files of its workspace are not back: %v", r.id, lack)
			}
		}
	})
	if lost != nil {
		return lost
	}
	if err != nil {
		return r.spaceTrouble(ctx, fmt.Errorf("%s; making it again: %w", why, err))
	}
	body := machine.WorkspaceRebuilt{Why: why, From: from, After: after}
	if res.Rescue.Tree != "" {
		body.Rescue = packSnapshot(res.Rescue)
	}
	if err := r.decide(ctx, ledger.Full, batch{bodies: []machine.Body{body}}); err != nil {
		return err
	}
	return errMoved
}

// rebuiltSince says whether the workspace was made again after an event: what
// no snapshot holds is then not as it was, and nobody's doing.
func rebuiltSince(s *machine.State, n int64) bool {
	for i := s.Changes.Len() - 1; i >= 0; i-- {
		if c := s.Changes.At(i); c.Rebuilt != "" {
			return c.N > n
		}
	}
	return false
}

func rebuiltTitle(b machine.WorkspaceRebuilt) string {
	switch {
	case b.From.IsZero():
		return "the workspace was gone and was made again as it was at the start"
	case b.After != "":
		return "the workspace was gone and was made again from the snapshot before " + string(b.After)
	}
	return "the workspace was gone and was made again from its newest snapshot"
}

func rebuiltDetail(b machine.WorkspaceRebuilt) []string {
	return []string{b.Why, labelled("now in ", b.Path), labelled("what was still there is kept as snapshot ", b.Rescue.Commit)}
}

// lastIgnored is the newest manifest of ignored files.
func lastIgnored(s *machine.State) machine.Digest {
	for i := s.Effects.Len() - 1; i >= 0; i-- {
		f := s.Effects.At(i)
		for k := len(f.Attempts) - 1; k >= 0; k-- {
			if d := f.Attempts[k].Ignored; !d.IsZero() {
				return d
			}
		}
	}
	return machine.Digest{}
}
