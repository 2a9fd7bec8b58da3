package ledger_test

import (
	"context"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"pawl/ledger"
	"pawl/ledger/ledgertest"
)

// clock is a monotonic clock that tests move.
type clock struct{ now atomic.Int64 }

func newClock() *clock                   { c := &clock{}; c.now.Store(int64(time.Hour)); return c }
func (c *clock) Now() time.Duration      { return time.Duration(c.now.Load()) }
func (c *clock) Advance(d time.Duration) { c.now.Add(int64(d)) }
func open(t *testing.T, o ledger.Options) *ledger.DB {
	t.Helper()
	d, err := ledger.Open(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return d
}

func TestDBKeepsTheContract(t *testing.T) {
	ledgertest.RunContract(t, func(t *testing.T) ledgertest.Ledger {
		c, path := newClock(), filepath.Join(t.TempDir(), "sub", "ledger.db")
		return ledgertest.Ledger{
			Open: func(t *testing.T, owner string) ledger.Store {
				return open(t, ledger.Options{Path: path, Owner: owner, Mono: c.Now, Boot: "boot", LeaseFor: time.Minute})
			},
			Advance: c.Advance, LeaseFor: time.Minute,
		}
	})
}

func TestMemKeepsTheContract(t *testing.T) {
	ledgertest.RunContract(t, func(t *testing.T) ledgertest.Ledger {
		c := newClock()
		m, err := ledger.NewMem(ledger.Options{Mono: c.Now, Boot: "boot", LeaseFor: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		return ledgertest.Ledger{
			Open: func(t *testing.T, owner string) ledger.Store {
				h, err := m.Open(owner)
				if err != nil {
					t.Fatal(err)
				}
				return h
			},
			Advance: c.Advance, LeaseFor: time.Minute,
		}
	})
}
