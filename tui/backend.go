package tui

import (
	"context"

	"pawl/engine"
	"pawl/engine/machine"
)

// Backend is what the screen needs of the engine. Every method may block and is
// called from commands only, never from Update; all may be called at once.
// Errors of decisions are sentences for the operator: what, why, what next.
type Backend interface {
	// Inbox lists what waits for the operator, the most pressing first.
	Inbox(ctx context.Context) ([]engine.Item, error)
	// Runs lists runs in a stable order, newest first, from after q.Before.
	Runs(ctx context.Context, q RunsQuery) ([]engine.RunLine, error)
	Run(ctx context.Context, run machine.RunID) (engine.RunLine, error)
	// Timeline is a page of at most limit rows: those after event number after,
	// or with back those before it, in either order. An empty page is the end.
	Timeline(ctx context.Context, run machine.RunID, after int64, back bool, limit int) ([]engine.TimelineRow, error)
	EffectCard(ctx context.Context, id machine.EffectID) (engine.EffectCard, error)
	ApprovalCard(ctx context.Context, id machine.ApprovalID) (engine.ApprovalCard, error)
	QuestionCard(ctx context.Context, id machine.QuestionID) (engine.QuestionCard, error)

	// Approve grants exactly what the card showed: digest is the card's.
	Approve(ctx context.Context, id machine.ApprovalID, digest machine.Digest) error
	Deny(ctx context.Context, id machine.ApprovalID, feedback string) error
	Answer(ctx context.Context, id, text string) error
	Settle(ctx context.Context, id machine.EffectID, choice machine.Choice, words SettleWords) error
	Pause(ctx context.Context, run machine.RunID) error
	Unpause(ctx context.Context, run machine.RunID) error
	Cancel(ctx context.Context, run machine.RunID, reason string) error
	Tell(ctx context.Context, run machine.RunID, text string) error
	LandPreview(ctx context.Context, run machine.RunID) (LandView, error)
	Land(ctx context.Context, run machine.RunID) (LandView, error)
	Diff(ctx context.Context, run machine.RunID) (string, error)
	Create(ctx context.Context, n NewRun) (machine.RunID, error)

	Status(ctx context.Context) (Status, error)
	// Changes is signalled when anything may have changed, in this process or another.
	Changes() <-chan struct{}
	// Live carries model text as it arrives; it may lose any of it.
	Live() <-chan engine.LiveText
}

// RunsQuery selects a page of runs.
type RunsQuery struct {
	Search string        // narrows by goal; empty: all
	Before machine.RunID // the last run of the page before; empty: from the newest
	Limit  int
}

// SettleWords go with a verdict.
type SettleWords struct {
	Reason  string
	Confirm string // the effect's short id as typed, for forced verdicts
}

// LandView is how a run's work reaches the operator's branch, or what stops it.
type LandView struct {
	Branch, Onto, Commit, How string
	Files, Conflicts          []string
	Blocked                   string
	Done                      bool
}

// Status is the fleet in a few numbers.
type Status struct {
	Path     string // of the ledger
	ReadOnly bool
	Why      string // it is read-only
	Runs     map[engine.Standing]int
	Spend    float64 // US dollars
	Budget   float64
	Need     int // inbox items
	Owned    int // runs that this process drives
}

// NewRun is what a run is started from.
type NewRun struct {
	Goal, Repo, Check, Model string
}
