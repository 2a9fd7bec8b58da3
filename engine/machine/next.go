package machine

import (
	"fmt"
)

// ActionKind is what the driver should do next.
type ActionKind string

// The actions.
const (
	// ActWait: nothing to do before the operator acts; Waits says on what.
	ActWait ActionKind = "wait"
	// ActRest: the run has ended and nothing of it is open.
	ActRest ActionKind = "rest"
	// ActPrepare: make the workspace ready.
	ActPrepare ActionKind = "prepare"
	// ActRequest: ask the model for Turn, as request number Attempt, not before RetryAt.
	ActRequest ActionKind = "request"
	// ActPage: the provider says that the request for Turn is too long: open a
	// window with a smaller pack.
	ActPage ActionKind = "page"
	// ActDispatch: run Effect as Attempt; the first time or, with Again, once more.
	ActDispatch ActionKind = "dispatch"
	// ActReplay: restore the snapshot of the last attempt, then dispatch again.
	ActReplay ActionKind = "replay"
	// ActProve: try to prove that nothing of Effect can still land.
	ActProve ActionKind = "prove"
	// ActGate: the command's gate never opened; record that as evidence.
	ActGate ActionKind = "gate"
	// ActProbe: look at the world, not before After.
	ActProbe ActionKind = "probe"
	// ActSettle: commit the state State that the evidence leads to.
	ActSettle ActionKind = "settle"
	// ActLand: intend the landing that the operator asked for.
	ActLand ActionKind = "land"
	// ActCompensate: intend the effect that undoes Effect.
	ActCompensate ActionKind = "compensate"
	// ActUndo: undo Effect, as part of undoing the run.
	ActUndo ActionKind = "undo"
	// ActUndone: nothing is left to undo.
	ActUndone ActionKind = "undone"
	// ActCompensated: the compensation ended; commit OK and Why.
	ActCompensated ActionKind = "compensated"
	// ActAsk: put a question of Sort about Limit to the operator.
	ActAsk ActionKind = "ask"
	// ActFinish: the run is done.
	ActFinish ActionKind = "finish"
	// ActFail: the run cannot go on: Why.
	ActFail ActionKind = "fail"
	// ActCancel: cancel Effect, which will never be dispatched.
	ActCancel ActionKind = "cancel"
	// ActAdopt: intend taking over the work of Child.
	ActAdopt ActionKind = "adopt"
	// ActExpire: the approval of Effect has lapsed at RetryAt.
	ActExpire ActionKind = "expire"
)

// Action is the one next thing to do for a run.
type Action struct {
	Kind    ActionKind
	Effect  EffectID
	Child   RunID
	Turn    int
	Attempt int
	After   Instant // not before
	RetryAt int64   // not before, Unix µs
	State   EffectState
	OK      bool
	Sort    Sort
	Limit   string
	Why     string
	Waits   []Wait
	// Later is a look that is not urgent: at an effect that was decided or left
	// open without proof, not before its RetryAt.
	Later *Action
}

// Next names the one next action. It is a function of the state alone.
func Next(s *State) Action {
	a := next(s)
	a.Later = later(s)
	return a
}

// laterLooks are the pauses before the looks that follow a verdict without
// proof, in µs: someone may still learn better. Then it is left alone.
var laterLooks = [...]int64{10e6, 60e6, 600e6, 3600e6, 6 * 3600e6}

// later finds the next look at what was decided or left open without proof.
func later(s *State) *Action {
	var best *Action
	for _, i := range s.unproven {
		e := s.Effects.at(i)
		if e.Contract.Probe == nil || e.State == StateAmbiguous || e.State == StateContradicted || e.State == StateForcedNot && !e.GivenUp {
			continue
		}
		looks, last := 0, e.Decided
		for _, v := range e.Evidence {
			if v.Authority == AuthProbe && v.N > e.DecidedN {
				looks, last = looks+1, v.At
			}
		}
		if looks >= len(laterLooks) {
			continue
		}
		if at := last + laterLooks[looks]; best == nil || at < best.RetryAt {
			best = &Action{Kind: ActProbe, Effect: e.ID, RetryAt: at}
		}
	}
	for _, e := range s.Open() {
		a := s.Approval(e.Approval)
		if a == nil || a.Expires == 0 || a.State != ApprovalPending && a.State != ApprovalGrantedS {
			continue
		}
		if best == nil || a.Expires < best.RetryAt {
			best = &Action{Kind: ActExpire, Effect: e.ID, RetryAt: a.Expires}
		}
	}
	return best
}

func next(s *State) Action {
	if s.Tail == 0 {
		return Action{Kind: ActRest}
	}
	if !s.Space.Ready && s.Phase == PhaseRunning {
		if q := s.OpenQuestion(); q != nil {
			return s.wait()
		}
		return Action{Kind: ActPrepare}
	}
	unusable := s.spaceAsked()
	for _, e := range s.Open() {
		if a, ok := stepOpen(s, e); ok && (!unusable || a.Kind != ActDispatch && a.Kind != ActReplay) {
			return a
		}
	}
	if s.LandAsk != nil {
		if unusable {
			return s.wait()
		}
		return Action{Kind: ActLand}
	}
	if c := s.toAdopt(); c != nil {
		return Action{Kind: ActAdopt, Child: c.ID}
	}
	if s.Rollback != nil {
		return nextUndo(s)
	}
	switch {
	case s.Phase.Ended():
		if w := Waits(s); len(w) > 0 && len(s.open) > 0 {
			return Action{Kind: ActWait, Waits: w}
		}
		return Action{Kind: ActRest}
	case s.Phase == PhasePaused:
		return s.wait()
	}
	if blocked(s) || s.OpenQuestion() != nil && !onlyAnswersEffects(s) {
		return s.wait()
	}
	return nextTurn(s)
}

func (s *State) wait() Action { return Action{Kind: ActWait, Waits: Waits(s)} }

// onlyAnswersEffects: an open question of the model blocks its own call, which
// is found in the order of calls; any other question blocks the run.
func onlyAnswersEffects(s *State) bool {
	for _, q := range s.Questions.All() {
		if !q.Answered && q.Sort != SortQuestion {
			return false
		}
	}
	return true
}

// blocked reports whether something unresolved holds the run.
func blocked(s *State) bool {
	for _, e := range s.Open() {
		if e.State != StateIntended {
			return true
		}
	}
	return false
}

// stepOpen finds what can be done about one open effect without the operator.
func stepOpen(s *State, e *Effect) (Action, bool) {
	if to, why, ok := Reconcile(e); ok {
		return Action{Kind: ActSettle, Effect: e.ID, State: to, Why: why}, true
	}
	switch e.State {
	case StateAmbiguous:
		return stepAmbiguous(s, e)
	case StateNotHappened:
		return stepNot(s, e)
	case StateForcedNot:
		if e.Contract.Probe != nil && !LookedSince(e, e.DecidedN) {
			return Action{Kind: ActProbe, Effect: e.ID}, true
		}
		if !mayGoOn(s, e) {
			return Action{}, false
		}
		if c := e.Contract; c.Class == ClassWorkspace && c.Sender == SenderCommand && s.Space.Mode == "worktree" {
			// The operator's retry starts from the snapshot as well, where it can be put back.
			if a, ok := stepReplay(s, e, true); ok {
				return a, true
			}
		}
		return Action{Kind: ActDispatch, Effect: e.ID, Attempt: len(e.Attempts) + 1}, true
	case StateAbandoned, StateContradicted, StateForcedHappened:
		if e.Probing && e.Contract.Probe != nil {
			return Action{Kind: ActProbe, Effect: e.ID}, true
		}
	case StateCompensating:
		return stepCompensating(s, e)
	case StateIntended:
		if s.Phase.Ended() && e.Proposed() {
			return Action{Kind: ActCancel, Effect: e.ID, Why: "the run is " + string(s.Phase)}, true
		}
		if !e.Proposed() && granted(s, e) {
			return Action{Kind: ActDispatch, Effect: e.ID, Attempt: 1}, true
		}
	case StateUnknown, StateProposed, StateRefused, StateCancelled, StateDispatched, StateCompleted, StateRejected,
		StateHappened, StateCompensated:
	}
	return Action{}, false
}

// mayGoOn: the run's barriers let this effect be dispatched (again).
func mayGoOn(s *State, e *Effect) bool {
	return e.Retry || !e.Proposed() || s.Phase == PhaseRunning
}

func granted(s *State, e *Effect) bool {
	if !e.Asks {
		return true
	}
	a := s.Approval(e.Approval)
	return a != nil && (a.State == ApprovalGrantedS || a.State == ApprovalConsumed)
}

// Probing is bounded and backed off; then a person is asked.
const (
	maxProbes   = 6
	probeBefore = 500_000 // µs before the second look; doubled each time
)

func stepAmbiguous(s *State, e *Effect) (Action, bool) {
	last := e.Last()
	if last == nil {
		return Action{}, false
	}
	c := &e.Contract
	gateShut := c.Sender == SenderCommand && !last.Started && last.Boot != "" && last.Boot == s.Boot
	if gateShut && c.Class != ClassWorkspace && !c.Declared && priorProvenNot(e) {
		return Action{Kind: ActGate, Effect: e.ID}, true
	}
	if e.Probing && c.Probe != nil {
		return Action{Kind: ActProbe, Effect: e.ID}, true
	}
	resend := mayGoOn(s, e) && e.Auto < MaxAutoAttempts
	switch c.Class {
	case ClassRead:
		if resend {
			return Action{Kind: ActDispatch, Effect: e.ID, Attempt: len(e.Attempts) + 1}, true
		}
		return Action{}, false
	case ClassWorkspace:
		return stepReplay(s, e, resend)
	case ClassKeyed:
		if resend && !e.KeyPast {
			return Action{Kind: ActDispatch, Effect: e.ID, Attempt: len(e.Attempts) + 1}, true
		}
	case ClassProbeable, ClassCompensable, ClassIrreversible:
		if c.Declared {
			return stepReplay(s, e, resend)
		}
	case ClassUnknown:
	}
	if c.Probe == nil {
		if u := c.Compensation; u != nil && u.NullSafe && !quiet(e) && !triedDeath(s, e) {
			return Action{Kind: ActProve, Effect: e.ID}, true // only then may it be undone
		}
		return Action{}, false
	}
	return stepProbe(s, e)
}

// Resendable reports whether an effect in flight would simply be done again
// if its owner turned out to be gone: nobody would wait for it.
func Resendable(s *State, e *Effect) bool {
	c := e.Contract
	return s.Phase == PhaseRunning && e.Auto < MaxAutoAttempts && (c.Class == ClassRead || c.Class == ClassKeyed && !e.KeyPast)
}

func priorProvenNot(e *Effect) bool {
	for _, a := range e.Attempts[:len(e.Attempts)-1] {
		if a.End != EndNotHappened || a.Forced {
			return false
		}
	}
	return true
}

func stepReplay(s *State, e *Effect, resend bool) (Action, bool) {
	if !resend || drifted(e) {
		return Action{}, false
	}
	if e.Contract.Sender == SenderCommand && !quiet(e) {
		if triedDeath(s, e) {
			return Action{}, false
		}
		return Action{Kind: ActProve, Effect: e.ID}, true
	}
	return Action{Kind: ActReplay, Effect: e.ID, Attempt: len(e.Attempts) + 1}, true
}

// drifted: a replay was tried and found something that is not ours to overwrite.
func drifted(e *Effect) bool {
	for _, v := range e.Evidence {
		if v.Verdict == VerdictConflict && v.N > e.Last().Event {
			return true
		}
	}
	return false
}

func quiet(e *Effect) bool { return e.Quiescence != nil && e.Quiescence.Covers >= len(e.Attempts) }

// triedDeath: the proof was searched for in this boot and not found.
func triedDeath(s *State, e *Effect) bool {
	last := e.Last()
	for _, v := range e.Evidence {
		if v.Authority == AuthDeath && v.N > last.Event && v.Started.Boot == s.Boot && v.Covers >= len(e.Attempts) {
			return true
		}
	}
	return false
}

// stepProbe looks at once, since a positive answer settles it; then proves
// quiescence; then looks again once nothing can still land.
func stepProbe(s *State, e *Effect) (Action, bool) {
	looks, late, newest := probesOf(s, e)
	if newest != nil && newest.Verdict == VerdictConflict {
		return Action{}, false
	}
	if looks == 0 {
		return Action{Kind: ActProbe, Effect: e.ID}, true
	}
	if !quiet(e) || e.Quiescence.At.Boot != s.Boot {
		if triedDeath(s, e) && !quiet(e) {
			return Action{}, false
		}
		return Action{Kind: ActProve, Effect: e.ID}, true
	}
	if late >= maxProbes || !e.Contract.Probe.ProvesNot && late > 0 {
		return Action{}, false
	}
	after := e.Quiescence.At
	after.Mono += e.Contract.InFlight
	if !e.Contract.Probe.ReadsOwnWrites {
		after.Mono += e.Contract.Probe.Settle
	}
	if late > 0 && newest.Started.Boot == after.Boot {
		after.Mono = max(after.Mono, newest.Started.Mono+probeBefore<<late)
	}
	return Action{Kind: ActProbe, Effect: e.ID, After: after}, true
}

// probesOf counts the looks since the last dispatch, and those after quiescence.
func probesOf(s *State, e *Effect) (looks, late int, newest *Evidence) {
	last := e.Last()
	for i := range e.Evidence {
		v := &e.Evidence[i]
		if v.Authority != AuthProbe || v.N < last.Event {
			continue
		}
		looks++
		newest = v
		if q := e.Quiescence; q != nil && v.N > q.N {
			// Only a look at a time when nothing could land any more was late enough.
			if us, ok := v.Started.Since(q.At); !ok || us >= lateEnough(e) {
				late++
			}
		}
	}
	return looks, late, newest
}

// lateEnough is how long after the proof of death a negative look proves
// something, in µs.
func lateEnough(e *Effect) int64 {
	if e.Contract.Probe.ReadsOwnWrites {
		return e.Contract.InFlight
	}
	return e.Contract.InFlight + e.Contract.Probe.Settle
}

func stepNot(s *State, e *Effect) (Action, bool) {
	if e.GivenUp || !e.Retry && !granted(s, e) || !mayGoOn(s, e) || (!e.Retry && e.Auto >= MaxAutoAttempts) {
		return Action{}, false
	}
	if e.Contract.Probe != nil {
		var fresh []Evidence
		for _, v := range e.Evidence {
			if v.Authority == AuthProbe && v.N > e.DecidedN {
				fresh = append(fresh, v)
			}
		}
		switch {
		case len(fresh) == 0:
			return Action{Kind: ActProbe, Effect: e.ID}, true
		case fresh[len(fresh)-1].Verdict == VerdictNotHappened:
		case len(fresh) < 3:
			after := fresh[len(fresh)-1].Started
			after.Mono += probeBefore << len(fresh)
			return Action{Kind: ActProbe, Effect: e.ID, After: after}, true
		default:
			return Action{}, false
		}
	}
	return Action{Kind: ActDispatch, Effect: e.ID, Attempt: len(e.Attempts) + 1}, true
}

func stepCompensating(s *State, e *Effect) (Action, bool) {
	if e.Compensation == "" {
		return Action{Kind: ActCompensate, Effect: e.ID}, true
	}
	c := s.Effect(e.Compensation)
	if c == nil || !c.State.Settled() && !c.GivenUp {
		return Action{}, false
	}
	ok := Undid(e, c)
	why := ""
	if !ok {
		why = fmt.Sprintf("the compensation %s ended as %s", c.ID, c.State)
		if c.Result.Code != "" {
			why += " with code " + c.Result.Code
		}
	}
	return Action{Kind: ActCompensated, Effect: e.ID, OK: ok, Why: why}, true
}

// nextTurn is the plain way forward: the calls of the last turn in order, then
// the next turn.
func nextTurn(s *State) Action {
	t := s.LastTurn()
	if t == nil {
		return requestTurn(s, 1)
	}
	switch t.State {
	case TurnAsked:
		return Action{Kind: ActRequest, Turn: t.N, Attempt: t.Attempts + 1} // marked lost by the claim; defensive
	case TurnBroken:
		return retryTurn(s, t)
	case TurnAnswered:
	}
	for i := range t.Calls {
		e := s.resolve(t.Calls[i].Effect)
		if e == nil {
			return Action{Kind: ActFail, Why: fmt.Sprintf("turn %d: call %d has no effect in the ledger", t.N, i+1)}
		}
		switch {
		case e.State == StateIntended && e.Tool == ToolCollect && !s.ChildrenSettled():
			return s.wait()
		case e.State == StateIntended && !granted(s, e), e.State == StateIntended && e.Tool == ToolAsk:
			return s.wait()
		case e.State == StateIntended:
			return Action{Kind: ActDispatch, Effect: e.ID, Attempt: 1}
		case e.Tool == ToolFinish && e.State == StateCompleted && e.Result.OK && len(s.Told) == t.Told:
			// What the operator said since the turn was asked for comes first.
			return Action{Kind: ActFinish, Effect: e.ID, OK: s.Charter.Check != ""}
		}
	}
	return requestTurn(s, t.N+1)
}

// Tools that the machine itself knows.
const (
	ToolAsk    = "ask_operator"
	ToolFinish = "finish"
	ToolLand   = "land"
)

// resolve follows an edited call to the effect that replaced it.
func (s *State) resolve(id EffectID) *Effect {
	e := s.Effect(id)
	for e != nil && e.ReplacedBy != "" {
		e = s.Effect(e.ReplacedBy)
	}
	return e
}

// Resolve returns the effect that stands for a call: the one that replaced it
// if it was edited.
func (s *State) Resolve(id EffectID) *Effect { return s.resolve(id) }

func retryTurn(s *State, t *Turn) Action {
	ask := func(why string) Action {
		return Action{Kind: ActAsk, Sort: SortLimit, Limit: "tries", Turn: t.N, Why: why}
	}
	if !t.Extended {
		if t.Fail == FailContext && t.Shrunk == 0 {
			return Action{Kind: ActPage, Turn: t.N, Attempt: t.Attempts + 1, Why: t.Message}
		}
		shrunk := t.Fail == FailContext && t.Shrunk == t.Attempts // since it failed
		if !t.Fail.Retryable() && !shrunk {
			return ask(fmt.Sprintf("The model cannot be asked (%s): %s", t.Fail, t.Message))
		}
		if t.Spent {
			return ask(fmt.Sprintf("All runs of this provider together got no answer for long; the last failure: %s", t.Message))
		}
		if t.Attempts >= s.Limits.Tries {
			return ask(fmt.Sprintf("The model gave no whole answer in %d tries; the last one: %s", t.Attempts, t.Message))
		}
	}
	return Action{Kind: ActRequest, Turn: t.N, Attempt: t.Attempts + 1, RetryAt: max(t.RetryAt, heldUntil(s, t.N))}
}

// heldUntil is the time, Unix µs, before which a turn is not asked for.
func heldUntil(s *State, turn int) int64 {
	if s.Hold == nil || s.Hold.Turn != turn {
		return 0
	}
	return s.Hold.Until
}

func requestTurn(s *State, n int) Action {
	ask := func(sort Sort, limit, why string) Action {
		return Action{Kind: ActAsk, Sort: sort, Limit: limit, Turn: n, Why: why}
	}
	cost := fmt.Sprintf("%d turns, $%.2f so far", s.Turns.Len(), float64(s.Spent+s.AtMost)/1e6)
	switch {
	case s.Misfits >= s.Limits.Misfits:
		return ask(SortLimit, "misfits", fmt.Sprintf("%d turns in a row held only calls that cannot be carried out (%s)", s.Misfits, cost))
	case s.Repeats >= s.Limits.Repeats:
		return ask(SortLimit, "repeats", fmt.Sprintf("The model makes the same calls over and over: %d repeats (%s)", s.Repeats, cost))
	case s.Silent >= s.Limits.Silent:
		return ask(SortLimit, "silent", fmt.Sprintf("%d answers in a row held no call, and the run is not finished (%s)", s.Silent, cost))
	case n > s.MaxTurns:
		return ask(SortLimit, "turns", fmt.Sprintf("The limit of %d turns is reached (%s)", s.MaxTurns, cost))
	}
	if over := s.OverBudget(0, 0, 0); over != nil {
		return ask(SortBudget, over.Limit, over.Why)
	}
	return Action{Kind: ActRequest, Turn: n, Attempt: 1, RetryAt: heldUntil(s, n)}
}
