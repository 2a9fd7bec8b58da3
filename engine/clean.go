package engine

import (
	"context"
	"errors"
	"fmt"

	"pawl/engine/machine"
	"pawl/engine/workspace"
)

// Worktree is a run's workspace as it stands.
type Worktree struct {
	workspace.Standing
	Run   machine.RunID `json:"run"`
	State string        `json:"state"`          // of the run; "" if this ledger does not know it
	Keep  []string      `json:"keep,omitempty"` // why clean would leave it alone
}

// Worktrees looks at every workspace below the state directory. strangers are
// folders there that no record explains.
func (e *Engine) Worktrees(ctx context.Context) (all []Worktree, strangers []string, err error) {
	known, strangers, err := e.manager.All()
	if err != nil {
		return nil, nil, err
	}
	for _, ws := range known {
		w, err := e.worktree(ctx, ws)
		if err != nil {
			return nil, nil, err
		}
		all = append(all, w)
	}
	return all, strangers, nil
}

func (e *Engine) worktree(ctx context.Context, ws workspace.Workspace) (Worktree, error) {
	w := Worktree{Run: machine.RunID(ws.Run)}
	var err error
	if w.Standing, err = e.manager.Standing(ctx, ws); err != nil {
		return w, err
	}
	s, err := e.state(ctx, w.Run)
	switch {
	case err != nil && ctx.Err() != nil:
		return w, ctx.Err()
	case err != nil:
		w.Keep = append(w.Keep, "this ledger does not know the run")
	default:
		w.State = string(s.Phase)
		if !s.Phase.Ended() {
			w.Keep = append(w.Keep, "the run has not ended")
		} else if len(s.Open()) > 0 {
			w.Keep = append(w.Keep, "the run has unresolved effects")
		}
	}
	if ws.Kind != workspace.KindWorktree {
		w.Keep = append(w.Keep, "it is your own folder")
	}
	w.Keep = append(w.Keep, w.Reasons()...)
	return w, nil
}

// Cleaned is what became of one workspace.
type Cleaned struct {
	Run     machine.RunID `json:"run"`
	Path    string        `json:"path"`
	Removed bool          `json:"removed"`
	Keep    []string      `json:"keep,omitempty"`  // why not
	Saved   []string      `json:"saved,omitempty"` // refs in the operator's repository
}

// Clean removes the folder of a run that has ended, if nothing in it exists
// there alone. With save, such things are put under refs first. Snapshots stay.
func (e *Engine) Clean(ctx context.Context, id machine.RunID, save, try bool) (Cleaned, error) {
	s, err := e.state(ctx, id)
	if err != nil {
		return Cleaned{Run: id}, err
	}
	if !s.Space.Ready {
		return Cleaned{Run: id, Keep: []string{"it has no workspace"}}, nil
	}
	ws, err := spaceOf(&s)
	if err != nil {
		return Cleaned{Run: id}, err
	}
	w, err := e.worktree(ctx, ws)
	if err != nil {
		return Cleaned{Run: id}, err
	}
	c := Cleaned{Run: id, Path: ws.Path, Keep: w.Keep}
	leases, err := e.store.Leases(ctx, string(id))
	if err != nil {
		return c, fmt.Errorf("read the lease of %s: %w", id, err)
	}
	if len(leases) > 0 && leases[0].Live {
		c.Keep = append(c.Keep, "it is driven by "+leases[0].Owner)
	}
	if w.Gone != "" {
		c.Keep = append(c.Keep, w.Gone)
		return c, nil
	}
	lost := w.Reasons() // these come last, and saving does away with them
	if hard := len(c.Keep) - len(lost); len(c.Keep) > 0 && (!save || hard > 0 || w.Unknown != "" || w.Unended != "" || len(w.Ignored) > 0) || try {
		return c, nil
	}
	if save && len(lost) > 0 {
		if c.Saved, err = e.manager.Save(ctx, ws); err != nil {
			return c, err
		}
	}
	_, err = e.manager.Clean(ctx, ws, len(c.Saved) > 0)
	var refused *workspace.RefusedError
	if errors.As(err, &refused) { // it has changed since
		c.Keep = []string{refused.Why}
		return c, nil
	}
	if err != nil {
		return c, err
	}
	c.Removed, c.Keep = true, nil
	return c, nil
}
