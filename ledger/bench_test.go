package ledger

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A step as the engine commits it: three events before the effect, synced, and
// two after it, lazy, each with the rows they project to; 600 bytes of payload.

var cmdCounter atomic.Uint64

// newCmd returns a command id that is spread over the index as a random one is.
func newCmd() (c CommandID) {
	x := cmdCounter.Add(1)
	binary.BigEndian.PutUint64(c[:], x*0x9e3779b97f4a7c15)
	binary.BigEndian.PutUint64(c[8:], x)
	return c
}

type stepper struct {
	d     *DB
	run   RunRow
	tail  int64
	ord   int64
	epoch int64
	body  []byte
}

func newStepper(ctx context.Context, d *DB, id string) (*stepper, error) {
	s := &stepper{d: d, epoch: 1, run: RunRow{ID: id, Root: id, Goal: "make the tests of the billing module pass again", State: "running", Model: "scripted/demo", Repo: "~/src/billing", Created: 1_760_000_000_000_000}}
	s.body = []byte("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWX")[:120]
	_, err := d.Commit(ctx, Full, Part{Run: id, Cmd: newCmd(), Epoch: 1, Claim: true, Events: []NewEvent{{Kind: "RunStarted", Actor: "operator:ada", At: s.run.Created, Payload: s.body}}, Rows: Rows{Run: &s.run}})
	s.tail = 1
	return s, err
}

func (s *stepper) step(ctx context.Context) error {
	at := time.Now().UnixMicro()
	s.ord++
	s.run.Turn, s.run.Open, s.run.Updated = s.ord, 1, at
	e := EffectRow{
		ID: fmt.Sprintf("%s/e%d", s.run.ID, s.ord), Run: s.run.ID, Ord: s.ord, Turn: s.ord, Tool: "shell", Class: "WORKSPACE", State: "DISPATCHED", Attempts: 1,
		Digest: Hash{byte(s.ord), byte(s.ord >> 8), 1, 2, 3, 4, 5, 6, 7, 8}, Summary: "go test ./billing/...", Updated: at,
	}
	ev := func(kind string, at int64) NewEvent {
		return NewEvent{Kind: kind, At: at, Actor: "engine", Payload: s.body}
	}
	_, err := s.d.Commit(ctx, Full, Part{
		Run: s.run.ID, Cmd: newCmd(), Epoch: s.epoch, Tail: s.tail,
		Events: []NewEvent{ev("TurnEnded", at), ev("EffectIntended", at), ev("EffectDispatched", at+20)}, Rows: Rows{Run: &s.run, Effects: []EffectRow{e}},
	})
	if err != nil {
		return err
	}
	s.tail += 3
	e.State, s.run.Open = "COMPLETED", 0
	_, err = s.d.Commit(ctx, Lazy, Part{
		Run: s.run.ID, Cmd: newCmd(), Epoch: s.epoch, Tail: s.tail,
		Events: []NewEvent{ev("EffectCompleted", at+300), ev("TurnStarted", at+310)}, Rows: Rows{Run: &s.run, Effects: []EffectRow{e}},
	})
	s.tail += 2
	return err
}

// rawSync measures a 4 KiB append with fdatasync in dir: the median, in seconds.
func rawSync(b *testing.B, dir string) float64 {
	f, err := os.Create(filepath.Join(dir, "raw"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	page := make([]byte, 4096)
	ds := make([]time.Duration, 300)
	for i := range ds {
		t := time.Now()
		if _, err := f.Write(page); err != nil {
			b.Fatal(err)
		}
		if err := fdatasync(f); err != nil {
			b.Fatal(err)
		}
		ds[i] = time.Since(t)
	}
	slices.Sort(ds)
	return ds[len(ds)/2].Seconds()
}

func BenchmarkSteps(b *testing.B) {
	for _, runs := range []int{1, 50} {
		b.Run(fmt.Sprintf("runs=%d", runs), func(b *testing.B) { benchSteps(b, runs) })
	}
}

func benchSteps(b *testing.B, runs int) {
	dir := b.TempDir() // set TMPDIR to a directory on the disk in question
	raw := rawSync(b, dir)
	ctx := context.Background()
	path := filepath.Join(dir, "ledger.db")
	d, err := Open(ctx, Options{Path: path})
	if err != nil {
		b.Fatal(err)
	}
	ss := make([]*stepper, runs)
	for i := range ss {
		if ss[i], err = newStepper(ctx, d, fmt.Sprintf("r%06x", i)); err != nil {
			b.Fatal(err)
		}
	}
	d.Close() // checkpoints
	before := fileSize(path)
	if d, err = Open(ctx, Options{Path: path}); err != nil {
		b.Fatal(err)
	}
	for _, s := range ss {
		s.d, s.epoch = d, 2
		if _, err := d.Commit(ctx, Full, Part{Run: s.run.ID, Cmd: newCmd(), Epoch: 2, Tail: s.tail, Claim: true}); err != nil {
			b.Fatal(err)
		}
	}
	base := d.Stats()
	var left atomic.Int64
	left.Store(int64(b.N))
	lat := make([][]time.Duration, runs)
	var wg sync.WaitGroup
	b.ResetTimer()
	for i, s := range ss {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				t := time.Now()
				if err := s.step(ctx); err != nil {
					b.Error(err)
					return
				}
				lat[i] = append(lat[i], time.Since(t))
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	sec := b.Elapsed().Seconds()
	st := d.Stats()
	d.Close()
	all := slices.Sorted(func(yield func(time.Duration) bool) {
		for _, l := range lat {
			for _, x := range l {
				if !yield(x) {
					return
				}
			}
		}
	})
	n := float64(b.N)
	b.ReportMetric(n/sec, "steps/s")
	b.ReportMetric(float64(st.Commits-base.Commits)/sec, "commits/s")
	b.ReportMetric(float64(st.Syncs-base.Syncs)/n, "syncs/step")
	b.ReportMetric(float64(st.LazySyncs-base.LazySyncs)/n, "lazysyncs/step")
	b.ReportMetric(float64(fileSize(path)-before)/n, "bytes/step")
	b.ReportMetric(float64(all[len(all)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(all[len(all)*99/100].Microseconds()), "p99-µs")
	b.ReportMetric(raw*1e6, "fdatasync-µs")
	b.ReportMetric(n/sec*raw, "steps/fdatasync")
}
