package ledger

import (
	"database/sql/driver"
	"fmt"
	"time"
)

// pressure keeps the write-ahead file small. SQLite's own checkpoints after
// each checkpointPages do when readers are short. A file that grew all the same is
// checkpointed and cut here, which must wait for readers of older snapshots:
// for patience and no longer, so that a reader that stays only costs space.
type pressure struct {
	tried  int64         // size at the last attempt
	at     time.Duration // when, by Options.Mono
	pinned bool
	again  <-chan time.Time
}

const (
	// checkpointPages of 4 KiB: larger costs a longer recovery after a crash,
	// smaller writes pages that change often more often.
	checkpointPages = 2000
	patience        = 20 * time.Millisecond
	retryEvery      = time.Second
)

// relieve looks at the size of the write-ahead file between two transactions;
// due says that it is time for another attempt.
func (w *writer) relieve(due bool) {
	p := &w.press
	limit := w.d.o.WALBound / 4
	size := fileSize(w.d.o.wal())
	if size <= limit {
		w.unpinned()
		return
	}
	now := w.d.o.Mono()
	if p.pinned && !due && size-p.tried < limit/4 && now-p.at < retryEvery {
		return
	}
	p.tried, p.at = size, now
	w.d.stats.checkpoints.Add(1)
	if w.cutWAL() {
		w.unpinned()
		return
	}
	p.pinned = true
	w.d.stats.walPinned.Store(fileSize(w.d.o.wal()) > limit)
	if p.again == nil {
		p.again = w.d.o.After(retryEvery)
	}
}

func (w *writer) unpinned() {
	w.press.pinned = false
	w.press.again = nil
	w.d.stats.walPinned.Store(false)
}

// cutWAL moves everything into the ledger's file and truncates the -wal; false
// if a reader or another writer was in the way.
func (w *writer) cutWAL() bool {
	set := func(d time.Duration) error {
		return w.c.do(fmt.Sprintf("PRAGMA busy_timeout=%d", d.Milliseconds()))
	}
	if set(patience) != nil {
		return false
	}
	defer set(slice)
	busy := int64(1)
	_, err := w.c.row(func(v []driver.Value) { busy = num(v[0]) }, "PRAGMA wal_checkpoint(TRUNCATE)")
	return err == nil && busy == 0
}
