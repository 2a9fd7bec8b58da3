package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Restore puts the workspace's files and git state back to a snapshot. Every process that the interrupted work
// started must be proven dead before. What is there now is kept as a snapshot first, and files are only replaced if
// they still are what that snapshot holds: somebody who edits meanwhile loses nothing, and after the second time gets
// a [*DriftError] in place of a restored workspace, and so they do if a file changed that was beyond the snapshot's
// [Limits]. Ignored files are left alone. It may be called again after a crash
// at any moment.
func (m *Manager) Restore(ctx context.Context, ws Workspace, to Snapshot) (Restored, error) {
	lock, err := m.lock(ctx, ws.Run)
	if err != nil {
		return Restored{}, err
	}
	defer lock.Close()
	return m.restore(ctx, ws, to, lock, false)
}

// restore is Restore under the run's lock. gone says that the folder was, so that what no snapshot holds is not missed.
func (m *Manager) restore(ctx context.Context, ws Workspace, to Snapshot, lock *os.File, gone bool) (Restored, error) {
	if err := tidyShadow(ws); err != nil {
		return Restored{}, err
	}
	g := shadowGit(ws, lock)
	target, err := load(ctx, g, to.Commit)
	if err != nil {
		return Restored{}, err
	}
	var why string
	for range 3 {
		res, again, err := m.restoreOnce(ctx, ws, target, lock, gone)
		if err != nil {
			return res, fmt.Errorf("restoring %s: %w", ws.Path, err)
		}
		if again == "" {
			return res, nil
		}
		why = again
	}
	return Restored{}, &DriftError{Why: why}
}

// restoreOnce returns a reason if somebody else's change kept it from being done.
func (m *Manager) restoreOnce(ctx context.Context, ws Workspace, target *record, lock *os.File, gone bool) (Restored, string, error) {
	now, kept, err := m.snapshot(ctx, ws, "before restoring "+target.Snapshot.Commit, lock, snapshotOptions{})
	if err != nil {
		return Restored{}, "", err
	}
	res := Restored{Rescue: now}
	if l := sameLeft(target.Left, kept.Left); l != "" && !gone {
		return res, "", &DriftError{Why: fmt.Sprintf("%q is in no snapshot, so what changed in it cannot be put back", l)}
	}
	m.pass("rescued")
	g := shadowGit(ws, lock)
	if res.Changed, err = changedPaths(ctx, g, now.Tree, target.Snapshot.Tree); err != nil {
		return res, "", err
	}
	if err := clearDirs(ctx, g, ws.Path, target); err != nil {
		return res, "", err
	}
	// Compares each file with what was just recorded before it touches it, and refuses as a whole.
	if _, stderr, err := g.both(ctx, nil, "read-tree", "-m", "-u", "--no-recurse-submodules", now.Tree, target.Snapshot.Tree); err != nil {
		if ctx.Err() != nil || gitCode(err) != 128 || !refusedForDrift(stderr) {
			return res, "", err
		}
		return res, strings.TrimSpace(string(stderr)), nil
	}
	es, err := readIndex(shadowIndex(ws))
	if err != nil {
		return res, "", err
	}
	if err := putModes(ctx, g, ws.Path, target.Snapshot.Commit, es); err != nil {
		return res, "", err
	}
	if err := putEmptyDirs(ctx, g, ws.Path, target); err != nil {
		return res, "", err
	}
	if ws.Kind == KindWorktree {
		if err := m.putGitState(ctx, ws, g, target); err != nil {
			return res, "", err
		}
	}
	got, _, err := m.snapshot(ctx, ws, "restored "+target.Snapshot.Commit, lock, snapshotOptions{lazy: true})
	if err != nil {
		return res, "", err
	}
	if got.Tree != target.Snapshot.Tree {
		return res, "a file was changed after it had been put back", nil
	}
	return res, "", nil
}

func refusedForDrift(stderr []byte) bool {
	for _, s := range []string{"not uptodate", "would be overwritten", "would be removed", "would lose untracked", "Updating the following directories"} {
		if bytes.Contains(stderr, []byte(s)) {
			return true
		}
	}
	return false
}

func changedPaths(ctx context.Context, g git, from, to string) ([]string, error) {
	out, err := g.run(ctx, nil, "diff-tree", "-r", "-z", "--no-renames", "--name-only", from, to)
	return zero(out), err
}

// clearDirs removes empty directories that the target does not have: they may stand where it has a file, and a command
// that makes them again would fail.
func clearDirs(ctx context.Context, g git, top string, target *record) error {
	now, err := emptyDirs(ctx, g)
	if err != nil {
		return err
	}
	for _, d := range now {
		for ; d != "." && !slices.ContainsFunc(target.Empty, func(e string) bool { return within(e, d) }); d = path.Dir(d) {
			if os.Remove(filepath.Join(top, filepath.FromSlash(d))) != nil {
				break // something is in it, and it stays
			}
		}
	}
	return nil
}

// putEmptyDirs makes the directories that the snapshot had without files, and removes those that came since.
func putEmptyDirs(ctx context.Context, g git, top string, target *record) error {
	if err := clearDirs(ctx, g, top, target); err != nil {
		return err
	}
	for _, d := range target.Empty {
		if err := os.MkdirAll(filepath.Join(top, filepath.FromSlash(d)), 0o777&^umask()); err != nil {
			return err
		}
	}
	return nil
}

// putGitState undoes what an interrupted git command did: the run's branches, the index, HEAD, a half-done rebase.
func (m *Manager) putGitState(ctx context.Context, ws Workspace, g git, target *record) error {
	if err := dropLocks(ctx, ws); err != nil {
		return err
	}
	if err := putRefs(ctx, ws, target.Refs, g.hold); err != nil {
		return err
	}
	want, err := gitFiles(ctx, g, target.Snapshot.Commit)
	if err != nil {
		return err
	}
	for _, name := range sortedKeys(want) {
		p := filepath.Join(ws.GitDir, filepath.FromSlash(name))
		if have, err := os.ReadFile(p); err == nil && bytes.Equal(have, want[name]) {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			return err
		}
		tmp := p + ".pawl-new"
		if err := os.WriteFile(tmp, want[name], 0o644); err != nil {
			return err
		}
		if err := os.Rename(tmp, p); err != nil {
			return err
		}
	}
	if err := dropOthers(ws.GitDir, want); err != nil {
		return err
	}
	return bringStaged(ctx, ws)
}

// putRefs moves the run's branches back, each only from where it is.
func putRefs(ctx context.Context, ws Workspace, want map[string]string, hold *os.File) error {
	have, err := runRefs(ws)
	if err != nil {
		return err
	}
	var cmds bytes.Buffer
	for _, ref := range sortedKeys(have) {
		if _, ok := want[ref]; !ok {
			fmt.Fprintf(&cmds, "delete %s\x00%s\x00", ref, have[ref])
		}
	}
	for _, ref := range sortedKeys(want) {
		if have[ref] != want[ref] {
			fmt.Fprintf(&cmds, "update %s\x00%s\x00%s\x00", ref, want[ref], have[ref])
		}
	}
	if cmds.Len() == 0 {
		return nil
	}
	if err := bringBack(ctx, ws, want); err != nil {
		return fmt.Errorf("bringing back the run's commits: %w", err)
	}
	// Without a message in the reflog: the reflogs are put back as files.
	clone := cloneGit(ws.CommonDir, ws.CommonDir, "")
	clone.hold, clone.free = hold, true // a moment's work, that must not leave its locks behind
	_, err = clone.run(ctx, cmds.Bytes(), "update-ref", "--no-deref", "-z", "--stdin")
	return err
}

// bringBack gives the clone the commits that it lost, from what the shadow kept of them.
func bringBack(ctx context.Context, ws Workspace, want map[string]string) error {
	clone := cloneGit(ws.CommonDir, ws.CommonDir, "")
	var lost []string
	for _, oid := range want {
		if _, err := clone.run(ctx, nil, "rev-list", "--objects", "--quiet", oid, "^"+ws.Base); err != nil {
			lost = append(lost, oid)
		}
	}
	if len(lost) == 0 || ctx.Err() != nil {
		return ctx.Err()
	}
	from := clone.with("GIT_ALTERNATE_OBJECT_DIRECTORIES=" + quoteAlternate(filepath.Join(ws.Shadow, "objects")))
	return sendObjects(ctx, from, clone, lost, []string{ws.Base})
}

// lockPatience is how long a lock that may be a living person's is waited for.
const lockPatience = 2 * time.Second

// dropLocks removes lock files that a dead command left in the run's own git directory. One that goes away by itself
// belonged to somebody who looks into the worktree.
func dropLocks(ctx context.Context, ws Workspace) error {
	deadline := time.Now().Add(lockPatience)
	for {
		locks, err := findLocks(ws)
		if err != nil || len(locks) == 0 {
			return err
		}
		fresh := false
		for _, l := range locks {
			st, err := os.Stat(l)
			fresh = fresh || err == nil && time.Since(st.ModTime()) < lockPatience
		}
		if !fresh || time.Now().After(deadline) {
			for _, l := range locks {
				if err := os.Remove(l); err != nil && !errors.Is(err, fs.ErrNotExist) {
					return err
				}
			}
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func findLocks(ws Workspace) ([]string, error) {
	var locks []string
	for _, root := range []string{ws.GitDir, filepath.Join(ws.CommonDir, packedDir), filepath.Join(ws.CommonDir, "refs", "heads", "pawl", ws.Run)} {
		err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err == nil && d.Type().IsRegular() && strings.HasSuffix(p, ".lock") {
				locks = append(locks, p)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return locks, nil
}

// dropOthers removes what was not in the git directory at the time of the snapshot.
func dropOthers(dir string, want map[string][]byte) error {
	keep := map[string]bool{}
	for name := range want {
		for d := name; d != "."; d = path.Dir(d) {
			keep[d] = true
		}
	}
	return filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || p == dir {
			return err
		}
		rel, err := filepath.Rel(dir, p)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if keep[rel] || fixedGit(rel) && rel != "index.lock" {
			return nil
		}
		if err := os.RemoveAll(p); err != nil {
			return err
		}
		if d.IsDir() {
			return fs.SkipDir
		}
		return nil
	})
}
