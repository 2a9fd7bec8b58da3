package ledger

import (
	"database/sql/driver"
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// attacks are ways to change what was appended. %s is a fresh command id.
var attacks = []string{
	"UPDATE event SET payload = x'00' WHERE seq = 2",
	"DELETE FROM event WHERE seq = 2",
	"DELETE FROM event",
	"INSERT INTO event SELECT * FROM event WHERE seq = 2",
	"INSERT OR REPLACE INTO event SELECT 2, kind, actor, late, x'00' FROM event WHERE seq = 3",
	"REPLACE INTO event SELECT * FROM event WHERE seq = 1",
	"INSERT INTO event SELECT 9, kind, actor, late, payload FROM event WHERE seq = 3",
	"INSERT INTO event SELECT 4, kind, actor, late, payload FROM event WHERE seq = 3", // belongs to no part
	"INSERT INTO event(kind, actor, late, payload) VALUES(1, 2, 0, x'00')",
	"INSERT INTO event SELECT 2, kind, actor, late, payload FROM event WHERE seq = 2 ON CONFLICT(seq) DO UPDATE SET payload = x'00'",
	"UPDATE part SET epoch = 9",
	"DELETE FROM part WHERE first = 3",
	"REPLACE INTO part SELECT 4, run, 4, 1, at, epoch, cmd, hash FROM part WHERE first = 1", // by its second key
	"REPLACE INTO part SELECT 4, run, 2, 1, at, epoch, zeroblob(16), hash FROM part WHERE first = 1",
	"REPLACE INTO part SELECT first, run, n0, count, at, epoch, zeroblob(16), hash FROM part WHERE first = 1",
	"INSERT INTO part SELECT 7, run, 4, 1, at, epoch, zeroblob(16), hash FROM part WHERE first = 1",
	"INSERT INTO part SELECT 4, run, 4, 1, at, 1, zeroblob(16), hash FROM part WHERE first = 1", // an epoch that nobody holds
	"UPDATE blob SET data = x'00'",
	"DELETE FROM blob",
	"REPLACE INTO blob SELECT 99, hash, off, size, x'00' FROM blob",
	"REPLACE INTO blob SELECT id, zeroblob(32), off, size, x'00' FROM blob",
	"UPDATE word SET text = 'x' || text",
	"REPLACE INTO word SELECT id, 'other' FROM word",
	"UPDATE chain SET id = 'x'",
	"DELETE FROM chain",
	"DELETE FROM quiet",
	"UPDATE lease SET epoch = epoch - 1",
	"UPDATE lease SET holder = 'me'",
	"DELETE FROM lease",
	"REPLACE INTO lease SELECT run, 'me', 1, boot, until, owner FROM lease",
}

// schemaAttacks get around triggers; the authorizer stops them on our connections.
var schemaAttacks = []string{
	"DROP TRIGGER event_no_update; UPDATE event SET payload = x'00' WHERE seq = 2",
	"DROP TABLE event",
	"DROP INDEX part_cmd",
	"ALTER TABLE event RENAME TO e2",
	"PRAGMA writable_schema=1; DELETE FROM sqlite_master WHERE type = 'trigger'",
	"PRAGMA recursive_triggers=0; REPLACE INTO word SELECT id, 'other' FROM word",
	"CREATE TRIGGER t AFTER INSERT ON event BEGIN DELETE FROM inbox; END",
	"ATTACH ':memory:' AS other",
	"PRAGMA user_version=7",
	"PRAGMA application_id=7",
	"PRAGMA journal_mode=DELETE",
}

// Nothing that was appended can be changed: by our own connections not at all,
// by strangers (who may set their pragmas as they like) not without first
// taking the guards away.
func TestNothingAppendedCanBeChanged(t *testing.T) {
	for _, own := range []bool{true, false} {
		all := attacks
		if own {
			all = append(append([]string{}, attacks...), schemaAttacks...)
		}
		for i, sql := range all {
			path := dbPath(t)
			d := openAt(t, path)
			must(t, add(d, Full, "r", 0))
			must(t, add(d, Full, "r", 1))
			_, err := d.Commit(bg, Full, Part{Run: "r", Cmd: newCmd(), Tail: 2, Events: ev("Last"), Blobs: []Blob{NewBlob([]byte("b"))}},
				Part{Run: "q", Cmd: newCmd(), Epoch: 1, Claim: true, Events: ev("Claimed")})
			must(t, err)
			_, err = d.Commit(bg, Full, Part{Run: "q", Cmd: newCmd(), Tail: 1})
			must(t, err)
			before := dump(t, d)
			must(t, d.Close())
			m := modeMigrate
			if own {
				m = modeWrite
			}
			c, err := dial(path, m, 0)
			must(t, err)
			if !own {
				must(t, c.do("PRAGMA recursive_triggers=0; PRAGMA foreign_keys=0"))
			}
			if err := c.do(sql); err == nil {
				t.Errorf("own %v, attack %d went through: %s", own, i, sql)
			}
			must(t, c.close())
			d = openAt(t, path)
			whole(t, d)
			if after := dump(t, d); after != before {
				t.Errorf("own %v: changed by %s:\n%s\n%s", own, sql, before, after)
			}
			must(t, d.Close())
		}
	}
}

// dump is everything that must not change, as text.
func dump(t *testing.T, d *DB) string {
	t.Helper()
	var b strings.Builder
	must(t, d.readWith(bg, "dump", func(c *conn) error {
		for _, table := range []string{"event", "part", "quiet", "blob", "word", "chain", "lease", "migration"} {
			if err := c.query(bg, "SELECT * FROM "+table, nil, func(v []driver.Value) error {
				fmt.Fprintf(&b, "%s %x\n", table, v)
				return nil
			}); err != nil {
				return err
			}
		}
		return nil
	}))
	return b.String()
}

// People can read the events with any SQLite shell.
func TestEventsCanBeReadWithAnySQLiteShell(t *testing.T) {
	d := openAt(t, dbPath(t))
	_, err := d.Commit(bg, Full, Part{Run: "r", Cmd: CommandID{0xab}, Events: []NewEvent{{Kind: "One", At: 5, Actor: "engine", Payload: []byte("x")}, {Kind: "Two", At: 3, Actor: "model"}}})
	must(t, err)
	es, err := d.Events(bg, "r", 0, 0)
	must(t, err)
	got := ""
	must(t, d.readWith(bg, "", func(c *conn) error {
		return c.query(bg, "SELECT seq, run, n, cmd, kind, at, actor, epoch, payload, hash FROM events ORDER BY seq", nil, func(v []driver.Value) error {
			for _, x := range v {
				got += fmt.Sprint(x, " ")
			}
			got += "\n"
			return nil
		})
	}))
	want := "1 r 1 ab000000000000000000000000000000 One 5 engine 0 [120] <nil> \n2 r 2 ab000000000000000000000000000000 Two 3 model 0 [] " + es[1].Hash.String() + " \n"
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// queries are those that screens and the engine ask again and again, with
// arguments of the right number.
func queries() map[string]int {
	q := map[string]int{
		eventsOfRun: 2, eventsBySeq: 1, runKey: 1, runTail: 1, headAt: 1,
		effectsAfter: 3, effectsBefore: 3, effectByID: 1, approvalsOfRun: 1, approvalByID: 1,
		inboxAll: 1, inboxOfRun: 1, inboxByID: 1, windowsOfRun: 1, countRuns: 0,
		runCols + "WHERE r.id = ?": 1,
	}
	parent := ""
	for _, f := range []RunFilter{{}, {Before: "x"}, {Parent: &parent}, {Parent: &parent, Before: "x"}, {States: []string{"a"}}, {States: []string{"a", "b"}, Before: "x"}, {Search: "s"}} {
		s, args := runsQuery(f, 0)
		q[s] = len(args)
	}
	return q
}

// Every query is valid and finds its rows by an index: none reads a whole table.
// Only counting runs by state walks one, the index on the state.
func TestNoQueryReadsAWholeTable(t *testing.T) {
	d := openAt(t, dbPath(t))
	scan := regexp.MustCompile(`^SCAN (\S+)`)
	for q, n := range queries() {
		args := make([]any, n)
		for i := range args {
			args[i] = int64(0)
		}
		must(t, d.readWith(bg, "explain", func(c *conn) error {
			return c.query(bg, "EXPLAIN QUERY PLAN "+q, args, func(v []driver.Value) error {
				detail := text(v[3])
				if m := scan.FindStringSubmatch(detail); m != nil && q != countRuns {
					t.Errorf("%s\n  in %s", detail, q)
				}
				if strings.Contains(detail, "TEMP B-TREE") && !strings.Contains(q, "IN (?") {
					t.Errorf("%s\n  in %s", detail, q)
				}
				if q == countRuns && !strings.Contains(detail, "COVERING INDEX") {
					t.Errorf("%s\n  in %s", detail, q)
				}
				return nil
			})
		}))
	}
}

// Every statement that writes is valid and looks its rows up by an index.
func TestNoWriteReadsAWholeTable(t *testing.T) {
	d := openAt(t, dbPath(t))
	for _, q := range []string{
		runSame, runMoved, runNew, effectSame, effectNew, approvalUp, inboxUp, inboxGone, windowUp,
		"SELECT c.id, p.first, p.n0, p.count, p.hash FROM part p JOIN chain c ON c.k = p.run WHERE p.cmd = ?",
		"SELECT c.id, q.tail, q.hash FROM quiet q JOIN chain c ON c.k = q.run WHERE q.cmd = ?",
		"SELECT l.run, c.id, l.epoch FROM lease l JOIN chain c ON c.k = l.run WHERE l.holder = ? AND l.holder <> ''",
	} {
		c, err := dial(d.o.Path, modeWrite, 0)
		must(t, err)
		var args []any
		for range strings.Count(q, "?") {
			args = append(args, nil)
		}
		must(t, c.query(bg, "EXPLAIN QUERY PLAN "+q, args, func(v []driver.Value) error {
			if s := text(v[3]); strings.HasPrefix(s, "SCAN") && s != "SCAN CONSTANT ROW" {
				t.Errorf("%s\n  in %s", s, q)
			}
			return nil
		}))
		must(t, c.close())
	}
}
