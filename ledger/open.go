package ledger

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	sqlite3 "github.com/mattn/go-sqlite3"
	"golang.org/x/sys/unix"
)

// minSQLite is the first version without a race in restarting the write-ahead
// file that could corrupt the database.
const minSQLite = 3051003

// Open opens the ledger at o.Path, and makes one if there is none. A ledger
// that cannot be written (read-only mount, no permission) opens for viewing.
//
// Errors, each with its way out: *NetworkFSError, *OwnerError, *EmptiedError,
// *ForeignError, *NewerError, *LostTailError, *CorruptError, *FullError, *BusyError.
func Open(ctx context.Context, opts Options) (*DB, error) {
	o, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	if v, n, _ := sqlite3.Version(); n < minSQLite {
		return nil, fmt.Errorf("this build has SQLite %s, which can corrupt a ledger that several processes use; build with 3.51.3 or newer", v)
	}
	why, err := prepare(ctx, &o)
	if err != nil {
		return nil, err
	}
	d := &DB{o: o, roReason: why, changed: make(chan struct{}, 1)}
	if why == "" {
		err = d.openWriting(ctx)
	} else {
		err = d.openViewing(ctx)
	}
	if err != nil {
		d.abandon()
		return nil, err
	}
	return d, nil
}

// prepare checks the place and the file, and makes or migrates the ledger. It
// returns why the ledger can only be viewed, "" if it can be written.
//
// It must not open a ledger's file itself, only ask SQLite to: closing any
// descriptor of it would drop the locks of other handles in this process.
func prepare(ctx context.Context, o *Options) (viewOnly string, err error) {
	dir := filepath.Dir(o.Path)
	if !o.ViewOnly && !o.MustExist {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return "", fmt.Errorf("the directory %s for the ledger cannot be made (%w); choose another path with --ledger", dir, err)
		}
	}
	st, err := os.Stat(o.Path)
	switch {
	case err == nil && st.IsDir():
		return "", &ForeignError{Path: o.Path, What: "a directory"}
	case err == nil && !st.Mode().IsRegular():
		return "", &ForeignError{Path: o.Path, What: "no regular file"}
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("the ledger %s cannot be looked at (%w); choose another path with --ledger", o.Path, err)
	}
	if name, err := o.NetworkFS(dir); err == nil && name != "" {
		return "", &NetworkFSError{Path: o.Path, FS: name}
	}
	if err != nil || st.Size() == 0 {
		return "", prepareNew(o, dir, err != nil)
	}

	viewOnly = cannotWrite(o, dir)
	if viewOnly == "" {
		if uid := ownerOf(st); uid != o.UID() {
			return "", &OwnerError{Path: o.Path, UID: uid}
		}
		if st.Mode().Perm()&0o077 != 0 {
			if err := os.Chmod(o.Path, 0o600); err != nil {
				return "", plain(o.Path, "open ledger", err)
			}
		}
	}
	v, err := inspect(o, viewOnly)
	if err != nil {
		return "", err
	}
	if v < len(o.steps) {
		if viewOnly != "" {
			return "", fmt.Errorf("the ledger %s has schema version %d, this build reads version %d, and it cannot be migrated because it is read-only here (%s); copy it to a writable directory, or view it with the build that wrote it", o.Path, v, len(o.steps), viewOnly)
		}
		if err := migrate(ctx, o); err != nil {
			return "", err
		}
	}
	return viewOnly, nil
}

// prepareNew makes a ledger where there is none, unless traces show that there was one.
func prepareNew(o *Options, dir string, gone bool) error {
	anchor, had, err := readAnchor(o.anchor())
	if err != nil {
		return plain(o.Path, "open ledger", err)
	}
	if (had && anchor.Seq > 0) || fileSize(o.wal()) > 0 {
		return &EmptiedError{Path: o.Path, Gone: gone, Want: anchor}
	}
	if o.MustExist || o.ViewOnly {
		return fmt.Errorf("there is no ledger at %s; check --ledger and PAWL_LEDGER, or start a first run to make one: %w", o.Path, &NotFoundError{What: "ledger", ID: o.Path})
	}
	st, err := os.Stat(dir)
	if err != nil {
		return plain(o.Path, "open ledger", err)
	}
	// A directory for everybody (sticky, as /tmp) or of the system is nobody's in particular.
	if uid := ownerOf(st); uid != o.UID() && uid != 0 && st.Mode()&os.ModeSticky == 0 {
		return &OwnerError{Path: dir, UID: uid}
	}
	if err := unix.Access(dir, unix.W_OK|unix.X_OK); err != nil {
		return fmt.Errorf("there is no ledger at %s, and none can be made because its directory cannot be written (%w); choose another path with --ledger or PAWL_LEDGER", o.Path, err)
	}
	return create(o)
}

// cannotWrite says why the ledger can only be viewed; "" if it can be written.
func cannotWrite(o *Options, dir string) string {
	if o.ViewOnly {
		return "as asked"
	}
	for _, p := range []struct {
		path string
		mode uint32
		what string
	}{{o.Path, unix.W_OK, "the file"}, {dir, unix.W_OK | unix.X_OK, "its directory"}} {
		switch err := unix.Access(p.path, p.mode); err {
		case nil:
		case unix.EROFS:
			return "it lies on a read-only file system"
		default:
			return p.what + " cannot be written by you"
		}
	}
	return ""
}

// inspect returns the schema version of an existing file after making sure
// that it is a ledger this build can use.
func inspect(o *Options, viewOnly string) (version int, err error) {
	m := modeInspect
	if viewOnly != "" {
		m = reading(o)
	}
	c, err := dial(o.Path, m, o.BusyTimeout.Milliseconds())
	if err != nil {
		return 0, viewError(o, plain(o.Path, "open ledger", err))
	}
	defer c.close()
	app, err := c.one("PRAGMA application_id")
	if isBusy(err) {
		return 0, busyError(o, o.BusyTimeout)
	}
	if err != nil {
		return 0, viewError(o, plain(o.Path, "open ledger", err))
	}
	v, err := c.version()
	if err != nil {
		return 0, plain(o.Path, "open ledger", err)
	}
	if num(app) != applicationID {
		return 0, &ForeignError{Path: o.Path, What: fmt.Sprintf("the SQLite database of another program (application id %#x)", num(app))}
	}
	if v > len(o.steps) {
		return 0, &NewerError{Path: o.Path, Have: v, Known: len(o.steps)}
	}
	return v, nil
}

// reading is how a view-only handle reads.
func reading(o *Options) mode {
	if unix.Access(filepath.Dir(o.Path), unix.W_OK) == nil {
		return modeRead
	}
	return viewMode(o)
}

// viewError explains the one state in which a read-only directory cannot even be viewed.
func viewError(o *Options, err error) error {
	if _, e := os.Stat(o.shm()); e != nil && fileSize(o.wal()) > 0 && reading(o) == modeRead {
		return fmt.Errorf("the ledger %s cannot be viewed where it is: it was not closed cleanly, and to read its -wal a file would have to be made beside it; copy %s and %s to a writable directory and open it there (%w)", o.Path, o.Path, o.wal(), err)
	}
	return err
}

func (d *DB) openWriting(ctx context.Context) error {
	o := &d.o
	raw := make([]byte, 16)
	if _, err := io.ReadFull(o.Rand, raw); err != nil {
		return fmt.Errorf("open ledger: no randomness for a process id: %w", err)
	}
	d.id = hex.EncodeToString(raw)
	sweepProcs(o.procs())
	sweepAnchors(o)
	var err error
	if d.lock, err = lockProc(o.procs(), d.id); err != nil {
		return plain(o.Path, "register this process", err)
	}
	// The anchor is read before the head: the head only grows.
	anchor, had, err := readAnchor(o.anchor())
	if err != nil {
		return plain(o.Path, "read head anchor", err)
	}
	c, err := dialWriter(o)
	if err != nil {
		return err
	}
	d.wal = newWALSync(d)
	d.w = newWriter(d, c)
	d.pool = newPool(o, modeRead)
	if d.ver, err = dial(o.Path, modeRead, o.BusyTimeout.Milliseconds()); err != nil {
		return plain(o.Path, "open ledger", err)
	}
	if err := d.checkHead(ctx, anchor, had); err != nil {
		return err
	}
	if d.lost != nil && !o.AcceptLoss {
		return d.lost
	}
	d.wal.start()
	d.w.start()
	if d.lost != nil {
		if err := d.acceptLoss(ctx); err != nil {
			return err
		}
	}
	return nil
}

// dialWriter opens the writing connection. The first of several processes to
// open a ledger may find it locked for a moment while another one recovers it.
func dialWriter(o *Options) (*conn, error) {
	c, err := dial(o.Path, modeWrite, o.BusyTimeout.Milliseconds())
	if isBusy(err) {
		return nil, busyError(o, o.BusyTimeout)
	}
	if err != nil {
		return nil, plain(o.Path, "open ledger", err)
	}
	// From here on the writer waits in slices, so that it can be stopped.
	if err := c.do(fmt.Sprintf("PRAGMA busy_timeout=%d", slice.Milliseconds())); err != nil {
		c.close()
		return nil, plain(o.Path, "open ledger", err)
	}
	return c, nil
}

func (d *DB) openViewing(ctx context.Context) error {
	o := &d.o
	anchor, had, err := readAnchor(o.anchor())
	if err != nil {
		had = false // viewing goes without
	}
	d.pool = newPool(o, reading(o))
	if d.ver, err = dial(o.Path, d.pool.mode, o.BusyTimeout.Milliseconds()); err != nil {
		return viewError(o, plain(o.Path, "open ledger", err))
	}
	if err := d.checkHead(ctx, anchor, had); err != nil {
		return viewError(o, err)
	}
	if d.lost != nil {
		if !o.ViewOnly {
			return d.lost
		}
		d.roReason += "; " + itoa(d.lost.Want.Seq-d.lost.Have.Seq) + " events are missing at its end"
	}
	return nil
}

// recent is how many of the last events are checked against their hashes at Open.
const recent = 1000

// checkHead verifies the newest events and compares the head with the anchor.
func (d *DB) checkHead(ctx context.Context, anchor Head, had bool) error {
	head, err := d.Head(ctx)
	if err != nil {
		return err
	}
	if had && anchor.Seq > 0 {
		at, err := d.headAt(ctx, anchor.Seq)
		if err != nil {
			return err
		}
		if at != anchor {
			d.lost = &LostTailError{Path: d.o.Path, Have: head, Want: anchor}
		}
	}
	if d.wal != nil {
		d.wal.anchored = anchor
	}
	_, err = d.EventsSince(ctx, max(0, head.Seq-recent), recent)
	return err
}

// acceptLoss records that an operator took note of the missing tail.
func (d *DB) acceptLoss(ctx context.Context) error {
	l := d.lost
	err := d.w.submit(ctx, &request{full: true, do: func(c *conn) error {
		_, err := c.exec("INSERT INTO loss(at, want_seq, want_hash, have_seq, have_hash) VALUES(?, ?, ?, ?, ?)",
			d.o.Clock().UnixMicro(), l.Want.Seq, l.Want.Hash[:], l.Have.Seq, l.Have.Hash[:])
		return err
	}})
	if err != nil {
		return err
	}
	d.lost = nil
	return plain(d.o.Path, "write head anchor", d.wal.reanchor(l.Have))
}

// abandon closes what a failed Open had opened.
func (d *DB) abandon() {
	if d.wal != nil {
		d.wal.abandon()
	}
	if d.ver != nil {
		d.ver.close()
	}
	if d.pool != nil {
		d.pool.close()
	}
	if d.w != nil {
		d.w.stop()
		d.w.c.close()
	}
	d.lock.release()
}

func fileSize(path string) int64 {
	st, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return st.Size()
}

func ownerOf(st os.FileInfo) uint32 {
	if s, ok := st.Sys().(*syscall.Stat_t); ok {
		return s.Uid
	}
	return 0
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }
