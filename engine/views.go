package engine

import (
	"time"

	"pawl/engine/machine"
)

// Item is one thing that waits for the operator, as `pawl inbox` and the
// Needs-you panel show it.
type Item struct {
	ID      string        `json:"id"` // effect, approval, question or run id: what the deciding command takes
	Kind    string        `json:"kind"`
	Run     machine.RunID `json:"run"`
	Goal    string        `json:"goal"`
	Summary string        `json:"summary"`
	Since   time.Time     `json:"since"`
	Reach   string        `json:"reach"` // how far it reaches: "holds the run", "nothing waits"
	Next    string        `json:"next"`  // the command that decides it
}

// The kinds of inbox items, in the order in which they are shown.
const (
	KindAmbiguous    = "ambiguous"
	KindContradicted = "contradicted"
	KindApproval     = "approval"
	KindQuestion     = "question"
	KindReview       = "review"
	KindDrift        = "drift"
	KindConflict     = "conflict"
	KindOverflow     = "overflow"
	KindBudget       = "budget"
	KindLimit        = "limit"
	KindFinished     = "finished"
)

// Standing is a run's state as a reader who knows the lease sees it.
type Standing string

// The standings.
const (
	Running     Standing = "running"
	Waiting     Standing = "waiting"     // for the operator
	Interrupted Standing = "interrupted" // was running; no living owner
	Paused      Standing = "paused"
	Done        Standing = "done"
	Failed      Standing = "failed"
	Cancelled   Standing = "cancelled"
)

// RunLine is a run in a list.
type RunLine struct {
	ID       machine.RunID `json:"id"`
	Parent   machine.RunID `json:"parent,omitempty"`
	Goal     string        `json:"goal"`
	State    Standing      `json:"state"`
	Checked  bool          `json:"checked"`
	Landed   bool          `json:"landed"`
	Turns    int           `json:"turns"`
	Spend    float64       `json:"spend_usd"`
	AtMost   float64       `json:"at_most_usd,omitempty"` // more that lost model calls may have cost
	Budget   float64       `json:"budget_usd,omitempty"`
	Model    string        `json:"model"`
	Repo     string        `json:"repo,omitempty"`
	Needs    int           `json:"needs"` // inbox items
	Note     string        `json:"note"`  // what it is doing, or why it ended
	Owner    string        `json:"owner,omitempty"`
	Created  time.Time     `json:"created"`
	Updated  time.Time     `json:"updated"`
	Operator time.Time     `json:"operator"` // last act of the operator
}

// Field is a labelled line of a card. Values come from outside and are not yet
// sanitised: whoever draws them does that.
type Field struct {
	Label string `json:"label"`
	Value string `json:"value"`
}

// EffectCard is all that is known about one effect, and what may be done.
type EffectCard struct {
	ID       machine.EffectID    `json:"id"`
	Run      machine.RunID       `json:"run"`
	Goal     string              `json:"goal"`
	Tool     string              `json:"tool"`
	Class    machine.Class       `json:"class"`
	State    machine.EffectState `json:"state"`
	Forced   bool                `json:"forced"`
	Summary  string              `json:"summary"`
	Sentence string              `json:"sentence"` // what may have happened, since when, what waits
	Look     string              `json:"look,omitempty"`
	LookHow  string              `json:"look_how,omitempty"` // "open", "run"
	Since    time.Time           `json:"since"`
	Meant    []Field             `json:"meant"`
	Known    []Field             `json:"known"`
	Looked   []Field             `json:"looked"`
	Quiet    Quiet               `json:"quiescence"`
	Choices  []ChoiceView        `json:"choices,omitempty"`
	Tail     int64               `json:"tail"` // of the run when the card was made; a decision names it
}

// Quiet is how far the proof has come that nothing can still land.
type Quiet struct {
	Proven bool          `json:"proven"` // the senders are dead
	Proof  string        `json:"proof"`  // or what is missing
	Passed time.Duration `json:"passed"` // since the proof
	Needed time.Duration `json:"needed"` // in-flight bound
}

// ChoiceView is one way out, with its price.
type ChoiceView struct {
	Choice    machine.Choice `json:"choice"`
	Title     string         `json:"title"`
	Cost      string         `json:"cost_if_wrong"`
	ModelText string         `json:"model_text"`    // exactly what the model will receive
	Open      bool           `json:"open"`          // may be chosen now
	Why       string         `json:"why,omitempty"` // if not
	Forced    bool           `json:"forced"`        // needs a reason and the typed short id
}

// ApprovalCard is exactly what will run.
type ApprovalCard struct {
	ID         machine.ApprovalID    `json:"id"`
	Effect     machine.EffectID      `json:"effect"`
	Run        machine.RunID         `json:"run"`
	Goal       string                `json:"goal"`
	State      machine.ApprovalState `json:"state"`
	Tool       string                `json:"tool"`
	Class      machine.Class         `json:"class"`
	Summary    string                `json:"summary"`
	Args       string                `json:"args"` // the tool's arguments as JSON: what an edit starts from
	Text       string                `json:"text"` // the whole command, request or content; every line
	Dir        string                `json:"dir,omitempty"`
	Target     string                `json:"target,omitempty"`
	Env        []Field               `json:"env,omitempty"` // differences from the plain environment
	Files      []machine.File        `json:"files,omitempty"`
	Network    bool                  `json:"network"`
	Level      string                `json:"level"`
	Why        string                `json:"why"` // which rule asked
	Drift      string                `json:"drift,omitempty"`
	Like       []string              `json:"like,omitempty"`        // unresolved effects that it resembles
	OffersRule string                `json:"offers_rule,omitempty"` // the --allow rule that would cover it
	Digest     machine.Digest        `json:"digest"`
	Asked      time.Time             `json:"asked"`
	Rule       string                `json:"rule,omitempty"`     // by name, the one that asked when it was proposed
	Expires    time.Time             `json:"expires,omitzero"`   // zero: never
	Standing   string                `json:"standing,omitempty"` // standing grant that was given with the answer
}

// QuestionCard is a question with its answers.
type QuestionCard struct {
	ID      machine.QuestionID `json:"id"`
	Run     machine.RunID      `json:"run"`
	Goal    string             `json:"goal"`
	Sort    machine.Sort       `json:"sort"`
	Text    string             `json:"text"`
	Choices []string           `json:"choices,omitempty"` // if any; else free text
	Fields  []Field            `json:"fields,omitempty"`
	Asked   time.Time          `json:"asked"`
	// Answer and By are set once it is answered.
	Answer   string    `json:"answer,omitempty"`
	By       string    `json:"by,omitempty"`
	Answered time.Time `json:"answered,omitzero"`
}

// TimelineRow is one event, told for people.
type TimelineRow struct {
	N      int64            `json:"n"`
	At     time.Time        `json:"at"`
	Kind   string           `json:"kind"`
	Actor  string           `json:"actor"`
	Epoch  int64            `json:"epoch,omitempty"`
	Sign   string           `json:"sign"`  // one cell: what sort of row it is
	Title  string           `json:"title"` // one line
	Detail []string         `json:"detail,omitempty"`
	Effect machine.EffectID `json:"effect,omitempty"`
	Tone   string           `json:"tone"` // plain, good, bad, warn, dim, live
}

// LiveText is model text as it arrives: lossy, never stored, marked as live.
type LiveText struct {
	Run  machine.RunID
	Turn int
	// Effect is set if it is a command's output; else it is the model's text.
	Effect machine.EffectID
	Text   string // all of the turn's text so far, or the newest piece of output
	Done   bool   // nothing more comes: the ledger has it
}
