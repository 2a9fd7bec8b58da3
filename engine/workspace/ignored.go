package workspace

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// cacheNames are directories that tools fill and fill again by themselves. An interrupted command may leave them in
// any state without anybody minding.
var cacheNames = []string{
	"node_modules", ".venv", "venv", "__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".tox", ".nox", ".eggs",
	"target", "build", "dist", "out", "bin", "obj", ".gradle", ".next", ".nuxt", ".svelte-kit", ".parcel-cache", ".turbo", ".cache",
	".terraform", "coverage", ".nyc_output", "htmlcov", "_build", "deps", ".dart_tool", ".bundle", ".idea", ".vscode",
}

// IgnoredManifest hashes names, sizes, modes and times of the files that no snapshot holds because they are ignored,
// caches left out. Two equal hashes mean that none was touched in between; the content is not read.
func (m *Manager) IgnoredManifest(ctx context.Context, ws Workspace) ([32]byte, error) {
	lock, err := m.lock(ctx, ws.Run)
	if err != nil {
		return [32]byte{}, err
	}
	defer lock.Close()
	out, err := shadowGit(ws, lock).run(ctx, nil, "ls-files", "-o", "-i", "--directory", "--exclude-standard", "-z")
	if err != nil {
		return [32]byte{}, fmt.Errorf("listing ignored files: %w", err)
	}
	names := zero(out)
	slices.Sort(names)
	h := sha256.New()
	note := func(rel string, st fs.FileInfo) {
		h.Write([]byte(rel))
		var b [33]byte
		binary.BigEndian.PutUint64(b[1:], uint64(st.Size()))
		binary.BigEndian.PutUint64(b[9:], uint64(st.ModTime().UnixNano()))
		binary.BigEndian.PutUint64(b[17:], uint64(st.Mode()))
		binary.BigEndian.PutUint64(b[25:], uint64(inode(st)))
		h.Write(b[:])
	}
	for _, n := range names {
		n = strings.TrimSuffix(n, "/")
		err := filepath.WalkDir(filepath.Join(ws.Path, filepath.FromSlash(n)), func(p string, d fs.DirEntry, err error) error {
			if err != nil || ctx.Err() != nil {
				return errors.Join(skipUnreadable(err), ctx.Err())
			}
			if d.IsDir() {
				if slices.Contains(cacheNames, d.Name()) {
					return fs.SkipDir
				}
				return nil // its entries tell; its own time changes with theirs
			}
			st, err := os.Lstat(p)
			if err != nil {
				return skipUnreadable(err)
			}
			rel, err := filepath.Rel(ws.Path, p)
			if err == nil {
				note(rel, st)
			}
			return err
		})
		if err != nil {
			return [32]byte{}, fmt.Errorf("listing ignored files: %w", err)
		}
	}
	return [32]byte(h.Sum(nil)), nil
}
