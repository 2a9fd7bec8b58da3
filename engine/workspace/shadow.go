package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
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
	for _, pattern := range []string{"index*.lock", "ignored/*.lock", "refs/pawl/*.lock", "objects/pack/tmp_*", "objects/??/tmp_obj_*", "objects/tmp_*", "objects/.new-*"} {
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

// open lets git look into repositories inside the workspace, which it does where its index has a file of theirs. By
// itself it records no more of one than which commit it is on. The files that are named for this do not exist, and are
// taken out again when the index is next brought up to date.
func open(ctx context.Context, g git, dirs []string) error {
	oid, err := g.run(ctx, []byte{}, "hash-object", "-w", "--stdin")
	if err != nil {
		return err
	}
	var list bytes.Buffer
	for _, d := range dirs {
		fmt.Fprintf(&list, "100644 %s\t%s/.pawl-none\x00", bytes.TrimSpace(oid), d)
	}
	_, err = g.run(ctx, list.Bytes(), "update-index", "-z", "--index-info")
	return err
}

func skipUnreadable(err error) error {
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
