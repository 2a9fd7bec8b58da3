// Package watch notices changes: commits of other processes in a ledger.
//
// It is the only package that knows fsnotify. Notification only makes things
// fast: the poll is the truth.
package watch

import (
	"context"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

// poll is how often the ledger is looked at whatever the notifications say.
const poll = 250 * time.Millisecond

// rechecks follow a notification: the last write of a commit comes before its
// sync and its visibility, so one look right after it is mostly too early.
var rechecks = [...]time.Duration{1, 2, 4, 8, 16, 32}

// Ledger signals whenever the ledger at path may have new commits. The channel
// has room for one signal; the reader asks the ledger for its data version.
func Ledger(ctx context.Context, path string, log func(string, ...any)) <-chan struct{} {
	out := make(chan struct{}, 1)
	events, stop := notifications(path, log)
	go func() {
		defer stop()
		tick := time.NewTicker(poll)
		defer tick.Stop()
		again := time.NewTimer(time.Hour)
		again.Stop()
		step := len(rechecks)
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			case ev, ok := <-events:
				if !ok {
					events = nil
					continue
				}
				if !ev.Has(fsnotify.Write) || !about(ev.Name, path) {
					continue // reads of our own show up as attribute changes
				}
				step = 0
				again.Reset(rechecks[0] * time.Millisecond)
				continue
			case <-again.C:
				if step++; step < len(rechecks) {
					again.Reset((rechecks[step] - rechecks[step-1]) * time.Millisecond)
				}
			}
			select {
			case out <- struct{}{}:
			default:
			}
		}
	}()
	return out
}

func about(name, path string) bool {
	b := filepath.Base(path)
	n := filepath.Base(name)
	return n == b || n == b+"-wal"
}

func notifications(path string, log func(string, ...any)) (<-chan fsnotify.Event, func()) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		log("no file notifications (%v): changes are noticed by polling every %s", err, poll)
		return nil, func() {}
	}
	if err := w.Add(filepath.Dir(path)); err != nil {
		log("no file notifications for %s (%v): changes are noticed by polling every %s", filepath.Dir(path), err, poll)
		_ = w.Close()
		return nil, func() {}
	}
	go func() {
		for range w.Errors { // an overflow loses nothing: the poll finds it
		}
	}()
	return w.Events, func() { _ = w.Close() }
}
