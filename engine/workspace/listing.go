package workspace

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// listing is what differs between a folder and an index of it.
type listing struct {
	files   []candidate // to be taken in: new or changed
	gone    []string    // in the index, and no longer a file
	closed  []string    // cannot be read
	nested  []string    // repositories in the folder whose files the index does not have
	empty   []string    // folders that hold nothing at all, if the index was not empty
	leftOut []leftOut
}

// list compares the folder with the index and applies the limits. It writes nothing.
func list(ctx context.Context, g git, top, index string, l Limits, tracked func() (map[string]bool, error)) (listing, error) {
	var out listing
	var changed []byte
	var err1 error
	done := make(chan struct{})
	_, missing := os.Stat(index)
	go func() {
		defer close(done)
		if missing == nil {
			changed, err1 = g.run(ctx, nil, "diff-files", "-z", "--name-status", "--no-renames", "--ignore-submodules=all")
		}
	}()
	others, warnings, err2 := untracked(ctx, g, &out, missing == nil)
	<-done
	if err := errors.Join(err1, err2); err != nil {
		return out, err
	}
	fields := zero(changed)
	var replaced []string // files that folders have taken the place of: git does not list those as new
	for i := 0; i+1 < len(fields); i += 2 {
		if st, err := os.Lstat(filepath.Join(top, filepath.FromSlash(fields[i+1]))); fields[i] == "D" && err == nil && st.IsDir() {
			replaced = append(replaced, fields[i+1])
		}
	}
	if len(replaced) > 0 {
		inside, more, err := below(ctx, g, &out, replaced)
		if err != nil {
			return out, err
		}
		others, warnings = append(others, inside...), append(warnings, more...)
		slices.Sort(others)
		others = slices.Compact(others)
	}
	const opening, denied = "warning: could not open directory '", "': Permission denied"
	for l := range strings.Lines(string(warnings)) {
		l = strings.TrimSuffix(l, "\n")
		if strings.HasPrefix(l, opening) && strings.HasSuffix(l, denied) {
			out.closed = append(out.closed, l[len(opening):len(l)-len(denied)])
		}
	}
	var all []candidate
	look := func(p string) {
		full := filepath.Join(top, filepath.FromSlash(p))
		st, err := os.Lstat(full)
		switch {
		case errors.Is(err, fs.ErrPermission):
			out.closed = append(out.closed, p)
		case err != nil || !st.Mode().IsRegular() && st.Mode()&fs.ModeSymlink == 0:
			out.gone = append(out.gone, p)
		case st.Mode().IsRegular() && !readable(full):
			out.closed = append(out.closed, p)
		default:
			all = append(all, candidate{path: p, size: st.Size(), stamp: stampOf(p, st)})
		}
	}
	for i := 0; i+1 < len(fields); i += 2 {
		if fields[i] == "D" { // also where a folder above it has become a link
			out.gone = append(out.gone, fields[i+1])
		} else {
			look(fields[i+1])
		}
	}
	for _, p := range others {
		if dir, ok := strings.CutSuffix(p, "/"); ok {
			out.nested = append(out.nested, dir)
		} else {
			look(p)
		}
	}
	var err error
	if out.files, out.leftOut, err = l.admit(all, tracked); err != nil {
		return out, err
	}
	for _, o := range out.leftOut {
		if o.Files == 1 {
			out.gone = append(out.gone, o.Path) // if the index has it from when it was smaller
		}
	}
	slices.Sort(out.closed)
	out.closed = slices.Compact(out.closed)
	return out, nil
}

// untracked lists the files that the index does not have, and repositories with a slash at their end. Where most are in
// the index already, whole folders of new files are looked into one by one, and what is empty is seen on the way: that
// saves a second walk.
func untracked(ctx context.Context, g git, l *listing, warm bool) (others []string, warnings []byte, err error) {
	all := []string{"ls-files", "-o", "--exclude-standard", "-z"}
	if !warm {
		out, warnings, err := g.both(ctx, nil, all...)
		return zero(out), warnings, err
	}
	out, warnings, err := g.both(ctx, nil, append(all, "--directory")...)
	if err != nil {
		return nil, nil, err
	}
	var dirs []string
	for _, p := range zero(out) {
		if d, ok := strings.CutSuffix(p, "/"); ok {
			dirs = append(dirs, d)
		} else {
			others = append(others, p)
		}
	}
	inside, more, err := below(ctx, g, l, dirs)
	return append(others, inside...), append(warnings, more...), err
}

// below lists the files in folders of which the index has none.
func below(ctx context.Context, g git, l *listing, dirs []string) (others []string, warnings []byte, err error) {
	var full []string
	for _, d := range dirs {
		any := false
		if l.empty, any, err = hollow(l.empty, g.dir, d); err != nil {
			return nil, nil, err
		}
		if any {
			full = append(full, d)
		}
	}
	for len(full) > 0 { // in bunches that fit on a command line
		n, room := 0, 64<<10
		for ; n < len(full) && room > 0; n++ {
			room -= len(full[n]) + 1
		}
		out, more, err := g.both(ctx, nil, append([]string{"ls-files", "-o", "--exclude-standard", "-z", "--"}, full[:n]...)...)
		if err != nil {
			return nil, nil, err
		}
		others, warnings, full = append(others, zero(out)...), append(warnings, more...), full[n:]
	}
	return others, warnings, nil
}

func readable(path string) bool {
	f, err := os.Open(path)
	if err == nil {
		f.Close()
	}
	return !errors.Is(err, fs.ErrPermission)
}

// stampOf is equal for a file that nobody touched.
func stampOf(path string, st fs.FileInfo) uint64 {
	h := fnv.New64a()
	h.Write([]byte(path))
	var b [24]byte
	binary.BigEndian.PutUint64(b[:], uint64(st.Size()))
	binary.BigEndian.PutUint64(b[8:], uint64(st.ModTime().UnixNano()))
	binary.BigEndian.PutUint64(b[16:], uint64(inode(st)))
	h.Write(b[:])
	return h.Sum64()
}

// taken is what addAll took in.
type taken struct {
	tree   string
	closed []string // files and folders that cannot be read
	left   []leftOut
	empty  []string // folders that hold nothing at all
}

// intake says how addAll works.
type intake struct {
	limits  Limits
	tracked func() (map[string]bool, error) // paths that git knows
	nested  bool                            // take in the files of repositories inside, too
	first   bool                            // into an empty repository
}

// addAll brings the index up to what is in the folder, ignored files and what exceeds the limits left out, and makes a
// tree of it. What cannot be read is named; any other failure is an error, and no tree is made.
func addAll(ctx context.Context, g git, top, index string, in intake) (taken, error) {
	var t taken
	var opts []string
	if in.first {
		opts = settings("core.bigFileThreshold=1", "core.compression=1") // one pack instead of thousands of small files
	}
	opened := map[string]bool{}
	for try := 0; ; {
		l, err := list(ctx, g, top, index, in.limits, in.tracked)
		if err != nil {
			return t, err
		}
		t.closed, t.left, t.empty = l.closed, l.leftOut, l.empty
		err = update(ctx, g, opts, &l)
		if err != nil && (ctx.Err() != nil || try == 2) {
			return t, err
		}
		if err != nil {
			try++
			continue // a file changed between being listed and being read
		}
		inner := slices.DeleteFunc(l.nested, func(d string) bool { return opened[d] })
		if !in.nested || len(inner) == 0 {
			break
		}
		if err := open(ctx, g, inner); err != nil {
			return t, fmt.Errorf("files of repositories inside the workspace: %w", err)
		}
		for _, d := range inner {
			opened[d] = true
		}
	}
	var err error
	if in.first {
		if t.empty, err = emptyDirs(ctx, g); err != nil {
			return t, err
		}
	}
	t.tree, err = g.line(ctx, "write-tree")
	return t, err
}

// update carries a listing into the index.
func update(ctx context.Context, g git, opts []string, l *listing) error {
	if len(l.gone) > 0 {
		if _, err := g.run(ctx, joined(l.gone), "update-index", "--force-remove", "-z", "--stdin"); err != nil {
			return err
		}
	}
	if len(l.files) == 0 {
		return nil
	}
	names := make([]string, len(l.files))
	for i, c := range l.files {
		names[i] = c.path
	}
	_, err := g.run(ctx, joined(names), append(slices.Clone(opts), "update-index", "--add", "--remove", "--replace", "-z", "--stdin")...)
	return err
}

func joined(names []string) []byte {
	var b bytes.Buffer
	for _, n := range names {
		b.WriteString(n)
		b.WriteByte(0)
	}
	return b.Bytes()
}

// intake is how the workspace's own snapshots are taken.
func (m *Manager) intake(ctx context.Context, ws Workspace, first bool) intake {
	return intake{limits: m.bounds(), tracked: func() (map[string]bool, error) { return trackedBy(ctx, ws.treeGit()) }, nested: true, first: first}
}

// treeGit is git as it is in the workspace, nil without one.
func (ws Workspace) treeGit() *git {
	switch ws.Kind {
	case KindWorktree:
		g := cloneGit(ws.CommonDir, ws.GitDir, ws.Path)
		return &g
	case KindInPlace:
		g := userGit(ws.Path)
		return &g
	case KindFolder:
	}
	return nil
}

// trackedBy lists the paths that a repository's index holds.
func trackedBy(ctx context.Context, g *git) (map[string]bool, error) {
	known := map[string]bool{}
	if g == nil {
		return known, nil
	}
	out, err := g.run(ctx, nil, "ls-files", "-z")
	if err != nil {
		return known, ctx.Err() // a command may have ruined the index: then nothing is known
	}
	for _, p := range zero(out) {
		known[p] = true
	}
	return known, nil
}
