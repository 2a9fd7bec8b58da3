package machine

import (
	"fmt"
	"time"
)

// Over says which budget the next model request would break, and how.
type Over struct {
	Limit string // "budget", "tokens" or "wall": what an operator extends
	Why   string
}

// OverBudget reports whether a model request that may cost reserve micro-USD
// and take that many tokens breaks a budget at a time in Unix µs; 0 leaves the
// wall time aside. What lost calls may have cost counts as spent: a budget is
// kept at most, not on average.
func (s *State) OverBudget(reserve, tokens, now int64) *Over {
	used := s.Used()
	if s.Budget > 0 && (used >= s.Budget || used+reserve > s.Budget) {
		why := fmt.Sprintf("The budget of $%.2f is used up: $%.2f in %d turns", dollars(s.Budget), dollars(used), s.Turns.Len())
		if used < s.Budget {
			why = fmt.Sprintf("The next request may cost up to $%.4f, and $%.4f of the budget of $%.2f is left after %d turns",
				dollars(reserve), dollars(s.Budget-used), dollars(s.Budget), s.Turns.Len())
		}
		if s.AtMost > 0 {
			why += fmt.Sprintf(" ($%.4f of it is what lost calls may have cost)", dollars(s.AtMost))
		}
		return &Over{Limit: "budget", Why: why}
	}
	took := s.TokensIn + s.TokensOut + s.TokensMay
	if s.MaxTokens > 0 && (took >= s.MaxTokens || took+tokens > s.MaxTokens) {
		why := fmt.Sprintf("The budget of %d tokens is used up: %d in %d turns", s.MaxTokens, took, s.Turns.Len())
		if took < s.MaxTokens {
			why = fmt.Sprintf("The next request may take up to %d tokens, and %d of %d are left after %d turns",
				tokens, s.MaxTokens-took, s.MaxTokens, s.Turns.Len())
		}
		return &Over{Limit: "tokens", Why: why}
	}
	if s.MaxWall > 0 && now > 0 && now-s.Created >= s.MaxWall {
		return &Over{Limit: "wall", Why: fmt.Sprintf("The time of %s since the start is over (%d turns)", time.Duration(s.MaxWall)*time.Microsecond, s.Turns.Len())}
	}
	return nil
}

func dollars(micro int64) float64 { return float64(micro) / 1e6 }
