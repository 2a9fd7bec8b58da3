package ledger

import (
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// Options say how to open a ledger. Only Path is required.
type Options struct {
	Path string
	// Owner names this process to people, as in "pid 4711 (pawl run) on host".
	Owner string

	Clock func() time.Time     // wall clock, for records only
	Mono  func() time.Duration // a clock all processes of one boot share; decides when leases run out
	Boot  string               // names the boot that Mono belongs to
	Rand  io.Reader            // for this process's id

	LeaseFor    time.Duration // how long a claim or renewal holds; 15 s
	BusyTimeout time.Duration // how long to wait for another process's write lock; 5 s
	LazyAfter   time.Duration // a lazy commit is synced at most this much later; 50 ms
	// After is time.After for the lazy sync and the head anchor.
	After func(time.Duration) <-chan time.Time

	// WALBound is the size in bytes that the write-ahead file is kept under;
	// 64 MiB. See Stats.WALPinned for when it cannot be.
	WALBound int64

	MustExist  bool // refuse a missing ledger instead of making one
	ViewOnly   bool // never write, and open a ledger that lost its tail as well
	AcceptLoss bool // record that a lost tail is acknowledged, and go on from what is there

	// NetworkFS names dir's file system if locks on it cannot be trusted, "" otherwise.
	NetworkFS func(dir string) (string, error)
	// UID is who we are, for the check that nobody else owns the ledger.
	UID func() uint32

	// at is called at each point where a test may kill or fail the process.
	at    func(point string) error
	steps []step // migrations; nil: those of this build
	// syncWAL is fdatasync on the write-ahead file.
	syncWAL func(f *os.File) error
}

const (
	anchorAfter = 500 * time.Millisecond // head anchor at most this much behind
	walLimit    = 16 << 20               // the -wal is cut to this size when it starts over
	readers     = 4
)

func (o Options) withDefaults() (Options, error) {
	if o.Path == "" {
		return o, fmt.Errorf("no path given for the ledger; name one with --ledger or PAWL_LEDGER")
	}
	p, err := filepath.Abs(o.Path)
	if err != nil {
		return o, fmt.Errorf("the ledger's path %q cannot be made absolute: %w", o.Path, err)
	}
	// SQLite and our own files beside it must agree on one name.
	if r, err := filepath.EvalSymlinks(p); err == nil {
		p = r
	}
	o.Path = p
	if o.Owner == "" {
		host, _ := os.Hostname()
		o.Owner = fmt.Sprintf("pid %d (%s) on %s", os.Getpid(), filepath.Base(os.Args[0]), host)
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Mono == nil {
		o.Mono = monotonic
	}
	if o.After == nil {
		o.After = time.After
	}
	if o.NetworkFS == nil {
		o.NetworkFS = networkFS
	}
	if o.UID == nil {
		o.UID = func() uint32 { return uint32(os.Geteuid()) }
	}
	if o.at == nil {
		o.at = func(string) error { return nil }
	}
	if o.syncWAL == nil {
		o.syncWAL = fdatasync
	}
	if o.Boot == "" {
		o.Boot = bootID()
	}
	if o.Rand == nil {
		o.Rand = rand.Reader
	}
	if o.LeaseFor <= 0 {
		o.LeaseFor = 15 * time.Second
	}
	if o.BusyTimeout <= 0 {
		o.BusyTimeout = 5 * time.Second
	}
	if o.LazyAfter <= 0 {
		o.LazyAfter = 50 * time.Millisecond
	}
	if o.WALBound <= 0 {
		o.WALBound = 64 << 20
	}
	if o.steps == nil {
		o.steps, err = loadSteps(migrationFiles)
		if err != nil {
			return o, err
		}
	}
	return o, nil
}

func (o *Options) procs() string  { return o.Path + ".procs" }
func (o *Options) anchor() string { return o.Path + ".head" }
func (o *Options) wal() string    { return o.Path + "-wal" }
func (o *Options) shm() string    { return o.Path + "-shm" }
