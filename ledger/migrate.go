package ledger

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"sort"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// applicationID marks the file as a Pawl ledger ("pawl" in ASCII).
const applicationID = 0x7061776c

// step is one migration: SQL that takes the schema from version-1 to version.
type step struct {
	version int
	name    string
	sql     string
	sum     string // SHA-256 of sql with line ends as LF
}

// loadSteps reads migrations/NNNN_name.sql, which must be numbered from 1
// without gaps. Line ends do not matter: a checkout may have rewritten them.
func loadSteps(files fs.FS) ([]step, error) {
	names, err := fs.Glob(files, "migrations/*.sql")
	if err != nil {
		return nil, err
	}
	sort.Strings(names)
	steps := make([]step, 0, len(names))
	for i, name := range names {
		b, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		base := strings.TrimSuffix(strings.TrimPrefix(name, "migrations/"), ".sql")
		n, err := strconv.Atoi(base[:min(4, len(base))])
		if err != nil || n != i+1 {
			return nil, fmt.Errorf("migration %s should be number %04d", name, i+1)
		}
		steps = append(steps, newStep(n, base, string(b)))
	}
	return steps, nil
}

func newStep(version int, name, sql string) step {
	sql = strings.ReplaceAll(sql, "\r\n", "\n")
	h := sha256.Sum256([]byte(sql))
	return step{version: version, name: name, sql: sql, sum: hex.EncodeToString(h[:])}
}

// gateName is the lock file for making and migrating a ledger, below .procs/.
const gateName = "gate"

// gate lets one process at a time make or migrate the ledger. The kernel opens
// it again when that process dies, however it does.
func gate(o *Options) (open func(), err error) {
	if err := os.MkdirAll(o.procs(), 0o700); err != nil {
		return nil, plain(o.Path, "open ledger", err)
	}
	f, err := os.OpenFile(o.procs()+"/"+gateName, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, plain(o.Path, "open ledger", err)
	}
	// Waits in small steps: a blocking flock could not time out. Migrating a
	// large ledger takes its time, hence the longer patience.
	patience := 12 * o.BusyTimeout
	for start := time.Now(); ; {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if err != unix.EWOULDBLOCK && err != unix.EINTR {
			f.Close()
			return nil, plain(o.Path, "open ledger", err)
		}
		if waited := time.Since(start); waited > patience {
			f.Close()
			return nil, &BusyError{Path: o.Path, Waited: waited}
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// migrate brings an existing ledger from its version to the newest, each step
// in one transaction. Before anything is changed a verified copy is kept as
// PATH.before-vN. Whoever finds the ledger migrated by then does nothing.
func migrate(ctx context.Context, o *Options) error {
	open, err := gate(o)
	if err != nil {
		return err
	}
	defer open()
	c, err := dial(o.Path, modeMigrate, o.BusyTimeout.Milliseconds())
	if err != nil {
		return plain(o.Path, "migrate ledger", err)
	}
	defer c.close()
	for {
		v, err := c.version()
		if err != nil {
			return plain(o.Path, "migrate ledger", err)
		}
		latest := len(o.steps)
		if v > latest {
			return &NewerError{Path: o.Path, Have: v, Known: latest}
		}
		if v == latest {
			return nil
		}
		s := o.steps[v]
		copyTo := fmt.Sprintf("%s.before-v%d", o.Path, s.version)
		sweep(copyTo+".part-", func(string) bool { return true }) // of who died in here: the gate is ours
		if _, err := os.Stat(copyTo); err != nil {
			if err := backupConn(ctx, c, o, copyTo); err != nil {
				return fmt.Errorf("the ledger was not migrated to version %d, because no copy of it could be kept first: %w", s.version, err)
			}
		}
		if err := o.at("copied " + s.name); err != nil {
			return err
		}
		if err := c.apply(s, o); err != nil {
			return fmt.Errorf("migration %s was undone and the ledger is as before: %w", s.name, plain(o.Path, "migrate ledger", err))
		}
		if err := o.at("migrated " + s.name); err != nil {
			return err
		}
	}
}

func (c *conn) version() (int, error) {
	v, err := c.one("PRAGMA user_version")
	return int(num(v)), err
}

// apply runs one step, unless another process ran it since.
func (c *conn) apply(s step, o *Options) error {
	if err := c.begin(); err != nil {
		return err
	}
	defer c.rollback()
	v, err := c.version()
	if err != nil || v >= s.version {
		return err
	}
	if err := c.do(s.sql); err != nil {
		return err
	}
	if err := o.at("within " + s.name); err != nil {
		return err
	}
	if _, err := c.exec("INSERT INTO migration(version, name, sha256, at) VALUES(?, ?, ?, ?)",
		s.version, s.name, s.sum, o.Clock().UnixMicro()); err != nil {
		return err
	}
	if err := c.do(fmt.Sprintf("PRAGMA application_id=%d; PRAGMA user_version=%d", applicationID, s.version)); err != nil {
		return err
	}
	return c.commit()
}
