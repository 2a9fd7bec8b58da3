package machine

// Event is one fact of a run, decoded.
type Event struct {
	N     int64
	At    int64 // Unix µs by the wall clock; for people only
	Actor string
	Epoch int64
	Body  Body
}

// Body is the payload of an event. Kinds are past participles.
type Body interface{ Kind() string }

// Actors.
const (
	ActorEngine = "engine"
	ActorModel  = "model"
	// ActorOperator prefixes a person: "operator:alice".
	ActorOperator = "operator:"
)

// Choice is an operator's way out of an ambiguous effect.
type Choice string

// The choices; none is a default.
const (
	ChooseWait       Choice = "wait"
	ChooseProbe      Choice = "probe"
	ChooseHappened   Choice = "happened"
	ChooseRetry      Choice = "retry"
	ChooseCompensate Choice = "compensate"
	ChooseAbandon    Choice = "abandon"
)

// Charter is what a run was given, once.
type Charter struct {
	ID         RunID             `json:"id" cbor:"1,keyasint"`
	Parent     RunID             `json:"parent,omitempty" cbor:"2,keyasint,omitempty"`
	Root       RunID             `json:"root,omitempty" cbor:"3,keyasint,omitempty"`
	Spawn      EffectID          `json:"spawn,omitempty" cbor:"4,keyasint,omitempty"`
	Goal       string            `json:"goal" cbor:"5,keyasint"`
	Check      string            `json:"check,omitempty" cbor:"6,keyasint,omitempty"` // acceptance command line
	Repo       string            `json:"repo,omitempty" cbor:"7,keyasint,omitempty"`
	InPlace    bool              `json:"in_place,omitempty" cbor:"8,keyasint,omitempty"`
	Changes    bool              `json:"changes,omitempty" cbor:"9,keyasint,omitempty"` // bring the dirty files along
	Model      string            `json:"model" cbor:"10,keyasint"`                      // provider/name
	Script     Digest            `json:"script,omitzero" cbor:"11,keyasint,omitzero"`   // blob of the scripted model's script
	Vars       map[string]string `json:"vars,omitempty" cbor:"12,keyasint,omitempty"`   // {{env.X}} of the script
	Allow      []string          `json:"allow,omitempty" cbor:"13,keyasint,omitempty"`  // rules of this run
	Budget     int64             `json:"budget,omitempty" cbor:"14,keyasint,omitempty"` // micro-USD; 0: none
	MaxTurns   int               `json:"max_turns,omitempty" cbor:"15,keyasint,omitempty"`
	Prompt     int               `json:"prompt" cbor:"16,keyasint"` // version of the standing instructions
	Depth      int               `json:"depth,omitempty" cbor:"17,keyasint,omitempty"`
	ToolNames  []string          `json:"tools,omitempty" cbor:"18,keyasint,omitempty"`
	Constraint []string          `json:"constraints,omitempty" cbor:"19,keyasint,omitempty"`
	// Policy is the project's policy file as it was when the run was made: what
	// it forbids or asks about holds for the whole run, whatever becomes of the file.
	Policy Digest `json:"policy,omitzero" cbor:"30,keyasint,omitzero"`
	// Paths bound what a delegated run may change; none: all of its work tree.
	Paths []string `json:"paths,omitempty" cbor:"21,keyasint,omitempty"`
	// CheckProposed: Check is the word of the model that delegated, not the operator's.
	CheckProposed bool `json:"check_proposed,omitempty" cbor:"23,keyasint,omitempty"`
	// Start is the commit, in the private clone, that a delegated run starts from.
	Start     string `json:"start,omitempty" cbor:"22,keyasint,omitempty"`
	MaxTokens int64  `json:"max_tokens,omitempty" cbor:"31,keyasint,omitempty"` // in and out together; 0: none
	MaxWall   int64  `json:"max_wall,omitempty" cbor:"32,keyasint,omitempty"`   // µs since the run was made; 0: none
	Context   int    `json:"context,omitempty" cbor:"20,keyasint,omitempty"`    // tokens of one request; 0: what the model takes
}

// Usage is what one model call consumed, as the provider said.
type Usage struct {
	Input     int64 `json:"input,omitempty" cbor:"1,keyasint,omitempty"` // tokens, cached ones included
	Output    int64 `json:"output,omitempty" cbor:"2,keyasint,omitempty"`
	Cached    int64 `json:"cached,omitempty" cbor:"3,keyasint,omitempty"`
	Cost      int64 `json:"cost,omitempty" cbor:"4,keyasint,omitempty"` // micro-USD, 0 if the price is unknown
	Estimated bool  `json:"estimated,omitempty" cbor:"5,keyasint,omitempty"`
	Guessed   bool  `json:"guessed,omitempty" cbor:"6,keyasint,omitempty"` // the tokens are our guess, not the provider's count
	Written   int64 `json:"written,omitempty" cbor:"7,keyasint,omitempty"` // tokens written to the provider's cache, within Input
}

// Call is one tool call of a response. Provider is the provider's id: a label,
// never used as an identity.
type Call struct {
	Provider string   `json:"provider,omitempty" cbor:"1,keyasint,omitempty"`
	Tool     string   `json:"tool" cbor:"2,keyasint"`
	Args     Text     `json:"args" cbor:"3,keyasint"`
	Effect   EffectID `json:"effect,omitempty" cbor:"4,keyasint,omitempty"` // several calls share one effect if they are true repeats
}

// StopReason is why a response ended, in our words.
type StopReason string

// The stop reasons.
const (
	StopEnd     StopReason = "end"
	StopTools   StopReason = "tools"
	StopLength  StopReason = "length"
	StopRefusal StopReason = "refusal"
)

// FailClass tells the ways a model call can end without a response.
type FailClass string

// The failure classes; Retryable says which are tried again.
const (
	FailLost       FailClass = "lost" // no answer recorded: the process died
	FailCut        FailClass = "cut"  // the stream ended without a stop reason
	FailRate       FailClass = "rate_limit"
	FailOverload   FailClass = "overload"
	FailServer     FailClass = "server"
	FailNetwork    FailClass = "network"
	FailQuota      FailClass = "quota"
	FailAuth       FailClass = "auth"
	FailNotFound   FailClass = "not_found"
	FailBadRequest FailClass = "bad_request"
	FailContext    FailClass = "context_length"
	FailScript     FailClass = "script" // the scripted model's script does not fit
	FailEmpty      FailClass = "empty"  // an answer without text or calls
)

// Retryable reports whether the engine asks again by itself.
func (f FailClass) Retryable() bool {
	switch f {
	case FailLost, FailCut, FailRate, FailOverload, FailServer, FailNetwork, FailEmpty:
		return true
	case FailQuota, FailAuth, FailNotFound, FailBadRequest, FailContext, FailScript:
		return false
	}
	return false
}

// Result is what an effect's end told us.
type Result struct {
	OK      bool   `json:"ok" cbor:"1,keyasint"`                       // the tool's own success, for summaries; the code is the result
	Code    string `json:"code,omitempty" cbor:"2,keyasint,omitempty"` // exit code, HTTP status, or a tool's own word
	Output  Text   `json:"output,omitzero" cbor:"3,keyasint,omitzero"`
	Note    string `json:"note,omitempty" cbor:"4,keyasint,omitempty"` // one line from the tool, e.g. "timed out after 60 s"
	Changed bool   `json:"changed,omitempty" cbor:"5,keyasint,omitempty"`
}

// The event bodies.
type (
	// RunCreated opens a run's chain.
	RunCreated struct {
		Charter Charter `json:"charter" cbor:"1,keyasint"`
	}
	// RunClaimed says who drives the run from now on. Body epoch equals the event's.
	RunClaimed struct {
		Owner string `json:"owner" cbor:"1,keyasint"`
		Boot  string `json:"boot" cbor:"2,keyasint"`
		// Self is the process that sends what Pawl sends itself under this claim.
		Self Identity `json:"self,omitzero" cbor:"3,keyasint,omitzero"`
	}
	// WorkspaceReady says where the run works.
	WorkspaceReady struct {
		Path   string `json:"path" cbor:"1,keyasint"`
		Branch string `json:"branch,omitempty" cbor:"2,keyasint,omitempty"`
		Base   string `json:"base,omitempty" cbor:"3,keyasint,omitempty"`
		Mode   string `json:"mode" cbor:"4,keyasint"` // worktree, in-place, folder
		Level  string `json:"level" cbor:"5,keyasint"`
		Data   []byte `json:"data,omitempty" cbor:"6,keyasint,omitempty"` // the workspace package's own record
		Note   string `json:"note,omitempty" cbor:"7,keyasint,omitempty"`
	}
	// WorkspaceChanged records a change between effects: the operator's, kept.
	WorkspaceChanged struct {
		From  Snapshot `json:"from" cbor:"1,keyasint"`
		To    Snapshot `json:"to" cbor:"2,keyasint"`
		Files []string `json:"files,omitempty" cbor:"3,keyasint,omitempty"`
	}
	// WorkspaceRestored records a restore before a replay.
	WorkspaceRestored struct {
		Effect EffectID `json:"effect" cbor:"1,keyasint"`
		Rescue Snapshot `json:"rescue" cbor:"2,keyasint"`
		To     Snapshot `json:"to" cbor:"3,keyasint"`
		Files  []string `json:"files,omitempty" cbor:"4,keyasint,omitempty"`
	}
	// WorkspaceRebuilt records that a workspace which was gone was made again.
	WorkspaceRebuilt struct {
		Why    string   `json:"why" cbor:"1,keyasint"`
		From   Snapshot `json:"from,omitzero" cbor:"2,keyasint,omitzero"`     // zero: as the run started
		Rescue Snapshot `json:"rescue,omitzero" cbor:"3,keyasint,omitzero"`   // what was still there
		After  EffectID `json:"after,omitempty" cbor:"4,keyasint,omitempty"`  // whose traces may be missing: the snapshot is from before it
		Path   string   `json:"path,omitempty" cbor:"5,keyasint,omitempty"`   // where it is now, if elsewhere
		Branch string   `json:"branch,omitempty" cbor:"6,keyasint,omitempty"` // with Path
		Level  string   `json:"level,omitempty" cbor:"7,keyasint,omitempty"`  // of confinement here, with Path
		Data   []byte   `json:"data,omitempty" cbor:"8,keyasint,omitempty"`   // the workspace package's record, with Path
	}
	// TurnRequested is the dispatch of a model request.
	TurnRequested struct {
		Turn    int   `json:"turn" cbor:"1,keyasint"`
		Attempt int   `json:"attempt" cbor:"2,keyasint"`
		Window  int   `json:"window" cbor:"3,keyasint"`
		Reserve int64 `json:"reserve,omitempty" cbor:"4,keyasint,omitempty"`
		// Tokens is what it may take at most, in and out together.
		Tokens int64 `json:"tokens,omitempty" cbor:"10,keyasint,omitempty"`
	}
	// TurnHeld says that the next request waits because the provider, asked by
	// this run or another, is over its limit. It holds until then, in any process.
	TurnHeld struct {
		Turn  int    `json:"turn" cbor:"1,keyasint"`
		Until int64  `json:"until" cbor:"2,keyasint"` // Unix µs
		Why   string `json:"why" cbor:"3,keyasint"`
	}
	// WindowOpened turns the page: from here on, what the model is shown begins
	// with a new opening, and older turns stand in it as a list.
	WindowOpened struct {
		Window int    `json:"window" cbor:"1,keyasint"`
		Turn   int    `json:"turn" cbor:"2,keyasint"`                       // the turn that is asked for next
		Keep   int    `json:"keep" cbor:"3,keyasint"`                       // the first turn that stays word for word; Turn: none does
		Output int    `json:"output,omitempty" cbor:"4,keyasint,omitempty"` // bytes up to which an output is shown whole; 0: as usual
		Budget int    `json:"budget" cbor:"5,keyasint"`                     // tokens of a request for which it was made
		Before int    `json:"before" cbor:"6,keyasint"`                     // tokens of the pack that is replaced
		After  int    `json:"after" cbor:"7,keyasint"`                      // tokens of the new pack
		Why    string `json:"why" cbor:"8,keyasint"`
		// Learned: the budget comes from a refusal of the provider, and holds from now on.
		Learned bool `json:"learned,omitempty" cbor:"9,keyasint,omitempty"`
	}
	// MemoryKept keeps a lasting preference of the operator, in the memory's own chain.
	MemoryKept struct {
		Entry MemoryEntry `json:"entry" cbor:"1,keyasint"`
	}
	// MemoryForgotten takes one back.
	MemoryForgotten struct {
		ID string `json:"id" cbor:"1,keyasint"`
	}
	// MemoryRead is what a run was told at its start: the operator's lasting
	// preferences, and the project's own notes as they were in its workspace.
	MemoryRead struct {
		Entries []MemoryEntry `json:"entries,omitempty" cbor:"1,keyasint,omitempty"`
		Path    string        `json:"path,omitempty" cbor:"2,keyasint,omitempty"` // of the notes
		Notes   Text          `json:"notes,omitzero" cbor:"3,keyasint,omitzero"`
	}
	// NoteWritten is the model's note to whoever goes on in the next window. It
	// is a claim: no fact, and no authority.
	NoteWritten struct {
		Text string `json:"text" cbor:"1,keyasint"`
	}
	// TurnResponded is a whole response: it has its stop reason.
	TurnResponded struct {
		Turn      int        `json:"turn" cbor:"1,keyasint"`
		Stop      StopReason `json:"stop" cbor:"2,keyasint"`
		Text      Text       `json:"text,omitzero" cbor:"3,keyasint,omitzero"`
		Calls     []Call     `json:"calls,omitempty" cbor:"4,keyasint,omitempty"`
		Usage     Usage      `json:"usage,omitzero" cbor:"5,keyasint,omitzero"`
		RequestID string     `json:"request_id,omitempty" cbor:"6,keyasint,omitempty"`
		Pack      Digest     `json:"pack,omitzero" cbor:"7,keyasint,omitzero"`    // digest of what the model was shown
		Guess     int        `json:"guess,omitempty" cbor:"8,keyasint,omitempty"` // tokens of that by our count, before calibration
	}
	// TurnFailed ends a request without a response.
	TurnFailed struct {
		Turn    int       `json:"turn" cbor:"1,keyasint"`
		Class   FailClass `json:"class" cbor:"2,keyasint"`
		Message string    `json:"message" cbor:"3,keyasint"`
		RetryAt int64     `json:"retry_at,omitempty" cbor:"4,keyasint,omitempty"` // Unix µs
		AtMost  int64     `json:"at_most,omitempty" cbor:"5,keyasint,omitempty"`  // micro-USD that it may have cost
		Partial Text      `json:"partial,omitzero" cbor:"6,keyasint,omitzero"`
		Cost    int64     `json:"cost,omitempty" cbor:"7,keyasint,omitempty"` // micro-USD that it is known to have cost
		// Spent: the retries that all runs of the provider share are used up.
		Spent bool `json:"spent,omitempty" cbor:"8,keyasint,omitempty"`
	}
	// EffectRefused is a call that never became an intent, or a denied one.
	EffectRefused struct {
		Effect EffectID `json:"effect" cbor:"1,keyasint"`
		Turn   int      `json:"turn" cbor:"2,keyasint"`
		Call   int      `json:"call" cbor:"3,keyasint"`
		Tool   string   `json:"tool" cbor:"4,keyasint"`
		Reason string   `json:"reason" cbor:"5,keyasint"` // for the model and for people
	}
	// EffectIntended freezes what will be done.
	EffectIntended struct {
		Effect      EffectID `json:"effect" cbor:"1,keyasint"`
		Turn        int      `json:"turn" cbor:"2,keyasint"`
		Call        int      `json:"call" cbor:"3,keyasint"` // -1: not proposed by the model
		Tool        string   `json:"tool" cbor:"4,keyasint"`
		ToolVersion int      `json:"tool_version" cbor:"5,keyasint"`
		Args        Text     `json:"args" cbor:"6,keyasint"`
		Summary     string   `json:"summary" cbor:"7,keyasint"`
		Target      string   `json:"target,omitempty" cbor:"8,keyasint,omitempty"`
		Contract    Contract `json:"contract" cbor:"9,keyasint"`
		Digest      Digest   `json:"digest" cbor:"10,keyasint"`
		Level       string   `json:"level,omitempty" cbor:"11,keyasint,omitempty"` // confinement measured
		Rule        string   `json:"rule,omitempty" cbor:"12,keyasint,omitempty"`  // which rule let it go or asked
		Asks        bool     `json:"asks,omitempty" cbor:"13,keyasint,omitempty"`
		Files       []File   `json:"files,omitempty" cbor:"14,keyasint,omitempty"` // that the digest covers
		Compensates EffectID `json:"compensates,omitempty" cbor:"15,keyasint,omitempty"`
		Replaces    EffectID `json:"replaces,omitempty" cbor:"16,keyasint,omitempty"`
	}
	// EffectCancelled ends an effect that was never dispatched.
	EffectCancelled struct {
		Effect EffectID `json:"effect" cbor:"1,keyasint"`
		Reason string   `json:"reason" cbor:"2,keyasint"`
	}
	// ApprovalRequested asks whether exactly this effect may run.
	ApprovalRequested struct {
		Approval ApprovalID `json:"approval" cbor:"1,keyasint"`
		Effect   EffectID   `json:"effect" cbor:"2,keyasint"`
		Digest   Digest     `json:"digest" cbor:"3,keyasint"`
		Why      string     `json:"why" cbor:"4,keyasint"`                       // which rule asked
		Drift    string     `json:"drift,omitempty" cbor:"5,keyasint,omitempty"` // what differs from the one before
		Like     []EffectID `json:"like,omitempty" cbor:"6,keyasint,omitempty"`  // unresolved effects that it resembles
		Files    []File     `json:"files,omitempty" cbor:"7,keyasint,omitempty"` // new contents, after a drift
		// Expires: without an answer, or without a dispatch after it, it lapses then. Unix µs; 0: never.
		Expires int64 `json:"expires,omitempty" cbor:"8,keyasint,omitempty"`
	}
	// ApprovalGranted is the operator's yes to a digest.
	ApprovalGranted struct {
		Approval ApprovalID `json:"approval" cbor:"1,keyasint"`
		Digest   Digest     `json:"digest" cbor:"2,keyasint"`
		// Grant is the standing grant that was given with it.
		Grant string `json:"grant,omitempty" cbor:"3,keyasint,omitempty"`
	}
	// ApprovalDenied is the operator's no, with feedback for the model.
	ApprovalDenied struct {
		Approval ApprovalID `json:"approval" cbor:"1,keyasint"`
		Feedback string     `json:"feedback,omitempty" cbor:"2,keyasint,omitempty"`
	}
	// ApprovalClosed ends an approval without an answer: expired, superseded, revoked.
	ApprovalClosed struct {
		Approval ApprovalID    `json:"approval" cbor:"1,keyasint"`
		State    ApprovalState `json:"state" cbor:"2,keyasint"`
		Reason   string        `json:"reason,omitempty" cbor:"3,keyasint,omitempty"`
	}
	// EffectDispatched is durable before the first byte.
	EffectDispatched struct {
		Effect   EffectID          `json:"effect" cbor:"1,keyasint"`
		Attempt  int               `json:"attempt" cbor:"2,keyasint"`
		Digest   Digest            `json:"digest,omitzero" cbor:"3,keyasint,omitzero"`     // omitted: as intended
		Approval ApprovalID        `json:"approval,omitempty" cbor:"4,keyasint,omitempty"` // consumed by this
		Pre      Snapshot          `json:"pre,omitzero" cbor:"5,keyasint,omitzero"`
		Ignored  Digest            `json:"ignored,omitzero" cbor:"6,keyasint,omitzero"` // manifest of ignored files
		Level    string            `json:"level,omitempty" cbor:"7,keyasint,omitempty"`
		Old      Digest            `json:"old,omitzero" cbor:"8,keyasint,omitzero"` // own edits: content before and after
		New      Digest            `json:"new,omitzero" cbor:"9,keyasint,omitzero"`
		Params   map[string]string `json:"params,omitempty" cbor:"10,keyasint,omitempty"` // measured for the probe just before
	}
	// AttemptStarted holds the identity of a command's process, before its gate opens.
	AttemptStarted struct {
		Effect   EffectID `json:"effect" cbor:"1,keyasint"`
		Attempt  int      `json:"attempt" cbor:"2,keyasint"`
		Identity Identity `json:"identity" cbor:"3,keyasint"`
	}
	// EffectCompleted is an observed end: the code is the result, good or bad.
	EffectCompleted struct {
		Effect  EffectID `json:"effect" cbor:"1,keyasint"`
		Attempt int      `json:"attempt" cbor:"2,keyasint"`
		Result  Result   `json:"result" cbor:"3,keyasint"`
	}
	// SnapshotTaken records the workspace as an effect left it.
	SnapshotTaken struct {
		Effect   EffectID `json:"effect" cbor:"1,keyasint"`
		Attempt  int      `json:"attempt" cbor:"2,keyasint"`
		Snapshot Snapshot `json:"snapshot" cbor:"3,keyasint"`
	}
	// EffectRejected is an error that the contract lists as before-effect.
	EffectRejected struct {
		Effect  EffectID `json:"effect" cbor:"1,keyasint"`
		Attempt int      `json:"attempt" cbor:"2,keyasint"`
		Code    string   `json:"code" cbor:"3,keyasint"`
		Result  Result   `json:"result" cbor:"4,keyasint"`
	}
	// EffectAmbiguous says that there was no observed end. It says nothing about the world.
	EffectAmbiguous struct {
		Effect  EffectID `json:"effect" cbor:"1,keyasint"`
		Attempt int      `json:"attempt" cbor:"2,keyasint"`
		Cause   string   `json:"cause" cbor:"3,keyasint"`
		Output  Text     `json:"output,omitzero" cbor:"4,keyasint,omitzero"`   // what was seen before
		Closed  *Instant `json:"closed,omitempty" cbor:"5,keyasint,omitempty"` // own requests: when the connection was closed
	}
	// QuiescenceProven stores the proof that nothing can still land.
	QuiescenceProven struct {
		Effect     EffectID   `json:"effect" cbor:"1,keyasint"`
		Quiescence Quiescence `json:"quiescence" cbor:"2,keyasint"`
	}
	// EvidenceAdded appends a fact. It moves no state by itself.
	EvidenceAdded struct {
		Effect   EffectID `json:"effect" cbor:"1,keyasint"`
		Evidence Evidence `json:"evidence" cbor:"2,keyasint"`
		Result   *Result  `json:"result,omitempty" cbor:"3,keyasint,omitempty"` // of a late ack or a keyed replay
	}
	// EffectSettled moves an effect on the strength of its evidence.
	EffectSettled struct {
		Effect EffectID    `json:"effect" cbor:"1,keyasint"`
		State  EffectState `json:"state" cbor:"2,keyasint"`
		Text   string      `json:"text" cbor:"3,keyasint"` // why, in one sentence
	}
	// EffectForced is an operator's verdict.
	EffectForced struct {
		Effect EffectID `json:"effect" cbor:"1,keyasint"`
		Choice Choice   `json:"choice" cbor:"2,keyasint"` // happened or retry
		Reason string   `json:"reason" cbor:"3,keyasint"`
		Typed  string   `json:"typed" cbor:"4,keyasint"` // the short id as typed
	}
	// EffectAbandoned leaves it unknown; the task may go on.
	EffectAbandoned struct {
		Effect EffectID `json:"effect" cbor:"1,keyasint"`
		Reason string   `json:"reason,omitempty" cbor:"2,keyasint,omitempty"`
	}
	// ProbeAsked is the operator's wish to look now; Wait the wish to leave it.
	ProbeAsked struct {
		Effect EffectID `json:"effect" cbor:"1,keyasint"`
		Choice Choice   `json:"choice" cbor:"2,keyasint"` // probe or wait
	}
	// CompensationAsked starts the undoing of an effect by another one.
	CompensationAsked struct {
		Effect EffectID `json:"effect" cbor:"1,keyasint"`
		Reason string   `json:"reason,omitempty" cbor:"2,keyasint,omitempty"`
		// At: when it was asked, for the in-flight bound of an ambiguous effect.
		At Instant `json:"at,omitzero" cbor:"3,keyasint,omitzero"`
	}
	// RollbackAsked starts the undoing of a whole run, backwards.
	RollbackAsked struct {
		Reason string `json:"reason,omitempty" cbor:"1,keyasint,omitempty"`
	}
	// RollbackEnded says that nothing is left to undo, or that it was stopped.
	RollbackEnded struct {
		Undone int `json:"undone" cbor:"1,keyasint"`
		Left   int `json:"left" cbor:"2,keyasint"` // skipped, or not to be undone
	}
	// CompensationEnded returns an effect to its state before, or to COMPENSATED.
	CompensationEnded struct {
		Effect EffectID `json:"effect" cbor:"1,keyasint"`
		By     EffectID `json:"by" cbor:"2,keyasint"`
		OK     bool     `json:"ok" cbor:"3,keyasint"`
		Text   string   `json:"text,omitempty" cbor:"4,keyasint,omitempty"`
	}
	// QuestionAsked waits for the operator's answer.
	QuestionAsked struct {
		Question QuestionID `json:"question" cbor:"1,keyasint"`
		Sort     Sort       `json:"sort" cbor:"2,keyasint"`
		Effect   EffectID   `json:"effect,omitempty" cbor:"3,keyasint,omitempty"` // whose result the answer is, or which it is about
		Text     string     `json:"text" cbor:"4,keyasint"`
		Choices  []string   `json:"choices,omitempty" cbor:"5,keyasint,omitempty"`
		Data     []byte     `json:"data,omitempty" cbor:"6,keyasint,omitempty"`
	}
	// QuestionAnswered settles a question, once.
	QuestionAnswered struct {
		Question QuestionID `json:"question" cbor:"1,keyasint"`
		Answer   string     `json:"answer" cbor:"2,keyasint"`
		Number   int64      `json:"number,omitempty" cbor:"3,keyasint,omitempty"` // of "extend N"
	}
	// PlanUpdated replaces the plan.
	PlanUpdated struct {
		Items []PlanItem `json:"items" cbor:"1,keyasint"`
	}
	// DecisionRecorded keeps one decision, verbatim.
	DecisionRecorded struct {
		Text string `json:"text" cbor:"1,keyasint"`
	}
	// Told is the operator's binding instruction, verbatim in every later pack.
	Told struct {
		Text string `json:"text" cbor:"1,keyasint"`
	}
	// RunPaused, RunUnpaused and RunCancelled are the operator's barriers.
	RunPaused struct {
		Reason string `json:"reason,omitempty" cbor:"1,keyasint,omitempty"`
	}
	// RunUnpaused lets a paused run go on.
	RunUnpaused struct{}
	// RunCancelled stops a run for good.
	RunCancelled struct {
		Reason string `json:"reason,omitempty" cbor:"1,keyasint,omitempty"`
	}
	// RunFinished ends a run as done.
	RunFinished struct {
		Summary Text `json:"summary" cbor:"1,keyasint"`
		Checked bool `json:"checked" cbor:"2,keyasint"`
	}
	// RunFailed ends a run that cannot go on.
	RunFailed struct {
		Reason string `json:"reason" cbor:"1,keyasint"`
	}
	// LandAsked is the operator's wish to have the work on his branch. Landing
	// itself is an effect like any other.
	LandAsked struct {
		Onto string `json:"onto" cbor:"1,keyasint"`
		Base string `json:"base" cbor:"2,keyasint"` // what the branch pointed at when it was previewed
		Tip  string `json:"tip" cbor:"3,keyasint"`  // what is to land
	}
)

// File is a file whose content a digest covers.
type File struct {
	Path   string `json:"path" cbor:"1,keyasint"`
	Digest Digest `json:"digest" cbor:"2,keyasint"`
}

// PlanItem is one line of the plan.
type PlanItem struct {
	Text  string `json:"text" cbor:"1,keyasint"`
	State string `json:"state" cbor:"2,keyasint"` // todo, doing, done
}
