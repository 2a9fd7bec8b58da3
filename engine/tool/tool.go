// Package tool holds the tools that a model can call.
//
// A tool plans (reading only: class, contract, what policy has to judge),
// measures what a probe will need, and runs one attempt. It never decides
// whether it may run, never retries, and never writes to the ledger.
package tool

import (
	"context"
	"encoding/json"
	"io"
	"time"

	"pawl/engine/confine"
	"pawl/engine/machine"
	"pawl/engine/policy"
	"pawl/engine/workspace"
)

// Spec is how a tool presents itself to the model.
type Spec struct {
	Name        string
	Version     int
	Description string          // product text, golden-tested
	Schema      json.RawMessage // JSON schema of the arguments
}

// Env is what a tool may touch on behalf of one run.
type Env struct {
	Run           machine.RunID
	Space         workspace.Workspace
	Manager       *workspace.Manager
	Level         confine.Level // measured
	Allow         []string      // the run's --allow rules
	Check         string        // the run's acceptance command line
	CheckProposed bool          // by a model that delegated, not by the operator
	Outputs       string        // directory for the output files of commands, of this run; made when needed
	// Blob reads stored content. It is asked only for blobs that State names.
	Blob func(ctx context.Context, d machine.Digest) ([]byte, error)
	// Self is the identity of this Pawl process, the sender of its own requests.
	Self  machine.Identity
	Now   func() time.Time
	Mono  func() machine.Instant
	State *machine.State // read only
	// Hidden directories are replaced by empty ones for commands: Pawl's own state.
	Hidden []string
}

// Plan is what a call would do, found out by reading only.
type Plan struct {
	Contract machine.Contract
	Summary  string // one line: "git push origin fix/retry"
	Target   string // what it acts on: URL, remote ref, path
	Text     string // everything that will run or be sent or written, for the approval card
	Subject  policy.Subject
	Files    []machine.File  // contents that the digest covers
	Args     json.RawMessage // canonical arguments
}

// Measured is what is read just before a dispatch and recorded with it. When an
// interrupted edit of our own is repeated, it is not measured again: the hashes
// of the first dispatch decide whether the disk has the old content, the new
// one, or somebody else's.
type Measured struct {
	Params   map[string]string // for the probe
	Old, New machine.Digest    // own edits: content before and after
}

// Call is one attempt.
type Call struct {
	Effect   machine.EffectID
	Attempt  int
	Args     json.RawMessage
	Contract machine.Contract
	Measured Measured
	// Started commits a command's identity; the gate opens only if it returns nil.
	Started func(machine.Identity) error
	// Output receives live output as it is read, for the screen and for crash
	// points: from one other goroutine, which Run joins before it returns. The
	// bytes are valid during the call only. May be nil.
	Output func([]byte)
	// Before is called right before the first byte leaves this process (before a
	// command's gate opens, a connection is used, a file is exchanged), After right
	// after the answer is in (crash points). May be nil. Neither is called for an
	// attempt that ends before its first byte.
	Before, After func()
}

// EndKind is how an attempt ended.
type EndKind uint8

// The ends. The zero value is ambiguous: nothing was observed.
const (
	EndAmbiguous EndKind = iota
	EndCompleted
	EndRejected
)

// Outcome is what one attempt told us.
type Outcome struct {
	End    EndKind
	Result machine.Result   // Output is filled in by the engine from Output below
	Output Content          // with an ambiguous end: what was seen before
	Code   string           // error code for a rejection, which the contract lists as before-effect
	Cause  string           // why it is ambiguous, one sentence
	Closed *machine.Instant // own requests: when the connection was closed and its goroutine had ended
	// Dead: the command's whole process tree is proven dead, at that instant.
	Dead *machine.Instant
}

// Content is an output of any size, read once.
type Content struct {
	Bytes []byte // small outputs
	Path  string // or a file
}

// Open reads the content.
func (c Content) Open() (io.ReadCloser, error) { return openContent(c) }

// Tool is one tool.
type Tool interface {
	Spec() Spec
	// Plan judges canonical arguments that are valid by the schema. An *ArgError is
	// told to the model. What depends on the state of files is not judged but left
	// to Run, since an earlier call of the same response may change it.
	Plan(ctx context.Context, env Env, args json.RawMessage) (Plan, error)
	// Measure reads what must be recorded with the dispatch. An error means that the
	// call must not be dispatched as planned; nothing has happened.
	Measure(ctx context.Context, env Env, p machine.Contract, args json.RawMessage) (Measured, error)
	// Run does one attempt. It never returns an error: what it cannot tell is ambiguous.
	Run(ctx context.Context, env Env, c Call) Outcome
}

// ArgError is a call that cannot be meant: the text is for the model.
type ArgError struct{ Text string }

func (e *ArgError) Error() string { return e.Text }
