package drill

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"

	"pawl/engine/workspace"
)

// space is the simulated workspace of the run, seen by one process.
type space struct{ p *proc }

var errNoLanding = errors.New("nothing lands in a drill")

// Check allows everything.
func (space) Check(context.Context, workspace.Request) error { return nil }

// Prepare names the workspace.
func (x *space) Prepare(context.Context, workspace.Request) (workspace.Workspace, error) {
	x.p.s.pass1("prepare", "")
	return workspace.Workspace{Run: string(x.p.s.run), Kind: workspace.KindWorktree, Path: "/drill/work"}, x.fails("prepare")
}

// fails is now and then the reason why the workspace cannot be used.
func (x *space) fails(what string) error {
	s := x.p.s
	if s.calm() || s.fair {
		return nil
	}
	s.world.trouble++
	r := s.dice.on(topicSpace, s.world.trouble)
	if r.percent(2) {
		return fmt.Errorf("%s: input/output error", what)
	}
	return nil
}

func treeOf(d disk) string {
	var b [2 * len(d)]byte
	for i, v := range d {
		b[2*i], b[2*i+1] = byte(v>>8), byte(v)
	}
	return hex.EncodeToString(b[:])
}

func diskOf(tree string) (d disk) {
	b, err := hex.DecodeString(tree)
	if err != nil || len(b) != 2*len(d) {
		return d
	}
	for i := range d {
		d[i] = uint16(b[2*i])<<8 | uint16(b[2*i+1])
	}
	return d
}

// Snapshot keeps the files as they are.
func (x *space) Snapshot(_ context.Context, _ workspace.Workspace, label string, _ ...workspace.SnapshotOption) (workspace.Snapshot, error) {
	x.p.s.pass1("snapshot", label)
	if err := x.fails("snapshot"); err != nil {
		return workspace.Snapshot{}, err
	}
	tree := treeOf(x.p.s.world.files)
	return workspace.Snapshot{Commit: "c" + tree, Tree: tree}, nil
}

// Restore puts a snapshot back; the operator's own changes are kept with what was there.
func (x *space) Restore(_ context.Context, _ workspace.Workspace, to workspace.Snapshot) (workspace.Restored, error) {
	s := x.p.s
	s.pass1("restore", "")
	if err := x.fails("restore"); err != nil {
		return workspace.Restored{}, err
	}
	was := treeOf(s.world.files)
	s.world.files = diskOf(to.Tree)
	s.note("world: files put back to %s", to.Tree)
	s.pass1("restored", "")
	return workspace.Restored{Rescue: workspace.Snapshot{Commit: "c" + was, Tree: was}}, nil
}

// Gone never holds: the simulated workspace is in no folder.
func (space) Gone(workspace.Workspace) string { return "" }

// Rebuild puts the tree back.
func (x *space) Rebuild(ctx context.Context, ws workspace.Workspace, from workspace.Snapshot) (workspace.Restored, error) {
	return x.Restore(ctx, ws, from)
}

// Changed lists the slots that differ.
func (x *space) Changed(_ context.Context, _ workspace.Workspace, from, to workspace.Snapshot) ([]workspace.FileChange, error) {
	a, b := diskOf(from.Tree), diskOf(to.Tree)
	var out []workspace.FileChange
	for i := range a {
		if a[i] != b[i] {
			out = append(out, workspace.FileChange{Path: fmt.Sprintf("file%d", i), Status: 'M'})
		}
	}
	return out, nil
}

// IgnoredManifest stands for the files that no snapshot holds.
func (x *space) IgnoredManifest(context.Context, workspace.Workspace) ([32]byte, error) {
	return [32]byte{0: 1, 1: byte(x.p.s.world.ignored)}, nil
}

// PutBackIgnored cannot put anything back, as if all ignored files were large.
func (x *space) PutBackIgnored(ctx context.Context, ws workspace.Workspace, sum [32]byte) (now [32]byte, why string, err error) {
	if now, err = x.IgnoredManifest(ctx, ws); err == nil && now != sum {
		why = "an ignored file was changed, and no snapshot holds it"
	}
	return now, why, err
}

// FileDigest names a slot's content.
func (x *space) FileDigest(_ context.Context, _ workspace.Workspace, path string) ([32]byte, error) {
	n := number([]byte(`{"n":` + path + `}`))
	return slotDigest(n, x.p.s.world.files[slot(n)]), nil
}

// DiffBase is empty.
func (x *space) DiffBase(context.Context, workspace.Workspace) ([]byte, error) { return nil, nil }

// Preview, Commit, Land and Landed are not part of a drill.
func (x *space) Preview(context.Context, workspace.Workspace, string) (workspace.LandPlan, error) {
	return workspace.LandPlan{}, errNoLanding
}

// Commit is not part of a drill.
func (x *space) Commit(context.Context, workspace.Workspace, workspace.LandPlan) (workspace.LandPlan, error) {
	return workspace.LandPlan{}, errNoLanding
}

// Land is not part of a drill.
func (x *space) Land(context.Context, workspace.Workspace, workspace.LandPlan) error {
	return errNoLanding
}

// Landed is not part of a drill.
func (x *space) Landed(context.Context, workspace.Workspace, workspace.LandPlan) (bool, error) {
	return false, errNoLanding
}
