package workspace

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// What is staged need be neither committed nor in any file. A worktree's index names it, and only the clone, which a
// command may ruin or a person delete, holds it: so the shadow gets a copy, and gives it back.

// keepStaged copies staged contents that no commit has into the shadow, if the index, whose blob is given, has changed
// since that was done last. What a command has destroyed already is beyond keeping.
func keepStaged(ctx context.Context, ws Workspace, lock *os.File, index string) error {
	if ws.Kind != KindWorktree || index == "" {
		return nil
	}
	seen := filepath.Join(ws.Shadow, "seen.staged")
	if b, err := os.ReadFile(seen); err == nil && string(b) == index {
		return nil
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	tree := cloneGit(ws.CommonDir, ws.GitDir, ws.Path)
	have, _, err := split(ctx, tree, staged(ctx, tree, ws.Base))
	if err != nil {
		return err
	}
	if len(have) > 0 {
		if err := sendObjects(ctx, tree, shadowGit(ws, lock), have, nil); err != nil {
			return err
		}
	}
	return os.WriteFile(seen, []byte(index), 0o600)
}

// bringStaged gives the clone the staged contents that it lost.
func bringStaged(ctx context.Context, ws Workspace) error {
	tree := cloneGit(ws.CommonDir, ws.GitDir, ws.Path)
	_, lost, err := split(ctx, tree, staged(ctx, tree, ws.Base))
	if err != nil || len(lost) == 0 {
		return err
	}
	from := tree.with("GIT_ALTERNATE_OBJECT_DIRECTORIES=" + quoteAlternate(filepath.Join(ws.Shadow, "objects")))
	if lost, _, err = split(ctx, from, lost); err != nil || len(lost) == 0 {
		return err // what was never kept stays lost; git will say so when it is asked for
	}
	return sendObjects(ctx, from, tree, lost, nil)
}

// staged lists the contents in the index that differ from HEAD's, each once. An index that git cannot read has none.
func staged(ctx context.Context, tree git, base string) []string {
	var oids []string
	against := "HEAD"
	if _, err := tree.run(ctx, nil, "rev-parse", "-q", "--verify", "HEAD^{commit}"); err != nil {
		against = base
	}
	out, err := tree.run(ctx, nil, "diff-index", "--cached", "--raw", "-z", "--no-renames", "--abbrev=64", "--diff-filter=AMT", against)
	if err == nil {
		for _, f := range zero(out) {
			if info := strings.Fields(f); len(info) == 5 && strings.HasPrefix(f, ":") && info[1] != "160000" {
				oids = append(oids, info[3])
			}
		}
	}
	if out, err = tree.run(ctx, nil, "ls-files", "-u", "-z"); err == nil {
		for _, f := range zero(out) {
			if info := strings.Fields(f); len(info) >= 4 && info[0] != "160000" {
				oids = append(oids, info[1])
			}
		}
	}
	slices.Sort(oids)
	return slices.Compact(oids)
}

// split tells the objects that a repository has from those that it lacks.
func split(ctx context.Context, g git, oids []string) (have, lack []string, err error) {
	if len(oids) == 0 || ctx.Err() != nil {
		return nil, nil, ctx.Err()
	}
	var ask bytes.Buffer
	for _, o := range oids {
		ask.WriteString(o + "\n")
	}
	out, err := g.run(ctx, ask.Bytes(), "cat-file", "--batch-check=%(objectname)")
	if err != nil {
		return nil, nil, err
	}
	for l := range strings.Lines(string(out)) {
		oid, missing := strings.CutSuffix(strings.TrimSpace(l), " missing")
		if missing {
			lack = append(lack, oid)
		} else {
			have = append(have, oid)
		}
	}
	return have, lack, nil
}
