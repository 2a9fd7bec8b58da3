package drill

import (
	"slices"
	"strconv"
	"strings"

	"pawl/engine/machine"
)

func fileDigest(version int) machine.Digest { return machine.DigestOf([]byte(strconv.Itoa(version))) }

// running is the process whose turn it is.
func (s *sim) running() *proc {
	if s.cur == nil {
		return nil
	}
	return s.cur.proc
}

// endEvent judges what is said about an attempt that was under way.
func (a *audit) endEvent(e machine.Event) {
	switch b := e.Body.(type) {
	case machine.AttemptStarted:
		if f := a.known(b.Effect); b.Attempt >= 1 && b.Attempt <= len(f.attempts) {
			f.attempts[b.Attempt-1].started = true
		}
	case machine.EffectCompleted:
		f := a.known(b.Effect)
		d := a.inFlight(f, b.Attempt, e.Body)
		if d == nil {
			return
		}
		f.state = machine.StateCompleted
		if f.contract.Sender == machine.SenderCommand && !d.started {
			a.s.fail(RuleTable, f.id, "the end of a command is on record whose process never was")
		}
		a.completed(f, d, b.Result)
	case machine.EffectRejected:
		f := a.known(b.Effect)
		d := a.inFlight(f, b.Attempt, e.Body)
		if d == nil {
			return
		}
		f.state = machine.StateRejected
		if !slices.Contains(f.contract.BeforeEffect, b.Code) {
			a.s.fail(RuleTable, f.id, "%q is taken as turned away, and its contract does not list it", b.Code)
		}
		for i := range f.attempts {
			if o := &f.attempts[i]; o != d && (!o.notDone || o.forced) {
				a.s.fail(RuleTable, f.id, "it is said to be turned away, and of attempt %d nothing is proven", i+1)
			}
		}
		a.notDone(f, false)
	case machine.EffectAmbiguous:
		f := a.known(b.Effect)
		if a.inFlight(f, b.Attempt, e.Body) != nil {
			f.state, f.retry = machine.StateAmbiguous, false
		}
	}
}

// inFlight finds the attempt that an end is about.
func (a *audit) inFlight(f *fact, attempt int, b machine.Body) *dispatch {
	if f.state != machine.StateDispatched || attempt != len(f.attempts) || attempt < 1 {
		a.s.fail(RuleTable, f.id, "%s of attempt %d while it is %s with %d attempts", b.Kind(), attempt, f.state, len(f.attempts))
		return nil
	}
	return &f.attempts[attempt-1]
}

// completed holds an observed end against the world.
func (a *audit) completed(f *fact, d *dispatch, r machine.Result) {
	w := a.s.world.of(f.id)
	c := &f.contract
	switch {
	case c.Class == machine.ClassRead, c.Name == "": // internal ones act on nothing
	case c.Class == machine.ClassWorkspace:
		n := number([]byte(f.args))
		if !strings.HasPrefix(c.Name, "act") {
			return
		}
		want := diskOf(d.pre)[slot(n)] + 2
		if have := a.s.world.files[slot(n)]; r.OK && have != want {
			a.s.fail(RuleSuccess, f.id, "its work on the files is %d of 2 steps", int(have)-int(want)+2)
		}
	case !strings.HasPrefix(c.Name, "act") && !strings.HasPrefix(c.Name, "undo"):
	case r.OK && len(w.landed) == 0:
		a.s.fail(RuleSuccess, f.id, "it is said to have happened, and is not there")
	case !r.OK:
		d.notDone = true
		if slices.Contains(w.by, len(f.attempts)) {
			a.s.fail(RuleFailure, f.id, "attempt %d is said to have failed, and is there", len(f.attempts))
		}
	}
}

// notDone marks all attempts as said not to have happened.
func (a *audit) notDone(f *fact, forced bool) {
	if n := len(a.s.world.of(f.id).landed); n > 0 && !forced && !f.forced {
		a.s.fail(RuleFailure, f.id, "it is said not to have happened, and is there %d times", n)
	}
	for i := range f.attempts {
		f.attempts[i].notDone, f.attempts[i].forced = true, forced
	}
}

func (a *audit) evidenceEvent(e machine.Event) {
	switch b := e.Body.(type) {
	case machine.QuiescenceProven:
		f := a.known(b.Effect)
		q := b.Quiescence
		q.N = e.N
		f.quiet = &q
		a.quiet(f, &q)
	case machine.EvidenceAdded:
		f := a.known(b.Effect)
		v := b.Evidence
		v.N = e.N
		f.evidence = append(f.evidence, v)
		f.past = f.past || v.Authority == machine.AuthHorizon
		inside := f.contract.Class == machine.ClassRead || f.contract.Class == machine.ClassWorkspace
		if v.Authority == machine.AuthLateAck && !inside && len(a.s.world.of(f.id).landed) == 0 {
			a.s.fail(RuleSuccess, f.id, "a late answer says that it happened, and it is not there")
		}
	case machine.EffectSettled:
		a.settled(e, b)
	}
}

// quiet holds a proof of quiescence against what the world knows about senders.
func (a *audit) quiet(f *fact, q *machine.Quiescence) {
	if f.contract.Sender != machine.SenderCommand || q.At.Boot != a.s.bootName() {
		return
	}
	for _, c := range a.s.world.commands {
		if c.deed == a.s.deed(number([]byte(f.args))) && !c.dead && !c.ended && c.steps != nil {
			a.s.fail(RuleQuiet, f.id, "its command is said to be dead, and process %d lives", c.identity.PID)
		}
	}
}

func (a *audit) settled(e machine.Event, b machine.EffectSettled) {
	f := a.known(b.Effect)
	defer func() { f.weighed = len(f.evidence) }()
	if len(f.evidence) == f.weighed {
		a.s.fail(RuleEvidence, f.id, "it goes from %s to %s without new evidence", f.state, b.State)
	}
	if b.State == f.state {
		return
	}
	w := a.s.world.of(f.id)
	was := f.state
	switch b.State {
	case machine.StateHappened:
		if was != machine.StateAmbiguous && was != machine.StateAbandoned && was != machine.StateForcedHappened {
			a.s.fail(RuleTable, f.id, "evidence takes it from %s to %s", was, b.State)
		}
		if !f.says(machine.VerdictHappened) {
			a.s.fail(RuleEvidence, f.id, "no new evidence says that it happened")
		}
		if len(w.landed) == 0 && f.contract.Class != machine.ClassWorkspace && f.contract.Class != machine.ClassRead {
			a.s.fail(RuleSuccess, f.id, "it is said to have happened, and is not there")
		}
	case machine.StateNotHappened:
		if was != machine.StateAmbiguous && was != machine.StateAbandoned && was != machine.StateForcedNot {
			a.s.fail(RuleTable, f.id, "evidence takes it from %s to %s", was, b.State)
		}
		if !f.says(machine.VerdictNotHappened) || f.says(machine.VerdictHappened) {
			a.s.fail(RuleEvidence, f.id, "the new evidence does not say that it did not happen")
		}
		if !f.provenNot() {
			a.s.fail(RuleQuiet, f.id, "it is said not to have happened without a look after quiescence")
		}
		a.notDone(f, false)
	case machine.StateContradicted:
		against := f.says(machine.VerdictConflict) || f.says(machine.VerdictHappened) || f.says(machine.VerdictNotHappened)
		if !against {
			a.s.fail(RuleEvidence, f.id, "it is called contradicted, and nothing new speaks against it")
		}
		switch was {
		case machine.StateHappened, machine.StateForcedHappened, machine.StateCompleted, machine.StateNotHappened, machine.StateForcedNot,
			machine.StateRejected, machine.StateCancelled:
		default:
			a.s.fail(RuleTable, f.id, "it goes from %s to contradicted", was)
		}
	default:
		a.s.fail(RuleTable, f.id, "evidence takes it from %s to %s", was, b.State)
	}
	if was == machine.StateForcedNot && b.State == machine.StateNotHappened {
		f.state = b.State
		return
	}
	f.state, f.verdict, f.retry = b.State, e.N, false
}

func (a *audit) verdictEvent(e machine.Event) {
	switch b := e.Body.(type) {
	case machine.EffectForced:
		a.forced(e, b)
	case machine.EffectAbandoned:
		f := a.known(b.Effect)
		switch f.state {
		case machine.StateAmbiguous, machine.StateContradicted:
			f.state = machine.StateAbandoned
		case machine.StateNotHappened, machine.StateForcedNot:
			f.givenUp = true
		default:
			a.s.fail(RuleTable, f.id, "it is abandoned while it is %s", f.state)
		}
		f.verdict, f.retry, f.weighed = e.N, false, len(f.evidence)
	case machine.CompensationAsked:
		f := a.known(b.Effect)
		a.mayUndo(f)
		f.before, f.state, f.compensation, f.verdict = f.state, machine.StateCompensating, "", e.N
	case machine.CompensationEnded:
		f := a.known(b.Effect)
		if f.state != machine.StateCompensating || f.compensation != b.By {
			a.s.fail(RuleTable, f.id, "%s is said to have undone it while it is %s", b.By.Short(), f.state)
		}
		if c := a.facts[b.By]; c != nil && b.OK {
			if len(a.s.world.of(b.By).landed) == 0 && !c.forced {
				a.s.fail(RuleSuccess, f.id, "it is said to be undone, and %s is not there", b.By.Short())
			}
			f.state = machine.StateCompensated
		} else {
			f.state = f.before
		}
	}
}

// forced judges an operator's verdict: whether it is right is his affair.
func (a *audit) forced(e machine.Event, b machine.EffectForced) {
	f := a.known(b.Effect)
	if f.state == machine.StateNotHappened && b.Choice == machine.ChooseRetry {
		f.retry = true
		return
	}
	if f.state != machine.StateAmbiguous && f.state != machine.StateContradicted {
		a.s.fail(RuleTable, f.id, "a verdict is forced on it while it is %s", f.state)
	}
	if b.Typed != b.Effect.Short() || strings.TrimSpace(b.Reason) == "" || !strings.HasPrefix(e.Actor, machine.ActorOperator) {
		a.s.fail(RuleTable, f.id, "a verdict is forced on it without a reason, a name and its id typed out")
	}
	f.forced, f.verdict, f.weighed = true, e.N, len(f.evidence)
	switch b.Choice {
	case machine.ChooseHappened:
		f.state = machine.StateForcedHappened
	case machine.ChooseRetry:
		f.state, f.retry = machine.StateForcedNot, true
		a.notDone(f, true)
	default:
		a.s.fail(RuleTable, f.id, "%q is no verdict", b.Choice)
	}
}

// mayUndo: from which states an effect may be undone.
func (a *audit) mayUndo(f *fact) {
	c := f.contract.Compensation
	switch f.state {
	case machine.StateCompleted, machine.StateHappened, machine.StateForcedHappened, machine.StateContradicted:
		if c == nil {
			a.s.fail(RuleTable, f.id, "it is to be undone, and its contract does not say how")
		}
	case machine.StateAmbiguous:
		if c == nil || !c.NullSafe || f.quiet == nil || f.quiet.Covers != len(f.attempts) {
			a.s.fail(RuleTable, f.id, "it is to be undone while nobody knows what became of it")
		}
	default:
		a.s.fail(RuleTable, f.id, "it is to be undone while it is %s", f.state)
	}
}
