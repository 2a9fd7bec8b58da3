package ledger

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"
)

// held runs f while the writer is kept inside a transaction, so that what f
// queues ends up in one group.
func heldWriter(t *testing.T, d *DB, f func(queued func(n int))) {
	t.Helper()
	in, out, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		var once sync.Once
		done <- d.w.submit(bg, &request{full: true, do: func(*conn) error {
			once.Do(func() { close(in); <-out })
			return nil
		}})
	}()
	<-in
	f(func(n int) {
		for {
			d.w.mu.Lock()
			have := len(d.w.queue)
			d.w.mu.Unlock()
			if have >= n {
				return
			}
			runtime.Gosched()
		}
	})
	close(out)
	must(t, <-done)
}

// Many callers share one transaction and one sync; one that is refused, or that
// fails while it writes, does not harm the others of its group.
func TestAGroupSharesOneSyncAndARefusalHarmsNobodyElse(t *testing.T) {
	d := openAt(t, dbPath(t))
	for i := range 5 {
		must(t, add(d, Full, fmt.Sprint("r", i), 0))
	}
	_, err := d.Commit(bg, Full, Part{Run: "r0", Cmd: newCmd(), Tail: 1, Rows: Rows{Effects: []EffectRow{{ID: "e", Run: "r0", Ord: 1}}}})
	must(t, err)
	for _, failing := range []bool{false, true} {
		errs := make([]error, 5)
		before := d.Stats()
		var wg sync.WaitGroup
		heldWriter(t, d, func(queued func(int)) {
			for i := range errs {
				wg.Go(func() {
					run := fmt.Sprint("r", i)
					tail, _ := d.Tail(bg, run)
					p := Part{Run: run, Cmd: newCmd(), Tail: tail, Events: ev("Grouped")}
					if i == 3 && !failing {
						p.Tail = 7
					}
					if i == 3 && failing { // only writing it shows that the number is taken
						p.Run, p.Tail = "r0x", 0
						p.Rows.Effects = []EffectRow{{ID: "e", Run: "r0x", Ord: 1}}
					}
					_, errs[i] = d.Commit(bg, Durability(i%2), p)
				})
			}
			queued(5)
		})
		wg.Wait()
		for i, err := range errs {
			if (err != nil) != (i == 3) {
				t.Errorf("failing %v, caller %d: %v", failing, i, err)
			}
		}
		st := d.Stats()
		if n := st.Commits - before.Commits; !failing && (n != 2 || st.Syncs-before.Syncs != 2) { // the holder's and the group's
			t.Errorf("%d transactions, %d syncs", n, st.Syncs-before.Syncs)
		}
	}
	if n, _ := d.Tail(bg, "r0x"); n != 0 {
		t.Error("a failed part left something")
	}
	whole(t, d)
}

// Words first used by a transaction that was undone are not taken for recorded.
func TestAnUndoneTransactionLeavesNoTrace(t *testing.T) {
	d := openAt(t, dbPath(t))
	must(t, add(d, Full, "a", 0))
	_, err := d.Commit(bg, Full, Part{Run: "a", Cmd: newCmd(), Tail: 1, Rows: Rows{Effects: []EffectRow{{ID: "e", Run: "a", Ord: 1}}}})
	must(t, err)
	_, err = d.Commit(bg, Full, Part{Run: "b", Cmd: newCmd(), Events: []NewEvent{{Kind: "New word", Actor: "new actor"}}, Rows: Rows{Effects: []EffectRow{{ID: "e", Run: "b", Ord: 1}}}})
	if err == nil {
		t.Fatal("an effect's id was taken twice")
	}
	_, err = d.Commit(bg, Full, Part{Run: "b", Cmd: newCmd(), Events: []NewEvent{{Kind: "New word", Actor: "new actor"}}})
	must(t, err)
	es, err := d.Events(bg, "b", 0, 0)
	must(t, err)
	if len(es) != 1 || es[0].Kind != "New word" || es[0].Actor != "new actor" || es[0].Seq != 2 {
		t.Errorf("%+v", es)
	}
	whole(t, d)
}

// A lazy commit is synced once its time has come, unless a full one was first.
func TestALazyCommitIsSyncedInTime(t *testing.T) {
	tick := make(chan time.Time)
	synced := make(chan struct{}, 100)
	var asked []time.Duration
	var mu sync.Mutex
	o := Options{Path: dbPath(t), After: func(d time.Duration) <-chan time.Time {
		mu.Lock()
		defer mu.Unlock()
		if d == anchorAfter {
			return nil
		}
		asked = append(asked, d)
		return tick
	}}
	o.syncWAL = func(f *os.File) error {
		if filepath.Base(f.Name()) != "ledger.db-wal" {
			t.Errorf("synced %s", f.Name())
		}
		err := fdatasync(f)
		synced <- struct{}{}
		return err
	}
	d := openWith(t, o)
	must(t, add(d, Full, "r", 0))
	must(t, add(d, Lazy, "r", 1))
	if n, _ := d.Tail(bg, "r"); n != 2 {
		t.Error("a lazy commit is not visible at once")
	}
	if st := d.Stats(); st.Syncs != 1 || st.LazySyncs != 0 {
		t.Errorf("%+v", st)
	}
	tick <- time.Time{}
	<-synced
	must(t, add(d, Lazy, "r", 2))
	must(t, add(d, Full, "r", 3)) // covers it
	tick <- time.Time{}
	for armed := true; armed; runtime.Gosched() { // until that round is over
		d.wal.mu.Lock()
		armed = d.wal.armed
		d.wal.mu.Unlock()
	}
	must(t, add(d, Lazy, "r", 4))
	tick <- time.Time{}
	<-synced
	if len(synced) > 0 {
		t.Error("synced although a full commit had done it")
	}
	mu.Lock()
	defer mu.Unlock()
	for _, a := range asked {
		if a != 50*time.Millisecond {
			t.Errorf("waits %s", a)
		}
	}
}

// The anchor names synced events only, and follows Sync and Close.
func TestTheAnchorIsNeverAheadOfASync(t *testing.T) {
	never := func(time.Duration) <-chan time.Time { return nil }
	path := dbPath(t)
	d := openWith(t, Options{Path: path, After: never})
	at := func() int64 {
		h, _, err := readAnchor(path + ".head")
		must(t, err)
		return h.Seq
	}
	must(t, add(d, Full, "r", 0))
	must(t, add(d, Lazy, "r", 1))
	must(t, d.wal.anchorNow())
	if at() != 1 {
		t.Errorf("anchor at %d, only 1 is synced", at())
	}
	must(t, d.Sync(bg))
	if at() != 2 {
		t.Errorf("anchor at %d after Sync", at())
	}
	must(t, add(d, Lazy, "r", 2))
	must(t, d.Close())
	if at() != 3 {
		t.Errorf("anchor at %d after Close", at())
	}
	// A damaged anchor counts as none.
	b, err := os.ReadFile(path + ".head")
	must(t, err)
	must(t, os.WriteFile(path+".head", bytes.Replace(b, []byte("seq 3"), []byte("seq 9"), 1), 0o600))
	if _, ok, err := readAnchor(path + ".head"); ok || err != nil {
		t.Errorf("%v %v", ok, err)
	}
}

// A disk that fails to sync: the caller learns that the outcome is not known,
// and sending the same command again settles it without doubling anything.
func TestAnUnknownCommitIsReadBackByItsCommand(t *testing.T) {
	d := openAt(t, dbPath(t))
	must(t, add(d, Full, "r", 0))
	p := Part{Run: "r", Cmd: newCmd(), Tail: 1, Events: ev("Paid")}
	ps, err := prepareParts([]Part{p})
	must(t, err)
	// COMMIT went through, but its caller was told that it failed.
	heldWriter(t, d, func(func(int)) {})
	done := make(chan *request, 1)
	go func() {
		r := &request{parts: ps, full: true}
		d.w.submit(bg, &request{do: func(c *conn) error {
			if err := d.w.commitParts(r); err != nil {
				return err
			}
			return nil
		}})
		done <- r
	}()
	first := <-done
	r := &request{parts: ps, full: true}
	var res error
	must(t, d.w.submit(bg, &request{do: func(c *conn) error {
		d.w.undo() // as after an error from COMMIT
		d.w.again(r, errors.New("disk I/O error"), true)
		res = r.err
		return d.w.c.begin()
	}}))
	must(t, res)
	if fmt.Sprint(r.out) != fmt.Sprint(first.out) {
		t.Errorf("read back %+v, committed %+v", r.out, first.out)
	}
	if n, _ := d.Tail(bg, "r"); n != 2 {
		t.Errorf("%d events", n)
	}
	// And where it had not gone through, the second attempt records it.
	q := Part{Run: "r", Cmd: newCmd(), Tail: 2, Events: ev("Paid")}
	qs, err := prepareParts([]Part{q})
	must(t, err)
	r = &request{parts: qs, full: true}
	must(t, d.w.submit(bg, &request{do: func(c *conn) error {
		d.w.undo()
		d.w.again(r, errors.New("disk I/O error"), true)
		return d.w.c.begin()
	}}))
	must(t, r.err)
	_, err = d.Commit(bg, Full, q)
	must(t, err)
	if n, _ := d.Tail(bg, "r"); n != 3 {
		t.Errorf("%d events", n)
	}
	whole(t, d)
}

// After Close every method says so, at once; closing twice is no error.
func TestAClosedLedgerSaysSo(t *testing.T) {
	d := openAt(t, dbPath(t))
	must(t, add(d, Full, "r", 0))
	must(t, d.Close())
	must(t, d.Close())
	_, err1 := d.Head(bg)
	_, err2 := d.DataVersion(bg)
	_, err3 := d.Renew(bg)
	for _, err := range []error{add(d, Full, "r", 1), err1, err2, err3, d.PutBlob(bg, NewBlob(nil))} {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("%v", err)
		}
	}
}

// Several handles in one process: closing one does not take SQLite's locks away
// from the others, which would let a stranger remove the -wal under them.
func TestClosingOneHandleLeavesTheOthersTheirLocks(t *testing.T) {
	path := dbPath(t)
	a := openAt(t, path)
	must(t, add(a, Full, "r", 0))
	b := openAt(t, path)
	must(t, b.Close())
	if _, err := Open(bg, Options{Path: path, steps: laterSteps(t)[:1], ViewOnly: true}); err != nil {
		t.Fatal(err)
	}
	p := start(t, "once", path)
	p.expect("HEAD 1 false")
	p.expect("WRITE <nil>")
	p.finish() // as the last one it would have checkpointed and removed the -wal
	if fileSize(path+"-wal") == 0 {
		t.Error("a stranger took itself for the only one")
	}
	must(t, add(a, Full, "r", 1))
	whole(t, a)
}

// Reading all of a run pages on without holding anything.
func TestAllPagesThroughARun(t *testing.T) {
	d := openAt(t, dbPath(t))
	const n = 2*defaultEvents + 3
	for tail := int64(0); tail < n; {
		p := Part{Run: "r", Cmd: newCmd(), Tail: tail}
		for range min(500, n-tail) {
			p.Events = append(p.Events, ev("E")...)
		}
		_, err := d.Commit(bg, Lazy, p)
		must(t, err)
		tail += int64(len(p.Events))
	}
	must(t, add(d, Lazy, "s", 0))
	want := int64(1)
	for e, err := range d.All(bg, "r") {
		must(t, err)
		if e.N != want {
			t.Fatalf("%d, want %d", e.N, want)
		}
		want++
		if want == 1500 { // something else may be written meanwhile
			must(t, add(d, Lazy, "s", 1))
		}
	}
	if want != n+1 {
		t.Errorf("ended at %d", want)
	}
	var ids []string
	for id, err := range d.RunIDs(bg) {
		must(t, err)
		ids = append(ids, id)
	}
	if fmt.Sprint(ids) != "[r s]" {
		t.Error(ids)
	}
	ctx, cancel := context.WithCancel(bg)
	cancel()
	for _, err := range d.All(ctx, "r") {
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
}
