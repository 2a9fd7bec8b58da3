package engine

import (
	"context"
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
	notify := watch.Ledger(ctx, e.store.Path(), e.o.Log)
	renew := time.NewTicker(renewEvery)
	defer renew.Stop()
	var version, seq int64
	if h, err := e.store.Head(ctx); err == nil {
		seq = h.Seq
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-notify:
			v, err := e.store.DataVersion(ctx)
			if err != nil || v == version {
				continue
			}
			version = v
			seq = e.news(ctx, seq)
		case <-renew.C:
			e.renew(ctx)
		}
	}
}

// news wakes the runs that have events after seq and returns the new head.
func (e *Engine) news(ctx context.Context, seq int64) int64 {
	const page = 1000
	touched := map[machine.RunID]bool{}
	for {
		evs, err := e.store.EventsSince(ctx, seq, page)
		if err != nil {
			break
		}
		for _, ev := range evs {
			seq = ev.Seq
			touched[machine.RunID(ev.Run)] = true
		}
		if len(evs) < page {
			break
		}
	}
	for id := range touched {
		e.nudge(id)
	}
	e.broadcast()
	return seq
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
