package engine

import (
	"context"
	"slices"
	"time"

	"pawl/engine/confine"
	"pawl/engine/machine"
	"pawl/engine/watch"
)

func monotonic() machine.Instant {
	return machine.Instant{Boot: confine.BootID(), Mono: watch.Monotonic().Microseconds()}
}

// Changes returns a channel that is signalled when anything in the ledger may
// have changed, by this process or another. Signals are coalesced.
func (e *Engine) Changes() <-chan struct{} {
	c := make(chan struct{}, 1)
	e.mu.Lock()
	e.changed = append(e.changed, c)
	e.mu.Unlock()
	return c
}

// subscribe is Changes for a while.
func (e *Engine) subscribe() (changes <-chan struct{}, drop func()) {
	c := e.Changes()
	return c, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.changed = slices.DeleteFunc(e.changed, func(x chan struct{}) bool { return x == c })
	}
}

// Live returns a channel of model text as it arrives. It is lossy by design: a
// slow reader misses text, never events.
func (e *Engine) Live() <-chan LiveText {
	c := make(chan LiveText, 16)
	e.mu.Lock()
	e.live = append(e.live, c)
	e.mu.Unlock()
	return c
}

func (e *Engine) broadcast() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, c := range e.changed {
		signal(c)
	}
}

func (e *Engine) publish(t LiveText) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, c := range e.live {
		select {
		case c <- t:
		default:
		}
	}
}

// renewEvery keeps leases alive; a lease lasts several times as long.
const renewEvery = 4 * time.Second

// watch is the goroutine that notices other processes' commits, wakes the runs
// they concern, and renews the leases of this process.
func (e *Engine) watch() {
	defer e.group.Done()
	ctx := e.ctx
	if e.store.Path() == "" {
		<-ctx.Done() // a store in memory: nobody else writes to it, and its leases do not run out
		return
	}
	notify := watch.Ledger(ctx, e.store.Path(), e.o.Log)
	renew := time.NewTicker(renewEvery)
	defer renew.Stop()
	var at newsAt
	if h, err := e.store.Head(ctx); err == nil {
		at.seq = h.Seq
	}
	var last time.Time
	pause := newsEvery
	for {
		select {
		case <-ctx.Done():
			return
		case <-notify:
			v, err := e.store.DataVersion(ctx)
			if err != nil || v == at.version || time.Since(last) < pause {
				continue // the poll comes by again
			}
			last, at.version = time.Now(), v
			var foreign bool
			if at, foreign = e.news(ctx, at); foreign {
				pause = newsEvery
			} else {
				pause = min(2*pause, newsAtMost)
			}
		case <-renew.C:
			e.renew(ctx)
		}
	}
}

// The ledger is read for news at most this often. While all the news is our
// own, the pause grows: a run that others decide about finds out at its next
// commit anyway.
const (
	newsEvery  = 4 * time.Millisecond
	newsAtMost = 100 * time.Millisecond
)

// newsAt is how far the ledger was read for news.
type newsAt struct {
	seq     int64 // newest event seen
	version int64
}

// news wakes the runs that others appended to. If every event since the last
// look is known to be our own, none is read.
func (e *Engine) news(ctx context.Context, at newsAt) (next newsAt, foreign bool) {
	head, err := e.store.Head(ctx)
	if err != nil {
		return at, false
	}
	if e.own.cover(at.seq, head.Seq) {
		at.seq = head.Seq
		return at, false
	}
	const page = 1000
	touched := map[machine.RunID]bool{}
	mine := e.epochs()
	for at.seq < head.Seq {
		evs, err := e.store.EventsSince(ctx, at.seq, page)
		if err != nil || len(evs) == 0 {
			break
		}
		for _, ev := range evs {
			at.seq = ev.Seq
			if id := machine.RunID(ev.Run); ev.Epoch == 0 || mine[id] != ev.Epoch {
				touched[id] = true
			}
		}
	}
	for id := range touched {
		e.nudge(id)
	}
	if len(touched) > 0 {
		e.broadcast()
	}
	return at, len(touched) > 0
}

// epochs are the claims under which this process writes now.
func (e *Engine) epochs() map[machine.RunID]int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	out := make(map[machine.RunID]int64, len(e.runs))
	for id, r := range e.runs {
		out[id] = r.claimed.Load()
	}
	return out
}

func (e *Engine) renew(ctx context.Context) {
	if len(e.Driven()) == 0 {
		return
	}
	lost, err := e.store.Renew(ctx)
	if err != nil {
		e.o.Log("leases could not be renewed: %v", err)
		return
	}
	for _, id := range lost {
		e.nudge(machine.RunID(id)) // its next commit is fenced; it finds out at once
	}
}
