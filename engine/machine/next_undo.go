package machine

import "slices"

// nextUndo walks back over the effects of a run that is being undone. Only
// what is proven is undone by itself; at anything else it stops and asks.
func nextUndo(s *State) Action {
	r := s.Rollback
	left := len(r.Skipped)
	for ord := r.From; ord >= 1; ord-- {
		e := s.Effects.at(ord - 1)
		if c := e.Contract.Class; c == ClassRead || c == ClassWorkspace || e.Compensates != "" || slices.Contains(r.Skipped, e.ID) {
			continue
		}
		if q := openQuestionOf(s, e.ID); q != nil {
			return s.wait()
		}
		ask := func(why string) Action {
			return Action{Kind: ActAsk, Sort: SortConflict, Limit: "rollback", Effect: e.ID, Why: why}
		}
		switch e.State {
		case StateAmbiguous, StateContradicted, StateCompensating, StateDispatched:
			return s.wait()
		case StateCompleted, StateHappened:
			if e.State == StateCompleted && !e.Result.OK {
				continue
			}
			switch {
			case e.Failed != "":
				return ask("undoing “" + e.Summary + "” failed: " + e.Failed)
			case e.Contract.Compensation == nil:
				return ask("“" + e.Summary + "” happened and cannot be undone by Pawl")
			}
			return Action{Kind: ActUndo, Effect: e.ID}
		case StateForcedHappened:
			return ask("“" + e.Summary + "” happened by an operator's word only; undoing it is not done without asking")
		case StateAbandoned:
			return ask("whether “" + e.Summary + "” happened was left open")
		case StateUnknown, StateProposed, StateRefused, StateIntended, StateCancelled, StateRejected, StateNotHappened,
			StateForcedNot, StateCompensated:
		}
	}
	return Action{Kind: ActUndone, OK: left == 0}
}

func openQuestionOf(s *State, id EffectID) *Question {
	for _, q := range s.Questions.All() {
		if !q.Answered && q.Effect == id {
			return q
		}
	}
	return nil
}
