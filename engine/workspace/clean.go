package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Standing is what a workspace holds that exists nowhere else, in so far as a person would miss it.
type Standing struct {
	Workspace Workspace `json:"workspace"`
	Gone      string    `json:"gone,omitempty"`     // why there is nothing to look at
	Dirty     []string  `json:"dirty,omitempty"`    // files with uncommitted changes, untracked ones included
	Unlanded  []string  `json:"unlanded,omitempty"` // the run's branches with commits that no branch or tag of the user's has
	Detached  bool      `json:"detached,omitempty"` // HEAD is on commits that no branch has
	Unended   string    `json:"unended,omitempty"`  // what git is in the middle of
	Ignored   []string  `json:"ignored,omitempty"`  // ignored files, caches apart, too large to be kept with the snapshots
	Unknown   string    `json:"unknown,omitempty"`  // why it cannot be told
}

// Reasons says why the workspace must not be removed, each in a sentence; none means that it may.
func (s Standing) Reasons() []string {
	var out []string
	few := func(names []string) string {
		more := ""
		if len(names) > 5 {
			names, more = names[:5], fmt.Sprintf(" and %d more", len(names)-5)
		}
		quoted := make([]string, len(names))
		for i, n := range names {
			quoted[i] = fmt.Sprintf("%q", n)
		}
		return strings.Join(quoted, ", ") + more
	}
	if s.Unknown != "" {
		out = append(out, "what it holds cannot be told: "+s.Unknown)
	}
	if len(s.Dirty) > 0 {
		out = append(out, "not committed: "+few(s.Dirty))
	}
	if len(s.Unlanded) > 0 {
		out = append(out, "commits that are in no branch or tag of yours: "+few(s.Unlanded))
	}
	if s.Detached {
		out = append(out, "it is on commits that no branch has")
	}
	if s.Unended != "" {
		out = append(out, "git is in the middle of "+s.Unended)
	}
	if len(s.Ignored) > 0 {
		out = append(out, "large ignored files: "+few(s.Ignored))
	}
	return out
}

// Standing looks at a workspace. It changes nothing.
func (m *Manager) Standing(ctx context.Context, ws Workspace) (Standing, error) {
	s := Standing{Workspace: ws, Gone: m.Gone(ws)}
	if s.Gone != "" || ws.Kind != KindWorktree {
		return s, ctx.Err()
	}
	lock, err := m.lock(ctx, ws.Run)
	if err != nil {
		return s, err
	}
	defer lock.Close()
	if err := m.look(ctx, ws, &s, lock); err != nil {
		if ctx.Err() != nil {
			return s, ctx.Err()
		}
		s.Unknown = err.Error()
	}
	return s, nil
}

func (m *Manager) look(ctx context.Context, ws Workspace, s *Standing, lock *os.File) error {
	tree := cloneGit(ws.CommonDir, ws.GitDir, ws.Path)
	var err error
	if s.Dirty, err = changedFiles(ctx, tree); err != nil {
		return err
	}
	for name, what := range map[string]string{"MERGE_HEAD": "a merge", "rebase-merge": "a rebase", "rebase-apply": "a rebase", "CHERRY_PICK_HEAD": "a cherry-pick", "REVERT_HEAD": "a revert", "BISECT_LOG": "a bisection"} {
		if _, err := os.Stat(filepath.Join(ws.GitDir, name)); err == nil {
			s.Unended = what
		}
	}
	refs, err := runRefs(ws)
	if err != nil {
		return err
	}
	head, err := tree.line(ctx, "rev-parse", "-q", "--verify", "HEAD^{commit}")
	if err != nil {
		return fmt.Errorf("its HEAD names no commit: %w", err)
	}
	s.Detached = true
	for _, ref := range sortedKeys(refs) {
		if in, err := isAncestor(ctx, tree, head, refs[ref]); err != nil {
			return err
		} else if in {
			s.Detached = false
		}
		landed, err := m.landed(ctx, ws, refs[ref])
		if err != nil {
			return err
		}
		if !landed {
			s.Unlanded = append(s.Unlanded, strings.TrimPrefix(ref, "refs/heads/"))
		}
	}
	if s.Detached {
		if s.Detached, err = m.landed(ctx, ws, head); err != nil {
			return err
		}
		s.Detached = !s.Detached
	}
	files, err := ignored(ctx, ws, lock)
	for _, f := range files {
		if f.Mode.IsRegular() && f.Size > keptIgnored {
			s.Ignored = append(s.Ignored, f.Path)
		}
	}
	return err
}

// landed says whether a branch or tag of the user's holds a commit.
func (m *Manager) landed(ctx context.Context, ws Workspace, oid string) (bool, error) {
	if oid == ws.Base {
		return true, nil
	}
	if ws.RepoGit == "" {
		return false, nil
	}
	user := userGit(ws.RepoGit)
	if _, err := user.run(ctx, nil, "cat-file", "-e", oid+"^{commit}"); err != nil {
		return false, ctx.Err()
	}
	out, err := user.run(ctx, nil, "for-each-ref", "--count=1", "--contains", oid, "refs/heads", "refs/tags", "refs/remotes", "refs/pawl/saved")
	return len(out) > 0, err
}

// Save puts the run's branches, and as a commit of its own whatever is not committed, under refs/pawl/saved/RUN/ in the
// user's repository, and names the refs. Done again it moves them to where the run is by then.
func (m *Manager) Save(ctx context.Context, ws Workspace) ([]string, error) {
	if ws.Kind != KindWorktree {
		return nil, refuse("there is nothing to save", "the run works in your own folder "+ws.Path, "commit there as usual")
	}
	if ws.RepoGit == "" {
		return nil, refuse("the work of "+ws.Run+" cannot be saved", "the run was imported without a repository of yours", "import it again with --repo, or pack it with pawl export")
	}
	lock, err := m.lock(ctx, ws.Run)
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	fail := func(err error) ([]string, error) {
		return nil, fmt.Errorf("saving the work of %s: %w", ws.Run, err)
	}
	refs, err := runRefs(ws)
	if err != nil {
		return fail(err)
	}
	tree := cloneGit(ws.CommonDir, ws.GitDir, ws.Path)
	want := map[string]string{}
	prefix := "refs/pawl/saved/" + ws.Run + "/"
	for ref, oid := range refs {
		want[prefix+"branch/"+strings.TrimPrefix(ref, "refs/heads/pawl/"+ws.Run+"/")] = oid
	}
	head, err := tree.line(ctx, "rev-parse", "--verify", "HEAD^{commit}")
	if err != nil {
		return fail(err)
	}
	index := filepath.Join(ws.Shadow, "index.save")
	if err := copyFile(filepath.Join(ws.GitDir, "index"), index); err != nil {
		return fail(err)
	}
	defer os.Remove(index) // made anew each time
	in := m.intake(ctx, ws, false)
	in.limits = Limits{File: 1 << 62, Files: 1 << 62, Total: 1 << 62} // all of it, since the folder may go afterwards
	in.nested = false
	g := tree.with("GIT_INDEX_FILE=" + index)
	took, err := addAll(ctx, g, ws.Path, index, in)
	if err != nil {
		return fail(err)
	}
	if len(took.closed) > 0 {
		return fail(fmt.Errorf("these files cannot be read: %q", took.closed))
	}
	commit, err := g.with(ws.Env()...).line(ctx, "commit-tree", took.tree, "-p", head, "-m", "What run "+ws.Run+" had not committed\n\n"+ws.Title)
	if err != nil {
		return fail(err)
	}
	want[prefix+"files"] = commit
	if err := sendObjects(ctx, tree, userWrite(ws.RepoGit, lock), sortedValues(want), []string{ws.Base}); err != nil {
		return fail(err)
	}
	for _, ref := range sortedKeys(want) {
		if _, err := userWrite(ws.RepoGit, lock).run(ctx, nil, "update-ref", "--no-deref", ref, want[ref]); err != nil {
			return fail(err)
		}
	}
	return sortedKeys(want), nil
}

func sortedValues(m map[string]string) []string {
	var out []string
	for _, k := range sortedKeys(m) {
		out = append(out, m[k])
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Clean removes a run's folder, after a last snapshot of it. It refuses, by name, what exists nowhere else, unless that
// was saved. Snapshots stay: from them the folder can be made again. It may be called again after a crash.
func (m *Manager) Clean(ctx context.Context, ws Workspace, saved bool) (Snapshot, error) {
	if ws.Kind != KindWorktree {
		return Snapshot{}, refuse("nothing was removed", "the run works in your own folder "+ws.Path, "remove it yourself, if you like")
	}
	if m.Gone(ws) == "" && !saved {
		s, err := m.Standing(ctx, ws)
		if err != nil {
			return Snapshot{}, err
		}
		if why := s.Reasons(); len(why) > 0 {
			return Snapshot{}, refuse("the workspace of "+ws.Run+" was kept", strings.Join(why, "; "), "land the work, or put it under a ref in your repository with `pawl clean "+ws.Run+" --save`")
		}
	}
	lock, err := m.lock(ctx, ws.Run)
	if err != nil {
		return Snapshot{}, err
	}
	defer lock.Close()
	var last Snapshot
	if m.Gone(ws) == "" {
		if err := tidyShadow(ws); err != nil {
			return last, err
		}
		if _, err := m.ignoredManifest(ctx, ws, lock); err != nil {
			return last, err
		}
		if last, _, err = m.snapshot(ctx, ws, "before the folder was removed", lock, snapshotOptions{}); err != nil {
			return last, err
		}
		refs, err := runRefs(ws)
		if err != nil {
			return last, err
		}
		if err := nameLost(ws, refs); err != nil {
			return last, err
		}
	}
	common, err := lockFile(ctx, ws.CommonDir+".lock")
	if err != nil {
		return last, err
	}
	defer common.Close()
	run := filepath.Join("refs", "heads", "pawl", ws.Run)
	for _, p := range []string{ws.Path, ws.GitDir, filepath.Join(ws.CommonDir, run), filepath.Join(ws.CommonDir, "logs", run), ws.Scratch} {
		if err := removeAll(p); err != nil {
			return last, err
		}
	}
	return last, nil
}

// removeAll removes a tree even where its folders are read-only, as package caches make them.
func removeAll(path string) error {
	err := os.RemoveAll(path)
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	werr := filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			return os.Chmod(p, 0o700)
		}
		return skipUnreadable(err)
	})
	return errors.Join(werr, os.RemoveAll(path))
}

// All lists the workspaces below the state directory, and folders there that nobody has a record of.
func (m *Manager) All() (known []Workspace, strangers []string, err error) {
	ents, err := os.ReadDir(m.at("journal"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, err
	}
	at := map[string]bool{}
	for _, e := range ents {
		run, ok := strings.CutSuffix(e.Name(), ".json")
		if !ok || !runName.MatchString(run) {
			continue
		}
		j, err := m.readJournal(run)
		if err != nil {
			return nil, nil, err
		}
		if j != nil {
			known = append(known, j.Workspace)
			at[run] = true
		}
	}
	ents, err = os.ReadDir(m.at("work"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, err
	}
	for _, e := range ents {
		if !at[strings.TrimSuffix(e.Name(), ".aside")] {
			strangers = append(strangers, m.at("work", e.Name()))
		}
	}
	return known, strangers, nil
}
