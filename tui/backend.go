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
	Runs(ctx context.Context, q engine.RunsQuery) ([]engine.RunLine, error)
	Run(ctx context.Context, run machine.RunID) (engine.RunLine, error)
	// Timeline is a page of at most limit rows: those after event number after,
	// or with back those before it (0: the newest), in either order. A page that
	// is not full is the last one.
	Timeline(ctx context.Context, run machine.RunID, after int64, back bool, limit int) ([]engine.TimelineRow, error)
	// Effects lists a run's effects by number, from after one, or with back those
	// before it (0: the newest).
	Effects(ctx context.Context, run machine.RunID, after int64, back bool, limit int) ([]engine.EffectLine, error)
	Children(ctx context.Context, run machine.RunID) ([]engine.RunLine, error)
	// Context is what the model would be shown next; window 0, or was in a window.
	Context(ctx context.Context, run machine.RunID, window int) (engine.ContextView, error)
	StateTable(ctx context.Context, run machine.RunID) (engine.StateTable, error)
	// Recovery tells the newest interruption of a run in steps.
	Recovery(ctx context.Context, run machine.RunID) (engine.Recovery, error)
	// Workplace is the folder that a run works in.
	Workplace(ctx context.Context, run machine.RunID) (string, error)
	EffectCard(ctx context.Context, id machine.EffectID) (engine.EffectCard, error)
	ApprovalCard(ctx context.Context, id machine.ApprovalID) (engine.ApprovalCard, error)
	QuestionCard(ctx context.Context, id machine.QuestionID) (engine.QuestionCard, error)

	// Approve grants exactly what the card showed: digest is the card's.
	Approve(ctx context.Context, id machine.ApprovalID, digest machine.Digest) error
	// ApproveFor grants it and lays down the narrowest rule that covers it, for
	// the run or its project.
	ApproveFor(ctx context.Context, id machine.ApprovalID, digest machine.Digest, scope machine.GrantScope) (machine.GrantAdded, error)
	// Edit lets another action run in place of the proposed one; args are the tool's, whole.
	Edit(ctx context.Context, id machine.ApprovalID, digest machine.Digest, args string) (machine.ApprovalID, error)
	Deny(ctx context.Context, id machine.ApprovalID, feedback string) error
	Answer(ctx context.Context, id machine.QuestionID, text string) error
	Settle(ctx context.Context, id machine.EffectID, choice machine.Choice, words engine.SettleWords) error
	Pause(ctx context.Context, run machine.RunID, reason string) error
	Unpause(ctx context.Context, run machine.RunID) error
	Cancel(ctx context.Context, run machine.RunID, reason string) error
	Tell(ctx context.Context, run machine.RunID, text string) error
	// LandPreview and Land are about the branch onto; empty: the one that the run started from.
	LandPreview(ctx context.Context, run machine.RunID, onto string) (engine.LandView, error)
	Land(ctx context.Context, run machine.RunID, onto string) (engine.LandView, error)
	Diff(ctx context.Context, run machine.RunID) (string, error)
	// Create writes a run into the ledger; Drive moves runs, in this process,
	// unless a living owner has them. It is asked for after every decision that
	// lets a run move, so that what was decided here is carried out here.
	Create(ctx context.Context, n engine.NewRun) (machine.RunID, error)
	Drive(ctx context.Context, runs ...machine.RunID) error

	Status(ctx context.Context) (engine.Status, error)
	// Changes is signalled when anything may have changed, in this process or another.
	Changes() <-chan struct{}
	// Live carries model text as it arrives; it may lose any of it.
	Live() <-chan engine.LiveText
}
