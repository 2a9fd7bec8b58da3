// Package ledgertest holds the contract that every ledger.Store must keep, as
// tests to be run against an implementation.
package ledgertest

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pawl/ledger"
)

// Ledger is one empty ledger that several processes can open.
type Ledger struct {
	// Open gives the handle of one more process, known to people as owner.
	Open func(t *testing.T, owner string) ledger.Store
	// Advance moves the clock that leases run by.
	Advance func(d time.Duration)
	// LeaseFor is how long a claim holds.
	LeaseFor time.Duration
}

// RunContract runs all contract tests, each on a ledger of its own.
func RunContract(t *testing.T, fresh func(t *testing.T) Ledger) {
	for _, c := range []struct {
		name string
		test func(t *testing.T, l Ledger)
	}{
		{"AppendedEventsAreReadBackChained", appendAndRead},
		{"APartMustKnowTheTail", tailGuard},
		{"AllPartsOrNone", allOrNone},
		{"ACommandIsRecordedOnce", commandOnce},
		{"OneLivingOwner", oneOwner},
		{"AStaleEpochWritesNothing", fenced},
		{"ADeadOwnerIsTakenOverAtOnce", deadOwner},
		{"AnExpiredLeaseCanBeClaimed", expired},
		{"RenewKeepsAndReportsLosses", renew},
		{"RowsAreWrittenWhole", rows},
		{"RowsOfAnotherRunAreRefused", foreignRows},
		{"RunsAreFiltered", filters},
		{"PagesMeetWithoutOverlap", pages},
		{"BlobsRoundTrip", blobs},
		{"ConcurrentRunsShareOneOrder", concurrent},
		{"ACancelledCallerWroteNothing", cancelled},
		{"CommitsAreNoticed", noticed},
		{"MistakesAreRefused", mistakes},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, fresh(t)) })
	}
}

var ctx = context.Background()

var cmds atomic.Uint64

// Cmd returns a command id never returned before in this process.
func Cmd() (c ledger.CommandID) {
	binary.BigEndian.PutUint64(c[:], cmds.Add(1)*0x9e3779b97f4a7c15)
	binary.BigEndian.PutUint64(c[8:], cmds.Load())
	return c
}

// Event returns an event whose payload is body.
func Event(kind, body string) ledger.NewEvent {
	return ledger.NewEvent{Kind: kind, At: 1_700_000_000_000_000, Actor: "engine", Payload: []byte(body)}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// fails asserts that err is of type E, and returns it.
func fails[E error](t *testing.T, err error) E {
	t.Helper()
	var e E
	if !errors.As(err, &e) {
		t.Fatalf("got error %v (%T), want a %T", err, err, e)
	}
	if e.Error() == "" {
		t.Error("the error says nothing")
	}
	return e
}

func same[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("%s:\n got %+v\nwant %+v", what, got, want)
	}
}

// begin creates a run by an operator's commit.
func begin(t *testing.T, s ledger.Store, run string) {
	t.Helper()
	_, err := s.Commit(ctx, ledger.Full, ledger.Part{Run: run, Cmd: Cmd(), Events: []ledger.NewEvent{Event("Created", run)}})
	must(t, err)
}

func appendAndRead(t *testing.T, l Ledger) {
	s := l.Open(t, "a")
	cmd := Cmd()
	in := []ledger.NewEvent{
		{Kind: "Created", At: 5, Actor: "operator:ada", Payload: []byte("one")},
		{Kind: "Noted", At: 3, Actor: "engine"}, // a wall clock may run backwards
		{Kind: "Created", At: 9, Actor: "model", Payload: bytes.Repeat([]byte{0, 1}, ledger.MaxPayload/2)},
	}
	got, err := s.Commit(ctx, ledger.Full, ledger.Part{Run: "r1", Cmd: cmd, Events: in})
	must(t, err)
	begin(t, s, "r2")
	more, err := s.Commit(ctx, ledger.Lazy, ledger.Part{Run: "r1", Cmd: Cmd(), Tail: 3, Events: []ledger.NewEvent{Event("Noted", "four")}})
	must(t, err)
	if c := got[0]; c.Run != "r1" || c.Tail != 3 || c.FirstSeq != 1 {
		t.Errorf("first commit: %+v", c)
	}
	if c := more[0]; c.Tail != 4 || c.FirstSeq != 5 {
		t.Errorf("second commit: %+v", c)
	}
	es, err := s.Events(ctx, "r1", 0, 0)
	must(t, err)
	if len(es) != 4 {
		t.Fatalf("%d events", len(es))
	}
	var prev ledger.Hash
	for i, e := range es[:3] {
		if e.N != int64(i+1) || e.Seq != int64(i+1) || e.Run != "r1" || e.Cmd != cmd || e.Kind != in[i].Kind || e.At != in[i].At ||
			e.Actor != in[i].Actor || e.Epoch != 0 || !bytes.Equal(e.Payload, in[i].Payload) {
			t.Errorf("event %d: %+v", i, e)
		}
		if prev = ledger.Link(prev, e); prev != e.Hash {
			t.Errorf("event %d: its hash does not follow from the one before", i)
		}
	}
	if got[0].Hash != prev || more[0].Hash != ledger.Link(prev, es[3]) || es[3].Hash != more[0].Hash {
		t.Error("commits do not return the head of the chain")
	}
	tail, err := s.Tail(ctx, "r1")
	must(t, err)
	none, err := s.Tail(ctx, "unknown")
	must(t, err)
	head, err := s.Head(ctx)
	must(t, err)
	if tail != 4 || none != 0 || head != (ledger.Head{Seq: 5, Hash: more[0].Hash}) {
		t.Errorf("tail %d, of an unknown run %d, head %+v", tail, none, head)
	}
	if es, err := s.Events(ctx, "unknown", 0, 0); err != nil || len(es) != 0 {
		t.Errorf("an unknown run has events: %v %v", es, err)
	}
}

func tailGuard(t *testing.T, l Ledger) {
	s := l.Open(t, "a")
	begin(t, s, "r1")
	try := func(tail int64) error {
		_, err := s.Commit(ctx, ledger.Lazy, ledger.Part{Run: "r1", Cmd: Cmd(), Tail: tail, Events: []ledger.NewEvent{Event("E", "x")}})
		return err
	}
	e := fails[*ledger.TailError](t, try(0))
	same(t, "error", *e, ledger.TailError{Run: "r1", Want: 0, Have: 1})
	fails[*ledger.TailError](t, try(2))
	must(t, try(1))
	_, err := s.Commit(ctx, ledger.Lazy, ledger.Part{Run: "r2", Cmd: Cmd(), Tail: 1, Events: []ledger.NewEvent{Event("E", "x")}})
	fails[*ledger.TailError](t, err)
	if n, err := s.Tail(ctx, "r2"); n != 0 || err != nil {
		t.Errorf("a refused part left something: %d %v", n, err)
	}
}

func allOrNone(t *testing.T, l Ledger) {
	s := l.Open(t, "a")
	begin(t, s, "parent")
	part := func(run string, tail int64) ledger.Part {
		return ledger.Part{
			Run: run, Cmd: Cmd(), Tail: tail, Events: []ledger.NewEvent{Event("E", run)},
			Rows: ledger.Rows{Run: &ledger.RunRow{ID: run, State: "running"}}, Blobs: []ledger.Blob{ledger.NewBlob([]byte(run))},
		}
	}
	_, err := s.Commit(ctx, ledger.Full, part("child", 0), part("parent", 7))
	fails[*ledger.TailError](t, err)
	if n, _ := s.Tail(ctx, "child"); n != 0 {
		t.Error("the first part was written although the second was refused")
	}
	_, err = s.Run(ctx, "child")
	fails[*ledger.NotFoundError](t, err)
	_, err = s.Blob(ctx, ledger.NewBlob([]byte("child")).Hash)
	fails[*ledger.NotFoundError](t, err)
	out, err := s.Commit(ctx, ledger.Full, part("child", 0), part("parent", 1))
	must(t, err)
	if len(out) != 2 || out[0].Run != "child" || out[0].FirstSeq != 2 || out[1].FirstSeq != 3 || out[1].Tail != 2 {
		t.Errorf("%+v", out)
	}
}

func commandOnce(t *testing.T, l Ledger) {
	s := l.Open(t, "a")
	first := ledger.Part{Run: "r", Cmd: Cmd(), Epoch: 1, Claim: true, Events: []ledger.NewEvent{Event("E", "1"), Event("E", "2")}}
	quiet := ledger.Part{Run: "r", Cmd: Cmd(), Epoch: 1, Tail: 2, Rows: ledger.Rows{Run: &ledger.RunRow{ID: "r", Note: "once"}}}
	a1, err := s.Commit(ctx, ledger.Full, first)
	must(t, err)
	q1, err := s.Commit(ctx, ledger.Lazy, quiet)
	must(t, err)
	_, err = s.Commit(ctx, ledger.Full, ledger.Part{Run: "r", Cmd: Cmd(), Tail: 2, Events: []ledger.NewEvent{Event("E", "3")}, Rows: ledger.Rows{Run: &ledger.RunRow{ID: "r", Note: "later"}}})
	must(t, err)
	// Sent again later, and by somebody else: what they did then, and nothing now.
	for _, h := range []ledger.Store{s, l.Open(t, "b")} {
		a2, err := h.Commit(ctx, ledger.Full, first)
		must(t, err)
		q2, err := h.Commit(ctx, ledger.Lazy, quiet)
		must(t, err)
		same(t, "events", a2, a1)
		same(t, "no events", q2, q1)
	}
	r, err := s.Run(ctx, "r")
	must(t, err)
	if n, _ := s.Tail(ctx, "r"); n != 3 || r.Note != "later" {
		t.Errorf("tail %d, note %q", n, r.Note)
	}
	// The same id for something else is a mistake, and writes nothing.
	bad := first
	bad.Run, bad.Claim, bad.Epoch, bad.Tail = "other", false, 0, 1
	if _, err := s.Commit(ctx, ledger.Full, bad); err == nil {
		t.Error("a command id was taken for two runs")
	}
	if n, _ := s.Tail(ctx, "other"); n != 0 {
		t.Error("... and written")
	}
}

func claim(s ledger.Store, run string, epoch, tail int64) error {
	_, err := s.Commit(ctx, ledger.Lazy, ledger.Part{Run: run, Cmd: Cmd(), Epoch: epoch, Tail: tail, Claim: true, Events: []ledger.NewEvent{Event("Claimed", "")}})
	return err
}

func add(s ledger.Store, run string, epoch, tail int64) error {
	_, err := s.Commit(ctx, ledger.Lazy, ledger.Part{Run: run, Cmd: Cmd(), Epoch: epoch, Tail: tail, Events: []ledger.NewEvent{Event("E", "")}})
	return err
}

func lease(t *testing.T, s ledger.Store, run string) ledger.Lease {
	t.Helper()
	ls, err := s.Leases(ctx, run)
	must(t, err)
	if len(ls) != 1 {
		t.Fatalf("leases of %s: %+v", run, ls)
	}
	return ls[0]
}

func oneOwner(t *testing.T, l Ledger) {
	a, b := l.Open(t, "pid 1"), l.Open(t, "pid 2")
	begin(t, a, "r")
	must(t, claim(a, "r", 1, 1))
	e := fails[*ledger.HeldError](t, claim(b, "r", 2, 2))
	if e.Owner != "pid 1" || e.Run != "r" || e.Left <= 0 || e.Left > l.LeaseFor {
		t.Errorf("%+v", e)
	}
	for _, h := range []ledger.Store{a, b} {
		if x := lease(t, h, "r"); !x.Live || x.Epoch != 1 || x.Owner != "pid 1" || x.Left <= 0 || x.Holder == "" {
			t.Errorf("lease: %+v", x)
		}
	}
	// Given up, it is anybody's, with the next epoch only.
	_, err := a.Commit(ctx, ledger.Full, ledger.Part{Run: "r", Cmd: Cmd(), Epoch: 1, Tail: 2, Release: true})
	must(t, err)
	if x := lease(t, b, "r"); x.Live || x.Holder != "" || x.Epoch != 1 {
		t.Errorf("released lease: %+v", x)
	}
	if ls, err := a.Leases(ctx); err != nil || len(ls) != 0 {
		t.Errorf("held: %+v %v", ls, err)
	}
	fails[*ledger.FencedError](t, claim(b, "r", 1, 2))
	fails[*ledger.FencedError](t, claim(b, "r", 3, 2))
	must(t, claim(b, "r", 2, 2))
	fails[*ledger.FencedError](t, add(a, "r", 1, 3))
	// A process may claim what it holds once more: its older half is fenced.
	must(t, claim(b, "r", 3, 3))
	fails[*ledger.FencedError](t, add(b, "r", 2, 4))
	must(t, add(b, "r", 3, 4))
}

func fenced(t *testing.T, l Ledger) {
	a, b := l.Open(t, "pid 1"), l.Open(t, "pid 2")
	begin(t, a, "r")
	begin(t, a, "free")
	fails[*ledger.FencedError](t, add(a, "free", 1, 1)) // never claimed
	must(t, claim(a, "r", 1, 1))
	fails[*ledger.FencedError](t, add(b, "r", 1, 2)) // the right epoch, but not its holder
	l.Advance(l.LeaseFor + time.Second)
	must(t, add(a, "r", 1, 2)) // run out, but nobody else claimed
	must(t, claim(b, "r", 2, 3))
	e := fails[*ledger.FencedError](t, add(a, "r", 1, 4))
	same(t, "error", *e, ledger.FencedError{Run: "r", Epoch: 1, Current: 2, Owner: "pid 2"})
	_, err := a.Commit(ctx, ledger.Full, ledger.Part{Run: "r", Cmd: Cmd(), Epoch: 1, Tail: 4, Rows: ledger.Rows{Run: &ledger.RunRow{ID: "r", Note: "zombie"}}})
	fails[*ledger.FencedError](t, err)
	_, err = a.Run(ctx, "r")
	fails[*ledger.NotFoundError](t, err)
	// A decision of the operator needs no lease.
	_, err = a.Commit(ctx, ledger.Full, ledger.Part{Run: "r", Cmd: Cmd(), Tail: 4, Events: []ledger.NewEvent{Event("Decided", "")}})
	must(t, err)
	if n, _ := a.Tail(ctx, "r"); n != 5 {
		t.Errorf("%d events", n)
	}
}

func deadOwner(t *testing.T, l Ledger) {
	a, b := l.Open(t, "pid 1"), l.Open(t, "pid 2")
	begin(t, a, "r")
	must(t, claim(a, "r", 1, 1))
	fails[*ledger.HeldError](t, claim(b, "r", 2, 2))
	must(t, a.Close())
	if x := lease(t, b, "r"); x.Live || x.Left <= 0 {
		t.Errorf("lease of a dead owner: %+v", x)
	}
	must(t, claim(b, "r", 2, 2))
	_, err := a.Commit(ctx, ledger.Full, ledger.Part{Run: "r", Cmd: Cmd(), Tail: 3, Events: []ledger.NewEvent{Event("E", "")}})
	if !errors.Is(err, ledger.ErrClosed) {
		t.Errorf("a closed handle: %v", err)
	}
}

func expired(t *testing.T, l Ledger) {
	a, b := l.Open(t, "pid 1"), l.Open(t, "pid 2")
	begin(t, a, "r")
	must(t, claim(a, "r", 1, 1))
	l.Advance(l.LeaseFor - time.Millisecond)
	fails[*ledger.HeldError](t, claim(b, "r", 2, 2))
	l.Advance(time.Millisecond)
	if x := lease(t, b, "r"); x.Live || x.Left > 0 {
		t.Errorf("lease: %+v", x)
	}
	must(t, claim(b, "r", 2, 2))
	fails[*ledger.HeldError](t, claim(a, "r", 3, 3))
}

func renew(t *testing.T, l Ledger) {
	a, b := l.Open(t, "pid 1"), l.Open(t, "pid 2")
	for _, r := range []string{"r1", "r2", "r3"} {
		begin(t, a, r)
		must(t, claim(a, r, 1, 1))
	}
	_, err := a.Commit(ctx, ledger.Lazy, ledger.Part{Run: "r3", Cmd: Cmd(), Epoch: 1, Tail: 2, Release: true})
	must(t, err)
	for range 3 {
		l.Advance(l.LeaseFor / 2)
		lost, err := a.Renew(ctx)
		must(t, err)
		if len(lost) > 0 {
			t.Fatalf("lost %v", lost)
		}
	}
	fails[*ledger.HeldError](t, claim(b, "r1", 2, 2))
	l.Advance(l.LeaseFor)
	must(t, claim(b, "r1", 2, 2))
	lost, err := a.Renew(ctx)
	must(t, err)
	same(t, "lost", lost, []string{"r1"})
	lost, err = a.Renew(ctx)
	must(t, err)
	if len(lost) > 0 {
		t.Errorf("reported twice: %v", lost)
	}
	if x := lease(t, b, "r1"); x.Owner != "pid 2" || !x.Live {
		t.Errorf("%+v", x)
	}
	if x := lease(t, b, "r2"); x.Owner != "pid 1" || !x.Live { // run out and renewed, as nobody else came
		t.Errorf("%+v", x)
	}
}

func cancelled(t *testing.T, l Ledger) {
	s := l.Open(t, "a")
	c, cancel := context.WithCancel(ctx)
	cancel()
	for i := range 20 {
		_, err := s.Commit(c, ledger.Full, ledger.Part{Run: fmt.Sprint("r", i), Cmd: Cmd(), Events: []ledger.NewEvent{Event("E", "")}})
		n, _ := s.Tail(ctx, fmt.Sprint("r", i))
		if err == nil && n != 1 || err != nil && (n != 0 || !errors.Is(err, context.Canceled)) {
			t.Fatalf("error %v, but %d events", err, n)
		}
	}
	if _, err := s.Events(c, "r1", 0, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("read: %v", err)
	}
}

func noticed(t *testing.T, l Ledger) {
	a, b := l.Open(t, "a"), l.Open(t, "b")
	v1, err := b.DataVersion(ctx)
	must(t, err)
	v2, err := b.DataVersion(ctx)
	must(t, err)
	if v1 != v2 {
		t.Error("the version moved although nothing happened")
	}
	begin(t, a, "r")
	if v3, err := b.DataVersion(ctx); err != nil || v3 == v2 {
		t.Errorf("another process's commit went unnoticed: %d %d %v", v2, v3, err)
	}
	<-a.Changed() // blocks for ever if the commit was not signalled
	st := a.Stats()
	if st.Commits != 1 || st.Parts != 1 || st.Events != 1 || st.Syncs != 1 {
		t.Errorf("%+v", st)
	}
}

func mistakes(t *testing.T, l Ledger) {
	s := l.Open(t, "a")
	begin(t, s, "r")
	ev := []ledger.NewEvent{Event("E", "")}
	for name, parts := range map[string][]ledger.Part{
		"no parts":             nil,
		"no run":               {{Cmd: Cmd(), Events: ev}},
		"no command":           {{Run: "x", Events: ev}},
		"nothing to begin":     {{Run: "x", Cmd: Cmd()}},
		"claim without epoch":  {{Run: "r", Cmd: Cmd(), Tail: 1, Claim: true}},
		"negative tail":        {{Run: "r", Cmd: Cmd(), Tail: -1, Events: ev}},
		"one run twice":        {{Run: "r", Cmd: Cmd(), Tail: 1, Events: ev}, {Run: "r", Cmd: Cmd(), Tail: 2, Events: ev}},
		"no kind":              {{Run: "r", Cmd: Cmd(), Tail: 1, Events: []ledger.NewEvent{{Actor: "a"}}}},
		"payload over the top": {{Run: "r", Cmd: Cmd(), Tail: 1, Events: []ledger.NewEvent{{Kind: "E", Actor: "a", Payload: make([]byte, ledger.MaxPayload+1)}}}},
		"row of another run":   {{Run: "r", Cmd: Cmd(), Tail: 1, Events: ev, Rows: ledger.Rows{Run: &ledger.RunRow{ID: "q"}}}},
	} {
		if _, err := s.Commit(ctx, ledger.Full, parts...); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if h, err := s.Head(ctx); err != nil || h.Seq != 1 {
		t.Errorf("head %+v %v", h, err)
	}
}

func concurrent(t *testing.T, l Ledger) {
	const runs, each = 8, 25
	hs := []ledger.Store{l.Open(t, "a"), l.Open(t, "b")}
	var wg sync.WaitGroup
	for i := range runs {
		wg.Go(func() {
			s, run := hs[i%len(hs)], fmt.Sprint("r", i)
			rnd := rand.New(rand.NewPCG(1, uint64(i)))
			tail := int64(0)
			for k := range each {
				d := ledger.Lazy
				if rnd.IntN(2) == 0 {
					d = ledger.Full
				}
				p := ledger.Part{Run: run, Cmd: Cmd(), Tail: tail, Epoch: 1, Claim: k == 0}
				for range 1 + rnd.IntN(4) {
					p.Events = append(p.Events, Event("E", fmt.Sprint(run, k)))
				}
				out, err := s.Commit(ctx, d, p)
				if err != nil {
					t.Errorf("%s: %v", run, err)
					return
				}
				tail = out[0].Tail
			}
		})
	}
	wg.Wait()
	heads := map[string]ledger.Event{}
	var seq int64
	for {
		es, err := hs[0].EventsSince(ctx, seq, 37)
		must(t, err)
		for _, e := range es {
			p := heads[e.Run]
			if e.Seq != seq+1 || e.N != p.N+1 || e.Hash != ledger.Link(p.Hash, e) {
				t.Fatalf("event %d (run %s, %d) does not follow %d (%d)", e.Seq, e.Run, e.N, seq, p.N)
			}
			seq, heads[e.Run] = e.Seq, e
		}
		if len(es) < 37 {
			break
		}
	}
	if len(heads) != runs {
		t.Errorf("%d runs", len(heads))
	}
}
