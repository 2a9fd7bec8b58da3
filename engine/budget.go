package engine

import (
	"context"

	"pawl/engine/machine"
)

// firstInput is what a first request is taken to send, in tokens: the standing
// instructions, the tools and the goal.
const firstInput = 6000

// nextInput estimates from above how many tokens the next request sends: what
// the last one did, its answer, and results of about that size again.
func (r *run) nextInput() int64 {
	for n := r.state.Turns.Len(); n >= 1; n-- {
		if u := r.state.Turn(n).Usage; u.Input > 0 {
			return u.Input + 2*u.Output + firstInput/2
		}
	}
	return firstInput
}

// maxOutputOf bounds the answer of a model that may not be resolved.
func maxOutputOf(p *bound) int {
	if p == nil {
		return 0
	}
	return maxOutput(p.limits)
}

// overBudget asks the operator, instead of the model, if the request does not
// fit into what is left.
func (r *run) overBudget(ctx context.Context, a machine.Action, reserve, tokens int64) (bool, error) {
	over := r.state.OverBudget(reserve, tokens, r.e.now())
	if over == nil {
		return false, nil
	}
	return true, r.do(ctx, machine.Action{Kind: machine.ActAsk, Sort: machine.SortBudget, Limit: over.Limit, Turn: a.Turn, Why: over.Why})
}
