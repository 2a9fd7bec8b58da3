package workspace

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// journal is what is on disk about a workspace while it is made and afterwards. It is written before anything is
// made, so that whoever comes after a crash knows what may be half there, and makes the same again.
type journal struct {
	Ready       bool      `json:"ready"`
	WithChanges bool      `json:"with_changes"`
	Workspace   Workspace `json:"workspace"`
}

func (m *Manager) journalPath(run string) string { return m.at("journal", run+".json") }

// Prepare makes the run's workspace, or returns the one it has. It may be called again after a crash at any moment
// and then finishes what was begun, from the same base.
func (m *Manager) Prepare(ctx context.Context, r Request) (Workspace, error) {
	lock, err := m.lock(ctx, r.Run)
	if err != nil {
		return Workspace{}, err
	}
	defer lock.Close()
	j, err := m.readJournal(r.Run)
	switch {
	case err != nil:
		return Workspace{}, err
	case j != nil && j.Ready:
		if _, err := os.Stat(j.Workspace.Path); err != nil {
			return Workspace{}, refuse("the workspace of "+r.Run+" cannot be used", "its folder "+j.Workspace.Path+" is gone", "its files are in the snapshots in "+j.Workspace.Shadow+": `pawl resume "+r.Run+"` rebuilds it")
		}
		return j.Workspace, nil
	case j == nil:
		ws, err := inspect(ctx, r)
		if err != nil {
			return Workspace{}, err
		}
		m.place(&ws)
		j = &journal{WithChanges: r.WithChanges, Workspace: ws}
		if err := m.writeJournal(j); err != nil {
			return Workspace{}, err
		}
	}
	if err := m.make(ctx, j, lock); err != nil {
		return Workspace{}, fmt.Errorf("preparing the workspace of %s: %w", r.Run, err)
	}
	if err := syncAll(m.state); err != nil {
		return Workspace{}, fmt.Errorf("preparing the workspace of %s: %w", r.Run, err)
	}
	j.Ready = true
	return j.Workspace, m.writeJournal(j)
}

// place fills in where things will be.
func (m *Manager) place(ws *Workspace) {
	ws.Shadow = m.at("shadow", ws.Run+".git")
	ws.Scratch = m.at("scratch", ws.Run)
	if ws.Kind == KindWorktree {
		ws.Path = m.at("work", ws.Run)
		ws.CommonDir = m.clonePath(ws.RepoGit)
		ws.GitDir = filepath.Join(ws.CommonDir, "worktrees", ws.Run)
		ws.Branch = "pawl/" + ws.Run + "/work"
	}
}

func (m *Manager) readJournal(run string) (*journal, error) {
	b, err := os.ReadFile(m.journalPath(run))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var j journal
	if err := json.Unmarshal(b, &j); err != nil {
		return nil, fmt.Errorf("the record of the workspace of %s (%s) is damaged: %w", run, m.journalPath(run), err)
	}
	return &j, nil
}

func (m *Manager) writeJournal(j *journal) error {
	b, err := json.Marshal(j)
	if err != nil {
		return err
	}
	return writeDurable(m.journalPath(j.Workspace.Run), b)
}

func (m *Manager) make(ctx context.Context, j *journal, lock *os.File) error {
	ws := &j.Workspace
	if err := os.MkdirAll(ws.Scratch, 0o700); err != nil {
		return err
	}
	if ws.RepoGit != "" && ws.Base != "" {
		// First of all: from here on the user's clean-up keeps what the run starts from.
		if err := pin(ctx, ws.RepoGit, ws.Run, cmp.Or(ws.Pin, ws.Base), lock); err != nil {
			return fmt.Errorf("keeping the commit the run starts from: %w", err)
		}
	}
	if err := ensureShadow(ctx, *ws); err != nil {
		return err
	}
	if err := tidyShadow(*ws); err != nil {
		return err
	}
	if ws.Kind != KindWorktree {
		return nil
	}
	if err := m.ensureClone(ctx, *ws); err != nil {
		return err
	}
	if err := m.addWorktree(ctx, ws); err != nil {
		return err
	}
	if j.WithChanges {
		return m.bringChanges(ctx, ws, lock)
	}
	return nil
}

// pin points the one ref that is ours in the user's repository. hold is a lock under which nobody else moves it, so a
// lock file of git's beside it was left by a machine that went down.
func pin(ctx context.Context, repoGit, run, commit string, hold *os.File) error {
	ref := "refs/pawl/" + run
	if err := os.Remove(filepath.Join(repoGit, filepath.FromSlash(ref)+".lock")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	_, err := userWrite(repoGit, hold).run(ctx, nil, "update-ref", "--no-deref", ref, commit)
	return err
}

// addWorktree makes the worktree and the run's branch. A half-made one of an earlier try, which nobody can have used
// since it never was ready, is removed first.
func (m *Manager) addWorktree(ctx context.Context, ws *Workspace) error {
	lock, err := lockFile(ctx, ws.CommonDir+".lock")
	if err != nil {
		return err
	}
	defer lock.Close()
	clone := cloneGit(ws.CommonDir, ws.CommonDir, "")
	clone.hold = lock
	run := filepath.Join("refs", "heads", "pawl", ws.Run)
	for _, p := range []string{ws.Path, ws.GitDir, filepath.Join(ws.CommonDir, run), filepath.Join(ws.CommonDir, "logs", run)} {
		if err := os.RemoveAll(p); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Dir(ws.Path), 0o700); err != nil {
		return err
	}
	clone.env = withoutVar(clone.env, "GIT_COMMON_DIR")
	if _, err := clone.run(ctx, nil, "-c", "checkout.workers=2", "worktree", "add", "-q", "--lock", "--reason", "pawl run "+ws.Run,
		"-b", ws.Branch, ws.Path, ws.Base); err != nil {
		return err
	}
	// Commands get these directories writable, one by one, so they must be there.
	for _, d := range []string{"objects", "refs/heads/pawl/" + ws.Run, "logs/refs/heads/pawl/" + ws.Run} {
		if err := os.MkdirAll(filepath.Join(ws.CommonDir, filepath.FromSlash(d)), 0o755); err != nil {
			return err
		}
	}
	b, err := os.ReadFile(filepath.Join(ws.GitDir, "gitdir"))
	if err != nil || strings.TrimSpace(string(b)) != filepath.Join(ws.Path, ".git") {
		return fmt.Errorf("git put the worktree's own directory elsewhere than %s (%v)", ws.GitDir, err)
	}
	return nil
}

func withoutVar(env []string, name string) []string {
	var out []string
	for _, kv := range env {
		if !strings.HasPrefix(kv, name+"=") {
			out = append(out, kv)
		}
	}
	return out
}

// bringChanges gives the fresh worktree the files that the user's checkout has now, committed or not.
func (m *Manager) bringChanges(ctx context.Context, ws *Workspace, lock *os.File) error {
	theirs := shadowGit(*ws, lock)
	theirs.dir = ws.Repo
	theirs = theirs.with("GIT_WORK_TREE="+ws.Repo, "GIT_INDEX_FILE="+filepath.Join(ws.Shadow, "index.theirs"))
	ctx, cancel := context.WithTimeoutCause(ctx, m.bounds().Time, m.tooLong(*ws))
	defer cancel()
	from := *ws
	from.Kind, from.Path = KindInPlace, ws.Repo
	want, err := addAll(ctx, theirs, ws.Repo, filepath.Join(ws.Shadow, "index.theirs"), m.intake(ctx, from, true))
	if err != nil {
		if cause := context.Cause(ctx); errors.Is(err, context.DeadlineExceeded) && cause != nil {
			err = cause
		}
		return fmt.Errorf("reading the uncommitted changes: %w", err)
	}
	for _, l := range described(want.left) {
		ws.Notes = append(ws.Notes, "not brought along: "+l)
	}
	if len(want.closed) > 0 {
		return refuse("the uncommitted changes cannot be brought along", fmt.Sprintf("these files cannot be read: %q", want.closed), "make them readable, ignore them, or start without --with-changes")
	}
	ours := shadowGit(*ws, lock)
	have, err := addAll(ctx, ours, ws.Path, shadowIndex(*ws), m.intake(ctx, *ws, false))
	if err != nil {
		return err
	}
	_, err = ours.run(ctx, nil, "read-tree", "-m", "-u", "--no-recurse-submodules", have.tree, want.tree)
	return err
}
