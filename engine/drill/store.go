package drill

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"pawl/ledger"
)

// handle is a process's ledger with the faults of the episode around it.
type handle struct {
	ledger.Store
	p *proc
}

// Path is empty: an engine under a drill watches no file.
func (h *handle) Path() string { return "" }

// Commit is a boundary before and after: it may fail for want of space, and
// its caller may die before it knows that it went through.
func (h *handle) Commit(ctx context.Context, d ledger.Durability, parts ...ledger.Part) ([]ledger.Committed, error) {
	s := h.p.s
	what := kinds(parts)
	s.pass1("before commit", what)
	if s.now < s.full {
		s.note("%s: no space for %s", h.p.name, what)
		return nil, &ledger.FullError{Path: "ledger", Err: errFull}
	}
	out, err := h.Store.Commit(ctx, d, parts...)
	if err != nil {
		s.note("%s: %s not written: %v", h.p.name, what, err)
	} else {
		s.audit.committed(h.p, d, parts, out)
		if d == ledger.Lazy {
			s.sync()
		}
		s.news(h.p)
	}
	s.pass1("after commit", what)
	return out, err
}

// kinds names a commit by its events.
func kinds(parts []ledger.Part) string {
	if len(parts) == 1 && len(parts[0].Events) == 1 {
		return parts[0].Events[0].Kind
	}
	var out []string
	for _, p := range parts {
		for _, e := range p.Events {
			out = append(out, e.Kind)
		}
		if p.Release {
			out = append(out, "release")
		}
	}
	return strings.Join(out, "+")
}

// memory is the ledger in memory.
type memory struct{ m *ledger.Mem }

func newMemory(s *sim) (storage, error) {
	random := s.dice.on(topicIdentity, 0)
	m, err := ledger.NewMem(ledger.Options{
		Boot: s.bootName(), Rand: &random, Clock: s.clock,
		Mono: func() time.Duration { return time.Duration(s.now) * time.Microsecond },
	})
	return memory{m}, err
}

func (m memory) open(owner string, _ *sim) (ledger.Store, string, error) {
	h, err := m.m.Open(owner)
	if err != nil {
		return nil, "", err
	}
	return h, h.Process(), nil
}

func (m memory) kill(st ledger.Store) { st.(*ledger.MemHandle).Kill() }
func (m memory) power(boot string)    { m.m.PowerCut(boot) }
func (m memory) close()               {}

// file is a real ledger. Its processes share this one, so that killing one is
// closing its handle; a power cut is not played, since nothing here can forget
// what the system was given.
type file struct {
	path string

	made []*ledger.DB
}

func newFile(dir string) storage { return &file{path: filepath.Join(dir, "ledger.db")} }

func (f *file) open(owner string, s *sim) (ledger.Store, string, error) {
	random := s.dice.on(topicIdentity, s.born)
	db, err := ledger.Open(context.Background(), ledger.Options{
		Path: f.path, Owner: owner, Boot: s.bootName(), Rand: &random, Clock: s.clock,
		Mono: func() time.Duration { return time.Duration(s.now) * time.Microsecond },
	})
	if err != nil {
		return nil, "", err
	}
	f.made = append(f.made, db)
	return db, db.Process(), nil
}

func (f *file) kill(st ledger.Store) { _ = st.Close() }

func (f *file) power(string) {
	for _, db := range f.made {
		_ = db.Close() // closing twice is harmless
	}
}

func (f *file) close() {
	f.power("")
	_ = os.RemoveAll(filepath.Dir(f.path))
}

// trace is what happened in an episode, line by line.
type trace struct {
	lines []string
}

// note adds a line to the trace, if anybody wants one.
func (s *sim) note(format string, args ...any) {
	if s.trace == nil {
		return
	}
	s.trace.lines = append(s.trace.lines, fmt.Sprintf("%9.3fs  ", float64(s.now)/1e6)+fmt.Sprintf(format, args...))
}
