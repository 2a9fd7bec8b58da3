package engine

import (
	"context"
	"time"

	"pawl/engine/confine"
	"pawl/engine/effect"
	"pawl/engine/machine"
	"pawl/engine/workspace"
)

// The seams are where the engine meets what is not the ledger. A drill puts a
// simulated world behind them; everything between them is the real engine.

// Space makes, snapshots and restores workspaces. *workspace.Manager is the real one.
type Space interface {
	Check(ctx context.Context, r workspace.Request) error
	Prepare(ctx context.Context, r workspace.Request) (workspace.Workspace, error)
	Snapshot(ctx context.Context, ws workspace.Workspace, label string, opts ...workspace.SnapshotOption) (workspace.Snapshot, error)
	Restore(ctx context.Context, ws workspace.Workspace, to workspace.Snapshot) (workspace.Restored, error)
	Gone(ws workspace.Workspace) string
	Rebuild(ctx context.Context, ws workspace.Workspace, from workspace.Snapshot) (workspace.Restored, error)
	Changed(ctx context.Context, ws workspace.Workspace, from, to workspace.Snapshot) ([]workspace.FileChange, error)
	IgnoredManifest(ctx context.Context, ws workspace.Workspace) ([32]byte, error)
	PutBackIgnored(ctx context.Context, ws workspace.Workspace, manifest [32]byte) (now [32]byte, why string, err error)
	FileDigest(ctx context.Context, ws workspace.Workspace, path string) ([32]byte, error)
	DiffBase(ctx context.Context, ws workspace.Workspace) ([]byte, error)
	Preview(ctx context.Context, ws workspace.Workspace, onto string) (workspace.LandPlan, error)
	Commit(ctx context.Context, ws workspace.Workspace, p workspace.LandPlan) (workspace.LandPlan, error)
	Land(ctx context.Context, ws workspace.Workspace, p workspace.LandPlan) error
	Landed(ctx context.Context, ws workspace.Workspace, p workspace.LandPlan) (bool, error)
}

// Processes tells the living from the dead.
type Processes interface {
	// Reap kills what an identity names and waits for its end.
	Reap(ctx context.Context, id confine.Identity) (confine.Liveness, error)
	// Probe looks without touching.
	Probe(id confine.Identity) confine.Liveness
}

type realProcesses struct{}

func (realProcesses) Reap(ctx context.Context, id confine.Identity) (confine.Liveness, error) {
	return confine.Reap(ctx, id)
}

func (realProcesses) Probe(id confine.Identity) confine.Liveness { return confine.Probe(id) }

// Looker looks at what became of an effect, by the means its contract names.
type Looker func(ctx context.Context, f *machine.Effect, r effect.Request) effect.Finding

func realLook(ctx context.Context, _ *machine.Effect, r effect.Request) effect.Finding {
	return effect.Probe(ctx, r)
}

// Turns runs an engine's goroutines one at a time, so that a drill decides in
// which order things happen and can replay it. Nil runs them as Go does, and
// watches the ledger for news; with Turns the drill stands for that watch: it
// renews leases, and wakes a run by driving it again.
type Turns interface {
	// Go runs f as a goroutine of its own.
	Go(f func())
	// Park is called where a goroutine is about to wait. It returns once ready
	// reports that the wait would end at once; ready may be asked from any
	// goroutine while the others stand still.
	Park(ready func() bool)
}

// start runs f beside the caller.
func (e *Engine) start(f func()) {
	if e.o.Turns != nil {
		e.o.Turns.Go(f)
		return
	}
	go f()
}

// closed reports whether a channel that nothing is sent on is closed.
func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func realAfter(d time.Duration) (<-chan time.Time, func()) {
	t := time.NewTimer(d)
	return t.C, func() { t.Stop() }
}
