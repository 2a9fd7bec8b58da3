package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Gone says that nothing is where the workspace should be, and why that is thought. "" means that it is there; what is
// in it may still differ from what is known.
func (m *Manager) Gone(ws Workspace) string {
	st, err := os.Stat(ws.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "its folder " + ws.Path + " is gone"
	case err == nil && !st.IsDir():
		return ws.Path + " is no folder any more"
	case err != nil || ws.Kind != KindWorktree:
		return "" // what cannot be looked at is not taken for gone
	}
	for _, p := range []string{filepath.Join(ws.CommonDir, "config"), ws.GitDir} {
		if _, err := os.Stat(p); errors.Is(err, fs.ErrNotExist) {
			return "its git directory " + p + " is gone"
		}
	}
	return ""
}

// Rebuild makes a workspace again whose folder or git directory is gone, with the files and the git state of a
// snapshot. What is still there is kept: the run's newer commits, and the files of a folder that only lost its git
// directory, go into the rescue snapshot. It may be called again after a crash at any moment. A folder of the user's
// own is never made again, since it may have been moved on purpose.
func (m *Manager) Rebuild(ctx context.Context, ws Workspace, from Snapshot) (Restored, error) {
	what := "the workspace of " + ws.Run + " cannot be rebuilt"
	if ws.Kind != KindWorktree {
		return Restored{}, refuse(what, ws.Path+" was your own folder, and it is gone", "put it back where it was, or cancel the run: its snapshots in "+ws.Shadow+" stay")
	}
	lock, err := m.lock(ctx, ws.Run)
	if err != nil {
		return Restored{}, err
	}
	defer lock.Close()
	if err := m.remake(ctx, ws, from, lock); err != nil {
		return Restored{}, err
	}
	if from.Commit == "" {
		return Restored{}, m.refill(ctx, ws, lock)
	}
	return m.restore(ctx, ws, from, lock, true)
}

// refill gives a fresh worktree what the run started with beside its base, as far as that is still to be had.
func (m *Manager) refill(ctx context.Context, ws Workspace, lock *os.File) error {
	j, err := m.readJournal(ws.Run)
	if err != nil || j == nil || !j.WithChanges {
		return err
	}
	return m.bringChanges(ctx, &ws, lock)
}

// remake brings the folder and its git directory back, not yet their content.
func (m *Manager) remake(ctx context.Context, ws Workspace, from Snapshot, lock *os.File) error {
	fail := func(err error) error { return fmt.Errorf("rebuilding the workspace of %s: %w", ws.Run, err) }
	if err := tidyShadow(ws); err != nil {
		return fail(err)
	}
	if _, err := os.Stat(filepath.Join(ws.Shadow, "config")); errors.Is(err, fs.ErrNotExist) {
		return refuse("the workspace of "+ws.Run+" cannot be rebuilt", "its snapshots in "+ws.Shadow+" are gone too",
			"put them back from a copy (a file of `pawl export` has them), or cancel the run and start another")
	}
	if from.Commit != "" {
		if _, err := load(ctx, shadowGit(ws, lock).in(ws.Shadow), from.Commit); err != nil {
			return fail(err)
		}
	}
	if err := os.MkdirAll(ws.Scratch, 0o700); err != nil {
		return fail(err)
	}
	clone := ensureMade(ws.CommonDir)
	if !clone {
		if err := m.reclone(ctx, ws); err != nil {
			return fail(err)
		}
	}
	if clone {
		// Commits that came after the snapshot may be nowhere else.
		refs, err := runRefs(ws)
		if err != nil {
			return fail(err)
		}
		if err := keepCommits(ctx, ws, lock, refs, ""); err != nil {
			return fail(err)
		}
		if err := nameLost(ws, refs); err != nil {
			return fail(err)
		}
	}
	// Without a snapshot nothing of the run's has changed a file yet: the base is checked out anew.
	if _, err := os.Stat(ws.GitDir); err == nil && from.Commit != "" {
		return failIf(fail, linkWorktree(ws))
	}
	return failIf(fail, m.remakeGitDir(ctx, ws))
}

func failIf(wrap func(error) error, err error) error {
	if err == nil {
		return nil
	}
	return wrap(err)
}

// ensureMade says whether a private clone is whole: it is moved to its place that way.
func ensureMade(clone string) bool {
	_, err := os.Stat(filepath.Join(clone, "config"))
	return err == nil
}

// reclone makes the private clone again. Without the user's repository there is nothing to borrow from.
func (m *Manager) reclone(ctx context.Context, ws Workspace) error {
	if _, err := os.Stat(ws.RepoGit); err != nil {
		return refuse("the private clone in "+ws.CommonDir+" cannot be made again", "your repository "+ws.RepoGit+" is not there", "put it back where it was")
	}
	return m.ensureClone(ctx, ws)
}

// linkWorktree makes the folder of a worktree whose git directory is still there, empty but for the link to that.
func linkWorktree(ws Workspace) error {
	if err := os.MkdirAll(ws.Path, 0o777); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(ws.Path, ".git"), []byte("gitdir: "+ws.GitDir+"\n"), 0o644)
}

// remakeGitDir registers the worktree in the clone again. Files that are in the folder stay.
func (m *Manager) remakeGitDir(ctx context.Context, ws Workspace) error {
	aside := ws.Path + ".aside"
	if _, err := os.Stat(aside); errors.Is(err, fs.ErrNotExist) {
		if err := os.Rename(ws.Path, aside); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := m.addWorktree(ctx, &ws); err != nil {
		return err
	}
	if _, err := os.Stat(aside); err != nil {
		return nil
	}
	// The files that were there take the place of the fresh ones; the link to the git directory is new.
	link, err := os.ReadFile(filepath.Join(ws.Path, ".git"))
	if err != nil {
		return err
	}
	if err := os.RemoveAll(ws.Path); err != nil { // just checked out, and nobody knows of it yet
		return err
	}
	if err := os.Remove(filepath.Join(aside, ".git")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.WriteFile(filepath.Join(aside, ".git"), link, 0o644); err != nil {
		return err
	}
	return os.Rename(aside, ws.Path)
}

// nameLost gives the run's branches as they are a name among the snapshots, so that nothing ever collects what they
// hold, though they are about to be put back to an older state.
func nameLost(ws Workspace, refs map[string]string) error {
	for _, ref := range sortedKeys(refs) {
		oid := refs[ref]
		if oid == ws.Base {
			continue
		}
		dir := filepath.Join(ws.Shadow, "refs", "pawl", "lost")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, oid), []byte(oid+"\n"), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// in moves a git to another directory, for what needs no files of the workspace, which may be gone.
func (g git) in(dir string) git {
	g = g.with("GIT_WORK_TREE=" + dir)
	g.dir = dir
	return g
}
