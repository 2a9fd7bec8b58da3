package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// The shadow repository holds a run's snapshots. It lies outside of everything that a command can write to, takes
// files byte for byte, and is never collected.

const shadowConfig = `[core]
	repositoryformatversion = 0
	bare = false
	filemode = true
	symlinks = true
	autocrlf = false
	safecrlf = false
	ignoreCase = false
	precomposeUnicode = false
	protectHFS = false
	protectNTFS = false
	hooksPath = /dev/null
	fsmonitor = false
	untrackedCache = false
	splitIndex = false
	quotePath = false
	logAllRefUpdates = false
	excludesFile = /dev/null
	attributesFile = /dev/null
	bigFileThreshold = 32m
	compression = 1
	looseCompression = 1
	checkStat = default
[index]
	version = 2
	threads = true
	recordEndOfIndexEntries = false
	recordOffsetTable = false
[gc]
	auto = 0
[maintenance]
	auto = false
[advice]
	addEmbeddedRepo = false
[submodule]
	recurse = false
[diff]
	ignoreSubmodules = all
	external =
[user]
	name = Pawl
	email = pawl@localhost
`

// asBytes is the attribute set that keeps git from converting anything.
const asBytes = "* -text -eol -filter -ident -working-tree-encoding\n"

// ensureShadow makes the shadow repository, whole or not at all.
func ensureShadow(ctx context.Context, ws Workspace) error {
	if _, err := os.Stat(filepath.Join(ws.Shadow, "config")); err == nil {
		return nil
	}
	tmp := ws.Shadow + ".new"
	if err := os.RemoveAll(tmp); err != nil {
		return err
	}
	for _, d := range []string{"objects/info", "objects/pack", "refs/pawl", "info"} {
		if err := os.MkdirAll(filepath.Join(tmp, d), 0o700); err != nil {
			return err
		}
	}
	exclude, err := excludes(ctx, ws)
	if err != nil {
		return fmt.Errorf("reading what the repository ignores: %w", err)
	}
	for name, text := range map[string]string{"HEAD": "ref: refs/heads/none\n", "config": shadowConfig, "info/attributes": asBytes, "info/exclude": exclude} {
		if err := os.WriteFile(filepath.Join(tmp, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	return os.Rename(tmp, ws.Shadow)
}

// excludes is what the user ignores beside the .gitignore files: in the repository and everywhere.
func excludes(ctx context.Context, ws Workspace) (string, error) {
	var b strings.Builder
	if ws.RepoGit == "" {
		return "", nil
	}
	global, err := userGit(ws.Repo).line(ctx, "config", "--type=path", "--get", "core.excludesFile")
	if err != nil && gitCode(err) != 1 {
		return "", err
	}
	if global == "" {
		if dir, err := os.UserConfigDir(); err == nil {
			global = filepath.Join(dir, "git", "ignore")
		}
	}
	for _, p := range []string{global, filepath.Join(ws.RepoGit, "info", "exclude")} {
		text, err := os.ReadFile(p)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		b.Write(text)
		b.WriteString("\n")
	}
	return b.String(), nil
}

func shadowIndex(ws Workspace) string { return filepath.Join(ws.Shadow, "index.files") }

// shadowGit takes and restores snapshots. hold is the run's lock, which git keeps for as long as it lives.
func shadowGit(ws Workspace, hold *os.File) git {
	env := append(bare(), "GIT_DIR="+ws.Shadow, "GIT_WORK_TREE="+ws.Path, "GIT_INDEX_FILE="+shadowIndex(ws))
	return git{dir: ws.Path, env: env, hold: hold, opts: settings("core.fsync=none", "core.bare=false")}
}

// tidyShadow removes what a killed git left behind. The run's lock must be held: then nobody else's can be there.
func tidyShadow(ws Workspace) error {
	for _, pattern := range []string{"index*.lock", "refs/pawl/*.lock", "objects/pack/tmp_*", "objects/??/tmp_obj_*", "objects/tmp_*", "objects/.new-*"} {
		found, err := filepath.Glob(filepath.Join(ws.Shadow, filepath.FromSlash(pattern)))
		if err != nil {
			return err
		}
		for _, p := range found {
			if err := os.RemoveAll(p); err != nil {
				return err
			}
		}
	}
	return nil
}

// addAll records every file below top that is not ignored and returns the tree. It names files that could not be read;
// any other failure is an error, and no tree is made.
func addAll(ctx context.Context, g git, top, index string, first bool) (tree string, skipped []string, err error) {
	var opts []string
	if first {
		opts = settings("core.bigFileThreshold=1", "core.compression=1") // one pack instead of thousands of small files
	}
	_, stderr, err := g.both(ctx, nil, append(opts, "add", "-A", "--ignore-errors", "--", ".")...)
	nested := err != nil && bytes.Contains(stderr, []byte("does not have a commit checked out"))
	links, lerr := gitlinks(index)
	if lerr != nil {
		return "", nil, lerr
	}
	if nested || len(links) > 0 {
		if err := openNested(ctx, g, top, index, links); err != nil {
			return "", nil, fmt.Errorf("files of repositories inside the workspace: %w", err)
		}
		_, stderr, err = g.both(ctx, nil, "add", "-A", "--ignore-errors", "--", ".")
	}
	if err != nil || bytes.Contains(stderr, []byte("could not open directory")) {
		if skipped, err = unreadable(ctx, g, top, stderr, err); err != nil {
			return "", nil, err
		}
	}
	tree, err = g.line(ctx, "write-tree")
	return tree, skipped, err
}

// unreadable tells files without read permission, which a snapshot leaves out and names, from every other failure: it
// tries to read each of those that were left out.
func unreadable(ctx context.Context, g git, top string, stderr []byte, failure error) ([]string, error) {
	var names []string
	const opening, denied = "warning: could not open directory '", "': Permission denied"
	for l := range strings.Lines(string(stderr)) {
		l = strings.TrimSuffix(l, "\n")
		if strings.HasPrefix(l, opening) && strings.HasSuffix(l, denied) {
			names = append(names, l[len(opening):len(l)-len(denied)])
		}
	}
	if failure != nil && gitCode(failure) != 1 && !bytes.Contains(stderr, []byte("adding files failed")) {
		return nil, failure
	}
	if failure != nil {
		out, err := g.run(ctx, nil, "ls-files", "-o", "-m", "--exclude-standard", "-z")
		if err != nil {
			return nil, err
		}
		found := false
		for _, n := range zero(out) {
			f, err := os.Open(filepath.Join(top, filepath.FromSlash(n)))
			if err == nil {
				f.Close()
			}
			if !errors.Is(err, fs.ErrPermission) {
				continue // written since, or not what git stumbled over
			}
			found = true
			names = append(names, n)
		}
		if !found {
			return nil, failure
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// openNested puts the files of repositories inside the workspace into the index one by one. git by itself records no
// more of such a repository than which commit it is on.
func openNested(ctx context.Context, g git, top, index string, links []string) error {
	inner, err := nestedRepos(ctx, g, top)
	if err != nil {
		return err
	}
	for _, l := range links {
		if !slices.Contains(inner, l) {
			inner = append(inner, l)
		}
	}
	slices.SortFunc(inner, func(a, b string) int { return strings.Count(a, "/") - strings.Count(b, "/") })
	for _, dir := range inner {
		if _, err := g.run(ctx, []byte(dir+"\x00"), "update-index", "--force-remove", "-z", "--stdin"); err != nil {
			return err
		}
		in := g.with("GIT_WORK_TREE="+filepath.Join(top, filepath.FromSlash(dir)), "GIT_INDEX_FILE="+index+".none")
		in.dir = filepath.Join(top, filepath.FromSlash(dir))
		out, err := in.run(ctx, nil, "ls-files", "-o", "--exclude-standard", "-z")
		if err != nil {
			return err
		}
		var list bytes.Buffer
		for _, f := range zero(out) {
			if !strings.HasSuffix(f, "/") {
				list.WriteString(dir + "/" + f + "\x00")
			}
		}
		if list.Len() == 0 {
			// git stumbles over an empty repository unless the index knows a file in it; the next add forgets it again.
			oid, err := g.run(ctx, []byte{}, "hash-object", "-w", "--stdin")
			if err != nil {
				return err
			}
			keep := fmt.Sprintf("100644 %s\t%s/.pawl-none\x00", bytes.TrimSpace(oid), dir)
			if _, err := g.run(ctx, []byte(keep), "update-index", "-z", "--index-info"); err != nil {
				return err
			}
			continue
		}
		if _, err := g.run(ctx, list.Bytes(), "update-index", "--add", "-z", "--stdin"); err != nil {
			return err
		}
	}
	return nil
}

// nestedRepos finds the directories below top that hold a .git, ignored ones left out.
func nestedRepos(ctx context.Context, g git, top string) ([]string, error) {
	var found []string
	err := filepath.WalkDir(top, func(p string, d fs.DirEntry, err error) error {
		if err != nil || ctx.Err() != nil {
			return errors.Join(skipUnreadable(err), ctx.Err())
		}
		if !d.IsDir() || p == top {
			return nil
		}
		if d.Name() == ".git" {
			return fs.SkipDir
		}
		if _, err := os.Lstat(filepath.Join(p, ".git")); err == nil {
			rel, err := filepath.Rel(top, p)
			if err != nil {
				return err
			}
			found = append(found, filepath.ToSlash(rel))
		}
		return nil
	})
	if err != nil || len(found) == 0 {
		return nil, err
	}
	// This one command does not know literal paths; behind a dot and a slash nothing is taken for a pattern's sign.
	ask := "./" + strings.Join(found, "\x00./") + "\x00"
	out, err := g.with("GIT_LITERAL_PATHSPECS=0").run(ctx, []byte(ask), "check-ignore", "-z", "--no-index", "--stdin")
	if err != nil && gitCode(err) != 1 {
		return nil, err
	}
	ignored := zero(out)
	return slices.DeleteFunc(found, func(f string) bool { return slices.Contains(ignored, "./"+f) }), nil
}

func skipUnreadable(err error) error {
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
