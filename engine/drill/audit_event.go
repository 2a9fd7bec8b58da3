package drill

import (
	"slices"
	"strings"

	"pawl/engine/machine"
)

// late is the actor of evidence that arrives after a process lost its run.
const late = "engine:late"

// event judges one event in the light of those before it.
func (a *audit) event(e machine.Event) {
	a.authority(e)
	switch b := e.Body.(type) {
	case machine.RunCreated:
		a.phase, a.budget = machine.PhaseRunning, b.Charter.MaxTokens
	case machine.RunClaimed:
		a.epoch = e.Epoch
		if p := a.s.running(); p != nil {
			a.owner = p.n
		}
	case machine.RunPaused:
		a.phase = machine.PhasePaused
	case machine.RunUnpaused:
		a.phase = machine.PhaseRunning
	case machine.RunCancelled:
		a.phase = machine.PhaseCancelled
	case machine.RunFinished:
		a.phase = machine.PhaseDone
	case machine.RunFailed:
		a.phase = machine.PhaseFailed
	case machine.Told:
		if a.phase == machine.PhaseDone || a.phase == machine.PhaseFailed {
			a.phase = machine.PhaseRunning
		}
	case machine.TurnRequested, machine.TurnResponded, machine.TurnFailed:
		a.turnEvent(e)
	case machine.EffectRefused, machine.EffectIntended, machine.EffectCancelled:
		a.intentEvent(e)
	case machine.ApprovalRequested, machine.ApprovalGranted, machine.ApprovalDenied, machine.ApprovalClosed:
		a.approvalEvent(e)
	case machine.EffectDispatched:
		a.dispatched(e, b)
	case machine.AttemptStarted, machine.EffectCompleted, machine.EffectRejected, machine.EffectAmbiguous:
		a.endEvent(e)
	case machine.QuiescenceProven, machine.EvidenceAdded, machine.EffectSettled:
		a.evidenceEvent(e)
	case machine.EffectForced, machine.EffectAbandoned, machine.CompensationAsked, machine.CompensationEnded:
		a.verdictEvent(e)
	case machine.QuestionAnswered:
		if a.questions[b.Question] {
			a.s.fail(RuleTable, "", "question %s is answered twice", b.Question)
		}
		a.questions[b.Question] = true
		if b.Answer == machine.AnswerStop {
			a.phase = machine.PhaseCancelled
		}
	default:
	}
}

// authority: the engine writes under the current epoch, people under none.
func (a *audit) authority(e machine.Event) {
	switch {
	case strings.HasPrefix(e.Actor, machine.ActorOperator):
		switch e.Body.(type) {
		case machine.RunClaimed, machine.TurnRequested, machine.TurnResponded, machine.TurnFailed, machine.EffectDispatched, machine.AttemptStarted,
			machine.EffectCompleted, machine.EffectRejected, machine.EffectAmbiguous, machine.QuiescenceProven, machine.EffectSettled,
			machine.CompensationEnded, machine.RunFinished, machine.RunFailed:
			a.s.fail(RuleFence, "", "%s is written by %s, who owns no run", e.Body.Kind(), e.Actor)
		default:
		}
	case e.Actor == late:
		if _, ok := e.Body.(machine.EvidenceAdded); !ok {
			a.s.fail(RuleFence, "", "%s is written by a process that lost the run", e.Body.Kind())
		}
	default:
		if _, claim := e.Body.(machine.RunClaimed); claim {
			if e.Epoch <= a.epoch {
				a.s.fail(RuleFence, "", "a claim takes epoch %d, current is %d", e.Epoch, a.epoch)
			}
		} else if e.Epoch != a.epoch {
			a.s.fail(RuleFence, "", "%s is written under epoch %d, current is %d", e.Body.Kind(), e.Epoch, a.epoch)
		}
	}
}

func (a *audit) turnEvent(e machine.Event) {
	switch b := e.Body.(type) {
	case machine.TurnRequested:
		if a.phase != machine.PhaseRunning {
			a.s.fail(RuleBarrier, "", "turn %d is asked for while the run is %s", b.Turn, a.phase)
		}
		if a.budget > 0 && b.Tokens > a.budget {
			a.s.fail(RuleBudget, "", "turn %d may take %d tokens of %d", b.Turn, b.Tokens, a.budget)
		}
		again := b.Turn == a.turn && a.turn > 0
		switch {
		case again && (a.asked || a.stopped || b.Attempt != a.tries+1), !again && (b.Turn != a.turn+1 || b.Attempt != 1 || a.asked):
			a.s.fail(RuleTable, "", "turn %d is asked for as request %d after turn %d, request %d", b.Turn, b.Attempt, a.turn, a.tries)
		}
		if !again {
			for _, id := range a.order {
				if f := a.facts[id]; f.open() {
					a.s.fail(RuleTable, id, "turn %d is asked for while it is %s", b.Turn, f.state)
				}
			}
		}
		a.turn, a.tries, a.asked, a.stopped, a.calls = b.Turn, b.Attempt, true, false, 0
	case machine.TurnResponded:
		if !a.asked || b.Turn != a.turn {
			a.s.fail(RuleTable, "", "turn %d is answered, and was not asked for", b.Turn)
		}
		if b.Stop == "" {
			a.s.fail(RuleStop, "", "turn %d is taken without its stop reason", b.Turn)
		}
		a.asked, a.stopped, a.calls = false, b.Stop != "", len(b.Calls)
		for _, c := range b.Calls {
			if _, known := a.facts[c.Effect]; !known && c.Effect != "" {
				a.facts[c.Effect] = &fact{id: c.Effect, args: c.Args.Inline, proposed: true, state: machine.StateProposed}
			}
		}
	case machine.TurnFailed:
		if !a.asked || b.Turn != a.turn {
			a.s.fail(RuleTable, "", "turn %d fails, and was not asked for", b.Turn)
		}
		a.asked = false
	}
}

func (a *audit) intentEvent(e machine.Event) {
	switch b := e.Body.(type) {
	case machine.EffectRefused:
		f := a.fresh(b.Effect, b.Call)
		f.state = machine.StateRefused
	case machine.EffectIntended:
		f := a.fresh(b.Effect, b.Call)
		f.contract, f.digest, f.asks, f.files, f.state = b.Contract, b.Digest, b.Asks, b.Files, machine.StateIntended
		f.proposed, f.compensates = b.Call >= 0, b.Compensates
		if !b.Args.IsZero() {
			f.args = b.Args.Inline
		}
		if b.Call >= 0 && (!a.stopped || b.Turn != a.turn || b.Call >= a.calls) {
			a.s.fail(RuleStop, b.Effect, "it is intended for call %d of turn %d, which is no whole response", b.Call+1, b.Turn)
		}
		if b.Contract.Class == machine.ClassUnknown {
			a.s.fail(RuleTable, b.Effect, "it is intended without a class")
		}
		if o := a.facts[b.Compensates]; o != nil {
			if o.state != machine.StateCompensating || o.compensation != "" {
				a.s.fail(RuleTable, o.id, "%s is to undo it while it is %s", b.Effect.Short(), o.state)
			}
			o.compensation = b.Effect
		}
	case machine.EffectCancelled:
		f := a.known(b.Effect)
		if f.state != machine.StateIntended {
			a.s.fail(RuleTable, b.Effect, "it is cancelled while it is %s", f.state)
		}
		if n := len(a.s.world.of(b.Effect).landed); n > 0 {
			a.s.fail(RuleFailure, b.Effect, "it is cancelled as never sent, and is there %d times", n)
		}
		f.state = machine.StateCancelled
		a.close(f.approval, machine.ApprovalSuperseded)
	}
}

// fresh begins the record of an effect.
func (a *audit) fresh(id machine.EffectID, call int) *fact {
	f := a.facts[id]
	if f == nil {
		f = &fact{id: id, proposed: call >= 0, state: machine.StateProposed}
		a.facts[id] = f
	}
	if f.state != machine.StateProposed || id.Ord() != len(a.order)+1 {
		a.s.fail(RuleTable, id, "effect number %d is begun as %s", len(a.order)+1, id.Short())
	}
	a.order = append(a.order, id)
	return f
}

// known finds the record of an effect; one that is not there is a fault.
func (a *audit) known(id machine.EffectID) *fact {
	f := a.facts[id]
	if f == nil {
		a.s.fail(RuleTable, id, "an event is about an effect that is not on record")
		f = &fact{id: id}
		a.facts[id] = f
	}
	return f
}

func (a *audit) approvalEvent(e machine.Event) {
	switch b := e.Body.(type) {
	case machine.ApprovalRequested:
		f := a.known(b.Effect)
		a.close(f.approval, machine.ApprovalSuperseded)
		f.approval, f.asks, f.digest = b.Approval, true, b.Digest
		if b.Files != nil {
			f.files = b.Files
		}
		g := &grant{effect: b.Effect, digest: b.Digest, state: machine.ApprovalPending, lapses: b.Expires}
		if len(f.files) > 0 {
			g.file = f.files[0].Digest
		}
		if b.Approval.Ord() != len(a.approvals)+1 {
			a.s.fail(RuleTable, b.Effect, "approval number %d is called %s", len(a.approvals)+1, b.Approval)
		}
		a.approvals[b.Approval] = g
	case machine.ApprovalGranted:
		g := a.approvals[b.Approval]
		switch {
		case g == nil:
			a.s.fail(RuleApproval, "", "%s is granted, and nobody asked", b.Approval)
			return
		case g.state != machine.ApprovalPending:
			a.s.fail(RuleApproval, g.effect, "%s is granted while it is %s", b.Approval, g.state)
		case g.digest != b.Digest:
			a.s.fail(RuleApproval, g.effect, "%s is granted for another digest than was asked", b.Approval)
		case !strings.HasPrefix(e.Actor, machine.ActorOperator) && b.Grant == "":
			a.s.fail(RuleApproval, g.effect, "%s is granted by %s", b.Approval, e.Actor)
		case g.lapsed(e.At):
			a.s.fail(RuleApproval, g.effect, "%s is granted after it expired", b.Approval)
		}
		g.state, g.digest = machine.ApprovalGrantedS, b.Digest
	case machine.ApprovalDenied:
		g := a.approvals[b.Approval]
		if g == nil || g.state != machine.ApprovalPending {
			a.s.fail(RuleApproval, "", "%s is denied and is not pending", b.Approval)
			return
		}
		g.state = machine.ApprovalDeniedS
		if f := a.known(g.effect); f.state == machine.StateIntended {
			f.state = machine.StateRefused
		}
	case machine.ApprovalClosed:
		if g := a.approvals[b.Approval]; g != nil && b.State == machine.ApprovalExpired && !g.lapsed(e.At) {
			a.s.fail(RuleApproval, g.effect, "%s is said to have expired, and has not", b.Approval)
		}
		a.close(b.Approval, b.State)
	}
}

func (g *grant) lapsed(at int64) bool { return g.lapses > 0 && at >= g.lapses }

func (a *audit) close(id machine.ApprovalID, to machine.ApprovalState) {
	if g := a.approvals[id]; g != nil && (g.state == machine.ApprovalPending || g.state == machine.ApprovalGrantedS) {
		g.state = to
	}
}

// dispatched judges the event that lets an attempt act.
func (a *audit) dispatched(e machine.Event, b machine.EffectDispatched) {
	f := a.known(b.Effect)
	digest := b.Digest
	if digest.IsZero() {
		digest = f.digest
	}
	if b.Attempt != len(f.attempts)+1 {
		a.s.fail(RuleTable, f.id, "attempt %d is dispatched after %d", b.Attempt, len(f.attempts))
	}
	a.mayStart(f)
	if f.proposed && !f.retry {
		if a.phase != machine.PhaseRunning {
			a.s.fail(RuleBarrier, f.id, "it is dispatched while the run is %s", a.phase)
		}
		for _, id := range a.order {
			o := a.facts[id]
			if o != f && o.open() && o.state != machine.StateIntended {
				a.s.fail(RuleTable, f.id, "it is dispatched while %s is %s", id.Short(), o.state)
			}
		}
	}
	if f.asks && !f.retry {
		a.usesGrant(f, b, digest)
	}
	if f.contract.Writes && b.Pre.IsZero() {
		a.s.fail(RuleSnapshot, f.id, "it is dispatched without a snapshot")
	}
	if len(f.attempts) > 0 && !f.retry {
		if f.auto++; f.auto > 3 {
			a.s.fail(RuleTable, f.id, "it is sent again by itself for the %d. time", f.auto)
		}
	}
	if f.retry {
		f.auto = 0
	}
	f.attempts = append(f.attempts, dispatch{digest: digest, approval: b.Approval, commit: a.commits, event: e.N, pre: b.Pre.Tree})
	f.state, f.digest, f.retry, f.quiet, f.weighed = machine.StateDispatched, digest, false, nil, len(f.evidence)
}

// mayStart: from which states an attempt may begin.
func (a *audit) mayStart(f *fact) {
	c := &f.contract
	switch f.state {
	case machine.StateIntended:
	case machine.StateNotHappened, machine.StateForcedNot:
		fresh := slices.ContainsFunc(f.evidence, func(v machine.Evidence) bool { return v.Authority == machine.AuthProbe && v.N > f.verdict })
		if c.Probe != nil && !fresh {
			a.s.fail(RuleTable, f.id, "it is tried again, and nobody has looked since it was said not to have happened")
		}
	case machine.StateAmbiguous:
		again := c.Class == machine.ClassRead || c.Class == machine.ClassWorkspace || c.Class == machine.ClassKeyed || c.Declared
		if !again {
			a.s.fail(RuleTable, f.id, "class %s is sent again while nobody knows what became of it", c.Class)
		}
		if c.Class == machine.ClassKeyed && f.past {
			a.s.fail(RuleTable, f.id, "its key is used after its horizon")
		}
		if c.Sender == machine.SenderCommand && (f.quiet == nil || f.quiet.Covers != len(f.attempts)) {
			a.s.fail(RuleQuiet, f.id, "a command is run again, and the one before it is not proven dead")
		}
	default:
		a.s.fail(RuleTable, f.id, "it is dispatched while it is %s", f.state)
	}
}

// usesGrant: what covers a gated dispatch.
func (a *audit) usesGrant(f *fact, b machine.EffectDispatched, digest machine.Digest) {
	g := a.approvals[b.Approval]
	switch {
	case g == nil:
		a.s.fail(RuleApproval, f.id, "it needs an approval and has none")
	case g.effect != f.id || g.digest != digest:
		a.s.fail(RuleApproval, f.id, "approval %s is not for what is dispatched", b.Approval)
	case g.state == machine.ApprovalGrantedS:
		if g.lapsed(a.s.clock().UnixMicro()) {
			a.s.fail(RuleApproval, f.id, "approval %s is used after it expired", b.Approval)
		}
		g.state = machine.ApprovalConsumed
		if p := a.s.running(); p != nil && !g.file.IsZero() {
			n := number([]byte(f.args))
			if v, ok := a.seen[[2]int{p.n, n}]; ok && g.file != fileDigest(v) {
				a.s.fail(RuleApproval, f.id, "the file that it runs is not the one that was approved")
			}
		}
	case g.state == machine.ApprovalConsumed && len(f.attempts) > 0 && f.attempts[len(f.attempts)-1].digest == digest &&
		(f.state == machine.StateAmbiguous || f.state == machine.StateNotHappened):
	default:
		a.s.fail(RuleApproval, f.id, "approval %s is %s and covers this dispatch no more", b.Approval, g.state)
	}
}
