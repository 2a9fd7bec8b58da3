package tool

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"pawl/engine/machine"
	"pawl/engine/policy"
)

// paramPath is the contract parameter that holds a file's resolved place, so
// that an attempt acts where the call was judged and nowhere else.
const paramPath = "path"

// place is where a path of the model leads, links followed.
type place struct {
	root   string // the workspace, links followed
	abs    string
	rel    string // from root, with slashes; only if inside
	inside bool
}

// locate follows a path to its real target. Nothing is opened.
func locate(env Env, p string) (place, error) {
	if strings.ContainsRune(p, 0) {
		return place{}, argErrorf("The path %s holds a NUL byte; no file has such a name.", quoteShort(p))
	}
	if p == "" {
		p = "."
	}
	root, _, err := env.Manager.Resolve(env.Space, ".")
	if err != nil {
		return place{}, fmt.Errorf("resolve the workspace: %w", err)
	}
	abs, inside, err := env.Manager.Resolve(env.Space, p)
	if err != nil {
		return place{}, argErrorf("The path %s cannot be followed: %v.", quoteShort(p), plain(err))
	}
	pl := place{root: root, abs: abs, inside: inside}
	if inside {
		rel, err := filepath.Rel(root, abs)
		if err != nil || rel == ".." || strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
			return place{}, argErrorf("The path %s leads out of the workspace.", quoteShort(p))
		}
		pl.rel = slash(rel)
	}
	return pl, nil
}

// show names the place on one line: relative to the workspace where it lies in it.
func (p place) show() string {
	if p.inside {
		return quoteName(p.rel)
	}
	return quoteName(p.abs)
}

// target is the same for the record: the name as it is.
func (p place) target() string {
	if p.inside {
		return p.rel
	}
	return p.abs
}

// access is how policy sees a use of this place.
func (p place) access() policy.Access {
	a := policy.Access{Path: p.abs, Inside: p.inside && !inGit(p.rel)}
	if p.inside {
		a.Rel = p.rel
	}
	return a
}

// still finds out whether a path leads where it led when the call was judged.
// The refusal is an observed end: nothing was read or written.
func still(env Env, p string, c machine.Contract) (place, *Outcome) {
	pl, err := locate(env, p)
	if err != nil {
		o := done(false, CodeNotFound, err.Error())
		return pl, &o
	}
	if was := c.Params[paramPath]; was != "" && was != pl.abs {
		o := done(false, CodeMoved, fmt.Sprintf(
			"%s now leads to %s; when this call was judged it led to %s. Nothing was read or written. Look at the path and call again.",
			quoteShort(p), quoteName(pl.abs), quoteName(was)))
		return pl, &o
	}
	return pl, nil
}

// inGit reports whether a path lies in git's own directory or names its link
// file, whatever the letter case, which some file systems do not tell apart.
func inGit(rel string) bool {
	for part := range strings.SplitSeq(slash(rel), "/") {
		part = strings.TrimRight(strings.ToLower(part), ". ")
		if part == ".git" || part == "git~1" {
			return true
		}
	}
	return false
}

// open opens a regular file or directory for reading without ever waiting for
// it, as a pipe would make it wait. Inside the workspace the opening itself
// refuses to leave it, so that a link swapped in since cannot lead out.
func (p place) open() (*os.File, os.FileInfo, error) {
	const flags = os.O_RDONLY | syscall.O_NONBLOCK
	var f *os.File
	var err error
	if p.inside {
		var root *os.Root
		if root, err = os.OpenRoot(p.root); err != nil {
			return nil, nil, err
		}
		defer func() { _ = root.Close() }()
		f, err = root.OpenFile(filepath.FromSlash(p.rel), flags, 0)
	} else {
		f, err = os.OpenFile(p.abs, flags, 0)
	}
	if err != nil {
		return nil, nil, err
	}
	st, err := f.Stat()
	if err != nil {
		_ = f.Close()
		return nil, nil, err
	}
	return f, st, nil
}

// errTooBig says that a file is larger than what is read in one piece.
var errTooBig = errors.New("the file is too large")

// errNotFile says that something is there that is no regular file.
var errNotFile = errors.New("it is no regular file")

// readAll reads a regular file of at most limit bytes.
func (p place) readAll(limit int64) ([]byte, os.FileInfo, error) {
	f, st, err := p.open()
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = f.Close() }()
	if !st.Mode().IsRegular() {
		return nil, st, errNotFile
	}
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(b)) > limit {
		err = errTooBig
	}
	return b, st, err
}

// readSmall reads a small regular file below a root; whatever else is there is
// an error, and nothing is waited for.
func readSmall(root *os.Root, name string) ([]byte, error) {
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return nil, errNotFile
	}
	return io.ReadAll(io.LimitReader(f, 1<<20))
}

// readFault words why something could not be read, and with which code.
func readFault(p place, st os.FileInfo, err error) Outcome {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return done(false, CodeNotFound, fmt.Sprintf("%s does not exist%s.", p.show(), nearest(p)))
	case errors.Is(err, errNotFile) && st != nil && st.IsDir():
		return done(false, CodeUnreadable, fmt.Sprintf("%s is a directory; list_dir shows what is in it.", p.show()))
	case errors.Is(err, errNotFile) && st != nil:
		return done(false, CodeUnreadable, fmt.Sprintf("%s is no regular file but %s.", p.show(), modeWord(st.Mode())))
	case errors.Is(err, errTooBig) && st != nil:
		return done(false, CodeUnreadable, fmt.Sprintf(
			"%s is %s long, more than is read in one piece (%d). Use search, or a shell command that prints a part of it.",
			p.show(), count(st.Size(), "byte"), maxFile))
	}
	return done(false, CodeUnreadable, fmt.Sprintf("%s cannot be read: %v.", p.show(), plain(err)))
}

// nearest names the part of a missing path that does exist.
func nearest(p place) string {
	if !p.inside {
		return ""
	}
	root, err := os.OpenRoot(p.root)
	if err != nil {
		return ""
	}
	defer func() { _ = root.Close() }()
	for dir := path.Dir(p.rel); dir != "." && dir != "/"; dir = path.Dir(dir) {
		if st, err := root.Stat(filepath.FromSlash(dir)); err == nil {
			if st.IsDir() {
				return fmt.Sprintf(" (the directory %s does)", quoteName(dir))
			}
			return fmt.Sprintf(" (%s is a file)", quoteName(dir))
		}
	}
	return ""
}

func modeWord(m fs.FileMode) string {
	switch {
	case m&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case m&fs.ModeSocket != 0:
		return "a socket"
	case m&fs.ModeDevice != 0:
		return "a device"
	case m&fs.ModeSymlink != 0:
		return "a symbolic link"
	}
	return "something else"
}

// plain drops the operation and path that an error of package os repeats.
func plain(err error) string {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err.Error()
	}
	return err.Error()
}

// decode reads canonical arguments into a struct. They are valid by the schema;
// an error means that they were not canonical.
func decode[T any](args json.RawMessage) (T, error) {
	var v T
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	if err := json.Unmarshal(args, &v); err != nil {
		return v, argErrorf("The arguments cannot be read: %v.", err)
	}
	return v, nil
}

// badArgs is the end of an attempt whose arguments cannot be read: a plan has
// refused them before, so this is not reached through the engine.
func badArgs(err error) Outcome { return notStarted(err.Error()) }
