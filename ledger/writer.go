package ledger

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	sqlite3 "github.com/mattn/go-sqlite3"
)

// The writer is one goroutine that owns the writing connection. Requests wait
// in a queue; each of its transactions serves all that wait (group commit), so
// concurrent runs share one sync. A request is checked before anything of it is
// written: a refused one leaves the others of its group alone.
type writer struct {
	d *DB
	c *conn

	mu     sync.Mutex // owns queue, closed
	queue  []*request
	closed bool

	wake    chan struct{}
	done    chan struct{} // closed when the loop ended
	started bool

	// Below: the loop's own.
	full    bool  // what PRAGMA synchronous is now: FULL or NORMAL
	version int64 // data_version as of the last transaction
	known   map[string]*runState
	next    int64 // sequence of the next event; 0: to be looked up
	words   map[string]int64
	fresh   bool             // words holds some that are not committed yet
	held    map[string]int64 // runs this process claimed, with the epoch
	renewed map[string]int64 // what held becomes when the transaction at hand is committed
	press   pressure
}

// request is one caller's work for one transaction.
type request struct {
	full  bool
	parts []prepared
	// do is work other than parts; it may be run again after a failed attempt.
	do func(c *conn) error

	out  []Committed
	head Head // last event appended; zero if none
	err  error
	ran  bool // it wrote something in the transaction at hand

	since time.Duration // when it began to wait, by Options.Mono
	state atomic.Int32
	done  chan struct{}
}

const (
	waiting int32 = iota
	taken         // it is in a transaction: its context no longer counts
	gone          // its caller gave up while it waited
)

const (
	slice = 250 * time.Millisecond // how long one attempt to lock may block the loop
	// gatherFor is small against the sync that a larger group saves.
	gatherFor = 100 * time.Microsecond
	maxGroup  = 256    // requests in one transaction
	maxKnown  = 20_000 // runs whose state is remembered
)

// runState is what the ledger says of a run, as of this process's last look.
// It may be used for as long as no other process committed.
type runState struct {
	k     int64 // 0: no such run
	tail  int64
	hash  Hash
	lease leaseRow
}

func newWriter(d *DB, c *conn) *writer {
	return &writer{
		d: d, c: c, full: true, version: -1,
		wake: make(chan struct{}, 1), done: make(chan struct{}),
		known: map[string]*runState{}, words: map[string]int64{}, held: map[string]int64{},
	}
}

// submit waits until r was served. ctx ends the wait only while r is not yet
// part of a transaction.
func (w *writer) submit(ctx context.Context, r *request) error {
	r.done = make(chan struct{})
	r.since = w.d.o.Mono()
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		return ErrClosed
	}
	w.queue = append(w.queue, r)
	w.mu.Unlock()
	poke(w.wake)
	select {
	case <-r.done:
	case <-ctx.Done():
		if r.state.CompareAndSwap(waiting, gone) {
			return ctx.Err()
		}
		<-r.done
	}
	return r.err
}

func (w *writer) start() {
	w.started = true
	go w.loop()
}

// stop serves what waits and ends the loop. The connection stays open.
func (w *writer) stop() {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	if !w.started {
		return
	}
	poke(w.wake)
	<-w.done
}

func (w *writer) loop() {
	defer close(w.done)
	for {
		w.mu.Lock()
		idle, closed := len(w.queue) == 0, w.closed
		w.mu.Unlock()
		if !idle {
			w.round()
			w.relieve(false)
			continue
		}
		if closed {
			return
		}
		select {
		case <-w.wake:
		case <-w.press.again:
			w.press.again = nil
			w.relieve(true)
		}
	}
}

// round runs one transaction for those that wait.
func (w *writer) round() {
	if err := w.setSync(w.wantFull()); err != nil {
		w.failAll(err)
		return
	}
	if err := w.c.begin(); err != nil {
		if isBusy(err) {
			w.expire()
		} else {
			w.failAll(err)
		}
		return
	}
	group := w.take()
	if len(group) == 0 {
		w.c.rollback()
		return
	}
	if err := w.lookAround(); err != nil {
		w.c.rollback()
		for _, r := range group {
			r.err = err
			close(r.done)
		}
		return
	}
	w.serve(group)
	for _, r := range group {
		close(r.done)
	}
	poke(w.d.changed)
	w.gather(len(group))
}

// gather gives the callers just served a moment to come back, so that many
// concurrent runs are served in a few large groups rather than in many small
// ones. A lone caller is never waited for.
func (w *writer) gather(last int) {
	if last < 2 {
		return
	}
	for start := time.Now(); time.Since(start) < gatherFor; runtime.Gosched() {
		w.mu.Lock()
		n := len(w.queue)
		w.mu.Unlock()
		if n >= last {
			return
		}
	}
}

// wantFull looks whether anybody who waits needs a sync. The queue keeps those
// whose callers gave up until take.
func (w *writer) wantFull() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.queue {
		if r.full && r.state.Load() == waiting {
			return true
		}
	}
	return false
}

// setSync sets whether COMMIT syncs. SQLite refuses this inside a transaction,
// and carries the pragma out when it is prepared, so it cannot be kept prepared.
func (w *writer) setSync(full bool) error {
	if full == w.full {
		return nil
	}
	q := "PRAGMA synchronous=NORMAL"
	if full {
		q = "PRAGMA synchronous=FULL"
	}
	if err := w.c.do(q); err != nil {
		return err
	}
	w.full = full
	return nil
}

// take marks those that wait as begun. A transaction that will not sync stops
// short of the first request that needs it.
func (w *writer) take() []*request {
	w.mu.Lock()
	defer w.mu.Unlock()
	var group []*request
	i := 0
	for ; i < len(w.queue) && len(group) < maxGroup; i++ {
		r := w.queue[i]
		if r.full && !w.full && r.state.Load() == waiting {
			break
		}
		if r.state.CompareAndSwap(waiting, taken) {
			group = append(group, r)
		}
	}
	n := copy(w.queue, w.queue[i:])
	clear(w.queue[n:])
	w.queue = w.queue[:n]
	return group
}

// expire fails those that have waited for the lock as long as they may.
func (w *writer) expire() {
	now := w.d.o.Mono()
	var late []*request
	w.mu.Lock()
	keep := w.queue[:0]
	for _, r := range w.queue {
		switch {
		case r.state.Load() == gone:
		case now-r.since >= w.d.o.BusyTimeout && r.state.CompareAndSwap(waiting, taken):
			late = append(late, r)
		default:
			keep = append(keep, r)
		}
	}
	clear(w.queue[len(keep):])
	w.queue = keep
	w.mu.Unlock()
	if len(late) == 0 {
		return
	}
	who := busyError(&w.d.o, 0)
	for _, r := range late {
		e := *who
		e.Waited = now - r.since
		r.err = &e
		close(r.done)
	}
}

func (w *writer) failAll(err error) {
	err = plain(w.d.o.Path, "write", err)
	for _, r := range w.take0() {
		r.err = err
		close(r.done)
	}
}

// take0 takes everything, whatever sync it needs.
func (w *writer) take0() []*request {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []*request
	for _, r := range w.queue {
		if r.state.CompareAndSwap(waiting, taken) {
			all = append(all, r)
		}
	}
	clear(w.queue)
	w.queue = w.queue[:0]
	return all
}

// lookAround forgets what is known of the runs if another process committed
// since, and makes sure that it did not migrate the ledger under us.
func (w *writer) lookAround() error {
	v, err := w.c.one("PRAGMA data_version")
	if err != nil {
		return plain(w.d.o.Path, "write", err)
	}
	if num(v) == w.version {
		return nil
	}
	w.forget()
	have, err := w.c.version()
	if err != nil {
		return plain(w.d.o.Path, "write", err)
	}
	if known := len(w.d.o.steps); have != known {
		return &NewerError{Path: w.d.o.Path, Have: have, Known: known}
	}
	w.version = num(v)
	return nil
}

// forget drops what the caches say of runs.
func (w *writer) forget() {
	clear(w.known)
	w.next = 0
	w.version = -1
}

// serve runs the open transaction for group to its end and sets each request's
// result. A failure to write undoes the whole group and tries each request alone.
func (w *writer) serve(group []*request) {
	err := w.apply(group)
	if err == nil && !anyRan(group) {
		w.undo() // everything was refused
		return
	}
	committing := false
	if err == nil {
		committing = true
		err = w.c.commit()
	}
	if err == nil {
		w.settled(group)
		return
	}
	w.undo()
	if len(group) == 1 {
		w.again(group[0], err, committing)
		return
	}
	for _, r := range group {
		w.alone(r)
	}
}

// apply checks and writes each request; a refusal is that request's own result.
func (w *writer) apply(group []*request) error {
	for _, r := range group {
		r.ran, r.err, r.out, r.head = false, nil, nil, Head{}
		var err error
		if r.do != nil {
			r.ran = true
			err = r.do(w.c)
		} else {
			err = w.commitParts(r)
		}
		if w.c.err != nil {
			return w.c.err
		}
		if err != nil {
			var se sqlite3.Error
			if errors.As(err, &se) {
				return err // reading failed
			}
			r.err = err
			if r.ran {
				return err // it had written already: only a rollback undoes that
			}
		}
	}
	return nil
}

func anyRan(group []*request) bool {
	for _, r := range group {
		if r.ran {
			return true
		}
	}
	return false
}

func (w *writer) undo() {
	w.c.rollback()
	w.forget()
	w.renewed = nil
	if w.fresh {
		clear(w.words)
		w.fresh = false
	}
}

// alone gives r a transaction of its own.
func (w *writer) alone(r *request) {
	if err := w.beginPatiently(); err != nil {
		r.err = err
		return
	}
	err := w.lookAround()
	if err != nil {
		w.c.rollback()
		r.err = err
		return
	}
	w.serve([]*request{r})
}

func (w *writer) beginPatiently() error {
	start := w.d.o.Mono()
	for {
		err := w.c.begin()
		if err == nil {
			return nil
		}
		if !isBusy(err) {
			return plain(w.d.o.Path, "write", err)
		}
		if waited := w.d.o.Mono() - start; waited >= w.d.o.BusyTimeout {
			return busyError(&w.d.o, waited)
		}
	}
}

// again settles a request that failed alone. Where COMMIT itself failed the
// outcome is open: SQLite may have written everything and only failed to sync.
// Sending the same commands once more finds them, or writes them over what was
// left of the first attempt.
func (w *writer) again(r *request, err error, committing bool) {
	if r.err != nil { // refused after it had begun to write
		return
	}
	if !committing || noSpace(err) {
		r.err = w.explain(err)
		return
	}
	if berr := w.beginPatiently(); berr != nil {
		r.err = &UnknownError{Path: w.d.o.Path, Err: err}
		return
	}
	if lerr := w.lookAround(); lerr != nil {
		w.c.rollback()
		r.err = &UnknownError{Path: w.d.o.Path, Err: err}
		return
	}
	err2 := w.apply([]*request{r})
	if err2 == nil && !r.ran {
		w.undo() // found recorded, or refused now
		return
	}
	if err2 == nil {
		err2 = w.c.commit()
	}
	if err2 == nil {
		w.settled([]*request{r})
		return
	}
	w.undo()
	r.out = nil
	if noSpace(err2) {
		r.err = w.explain(err2)
		return
	}
	r.err = &UnknownError{Path: w.d.o.Path, Err: fmt.Errorf("%w; again: %w", err, err2)}
}

func (w *writer) explain(err error) error {
	if isBusy(err) {
		return busyError(&w.d.o, w.d.o.BusyTimeout)
	}
	return plain(w.d.o.Path, "write", err)
}

// settled books a transaction that is committed.
func (w *writer) settled(group []*request) {
	w.fresh = false
	if w.renewed != nil {
		w.held, w.renewed = w.renewed, nil
	}
	s := &w.d.stats
	s.commits.Add(1)
	var head Head
	for _, r := range group {
		if r.err != nil || !r.ran {
			continue
		}
		s.parts.Add(int64(len(r.parts)))
		for i := range r.parts {
			s.events.Add(int64(len(r.parts[i].Events)))
			w.hold(&r.parts[i])
		}
		if r.head.Seq > head.Seq {
			head = r.head
		}
	}
	if w.full {
		s.syncs.Add(1)
	}
	w.d.wal.committed(w.full, head)
	if len(w.known) > maxKnown {
		clear(w.known)
	}
}

// hold notes what a committed part means for Renew.
func (w *writer) hold(p *prepared) {
	if p.Claim && p.Holder == w.d.id {
		w.held[p.Run] = p.Epoch
	}
	if p.Release {
		delete(w.held, p.Run)
	}
}

// word returns the number that stands for s.
func (w *writer) word(s string) (int64, error) {
	if id := w.words[s]; id != 0 {
		return id, nil
	}
	v, err := w.c.one("SELECT id FROM word WHERE text = ?", s)
	if err != nil {
		return 0, err
	}
	id := num(v)
	if id == 0 {
		if v, err = w.c.one("SELECT coalesce(max(id), 0) + 1 FROM word"); err != nil {
			return 0, err
		}
		id = num(v)
		if _, err := w.c.exec("INSERT INTO word(id, text) VALUES(?, ?)", id, s); err != nil {
			return 0, err
		}
		w.fresh = true
	}
	w.words[s] = id
	return id, nil
}
