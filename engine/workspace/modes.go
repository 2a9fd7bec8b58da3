package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
)

// Git keeps one bit of a file's mode. The rest is in a manifest: a line with the creation mask it was made under, and
// then, ended by NUL, "mode path" for each file whose mode is not the one that git would give it under that mask.

type modeList struct {
	mask  fs.FileMode
	files map[string]fs.FileMode
}

func (l modeList) encode() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%o\n", l.mask)
	for _, p := range sortedKeys(l.files) {
		fmt.Fprintf(&b, "%o %s\x00", l.files[p], p)
	}
	return b.Bytes()
}

func decodeModes(b []byte) (modeList, error) {
	head, rest, ok := strings.Cut(string(b), "\n")
	mask, err := strconv.ParseUint(head, 8, 32)
	if !ok || err != nil {
		return modeList{}, errors.New("unreadable list of modes")
	}
	l := modeList{mask: fs.FileMode(mask), files: map[string]fs.FileMode{}}
	for _, line := range zero([]byte(rest)) {
		m, p, _ := strings.Cut(line, " ")
		v, err := strconv.ParseUint(m, 8, 32)
		if err != nil {
			return modeList{}, errors.New("unreadable list of modes")
		}
		l.files[p] = fs.FileMode(v)
	}
	return l, nil
}

// of is the mode that a file had.
func (l modeList) of(path string, exec bool) fs.FileMode {
	if m, ok := l.files[path]; ok {
		return m
	}
	return plainMode(exec, l.mask)
}

func plainMode(exec bool, mask fs.FileMode) fs.FileMode {
	if exec {
		return 0o777 &^ mask
	}
	return 0o666 &^ mask
}

// modes makes the manifest of the files in the shadow's index, and counts them. Files that git found unchanged since
// the last manifest are not looked at again: a change of mode changes the time that git compares.
func (m *Manager) modes(ws Workspace, s *Snapshot) ([]byte, error) {
	es, err := readIndex(shadowIndex(ws))
	if err != nil {
		return nil, err
	}
	seenIndex, seenModes := filepath.Join(ws.Shadow, "seen.index"), filepath.Join(ws.Shadow, "seen.modes")
	old := modeList{}
	seen := map[string][40]byte{}
	if b, err := os.ReadFile(seenModes); err == nil {
		if old, err = decodeModes(b); err == nil && old.mask == umask() {
			before, err := readIndex(seenIndex)
			if err != nil {
				return nil, err
			}
			for _, e := range before {
				seen[e.path] = e.stat
			}
		}
	}
	list := modeList{mask: umask(), files: map[string]fs.FileMode{}}
	var fresh []entry
	for _, e := range es {
		s.Files++
		s.Bytes += int64(e.size)
		if e.mode&0o170000 != 0o100000 {
			continue
		}
		if st, ok := seen[e.path]; ok && st == e.stat {
			if mode, odd := old.files[e.path]; odd {
				list.files[e.path] = mode
			}
			continue
		}
		fresh = append(fresh, e)
	}
	statAll(ws.Path, fresh, list)
	b := list.encode()
	// The list before the index: if we die in between, the older index makes us look again.
	if err := os.Remove(seenIndex); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err := os.WriteFile(seenModes, b, 0o600); err != nil {
		return nil, err
	}
	return b, copyFile(shadowIndex(ws), seenIndex)
}

func statAll(top string, es []entry, list modeList) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	n := min(runtime.GOMAXPROCS(0), 4)
	for w := range n {
		wg.Go(func() {
			for i := w; i < len(es); i += n {
				st, err := os.Lstat(filepath.Join(top, filepath.FromSlash(es[i].path)))
				if err != nil || !st.Mode().IsRegular() {
					continue // gone since: the next snapshot will say so
				}
				if st.Mode().Perm() != plainMode(es[i].mode&0o100 != 0, list.mask) {
					mu.Lock()
					list.files[es[i].path] = st.Mode().Perm()
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
}

func copyFile(from, to string) error {
	b, err := os.ReadFile(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // an empty workspace has no index yet
	}
	if err != nil {
		return err
	}
	return os.WriteFile(to, b, 0o600)
}

// umask is read, not set and set back: other goroutines make files meanwhile.
var umask = sync.OnceValue(func() fs.FileMode {
	b, err := os.ReadFile("/proc/self/status")
	if err == nil {
		for l := range strings.Lines(string(b)) {
			if v, ok := strings.CutPrefix(l, "Umask:"); ok {
				if m, err := strconv.ParseUint(strings.TrimSpace(v), 8, 32); err == nil {
					return fs.FileMode(m)
				}
			}
		}
	}
	return 0o022
})

// putModes gives files back the modes of a snapshot where they differ, paths being those that may.
func putModes(ctx context.Context, g git, top, commit string, es []entry) error {
	b, err := g.run(ctx, nil, "cat-file", "blob", commit+":"+partModes)
	if err != nil {
		return err
	}
	want, err := decodeModes(b)
	if err != nil {
		return err
	}
	for _, e := range es {
		if e.mode&0o170000 != 0o100000 {
			continue
		}
		p := filepath.Join(top, filepath.FromSlash(e.path))
		st, err := os.Lstat(p)
		if err != nil || !st.Mode().IsRegular() {
			continue
		}
		mode := want.of(e.path, e.mode&0o100 != 0)
		if st.Mode().Perm() != mode {
			if err := os.Chmod(p, mode); err != nil {
				return err
			}
		}
	}
	return nil
}
