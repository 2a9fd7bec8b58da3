package ledger

import (
	"context"
	"encoding/hex"
	"time"
)

// Hash is a SHA-256 digest.
type Hash [32]byte

// String returns lower-case hex.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// IsZero reports whether h names nothing.
func (h Hash) IsZero() bool { return h == Hash{} }

// CommandID names one Commit part for ever. A commit whose outcome is unknown
// is read back by it, so that sending it again can never append twice.
type CommandID [16]byte

// Event is one appended fact.
type Event struct {
	Seq     int64 // ledger-wide order, from 1, without gaps
	Run     string
	N       int64 // position within the run, from 1, without gaps
	Cmd     CommandID
	Kind    string
	At      int64  // Unix microseconds by the wall clock, for people; never used for order
	Actor   string // "engine", "model", "operator:NAME"
	Epoch   int64  // lease epoch it was written under; 0 for an operator's decision
	Payload []byte // canonical CBOR, at most MaxPayload bytes
	Hash    Hash   // SHA-256(previous hash of the run ‖ canonical event)
}

// MaxPayload bounds an event's payload in bytes; what is larger goes into a blob.
const MaxPayload = 64 << 10

// NewEvent is an event before the ledger has numbered and chained it.
type NewEvent struct {
	Kind    string
	At      int64
	Actor   string
	Payload []byte
}

// Durability says when Commit may return.
type Durability uint8

const (
	// Full returns after the WAL was synced: the commit survives a power cut.
	Full Durability = iota
	// Lazy returns after the commit is visible and survives kill -9; it becomes
	// power-safe with the next Full commit or by the lazy sync, at most 50 ms later.
	Lazy
)

// Part is what one Commit does to one run. A part either holds for an owner
// (Epoch > 0: the run's lease must carry this epoch and Holder) or is an
// operator's decision (Epoch 0: guarded by Tail alone).
type Part struct {
	Run    string
	Cmd    CommandID
	Holder string // process id of the owner, as registered by Open
	Epoch  int64
	Tail   int64 // number of events the run must have now; 0 creates the run
	Events []NewEvent
	Rows   Rows
	Blobs  []Blob
	// Claim takes the lease in the same transaction: Epoch must be the lease's
	// current epoch + 1. Refused with *HeldError while a living owner holds it.
	Claim bool
	// Release gives the lease up after the events are in.
	Release bool
}

// Committed is what a Commit did to one run.
type Committed struct {
	Run      string
	Tail     int64 // events in the run now
	FirstSeq int64 // of this part's events; 0 if it had none
	Hash     Hash  // head of the run's chain
}

// Blob is content ready to be stored; make one with NewBlob.
type Blob struct {
	Hash Hash
	Size int64  // of the plain bytes
	Data []byte // zstd
	cuts []int  // where each frame of Data ends; nil if NewBlob did not make it
}

// Rows are the projections that a part changes. Each is written whole, by its
// key; Gone removes inbox items that are settled.
type Rows struct {
	Run       *RunRow
	Effects   []EffectRow
	Approvals []ApprovalRow
	Inbox     []InboxRow
	Gone      []string // ids of inbox rows to remove
	Windows   []WindowRow
}

// RunRow is the list view of a run.
type RunRow struct {
	ID, Parent, Root string
	Goal             string
	State            string // machine.Phase
	Model            string
	Repo             string // what the run works on, as the operator named it
	Turn             int64
	SpendMicroUSD    int64 // known spend
	AtMostMicroUSD   int64 // possible further spend of lost model calls
	BudgetMicroUSD   int64 // 0: none
	Open             int64 // dispatched or ambiguous effects
	Waiting          int64 // inbox items of this run
	Created          int64 // Unix µs
	Updated          int64
	LastOperator     int64  // Unix µs of the last operator's action: what "continue the last one" goes by
	Note             string // one line: what it is doing, or why it ended
	Flags            int64  // bits that belong to the engine
}

// EffectRow is the list view of an effect.
type EffectRow struct {
	ID, Run  string
	Ord      int64 // number in its run, from 1
	Turn     int64
	Tool     string
	Class    string
	State    string
	Forced   bool
	Attempts int64
	Digest   Hash
	Summary  string // one line: what was meant
	Updated  int64
}

// ApprovalRow is one question "may exactly this effect run?".
type ApprovalRow struct {
	ID, Run, Effect string
	State           string
	Digest          Hash
	Updated         int64
}

// InboxRow is one thing that waits for the operator.
type InboxRow struct {
	ID, Run, Kind string
	Ref           string // effect, approval or question it is about
	Summary       string
	Rank          int64 // order of kinds; lower first
	Since         int64 // Unix µs
	Latent        bool  // waits only if the run's owner turns out to be gone
}

// WindowRow is one context window.
type WindowRow struct {
	Run    string
	N      int64
	Opened int64
	Turns  int64
	Tokens int64
}

// Lease says who may drive a run.
type Lease struct {
	Run    string
	Holder string // "" when released
	Epoch  int64
	Boot   string        // boot id of the machine it was taken on
	Left   time.Duration // until it runs out by the monotonic clock; 0 or less: out
	Live   bool          // the holder's process lock is held, the boot is ours and time is left
	Owner  string        // for people: "pid 4711 (pawl run) on host"
}

// Head is where the ledger stands.
type Head struct {
	Seq  int64
	Hash Hash // hash of event Seq
}

// Page asks for a keyset page: rows after (or, with Back, before) a key.
type Page struct {
	After int64 // exclusive; 0 starts at the beginning (with Back: at the end)
	Back  bool
	Limit int // 0 means 100
}

// Store is the durable truth as the engine sees it. *DB implements it over
// SQLite; a test double must pass the same contract tests.
type Store interface {
	// Commit appends all parts in one transaction or none of them. ctx bounds
	// the wait for a place in line only; a commit that has begun is never
	// cancelled. Errors: *TailError, *FencedError, *HeldError, *FullError,
	// *BusyError, *ReadOnlyError. Nothing was written when it returns one.
	Commit(ctx context.Context, d Durability, parts ...Part) ([]Committed, error)

	Events(ctx context.Context, run string, after int64, limit int) ([]Event, error) // by N
	EventsSince(ctx context.Context, seq int64, limit int) ([]Event, error)          // by Seq
	EventsPage(ctx context.Context, run string, p Page) ([]Event, error)             // by N, ascending within the page
	Tail(ctx context.Context, run string) (int64, error)
	Head(ctx context.Context) (Head, error)

	Run(ctx context.Context, id string) (RunRow, error) // *NotFoundError
	Runs(ctx context.Context, f RunFilter) ([]RunRow, error)
	CountRuns(ctx context.Context) (map[string]int64, error) // by state
	Effects(ctx context.Context, run string, p Page) ([]EffectRow, error)
	Effect(ctx context.Context, id string) (EffectRow, error)
	Approvals(ctx context.Context, run string) ([]ApprovalRow, error)
	Approval(ctx context.Context, id string) (ApprovalRow, error)
	Inbox(ctx context.Context, run string) ([]InboxRow, error) // "" for all, by rank then since
	InboxItem(ctx context.Context, id string) (InboxRow, error)
	Windows(ctx context.Context, run string) ([]WindowRow, error)

	// PutBlob stores content apart from any event (outputs that become durable
	// lazily). Blobs named by an event may also ride in its Part.
	PutBlob(ctx context.Context, b ...Blob) error
	Blob(ctx context.Context, h Hash) ([]byte, error)                               // plain bytes; *NotFoundError
	BlobRange(ctx context.Context, h Hash, off int64, n int) ([]byte, int64, error) // bytes, total size

	Leases(ctx context.Context, runs ...string) ([]Lease, error) // none named: all that are held
	// Renew extends every lease this process holds; it returns the runs whose lease was lost.
	Renew(ctx context.Context) (lost []string, err error)

	// Sync makes all lazy commits so far power-safe.
	Sync(ctx context.Context) error
	// Changed returns a channel that is signalled (never blocked on) after each
	// commit of this process.
	Changed() <-chan struct{}
	// DataVersion changes when another process committed. Cheap (µs).
	DataVersion(ctx context.Context) (int64, error)

	Stats() Stats
	Path() string
	ReadOnly() (bool, string) // and why
	Close() error
}

// RunFilter selects runs, newest first by Created then ID.
type RunFilter struct {
	States []string // none: all
	Parent *string  // nil: any; "" only roots
	Before string   // keyset: runs listed after this id; "" from the top
	Search string   // substring of goal or id
	Limit  int      // 0 means 100
}

// Stats are counters since Open, for benchmarks and the status line.
type Stats struct {
	Commits   int64 // SQLite transactions
	Parts     int64
	Syncs     int64 // blocking syncs of the WAL
	LazySyncs int64
	Events    int64
	WALBytes  int64 // size now

	Checkpoints int64 // attempts to start the WAL over because of its size
	// WALPinned says that the WAL is larger than it should be because some
	// process (not necessarily a Pawl) keeps a read transaction open. SQLite
	// cannot reuse the file before that ends, so no bound can be enforced then:
	// the operator must be told before the disk is full.
	WALPinned bool
}
