package workspace

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Changed lists the files that differ between two snapshots of a workspace.
func (m *Manager) Changed(ctx context.Context, ws Workspace, from, to Snapshot) ([]FileChange, error) {
	return changes(ctx, shadowGit(ws, nil), from.Tree, to.Tree)
}

func changes(ctx context.Context, g git, from, to string) ([]FileChange, error) {
	out, err := g.run(ctx, nil, "diff-tree", "-r", "-z", "--no-renames", "--no-ext-diff", "--no-textconv", "--raw", "--numstat", from, to)
	if err != nil {
		return nil, err
	}
	var list []FileChange
	at := map[string]int{}
	fields := zero(out)
	for i := 0; i < len(fields); i++ {
		f := fields[i]
		if strings.HasPrefix(f, ":") { // ":mode mode oid oid S", then the path
			info := strings.Fields(f)
			if len(info) != 5 || i+1 >= len(fields) {
				return nil, fmt.Errorf("unreadable difference %q", f)
			}
			i++
			at[fields[i]] = len(list)
			list = append(list, FileChange{Path: fields[i], Status: info[4][0]})
			continue
		}
		part := strings.SplitN(f, "\t", 3) // "added deleted path"
		k, ok := at[part[len(part)-1]]
		if len(part) != 3 || !ok {
			return nil, fmt.Errorf("unreadable difference %q", f)
		}
		if list[k].Added, err = strconv.Atoi(part[0]); err != nil {
			list[k].Added, list[k].Deleted = -1, -1
			continue
		}
		list[k].Deleted, _ = strconv.Atoi(part[1])
	}
	return list, nil
}

// Diff returns the difference between two snapshots' trees as a patch, byte for byte.
func (m *Manager) Diff(ctx context.Context, ws Workspace, from, to string) ([]byte, error) {
	return patch(ctx, shadowGit(ws, nil), from, to)
}

func patch(ctx context.Context, g git, from, to string) ([]byte, error) {
	return g.run(ctx, nil, "-c", "core.quotePath=true", "diff-tree", "-r", "-p", "--no-color", "--no-ext-diff", "--no-textconv", "-M", from, to)
}

// DiffBase returns what the run has changed since its base, committed or not, as a patch. Without git it is empty: a
// folder has no base.
func (m *Manager) DiffBase(ctx context.Context, ws Workspace) ([]byte, error) {
	if ws.Base == "" {
		return nil, nil
	}
	lock, err := m.lock(ctx, ws.Run)
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	// An index and an object directory of our own: what the run has staged, and its repository, stay as they are.
	index := filepath.Join(ws.Shadow, "index.diff")
	if err := dropLock(index); err != nil {
		return nil, err
	}
	if err := copyFile(filepath.Join(ws.GitDir, "index"), index); err != nil {
		return nil, err
	}
	defer os.Remove(index) // made anew each time
	g := cloneGit(ws.CommonDir, ws.GitDir, ws.Path).with("GIT_INDEX_FILE="+index, "GIT_OBJECT_DIRECTORY="+filepath.Join(ws.Shadow, "objects"),
		"GIT_ALTERNATE_OBJECT_DIRECTORIES="+quoteAlternate(filepath.Join(ws.CommonDir, "objects")))
	g.hold = lock
	in := m.intake(ctx, ws, false)
	in.nested = false
	took, err := addAll(ctx, g, ws.Path, index, in)
	if err != nil {
		return nil, err
	}
	return patch(ctx, g, ws.Base, took.tree)
}
