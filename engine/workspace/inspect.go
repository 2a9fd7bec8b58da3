package workspace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Check says whether a request can be fulfilled, without making anything. The error tells what to do.
func (m *Manager) Check(ctx context.Context, r Request) error {
	_, err := inspect(ctx, r)
	return err
}

// inspect finds out what a run would start from: kind, repository, branch and base.
func inspect(ctx context.Context, r Request) (Workspace, error) {
	ws := Workspace{Run: r.Run, Title: r.Title, Kind: KindFolder}
	if r.From != nil {
		return fork(ctx, r)
	}
	abs, err := filepath.Abs(r.Repo)
	if err != nil {
		return ws, err
	}
	real, err := filepath.EvalSymlinks(abs)
	if err != nil {
		return ws, fmt.Errorf("the folder cannot be used: %w; name another", err)
	}
	if st, err := os.Stat(real); err != nil || !st.IsDir() {
		return ws, refuse(real+" cannot be a workspace", "it is not a folder", "name the folder it lies in")
	}
	ws.Repo = real
	g := userGit(real)
	bareRepo, err := g.line(ctx, "rev-parse", "--is-bare-repository")
	switch {
	case err != nil && noRepository(err) && !hasGit(real):
		return folder(ws, r, real)
	case errors.Is(err, errNoGit) && !hasGit(real):
		return folder(ws, r, real)
	case err != nil:
		return ws, fmt.Errorf("the repository at %s cannot be read: %w", real, err)
	case bareRepo == "true":
		return ws, refuse("a run cannot work in "+real, "it is a bare repository", "clone it and name the clone")
	}
	if ws.Repo, err = g.line(ctx, "rev-parse", "--show-toplevel"); err != nil {
		return ws, fmt.Errorf("the repository at %s cannot be read: %w", real, err)
	}
	if err := tooWide(ws.Repo); err != nil {
		return ws, err
	}
	dirs, err := g.line(ctx, "rev-parse", "--path-format=absolute", "--git-common-dir", "--absolute-git-dir")
	if err != nil {
		return ws, fmt.Errorf("the repository at %s cannot be read: %w", real, err)
	}
	common, gitDir, _ := strings.Cut(dirs, "\n")
	ws.RepoGit = common
	if ref, err := g.line(ctx, "symbolic-ref", "-q", "--short", "HEAD"); err == nil {
		ws.Onto = ref
	}
	from := "HEAD"
	if r.Ref != "" {
		from = r.Ref
		if _, err := g.run(ctx, nil, "show-ref", "--verify", "-q", "refs/heads/"+r.Ref); err == nil {
			ws.Onto = r.Ref
		}
	}
	ws.Base, err = g.line(ctx, "rev-parse", "-q", "--verify", "--end-of-options", from+"^{commit}")
	if err != nil && r.Ref != "" {
		return ws, refuse("a run cannot start from "+r.Ref, "the repository has no such commit", "name a branch, tag or commit that it has")
	}
	ws.Name, _ = g.line(ctx, "config", "--get", "user.name")
	ws.Email, _ = g.line(ctx, "config", "--get", "user.email")
	if ws.Name == "" || ws.Email == "" {
		ws.Name, ws.Email = "Pawl "+r.Run, "pawl@localhost"
	}
	if r.InPlace {
		ws.Kind, ws.Path, ws.GitDir, ws.CommonDir, ws.Branch = KindInPlace, ws.Repo, gitDir, common, ws.Onto
		return ws, nil
	}
	ws.Kind = KindWorktree
	if ws.Base == "" {
		return ws, refuse("no worktree can be made of "+ws.Repo, "its branch has no commit yet", "commit something first, or work in the folder itself with --in-place")
	}
	ws.Notes = lacks(ctx, g, ws.Base)
	return ws, nil
}

func folder(ws Workspace, r Request, real string) (Workspace, error) {
	if r.Ref != "" {
		return ws, refuse("a run cannot start from "+r.Ref, real+" is no git repository", "leave out the commit, or name a repository")
	}
	ws.Path = real
	return ws, tooWide(real)
}

// tooWide refuses folders whose snapshot would be of the user's whole life.
func tooWide(path string) error {
	next := "name a project folder below it"
	if path == filepath.Dir(path) {
		return refuse(path+" cannot be a workspace", "it is the whole file system", next)
	}
	if home, err := os.UserHomeDir(); err == nil {
		if h, err := filepath.EvalSymlinks(home); err == nil && within(h, path) {
			return refuse(path+" cannot be a workspace", "it holds your home directory", next)
		}
	}
	return nil
}

// lacks names what a fresh worktree of the commit will miss.
func lacks(ctx context.Context, g git, commit string) []string {
	var notes []string
	if _, err := g.run(ctx, nil, "cat-file", "-e", commit+":.gitmodules"); err == nil {
		notes = append(notes, "submodules are empty folders here: the run sees the commit they point to, not their files")
	}
	if b, err := g.run(ctx, nil, "cat-file", "blob", commit+":.gitattributes"); err == nil && strings.Contains(string(b), "filter=lfs") {
		notes = append(notes, "files kept in LFS are pointers here: fetch them with a setup command if the run needs them")
	}
	return notes
}

func noRepository(err error) bool {
	var g *GitError
	return errors.As(err, &g) && strings.Contains(g.Stderr, "not a git repository")
}

// hasGit says whether a folder or one above it holds a .git, even one that git will not read.
func hasGit(dir string) bool {
	for {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return true
		}
		up := filepath.Dir(dir)
		if up == dir {
			return false
		}
		dir = up
	}
}

// Dirty lists the files of the user's checkout with uncommitted changes, untracked ones included. A folder without
// git has none.
func (m *Manager) Dirty(ctx context.Context, repo string) ([]string, error) {
	ws, err := inspect(ctx, Request{Run: "r", Repo: repo, InPlace: true})
	if err != nil || ws.Kind == KindFolder {
		return nil, err
	}
	return changedFiles(ctx, userGit(ws.Repo))
}

// changedFiles lists what a status would, by path.
func changedFiles(ctx context.Context, g git, more ...string) ([]string, error) {
	out, err := g.run(ctx, nil, append([]string{"status", "--porcelain=v1", "-z", "--no-renames"}, more...)...)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, l := range zero(out) {
		if len(l) > 3 {
			files = append(files, l[3:])
		}
	}
	return files, nil
}
