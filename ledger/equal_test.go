package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"pawl/ledger"
	"pawl/ledger/ledgertest"
)

// pair is the same process on both implementations.
type pair struct {
	db  *ledger.DB
	mem *ledger.MemHandle
}

// Whatever a few processes do, the ledger in SQLite and the one in memory answer
// alike: results, refusals and what is read back.
func TestBothLedgersAnswerAlike(t *testing.T) {
	c := newClock()
	path := filepath.Join(t.TempDir(), "ledger.db")
	m, err := ledger.NewMem(ledger.Options{Mono: c.Now, Boot: "boot", LeaseFor: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	var procs []pair
	for i := range 3 {
		owner := fmt.Sprint("pid ", i)
		h, err := m.Open(owner)
		if err != nil {
			t.Fatal(err)
		}
		procs = append(procs, pair{open(t, ledger.Options{Path: path, Owner: owner, Mono: c.Now, Boot: "boot", LeaseFor: time.Second}), h})
	}
	check := 0
	rapid.Check(t, func(rt *rapid.T) {
		check++
		s := &script{t: rt, procs: procs, clock: c, prefix: fmt.Sprintf("c%d-", check)}
		for range rapid.IntRange(1, 25).Draw(rt, "steps") {
			s.step()
		}
		s.compare()
	})
}

type script struct {
	t      *rapid.T
	procs  []pair
	clock  *clock
	prefix string
	past   [][]ledger.Part // sent before, to be sent again
}

var ctx = context.Background()

func (s *script) step() {
	p := rapid.SampledFrom(s.procs).Draw(s.t, "process")
	switch rapid.SampledFrom([]string{"commit", "commit", "commit", "again", "advance", "renew", "read"}).Draw(s.t, "what") {
	case "commit":
		s.commit(p, s.parts(p))
	case "again":
		if len(s.past) > 0 {
			s.commit(p, rapid.SampledFrom(s.past).Draw(s.t, "past"))
		}
	case "advance":
		s.clock.Advance(time.Duration(rapid.IntRange(0, 1500).Draw(s.t, "ms")) * time.Millisecond)
	case "renew":
		a, err1 := p.db.Renew(ctx)
		b, err2 := p.mem.Renew(ctx)
		s.same("renew", a, err1, b, err2)
	case "read":
		s.compare()
	}
}

// parts draws a commit that may or may not fit.
func (s *script) parts(p pair) []ledger.Part {
	var ps []ledger.Part
	runs := rapid.SliceOfNDistinct(rapid.IntRange(0, 2), 1, 2, rapid.ID[int]).Draw(s.t, "runs")
	for _, r := range runs {
		run := fmt.Sprint(s.prefix, r)
		tail, _ := p.mem.Tail(ctx, run)
		epoch := int64(0)
		if ls, _ := p.mem.Leases(ctx, run); len(ls) > 0 {
			epoch = ls[0].Epoch
		}
		part := ledger.Part{Run: run, Cmd: ledgertest.Cmd(), Tail: tail}
		switch rapid.IntRange(0, 5).Draw(s.t, "as") {
		case 0, 1: // the operator
		case 2, 3:
			part.Claim, part.Epoch = true, epoch+1
		case 4:
			part.Epoch = max(1, epoch)
		case 5:
			part.Epoch, part.Release = max(1, epoch), true
		}
		part.Tail += int64(rapid.SampledFrom([]int{0, 0, 0, 0, 1}).Draw(s.t, "off by"))
		for i := range rapid.IntRange(0, 3).Draw(s.t, "events") {
			part.Events = append(part.Events, ledger.NewEvent{
				Kind: rapid.SampledFrom([]string{"A", "B"}).Draw(s.t, "kind"), Actor: "engine", At: rapid.Int64().Draw(s.t, "at"), Payload: []byte{byte(i)},
			})
		}
		part.Rows = s.rows(run)
		ps = append(ps, part)
	}
	return ps
}

func (s *script) rows(run string) (r ledger.Rows) {
	small := rapid.IntRange(0, 3)
	if small.Draw(s.t, "run row") > 0 {
		r.Run = &ledger.RunRow{ID: run, State: fmt.Sprint("state", small.Draw(s.t, "state")), Goal: s.prefix, Created: int64(small.Draw(s.t, "created")), Parent: s.prefix}
	}
	for range small.Draw(s.t, "effects") {
		n := int64(len(r.Effects) + 1)
		r.Effects = append(r.Effects, ledger.EffectRow{ID: fmt.Sprint(run, "/", n), Run: run, Ord: n, State: fmt.Sprint(small.Draw(s.t, "effect state"))})
	}
	id := run + "?"
	switch small.Draw(s.t, "inbox") {
	case 1:
		r.Inbox = []ledger.InboxRow{{ID: id, Run: run, Kind: "question", Rank: int64(small.Draw(s.t, "rank"))}}
	case 2:
		r.Gone = []string{id}
	}
	return r
}

func (s *script) commit(p pair, ps []ledger.Part) {
	d := ledger.Durability(rapid.IntRange(0, 5).Draw(s.t, "lazy")/5 ^ 1) // mostly lazy: it is quicker
	a, err1 := p.db.Commit(ctx, d, ps...)
	b, err2 := p.mem.Commit(ctx, d, ps...)
	s.past = append(s.past, ps)
	// Numbers of the whole ledger go on from check to check alike.
	s.same("commit", a, err1, b, err2)
}

func (s *script) same(what string, a any, err1 error, b any, err2 error) {
	s.t.Helper()
	if !sameError(err1, err2) {
		s.t.Fatalf("%s: SQLite says %v, memory %v", what, err1, err2)
	}
	if err1 == nil && !reflect.DeepEqual(a, b) {
		s.t.Fatalf("%s:\nSQLite %+v\nmemory %+v", what, a, b)
	}
}

// sameError compares what callers act on.
func sameError(a, b error) bool {
	if (a == nil) != (b == nil) {
		return false
	}
	for _, p := range []struct{ a, b any }{
		{new(*ledger.TailError), new(*ledger.TailError)},
		{new(*ledger.FencedError), new(*ledger.FencedError)},
		{new(*ledger.HeldError), new(*ledger.HeldError)},
		{new(*ledger.NotFoundError), new(*ledger.NotFoundError)},
	} {
		if a != nil && (errors.As(a, p.a) != errors.As(b, p.b) || !reflect.DeepEqual(p.a, p.b)) {
			return false
		}
	}
	return true
}

// compare reads everything back from both.
func (s *script) compare() {
	p := s.procs[0]
	read := func(what string, f func(ledger.Store) (any, error)) {
		a, err1 := f(p.db)
		b, err2 := f(p.mem)
		s.same(what, a, err1, b, err2)
	}
	for r := range 3 {
		run := fmt.Sprint(s.prefix, r)
		read("events", func(l ledger.Store) (any, error) {
			es, err := l.Events(ctx, run, 0, 0)
			return fmt.Sprintf("%+v", es), err
		})
		read("run", func(l ledger.Store) (any, error) { return l.Run(ctx, run) })
		read("effects", func(l ledger.Store) (any, error) { return l.Effects(ctx, run, ledger.Page{Back: true, Limit: 2}) })
		read("inbox", func(l ledger.Store) (any, error) { return l.Inbox(ctx, run) })
		read("lease", func(l ledger.Store) (any, error) {
			ls, err := l.Leases(ctx, run)
			for i := range ls {
				ls[i].Holder = fmt.Sprint(ls[i].Holder != "") // ids are each store's own
			}
			return ls, err
		})
	}
	read("runs", func(l ledger.Store) (any, error) { return l.Runs(ctx, ledger.RunFilter{Parent: &s.prefix}) })
	read("head", func(l ledger.Store) (any, error) { return l.Head(ctx) })
}

// A power cut forgets lazy commits that nothing synced, and what came with
// them; a kill forgets nothing.
func TestAPowerCutForgetsWhatWasNotSynced(t *testing.T) {
	m, err := ledger.NewMem(ledger.Options{Boot: "monday", Mono: func() time.Duration { return time.Hour }})
	if err != nil {
		t.Fatal(err)
	}
	h, err := m.Open("pid 1")
	if err != nil {
		t.Fatal(err)
	}
	add := func(h *ledger.MemHandle, d ledger.Durability, tail int64) {
		t.Helper()
		_, err := h.Commit(ctx, d, ledger.Part{Run: "r", Cmd: ledgertest.Cmd(), Tail: tail, Events: []ledger.NewEvent{ledgertest.Event("E", "")}})
		if err != nil {
			t.Fatal(err)
		}
	}
	add(h, ledger.Lazy, 0)
	add(h, ledger.Full, 1)
	add(h, ledger.Lazy, 2)
	h.Kill()
	h, err = m.Open("pid 2")
	if err != nil {
		t.Fatal(err)
	}
	if n, _ := h.Tail(ctx, "r"); n != 3 {
		t.Errorf("a kill lost something: %d", n)
	}
	add(h, ledger.Lazy, 3)
	m.PowerCut("tuesday")
	if _, err := h.Tail(ctx, "r"); !errors.Is(err, ledger.ErrClosed) {
		t.Errorf("a process survived: %v", err)
	}
	if h, err = m.Open("pid 3"); err != nil {
		t.Fatal(err)
	}
	if n, _ := h.Tail(ctx, "r"); n != 2 {
		t.Errorf("%d events after the power cut", n)
	}
	add(h, ledger.Full, 2)
	if hd, err := h.Head(ctx); err != nil || hd.Seq != 3 {
		t.Errorf("%+v %v", hd, err)
	}
}
