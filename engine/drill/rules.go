package drill

import (
	"fmt"

	"pawl/engine/machine"
)

// Rule is one invariant, by the number and the words under which the
// documentation has it.
type Rule string

// The invariants that the explorer holds every episode against.
const (
	RuleWriteAhead  Rule = "1 write-ahead: what acts on the world follows a durable dispatch of that very action"
	RuleSuccess     Rule = "2 no false success: what is said to have happened did"
	RuleFailure     Rule = "3 no false failure: what is said not to have happened never did"
	RuleOnce        Rule = "4 at most once, unless an operator forced a verdict before"
	RuleRest        Rule = "5 at rest everything is final, waits for the operator, or is held by a pause"
	RuleFence       Rule = "6 nothing is written under an old epoch"
	RuleApproval    Rule = "7 a gated action has one consumed grant of an equal digest"
	RuleBarrier     Rule = "8 nothing the model proposed is dispatched after a pause or an end"
	RuleQuiet       Rule = "9 not happened only after a look that followed quiescence"
	RuleEvidence    Rule = "10 verdicts change by new evidence only"
	RuleBudget      Rule = "12 a request's reservation fits into what is left"
	RulePack        Rule = "13 every call has one result, and what is unresolved stands in the context"
	RuleSnapshot    Rule = "14 what writes to the workspace starts from a recorded snapshot"
	RuleTwice       Rule = "15 recovering twice is recovering once"
	RuleUnplanned   Rule = "16 no attempt is sent twice"
	RuleEnds        Rule = "17 with a fair schedule it comes to an end"
	RuleTable       Rule = "the transition table"
	RuleStop        Rule = "no intent without a whole response"
	RuleDriver      Rule = "the driver goes on"
	RuleConsistency Rule = "rows say what events say"
)

// Violation is one broken invariant.
type Violation struct {
	Rule   Rule             `json:"rule"`
	Effect machine.EffectID `json:"effect,omitempty"`
	Text   string           `json:"text"`
	At     int64            `json:"at_us"`
	// Lie names the broken contract that explains it; Honest: none does.
	Lie Lie    `json:"-"`
	Why string `json:"broken_contract,omitempty"`
}

func (v Violation) String() string {
	s := fmt.Sprintf("%s: %s", v.Rule, v.Text)
	if v.Effect != "" {
		s = fmt.Sprintf("%s (%s)", s, v.Effect.Short())
	}
	if v.Lie != Honest {
		s += "; broken contract: " + v.Lie.String()
	}
	return s
}

// fail records a broken invariant.
func (s *sim) fail(r Rule, id machine.EffectID, format string, args ...any) {
	v := Violation{Rule: r, Effect: id, Text: fmt.Sprintf(format, args...), At: s.now, Lie: s.lieAbout(id)}
	if v.Lie != Honest {
		v.Why = v.Lie.String()
	}
	s.audit.found = append(s.audit.found, v)
	s.note("VIOLATION %s", v)
}

// lieAbout names the contract that was broken about an effect, or about the
// one it undoes or that undoes it.
func (s *sim) lieAbout(id machine.EffectID) Lie {
	for range 3 {
		if id == "" {
			break
		}
		if d := s.world.deeds[id]; d != nil && d.lied != Honest {
			return d.lied
		}
		f := s.audit.facts[id]
		if f == nil {
			break
		}
		if d := s.world.deeds[f.compensation]; d != nil && d.lied != Honest {
			return d.lied
		}
		id = f.compensates
	}
	return Honest
}
