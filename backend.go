package main

import (
	"context"
	"errors"

	"pawl/engine"
	"pawl/engine/machine"
	"pawl/ledger"
	"pawl/tui"
)

// backend is the engine as the screen wants it. A decision taken on the screen
// is carried out by this process if nobody else drives the run.
type backend struct{ *engine.Engine }

var _ tui.Backend = backend{}

// carry drives a run that was just decided about, unless somebody does.
func (b backend) carry(ctx context.Context, id machine.RunID, err error) error {
	if err != nil {
		return err
	}
	if st, serr := b.Engine.Status(ctx); serr != nil || st.ReadOnly {
		return serr
	}
	err = b.Drive(ctx, id)
	var held *ledger.HeldError
	if errors.As(err, &held) {
		return nil // its owner sees the decision
	}
	return err
}

func (b backend) Runs(ctx context.Context, q tui.RunsQuery) ([]engine.RunLine, error) {
	return b.Engine.Runs(ctx, engine.RunsQuery{Search: q.Search, Before: q.Before, Limit: q.Limit})
}

func (b backend) Approve(ctx context.Context, id machine.ApprovalID, digest machine.Digest) error {
	return b.carry(ctx, id.Run(), b.Engine.Approve(ctx, id, digest))
}

func (b backend) Deny(ctx context.Context, id machine.ApprovalID, feedback string) error {
	return b.carry(ctx, id.Run(), b.Engine.Deny(ctx, id, feedback))
}

func (b backend) Answer(ctx context.Context, id, text string) error {
	q := machine.QuestionID(id)
	return b.carry(ctx, q.Run(), b.Engine.Answer(ctx, q, text))
}

func (b backend) Settle(ctx context.Context, id machine.EffectID, choice machine.Choice, words tui.SettleWords) error {
	return b.carry(ctx, id.Run(), b.Engine.Settle(ctx, id, choice, engine.SettleWords{Reason: words.Reason, Confirm: words.Confirm}))
}

func (b backend) Pause(ctx context.Context, id machine.RunID) error {
	return b.Engine.Pause(ctx, id, "")
}

func (b backend) Unpause(ctx context.Context, id machine.RunID) error {
	return b.carry(ctx, id, b.Engine.Unpause(ctx, id))
}

func (b backend) Tell(ctx context.Context, id machine.RunID, text string) error {
	return b.carry(ctx, id, b.Engine.Tell(ctx, id, text))
}

func (b backend) Create(ctx context.Context, n tui.NewRun) (machine.RunID, error) {
	id, err := b.Engine.Create(ctx, engine.NewRun{Goal: n.Goal, Repo: n.Repo, Check: n.Check, Model: n.Model})
	return id, b.carry(ctx, id, err)
}

func (b backend) LandPreview(ctx context.Context, id machine.RunID) (tui.LandView, error) {
	v, err := b.Engine.LandPreview(ctx, id, "")
	return landView(v), err
}

func (b backend) Land(ctx context.Context, id machine.RunID) (tui.LandView, error) {
	v, err := b.Engine.Land(ctx, id, "")
	return landView(v), err
}

func landView(v engine.LandView) tui.LandView {
	return tui.LandView{
		Branch: v.Branch, Onto: v.Onto, Commit: v.Commit, How: v.How, Files: v.Files, Conflicts: v.Conflicts, Blocked: v.Blocked, Done: v.Done,
	}
}

func (b backend) Status(ctx context.Context) (tui.Status, error) {
	s, err := b.Engine.Status(ctx)
	return tui.Status{
		Path: s.Path, ReadOnly: s.ReadOnly, Why: s.Why, Runs: s.Runs, Spend: s.Spend, Budget: s.Budget, Need: s.Need, Owned: s.Owned,
	}, err
}
