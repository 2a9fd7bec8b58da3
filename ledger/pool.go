package ledger

import (
	"context"
	"os"
	"sync"
)

// pool lends reading connections.
type pool struct {
	o    *Options
	mode mode
	sem  chan struct{} // one token per connection lent

	mu     sync.Mutex
	free   []*conn
	lent   map[*conn]int // generation it was opened in
	gen    int
	mark   string // of an immutable file: what it looked like when opened
	closed bool
}

func newPool(o *Options, m mode) *pool {
	p := &pool{o: o, mode: m, sem: make(chan struct{}, readers), lent: map[*conn]int{}}
	if m == modeImmutable {
		p.mark = fileMark(o)
	}
	return p
}

func (p *pool) get(ctx context.Context) (*conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	select {
	case p.sem <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	c, err := p.take()
	if err != nil {
		<-p.sem
	}
	return c, err
}

func (p *pool) take() (*conn, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, ErrClosed
	}
	p.refresh()
	var c *conn
	if n := len(p.free); n > 0 {
		c, p.free = p.free[n-1], p.free[:n-1]
	} else {
		var err error
		if c, err = dial(p.o.Path, p.mode, p.o.BusyTimeout.Milliseconds()); err != nil {
			return nil, err
		}
	}
	p.lent[c] = p.gen
	return c, nil
}

func (p *pool) put(c *conn) {
	p.mu.Lock()
	stale := p.closed || p.lent[c] != p.gen
	delete(p.lent, c)
	if !stale {
		p.free = append(p.free, c)
	}
	p.mu.Unlock()
	if stale {
		c.close()
	}
	<-p.sem
}

func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, c := range p.free {
		c.close()
	}
	p.free = nil
}

// refresh drops the connections to a file that was opened as immutable and has
// changed all the same: somebody who may write has opened it. The caller holds mu.
func (p *pool) refresh() {
	if p.mark == "" {
		return
	}
	m := fileMark(p.o)
	if m == p.mark {
		return
	}
	p.mark, p.mode = m, viewMode(p.o)
	p.gen++
	for _, c := range p.free {
		c.close()
	}
	p.free = nil
}

// fileMark tells two states of a ledger apart that immutable reading would mix up.
func fileMark(o *Options) string {
	s := "immutable"
	for _, p := range []string{o.Path, o.wal()} {
		if st, err := os.Stat(p); err == nil {
			s += " " + st.ModTime().String() + " " + st.Name() + " " + itoa(st.Size())
		}
	}
	return s
}

// viewMode says how to read where the directory cannot be written. Without a
// write-ahead file SQLite would want to make one, so the file must be declared
// immutable; with one, immutable would not see what is in it.
func viewMode(o *Options) mode {
	if fileSize(o.wal()) > 0 {
		return modeRead
	}
	return modeImmutable
}
