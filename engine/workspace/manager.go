package workspace

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"time"
)

// Manager makes and looks after workspaces below one state directory. Its methods may be called from any goroutine
// and any number of processes; those on one run wait for each other. The zero value can resolve, read and write files.
type Manager struct {
	state  string
	now    func() time.Time
	limits Limits

	mu    sync.Mutex
	blobs map[string]blobKey // files of git directories whose blob is in a shadow already
	point func(name string)  // for tests: called at named moments, to do then what another program might
}

// Option changes how a Manager works.
type Option func(*Manager)

// WithClock sets the clock that dates commits.
func WithClock(now func() time.Time) Option { return func(m *Manager) { m.now = now } }

// New returns a Manager that keeps clones, worktrees, snapshots and scratch directories below stateDir. It touches
// nothing yet.
func New(stateDir string, opts ...Option) *Manager {
	m := &Manager{state: stateDir, now: time.Now}
	for _, o := range opts {
		o(m)
	}
	return m
}

func (m *Manager) at(parts ...string) string {
	return filepath.Join(append([]string{m.state}, parts...)...)
}

var runName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`)

// lock keeps other processes and goroutines from working on the run's workspace until the file is closed.
func (m *Manager) lock(ctx context.Context, run string) (*os.File, error) {
	if !runName.MatchString(run) {
		return nil, fmt.Errorf("%q cannot be a run's id: use letters, digits, - and _", run)
	}
	if m.state == "" {
		return nil, fmt.Errorf("this manager has no state directory")
	}
	return lockFile(ctx, m.at("locks", run+".lock"))
}

func (m *Manager) clock() time.Time {
	if m.now == nil {
		return time.Now()
	}
	return m.now()
}

// writeDurable replaces a small file so that after a crash either the old or the new one is there, whole.
func writeDurable(path string, data []byte) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".new-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // gone after the rename
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err == nil {
		err = syncDir(dir)
	}
	return err
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

func (m *Manager) pass(name string) {
	if m.point != nil {
		m.point(name)
	}
}
