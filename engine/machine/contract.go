package machine

import "fmt"

// Class says what may be done by itself about an effect without a result.
type Class uint8

// The classes. Undeclared means irreversible.
const (
	ClassUnknown      Class = iota
	ClassRead               // run again
	ClassWorkspace          // sealed command or own edit: restore, run again
	ClassKeyed              // idempotency key: same bytes, same key
	ClassProbeable          // quiescence, then look
	ClassCompensable        // as probeable; can be undone
	ClassIrreversible       // a person decides
)

var classNames = [...]string{"unknown", "READ", "WORKSPACE", "KEYED", "PROBEABLE", "COMPENSABLE", "IRREVERSIBLE"}

func (c Class) String() string { return nameOf(classNames[:], int(c)) }

// MarshalText writes the class's name.
func (c Class) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText reads a class's name.
func (c *Class) UnmarshalText(b []byte) error { return parseName(classNames[:], string(b), c) }

// Sender is who puts an effect's bytes into the world; quiescence is about its death.
type Sender uint8

// The senders.
const (
	SenderUnknown Sender = iota
	SenderPawl           // Pawl's own request: that process, or the request's closed connection
	SenderCommand        // a command and all its descendants
	SenderLocal          // Pawl's own file edit: local, dead with the process
)

// Contract is what a tool promises about one effect. It is frozen with the
// effect when it is intended; later changes of a tool do not touch it.
type Contract struct {
	Name    string `json:"name" cbor:"1,keyasint"` // "shell", "git-push", …
	Version int    `json:"version" cbor:"2,keyasint"`
	Class   Class  `json:"class" cbor:"3,keyasint"`
	Sender  Sender `json:"sender,omitempty" cbor:"4,keyasint,omitempty"`
	// Writes: it may change the workspace, so a snapshot precedes every dispatch.
	Writes  bool `json:"writes,omitempty" cbor:"5,keyasint,omitempty"`
	Network bool `json:"network,omitempty" cbor:"6,keyasint,omitempty"`
	// InFlight is D in µs: how long after the sender's death the effect may still land.
	InFlight int64 `json:"in_flight,omitempty" cbor:"7,keyasint,omitempty"`
	// Key and KeyHorizon (µs since the first dispatch, margin already subtracted) of class KEYED.
	Key        string `json:"key,omitempty" cbor:"8,keyasint,omitempty"`
	KeyHorizon int64  `json:"key_horizon,omitempty" cbor:"9,keyasint,omitempty"`
	Probe      *Probe `json:"probe,omitempty" cbor:"10,keyasint,omitempty"`
	// BeforeEffect lists error codes that prove that nothing happened.
	BeforeEffect []string `json:"before_effect,omitempty" cbor:"11,keyasint,omitempty"`
	// ProvesNothing lists exit codes or answers that are no observed end.
	ProvesNothing []string      `json:"proves_nothing,omitempty" cbor:"12,keyasint,omitempty"`
	Compensation  *Compensation `json:"compensation,omitempty" cbor:"13,keyasint,omitempty"`
	// Declared: re-runnable because the operator said so, not because it was measured.
	Declared bool `json:"declared,omitempty" cbor:"14,keyasint,omitempty"`
	// Params hold what the probe needs, recorded before the first byte
	// (for a git push: remote, ref, old, new).
	Params map[string]string `json:"params,omitempty" cbor:"15,keyasint,omitempty"`
	// Needs is what its command gets beside the usual; so do its probe and its compensation.
	Needs *Needs `json:"needs,omitempty" cbor:"16,keyasint,omitempty"`
	// Refused are regular expressions: output that one of them fits is the other
	// side's own refusal, and thereby an observed end, even with a code that
	// proves nothing.
	Refused []string `json:"refused,omitempty" cbor:"17,keyasint,omitempty"`
}

// Needs names, never holds, what a command must see to reach the outside.
type Needs struct {
	Env     []string `json:"env,omitempty" cbor:"1,keyasint,omitempty"`     // names of variables
	Reveal  []string `json:"reveal,omitempty" cbor:"2,keyasint,omitempty"`  // paths below the home directory
	Sockets []string `json:"sockets,omitempty" cbor:"3,keyasint,omitempty"` // absolute paths
}

// Probe says how the world is asked, and what its answer proves.
type Probe struct {
	Kind string `json:"kind" cbor:"1,keyasint"` // "git-ref", "http", "command", "file"
	// ReadsOwnWrites: a negative answer after quiescence is a proof; else only
	// after Settle µs more.
	ReadsOwnWrites bool  `json:"reads_own_writes,omitempty" cbor:"2,keyasint,omitempty"`
	Settle         int64 `json:"settle,omitempty" cbor:"3,keyasint,omitempty"`
	// ProvesNot: the probe may prove that it did not happen; untested ones may only prove that it did.
	ProvesNot bool `json:"proves_not,omitempty" cbor:"4,keyasint,omitempty"`
	// Command is the argument list of a probe of kind "command", URL and Header
	// belong to one of kind "http". ${env:NAME} in a header is filled in when it
	// is sent, so that no secret is on record.
	Command []string          `json:"command,omitempty" cbor:"5,keyasint,omitempty"`
	URL     string            `json:"url,omitempty" cbor:"6,keyasint,omitempty"`
	Header  map[string]string `json:"header,omitempty" cbor:"7,keyasint,omitempty"`
	// Answers say what the command's or the server's answers mean; the first one
	// that fits counts, and what fits none is inconclusive.
	Answers []Answer `json:"answers,omitempty" cbor:"8,keyasint,omitempty"`
	Network bool     `json:"network,omitempty" cbor:"9,keyasint,omitempty"`
	Timeout int64    `json:"timeout,omitempty" cbor:"10,keyasint,omitempty"` // µs; 0: the default
	// Baseline: what it looks for may have been there before, so it looks before
	// the dispatch, too, and finding it later proves something only if it was
	// absent then.
	Baseline bool `json:"baseline,omitempty" cbor:"11,keyasint,omitempty"`
}

// Answer is one answer of a probe and what it means.
type Answer struct {
	Verdict Verdict  `json:"verdict" cbor:"1,keyasint"`
	Codes   []string `json:"codes,omitempty" cbor:"2,keyasint,omitempty"` // exit codes or HTTP statuses; none: any
	// Match is a regular expression that the output or body holds; "": anything.
	Match string `json:"match,omitempty" cbor:"3,keyasint,omitempty"`
}

// Compensation is the promise that an effect can be undone by another one.
type Compensation struct {
	Tool     string `json:"tool" cbor:"1,keyasint"`
	Args     string `json:"args" cbor:"2,keyasint"` // canonical JSON
	NullSafe bool   `json:"null_safe,omitempty" cbor:"3,keyasint,omitempty"`
	// Success lists the codes that mean undone; none: "0".
	Success []string `json:"success,omitempty" cbor:"4,keyasint,omitempty"`
}

// Verdict is what one piece of evidence says.
type Verdict uint8

// The verdicts.
const (
	VerdictUnknown Verdict = iota
	VerdictHappened
	VerdictNotHappened
	VerdictConflict
	VerdictInconclusive
)

var verdictNames = [...]string{"", "happened", "not_happened", "conflict", "inconclusive"}

func (v Verdict) String() string { return nameOf(verdictNames[:], int(v)) }

// MarshalText writes the verdict's name.
func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// UnmarshalText reads a verdict's name.
func (v *Verdict) UnmarshalText(b []byte) error { return parseName(verdictNames[:], string(b), v) }

// Authority is where evidence comes from.
type Authority string

// The authorities.
const (
	AuthAck      Authority = "ack"
	AuthProbe    Authority = "probe"
	AuthReplay   Authority = "replay"  // a keyed re-send answered
	AuthGate     Authority = "gate"    // the command's gate never opened
	AuthDeath    Authority = "death"   // the search for proof that the sender is dead
	AuthHorizon  Authority = "horizon" // the key is too old to be used again
	AuthLateAck  Authority = "late_ack"
	AuthOperator Authority = "operator"
)

// Evidence is an appended fact about an effect.
type Evidence struct {
	N         int64     `json:"n" cbor:"1,keyasint"` // event number in the run
	Verdict   Verdict   `json:"verdict" cbor:"2,keyasint"`
	Authority Authority `json:"authority" cbor:"3,keyasint"`
	Covers    int       `json:"covers" cbor:"4,keyasint"` // attempts ≤ Covers
	Text      string    `json:"text" cbor:"5,keyasint"`   // one sentence for people
	Blob      Digest    `json:"blob,omitzero" cbor:"6,keyasint,omitzero"`
	Started   Instant   `json:"started,omitzero" cbor:"7,keyasint,omitzero"` // when the look began
	At        int64     `json:"at" cbor:"8,keyasint"`
	Actor     string    `json:"actor" cbor:"9,keyasint"`
}

// Quiescence is the stored proof that no attempt ≤ Covers can still land,
// once InFlight has passed since At.
type Quiescence struct {
	Covers int     `json:"covers" cbor:"1,keyasint"`
	Proof  string  `json:"proof" cbor:"2,keyasint"` // "pid-namespace", "boot", "process", "connection", "local", "fence"
	Detail string  `json:"detail,omitempty" cbor:"3,keyasint,omitempty"`
	At     Instant `json:"at" cbor:"4,keyasint"`
	N      int64   `json:"n,omitempty" cbor:"5,keyasint,omitempty"` // event number in the run
}

// Identity names one process for ever: what a proof of death is about.
type Identity struct {
	Boot  string `json:"boot" cbor:"1,keyasint"`
	PIDNS string `json:"pidns,omitempty" cbor:"2,keyasint,omitempty"`
	PID   int    `json:"pid" cbor:"3,keyasint"`
	Start uint64 `json:"start" cbor:"4,keyasint"`                     // clock ticks since boot
	Inner string `json:"inner,omitempty" cbor:"5,keyasint,omitempty"` // inode of its own pid namespace
}

// Snapshot is a commit of a workspace's files and git state.
type Snapshot struct {
	Commit string `json:"commit" cbor:"1,keyasint"`
	Tree   string `json:"tree" cbor:"2,keyasint"`
	// Data is the workspace package's own record of it, opaque here.
	Data []byte `json:"data,omitempty" cbor:"3,keyasint,omitempty"`
}

// IsZero reports whether there is no snapshot.
func (s Snapshot) IsZero() bool { return s.Tree == "" }

func nameOf(names []string, i int) string {
	if i < 0 || i >= len(names) {
		return fmt.Sprintf("invalid(%d)", i)
	}
	return names[i]
}

func parseName[T ~uint8](names []string, s string, v *T) error {
	for i, n := range names {
		if n == s {
			*v = T(i)
			return nil
		}
	}
	return fmt.Errorf("machine: unknown name %q", s)
}
