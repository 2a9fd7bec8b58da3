package wire

import (
	"io"
	"sync"
	"time"
)

// watchdog calls bark once nothing has kicked it for a while.
type watchdog struct {
	mu    sync.Mutex
	after time.Duration
	timer *time.Timer
}

func newWatchdog(after time.Duration, bark func()) *watchdog {
	return &watchdog{after: after, timer: time.AfterFunc(after, bark)}
}

func (w *watchdog) kick() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timer.Stop() { // else it has barked, or stopped for good
		w.timer.Reset(w.after)
	}
}

func (w *watchdog) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer.Stop()
}

// watched kicks the watchdog with every piece that arrives.
type watched struct {
	io.ReadCloser
	idle *watchdog
}

func (w *watched) Read(b []byte) (int, error) {
	n, err := w.ReadCloser.Read(b)
	if n > 0 {
		w.idle.kick()
	}
	return n, err
}
