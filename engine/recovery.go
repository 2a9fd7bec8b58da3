package engine

import (
	"context"
	"fmt"
	"strings"
	"time"

	"pawl/engine/machine"
	"pawl/ledger"
)

// RecoveryStep is one thing that an interruption left open, and what became of it.
type RecoveryStep struct {
	Title  string           `json:"title"`
	Effect machine.EffectID `json:"effect,omitempty"`
	// Sort is proven, replayed, decided, yours (it waits for the operator), or
	// going (Pawl is at it).
	Sort string   `json:"sort"`
	How  string   `json:"how"` // a sentence
	More []string `json:"more,omitempty"`
}

// The sorts of recovery steps.
const (
	StepProven   = "proven"
	StepReplayed = "replayed"
	StepDecided  = "decided"
	StepYours    = "yours"
	StepGoing    = "going"
)

// Recovery tells a run's newest interruption in steps.
type Recovery struct {
	Run   machine.RunID  `json:"run"`
	Goal  string         `json:"goal"`
	Since time.Time      `json:"since,omitzero"` // when it was found; zero: the run was never interrupted
	Now   bool           `json:"now"`            // nobody drives it at present
	Held  bool           `json:"held"`           // paused: nothing that the model proposed is sent
	Steps []RecoveryStep `json:"steps"`
	Open  int            `json:"open"` // steps that are not settled
	Yours int            `json:"yours"`
	Next  string         `json:"next"` // what happens next, in a sentence
}

// recoveryReach bounds how many events back an interruption is looked for.
const recoveryReach = 5000

// Recovery finds a run's newest interruption that left something open. It only reads.
func (e *Engine) Recovery(ctx context.Context, id machine.RunID) (Recovery, error) {
	s, err := e.view(ctx, id)
	if err != nil {
		return Recovery{}, err
	}
	stored, err := e.store.Tail(ctx, string(id))
	if err != nil {
		return Recovery{}, err
	}
	out := Recovery{Run: id, Goal: s.Charter.Goal, Now: s.Tail > stored, Held: s.Phase == machine.PhasePaused, Next: nextWords(&s)}
	left := map[machine.EffectID]string{} // cause, of what was left without a result
	var order []machine.EffectID
	turn := 0
	note := func(id machine.EffectID, cause string) {
		if _, ok := left[id]; !ok {
			order = append(order, id)
		}
		left[id] = cause
	}
	if out.Now {
		out.Since = wall(s.Updated)
		for _, f := range s.Open() {
			if f.State == machine.StateAmbiguous {
				cause := ""
				if l := f.Last(); l != nil {
					cause = l.Cause
				}
				note(f.ID, cause)
			}
		}
		if t := s.LastTurn(); t != nil && t.State == machine.TurnAsked {
			turn = t.N
		}
	} else if err := e.lastClaim(ctx, id, &out, note, &turn); err != nil {
		return Recovery{}, err
	}
	if turn > 0 {
		out.Steps = append(out.Steps, turnStep(&s, turn))
	}
	for _, id := range order {
		if f := s.Effect(id); f != nil {
			out.Steps = append(out.Steps, effectStep(f, left[id]))
		}
	}
	for _, st := range out.Steps {
		switch st.Sort {
		case StepYours:
			out.Yours++
			out.Open++
		case StepGoing:
			out.Open++
		}
	}
	return out, nil
}

// lastClaim reads back to the newest claim that found something open.
func (e *Engine) lastClaim(ctx context.Context, id machine.RunID, out *Recovery, note func(machine.EffectID, string), turn *int) error {
	const page = 500
	before := int64(0)
	var after []machine.Event // what was appended in the same breath as the claim, newest first
	for range recoveryReach / page {
		evs, err := e.store.EventsPage(ctx, string(id), ledger.Page{After: before, Back: true, Limit: page})
		if err != nil {
			return err
		}
		for i := len(evs) - 1; i >= 0; i-- {
			ev, err := decode(evs[i])
			if err != nil {
				return err
			}
			if _, ok := ev.Body.(machine.RunClaimed); !ok {
				after = append(after, ev)
				continue
			}
			found := false
		sameBreath:
			for j := len(after) - 1; j >= 0; j-- {
				switch b := after[j].Body.(type) {
				case machine.EffectAmbiguous:
					note(b.Effect, b.Cause)
					found = true
					continue
				case machine.TurnFailed:
					if b.Class == machine.FailLost {
						*turn, found = b.Turn, true
					}
					continue
				}
				break sameBreath
			}
			if found {
				out.Since = wall(ev.At)
				return nil
			}
			after = after[:0]
		}
		if len(evs) < page {
			return nil
		}
		before = evs[0].N
	}
	return nil
}

func turnStep(s *machine.State, n int) RecoveryStep {
	st := RecoveryStep{Title: fmt.Sprintf("the answer to turn %d", n), Sort: StepGoing, How: "It was lost on its way; it is asked for again. The lost one may have cost money and is booked as “at most”."}
	if t := s.Turn(n); t != nil && t.State == machine.TurnAnswered {
		st.Sort, st.How = StepReplayed, fmt.Sprintf("It was lost on its way and asked for again; the answer came at attempt %d.", t.Attempts)
	}
	return st
}

func effectStep(f *machine.Effect, cause string) RecoveryStep {
	st := RecoveryStep{Title: f.Summary, Effect: f.ID, Sort: StepGoing}
	if cause != "" {
		st.More = append(st.More, "what happened: "+cause)
	}
	if q := f.Quiescence; q != nil {
		st.More = append(st.More, "it can no longer land: "+q.Detail)
	}
	for _, v := range f.Evidence {
		st.More = append(st.More, fmt.Sprintf("looked (%s): %s. %s", v.Authority, strings.ReplaceAll(v.Verdict.String(), "_", " "), v.Text))
	}
	last := f.Last()
	switch f.State {
	case machine.StateCompleted, machine.StateRejected:
		st.Sort, st.How = StepReplayed, "It was run again and ended with a result on record."
		if last != nil && last.N > 1 && f.Contract.Class == machine.ClassWorkspace {
			st.How = fmt.Sprintf("The files were put back to the snapshot before it and it was run again; attempt %d ended with a result.", last.N)
		}
	case machine.StateHappened, machine.StateNotHappened:
		st.Sort, st.How = StepProven, "A look proved it: "+strings.ReplaceAll(f.State.String(), "_", " ")+"."
	case machine.StateForcedHappened, machine.StateForcedNot, machine.StateAbandoned, machine.StateCompensated, machine.StateCompensating:
		st.Sort, st.How = StepDecided, fmt.Sprintf("%s decided: %s. %s", who(f.By), strings.ReplaceAll(f.State.String(), "_", " "), f.Reason)
	case machine.StateContradicted:
		st.Sort, st.How = StepYours, "What is on record contradicts itself: it waits for you."
	case machine.StateDispatched:
		st.How = "It is being run again."
	case machine.StateAmbiguous:
		switch {
		case f.Probing || f.Waiting:
			st.How = "You asked for a look, or to wait; Pawl looks again."
		case f.Contract.Class == machine.ClassRead || f.Contract.Class == machine.ClassWorkspace || f.Contract.Class == machine.ClassKeyed:
			st.How = "Pawl can settle this by itself: it runs the same again, which does no harm."
		case f.Contract.Probe != nil && len(f.Evidence) == 0:
			st.How = "Pawl looks as soon as nothing of it can still land."
		default:
			st.Sort, st.How = StepYours, "The record cannot say what happened, and no look proves it: it waits for you."
		}
	case machine.StateUnknown, machine.StateProposed, machine.StateRefused, machine.StateIntended, machine.StateCancelled:
		st.Sort, st.How = StepProven, "It was never sent."
	}
	return st
}

// nextWords tells what Next names, for people.
func nextWords(s *machine.State) string {
	a := machine.Next(s)
	sum := func() string {
		if f := s.Effect(a.Effect); f != nil {
			return f.ID.Short() + ", " + f.Summary
		}
		return string(a.Effect)
	}
	switch a.Kind {
	case machine.ActRequest:
		return fmt.Sprintf("The model is asked for turn %d.", a.Turn)
	case machine.ActPage:
		return "A new context window opens, and the model is asked."
	case machine.ActDispatch:
		return "This is sent: " + sum() + "."
	case machine.ActReplay:
		return "This is run again: " + sum() + "."
	case machine.ActProve:
		return "Pawl proves that nothing of it can still land: " + sum() + "."
	case machine.ActProbe, machine.ActSettle, machine.ActGate:
		return "Pawl looks what became of it: " + sum() + "."
	case machine.ActCompensate, machine.ActUndo:
		return "This is undone: " + sum() + "."
	case machine.ActPrepare:
		return "The workspace is made ready."
	case machine.ActFinish:
		return "The run finishes."
	case machine.ActFail, machine.ActCancel:
		return "The run ends."
	case machine.ActLand:
		return "The work is landed."
	case machine.ActAdopt:
		return "The work of " + string(a.Child) + " is taken over."
	case machine.ActWait:
		for _, w := range s.Open() {
			if w.State == machine.StateAmbiguous || w.State == machine.StateContradicted {
				return "It waits for your word on " + w.ID.Short() + ", " + w.Summary + "."
			}
		}
		if s.Phase == machine.PhasePaused {
			return "Nothing: the run is paused. " + afterPause(s)
		}
		return "It waits for you."
	case machine.ActRest, machine.ActUndone, machine.ActCompensated, machine.ActAsk, machine.ActExpire:
	}
	if s.Phase == machine.PhasePaused {
		return "Nothing: the run is paused. " + afterPause(s)
	}
	if s.Phase.Ended() {
		return "Nothing: the run is " + string(s.Phase) + "."
	}
	return "It waits."
}

// afterPause says what would come if the pause were lifted.
func afterPause(s *machine.State) string {
	on := *s
	on.Phase, on.Reason = machine.PhaseRunning, ""
	if machine.Next(&on).Kind == machine.ActWait && len(on.Open()) == 0 {
		return ""
	}
	return "When it goes on: " + nextWords(&on)
}
