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

// Work is what a run has made of what it started from, committed or not.
type Work struct {
	Tree  string   // of its files
	Tip   string   // commit that holds them, on top of the run's own; its HEAD if nothing is uncommitted
	Head  string   // the run's own commit
	Files []string // that differ from the base
}

// Fork makes the commit that a delegated run starts from: the files of ws as they are, uncommitted ones included. Made
// again from the same files it is the same commit. It lives in the private clone, under a ref of the child's.
func (m *Manager) Fork(ctx context.Context, ws Workspace, child string) (string, error) {
	if ws.Kind != KindWorktree {
		return "", refuse("nothing can be delegated from here", "the run works in your own folder "+ws.Path, "start it without --in-place, in a git repository")
	}
	w, err := m.WorkOf(ctx, ws)
	if err != nil {
		return "", fmt.Errorf("the files to start from: %w", err)
	}
	_, err = cloneGit(ws.CommonDir, ws.CommonDir, "").run(ctx, nil, "update-ref", "refs/pawl/base/"+child, w.Tip)
	return w.Tip, err
}

// WorkOf reads what a run has come to. It changes neither its index nor its branch.
func (m *Manager) WorkOf(ctx context.Context, ws Workspace) (Work, error) {
	var w Work
	if ws.Kind != KindWorktree {
		return w, refuse("its work cannot be read", "it works in your own folder "+ws.Path, "look there")
	}
	if why := m.Gone(ws); why != "" {
		return w, refuse("its work cannot be read", why, "`pawl resume "+ws.Run+"` makes its workspace again")
	}
	lock, err := m.lock(ctx, ws.Run)
	if err != nil {
		return w, err
	}
	defer lock.Close()
	index := filepath.Join(ws.Shadow, "index.work")
	if err := dropLock(index); err != nil {
		return w, err
	}
	if err := copyFile(filepath.Join(ws.GitDir, "index"), index); err != nil {
		return w, err
	}
	g := cloneGit(ws.CommonDir, ws.GitDir, ws.Path).with("GIT_INDEX_FILE=" + index)
	g.hold = lock
	in := m.intake(ctx, ws, false)
	in.nested = false
	took, err := addAll(ctx, g, ws.Path, index, in)
	if err != nil {
		return w, err
	}
	w.Tree = took.tree
	tree := cloneGit(ws.CommonDir, ws.GitDir, ws.Path)
	if w.Head, err = tree.line(ctx, "rev-parse", "--verify", "HEAD^{commit}"); err != nil {
		return w, fmt.Errorf("the run's branch: %w", err)
	}
	have, err := tree.line(ctx, "rev-parse", w.Head+"^{tree}")
	if err != nil {
		return w, err
	}
	w.Tip = w.Head
	if have != w.Tree {
		if w.Tip, err = commitTree(ctx, ws, w.Tree, ws.Run+": uncommitted work", w.Head); err != nil {
			return w, err
		}
	}
	if ws.Base != "" {
		w.Files, err = changedPaths(ctx, tree, ws.Base, w.Tree)
	}
	return w, err
}

// dropLock removes the lock of an index that is ours alone: whoever left it behind is dead, since the run's lock is held.
func dropLock(index string) error {
	if err := os.Remove(index + ".lock"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// commitTree makes a commit that comes out the same each time: it bears the date of its youngest parent.
func commitTree(ctx context.Context, ws Workspace, tree, title string, parents ...string) (string, error) {
	g := cloneGit(ws.CommonDir, ws.CommonDir, "").with(ws.Env()...)
	out, err := g.line(ctx, append([]string{"log", "--no-walk", "--format=%ct"}, parents...)...)
	if err != nil {
		return "", err
	}
	when := slices.Max(strings.Fields(out)) + " +0000" // seconds of equal length until the year 2286
	args := []string{"commit-tree", tree}
	for _, p := range parents {
		args = append(args, "-p", p)
	}
	g = g.with("GIT_AUTHOR_DATE="+when, "GIT_COMMITTER_DATE="+when)
	b, err := g.run(ctx, []byte(fmt.Sprintf("%s\n\nPawl-Run: %s\n", title, ws.Run)), args...)
	return strings.TrimSpace(string(b)), err
}

// AdoptPlan is what taking a delegated run's work over would do.
type AdoptPlan struct {
	Child     string   `json:"child"`
	Head      string   `json:"head"`                // the parent's commit now
	Tree      string   `json:"tree"`                // of the child's work
	Commit    string   `json:"commit,omitempty"`    // that the parent's branch will be on; "" on conflict
	Own       string   `json:"own,omitempty"`       // commit of what the parent has not committed, which comes first
	Files     []string `json:"files,omitempty"`     // that will differ in the parent's work tree
	Conflicts []string `json:"conflicts,omitempty"` // that do not merge by themselves
	Forecast  []string `json:"forecast,omitempty"`  // conflicts with the work of siblings, should that be taken over first
	Blocked   string   `json:"blocked,omitempty"`
	Nothing   bool     `json:"nothing,omitempty"` // the parent has all of it already
}

// PreviewAdopt says what taking the child's work over would do, or the part of it in only (paths; none: all). Nothing
// but loose objects of the private clone is written.
func (m *Manager) PreviewAdopt(ctx context.Context, parent, child Workspace, only []string) (AdoptPlan, error) {
	p := AdoptPlan{Child: child.Run}
	mine, err := m.WorkOf(ctx, parent)
	if err != nil {
		return p, err
	}
	theirs, err := m.WorkOf(ctx, child)
	if err != nil {
		return p, err
	}
	p.Head, p.Tree = mine.Head, theirs.Tree
	if p.Blocked, err = blocked(ctx, parent, LandPlan{}); err != nil || p.Blocked != "" {
		return p, err
	}
	tree := theirs.Tree
	if len(only) > 0 {
		if tree, err = m.pick(ctx, child, theirs.Tree, only); err != nil {
			return p, err
		}
	}
	merged, conflicts, err := merge3(ctx, child, child.Base, mine.Tree, tree)
	if err != nil || len(conflicts) > 0 {
		p.Conflicts = conflicts
		return p, err
	}
	clone := cloneGit(parent.CommonDir, parent.CommonDir, "")
	if p.Files, err = changedPaths(ctx, clone, mine.Tree, merged); err != nil {
		return p, err
	}
	if p.Nothing = len(p.Files) == 0; p.Nothing {
		p.Commit = p.Head
		return p, nil
	}
	if mine.Tip != mine.Head {
		p.Own = mine.Tip
	}
	parents := []string{mine.Tip, theirs.Tip}
	title := "Take over the work of " + child.Run
	if len(only) > 0 {
		parents, title = parents[:1], "Take over a part of the work of "+child.Run
	}
	line, _, _ := strings.Cut(child.Title, "\n")
	if line != "" {
		title += "\n\n" + line
	}
	p.Commit, err = commitTree(ctx, parent, merged, title, parents...)
	return p, err
}

// merge3 merges two trees over a base commit, without touching a file.
func merge3(ctx context.Context, ws Workspace, base, ours, theirs string) (tree string, conflicts []string, err error) {
	a, err := commitTree(ctx, ws, ours, "ours", base)
	if err != nil {
		return "", nil, err
	}
	b, err := commitTree(ctx, ws, theirs, "theirs", base)
	if err != nil {
		return "", nil, err
	}
	p := LandPlan{Base: a, Tip: b}
	tree, err = mergeTree(ctx, cloneGit(ws.CommonDir, ws.CommonDir, ""), &p)
	return tree, p.Conflicts, err
}

// pick makes a tree that has the base's files but for the named paths, which are as in tree.
func (m *Manager) pick(ctx context.Context, ws Workspace, tree string, only []string) (string, error) {
	index := filepath.Join(ws.Shadow, "index.pick")
	lock, err := m.lock(ctx, ws.Run)
	if err != nil {
		return "", err
	}
	defer lock.Close()
	if err := dropLock(index); err != nil {
		return "", err
	}
	g := cloneGit(ws.CommonDir, ws.CommonDir, "").with("GIT_INDEX_FILE=" + index)
	g.hold = lock
	if _, err := g.run(ctx, nil, "read-tree", ws.Base); err != nil {
		return "", err
	}
	for _, path := range only {
		out, err := g.run(ctx, nil, "ls-tree", "-r", "-z", tree, "--", path)
		if err != nil {
			return "", err
		}
		was, err := g.run(ctx, nil, "ls-files", "-z", "--", ":(literal)"+path)
		if err != nil {
			return "", err
		}
		if len(out) == 0 && len(was) == 0 {
			return "", refuse("a part of the work cannot be taken over", "no changed file is called "+path, "`pawl review "+ws.Run+"` lists them")
		}
		if len(was) > 0 {
			if _, err := g.run(ctx, was, "update-index", "-z", "--force-remove", "--stdin"); err != nil {
				return "", err
			}
		}
		if len(out) > 0 {
			if _, err := g.run(ctx, out, "update-index", "-z", "--index-info"); err != nil {
				return "", err
			}
		}
	}
	return g.line(ctx, "write-tree")
}

// Adopt takes the child's work over into the parent's branch and files: all of the plan, or nothing. The parent's own
// uncommitted work is committed before. A crash in the middle is mended by restoring the snapshot from before and
// doing it again. A [*RefusedError] means that nothing was changed.
func (m *Manager) Adopt(ctx context.Context, parent Workspace, p AdoptPlan) error {
	if p.Commit == "" || len(p.Conflicts) > 0 || p.Blocked != "" {
		return refuse("the work was not taken over", "the plan names no commit", "look at the review again")
	}
	if p.Nothing {
		return nil
	}
	lock, err := m.lock(ctx, parent.Run)
	if err != nil {
		return err
	}
	defer lock.Close()
	g := cloneGit(parent.CommonDir, parent.GitDir, parent.Path).with(parent.Env()...)
	g.hold, g.free = lock, true
	head, err := g.line(ctx, "rev-parse", "--verify", "HEAD^{commit}")
	if err != nil {
		return err
	}
	if head != p.Head {
		return refuse("the work was not taken over", "the branch of "+parent.Run+" has moved since it was looked at", "look at the review again")
	}
	if p.Own != "" {
		// Moves the branch from the commit that was looked at, or not at all; the files are what Own holds already.
		if _, err := g.run(ctx, nil, "update-ref", "-m", "pawl: own work before taking over "+p.Child, "HEAD", p.Own, p.Head); err != nil {
			return err
		}
		if _, err := g.run(ctx, nil, "read-tree", p.Own); err != nil {
			return err
		}
		if _, err := g.run(ctx, nil, "update-index", "-q", "--refresh"); err != nil && gitCode(err) != 1 {
			return err
		}
	}
	_, _, err = g.both(ctx, nil, "merge", "-q", "--ff-only", "--no-autostash", "--no-verify-signatures", p.Commit)
	if err != nil && refusedLanding(err) {
		return refuse("the work was not taken over", strings.TrimSpace(gitStderr(err)), "see to that in "+parent.Path+", then accept it again")
	}
	return err
}

// Keep gives what a run came to, uncommitted work included, a ref of its own in the private clone.
func (m *Manager) Keep(ctx context.Context, ws Workspace) (ref string, err error) {
	w, err := m.WorkOf(ctx, ws)
	if err != nil {
		return "", err
	}
	ref = "refs/pawl/kept/" + ws.Run
	_, err = cloneGit(ws.CommonDir, ws.CommonDir, "").run(ctx, nil, "update-ref", ref, w.Tip)
	return ref, err
}

// Clash lists the files in which the work of two runs would conflict, if that of first came into the parent before
// that of then.
func (m *Manager) Clash(ctx context.Context, parent, first, then Workspace) ([]string, error) {
	mine, err := m.WorkOf(ctx, parent)
	if err != nil {
		return nil, err
	}
	a, err := m.WorkOf(ctx, first)
	if err != nil {
		return nil, err
	}
	b, err := m.WorkOf(ctx, then)
	if err != nil {
		return nil, err
	}
	merged, conflicts, err := merge3(ctx, first, first.Base, mine.Tree, a.Tree)
	if err != nil || len(conflicts) > 0 {
		return nil, err // it would not come in: nothing to clash with
	}
	_, conflicts, err = merge3(ctx, then, then.Base, merged, b.Tree)
	return conflicts, err
}

var errNoFork = errors.New("the commit that a delegated run starts from is not in the private clone")

// fork is the workspace of a delegated run, before it is made.
func fork(ctx context.Context, r Request) (Workspace, error) {
	from := *r.From
	ws := Workspace{
		Run: r.Run, Title: r.Title, Kind: KindWorktree, Repo: from.Repo, RepoGit: from.RepoGit, Onto: from.Branch, Base: r.Ref,
		Name: from.Name, Email: from.Email, Notes: from.Notes, Parent: from.Run, Pin: from.Pin,
	}
	if ws.Pin == "" {
		ws.Pin = from.Base
	}
	if _, err := cloneGit(from.CommonDir, from.CommonDir, "").run(ctx, nil, "cat-file", "-e", r.Ref+"^{commit}"); err != nil {
		return ws, fmt.Errorf("%w (%s): %w", errNoFork, r.Ref, err)
	}
	return ws, nil
}
