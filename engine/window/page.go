package window

import (
	"fmt"
	"slices"

	"pawl/engine/machine"
)

// Page is the window to open when a pack no longer fits.
type Page struct {
	Keep   int // first turn that stays word for word
	Output int // bytes up to which outputs are shown whole; 0: as usual
	Before int // tokens of the pack that no longer fits
	After  int // tokens of the new one
	// Overflow: even what binds does not fit beside a working minimum, and
	// nothing of it may be dropped. Only the operator can retire some of it.
	Overflow bool
	Binding  int // tokens of what is always sent
	Minimum  int // tokens that must be left beside it
}

// Minimum is the room, in tokens, that a budget must leave beside what binds:
// for a result and the turn that reads it.
func Minimum(budget int) int { return min(4096, budget/4) }

// Turn finds the window to open after a pack that does not fit into o.Budget.
// It keeps as many of the newest turns as take no more than the greater of six
// tenths of the budget and half of what is free beside the opening, so that
// there is room to go on. Where not even the newest turn fits, outputs are cut
// shorter; where that does not help, no turn is kept. It is a function of its
// arguments like Build.
func Turn(s *machine.State, src Source, o Options) (Page, error) {
	if o.Budget <= 0 {
		return Page{}, fmt.Errorf("window: a page is turned for a budget, and there is none")
	}
	now, err := Build(s, src, o)
	if err != nil {
		return Page{}, err
	}
	next := s.Turns.Len() + 1
	if t := s.LastTurn(); t != nil && t.State != machine.TurnAnswered {
		next = t.N
	}
	page := Page{Before: now.Tokens}
	try := func(keep, output int) (Pack, []shown, error) {
		c := *s
		c.Window, c.Keep, c.Output = s.Window+1, keep, output
		c.Openings = append(slices.Clip(s.Openings), machine.Opening{N: s.Window + 1, Turn: next, Keep: keep, Output: output, Budget: o.Budget, Event: s.Tail + 1})
		var b Builder
		p, err := b.Build(&c, src, o)
		return p, b.turns, err
	}
	bare, _, err := try(next, 0)
	if err != nil {
		return Page{}, err
	}
	page.Binding, page.Minimum = bare.Tokens, Minimum(o.Budget)
	if bare.Tokens+page.Minimum > o.Budget {
		page.Overflow = true
		return page, nil
	}
	scale := Scale(s)
	target := max(o.Budget*6/10, bare.Tokens+(o.Budget-bare.Tokens)/2)
	for _, output := range []int{0, 4 << 10, 1 << 10} {
		_, turns, err := try(max(s.Keep, 1), output)
		if err != nil {
			return Page{}, err
		}
		for i, t := range turns {
			before := 0
			if i > 0 {
				before = turns[i-1].tokens
			}
			if calibrated(turns[len(turns)-1].tokens-before, scale)+bare.Tokens > target || t.n <= max(s.Keep, 1) && output == s.Output {
				continue
			}
			p, _, err := try(t.n, output)
			if err != nil {
				return Page{}, err
			}
			if p.Tokens <= target {
				page.Keep, page.Output, page.After = t.n, output, p.Tokens
				return page, nil
			}
		}
	}
	page.Keep, page.After = next, bare.Tokens
	return page, nil
}
