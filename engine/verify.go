package engine

import (
	"context"
	"fmt"
	"slices"

	"pawl/engine/machine"
	"pawl/ledger"
)

// Verification is what `pawl verify` found.
type Verification struct {
	OK       bool     `json:"ok"`
	Runs     int      `json:"runs"`
	Events   int64    `json:"events"`
	Effects  int      `json:"effects"`
	Problems []string `json:"problems"` // each a sentence
}

// maxProblems bounds the list; the first ones tell where to look.
const maxProblems = 100

func (v *Verification) problem(format string, a ...any) {
	if len(v.Problems) < maxProblems {
		v.Problems = append(v.Problems, fmt.Sprintf(format, a...))
	}
}

// chainVerifier is a store that can check its own bytes.
type chainVerifier interface {
	VerifyChain(ctx context.Context, progress func(done, total int64)) (ledger.Verified, error)
}

// Verify checks the chains, folds every run again from its first event, and
// compares the rows with what the fold projects. Folding holds the guards: an
// event that must not follow is a problem too.
func (e *Engine) Verify(ctx context.Context, progress func(done, total int64)) (Verification, error) {
	v := Verification{Problems: []string{}}
	if c, ok := e.store.(chainVerifier); ok {
		found, err := c.VerifyChain(ctx, progress)
		if err != nil {
			return v, err
		}
		for _, p := range found.Problems {
			v.problem("%v", p)
		}
	}
	before := ""
	for {
		rows, err := e.store.Runs(ctx, ledger.RunFilter{Before: before, Limit: 200})
		if err != nil {
			return v, err
		}
		for _, row := range rows {
			before = row.ID
			if err := e.verifyRun(ctx, row, &v); err != nil {
				return v, err
			}
		}
		if len(rows) < 200 {
			break
		}
	}
	desk, err := e.Standing(ctx)
	if ctx.Err() != nil {
		return v, ctx.Err()
	}
	if err != nil {
		v.problem("%v", err)
	}
	v.Events += desk.Tail
	v.OK = len(v.Problems) == 0
	return v, nil
}

func (e *Engine) verifyRun(ctx context.Context, row ledger.RunRow, v *Verification) error {
	id := machine.RunID(row.ID)
	s, err := e.catchUp(ctx, machine.State{}, id)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		v.problem("run %s cannot be folded: %v", id, err)
		return nil
	}
	v.Runs++
	v.Events += s.Tail
	v.Effects += s.Effects.Len()
	if tail, err := e.store.Tail(ctx, row.ID); err == nil && tail != s.Tail {
		return nil // it moved while we looked: another process is at work
	}
	want := project(&machine.State{}, &s)
	if *want.Run != row {
		v.problem("run %s: its row does not say what its events say", id)
	}
	have, err := e.allEffects(ctx, row.ID)
	if err != nil {
		return err
	}
	if !slices.Equal(have, want.Effects) {
		v.problem("run %s: its effects' rows do not say what its events say", id)
	}
	approvals, err := e.store.Approvals(ctx, row.ID)
	if err != nil {
		return err
	}
	if !sameSet(approvals, want.Approvals) {
		v.problem("run %s: its approvals' rows do not say what its events say", id)
	}
	inbox, err := e.store.Inbox(ctx, row.ID)
	if err != nil {
		return err
	}
	if !sameSet(inbox, want.Inbox) {
		v.problem("run %s: its inbox rows do not say what its events say", id)
	}
	return nil
}

func (e *Engine) allEffects(ctx context.Context, id string) ([]ledger.EffectRow, error) {
	var out []ledger.EffectRow
	after := int64(0)
	for {
		rows, err := e.store.Effects(ctx, id, ledger.Page{After: after, Limit: 1000})
		if err != nil {
			return nil, err
		}
		out = append(out, rows...)
		if len(rows) < 1000 {
			return out, nil
		}
		after = rows[len(rows)-1].Ord
	}
}

func sameSet[T comparable](a, b []T) bool {
	if len(a) != len(b) {
		return false
	}
	seen := make(map[T]bool, len(a))
	for _, x := range a {
		seen[x] = true
	}
	for _, x := range b {
		if !seen[x] {
			return false
		}
	}
	return true
}
