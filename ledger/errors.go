package ledger

import (
	"errors"
	"fmt"
	"io/fs"
	"os/user"
	"strconv"
	"syscall"
	"time"

	sqlite3 "github.com/mattn/go-sqlite3"
)

// TailError refuses a part whose run has moved on, or is not as long as its
// writer believed. Nothing was written; derive the part again from the newer tail.
type TailError struct {
	Run        string
	Want, Have int64 // events the part expected, events there are
}

func (e *TailError) Error() string {
	if e.Want == 0 {
		return fmt.Sprintf("run %s exists already with %d events, so it was not created again; choose another id", e.Run, e.Have)
	}
	return fmt.Sprintf("run %s has %d events where %d were expected: somebody else wrote to it first, and nothing was written now; look at it again and decide anew", e.Run, e.Have, e.Want)
}

// FencedError refuses a part written under an epoch that is not the run's
// current one, or by a process that does not hold it.
type FencedError struct {
	Run            string
	Epoch, Current int64
	Owner          string // of the current epoch; "" if released
}

func (e *FencedError) Error() string {
	if e.Owner == "" {
		return fmt.Sprintf("run %s is not held under epoch %d (its epoch is %d and nobody holds it), so nothing was written; resume the run to take it again", e.Run, e.Epoch, e.Current)
	}
	return fmt.Sprintf("run %s is now driven by %s (epoch %d; this process wrote under %d), so nothing was written; watch it there, or wait until it is given up", e.Run, e.Owner, e.Current, e.Epoch)
}

// HeldError refuses a claim while a living owner holds the run.
type HeldError struct {
	Run, Owner string
	Left       time.Duration
}

func (e *HeldError) Error() string {
	return fmt.Sprintf("run %s is driven by %s for another %s, so it was not taken over; watch it, or end that process first", e.Run, e.Owner, e.Left.Round(100*time.Millisecond))
}

// FullError says that the disk, a quota or a file size limit is exhausted.
// What was acknowledged before is kept; the action at hand was not done.
type FullError struct {
	Path string
	Err  error
}

func (e *FullError) Error() string {
	return fmt.Sprintf("no space left to write the ledger %s (%v): this action was not done and everything before it is kept; free some space and try again", e.Path, e.Err)
}
func (e *FullError) Unwrap() error { return e.Err }

// BusyError says that another process kept the ledger's write lock for longer
// than the busy timeout. Nothing was written.
type BusyError struct {
	Path   string
	Waited time.Duration
	PID    int    // who holds it; 0 if it cannot be found
	Who    string // its command name; "" if unknown
	Halted bool   // it is stopped by a signal
}

func (e *BusyError) Error() string {
	who := "another process"
	if e.PID > 0 {
		who = "process " + strconv.Itoa(e.PID)
		if e.Who != "" {
			who += " (" + e.Who + ")"
		}
	}
	next := "try again when it is done"
	if e.PID > 0 && e.Halted {
		who += ", which is stopped,"
		next = fmt.Sprintf("continue it with `kill -CONT %d` or end it, then try again", e.PID)
	} else if e.PID > 0 {
		next += ", or end it"
	}
	return fmt.Sprintf("the ledger %s has been locked by %s for %s: this action was not done; %s", e.Path, who, e.Waited.Round(100*time.Millisecond), next)
}

// ReadOnlyError refuses a write to a ledger that is open for viewing only.
type ReadOnlyError struct{ Path, Reason string }

func (e *ReadOnlyError) Error() string {
	return fmt.Sprintf("the ledger %s is open for viewing only (%s), so nothing can be decided or run here; use a writable copy, or another ledger with --ledger", e.Path, e.Reason)
}

// NotFoundError says that nothing has this id.
type NotFoundError struct{ What, ID string }

func (e *NotFoundError) Error() string {
	return fmt.Sprintf("there is no %s %q in this ledger; check the id, or whether --ledger names the right one", e.What, e.ID)
}

// LostTailError says that synced events that once were in the ledger are gone
// or differ: its write-ahead file was removed or cut, or an older copy was put
// in its place.
type LostTailError struct {
	Path       string
	Have, Want Head
}

func (e *LostTailError) Error() string {
	if e.Have.Seq >= e.Want.Seq {
		return fmt.Sprintf("the ledger %s differs from what was last known of it: event %d is another one than it was; put back the right file (with its -wal), or acknowledge the loss with `pawl verify --accept-loss`", e.Path, e.Want.Seq)
	}
	return fmt.Sprintf("the ledger %s ends at event %d, but event %d had been written: %d events are missing, probably because its -wal file was removed or an older copy was put in its place; put it back, or acknowledge the loss with `pawl verify --accept-loss`", e.Path, e.Have.Seq, e.Want.Seq, e.Want.Seq-e.Have.Seq)
}

// NewerError refuses a ledger of a newer schema.
type NewerError struct {
	Path        string
	Have, Known int // schema version of the file, newest this build knows
}

func (e *NewerError) Error() string {
	return fmt.Sprintf("the ledger %s has schema version %d, and this build knows up to version %d: it was written by a newer Pawl; update Pawl, or choose another ledger with --ledger", e.Path, e.Have, e.Known)
}

// ForeignError refuses a file that is no ledger.
type ForeignError struct{ Path, What string }

func (e *ForeignError) Error() string {
	return fmt.Sprintf("%s is not a ledger: it is %s; it was left as it is, choose another path with --ledger", e.Path, e.What)
}

// EmptiedError refuses to start a fresh ledger where traces show that there was one.
type EmptiedError struct {
	Path string
	Gone bool // the file is missing; else it is empty
	Want Head // last known head; zero if only a write-ahead file was left
}

func (e *EmptiedError) Error() string {
	how := "is empty"
	if e.Gone {
		how = "is gone"
	}
	what := "a write-ahead file with its name is left"
	if e.Want.Seq > 0 {
		what = fmt.Sprintf("it had %d events", e.Want.Seq)
	}
	return fmt.Sprintf("the ledger %s %s, but %s: no new one was started over it; put the file back from a backup, or move the files %s* away to start anew", e.Path, how, what, e.Path)
}

// NetworkFSError refuses a ledger on a file system where its locks and shared
// memory are not safe.
type NetworkFSError struct{ Path, FS string }

func (e *NetworkFSError) Error() string {
	return fmt.Sprintf("the ledger %s would lie on %s, where the locks that keep it whole cannot be trusted; choose a directory on a local disk with --ledger or PAWL_LEDGER", e.Path, e.FS)
}

// OwnerError refuses a directory or ledger that belongs to another user.
type OwnerError struct {
	Path string // the directory or file
	UID  uint32
}

func (e *OwnerError) Error() string {
	who := "uid " + strconv.FormatUint(uint64(e.UID), 10)
	if u, err := user.LookupId(strconv.FormatUint(uint64(e.UID), 10)); err == nil {
		who = u.Username
	}
	return fmt.Sprintf("%s belongs to %s, not to you: a ledger written there by you could no longer be opened by its owner; choose another path with --ledger, or run as %s", e.Path, who, who)
}

// CorruptError says that what is stored is not what was written.
type CorruptError struct {
	Path string
	Run  string // "" if not about one run
	Seq  int64  // first event concerned; 0 if unknown
	What string
	Err  error
}

func (e *CorruptError) Error() string {
	s := "the ledger " + e.Path + " is damaged"
	if e.Run != "" {
		s += " in run " + e.Run
	}
	if e.Seq > 0 {
		s += fmt.Sprintf(" at event %d", e.Seq)
	}
	s += ": " + e.What
	if e.Err != nil {
		s += fmt.Sprintf(" (%v)", e.Err)
	}
	return s + "; keep a copy of all its files, then run `pawl verify` or restore a backup"
}
func (e *CorruptError) Unwrap() error { return e.Err }

// UnknownError says that the disk failed while a commit was being made final,
// and that reading it back failed too: it may or may not be in the ledger.
// Sending the same command ids again is safe and settles it.
type UnknownError struct {
	Path string
	Err  error
}

func (e *UnknownError) Error() string {
	return fmt.Sprintf("the disk failed while the ledger %s was being written (%v): it is not known whether this action was recorded; check the disk, then try again, which never records it twice", e.Path, e.Err)
}
func (e *UnknownError) Unwrap() error { return e.Err }

// ErrClosed is returned by every method after Close.
var ErrClosed = errors.New("the ledger is closed")

func noSpace(err error) bool {
	var se sqlite3.Error
	if errors.As(err, &se) {
		if se.Code == sqlite3.ErrFull {
			return true
		}
		switch se.SystemErrno {
		case syscall.ENOSPC, syscall.EFBIG, syscall.EDQUOT:
			// The errno is that of the last failed call and may be stale, so it
			// counts only where the code is one that writing can give.
			return se.Code == sqlite3.ErrIoErr || se.Code == sqlite3.ErrCantOpen
		}
		return false
	}
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EFBIG) || errors.Is(err, syscall.EDQUOT)
}

func isBusy(err error) bool {
	var se sqlite3.Error
	return errors.As(err, &se) && (se.Code == sqlite3.ErrBusy || se.Code == sqlite3.ErrLocked)
}

// plain turns a driver's error into one of this package's, naming path.
func plain(path, op string, err error) error {
	if err == nil {
		return nil
	}
	if noSpace(err) {
		return &FullError{Path: path, Err: err}
	}
	var se sqlite3.Error
	if errors.As(err, &se) {
		switch se.Code {
		case sqlite3.ErrNotADB:
			return &ForeignError{Path: path, What: "no SQLite database (or its first page is destroyed)"}
		case sqlite3.ErrCorrupt:
			return &CorruptError{Path: path, What: "SQLite cannot read a page", Err: err}
		case sqlite3.ErrReadonly:
			return &ReadOnlyError{Path: path, Reason: "the file or its directory cannot be written"}
		case sqlite3.ErrPerm, sqlite3.ErrCantOpen:
			return fmt.Errorf("%s: the ledger %s cannot be opened (%w); check that the directory exists and that you may read and write it", op, path, err)
		}
	}
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%s: you may not use %s (%w); choose another path with --ledger", op, path, err)
	}
	return fmt.Errorf("%s (%s): %w", op, path, err)
}
