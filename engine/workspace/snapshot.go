package workspace

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A snapshot's commit has a tree with these entries.
const (
	partFiles  = "files"  // the workspace, byte for byte
	partGit    = "git"    // the worktree's own git directory: HEAD, index, what a merge or rebase is in the middle of
	partModes  = "modes"  // permissions that git does not keep
	partRecord = "record" // the rest, as JSON
)

// record is what restoring needs beside files.
type record struct {
	Snapshot Snapshot          `json:"snapshot"` // without its commit
	Refs     map[string]string `json:"refs"`     // the run's own branches
	Empty    []string          `json:"empty"`    // directories without files, which git does not keep
	Left     []leftOut         `json:"left,omitempty"`
}

// SnapshotOption changes how a snapshot is taken.
type SnapshotOption func(*snapshotOptions)

type snapshotOptions struct{ lazy bool }

// Lazy leaves it to later writes to make the snapshot durable: for one that is convenient to have but not needed to
// undo anything.
func Lazy() SnapshotOption { return func(o *snapshotOptions) { o.lazy = true } }

// Snapshot records the workspace's files and git state. When it returns without error the snapshot is complete and,
// unless Lazy, durable; after an error there is none. Files that cannot be read are left out and named in Skipped,
// those beyond the [Limits] in Left; ignored ones are not part of it. Nothing may be running in the workspace.
func (m *Manager) Snapshot(ctx context.Context, ws Workspace, label string, opts ...SnapshotOption) (Snapshot, error) {
	var o snapshotOptions
	for _, f := range opts {
		f(&o)
	}
	lock, err := m.lock(ctx, ws.Run)
	if err != nil {
		return Snapshot{}, err
	}
	defer lock.Close()
	if err := tidyShadow(ws); err != nil {
		return Snapshot{}, err
	}
	s, _, err := m.snapshot(ctx, ws, label, lock, o)
	return s, err
}

func (m *Manager) snapshot(ctx context.Context, ws Workspace, label string, lock *os.File, o snapshotOptions) (Snapshot, *record, error) {
	fail := func(err error) (Snapshot, *record, error) {
		var long *RefusedError
		if errors.Is(err, context.DeadlineExceeded) && errors.As(context.Cause(ctx), &long) {
			err = long
		}
		return Snapshot{}, nil, fmt.Errorf("snapshot of %s: %w", ws.Path, err)
	}
	if _, err := os.Stat(ws.Path); err != nil {
		return fail(err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, m.bounds().Time, m.tooLong(ws))
	defer cancel()
	st := store{ws.Shadow}
	parent, err := st.last()
	if err != nil {
		return fail(err)
	}
	g := shadowGit(ws, lock)
	r := record{}
	took, err := addAll(ctx, g, ws.Path, shadowIndex(ws), m.intake(ctx, ws, parent == ""))
	if err != nil {
		return fail(err)
	}
	r.Empty = took.empty
	tree := took.tree
	r.Snapshot.Tree, r.Snapshot.Skipped, r.Snapshot.Left, r.Left = tree, took.closed, described(took.left), took.left
	modes, err := m.modes(ws, &r.Snapshot)
	if err != nil {
		return fail(err)
	}
	parts := []treeEntry{{partFiles, tree, true}}
	if parts, err = m.gitState(ws, st, &r, parts); err != nil {
		return fail(err)
	}
	if err := keepCommits(ctx, ws, lock, r.Refs, r.Snapshot.Head); err != nil {
		return fail(fmt.Errorf("keeping the run's commits: %w", err))
	}
	if err := keepStaged(ctx, ws, lock, r.Snapshot.Index); err != nil {
		return fail(fmt.Errorf("keeping what is staged: %w", err))
	}
	recorded, err := json.Marshal(r)
	if err != nil {
		return fail(err)
	}
	for name, b := range map[string][]byte{partModes: modes, partRecord: recorded} {
		oid, err := st.put("blob", b)
		if err != nil {
			return fail(err)
		}
		parts = append(parts, treeEntry{name: name, oid: oid})
	}
	root, err := st.tree(parts)
	if err != nil {
		return fail(err)
	}
	if r.Snapshot.Commit, err = st.commit(root, parent, label, m.clock()); err != nil {
		return fail(err)
	}
	if !o.lazy {
		if err := syncAll(ws.Shadow); err != nil {
			return fail(err)
		}
	}
	if err := st.setLast(r.Snapshot.Commit); err != nil {
		return fail(err)
	}
	return r.Snapshot, &r, nil
}

// tooLong is why a snapshot was given up.
func (m *Manager) tooLong(ws Workspace) error {
	return refuse("the snapshot of "+ws.Path+" was given up", fmt.Sprintf("it took longer than %v", m.bounds().Time),
		"let git ignore what need not be kept (.gitignore, or info/exclude in the repository), or stop what keeps the disk busy, and try again")
}

// emptyDirs lists the directories that hold nothing at all: once all files are in the index, they are among what is
// left over and not ignored.
func emptyDirs(ctx context.Context, g git) ([]string, error) {
	out, err := g.run(ctx, nil, "ls-files", "-o", "--directory", "--exclude-standard", "-z")
	if err != nil {
		return nil, err
	}
	var dirs []string
	for _, d := range zero(out) {
		if top, ok := strings.CutSuffix(d, "/"); ok {
			if dirs, _, err = hollow(dirs, g.dir, top); err != nil {
				return nil, err
			}
		}
	}
	return dirs, nil
}

// hollow adds the empty directories at and below rel, and says whether there is anything else.
func hollow(dirs []string, top, rel string) (more []string, full bool, err error) {
	ents, err := os.ReadDir(filepath.Join(top, filepath.FromSlash(rel)))
	if err != nil {
		return dirs, true, skipUnreadable(err)
	}
	if len(ents) == 0 {
		return append(dirs, rel), false, nil
	}
	for _, e := range ents {
		if !e.IsDir() || e.Name() == ".git" {
			full = true
			continue
		}
		inside := false
		if dirs, inside, err = hollow(dirs, top, rel+"/"+e.Name()); err != nil {
			return nil, false, err
		}
		full = full || inside
	}
	return dirs, full, nil
}

// gitState stores the worktree's git directory and the run's branches. In a checkout of the user's that is not ours
// to put back; there only HEAD is noted.
func (m *Manager) gitState(ws Workspace, st store, r *record, parts []treeEntry) ([]treeEntry, error) {
	if ws.GitDir == "" {
		return parts, nil
	}
	head, err := os.ReadFile(filepath.Join(ws.GitDir, "HEAD"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // a command may have removed it; that is its state, then
		return nil, err
	}
	branch, symbolic := strings.CutPrefix(strings.TrimSpace(string(head)), "ref: ")
	if r.Refs, err = runRefs(ws); err != nil {
		return nil, err
	}
	if symbolic {
		r.Snapshot.Branch, r.Snapshot.Head = branch, r.Refs[branch]
	} else {
		r.Snapshot.Head = strings.TrimSpace(string(head))
	}
	if ws.Kind != KindWorktree {
		return parts, nil
	}
	oid, err := m.storeDir(st, ws.GitDir, func(rel, oid string) {
		if rel == "index" {
			r.Snapshot.Index = oid
		}
	}, "")
	if err != nil {
		return nil, err
	}
	return append(parts, treeEntry{partGit, oid, true}), nil
}

// keepCommits copies new commits of the run into the shadow, since a command may do to the clone's objects what it
// likes. Those it has destroyed already are beyond keeping.
func keepCommits(ctx context.Context, ws Workspace, lock *os.File, refs map[string]string, head string) error {
	if ws.Kind != KindWorktree {
		return nil
	}
	g := shadowGit(ws, lock).in(ws.Shadow) // the workspace may be gone
	seen := filepath.Join(ws.Shadow, "seen.commits")
	b, err := os.ReadFile(seen)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	kept := strings.Fields(string(b))
	var fresh []string
	wanted := []string{head}
	for _, ref := range sortedKeys(refs) {
		wanted = append(wanted, refs[ref])
	}
	for _, oid := range wanted {
		if oid != "" && oid != ws.Base && !slices.Contains(kept, oid) && !slices.Contains(fresh, oid) {
			fresh = append(fresh, oid)
		}
	}
	if len(fresh) == 0 {
		return nil
	}
	clone := cloneGit(ws.CommonDir, ws.CommonDir, "")
	fresh = slices.DeleteFunc(fresh, func(oid string) bool {
		_, err := clone.run(ctx, nil, "rev-list", "--objects", "--quiet", oid, "^"+ws.Base)
		return err != nil && ctx.Err() == nil
	})
	if len(fresh) == 0 {
		return ctx.Err()
	}
	if err := sendObjects(ctx, clone, g, fresh, []string{ws.Base}); err != nil {
		return err
	}
	return os.WriteFile(seen, []byte(strings.Join(append(kept, fresh...), "\n")+"\n"), 0o600)
}

// fixedGit are files of a worktree's git directory that say where it belongs. They never change, and commands cannot
// write to them.
func fixedGit(rel string) bool {
	return rel == "commondir" || rel == "gitdir" || rel == "locked" || strings.HasSuffix(rel, ".lock")
}

func (m *Manager) storeDir(st store, dir string, seen func(rel, oid string), rel string) (string, error) {
	ents, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	var es []treeEntry
	for _, e := range ents {
		r := rel + e.Name()
		switch {
		case fixedGit(r):
		case e.IsDir():
			oid, err := m.storeDir(st, filepath.Join(dir, e.Name()), seen, r+"/")
			if err != nil {
				return "", err
			}
			es = append(es, treeEntry{e.Name(), oid, true})
		case e.Type().IsRegular():
			oid, err := m.file(st, filepath.Join(dir, e.Name()))
			if err != nil {
				return "", err
			}
			seen(r, oid)
			es = append(es, treeEntry{e.Name(), oid, false})
		}
	}
	return st.tree(es)
}

// runRefs reads the branches of the run, and in place the one that is checked out.
func runRefs(ws Workspace) (map[string]string, error) {
	refs := map[string]string{}
	prefix := "refs/heads/pawl/" + ws.Run + "/"
	if ws.Kind != KindWorktree {
		prefix = "refs/heads/"
	}
	packed, err := os.ReadFile(filepath.Join(ws.CommonDir, "packed-refs"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for l := range strings.Lines(string(packed)) {
		if oid, ref, ok := strings.Cut(strings.TrimSpace(l), " "); ok && strings.HasPrefix(ref, prefix) {
			refs[ref] = oid
		}
	}
	root := filepath.Join(ws.CommonDir, filepath.FromSlash(prefix))
	err = filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || !d.Type().IsRegular() || strings.HasSuffix(p, ".lock") {
			return err
		}
		b, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		if oid := strings.TrimSpace(string(b)); len(oid) >= 40 && !strings.HasPrefix(oid, "ref:") {
			refs[prefix+filepath.ToSlash(rel)] = oid
		}
		return nil
	})
	return refs, err
}

// load reads a snapshot back from its commit, which is all that need be known.
func load(ctx context.Context, g git, commit string) (*record, error) {
	b, err := g.run(ctx, nil, "cat-file", "blob", commit+":"+partRecord)
	if err != nil {
		return nil, fmt.Errorf("snapshot %s cannot be read: %w", commit, err)
	}
	var r record
	if err := json.Unmarshal(b, &r); err != nil {
		return nil, fmt.Errorf("snapshot %s cannot be read: %w", commit, err)
	}
	r.Snapshot.Commit = commit
	return &r, nil
}

// gitFiles reads a snapshot's git directory: path → content.
func gitFiles(ctx context.Context, g git, commit string) (map[string][]byte, error) {
	out, err := g.run(ctx, nil, "ls-tree", "-r", "-z", "--full-tree", commit+":"+partGit)
	if err != nil {
		return nil, err
	}
	var ask bytes.Buffer
	var names []string
	for _, l := range zero(out) {
		info, name, _ := strings.Cut(l, "\t")
		f := strings.Fields(info)
		if len(f) != 3 {
			return nil, fmt.Errorf("unreadable tree entry %q", l)
		}
		ask.WriteString(f[2] + "\n")
		names = append(names, name)
	}
	if out, err = g.run(ctx, ask.Bytes(), "cat-file", "--batch"); err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for _, n := range names {
		head, rest, ok := bytes.Cut(out, []byte("\n"))
		var oid, kind string
		var size int
		if _, err := fmt.Sscanf(string(head), "%s %s %d", &oid, &kind, &size); err != nil || !ok || len(rest) < size+1 {
			return nil, fmt.Errorf("unreadable object for %s", n)
		}
		files[n], out = rest[:size], rest[size+1:]
	}
	return files, nil
}

func sortedKeys[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}
