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
	ID         RunID             `json:"id"`
	Parent     RunID             `json:"parent,omitempty"`
	Root       RunID             `json:"root,omitempty"`
	Spawn      EffectID          `json:"spawn,omitempty"`
	Goal       string            `json:"goal"`
	Check      string            `json:"check,omitempty"` // acceptance command line
	Repo       string            `json:"repo,omitempty"`
	InPlace    bool              `json:"in_place,omitempty"`
	Changes    bool              `json:"changes,omitempty"` // bring the dirty files along
	Model      string            `json:"model"`             // provider/name
	Script     Digest            `json:"script,omitzero"`   // blob of the scripted model's script
	Vars       map[string]string `json:"vars,omitempty"`    // {{env.X}} of the script
	Allow      []string          `json:"allow,omitempty"`   // rules of this run
	Budget     int64             `json:"budget,omitempty"`  // micro-USD; 0: none
	MaxTurns   int               `json:"max_turns,omitempty"`
	Prompt     int               `json:"prompt"` // version of the standing instructions
	Depth      int               `json:"depth,omitempty"`
	ToolNames  []string          `json:"tools,omitempty"`
	Constraint []string          `json:"constraints,omitempty"`
}

// Usage is what one model call consumed, as the provider said.
type Usage struct {
	Input     int64 `json:"input,omitempty"` // tokens, cached ones included
	Output    int64 `json:"output,omitempty"`
	Cached    int64 `json:"cached,omitempty"`
	Cost      int64 `json:"cost,omitempty"` // micro-USD, 0 if the price is unknown
	Estimated bool  `json:"estimated,omitempty"`
}

// Call is one tool call of a response. Provider is the provider's id: a label,
// never used as an identity.
type Call struct {
	Provider string   `json:"provider,omitempty"`
	Tool     string   `json:"tool"`
	Args     Text     `json:"args"`
	Effect   EffectID `json:"effect,omitempty"` // several calls share one effect if they are true repeats
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
	OK      bool   `json:"ok"`             // the tool's own success, for summaries; the code is the result
	Code    string `json:"code,omitempty"` // exit code, HTTP status, or a tool's own word
	Output  Text   `json:"output,omitzero"`
	Note    string `json:"note,omitempty"` // one line from the tool, e.g. "timed out after 60 s"
	Changed bool   `json:"changed,omitempty"`
}

// The event bodies.
type (
	// RunCreated opens a run's chain.
	RunCreated struct {
		Charter Charter `json:"charter"`
	}
	// RunClaimed says who drives the run from now on. Body epoch equals the event's.
	RunClaimed struct {
		Owner string `json:"owner"`
		Boot  string `json:"boot"`
	}
	// WorkspaceReady says where the run works.
	WorkspaceReady struct {
		Path   string `json:"path"`
		Branch string `json:"branch,omitempty"`
		Base   string `json:"base,omitempty"`
		Mode   string `json:"mode"` // worktree, in-place, folder
		Level  string `json:"level"`
		Data   []byte `json:"data,omitempty"` // the workspace package's own record
		Note   string `json:"note,omitempty"`
	}
	// WorkspaceChanged records a change between effects: the operator's, kept.
	WorkspaceChanged struct {
		From  Snapshot `json:"from"`
		To    Snapshot `json:"to"`
		Files []string `json:"files,omitempty"`
	}
	// WorkspaceRestored records a restore before a replay.
	WorkspaceRestored struct {
		Effect EffectID `json:"effect"`
		Rescue Snapshot `json:"rescue"`
		To     Snapshot `json:"to"`
		Files  []string `json:"files,omitempty"`
	}
	// TurnRequested is the dispatch of a model request.
	TurnRequested struct {
		Turn    int   `json:"turn"`
		Attempt int   `json:"attempt"`
		Window  int   `json:"window"`
		Reserve int64 `json:"reserve,omitempty"`
	}
	// TurnResponded is a whole response: it has its stop reason.
	TurnResponded struct {
		Turn      int        `json:"turn"`
		Stop      StopReason `json:"stop"`
		Text      Text       `json:"text,omitzero"`
		Calls     []Call     `json:"calls,omitempty"`
		Usage     Usage      `json:"usage,omitzero"`
		RequestID string     `json:"request_id,omitempty"`
		Pack      Digest     `json:"pack,omitzero"` // digest of what the model was shown
	}
	// TurnFailed ends a request without a response.
	TurnFailed struct {
		Turn    int       `json:"turn"`
		Class   FailClass `json:"class"`
		Message string    `json:"message"`
		RetryAt int64     `json:"retry_at,omitempty"` // Unix µs
		AtMost  int64     `json:"at_most,omitempty"`  // micro-USD that it may have cost
		Partial Text      `json:"partial,omitzero"`
	}
	// EffectRefused is a call that never became an intent, or a denied one.
	EffectRefused struct {
		Effect EffectID `json:"effect"`
		Turn   int      `json:"turn"`
		Call   int      `json:"call"`
		Tool   string   `json:"tool"`
		Reason string   `json:"reason"` // for the model and for people
	}
	// EffectIntended freezes what will be done.
	EffectIntended struct {
		Effect      EffectID `json:"effect"`
		Turn        int      `json:"turn"`
		Call        int      `json:"call"` // -1: not proposed by the model
		Tool        string   `json:"tool"`
		ToolVersion int      `json:"tool_version"`
		Args        Text     `json:"args"`
		Summary     string   `json:"summary"`
		Target      string   `json:"target,omitempty"`
		Contract    Contract `json:"contract"`
		Digest      Digest   `json:"digest"`
		Level       string   `json:"level,omitempty"` // confinement measured
		Rule        string   `json:"rule,omitempty"`  // which rule let it go or asked
		Asks        bool     `json:"asks,omitempty"`
		Files       []File   `json:"files,omitempty"` // that the digest covers
		Compensates EffectID `json:"compensates,omitempty"`
		Replaces    EffectID `json:"replaces,omitempty"`
	}
	// EffectCancelled ends an effect that was never dispatched.
	EffectCancelled struct {
		Effect EffectID `json:"effect"`
		Reason string   `json:"reason"`
	}
	// ApprovalRequested asks whether exactly this effect may run.
	ApprovalRequested struct {
		Approval ApprovalID `json:"approval"`
		Effect   EffectID   `json:"effect"`
		Digest   Digest     `json:"digest"`
		Why      string     `json:"why"`             // which rule asked
		Drift    string     `json:"drift,omitempty"` // what differs from the one before
		Like     []EffectID `json:"like,omitempty"`  // unresolved effects that it resembles
		Files    []File     `json:"files,omitempty"` // new contents, after a drift
	}
	// ApprovalGranted is the operator's yes to a digest.
	ApprovalGranted struct {
		Approval ApprovalID `json:"approval"`
		Digest   Digest     `json:"digest"`
	}
	// ApprovalDenied is the operator's no, with feedback for the model.
	ApprovalDenied struct {
		Approval ApprovalID `json:"approval"`
		Feedback string     `json:"feedback,omitempty"`
	}
	// ApprovalClosed ends an approval without an answer: expired, superseded, revoked.
	ApprovalClosed struct {
		Approval ApprovalID    `json:"approval"`
		State    ApprovalState `json:"state"`
		Reason   string        `json:"reason,omitempty"`
	}
	// EffectDispatched is durable before the first byte.
	EffectDispatched struct {
		Effect   EffectID          `json:"effect"`
		Attempt  int               `json:"attempt"`
		Digest   Digest            `json:"digest"`
		Approval ApprovalID        `json:"approval,omitempty"` // consumed by this
		Pre      Snapshot          `json:"pre,omitzero"`
		Ignored  Digest            `json:"ignored,omitzero"` // manifest of ignored files
		Level    string            `json:"level,omitempty"`
		Old      Digest            `json:"old,omitzero"` // own edits: content before and after
		New      Digest            `json:"new,omitzero"`
		Params   map[string]string `json:"params,omitempty"` // measured for the probe just before
		Sender   Identity          `json:"sender,omitzero"`  // the Pawl process, for its own requests
	}
	// AttemptStarted holds the identity of a command's process, before its gate opens.
	AttemptStarted struct {
		Effect   EffectID `json:"effect"`
		Attempt  int      `json:"attempt"`
		Identity Identity `json:"identity"`
	}
	// EffectCompleted is an observed end: the code is the result, good or bad.
	EffectCompleted struct {
		Effect  EffectID `json:"effect"`
		Attempt int      `json:"attempt"`
		Result  Result   `json:"result"`
	}
	// SnapshotTaken records the workspace as an effect left it.
	SnapshotTaken struct {
		Effect   EffectID `json:"effect"`
		Attempt  int      `json:"attempt"`
		Snapshot Snapshot `json:"snapshot"`
	}
	// EffectRejected is an error that the contract lists as before-effect.
	EffectRejected struct {
		Effect  EffectID `json:"effect"`
		Attempt int      `json:"attempt"`
		Code    string   `json:"code"`
		Result  Result   `json:"result"`
	}
	// EffectAmbiguous says that there was no observed end. It says nothing about the world.
	EffectAmbiguous struct {
		Effect  EffectID `json:"effect"`
		Attempt int      `json:"attempt"`
		Cause   string   `json:"cause"`
		Output  Text     `json:"output,omitzero"`  // what was seen before
		Closed  *Instant `json:"closed,omitempty"` // own requests: when the connection was closed
	}
	// QuiescenceProven stores the proof that nothing can still land.
	QuiescenceProven struct {
		Effect     EffectID   `json:"effect"`
		Quiescence Quiescence `json:"quiescence"`
	}
	// EvidenceAdded appends a fact. It moves no state by itself.
	EvidenceAdded struct {
		Effect   EffectID `json:"effect"`
		Evidence Evidence `json:"evidence"`
		Result   *Result  `json:"result,omitempty"` // of a late ack or a keyed replay
	}
	// EffectSettled moves an effect on the strength of its evidence.
	EffectSettled struct {
		Effect EffectID    `json:"effect"`
		State  EffectState `json:"state"`
		Text   string      `json:"text"` // why, in one sentence
	}
	// EffectForced is an operator's verdict.
	EffectForced struct {
		Effect EffectID `json:"effect"`
		Choice Choice   `json:"choice"` // happened or retry
		Reason string   `json:"reason"`
		Typed  string   `json:"typed"` // the short id as typed
	}
	// EffectAbandoned leaves it unknown; the task may go on.
	EffectAbandoned struct {
		Effect EffectID `json:"effect"`
		Reason string   `json:"reason,omitempty"`
	}
	// ProbeAsked is the operator's wish to look now; Wait the wish to leave it.
	ProbeAsked struct {
		Effect EffectID `json:"effect"`
		Choice Choice   `json:"choice"` // probe or wait
	}
	// CompensationAsked starts the undoing of an effect by another one.
	CompensationAsked struct {
		Effect EffectID `json:"effect"`
		Reason string   `json:"reason,omitempty"`
	}
	// CompensationEnded returns an effect to its state before, or to COMPENSATED.
	CompensationEnded struct {
		Effect EffectID `json:"effect"`
		By     EffectID `json:"by"`
		OK     bool     `json:"ok"`
		Text   string   `json:"text,omitempty"`
	}
	// QuestionAsked waits for the operator's answer.
	QuestionAsked struct {
		Question QuestionID `json:"question"`
		Sort     Sort       `json:"sort"`
		Effect   EffectID   `json:"effect,omitempty"` // whose result the answer is, or which it is about
		Text     string     `json:"text"`
		Choices  []string   `json:"choices,omitempty"`
		Data     []byte     `json:"data,omitempty"`
	}
	// QuestionAnswered settles a question, once.
	QuestionAnswered struct {
		Question QuestionID `json:"question"`
		Answer   string     `json:"answer"`
		Number   int64      `json:"number,omitempty"` // of "extend N"
	}
	// PlanUpdated replaces the plan.
	PlanUpdated struct {
		Items []PlanItem `json:"items"`
	}
	// DecisionRecorded keeps one decision, verbatim.
	DecisionRecorded struct {
		Text string `json:"text"`
	}
	// Told is the operator's binding instruction, verbatim in every later pack.
	Told struct {
		Text string `json:"text"`
	}
	// RunPaused, RunUnpaused and RunCancelled are the operator's barriers.
	RunPaused struct {
		Reason string `json:"reason,omitempty"`
	}
	// RunUnpaused lets a paused run go on.
	RunUnpaused struct{}
	// RunCancelled stops a run for good.
	RunCancelled struct {
		Reason string `json:"reason,omitempty"`
	}
	// RunFinished ends a run as done.
	RunFinished struct {
		Summary Text `json:"summary"`
		Checked bool `json:"checked"`
	}
	// RunFailed ends a run that cannot go on.
	RunFailed struct {
		Reason string `json:"reason"`
	}
	// LandAsked is the operator's wish to have the work on his branch. Landing
	// itself is an effect like any other.
	LandAsked struct {
		Onto string `json:"onto"`
		Base string `json:"base"` // what the branch pointed at when it was previewed
		Tip  string `json:"tip"`  // what is to land
	}
)

// File is a file whose content a digest covers.
type File struct {
	Path   string `json:"path"`
	Digest Digest `json:"digest"`
}

// PlanItem is one line of the plan.
type PlanItem struct {
	Text  string `json:"text"`
	State string `json:"state"` // todo, doing, done
}
