package ledger

import (
	"context"
	"sync"
	"sync/atomic"
)

// DB is a ledger in a SQLite file. Its methods may be called from any goroutine.
//
// One goroutine owns the writing connection (writer). Reads use a few
// query-only connections; each lasts for one method call and holds no snapshot
// afterwards, so a process that only watches never keeps the write-ahead file
// from being reused, even when it is stopped by a signal (unless that hits the
// microseconds of a read).
type DB struct {
	o    Options
	id   string // this handle's process id: random, never reused
	lock *procLock
	w    *writer // nil when read-only
	pool *pool
	wal  *walSync // nil when read-only

	roReason string
	lost     *LostTailError

	verMu sync.Mutex // owns ver
	ver   *conn      // data_version is comparable on one connection only

	words words

	changed chan struct{}
	stats   struct {
		commits, parts, syncs, lazySyncs, events, walBytes, checkpoints atomic.Int64
		walPinned                                                       atomic.Bool
	}
	closing  sync.Once
	closeErr error
}

var _ Store = (*DB)(nil)

// Process is the id this handle is registered by: what a Part's Holder is when
// this process owns the run.
func (d *DB) Process() string { return d.id }

// Path is the ledger's file, absolute.
func (d *DB) Path() string { return d.o.Path }

// ReadOnly reports whether the ledger can only be viewed, and why.
func (d *DB) ReadOnly() (bool, string) { return d.w == nil, d.roReason }

// Lost is the missing tail of a ledger opened with ViewOnly, nil if it is whole.
func (d *DB) Lost() *LostTailError { return d.lost }

// Changed returns the one channel that is signalled after each commit of this
// process. Signals are merged while nobody receives; it has one receiver.
func (d *DB) Changed() <-chan struct{} { return d.changed }

// DataVersion changes when another process committed. It may change for other
// reasons too (our own commits, a checkpoint): only "the same as before" means
// anything.
func (d *DB) DataVersion(ctx context.Context) (int64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	d.verMu.Lock()
	defer d.verMu.Unlock()
	if d.ver == nil {
		return 0, ErrClosed
	}
	v, err := d.ver.one("PRAGMA data_version")
	return num(v), plain(d.o.Path, "look for news", err)
}

// Stats returns the counters since Open.
func (d *DB) Stats() Stats {
	s := &d.stats
	return Stats{
		Commits: s.commits.Load(), Parts: s.parts.Load(), Events: s.events.Load(),
		Syncs: s.syncs.Load(), LazySyncs: s.lazySyncs.Load(),
		WALBytes: fileSize(d.o.wal()), Checkpoints: s.checkpoints.Load(), WALPinned: s.walPinned.Load(),
	}
}

// Sync makes all lazy commits so far power-safe, and moves the head anchor there.
func (d *DB) Sync(ctx context.Context) error {
	if d.wal == nil {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := d.wal.sync(); err != nil {
		return plain(d.o.Path, "sync", err)
	}
	return plain(d.o.Path, "write head anchor", d.wal.anchorNow())
}

// Close waits for commits that are under way, syncs, and gives the process
// lock up: runs this process held can be claimed by others at once.
func (d *DB) Close() error {
	d.closing.Do(func() {
		if d.w != nil {
			d.w.stop()
			d.closeErr = d.wal.close()
		}
		d.verMu.Lock()
		d.ver.close()
		d.ver = nil
		d.verMu.Unlock()
		d.pool.close()
		if d.w != nil {
			d.w.c.close() // last: only a connection that may write can tidy the -wal up
		}
		d.lock.release()
	})
	return d.closeErr
}

// readWith runs f on a reading connection.
func (d *DB) readWith(ctx context.Context, op string, f func(c *conn) error) error {
	c, err := d.pool.get(ctx)
	if err != nil {
		return plain(d.o.Path, op, err)
	}
	err = f(c)
	d.pool.put(c)
	if ctx.Err() != nil && err != nil {
		return ctx.Err()
	}
	switch err.(type) {
	case nil, *NotFoundError, *CorruptError:
		return err
	}
	if isBusy(err) {
		return busyError(&d.o, d.o.BusyTimeout)
	}
	return plain(d.o.Path, op, err)
}
