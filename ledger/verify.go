package ledger

import (
	"context"
	"crypto/sha256"
	"database/sql/driver"
	"fmt"
)

// Verified is what VerifyChain found.
type Verified struct {
	Runs, Events, Blobs int64
	Losses              []Loss          // acknowledged in the past
	Problems            []*CorruptError // the first hundred; none: the ledger is whole
}

// Loss is a missing tail that an operator acknowledged.
type Loss struct {
	At         int64 // Unix µs
	Want, Have Head
}

const maxProblems = 100

// VerifyChain checks everything that the ledger can tell of itself: the
// database's structure, the guards, each run's chain, that numbers have no gaps,
// and each blob's hash. It reads in pages and blocks nobody. progress, if not
// nil, is called now and then with the events checked and to be checked. The
// error is about not being able to look; what is wrong is in Problems.
func (d *DB) VerifyChain(ctx context.Context, progress func(done, total int64)) (Verified, error) {
	v := verifier{d: d, progress: progress}
	for _, f := range []func(context.Context) error{v.structure, v.chains, v.blobs, v.losses} {
		if err := f(ctx); err != nil {
			return v.out, err
		}
	}
	return v.out, nil
}

type verifier struct {
	d        *DB
	progress func(done, total int64)
	out      Verified
}

func (v *verifier) problem(run string, seq int64, what string) {
	if len(v.out.Problems) < maxProblems {
		v.out.Problems = append(v.out.Problems, &CorruptError{Path: v.d.o.Path, Run: run, Seq: seq, What: what})
	}
}

// structure runs SQLite's own check, and compares the schema, guards included,
// with that of a new ledger.
func (v *verifier) structure(ctx context.Context) error {
	const schema = "SELECT type, name, coalesce(sql, '') FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%' ORDER BY name"
	ref, err := dial(":memory:", modeMigrate, 0)
	if err != nil {
		return err
	}
	defer ref.close()
	for _, s := range v.d.o.steps {
		if err := ref.apply(s, &v.d.o); err != nil {
			return err
		}
	}
	want := map[string]string{}
	if err := ref.query(ctx, schema, nil, func(r []driver.Value) error {
		want[text(r[0])+" "+text(r[1])] = text(r[2])
		return nil
	}); err != nil {
		return err
	}
	return v.d.readWith(ctx, "verify", func(c *conn) error {
		err := c.query(ctx, "PRAGMA integrity_check(20)", nil, func(r []driver.Value) error {
			if s := text(r[0]); s != "ok" {
				v.problem("", 0, s)
			}
			return nil
		})
		if err != nil {
			v.problem("", 0, "SQLite's check ended early: "+err.Error())
		}
		err = c.query(ctx, schema, nil, func(r []driver.Value) error {
			name := text(r[0]) + " " + text(r[1])
			if sql, ok := want[name]; !ok {
				v.problem("", 0, "there is a "+name+" that no ledger has")
			} else if sql != text(r[2]) {
				v.problem("", 0, "the "+name+" was altered")
			}
			delete(want, name)
			return nil
		})
		for name := range want {
			v.problem("", 0, "the "+name+" is missing")
		}
		return err
	})
}

// partRow is what a chain is checked against.
type partRow struct {
	first, run, n0, count int64
	hash                  Hash
}

// chains walks all parts in order. Events of a damaged part are skipped, and
// its stored hash is taken as the start of what follows, so that one fault is
// reported once.
func (v *verifier) chains(ctx context.Context) error {
	head, err := v.d.Head(ctx)
	if err != nil {
		return err
	}
	type end struct {
		n    int64
		hash Hash
	}
	ends := map[int64]end{}
	next := int64(1)
	for next <= head.Seq {
		parts, err := list(ctx, v.d, "verify", "SELECT first, run, n0, count, hash FROM part WHERE first >= ? AND first <= ? ORDER BY first LIMIT 200", []any{next, head.Seq},
			func(r []driver.Value) partRow {
				return partRow{first: num(r[0]), run: num(r[1]), n0: num(r[2]), count: num(r[3]), hash: hashOf(r[4])}
			})
		if err != nil {
			return err
		}
		if len(parts) == 0 {
			v.problem("", next, fmt.Sprintf("events %d to %d belong to no part", next, head.Seq))
			break
		}
		for _, p := range parts {
			if p.first != next {
				v.problem("", next, fmt.Sprintf("numbers go from %d to %d", next-1, p.first))
			}
			e := ends[p.run]
			if p.n0 != e.n+1 {
				v.problem(v.runName(ctx, p.run), p.first, fmt.Sprintf("the run's numbers go from %d to %d", e.n, p.n0))
			}
			if err := v.part(ctx, p, e.hash); err != nil {
				return err
			}
			ends[p.run] = end{n: p.n0 + p.count - 1, hash: p.hash}
			next = p.first + p.count
			v.out.Events += p.count
		}
		if v.progress != nil {
			v.progress(min(next-1, head.Seq), head.Seq)
		}
	}
	v.out.Runs = int64(len(ends))
	return nil
}

func (v *verifier) runName(ctx context.Context, k int64) (id string) {
	v.d.readWith(ctx, "verify", func(c *conn) (err error) {
		id, err = v.d.words.runID(c, k)
		return err
	})
	return id
}

// part checks one part's events against its hash, with prev as the one before.
func (v *verifier) part(ctx context.Context, p partRow, prev Hash) error {
	return v.d.readWith(ctx, "verify", func(c *conn) error {
		var raw []rawEvent
		raw, err := scanEvents(ctx, c, eventCols+"WHERE p.first = ?1 ORDER BY p.first, e.seq", []any{p.first}, func(*rawEvent) bool { return true })
		if err != nil {
			if ctx.Err() != nil {
				return err
			}
			v.problem("", p.first, "cannot be read: "+err.Error())
			return nil
		}
		if int64(len(raw)) != p.count {
			v.problem("", p.first, fmt.Sprintf("a part of %d events has %d", p.count, len(raw)))
			return nil
		}
		hash := prev
		for i := range raw {
			if err := v.d.words.name(c, &raw[i]); err != nil {
				v.problem("", raw[i].Seq, err.Error())
				return nil
			}
			hash = Link(hash, raw[i].Event)
		}
		if hash != p.hash {
			v.problem(raw[0].Run, p.first, "what is stored is not what was written")
		}
		return nil
	})
}

func (v *verifier) blobs(ctx context.Context) error {
	for after := int64(0); ; {
		var ids []int64
		var hashes []Hash
		err := v.d.readWith(ctx, "verify", func(c *conn) error {
			return c.query(ctx, "SELECT id, hash, off FROM blob WHERE id > ? ORDER BY id LIMIT 500", []any{after}, func(r []driver.Value) error {
				ids = append(ids, num(r[0]))
				if num(r[2]) == 0 {
					hashes = append(hashes, hashOf(r[1]))
				}
				return nil
			})
		})
		if err != nil {
			return err
		}
		if len(ids) == 0 {
			return nil
		}
		after = ids[len(ids)-1]
		for _, h := range hashes {
			if err := v.blob(ctx, h); err != nil {
				return err
			}
		}
	}
}

// blob checks one blob a frame at a time.
func (v *verifier) blob(ctx context.Context, h Hash) error {
	v.out.Blobs++
	sum := sha256.New()
	var size, total int64
	err := v.d.frames(ctx, h, 0, MaxBlob, func(t, _ int64, plain []byte) {
		total = t
		size += int64(len(plain))
		sum.Write(plain)
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err == nil && (size != total || Hash(sum.Sum(nil)) != h) {
		v.problem("", 0, "the content of blob "+h.String()+" has another hash")
	} else if err != nil {
		v.problem("", 0, err.Error())
	}
	return nil
}

func (v *verifier) losses(ctx context.Context) (err error) {
	v.out.Losses, err = list(ctx, v.d, "verify", "SELECT at, want_seq, want_hash, have_seq, have_hash FROM loss ORDER BY id", nil, func(r []driver.Value) Loss {
		return Loss{At: num(r[0]), Want: Head{Seq: num(r[1]), Hash: hashOf(r[2])}, Have: Head{Seq: num(r[3]), Hash: hashOf(r[4])}}
	})
	return err
}
