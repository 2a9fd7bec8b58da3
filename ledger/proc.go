package ledger

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// A process is known by a random id, never by its pid: it holds an exclusive
// flock on a file of that name for as long as it lives, and the kernel lets go
// of it however the process ends. flock belongs to the open file, so two
// handles in one process are told apart, and to the kernel, so containers that
// share the directory see each other.
//
// The lock proves only that the owner's handle is gone. It says nothing about
// commands the owner had started.

const newborn = ".new-" // prefix of a lock file until it is locked

type procLock struct {
	path string
	f    *os.File
}

// lockProc registers id below dir. The file gets its name only once it is
// locked, so nobody ever sees a living process without its lock.
func lockProc(dir, id string) (*procLock, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	final := filepath.Join(dir, id)
	for range 10 {
		f, err := os.OpenFile(filepath.Join(dir, newborn+id), os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return nil, err
		}
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil { // a sweeper holds it for microseconds
			f.Close()
			return nil, err
		}
		if err := os.Rename(f.Name(), final); err != nil {
			f.Close()
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			return nil, err
		}
		// The sweeper may have had it open before we locked it and removed it since.
		a, err1 := f.Stat()
		b, err2 := os.Stat(final)
		if err1 == nil && err2 == nil && os.SameFile(a, b) {
			return &procLock{path: final, f: f}, nil
		}
		f.Close()
	}
	return nil, fmt.Errorf("cannot keep a lock file in %s; is something clearing that directory?", dir)
}

func (l *procLock) release() {
	if l == nil {
		return
	}
	os.Remove(l.path)
	l.f.Close()
}

// procAlive reports whether process id still holds its lock. A file that
// cannot be examined counts as held: then only the lease's end frees a run.
func procAlive(dir, id string) bool {
	if id == "" || strings.ContainsAny(id, "/\x00") {
		return false
	}
	f, err := os.Open(filepath.Join(dir, id))
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	defer f.Close()
	// A shared lock, so that two who look at once do not take each other for the owner.
	return unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB) != nil
}

// sweepProcs removes the files of processes that are gone.
func sweepProcs(dir string) {
	es, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range es {
		if e.Name() == gateName {
			continue
		}
		p := filepath.Join(dir, e.Name())
		f, err := os.Open(p)
		if err != nil {
			continue
		}
		// Shared again: who looks at a dead owner's file now must find it free.
		if unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB) == nil {
			os.Remove(p)
		}
		f.Close()
	}
}
