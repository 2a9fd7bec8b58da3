package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A workspace is packed into a few files, from which another machine can make it again: its snapshots with all that was
// kept beside them, and of the clone the run's branches with the whole history below them.

const (
	packShadow = "shadow.pack"
	packClone  = "clone.pack"
	packSmall  = "shadow/" // small files of the shadow repository
)

// smallFiles are those of a shadow that belong in a pack.
var smallFiles = regexp.MustCompile(`^(refs/pawl/last|refs/pawl/lost/[0-9a-f]{40,64}|ignored/[0-9a-f]{64}|seen\.commits|seen\.staged|info/exclude)$`)

// Pack writes what another machine needs for the workspace. put is called once for each file, with a name of ASCII
// letters, digits, dots, dashes and slashes, and reads it to its end or fails. Nothing may run in the workspace.
func (m *Manager) Pack(ctx context.Context, ws Workspace, put func(name string, r io.Reader) error) error {
	lock, err := m.lock(ctx, ws.Run)
	if err != nil {
		return err
	}
	defer lock.Close()
	fail := func(err error) error { return fmt.Errorf("packing the workspace of %s: %w", ws.Run, err) }
	if err := tidyShadow(ws); err != nil {
		return fail(err)
	}
	g := shadowGit(ws, lock).in(ws.Shadow)
	oids, err := g.run(ctx, nil, "cat-file", "--batch-all-objects", "--unordered", "--batch-check=%(objectname)")
	if err != nil {
		return fail(err)
	}
	if err := g.pipe(ctx, oids, func(r io.Reader) error { return put(packShadow, r) }, "pack-objects", "-q", "--stdout", "--delta-base-offset"); err != nil {
		return fail(err)
	}
	if ws.Kind == KindWorktree {
		if err := m.packClone(ctx, ws, put); err != nil {
			return fail(err)
		}
	}
	err = filepath.WalkDir(ws.Shadow, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(ws.Shadow, p)
		if err != nil || !d.Type().IsRegular() || !smallFiles.MatchString(filepath.ToSlash(rel)) {
			if d.IsDir() && d.Name() == "objects" {
				return fs.SkipDir
			}
			return err
		}
		b, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		return put(packSmall+filepath.ToSlash(rel), bytes.NewReader(b))
	})
	if err != nil {
		return fail(err)
	}
	return nil
}

func (m *Manager) packClone(ctx context.Context, ws Workspace, put func(name string, r io.Reader) error) error {
	if !ensureMade(ws.CommonDir) {
		if err := m.reclone(ctx, ws); err != nil {
			return err
		}
	}
	clone := cloneGit(ws.CommonDir, ws.CommonDir, "")
	refs, err := runRefs(ws)
	if err != nil {
		return err
	}
	var revs bytes.Buffer
	fmt.Fprintln(&revs, ws.Base)
	for _, ref := range sortedKeys(refs) {
		if _, err := clone.run(ctx, nil, "rev-list", "--objects", "--quiet", refs[ref], "^"+ws.Base); err == nil {
			fmt.Fprintln(&revs, refs[ref])
		} // else a command has destroyed it, and what the snapshots kept of it is all there is
	}
	return clone.pipe(ctx, revs.Bytes(), func(r io.Reader) error { return put(packClone, r) }, "pack-objects", "-q", "--revs", "--stdout", "--delta-base-offset")
}

// pipe runs git and hands its output on as it comes.
func (g git) pipe(ctx context.Context, stdin []byte, take func(io.Reader) error, args ...string) error {
	bin, err := exec.LookPath("git")
	if err != nil {
		return errNoGit
	}
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	cmd := exec.CommandContext(ctx, bin, append(slices.Clone(g.opts), args...)...)
	cmd.Dir, cmd.Env, cmd.Stdin, cmd.Stdout = g.dir, g.env, bytes.NewReader(stdin), w
	var e bytes.Buffer
	cmd.Stderr = &e
	took := make(chan error, 1)
	go func() {
		err := take(r)
		r.Close() // a git that nobody listens to ends
		took <- err
	}()
	rerr := runBound(cmd, true)
	w.Close()
	if err := <-took; err != nil {
		return err
	}
	if rerr != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return &GitError{Args: args, Code: cmd.ProcessState.ExitCode(), Stderr: e.String(), Err: rerr}
	}
	return nil
}

// Unpack makes a packed workspace on this machine, at places of its own, with the files and the git state of a
// snapshot. open gives the packed files; one that is missing is fs.ErrNotExist. repo, which may be "", is a checkout
// here of the same project, to land in. It may be called again after a crash at any moment.
func (m *Manager) Unpack(ctx context.Context, was Workspace, at Snapshot, repo string, names []string, open func(name string) (io.ReadCloser, error)) (Workspace, error) {
	what := "the workspace of " + was.Run + " cannot be made here"
	if was.Kind != KindWorktree {
		return Workspace{}, refuse(what, "it worked in the operator's own folder "+was.Path+", which is not part of an export", "go on with it on the machine that it comes from")
	}
	lock, err := m.lock(ctx, was.Run)
	if err != nil {
		return Workspace{}, err
	}
	defer lock.Close()
	ws := was
	ws.Repo, ws.RepoGit = "", ""
	if repo != "" {
		here, err := inspect(ctx, Request{Run: was.Run, Repo: repo, InPlace: true})
		if err != nil {
			return Workspace{}, err
		}
		if here.RepoGit == "" {
			return Workspace{}, refuse(what, repo+" is no git repository", "name a checkout of the same project with --repo")
		}
		ws.Repo, ws.RepoGit = here.Repo, here.RepoGit
		if have, err := branchCommit(ctx, userGit(ws.RepoGit), was.Onto); err != nil {
			return Workspace{}, err
		} else if have == "" && was.Onto != "" {
			return Workspace{}, refuse(what, repo+" has no branch "+was.Onto+", which the run started from", "fetch it first, or name another checkout with --repo")
		}
	}
	m.place(&ws)
	ws.CommonDir = m.at("repos", "import-"+ws.Run+".git")
	ws.GitDir = filepath.Join(ws.CommonDir, "worktrees", ws.Run)
	j, err := m.readJournal(ws.Run)
	if err != nil {
		return Workspace{}, err
	}
	if j != nil && j.Ready && j.Workspace.CommonDir != ws.CommonDir {
		return Workspace{}, refuse(what, "this machine has a workspace of that run already, in "+j.Workspace.Path, "import into another ledger, with --ledger")
	}
	if err := m.writeJournal(&journal{Workspace: ws}); err != nil {
		return Workspace{}, err
	}
	if err := m.unpack(ctx, ws, names, open, lock); err != nil {
		return Workspace{}, fmt.Errorf("%s: %w", what, err)
	}
	if err := m.remake(ctx, ws, at, lock); err != nil {
		return Workspace{}, err
	}
	if at.Commit != "" {
		if _, err := m.restore(ctx, ws, at, lock, true); err != nil {
			return Workspace{}, err
		}
	}
	if err := syncAll(m.state); err != nil {
		return Workspace{}, err
	}
	return ws, m.writeJournal(&journal{Ready: true, Workspace: ws})
}

// unpack makes the repositories of a workspace, not yet its folder.
func (m *Manager) unpack(ctx context.Context, ws Workspace, names []string, open func(name string) (io.ReadCloser, error), lock *os.File) error {
	for _, d := range []string{ws.Shadow, ws.CommonDir, ws.Path} { // of an interrupted try; nobody has used them
		if err := os.RemoveAll(d); err != nil {
			return err
		}
	}
	fresh := ws
	fresh.RepoGit = "" // what is ignored comes with the pack
	if err := ensureShadow(ctx, fresh); err != nil {
		return err
	}
	if err := takePack(ctx, shadowGit(ws, lock).in(ws.Shadow), packShadow, open); err != nil {
		return err
	}
	for _, n := range names {
		rel, ok := strings.CutPrefix(n, packSmall)
		if !ok || !smallFiles.MatchString(rel) {
			continue
		}
		r, err := open(n)
		if err != nil {
			return err
		}
		b, err := io.ReadAll(r)
		if err = errors.Join(err, r.Close()); err != nil {
			return err
		}
		p := filepath.Join(ws.Shadow, filepath.FromSlash(rel))
		if err := os.MkdirAll(filepath.Dir(p), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(p, b, 0o600); err != nil {
			return err
		}
	}
	if err := m.looseClone(ws); err != nil {
		return err
	}
	return takePack(ctx, cloneGit(ws.CommonDir, ws.CommonDir, ""), packClone, open)
}

// looseClone makes an empty clone that borrows from nobody.
func (m *Manager) looseClone(ws Workspace) error {
	for _, d := range []string{"objects/info", "objects/pack", "refs/heads", "info", packedDir} {
		if err := os.MkdirAll(filepath.Join(ws.CommonDir, d), 0o755); err != nil {
			return err
		}
	}
	packed := "# pack-refs with: sorted \n"
	if ws.Onto != "" {
		packed += ws.Base + " refs/heads/" + ws.Onto + "\n"
	}
	config := "[core]\n\trepositoryformatversion = 0\n\tbare = true\n\tfilemode = true\n\thooksPath = /dev/null\n\tlogAllRefUpdates = true\n" +
		"[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n[advice]\n\tdetachedHead = false\n"
	for name, text := range map[string]string{"HEAD": "ref: refs/heads/pawl-none\n", "config": config, packedDir + "/packed-refs": packed} {
		if err := os.WriteFile(filepath.Join(ws.CommonDir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return os.Symlink(packedDir+"/packed-refs", filepath.Join(ws.CommonDir, "packed-refs"))
}

func takePack(ctx context.Context, g git, name string, open func(name string) (io.ReadCloser, error)) error {
	r, err := open(name)
	if err != nil {
		return err
	}
	defer r.Close()
	bin, err := exec.LookPath("git")
	if err != nil {
		return errNoGit
	}
	cmd := exec.CommandContext(ctx, bin, append(slices.Clone(g.opts), "index-pack", "--stdin")...)
	cmd.Dir, cmd.Env, cmd.Stdin = g.dir, g.env, r
	var e bytes.Buffer
	cmd.Stderr = &e
	if err := runBound(cmd, true); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return &GitError{Args: []string{"index-pack"}, Code: cmd.ProcessState.ExitCode(), Stderr: e.String(), Err: err}
	}
	return nil
}
