package machine

import "slices"

// Phase is where a run stands.
type Phase string

// The phases. "Interrupted" is none of them: it is a running run without a
// living owner, which only a reader who knows the lease can tell.
const (
	PhaseNone      Phase = ""
	PhaseRunning   Phase = "running"
	PhasePaused    Phase = "paused"
	PhaseDone      Phase = "done"
	PhaseFailed    Phase = "failed"
	PhaseCancelled Phase = "cancelled"
)

// Ended reports whether the run takes no more turns by itself.
func (p Phase) Ended() bool { return p == PhaseDone || p == PhaseFailed || p == PhaseCancelled }

// EffectState is where an effect stands in its life.
type EffectState uint8

// The states of an effect.
const (
	StateUnknown EffectState = iota
	StateProposed
	StateRefused
	StateIntended
	StateCancelled
	StateDispatched
	StateCompleted
	StateRejected
	StateAmbiguous
	StateHappened
	StateNotHappened
	StateForcedHappened
	StateForcedNot
	StateAbandoned
	StateCompensating
	StateCompensated
	StateContradicted
)

var stateNames = [...]string{
	"unknown", "proposed", "refused", "intended", "cancelled", "dispatched", "completed", "rejected",
	"ambiguous", "happened", "not_happened", "forced_happened", "forced_not", "abandoned", "compensating",
	"compensated", "contradicted",
}

func (s EffectState) String() string { return nameOf(stateNames[:], int(s)) }

// MarshalText writes the state's name.
func (s EffectState) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads a state's name.
func (s *EffectState) UnmarshalText(b []byte) error { return parseName(stateNames[:], string(b), s) }

// ParseEffectState reads a state's name.
func ParseEffectState(s string) (EffectState, error) {
	var v EffectState
	err := v.UnmarshalText([]byte(s))
	return v, err
}

// Settled reports whether the model may be told a result: the run need not wait for this effect.
func (s EffectState) Settled() bool {
	switch s {
	case StateRefused, StateCancelled, StateCompleted, StateRejected, StateHappened, StateForcedHappened,
		StateAbandoned, StateCompensated:
		return true
	case StateUnknown, StateProposed, StateIntended, StateDispatched, StateAmbiguous, StateNotHappened,
		StateForcedNot, StateCompensating, StateContradicted:
		return false
	}
	return false
}

// Sort is the sort of a question.
type Sort string

// The sorts of questions; all but SortQuestion are asked by the engine.
const (
	SortQuestion Sort = "question"
	SortDrift    Sort = "drift"
	SortConflict Sort = "conflict"
	SortOverflow Sort = "overflow"
	SortBudget   Sort = "budget"
	SortLimit    Sort = "limit"
)

// ApprovalState is where an approval stands.
type ApprovalState string

// The states of an approval.
const (
	ApprovalPending    ApprovalState = "pending"
	ApprovalGrantedS   ApprovalState = "granted"
	ApprovalDeniedS    ApprovalState = "denied"
	ApprovalConsumed   ApprovalState = "consumed"
	ApprovalExpired    ApprovalState = "expired"
	ApprovalRevoked    ApprovalState = "revoked"
	ApprovalSuperseded ApprovalState = "superseded"
)

// Approval is a durable question about exactly one action.
type Approval struct {
	ID        ApprovalID    `json:"id"`
	Effect    EffectID      `json:"effect"`
	Digest    Digest        `json:"digest"`
	State     ApprovalState `json:"state"`
	Why       string        `json:"why,omitempty"`
	Drift     string        `json:"drift,omitempty"`
	Like      []EffectID    `json:"like,omitempty"`
	Feedback  string        `json:"feedback,omitempty"`
	By        string        `json:"by,omitempty"`
	Asked     int64         `json:"asked"`
	Answered  int64         `json:"answered,omitempty"`
	DigestFor []File        `json:"files,omitempty"`
	Expires   int64         `json:"expires,omitempty"` // Unix µs; 0: never
	Grant     string        `json:"grant,omitempty"`   // standing grant that came with the answer
}

// Question waits for a word of the operator.
type Question struct {
	ID       QuestionID `json:"id"`
	Sort     Sort       `json:"sort"`
	Effect   EffectID   `json:"effect,omitempty"`
	Text     string     `json:"text"`
	Choices  []string   `json:"choices,omitempty"`
	Data     []byte     `json:"data,omitempty"`
	Asked    int64      `json:"asked"`
	Answer   string     `json:"answer,omitempty"`
	Answered bool       `json:"answered"`
	By       string     `json:"by,omitempty"`
	At       int64      `json:"at,omitempty"`
}

// AttemptEnd is how one dispatch ended, as far as we know.
type AttemptEnd string

// The ends of an attempt; none while it is in flight.
const (
	EndCompleted   AttemptEnd = "completed"
	EndRejected    AttemptEnd = "rejected"
	EndUnknown     AttemptEnd = "unknown"
	EndHappened    AttemptEnd = "happened"
	EndNotHappened AttemptEnd = "not_happened"
)

// Attempt is one dispatch of an effect.
type Attempt struct {
	N        int               `json:"n"`
	Event    int64             `json:"event"` // number of its EffectDispatched
	Epoch    int64             `json:"epoch"`
	Boot     string            `json:"boot,omitempty"` // of the owner when it was dispatched
	At       int64             `json:"at"`
	Digest   Digest            `json:"digest"`
	Approval ApprovalID        `json:"approval,omitempty"`
	Pre      Snapshot          `json:"pre,omitzero"`
	Post     Snapshot          `json:"post,omitzero"`
	Ignored  Digest            `json:"ignored,omitzero"`
	Level    string            `json:"level,omitempty"`
	Old      Digest            `json:"old,omitzero"`
	New      Digest            `json:"new,omitzero"`
	Params   map[string]string `json:"params,omitempty"`
	Identity Identity          `json:"identity,omitzero"` // of the command, or of the Pawl process that sends
	Started  bool              `json:"started,omitempty"` // the command's identity is in the ledger
	End      AttemptEnd        `json:"end,omitempty"`
	Forced   bool              `json:"forced,omitempty"` // End is an operator's word
	Code     string            `json:"code,omitempty"`
	Cause    string            `json:"cause,omitempty"`
	Closed   *Instant          `json:"closed,omitempty"` // own requests: connection closed at
	Ended    int64             `json:"ended,omitempty"`
	Partial  Text              `json:"partial,omitzero"`
}

// Effect is one action on the world.
type Effect struct {
	ID          EffectID    `json:"id"`
	Ord         int         `json:"ord"`
	Turn        int         `json:"turn"`
	Call        int         `json:"call"`
	Tool        string      `json:"tool"`
	ToolVersion int         `json:"tool_version"`
	Args        Text        `json:"args"`
	Summary     string      `json:"summary"`
	Target      string      `json:"target,omitempty"`
	Contract    Contract    `json:"contract"`
	Digest      Digest      `json:"digest"`
	Level       string      `json:"level,omitempty"`
	Rule        string      `json:"rule,omitempty"`
	Asks        bool        `json:"asks,omitempty"`
	Files       []File      `json:"files,omitempty"`
	State       EffectState `json:"state"`
	Forced      bool        `json:"forced,omitempty"` // an operator's verdict is in its history
	Approval    ApprovalID  `json:"approval,omitempty"`
	Attempts    []Attempt   `json:"attempts,omitempty"`
	Evidence    []Evidence  `json:"evidence,omitempty"`
	Considered  int         `json:"considered,omitempty"` // evidence already weighed by a settlement
	Quiescence  *Quiescence `json:"quiescence,omitempty"`
	Result      Result      `json:"result,omitzero"`
	Reason      string      `json:"reason,omitempty"` // of a refusal, cancellation, verdict, or abandonment
	By          string      `json:"by,omitempty"`     // who decided last
	Decided     int64       `json:"decided,omitempty"`
	DecidedN    int64       `json:"decided_n,omitempty"` // event number of the last verdict
	// Retry: the operator's word is the grant for the next attempt.
	Retry        bool        `json:"retry,omitempty"`
	Probing      bool        `json:"probing,omitempty"` // the operator asked to look now
	Waiting      bool        `json:"waiting,omitempty"` // the operator chose to wait
	Auto         int         `json:"auto,omitempty"`    // automatic re-dispatches so far
	Compensates  EffectID    `json:"compensates,omitempty"`
	Compensation EffectID    `json:"compensation,omitempty"` // newest effect that undoes this one
	Before       EffectState `json:"before,omitempty"`       // state before COMPENSATING
	Failed       string      `json:"compensation_failed,omitempty"`
	KeyPast      bool        `json:"key_past,omitempty"` // the key's horizon has passed
	GivenUp      bool        `json:"given_up,omitempty"` // proven or stated not to have happened, and not tried again
	Replaces     EffectID    `json:"replaces,omitempty"`
	ReplacedBy   EffectID    `json:"replaced_by,omitempty"`
	At           int64       `json:"at"`
	Updated      int64       `json:"updated"`
}

// Last returns the newest attempt or nil.
func (e *Effect) Last() *Attempt {
	if len(e.Attempts) == 0 {
		return nil
	}
	return &e.Attempts[len(e.Attempts)-1]
}

// Proposed reports whether the model proposed this effect; an operator's edit of
// a proposal still is one. Compensations and landings are the operator's own.
func (e *Effect) Proposed() bool { return e.Call >= 0 }

// clone copies what a fold may change.
func (e Effect) clone() Effect {
	e.Attempts = slices.Clone(e.Attempts)
	return e
}

// TurnState is where a turn stands.
type TurnState string

// The states of a turn.
const (
	TurnAsked    TurnState = "requested"
	TurnAnswered TurnState = "responded"
	TurnBroken   TurnState = "failed"
)

// Turn is one request to the model and its response.
type Turn struct {
	N         int        `json:"n"`
	Window    int        `json:"window"`
	State     TurnState  `json:"state"`
	Attempts  int        `json:"attempts"` // requests sent
	Epoch     int64      `json:"epoch"`
	Reserve   int64      `json:"reserve,omitempty"`
	Tokens    int64      `json:"-"` // reserved
	Stop      StopReason `json:"stop,omitempty"`
	Text      Text       `json:"text,omitzero"`
	Calls     []Call     `json:"calls,omitempty"`
	Usage     Usage      `json:"usage,omitzero"`
	RequestID string     `json:"request_id,omitempty"`
	Pack      Digest     `json:"pack,omitzero"`
	Fail      FailClass  `json:"fail,omitempty"`
	Message   string     `json:"message,omitempty"`
	RetryAt   int64      `json:"retry_at,omitempty"`
	Extended  bool       `json:"extended,omitempty"` // the operator asked for another try
	Guess     int        `json:"guess,omitempty"`    // tokens of what was shown, by our count before calibration
	Spent     bool       `json:"spent,omitempty"`    // the retries that runs of the provider share are used up
	Shrunk    int        `json:"shrunk,omitempty"`   // the request that was too long for the provider; a smaller pack was made
	At        int64      `json:"at"`
	Tail      int64      `json:"-"` // event number of the response
	// Seen counts what the operator and the workspace had said when the turn
	// was asked for: told[:Told], answers and changes before it.
	Told int `json:"told"`
	Mail int `json:"mail,omitempty"` // what the runs above and below had said
}

// Opening is a window that was opened after the first one.
type Opening struct {
	N      int    `json:"n"`
	Turn   int    `json:"turn"` // first turn asked for in it
	Keep   int    `json:"keep"` // first turn that it shows word for word
	Output int    `json:"output,omitempty"`
	Budget int    `json:"budget"` // tokens of a request for which it was made
	Before int    `json:"before"` // tokens of the pack before, and of its own first one
	After  int    `json:"after"`
	Why    string `json:"why"`
	Event  int64  `json:"event"`
	At     int64  `json:"at"`
}

// Note is what the model wrote for whoever goes on: a claim.
type Note struct {
	Text string `json:"text"`
	Turn int    `json:"turn"` // it was written in
	N    int64  `json:"n"`
	At   int64  `json:"at"`
}

// Recalled is what a run was told of the memory.
type Recalled struct {
	MemoryRead
	N int64
}

// Hold is a request that waits for the provider's limit.
type Hold struct {
	Turn  int    `json:"turn"`
	Until int64  `json:"until"` // Unix µs
	Why   string `json:"why"`
}

// Instruction is a binding word of the operator.
type Instruction struct {
	Text string `json:"text"`
	At   int64  `json:"at"`
	By   string `json:"by"`
	N    int64  `json:"n"`
	// Retired by the operator: it binds no longer and is not shown.
	Retired bool `json:"retired,omitempty"`
}

// Decision is one recorded decision.
type Decision struct {
	Text    string `json:"text"`
	At      int64  `json:"at"`
	N       int64  `json:"n"`
	Retired bool   `json:"retired,omitempty"` // by the operator
}

// Change is a change of the workspace that none of our effects made.
type Change struct {
	Rebuilt  string // why all of it was made again; then From is what could be rescued
	After    EffectID
	From, To Snapshot
	Files    []string
	N, At    int64
	Turn     int // the last turn asked for before it
}

// Landing is what reached the operator's branch.
type Landing struct {
	Onto   string   `json:"onto"`
	Commit string   `json:"commit"`
	Effect EffectID `json:"effect"`
	At     int64    `json:"at"`
}

// Rollback is the undoing of a whole run, backwards.
type Rollback struct {
	By      string     `json:"by"`
	Reason  string     `json:"reason,omitempty"`
	At      int64      `json:"at"`
	From    int        `json:"from"` // effects above this ordinal came later and are not undone
	Skipped []EffectID `json:"skipped,omitempty"`
	Undone  int        `json:"undone"`
}

// Workspace is where a run works.
type Workspace struct {
	Ready  bool   `json:"ready"`
	Path   string `json:"path,omitempty"`
	Branch string `json:"branch,omitempty"`
	Base   string `json:"base,omitempty"`
	Mode   string `json:"mode,omitempty"`
	Level  string `json:"level,omitempty"`
	Data   []byte `json:"-"`
	Note   string `json:"note,omitempty"`
	Tries  int    `json:"-"`
	// Known is the newest snapshot that our effects account for.
	Known Snapshot `json:"known,omitzero"`
}

// State is everything a run's events say. It is a value: Fold returns a new
// one and leaves the old as it was.
type State struct {
	Charter  Charter
	Tail     int64 // events folded
	Created  int64
	Updated  int64
	Phase    Phase
	Epoch    int64
	Owner    string
	Boot     string   // of the owner's machine at the claim
	Self     Identity // the owner's process
	Reason   string   // why it was paused, failed or cancelled
	Summary  Text
	Checked  bool
	Finished int64
	Landed   *Landing
	LandAsk  *LandAsked // not yet intended
	Rollback *Rollback  // the run is being undone
	LastOp   int64      // at of the operator's last act

	Space     Workspace
	Turns     table[Turn]
	Effects   table[Effect]
	Approvals table[Approval]
	Questions table[Question]
	Changes   table[Change]
	Moved     int64 // the event with which the run came from another ledger; 0: it did not
	Told      []Instruction
	Plan      []PlanItem
	Decisions []Decision

	failed    []int // ordinals of effects whose compensation failed once
	unproven  []int // ordinals of effects without a proven outcome
	open      []int // ordinals of effects that Next must look at, ascending
	Window    int
	Openings  []Opening // of windows 2 and on
	Keep      int       // first turn that the window shows word for word; 0 and 1: all
	Output    int       // bytes up to which outputs are shown whole; 0: as usual
	Limit     int       // tokens of a request, learned from a refusal; 0: none was
	Memory    *Recalled // told at the start
	Note      *Note     // newest
	Hold      *Hold     // the next request waits
	Spent     int64     // micro-USD, known
	AtMost    int64     // micro-USD that lost calls may have cost
	MaxTurns  int       // the charter's, extended
	Budget    int64
	MaxTokens int64 // the charter's, extended; 0: none
	MaxWall   int64 // µs since the run was made; 0: none
	TokensIn  int64
	TokensOut int64
	TokensMay int64 // that lost calls may have taken

	Repeats int       // identical calls in a row
	keys    [2]Digest // of the last two turns' calls
	Misfits int       // turns in a row with nothing but refused calls
	Silent  int       // turns in a row without any call
	Limits  Limits

	Children table[Child]
	Mail     []Mail // of the runs above and below
}

// Limits are the bounds on going in circles; the operator may extend each.
type Limits struct {
	Repeats int // identical turns in a row
	Misfits int // turns in a row with nothing but refused calls
	Silent  int // turns in a row without a call
	Tries   int // requests for one turn
}

// Turn returns turn n (from 1) or nil.
func (s *State) Turn(n int) *Turn {
	if n < 1 || n > s.Turns.n {
		return nil
	}
	return s.Turns.at(n - 1)
}

// LastTurn returns the newest turn or nil.
func (s *State) LastTurn() *Turn { return s.Turns.last() }

// Effect returns an effect by id or nil.
func (s *State) Effect(id EffectID) *Effect {
	n := id.Ord()
	if n < 1 || n > s.Effects.n || id.Run() != s.Charter.ID {
		return nil
	}
	return s.Effects.at(n - 1)
}

// Approval returns an approval by id or nil.
func (s *State) Approval(id ApprovalID) *Approval {
	n := id.Ord()
	if n < 1 || n > s.Approvals.n || id.Run() != s.Charter.ID {
		return nil
	}
	return s.Approvals.at(n - 1)
}

// Question returns a question by id or nil.
func (s *State) Question(id QuestionID) *Question {
	n := id.Ord()
	if n < 1 || n > s.Questions.n || id.Run() != s.Charter.ID {
		return nil
	}
	return s.Questions.at(n - 1)
}

// NextEffect is the id the next effect will have.
func (s *State) NextEffect() EffectID { return EffectIDOf(s.Charter.ID, s.Effects.n+1) }

// NextApproval is the id the next approval will have.
func (s *State) NextApproval() ApprovalID { return ApprovalIDOf(s.Charter.ID, s.Approvals.n+1) }

// NextQuestion is the id the next question will have.
func (s *State) NextQuestion() QuestionID { return QuestionIDOf(s.Charter.ID, s.Questions.n+1) }

// Open yields the effects that are not settled, or that a compensation or late
// evidence may still move.
func (s *State) Open() []*Effect {
	out := make([]*Effect, 0, len(s.open))
	for _, i := range s.open {
		out = append(out, s.Effects.at(i))
	}
	return out
}

// Unproven yields the effects that may have happened and of which nothing
// proves it: ambiguous, contradicted, forced, abandoned.
func (s *State) Unproven() []*Effect {
	out := make([]*Effect, 0, len(s.unproven))
	for _, i := range s.unproven {
		out = append(out, s.Effects.at(i))
	}
	return out
}

// OpenQuestion returns the oldest unanswered question or nil.
func (s *State) OpenQuestion() *Question {
	for _, q := range s.Questions.All() {
		if !q.Answered {
			return q
		}
	}
	return nil
}
