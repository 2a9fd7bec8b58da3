package machine

import "fmt"

// Wait is one thing that a run waits for the operator about.
type Wait struct {
	Kind    string // inbox kind
	Ref     string // effect, approval, question or run id
	Summary string
	Since   int64 // Unix µs
	Rank    int   // order of kinds, lower first
}

// The inbox kinds, in order.
const (
	WaitAmbiguous    = "ambiguous"
	WaitContradicted = "contradicted"
	WaitApproval     = "approval"
	WaitQuestion     = "question"
	WaitReview       = "review"
	WaitDrift        = "drift"
	WaitConflict     = "conflict"
	WaitOverflow     = "overflow"
	WaitBudget       = "budget"
	WaitLimit        = "limit"
	WaitFinished     = "finished"
)

var waitRanks = map[string]int{
	WaitAmbiguous: 1, WaitContradicted: 2, WaitApproval: 3, WaitQuestion: 4, WaitReview: 5, WaitDrift: 6,
	WaitConflict: 7, WaitOverflow: 8, WaitBudget: 9, WaitLimit: 10, WaitFinished: 11,
}

// Waits lists what waits for the operator. What the engine can still find out
// or repeat by itself is not in it.
func Waits(s *State) []Wait {
	var out []Wait
	add := func(kind, ref, summary string, since int64) {
		out = append(out, Wait{Kind: kind, Ref: ref, Summary: summary, Since: since, Rank: waitRanks[kind]})
	}
	for _, e := range s.Open() {
		if _, ok := stepOpen(s, e); ok {
			continue
		}
		switch e.State {
		case StateAmbiguous:
			add(WaitAmbiguous, string(e.ID), e.Summary, e.Updated)
		case StateContradicted:
			add(WaitContradicted, string(e.ID), e.Summary, e.Updated)
		case StateNotHappened, StateForcedNot:
			if a := s.Approval(e.Approval); a != nil && a.State == ApprovalPending {
				add(WaitApproval, string(a.ID), e.Summary, a.Asked)
			} else if !s.Phase.Ended() && s.Phase != PhasePaused {
				add(WaitAmbiguous, string(e.ID), e.Summary+" (did not happen; not tried again by itself)", e.Updated)
			}
		case StateIntended:
			if a := s.Approval(e.Approval); a != nil && a.State == ApprovalPending {
				add(WaitApproval, string(a.ID), e.Summary, a.Asked)
			}
		case StateUnknown, StateProposed, StateRefused, StateCancelled, StateDispatched, StateCompleted, StateRejected,
			StateHappened, StateForcedHappened, StateAbandoned, StateCompensating, StateCompensated:
		}
	}
	if !s.Phase.Ended() || s.Rollback != nil {
		for _, q := range s.Questions.All() {
			if !q.Answered {
				add(string(q.Sort), string(q.ID), q.Text, q.Asked)
			}
		}
	}
	for _, e := range s.Failures() {
		add(WaitConflict, string(e.ID), "compensation failed: "+e.Failed, e.Updated)
	}
	waitsOfChildren(s, add)
	if s.Phase == PhaseDone && s.Landed == nil && s.Space.Mode == "worktree" && s.Charter.Parent == "" {
		how := "done, checked"
		if !s.Checked {
			how = "done (unchecked)"
		}
		add(WaitFinished, string(s.Charter.ID), fmt.Sprintf("%s: %s", how, s.Charter.Goal), s.Finished)
	}
	return out
}

// Failures lists effects whose compensation failed and was not asked for again.
func (s *State) Failures() []*Effect {
	var out []*Effect
	for _, i := range s.failed {
		if e := s.Effects.at(i); e.Failed != "" {
			out = append(out, e)
		}
	}
	return out
}
