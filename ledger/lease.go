package ledger

import (
	"context"
	"database/sql/driver"
	"sort"
	"time"
)

// A lease says who may drive a run. Safety rests on its epoch alone: it grows
// with every claim, and a part under an older one is refused inside the
// transaction that would write it. The clock and the process locks only decide
// when somebody else may claim, that is how soon, never whether two may write.
type leaseRow struct {
	there  bool
	holder string
	epoch  int64
	boot   string
	until  int64 // µs of the monotonic clock of boot
	owner  string
}

// leaseLive reports whether l keeps others from claiming: it was taken in this
// boot of the machine, has time left, and its holder's process lock is held.
func (d *DB) leaseLive(l *leaseRow) bool {
	return l.holder != "" && l.boot == d.o.Boot && d.leaseLeft(l) > 0 && (l.holder == d.id || procAlive(d.o.procs(), l.holder))
}

// leaseLeft is the time until l runs out; 0 if that was in another boot.
func (d *DB) leaseLeft(l *leaseRow) time.Duration {
	if l.boot != d.o.Boot {
		return 0
	}
	return time.Duration(l.until)*time.Microsecond - d.o.Mono()
}

func (d *DB) leaseUntil() int64 { return (d.o.Mono() + d.o.LeaseFor).Microseconds() }

// claim writes the lease that check allowed. A holder that claims again what
// it holds gets the next epoch: whatever part of its process still wrote under
// the old one is fenced off like a stranger.
func (w *writer) claim(p *prepared, st *runState) error {
	l := leaseRow{there: true, holder: p.Holder, epoch: p.Epoch, boot: w.d.o.Boot, until: w.d.leaseUntil(), owner: w.d.o.Owner}
	q := "INSERT INTO lease(holder, epoch, boot, until, owner, run) VALUES(?, ?, ?, ?, ?, ?)"
	if st.lease.there {
		q = "UPDATE lease SET holder = ?, epoch = ?, boot = ?, until = ?, owner = ? WHERE run = ?"
	}
	_, err := w.c.exec(q, l.holder, l.epoch, l.boot, l.until, l.owner, st.k)
	st.lease = l
	return err
}

func (w *writer) release(p *prepared, st *runState) error {
	_, err := w.c.exec("UPDATE lease SET holder = '', until = 0 WHERE run = ? AND holder = ? AND epoch = ?", st.k, p.Holder, p.Epoch)
	st.lease.holder, st.lease.until = "", 0
	return err
}

// Renew extends every lease this process holds; lost are the runs that it held
// at the last renewal (or claimed since) and that somebody else has claimed.
func (d *DB) Renew(ctx context.Context) (lost []string, err error) {
	if d.w == nil {
		return nil, &ReadOnlyError{Path: d.o.Path, Reason: d.roReason}
	}
	r := &request{do: func(c *conn) error {
		lost = nil
		now := map[string]int64{}
		var ks []int64
		err := c.query(context.Background(), "SELECT l.run, c.id, l.epoch FROM lease l JOIN chain c ON c.k = l.run WHERE l.holder = ? AND l.holder <> ''", []any{d.id},
			func(v []driver.Value) error {
				ks = append(ks, num(v[0]))
				now[text(v[1])] = num(v[2])
				return nil
			})
		if err != nil {
			return err
		}
		until := d.leaseUntil()
		for _, k := range ks {
			if _, err := c.exec("UPDATE lease SET until = max(until, ?) WHERE run = ? AND holder = ?", until, k, d.id); err != nil {
				return err
			}
		}
		for run := range d.w.held {
			if _, ok := now[run]; !ok {
				lost = append(lost, run)
			}
		}
		d.w.forget() // its copies of the leases are old now
		d.w.renewed = now
		return nil
	}}
	if err := d.w.submit(ctx, r); err != nil {
		return nil, err
	}
	sort.Strings(lost)
	return lost, nil
}

// Leases returns the leases of the named runs, or all that are held. Runs that
// were never claimed are left out.
func (d *DB) Leases(ctx context.Context, runs ...string) ([]Lease, error) {
	const cols = "SELECT c.id, l.holder, l.epoch, l.boot, l.until, l.owner FROM lease l JOIN chain c ON c.k = l.run WHERE "
	var out []Lease
	err := d.readWith(ctx, "read leases", func(c *conn) error {
		add := func(v []driver.Value) error {
			l := leaseRow{holder: text(v[1]), epoch: num(v[2]), boot: text(v[3]), until: num(v[4]), owner: text(v[5])}
			out = append(out, Lease{
				Run: text(v[0]), Holder: l.holder, Epoch: l.epoch, Boot: l.boot, Owner: l.owner,
				Left: d.leaseLeft(&l), Live: d.leaseLive(&l),
			})
			return nil
		}
		if len(runs) == 0 {
			return c.query(ctx, cols+"l.holder <> '' ORDER BY c.id", nil, add)
		}
		for _, r := range runs {
			if err := c.query(ctx, cols+"c.id = ?", []any{r}, add); err != nil {
				return err
			}
		}
		return nil
	})
	return out, err
}
