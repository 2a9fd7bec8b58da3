package ledgertest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"pawl/ledger"
)

func rows(t *testing.T, l Ledger) {
	s := l.Open(t, "a")
	run := ledger.RunRow{
		ID: "r", Parent: "p", Root: "q", Goal: "goal", State: "running", Model: "m", Repo: "d", Turn: 1, SpendMicroUSD: 2, AtMostMicroUSD: 3,
		BudgetMicroUSD: 4, Open: 5, Waiting: 6, Created: 7, Updated: 8, LastOperator: 9, Note: "n", Flags: 10,
	}
	eff := func(i int64) ledger.EffectRow {
		return ledger.EffectRow{
			ID: fmt.Sprint("e", i), Run: "r", Ord: i, Turn: i, Tool: "shell", Class: "READ", State: "INTENDED", Attempts: i, Forced: i%2 == 0,
			Digest: ledger.Hash{byte(i)}, Summary: "s", Updated: i,
		}
	}
	rs := ledger.Rows{
		Run: &run, Effects: []ledger.EffectRow{eff(1), eff(2)},
		Approvals: []ledger.ApprovalRow{{ID: "a1", Run: "r", Effect: "e1", State: "PENDING", Digest: ledger.Hash{1}, Updated: 2}, {ID: "a2", Run: "r", Effect: "e2", State: "PENDING", Updated: 1}},
		Inbox:     []ledger.InboxRow{{ID: "i1", Run: "r", Kind: "approval", Ref: "a1", Summary: "s", Rank: 2, Since: 1}, {ID: "i2", Run: "r", Kind: "question", Ref: "x", Rank: 1, Since: 9}},
		Windows:   []ledger.WindowRow{{Run: "r", N: 2, Opened: 5}, {Run: "r", N: 1, Opened: 1, Turns: 2, Tokens: 3}},
	}
	_, err := s.Commit(ctx, ledger.Full, ledger.Part{Run: "r", Cmd: Cmd(), Events: []ledger.NewEvent{Event("E", "")}, Rows: rs})
	must(t, err)
	check := func() {
		t.Helper()
		r, err := s.Run(ctx, "r")
		must(t, err)
		same(t, "run", r, *rs.Run)
		es, err := s.Effects(ctx, "r", ledger.Page{})
		must(t, err)
		same(t, "effects", es, rs.Effects)
		e, err := s.Effect(ctx, "e1")
		must(t, err)
		same(t, "effect", e, rs.Effects[0])
		as, err := s.Approvals(ctx, "r")
		must(t, err)
		same(t, "approvals", as, []ledger.ApprovalRow{rs.Approvals[1], rs.Approvals[0]})
		a, err := s.Approval(ctx, "a1")
		must(t, err)
		same(t, "approval", a, rs.Approvals[0])
		for _, of := range []string{"r", ""} {
			b, err := s.Inbox(ctx, of)
			must(t, err)
			same(t, "inbox", b, []ledger.InboxRow{rs.Inbox[1], rs.Inbox[0]})
		}
		b, err := s.InboxItem(ctx, "i2")
		must(t, err)
		same(t, "inbox item", b, rs.Inbox[1])
		ws, err := s.Windows(ctx, "r")
		must(t, err)
		same(t, "windows", ws, []ledger.WindowRow{rs.Windows[1], rs.Windows[0]})
	}
	check()

	// Everything changed, indexed columns too.
	run = ledger.RunRow{ID: "r", Goal: "other", State: "done", Created: 70}
	for i := range rs.Effects {
		rs.Effects[i] = ledger.EffectRow{ID: rs.Effects[i].ID, Run: "r", Ord: rs.Effects[i].Ord, Tool: "http_request", Class: "KEYED", State: "COMPLETED"}
	}
	rs.Approvals[0].State, rs.Approvals[0].Updated = "GRANTED", 3
	rs.Inbox[0].Summary, rs.Inbox[0].Since = "changed", 2
	rs.Windows[0].Tokens = 99
	_, err = s.Commit(ctx, ledger.Lazy, ledger.Part{Run: "r", Cmd: Cmd(), Tail: 1, Rows: rs})
	must(t, err)
	check()

	_, err = s.Commit(ctx, ledger.Lazy, ledger.Part{Run: "r", Cmd: Cmd(), Tail: 1, Rows: ledger.Rows{Gone: []string{"i1", "i2", "never"}}})
	must(t, err)
	if b, err := s.Inbox(ctx, ""); err != nil || len(b) != 0 {
		t.Errorf("%+v %v", b, err)
	}
	for what, f := range map[string]func() error{
		"run":        func() error { _, err := s.Run(ctx, "no"); return err },
		"effect":     func() error { _, err := s.Effect(ctx, "no"); return err },
		"approval":   func() error { _, err := s.Approval(ctx, "no"); return err },
		"inbox item": func() error { _, err := s.InboxItem(ctx, "i1"); return err },
	} {
		if e := fails[*ledger.NotFoundError](t, f()); e.What != what {
			t.Errorf("%s: %v", what, e)
		}
	}
}

func foreignRows(t *testing.T, l Ledger) {
	s := l.Open(t, "a")
	own := ledger.Rows{
		Effects:   []ledger.EffectRow{{ID: "e", Run: "r1", Ord: 1}},
		Approvals: []ledger.ApprovalRow{{ID: "a", Run: "r1"}},
		Inbox:     []ledger.InboxRow{{ID: "i", Run: "r1"}},
	}
	_, err := s.Commit(ctx, ledger.Full, ledger.Part{Run: "r1", Cmd: Cmd(), Events: []ledger.NewEvent{Event("E", "")}, Rows: own})
	must(t, err)
	begin(t, s, "r2")
	for name, r := range map[string]ledger.Rows{
		"effect":      {Effects: []ledger.EffectRow{{ID: "e", Run: "r2", Ord: 1}}},
		"approval":    {Approvals: []ledger.ApprovalRow{{ID: "a", Run: "r2"}}},
		"inbox":       {Inbox: []ledger.InboxRow{{ID: "i", Run: "r2"}}},
		"other's row": {Inbox: []ledger.InboxRow{{ID: "j", Run: "r1"}}},
	} {
		_, err := s.Commit(ctx, ledger.Full, ledger.Part{Run: "r2", Cmd: Cmd(), Tail: 1, Events: []ledger.NewEvent{Event("E", "")}, Rows: r})
		if err == nil {
			t.Errorf("%s: taken over from another run", name)
		}
	}
	if n, _ := s.Tail(ctx, "r2"); n != 1 {
		t.Errorf("a refused part appended: %d events", n)
	}
	// Removing an item through another run does nothing.
	e, err := s.Effect(ctx, "e")
	must(t, err)
	if e.Run != "r1" {
		t.Errorf("%+v", e)
	}
}

func filters(t *testing.T, l Ledger) {
	s := l.Open(t, "a")
	states := []string{"running", "waiting", "done"}
	for i := range 12 {
		r := ledger.RunRow{ID: fmt.Sprintf("run%02d", i), State: states[i%3], Created: int64(i / 2), Goal: fmt.Sprintf("Fix the %d%% bug_%d", i, i)}
		if i >= 8 {
			r.Parent = "run00"
		}
		_, err := s.Commit(ctx, ledger.Lazy, ledger.Part{Run: r.ID, Cmd: Cmd(), Events: []ledger.NewEvent{Event("E", "")}, Rows: ledger.Rows{Run: &r}})
		must(t, err)
	}
	root, child := "", "run00"
	for name, c := range map[string]struct {
		f    ledger.RunFilter
		want string
	}{
		"all, newest first": {ledger.RunFilter{}, "11 10 09 08 07 06 05 04 03 02 01 00"},
		"limit":             {ledger.RunFilter{Limit: 3}, "11 10 09"},
		"before, same time": {ledger.RunFilter{Before: "run09", Limit: 3}, "08 07 06"},
		"one state":         {ledger.RunFilter{States: []string{"done"}}, "11 08 05 02"},
		"states and before": {ledger.RunFilter{States: []string{"running", "done"}, Before: "run08"}, "06 05 03 02 00"},
		"roots":             {ledger.RunFilter{Parent: &root, Limit: 2}, "07 06"},
		"children":          {ledger.RunFilter{Parent: &child, States: states, Before: "run11"}, "10 09 08"},
		"search, any case":  {ledger.RunFilter{Search: "FIX THE 3% B"}, "03"},
		"search, no globs":  {ledger.RunFilter{Search: "bug%1"}, ""},
		"search by id":      {ledger.RunFilter{Search: "n1"}, "11 10"},
	} {
		rs, err := s.Runs(ctx, c.f)
		must(t, err)
		got := ""
		for i, r := range rs {
			if i > 0 {
				got += " "
			}
			got += r.ID[3:]
		}
		if got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
	_, err := s.Runs(ctx, ledger.RunFilter{Before: "nobody"})
	fails[*ledger.NotFoundError](t, err)
	n, err := s.CountRuns(ctx)
	must(t, err)
	same(t, "counts", n, map[string]int64{"running": 4, "waiting": 4, "done": 4})
}

func pages(t *testing.T, l Ledger) {
	s := l.Open(t, "a")
	const n = 57
	begin(t, s, "other")
	for tail := int64(0); tail < n; {
		p := ledger.Part{Run: "r", Cmd: Cmd(), Tail: tail}
		for range min(1+tail%4, n-tail) {
			tail++
			p.Events = append(p.Events, Event("E", fmt.Sprint(tail)))
			p.Rows.Effects = append(p.Rows.Effects, ledger.EffectRow{ID: fmt.Sprint("e", tail), Run: "r", Ord: tail})
		}
		_, err := s.Commit(ctx, ledger.Lazy, p)
		must(t, err)
	}
	numbers := func(from, to int64) (out []int64) {
		for i := from; i <= to; i++ {
			out = append(out, i)
		}
		return out
	}
	for _, c := range []struct {
		p        ledger.Page
		from, to int64
	}{
		{ledger.Page{}, 1, n},
		{ledger.Page{Limit: 5}, 1, 5},
		{ledger.Page{After: 5, Limit: 5}, 6, 10},
		{ledger.Page{After: 55, Limit: 5}, 56, n},
		{ledger.Page{After: n, Limit: 5}, 1, 0},
		{ledger.Page{Back: true, Limit: 5}, 53, n},
		{ledger.Page{Back: true, After: 53, Limit: 5}, 48, 52},
		{ledger.Page{Back: true, After: 4, Limit: 5}, 1, 3},
		{ledger.Page{Back: true, After: 1, Limit: 5}, 1, 0},
		{ledger.Page{Back: true, After: 999, Limit: 2}, 56, n},
	} {
		es, err := s.EventsPage(ctx, "r", c.p)
		must(t, err)
		var got []int64
		for _, e := range es {
			if string(e.Payload) != fmt.Sprint(e.N) {
				t.Errorf("event %d says %q", e.N, e.Payload)
			}
			got = append(got, e.N)
		}
		same(t, fmt.Sprintf("events %+v", c.p), got, numbers(c.from, c.to))
		fs, err := s.Effects(ctx, "r", c.p)
		must(t, err)
		got = nil
		for _, f := range fs {
			got = append(got, f.Ord)
		}
		same(t, fmt.Sprintf("effects %+v", c.p), got, numbers(c.from, c.to))
	}
	es, err := s.Events(ctx, "r", 10, 3)
	must(t, err)
	if len(es) != 3 || es[0].N != 11 {
		t.Errorf("%+v", es)
	}
	es, err = s.EventsSince(ctx, 20, 4) // seq 1 is the other run's
	must(t, err)
	if len(es) != 4 || es[0].Seq != 21 || es[0].N != 20 || es[3].N != 23 {
		t.Errorf("%+v", es)
	}
}

func blobs(t *testing.T, l Ledger) {
	s := l.Open(t, "a")
	rnd := rand.New(rand.NewPCG(1, 2))
	noise := make([]byte, 6<<20+123) // does not compress: several frames, written ahead of its part
	for i := range noise {
		noise[i] = byte(rnd.Uint32())
	}
	all := [][]byte{{}, []byte("x"), bytes.Repeat([]byte("pawl "), 1<<19), noise}
	for i, p := range all {
		b := ledger.NewBlob(p)
		if _, err := s.Blob(ctx, b.Hash); err == nil {
			t.Fatal("there before it was stored")
		}
		if i%2 == 0 {
			must(t, s.PutBlob(ctx, b))
		} else {
			_, err := s.Commit(ctx, ledger.Full, ledger.Part{Run: fmt.Sprint("r", i), Cmd: Cmd(), Events: []ledger.NewEvent{Event("E", "")}, Blobs: []ledger.Blob{b}})
			must(t, err)
		}
		must(t, s.PutBlob(ctx, b, b)) // again changes nothing
		got, err := s.Blob(ctx, b.Hash)
		must(t, err)
		if !bytes.Equal(got, p) {
			t.Fatalf("blob of %d bytes came back as %d", len(p), len(got))
		}
		for _, c := range []struct {
			off int64
			n   int
		}{{0, 10}, {0, len(p)}, {int64(len(p)) - 5, 10}, {1<<20 - 3, 7}, {int64(len(p)), 4}, {int64(len(p)) + 9, 4}, {-3, 2}, {0, 0}} {
			got, size, err := s.BlobRange(ctx, b.Hash, c.off, c.n)
			must(t, err)
			from := min(max(c.off, 0), int64(len(p)))
			want := p[from:min(from+int64(c.n), int64(len(p)))]
			if size != int64(len(p)) || !bytes.Equal(got, want) {
				t.Fatalf("%d bytes from %d of %d: got %d, size %d", c.n, c.off, len(p), len(got), size)
			}
		}
	}
	// One that was carried here, not made here.
	b := ledger.NewBlob([]byte("carried over"))
	must(t, s.PutBlob(ctx, ledger.Blob{Hash: b.Hash, Size: b.Size, Data: b.Data}))
	if got, err := s.Blob(ctx, b.Hash); err != nil || string(got) != "carried over" {
		t.Errorf("%q %v", got, err)
	}
	b.Hash[0]++
	if err := s.PutBlob(ctx, ledger.Blob{Hash: b.Hash, Size: b.Size, Data: b.Data}); err == nil {
		t.Error("a blob under a wrong hash was stored")
	}
	_, err := s.Blob(ctx, ledger.Hash{1})
	fails[*ledger.NotFoundError](t, err)
	_, _, err = s.BlobRange(ctx, ledger.Hash{1}, 0, 1)
	fails[*ledger.NotFoundError](t, err)
}
