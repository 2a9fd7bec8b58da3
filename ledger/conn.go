package ledger

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net/url"

	sqlite3 "github.com/mattn/go-sqlite3"

	_ "pawl/ledger/needscgo"
)

// conn is one SQLite connection with its prepared statements. It speaks to the
// driver directly: one goroutine at a time uses a conn, so a pool's locking
// would buy nothing, and inside a write transaction no context must be able to
// interrupt a statement (SQLite then rolls back everything, and what follows
// would run in autocommit).
type conn struct {
	c     *sqlite3.SQLiteConn
	stmts map[string]*sqlite3.SQLiteStmt
	args  []driver.NamedValue
	vals  []driver.Value
	// err is the first failure of a statement that the running transaction
	// cannot survive; every later one returns it until rollback.
	err error
}

type mode int

const (
	modeWrite     mode = iota // the one writer
	modeRead                  // query only
	modeImmutable             // query only, on a directory where not even -shm can be made
	modeMigrate               // no authorizer: may change the schema
	modeInspect               // as modeRead, without asking for WAL
)

// dsn escapes path: a bare "file:"+path breaks at '?', '#' and '%'. Unknown
// keys are ignored by the driver without a word, so dial reads back what counts.
func dsn(path string, m mode, busyMS int64) string {
	q := url.Values{}
	q.Set("_busy_timeout", fmt.Sprint(busyMS))
	q.Set("_mutex", "no") // a conn is used by one goroutine at a time
	switch m {
	case modeWrite, modeMigrate:
		q.Set("mode", "rw")
		q.Set("_recursive_triggers", "1") // else REPLACE deletes without delete triggers
		q.Set("_synchronous", "FULL")
		if m == modeWrite {
			q.Set("_journal_mode", "WAL")
		}
	case modeRead, modeInspect:
		q.Set("mode", "ro")
		q.Set("_query_only", "1")
	case modeImmutable:
		q.Set("mode", "ro")
		q.Set("immutable", "1")
		q.Set("_query_only", "1")
	}
	return (&url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: q.Encode()}).String()
}

func dial(path string, m mode, busyMS int64) (*conn, error) {
	d := &sqlite3.SQLiteDriver{}
	dc, err := d.Open(dsn(path, m, busyMS))
	if err != nil {
		return nil, err
	}
	c := &conn{c: dc.(*sqlite3.SQLiteConn), stmts: map[string]*sqlite3.SQLiteStmt{}}
	if err := c.setUp(m); err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

func (c *conn) setUp(m mode) error {
	if m == modeWrite {
		for _, p := range []string{
			fmt.Sprintf("PRAGMA wal_autocheckpoint=%d", checkpointPages),
			fmt.Sprintf("PRAGMA journal_size_limit=%d", walLimit),
			"PRAGMA fullfsync=1", // macOS: an fsync alone does not reach the medium
			"PRAGMA checkpoint_fullfsync=1",
			"PRAGMA temp_store=MEMORY",
			"PRAGMA cache_size=-8192",
		} {
			if err := c.do(p); err != nil {
				return err
			}
		}
		for p, want := range map[string]string{"journal_mode": "wal", "synchronous": "2", "recursive_triggers": "1"} {
			v, err := c.one("PRAGMA " + p)
			if err != nil {
				return err
			}
			if got := fmt.Sprint(v); got != want {
				return fmt.Errorf("SQLite did not take %s=%s (it is %s)", p, want, got)
			}
		}
	}
	if m != modeMigrate {
		c.c.RegisterAuthorizer(authorize)
	}
	return nil
}

var appendOnly = map[string]bool{
	"event": true, "part": true, "quiet": true, "blob": true, "word": true, "chain": true,
	"migration": true, "loss": true, "sqlite_master": true, "sqlite_schema": true,
}

// authorize is asked when a statement is prepared. It denies what triggers
// cannot: dropping the triggers, or writing the schema.
func authorize(op int, a1, a2, _ string) int {
	switch op {
	case sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE:
		if appendOnly[a1] || (op == sqlite3.SQLITE_DELETE && a1 == "lease") {
			return sqlite3.SQLITE_DENY
		}
	case sqlite3.SQLITE_DROP_TRIGGER, sqlite3.SQLITE_DROP_TABLE, sqlite3.SQLITE_DROP_INDEX, sqlite3.SQLITE_DROP_VIEW,
		sqlite3.SQLITE_ALTER_TABLE, sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH, sqlite3.SQLITE_CREATE_TRIGGER,
		sqlite3.SQLITE_CREATE_TEMP_TRIGGER, sqlite3.SQLITE_CREATE_TEMP_VIEW, sqlite3.SQLITE_CREATE_TEMP_TABLE,
		sqlite3.SQLITE_CREATE_TABLE, sqlite3.SQLITE_CREATE_INDEX, sqlite3.SQLITE_CREATE_VIEW:
		return sqlite3.SQLITE_DENY
	case sqlite3.SQLITE_PRAGMA:
		switch a1 {
		case "writable_schema", "ignore_check_constraints", "recursive_triggers", "journal_mode", "user_version", "application_id":
			if a2 != "" {
				return sqlite3.SQLITE_DENY
			}
		}
	}
	return sqlite3.SQLITE_OK
}

func (c *conn) close() error {
	if c == nil {
		return nil
	}
	for _, s := range c.stmts {
		s.Close()
	}
	c.stmts = nil
	return c.c.Close()
}

// do runs statements that have no arguments and whose rows do not matter.
func (c *conn) do(q string) error {
	_, err := c.c.ExecContext(context.Background(), q, nil)
	return err
}

func (c *conn) stmt(q string) (*sqlite3.SQLiteStmt, error) {
	if s := c.stmts[q]; s != nil {
		return s, nil
	}
	s, err := c.c.PrepareContext(context.Background(), q)
	if err != nil {
		return nil, err
	}
	st := s.(*sqlite3.SQLiteStmt)
	c.stmts[q] = st
	return st, nil
}

func (c *conn) bind(args []any) []driver.NamedValue {
	c.args = c.args[:0]
	for i, a := range args {
		if n, ok := a.(int); ok {
			a = int64(n)
		}
		c.args = append(c.args, driver.NamedValue{Ordinal: i + 1, Value: a})
	}
	return c.args
}

// exec runs one statement and returns how many rows it changed. After an error
// the transaction is spoilt: exec does nothing more until rollback.
func (c *conn) exec(q string, args ...any) (int64, error) {
	if c.err != nil {
		return 0, c.err
	}
	n, err := c.run(q, args)
	c.err = err
	return n, err
}

func (c *conn) run(q string, args []any) (int64, error) {
	s, err := c.stmt(q)
	if err != nil {
		return 0, err
	}
	r, err := s.ExecContext(context.Background(), c.bind(args))
	if err != nil {
		return 0, err
	}
	return r.RowsAffected()
}

// put is exec for statements whose number of changed rows is known beforehand.
// The driver binds and steps a query in one crossing into C, an exec in one for
// each argument.
func (c *conn) put(q string, args ...any) error {
	if c.err != nil {
		return c.err
	}
	c.err = c.step(q, args)
	return c.err
}

func (c *conn) step(q string, args []any) error {
	s, err := c.stmt(q)
	if err != nil {
		return err
	}
	rows, err := s.QueryContext(context.Background(), c.bind(args))
	if err != nil {
		return err
	}
	if err = rows.Next(nil); err == io.EOF {
		err = nil
	}
	return errors.Join(err, rows.Close())
}

// touch is exec for statements that end in RETURNING; it reports whether they
// changed anything. Like put it crosses into C only once.
func (c *conn) touch(q string, args ...any) (bool, error) {
	if c.err != nil {
		return false, c.err
	}
	found, err := c.row(func([]driver.Value) {}, q, args...)
	c.err = err
	return found, err
}

// begin takes the write lock, waiting as long as the connection's busy timeout.
func (c *conn) begin() error {
	c.err = nil
	_, err := c.run("BEGIN IMMEDIATE", nil)
	return err
}

// commit makes the transaction final. An error does not mean that it is not.
func (c *conn) commit() error {
	if c.err != nil {
		return c.err
	}
	_, err := c.run("COMMIT", nil)
	return err
}

// rollback ends whatever transaction is still open.
func (c *conn) rollback() error {
	c.err = nil
	if c.c.AutoCommit() {
		return nil
	}
	_, err := c.run("ROLLBACK", nil)
	return err
}

var errStop = errors.New("stop")

// query calls f with each row; v is valid during the call only, but the strings
// and bytes in it are the callee's. f may return errStop to end early.
func (c *conn) query(ctx context.Context, q string, args []any, f func(v []driver.Value) error) error {
	if c.err != nil {
		return c.err
	}
	s, err := c.stmt(q)
	if err != nil {
		return err
	}
	rows, err := s.QueryContext(ctx, c.bind(args))
	if err != nil {
		return err
	}
	defer rows.Close()
	n := len(rows.Columns())
	if cap(c.vals) < n {
		c.vals = make([]driver.Value, n)
	}
	v := c.vals[:n]
	for {
		switch err := rows.Next(v); {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
		if err := f(v); err == errStop {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// row is query for at most one row, in a write transaction or by a reader that
// will not be interrupted.
func (c *conn) row(f func(v []driver.Value), q string, args ...any) (bool, error) {
	found := false
	err := c.query(context.Background(), q, args, func(v []driver.Value) error {
		found = true
		f(v)
		return errStop
	})
	return found, err
}

// one returns the first column of the first row, nil if there is none.
func (c *conn) one(q string, args ...any) (driver.Value, error) {
	var r driver.Value
	_, err := c.row(func(v []driver.Value) { r = v[0] }, q, args...)
	return r, err
}

func num(v driver.Value) int64 { n, _ := v.(int64); return n }

func text(v driver.Value) string { s, _ := v.(string); return s }

func bytesOf(v driver.Value) []byte { b, _ := v.([]byte); return b }

func hashOf(v driver.Value) (h Hash) { copy(h[:], bytesOf(v)); return h }
