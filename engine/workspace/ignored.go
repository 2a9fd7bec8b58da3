package workspace

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
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

// Of ignored files, those up to this size and number are kept beside the snapshots: settings, small databases. The rest is
// only watched.
const (
	keptIgnored      = 1 << 20
	keptIgnoredFiles = 1000
	keptIgnoredTotal = 32 << 20
)

// ignoredFile is an ignored file as it was.
type ignoredFile struct {
	Path  string      `json:"path"`
	Stamp uint64      `json:"stamp"`
	Size  int64       `json:"size"`
	Mode  fs.FileMode `json:"mode"`
	Blob  string      `json:"blob,omitempty"` // "" if it was not kept
}

// ignored lists the files that no snapshot holds because they are ignored, caches left out.
func ignored(ctx context.Context, ws Workspace, lock *os.File) ([]ignoredFile, error) {
	out, err := shadowGit(ws, lock).run(ctx, nil, "ls-files", "-o", "-i", "--directory", "--exclude-standard", "-z")
	if err != nil {
		return nil, fmt.Errorf("listing ignored files: %w", err)
	}
	var files []ignoredFile
	names := zero(out)
	slices.Sort(names)
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
				rel = filepath.ToSlash(rel)
				files = append(files, ignoredFile{Path: rel, Stamp: stampOf(rel, st), Size: st.Size(), Mode: st.Mode()})
			}
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("listing ignored files: %w", err)
		}
	}
	return files, nil
}

// IgnoredManifest hashes names, sizes, modes and times of the files that no snapshot holds because they are ignored,
// caches left out. Two equal hashes mean that none was touched in between. The small ones are kept as they are now, so
// that [Manager.PutBackIgnored] can undo what an interrupted command does to them; the next durable snapshot makes that
// durable.
func (m *Manager) IgnoredManifest(ctx context.Context, ws Workspace) ([32]byte, error) {
	lock, err := m.lock(ctx, ws.Run)
	if err != nil {
		return [32]byte{}, err
	}
	defer lock.Close()
	return m.ignoredManifest(ctx, ws, lock)
}

func (m *Manager) ignoredManifest(ctx context.Context, ws Workspace, lock *os.File) ([32]byte, error) {
	files, err := ignored(ctx, ws, lock)
	if err != nil {
		return [32]byte{}, err
	}
	h := sha256.New()
	for _, f := range files {
		h.Write([]byte(f.Path))
		var b [13]byte
		binary.BigEndian.PutUint64(b[1:], f.Stamp)
		binary.BigEndian.PutUint32(b[9:], uint32(f.Mode))
		h.Write(b[:])
	}
	sum := [32]byte(h.Sum(nil))
	if ws.Kind != KindWorktree || len(files) == 0 {
		return sum, nil // what is in a folder of the user's is theirs to put back
	}
	place := ignoredRecord(ws, sum)
	if _, err := os.Stat(place); err == nil {
		return sum, nil
	}
	st, total := store{ws.Shadow}, int64(0)
	for i := range files {
		f := &files[i]
		if !f.Mode.IsRegular() || f.Size > keptIgnored || i >= keptIgnoredFiles || total+f.Size > keptIgnoredTotal {
			continue
		}
		total += f.Size
		b, err := os.ReadFile(filepath.Join(ws.Path, filepath.FromSlash(f.Path)))
		if err != nil {
			continue // unreadable, or gone since: it is watched, not kept
		}
		if f.Blob, err = st.put("blob", b); err != nil {
			return sum, fmt.Errorf("keeping ignored files: %w", err)
		}
	}
	data, err := json.Marshal(files)
	if err != nil {
		return sum, err
	}
	if err := os.MkdirAll(filepath.Dir(place), 0o700); err != nil {
		return sum, err
	}
	tmp := place + ".lock"
	if err := os.WriteFile(tmp, data, 0o600); err != nil {
		return sum, err
	}
	return sum, os.Rename(tmp, place)
}

func ignoredRecord(ws Workspace, sum [32]byte) string {
	return filepath.Join(ws.Shadow, "ignored", hex.EncodeToString(sum[:]))
}

// PutBackIgnored undoes what an interrupted command did to ignored files, caches apart, since their manifest was sum.
// Every process of the command must be dead. What is there now is kept first. why says in plain words what cannot be put
// back; then nothing was changed. now is the manifest afterwards.
func (m *Manager) PutBackIgnored(ctx context.Context, ws Workspace, sum [32]byte) (now [32]byte, why string, err error) {
	lock, err := m.lock(ctx, ws.Run)
	if err != nil {
		return now, "", err
	}
	defer lock.Close()
	if now, err = m.ignoredManifest(ctx, ws, lock); err != nil || now == sum {
		return now, "", err
	}
	if ws.Kind != KindWorktree {
		return now, "ignored files in your own folder were changed", nil
	}
	was, err := ignoredAs(ws, sum)
	if err != nil {
		return now, "", err
	}
	have, err := ignoredAs(ws, now)
	if err != nil {
		return now, "", err
	}
	for _, k := range sortedKeys(was) {
		if f, same := was[k], have[k].Stamp == was[k].Stamp && have[k].Mode == was[k].Mode; !same && f.Blob == "" {
			return now, fmt.Sprintf("the ignored file %q was changed, and no snapshot holds it (%s)", k, size(f.Size)), nil
		}
	}
	for _, k := range sortedKeys(have) {
		if _, ok := was[k]; !ok && have[k].Blob == "" {
			return now, fmt.Sprintf("the ignored file %q is new, and too large to be kept (%s)", k, size(have[k].Size)), nil
		}
	}
	if err := syncAll(ws.Shadow); err != nil {
		return now, "", err
	}
	root, err := os.OpenRoot(ws.Path)
	if err != nil {
		return now, "", err
	}
	defer root.Close()
	for _, k := range sortedKeys(have) {
		if _, ok := was[k]; !ok {
			if err := root.Remove(filepath.FromSlash(k)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return now, "", err
			}
		}
	}
	g := shadowGit(ws, lock)
	for _, k := range sortedKeys(was) {
		f := was[k]
		if f.Blob == "" || have[k].Stamp == f.Stamp && have[k].Mode == f.Mode {
			continue
		}
		b, err := g.run(ctx, nil, "cat-file", "blob", f.Blob)
		if err != nil {
			return now, "", err
		}
		if err := putFile(root, filepath.FromSlash(k), b, f.Mode.Perm()); err != nil {
			return now, "", err
		}
	}
	now, err = m.ignoredManifest(ctx, ws, lock)
	return now, "", err
}

// putFile replaces a file below root, which no link leads out of.
func putFile(root *os.Root, name string, data []byte, mode fs.FileMode) error {
	if err := root.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		return err
	}
	tmp := name + ".pawl-new"
	if err := root.WriteFile(tmp, data, 0o600); err != nil {
		return err
	}
	if err := root.Chmod(tmp, mode); err != nil {
		return err
	}
	return root.Rename(tmp, name)
}

// ignoredAs reads what was kept under a manifest.
func ignoredAs(ws Workspace, sum [32]byte) (map[string]ignoredFile, error) {
	out := map[string]ignoredFile{}
	b, err := os.ReadFile(ignoredRecord(ws, sum))
	if errors.Is(err, fs.ErrNotExist) {
		if sum == sha256.Sum256(nil) {
			return out, nil // there were none
		}
		return nil, fmt.Errorf("there is no record of the ignored files: %w", err)
	}
	if err != nil {
		return nil, err
	}
	var files []ignoredFile
	if err := json.Unmarshal(b, &files); err != nil {
		return nil, fmt.Errorf("the record of the ignored files is damaged: %w", err)
	}
	for _, f := range files {
		out[f.Path] = f
	}
	return out, nil
}
