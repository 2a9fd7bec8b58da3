package ledger

import (
	"context"
	"database/sql/driver"
	"iter"
)

// How many events one call returns if it names no limit, and at most.
const (
	defaultEvents = 1000
	maxEvents     = 10_000
)

// Reading events recomputes their hashes, and compares them with what is stored
// at the end of each part: what a read hands out is what was appended.
//
// What a part's events share comes once, with its first event; the hash before
// the part is that of the part before it in its run.
const (
	eventCols = `SELECT e.seq, e.kind, e.actor, e.late, e.payload, p.first + p.count - 1,
  CASE WHEN e.seq = p.first THEN p.run END,
  CASE WHEN e.seq = p.first THEN p.n0 END,
  CASE WHEN e.seq = p.first THEN p.at END,
  CASE WHEN e.seq = p.first THEN p.epoch END,
  CASE WHEN e.seq = p.first THEN p.cmd END,
  CASE WHEN e.seq = p.first THEN p.hash END,
  CASE WHEN e.seq = p.first THEN (SELECT q.hash FROM part q WHERE q.run = p.run AND q.n0 < p.n0 ORDER BY q.n0 DESC LIMIT 1) END
FROM part p CROSS JOIN event e ON e.seq BETWEEN p.first AND p.first + p.count - 1 `
	eventsOfRun = eventCols + `WHERE p.run = ?1 AND p.n0 >= coalesce((SELECT max(n0) FROM part WHERE run = ?1 AND n0 <= ?2), 1) ORDER BY p.n0, e.seq`
	eventsBySeq = eventCols + `WHERE p.first >= coalesce((SELECT max(first) FROM part WHERE first <= ?1), 1) ORDER BY p.first, e.seq`
	runKey      = "SELECT k FROM chain WHERE id = ?"
	runTail     = "SELECT n0 + count - 1 FROM part WHERE run = (SELECT k FROM chain WHERE id = ?) ORDER BY n0 DESC LIMIT 1"
	headAt      = "SELECT first + count - 1, hash FROM part WHERE first <= ? ORDER BY first DESC LIMIT 1"
)

// rawEvent is an event whose words and run are still numbers.
type rawEvent struct {
	Event
	run, kind, actor int64
	prev             Hash
	partHash         Hash // of its part, at the part's last event; else zero
	last, first      bool // of its part
}

// scanEvents collects whole parts until want says that there are enough.
func scanEvents(ctx context.Context, c *conn, q string, args []any, enough func(*rawEvent) bool) ([]rawEvent, error) {
	var out []rawEvent
	var shared rawEvent
	var at, lastSeq int64
	var hash Hash
	err := c.query(ctx, q, args, func(v []driver.Value) error {
		e := rawEvent{kind: num(v[1]), actor: num(v[2])}
		if v[6] != nil {
			shared = rawEvent{run: num(v[6]), prev: hashOf(v[12])}
			shared.N, at, shared.Epoch = num(v[7]), num(v[8]), num(v[9])
			copy(shared.Cmd[:], bytesOf(v[10]))
			hash, lastSeq = hashOf(v[11]), num(v[0])
			e.first, e.prev = true, shared.prev
		}
		e.run, e.Epoch, e.Cmd = shared.run, shared.Epoch, shared.Cmd
		e.Seq = num(v[0])
		e.N = shared.N + e.Seq - lastSeq
		e.At, e.Payload = at+num(v[3]), bytesOf(v[4])
		if e.Seq == num(v[5]) {
			e.last, e.partHash = true, hash
		}
		out = append(out, e)
		if e.last && enough(&out[len(out)-1]) {
			return errStop
		}
		return nil
	})
	return out, err
}

// events reads with q, names words and runs, and verifies the chain of each part.
func (d *DB) events(ctx context.Context, q string, args []any, enough func(*rawEvent) bool, keep func(*Event) bool) ([]Event, error) {
	var out []Event
	err := d.readWith(ctx, "read events", func(c *conn) error {
		raw, err := scanEvents(ctx, c, q, args, enough)
		if err != nil {
			return err
		}
		out = make([]Event, 0, len(raw))
		var hash Hash
		for i := range raw {
			e := &raw[i]
			if err := d.words.name(c, e); err != nil {
				return d.damaged(e, err.Error())
			}
			if e.first {
				hash = e.prev
			}
			if i > 0 && !e.first && raw[i-1].last {
				return d.damaged(e, "the first event of a part is missing")
			}
			hash = Link(hash, e.Event)
			e.Hash = hash
			if e.last && hash != e.partHash {
				return d.damaged(e, "what is stored is not what was written")
			}
			if keep(&e.Event) {
				out = append(out, e.Event)
			}
		}
		if n := len(raw); n > 0 && !raw[n-1].last {
			return d.damaged(&raw[n-1], "the last event of a part is missing")
		}
		return nil
	})
	return out, err
}

func (d *DB) damaged(e *rawEvent, what string) error {
	return &CorruptError{Path: d.o.Path, Run: e.Run, Seq: e.Seq, What: what}
}

func clampLimit(n int) int {
	if n <= 0 {
		return defaultEvents
	}
	return min(n, maxEvents)
}

func pageLimit(p Page) int {
	if p.Limit <= 0 {
		return 100
	}
	return min(p.Limit, maxEvents)
}

// Events returns up to limit (0: 1,000; at most 10,000) events of run with N
// above after. An unknown run has none.
func (d *DB) Events(ctx context.Context, run string, after int64, limit int) ([]Event, error) {
	return d.eventsOf(ctx, run, after, clampLimit(limit))
}

func (d *DB) eventsOf(ctx context.Context, run string, after int64, limit int) ([]Event, error) {
	k, err := d.runKey(ctx, run)
	if err != nil || k == 0 {
		return nil, err
	}
	after = max(0, after)
	return d.events(ctx, eventsOfRun, []any{k, after + 1},
		func(e *rawEvent) bool { return e.N >= after+int64(limit) },
		func(e *Event) bool { return e.N > after && e.N <= after+int64(limit) })
}

// EventsSince returns up to limit (0: 1,000; at most 10,000) events of all runs
// with Seq above seq.
func (d *DB) EventsSince(ctx context.Context, seq int64, limit int) ([]Event, error) {
	seq, limit = max(0, seq), clampLimit(limit)
	return d.events(ctx, eventsBySeq, []any{seq + 1},
		func(e *rawEvent) bool { return e.Seq >= seq+int64(limit) },
		func(e *Event) bool { return e.Seq > seq && e.Seq <= seq+int64(limit) })
}

// EventsPage returns a page of run's events, ascending.
func (d *DB) EventsPage(ctx context.Context, run string, p Page) ([]Event, error) {
	limit := pageLimit(p)
	if !p.Back {
		return d.eventsOf(ctx, run, p.After, limit)
	}
	tail, err := d.Tail(ctx, run)
	if err != nil {
		return nil, err
	}
	before := p.After
	if before <= 0 || before > tail {
		before = tail + 1
	}
	after := max(0, before-1-int64(limit)) // N has no gaps
	if n := before - 1 - after; n > 0 {
		return d.eventsOf(ctx, run, after, int(n))
	}
	return nil, nil
}

// All yields every event of run in order, in pages: nothing is held between
// them, and the loop may take as long as it likes.
func (d *DB) All(ctx context.Context, run string) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for after := int64(0); ; {
			es, err := d.Events(ctx, run, after, defaultEvents)
			if err != nil {
				yield(Event{}, err)
				return
			}
			for _, e := range es {
				if !yield(e, nil) {
					return
				}
			}
			if len(es) < defaultEvents {
				return
			}
			after = es[len(es)-1].N
		}
	}
}

// RunIDs yields the id of every run that has events, in the order they began.
func (d *DB) RunIDs(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for after := int64(0); ; {
			var ids []string
			err := d.readWith(ctx, "list runs", func(c *conn) error {
				return c.query(ctx, "SELECT k, id FROM chain WHERE k > ? ORDER BY k LIMIT 1000", []any{after}, func(v []driver.Value) error {
					after = num(v[0])
					ids = append(ids, text(v[1]))
					return nil
				})
			})
			if err != nil {
				yield("", err)
				return
			}
			for _, id := range ids {
				if !yield(id, nil) {
					return
				}
			}
			if len(ids) < 1000 {
				return
			}
		}
	}
}

func (d *DB) runKey(ctx context.Context, run string) (k int64, err error) {
	err = d.readWith(ctx, "read events", func(c *conn) error {
		return c.query(ctx, runKey, []any{run}, func(v []driver.Value) error {
			k = num(v[0])
			return nil
		})
	})
	return k, err
}

// Tail is the number of events of run; 0 if there is no such run.
func (d *DB) Tail(ctx context.Context, run string) (n int64, err error) {
	err = d.readWith(ctx, "read tail", func(c *conn) error {
		return c.query(ctx, runTail, []any{run}, func(v []driver.Value) error {
			n = num(v[0])
			return nil
		})
	})
	return n, err
}

// Head is the last event of all; zero in an empty ledger.
func (d *DB) Head(ctx context.Context) (Head, error) { return d.headAt(ctx, maxInt) }

// headAt is the head as it was at the end of the part that has seq in it or before it.
func (d *DB) headAt(ctx context.Context, seq int64) (h Head, err error) {
	err = d.readWith(ctx, "read head", func(c *conn) error {
		return c.query(ctx, headAt, []any{seq}, func(v []driver.Value) error {
			h = Head{Seq: num(v[0]), Hash: hashOf(v[1])}
			return nil
		})
	})
	return h, err
}
