package engine

import (
	"fmt"
	"strings"

	"pawl/engine/effect"
	"pawl/engine/machine"
	"pawl/engine/window"
)

// choicesFor lists the operator's ways out of an effect, each with its price
// and the exact text that the model will get. None is a default.
func choicesFor(s *machine.State, f *machine.Effect, now machine.Instant) []ChoiceView {
	var out []ChoiceView
	for _, c := range []machine.Choice{
		machine.ChooseWait, machine.ChooseProbe, machine.ChooseHappened, machine.ChooseRetry, machine.ChooseCompensate, machine.ChooseAbandon,
	} {
		if v := choice(s, f, c, now); v != nil {
			out = append(out, *v)
		}
	}
	return out
}

// choice judges one way out; nil where it makes no sense at all.
func choice(s *machine.State, f *machine.Effect, c machine.Choice, now machine.Instant) *ChoiceView {
	v := &ChoiceView{Choice: c, ModelText: window.ResultIf(s, f, c)}
	open := f.State == machine.StateAmbiguous || f.State == machine.StateContradicted
	switch c {
	case machine.ChooseWait:
		v.Title, v.Open = "wait", f.State == machine.StateAmbiguous
		v.Cost = "time: the run holds until this is settled"
	case machine.ChooseProbe:
		v.Title = "look now"
		v.Cost = "nothing: looking changes nothing, but what is not there yet may still arrive"
		v.Open = (open || f.State == machine.StateAbandoned || f.State == machine.StateForcedHappened) && f.Contract.Probe != nil
		if f.Contract.Probe == nil {
			v.Why = "the contract of " + f.Contract.Name + " names no way to look"
		}
	case machine.ChooseHappened:
		v.Title, v.Open, v.Forced = "confirm that it happened", open, true
		v.Cost = "if it did not: " + f.Summary + " is missing in the world, and the run goes on as if it were there"
	case machine.ChooseRetry:
		v.Title, v.Open, v.Forced = "confirm that it did not, and do it again", open, true
		v.Cost = "if it did: it is there twice"
		if f.State == machine.StateNotHappened && !f.GivenUp {
			v.Open, v.Forced = true, false
			v.Title, v.Cost = "do it again", "nothing: it is proven that it did not happen"
		}
		if f.Contract.Class == machine.ClassWorkspace {
			v.Cost = "if it did: the command runs a second time, from the snapshot before it where that can be put back, else on the files as they are"
		}
		if proven, left, missing := effect.Quiet(f, now); open && !now.IsZero() && !proven {
			v.Cost += "; it may even still arrive (" + missing + ")"
		} else if open && left > 0 {
			v.Cost += fmt.Sprintf("; it may still arrive for another %s", left.Round(1e9))
		}
	case machine.ChooseCompensate:
		v.Title = "undo it by its compensation"
		v.Cost = "if it never happened: the compensation acts on nothing, or on something else"
		v.Open, v.Why = mayCompensate(f)
		if proven, left, _ := effect.Quiet(f, now); v.Open && f.State == machine.StateAmbiguous && (!proven || left > 0) {
			v.Open, v.Why = false, "it may still arrive; undo it when nothing can land any more"
		}
	case machine.ChooseAbandon:
		v.Title, v.Open = "leave it unknown and go on", open
		v.Cost = "nobody will know by itself; the task goes on without the result, and later evidence still settles it"
		if (f.State == machine.StateNotHappened || f.State == machine.StateForcedNot) && !f.GivenUp {
			v.Open, v.Title, v.Cost = true, "do not try again", "it stays undone"
		}
		if f.Failed != "" {
			v.Open, v.Title, v.Cost = true, "leave it as it is", "it stays done"
		}
	}
	if !v.Open && v.Why == "" && !open {
		return nil
	}
	return v
}

func mayCompensate(f *machine.Effect) (bool, string) {
	c := f.Contract.Compensation
	if c == nil {
		return false, "the contract of " + f.Contract.Name + " names no compensation"
	}
	switch f.State {
	case machine.StateCompleted, machine.StateHappened, machine.StateForcedHappened, machine.StateContradicted:
		return true, ""
	case machine.StateAmbiguous:
		if c.NullSafe && f.Quiescence != nil && f.Quiescence.Covers >= len(f.Attempts) {
			return true, ""
		}
		return false, "confirm first: it is not known whether there is anything to undo"
	default:
		return false, "it is " + f.State.String()
	}
}

// sentence tells in plain words what may have happened.
func sentence(s *machine.State, f *machine.Effect) string {
	var b strings.Builder
	switch f.State {
	case machine.StateAmbiguous:
		fmt.Fprintf(&b, "%s was sent, and no result was recorded: it may have happened, or not, or in part.", what(f))
		if last := f.Last(); last != nil && last.Cause != "" {
			fmt.Fprintf(&b, " Why: %s.", strings.TrimSuffix(last.Cause, "."))
		}
		fmt.Fprintf(&b, " %s", holds(s))
	case machine.StateContradicted:
		fmt.Fprintf(&b, "%s: what was decided about it is contradicted by later evidence. %s", what(f), holds(s))
	case machine.StateDispatched:
		fmt.Fprintf(&b, "%s is under way.", what(f))
	case machine.StateCompleted:
		fmt.Fprintf(&b, "%s ended, and its end was observed", what(f))
		if f.Result.Code != "" {
			fmt.Fprintf(&b, ": code %s", f.Result.Code)
		}
		b.WriteString(".")
	case machine.StateHappened:
		fmt.Fprintf(&b, "%s happened; this is proven.", what(f))
	case machine.StateNotHappened:
		fmt.Fprintf(&b, "%s did not happen; this is proven.", what(f))
	case machine.StateForcedHappened:
		fmt.Fprintf(&b, "%s happened, by the word of %s.", what(f), who(f.By))
	case machine.StateForcedNot:
		fmt.Fprintf(&b, "%s did not happen, by the word of %s.", what(f), who(f.By))
	case machine.StateAbandoned:
		fmt.Fprintf(&b, "Whether %s happened was left open by %s.", what(f), who(f.By))
	case machine.StateIntended:
		fmt.Fprintf(&b, "%s was never sent: it waits for its turn.", what(f))
	case machine.StateRefused, machine.StateCancelled:
		fmt.Fprintf(&b, "%s was never sent: %s.", what(f), strings.TrimSuffix(f.Reason, "."))
	case machine.StateRejected:
		fmt.Fprintf(&b, "%s was turned away before it took effect (%s).", what(f), f.Result.Code)
	case machine.StateCompensating:
		fmt.Fprintf(&b, "%s is being undone by %s.", what(f), f.Compensation)
	case machine.StateCompensated:
		fmt.Fprintf(&b, "%s was undone by %s.", what(f), f.Compensation)
	case machine.StateUnknown, machine.StateProposed:
		fmt.Fprintf(&b, "%s.", what(f))
	}
	if f.Failed != "" {
		fmt.Fprintf(&b, " Undoing it failed: %s.", strings.TrimSuffix(f.Failed, "."))
	}
	return b.String()
}

func what(f *machine.Effect) string { return "“" + f.Summary + "”" }

func holds(s *machine.State) string {
	if s.Phase.Ended() {
		return "The run has ended; nothing waits for it."
	}
	return "The run waits until this is settled."
}
