//go:build unix

package workspace

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// WriteResult says what a write did.
type WriteResult struct {
	Path    string      // the real path
	Already bool        // the file had the new content before
	Mode    fs.FileMode // of the file now
}

// place is a file's parent directory, held open so that it cannot be exchanged for another, and its name there.
type place struct {
	dir  *os.File
	name string
	abs  string
}

// hold opens the parent of a path without following a link on the way: Resolve has followed them, and one that has
// come since leads somewhere that nobody agreed to. With mkdir, missing directories are made.
func (m *Manager) hold(ws Workspace, path string, mkdir bool) (place, error) {
	abs, inside, err := m.Resolve(ws, path)
	if err != nil {
		return place{}, err
	}
	if !inside {
		return place{}, refuse(path+" was not touched", "it leads to "+abs+", outside of the workspace", "use a path within "+ws.Path)
	}
	root, err := filepath.EvalSymlinks(ws.Path)
	if err != nil {
		return place{}, err
	}
	rel, err := filepath.Rel(root, abs)
	if err != nil || rel == "." {
		return place{}, refuse(path+" was not touched", "it is the workspace itself", "name a file in it")
	}
	names := strings.Split(rel, string(filepath.Separator))
	fd, err := unix.Open(root, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return place{}, &fs.PathError{Op: "open", Path: root, Err: err}
	}
	for _, n := range names[:len(names)-1] {
		next, err := openDir(fd, n, mkdir)
		unix.Close(fd)
		if err != nil {
			return place{}, &fs.PathError{Op: "open", Path: abs, Err: err}
		}
		fd = next
	}
	return place{dir: os.NewFile(uintptr(fd), filepath.Dir(abs)), name: names[len(names)-1], abs: abs}, nil
}

func openDir(at int, name string, mkdir bool) (int, error) {
	const flags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	fd, err := unix.Openat(at, name, flags, 0)
	if errors.Is(err, unix.ENOENT) && mkdir {
		if err := unix.Mkdirat(at, name, 0o777); err != nil && !errors.Is(err, unix.EEXIST) {
			return -1, err
		}
		fd, err = unix.Openat(at, name, flags, 0)
	}
	return fd, err
}

// open opens the file itself for reading, never through a link, and never waiting for a pipe's other end.
func (p place) open() (*os.File, error) {
	fd, err := unix.Openat(int(p.dir.Fd()), p.name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: p.abs, Err: err}
	}
	f := os.NewFile(uintptr(fd), p.abs)
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		f.Close()
		return nil, &fs.PathError{Op: "open", Path: p.abs, Err: errors.Join(errNotRegular, err)}
	}
	return f, nil
}

var errNotRegular = errors.New("it is no regular file")

// digest hashes a file; a missing one is zero.
func (p place) digest() ([32]byte, fs.FileInfo, error) {
	f, err := p.open()
	if errors.Is(err, fs.ErrNotExist) {
		return [32]byte{}, nil, nil
	}
	if err != nil {
		return [32]byte{}, nil, err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return [32]byte{}, nil, err
	}
	st, err := f.Stat()
	return [32]byte(h.Sum(nil)), st, err
}

// FileDigest is the SHA-256 of a file in the workspace, zero if there is none.
func (m *Manager) FileDigest(_ context.Context, ws Workspace, path string) ([32]byte, error) {
	p, err := m.hold(ws, path, false)
	if errors.Is(err, fs.ErrNotExist) {
		return [32]byte{}, nil
	}
	if err != nil {
		return [32]byte{}, err
	}
	defer p.dir.Close()
	d, _, err := p.digest()
	return d, err
}

// ReadFile reads at most max bytes of a file in the workspace. The digest and size are of the whole file.
func (m *Manager) ReadFile(_ context.Context, ws Workspace, path string, max int64) (data []byte, digest [32]byte, size int64, err error) {
	p, err := m.hold(ws, path, false)
	if err != nil {
		return nil, digest, 0, err
	}
	defer p.dir.Close()
	f, err := p.open()
	if err != nil {
		return nil, digest, 0, err
	}
	defer f.Close()
	h := sha256.New()
	if data, err = io.ReadAll(io.TeeReader(io.LimitReader(f, max), h)); err != nil {
		return nil, digest, 0, err
	}
	rest, err := io.Copy(h, f)
	return data, [32]byte(h.Sum(nil)), int64(len(data)) + rest, err
}

// Write replaces the content of one file if, at the moment of the exchange, it still is what the caller knows: old is
// the SHA-256 of that, zero for no file; new is the one of data. A file that has the new content already is left
// alone, so a write that was interrupted can be repeated. Otherwise the file is somebody else's by now, stays as it
// is, and the error is a [*DriftError]. mode is for a new file; an existing one keeps its own. The new content is
// durable when Write returns.
func (m *Manager) Write(ctx context.Context, ws Workspace, path string, old, new [32]byte, data []byte, mode fs.FileMode) (WriteResult, error) {
	if sha256.Sum256(data) != new {
		return WriteResult{}, errors.New("the data is not what was announced: its hash differs")
	}
	abs, _, err := m.Resolve(ws, path)
	if err != nil {
		return WriteResult{}, err
	}
	if root, err := filepath.EvalSymlinks(ws.Path); err == nil {
		if rel, err := filepath.Rel(root, abs); err == nil && gitOwn(rel) {
			return WriteResult{}, refuse(path+" was not written", "it lies in git's own directory", "use a git command")
		}
	}
	p, err := m.hold(ws, path, old == [32]byte{})
	if err != nil {
		if old != [32]byte{} && errors.Is(err, fs.ErrNotExist) {
			return WriteResult{}, &DriftError{Path: path, Known: old, Want: new, Why: "its directory is gone"}
		}
		return WriteResult{}, err
	}
	defer p.dir.Close()
	w := write{m: m, ws: ws, p: p, path: path, old: old, new: new, mode: mode}
	if err := w.recover(); err != nil {
		return WriteResult{}, err
	}
	disk, st, err := p.digest()
	switch {
	case err != nil:
		return WriteResult{}, err
	case st != nil && disk == new:
		return WriteResult{Path: p.abs, Already: true, Mode: st.Mode().Perm()}, p.dir.Sync()
	case disk != old || (st != nil) != (old != [32]byte{}):
		return WriteResult{}, w.drift(disk, "it was changed before it was to be written")
	}
	return w.replace(ctx, data, st)
}

// write is one exchange. Its spare file, which holds the new content before and the old one after, has a name that a
// repetition finds again.
type write struct {
	m        *Manager
	ws       Workspace
	p        place
	path     string
	old, new [32]byte
	mode     fs.FileMode
}

func (w write) drift(disk [32]byte, why string) error {
	return &DriftError{Path: w.path, Known: w.old, Disk: disk, Want: w.new, Why: why}
}

func (w write) spareName() string {
	sum := sha256.Sum256([]byte(w.ws.Run + "\x00" + w.p.abs + "\x00" + hex.EncodeToString(w.new[:])))
	return ".pawl-" + hex.EncodeToString(sum[:8])
}

// spares lists where the spare file may be: in a directory of our own on the same file system, so that nobody sees
// it, else beside the file.
func (w write) spares() []place {
	var out []place
	if w.m.state != "" && w.ws.Kind == KindWorktree {
		dir := w.m.at("swap", w.ws.Run)
		if os.MkdirAll(dir, 0o700) == nil {
			if d, err := os.Open(dir); err == nil {
				out = append(out, place{dir: d, name: w.spareName(), abs: filepath.Join(dir, w.spareName())})
			}
		}
	}
	return append(out, place{dir: w.p.dir, name: w.spareName(), abs: filepath.Join(filepath.Dir(w.p.abs), w.spareName())})
}

// recover clears up after an interrupted try. A spare that is neither the old nor the new content is somebody's edit
// that was exchanged in the last moment before the interruption: it goes back to its place.
func (w write) recover() error {
	for i, s := range w.spares() {
		own := i == 0 && s.dir != w.p.dir
		err := w.recoverFrom(s)
		if own {
			s.dir.Close()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (w write) recoverFrom(s place) error {
	d, st, err := s.digest()
	if err != nil || st == nil {
		return err
	}
	here, hst, err := w.p.digest()
	if err != nil {
		return err
	}
	if d != w.old && d != w.new && hst != nil && here == w.new {
		if err := exchange(s, w.p); err != nil {
			return err
		}
		if err := w.p.dir.Sync(); err != nil {
			return err
		}
		_ = s.remove() // our own content, which was never agreed to
		return w.drift(d, "it was changed while it was being written; the change is in place")
	}
	if hst == nil && d != w.new && w.old != [32]byte{} {
		return nil // nothing is at the file's place: keep what may be its only copy
	}
	return s.remove()
}

func (p place) remove() error {
	err := unix.Unlinkat(int(p.dir.Fd()), p.name, 0)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	return err
}

func (w write) replace(ctx context.Context, data []byte, st fs.FileInfo) (WriteResult, error) {
	if err := ctx.Err(); err != nil {
		return WriteResult{}, err
	}
	mode := w.mode.Perm()
	if st != nil {
		mode = st.Mode().Perm()
	} else if mode == 0 {
		mode = 0o666 &^ umask()
	}
	var err error
	spares := w.spares()
	defer func() {
		for _, s := range spares[:len(spares)-1] {
			s.dir.Close()
		}
	}()
	for _, s := range spares {
		if err = w.fill(s, data, mode, st); err != nil {
			return WriteResult{}, err
		}
		w.m.pass("filled")
		if err = w.put(s, st != nil); !errors.Is(err, unix.EXDEV) {
			break
		}
		_ = s.remove() // another file system: the next place is beside the file
	}
	if err != nil {
		return WriteResult{}, err
	}
	return WriteResult{Path: w.p.abs, Mode: mode}, nil
}

// fill makes the spare file, complete and durable before it gets its name.
func (w write) fill(s place, data []byte, mode fs.FileMode, st fs.FileInfo) error {
	part := place{dir: s.dir, name: s.name + ".part", abs: s.abs + ".part"}
	if err := part.remove(); err != nil {
		return err
	}
	fd, err := unix.Openat(int(part.dir.Fd()), part.name, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return &fs.PathError{Op: "create", Path: part.abs, Err: err}
	}
	f := os.NewFile(uintptr(fd), part.abs)
	_, err = f.Write(data)
	if st != nil && os.Geteuid() == 0 {
		var own unix.Stat_t
		if unix.Fstatat(int(w.p.dir.Fd()), w.p.name, &own, unix.AT_SYMLINK_NOFOLLOW) == nil {
			err = errors.Join(err, f.Chown(int(own.Uid), int(own.Gid)))
		}
	}
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	if err == nil {
		err = rename(part, s, true)
	}
	if err != nil {
		_ = part.remove() // incomplete
		return fmt.Errorf("writing %s: %w", w.path, err)
	}
	return nil
}

// put brings the spare to the file's place and then looks at what it got in return.
func (w write) put(s place, exists bool) error {
	if !exists {
		err := rename(s, w.p, false)
		if errors.Is(err, fs.ErrExist) {
			_ = s.remove()
			disk, _, derr := w.p.digest()
			return errors.Join(w.drift(disk, "it was made by somebody else in the last moment"), derr)
		}
		if err != nil {
			return err
		}
		return w.p.dir.Sync()
	}
	if err := exchange(s, w.p); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			_ = s.remove()
			return w.drift([32]byte{}, "it was removed in the last moment")
		}
		return err
	}
	w.m.pass("exchanged")
	was, st, err := s.digest()
	if err == nil && st != nil && was == w.old {
		if err := w.p.dir.Sync(); err != nil {
			return err
		}
		return s.remove()
	}
	if xerr := exchange(s, w.p); xerr != nil {
		return fmt.Errorf("%s was changed in the last moment; the change is kept in %s: %w", w.path, s.abs, xerr)
	}
	_ = s.remove() // our own content again
	if err != nil {
		return err
	}
	return w.drift(was, "it was changed in the last moment; the change is in place")
}
