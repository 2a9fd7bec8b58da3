package machine

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// oracle is the world beside a State: what was really done, by attempt, and
// when. Folding random events, sensible and absurd ones alike, must never let
// the State say what the world denies.
type oracle struct {
	s     State
	mono  int64
	boot  int
	world map[EffectID][]landing // what was sent, in order of attempts
	actor string                 // of the last event tried
	epoch int64
}

// landing is one attempt as the world sees it: it lands at a time, or never.
type landing struct {
	sent  int64
	lands int64 // -1: never
	dead  int64 // when its sender died or its end was observed; later than sent
	quiet bool  // the sender is dead
}

const maxInFlight = 50 // D of every contract here, honest

const propertyBudget = 6 // micro-USD, and tokens

func (o *oracle) now() Instant { return Instant{Boot: fmt.Sprint("b", o.boot), Mono: o.mono} }

func (o *oracle) landed(id EffectID) int {
	n := 0
	for _, l := range o.world[id] {
		if l.lands >= 0 && l.lands <= o.mono {
			n++
		}
	}
	return n
}

// everLands counts what has landed or still will.
func (o *oracle) everLands(id EffectID) int {
	n := 0
	for _, l := range o.world[id] {
		if l.lands >= 0 {
			n++
		}
	}
	return n
}

func (o *oracle) apply(actor string, epoch int64, b Body) error {
	o.actor, o.epoch = actor, epoch
	next, err := Fold(o.s, Event{N: o.s.Tail + 1, At: o.mono, Actor: actor, Epoch: epoch, Body: b})
	if err == nil {
		o.s = next
	}
	return err
}

var propertyContracts = []Contract{
	{Name: "read", Class: ClassRead, Sender: SenderPawl},
	{Name: "sealed", Class: ClassWorkspace, Sender: SenderCommand, Writes: true},
	{Name: "keyed", Class: ClassKeyed, Sender: SenderPawl, Key: "k", InFlight: maxInFlight, Probe: &Probe{Kind: "p", ReadsOwnWrites: true, ProvesNot: true}},
	{Name: "push", Class: ClassProbeable, Sender: SenderCommand, InFlight: maxInFlight, Probe: &Probe{Kind: "p", ReadsOwnWrites: true, ProvesNot: true}},
	{Name: "lagging", Class: ClassProbeable, Sender: SenderPawl, InFlight: maxInFlight, Probe: &Probe{Kind: "p", Settle: 30, ProvesNot: true}},
	{Name: "undo", Class: ClassCompensable, Sender: SenderPawl, InFlight: maxInFlight, Probe: &Probe{Kind: "p", ReadsOwnWrites: true, ProvesNot: true}, Compensation: &Compensation{Tool: "read", NullSafe: true}},
	{Name: "post", Class: ClassIrreversible, Sender: SenderPawl, BeforeEffect: []string{"refused"}},
}

// TestRandomEventsNeverBreakTheInvariants plays an engine that proposes any
// event at any time, with honest probes and an honest world, and holds what
// the fold lets pass against the world.
func TestRandomEventsNeverBreakTheInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { history(t) })
}

// history plays one random history of a run and fails t where an invariant breaks.
func history(t *rapid.T) bool {
	o := &oracle{world: map[EffectID][]landing{}}
	must := func(err error) {
		if err != nil {
			t.Fatalf("setting up: %v", err)
		}
	}
	must(o.apply(ActorOperator+"a", 0, RunCreated{Charter: Charter{ID: "r1", Goal: "g", Budget: propertyBudget, MaxTokens: propertyBudget}}))
	must(o.apply(ActorEngine, 1, RunClaimed{Owner: "p", Boot: o.now().Boot}))
	must(o.apply(ActorEngine, 1, WorkspaceReady{Path: "/w", Mode: "worktree"}))
	n := rapid.IntRange(5, 60).Draw(t, "events")
	for range n {
		o.mono += int64(rapid.IntRange(0, 40).Draw(t, "passes"))
		before := o.s
		b, err := o.step(t)
		if err != nil {
			continue // refused: what matters is what passes
		}
		o.check(t, &before, b)
	}
	return true
}

// step proposes one event and, where it is a dispatch that passed, lets the
// world have it.
func (o *oracle) step(t *rapid.T) (Body, error) {
	epoch := o.s.Epoch
	if rapid.IntRange(0, 9).Draw(t, "stale") == 0 {
		epoch--
	}
	var f *Effect
	if k := o.s.Effects.Len(); k > 0 {
		f = o.s.Effects.At(rapid.IntRange(max(0, k-3), k-1).Draw(t, "effect"))
	}
	kind := rapid.SampledFrom([]string{
		"turn", "turn", "intend", "dispatch", "dispatch", "dispatch", "start", "complete", "ambiguous", "reject", "claim", "prove",
		"probe", "probe", "probe", "settle", "settle", "settle", "force", "abandon", "pause", "unpause", "cancel", "grant", "close", "undo", "late", "reboot", "horizon", "storm",
	}).Draw(t, "kind")
	var b Body
	actor := ActorEngine
	switch kind {
	case "turn":
		return o.proposeTurn(t, epoch)
	case "claim":
		return o.claim()
	case "reboot":
		o.boot++
		o.mono += 10
		for id, ls := range o.world {
			for i := range ls {
				if !ls[i].quiet {
					ls[i].quiet, ls[i].dead = true, o.mono
					ls[i].lands = o.cap(ls[i].lands, o.mono)
				}
			}
			o.world[id] = ls
		}
		return o.claim()
	case "pause":
		b, epoch, actor = RunPaused{}, 0, ActorOperator+"a"
	case "unpause":
		b, epoch, actor = RunUnpaused{}, 0, ActorOperator+"a"
	case "cancel":
		b, epoch, actor = RunCancelled{}, 0, ActorOperator+"a"
	default:
		if f == nil {
			return nil, fmt.Errorf("no effect yet")
		}
		return o.onEffect(t, kind, f, epoch)
	}
	return b, o.apply(actor, epoch, b)
}

// cap keeps the promise of D: after its sender's death an attempt lands within
// it or never.
func (o *oracle) cap(lands, dead int64) int64 {
	if lands > dead+maxInFlight {
		return -1
	}
	return lands
}

func (o *oracle) claim() (Body, error) {
	b := RunClaimed{Owner: "p", Boot: o.now().Boot}
	if err := o.apply(ActorEngine, o.s.Epoch+1, b); err != nil {
		return b, err
	}
	for _, f := range o.s.Open() {
		if f.State == StateDispatched {
			if err := o.apply(ActorEngine, o.s.Epoch, EffectAmbiguous{Effect: f.ID, Attempt: len(f.Attempts), Cause: "claim"}); err != nil {
				return b, err
			}
		}
	}
	return b, nil
}

func (o *oracle) proposeTurn(t *rapid.T, epoch int64) (Body, error) {
	if last := o.s.LastTurn(); last == nil || last.State == TurnAnswered {
		turn := o.s.Turns.Len() + 1
		cost, tokens := int64(rapid.IntRange(0, 5).Draw(t, "cost")), int64(rapid.IntRange(0, 5).Draw(t, "tokens"))
		if err := o.apply(ActorEngine, epoch, TurnRequested{Turn: turn, Attempt: 1, Reserve: cost, Tokens: tokens}); err != nil {
			return nil, err
		}
	}
	last := o.s.LastTurn()
	if last.State != TurnAsked {
		return nil, fmt.Errorf("turn is %s", last.State)
	}
	c := rapid.SampledFrom(propertyContracts).Draw(t, "contract")
	id := o.s.NextEffect()
	stop := rapid.SampledFrom([]StopReason{StopTools, StopTools, StopTools, ""}).Draw(t, "stop")
	b := TurnResponded{Turn: last.N, Stop: stop, Calls: []Call{{Tool: c.Name, Effect: id}}, Usage: Usage{Cost: last.Reserve, Input: last.Tokens}}
	if err := o.apply(ActorEngine, epoch, b); err != nil {
		return b, err
	}
	asks := rapid.Bool().Draw(t, "asks")
	in := EffectIntended{Effect: id, Turn: last.N, Tool: c.Name, Contract: c, Digest: DigestOf([]byte(id)), Asks: asks}
	if err := o.apply(ActorEngine, epoch, in); err != nil || !asks {
		return in, err
	}
	ask := ApprovalRequested{Approval: o.s.NextApproval(), Effect: id, Digest: in.Digest}
	if rapid.Bool().Draw(t, "expires") {
		ask.Expires = o.mono + int64(rapid.IntRange(1, 60).Draw(t, "open for"))
	}
	return ask, o.apply(ActorEngine, epoch, ask)
}

func (o *oracle) onEffect(t *rapid.T, kind string, f *Effect, epoch int64) (Body, error) {
	actor := ActorEngine
	n := len(f.Attempts)
	var b Body
	switch kind {
	case "intend":
		b = EffectIntended{Effect: o.s.NextEffect(), Turn: o.s.Turns.Len(), Tool: "x", Contract: propertyContracts[0]}
	case "grant":
		b, epoch, actor = ApprovalGranted{Approval: f.Approval, Digest: f.Digest}, 0, ActorOperator+"a"
	case "close":
		state := rapid.SampledFrom([]ApprovalState{ApprovalExpired, ApprovalRevoked}).Draw(t, "close")
		b = ApprovalClosed{Approval: f.Approval, State: state}
	case "dispatch":
		return o.dispatch(t, f, epoch)
	case "storm": // one crash after another
		var err error
		for range MaxAutoAttempts + 1 {
			if b, err = o.claim(); err != nil {
				return b, err
			}
			if b, err = o.dispatch(t, o.s.Effect(f.ID), o.s.Epoch); err != nil {
				return b, err
			}
		}
		return b, nil
	case "start":
		b = AttemptStarted{Effect: f.ID, Attempt: n, Identity: Identity{PID: 1, Start: 1, Inner: "n"}}
	case "complete":
		// An end is observed only of what has landed and is over.
		w := o.world[f.ID]
		if len(w) == 0 || w[len(w)-1].lands < 0 || w[len(w)-1].lands > o.mono {
			return nil, fmt.Errorf("nothing to observe")
		}
		b = EffectCompleted{Effect: f.ID, Attempt: n, Result: Result{OK: true, Code: "0"}}
	case "reject":
		code := rapid.SampledFrom([]string{"refused", "timeout"}).Draw(t, "code")
		w := o.world[f.ID]
		if code == "refused" && (len(w) == 0 || w[len(w)-1].lands >= 0) {
			return nil, fmt.Errorf("the world did not refuse")
		}
		b = EffectRejected{Effect: f.ID, Attempt: n, Code: code}
	case "ambiguous":
		b = EffectAmbiguous{Effect: f.ID, Attempt: n, Cause: "?"}
	case "prove":
		// An honest proof: only of what is dead.
		for i := range o.world[f.ID] {
			l := &o.world[f.ID][i]
			if !l.quiet && f.State == StateAmbiguous {
				l.quiet, l.dead = true, o.mono
				l.lands = o.cap(l.lands, o.mono)
			}
		}
		b = QuiescenceProven{Effect: f.ID, Quiescence: Quiescence{Covers: n, Proof: "process", At: o.now()}}
		for _, l := range o.world[f.ID] {
			if !l.quiet {
				return nil, fmt.Errorf("not dead")
			}
		}
	case "probe":
		b, actor, epoch = o.look(f), ActorEngine, rapid.SampledFrom([]int64{0, epoch}).Draw(t, "late")
	case "late":
		if o.landed(f.ID) == 0 {
			return nil, fmt.Errorf("no ack without an effect")
		}
		b, epoch = EvidenceAdded{Effect: f.ID, Evidence: Evidence{Verdict: VerdictHappened, Authority: AuthLateAck, Covers: n, Started: o.now()}}, 0
	case "horizon":
		b = EvidenceAdded{Effect: f.ID, Evidence: Evidence{Verdict: VerdictInconclusive, Authority: AuthHorizon, Covers: n, Started: o.now()}}
	case "settle":
		to, _, ok := Reconcile(f)
		if !ok || rapid.IntRange(0, 3).Draw(t, "absurd") == 0 {
			to = rapid.SampledFrom([]EffectState{StateHappened, StateNotHappened, StateContradicted}).Draw(t, "to")
		}
		b = EffectSettled{Effect: f.ID, State: to}
	case "force":
		choice := rapid.SampledFrom([]Choice{ChooseHappened, ChooseRetry}).Draw(t, "choice")
		typed := rapid.SampledFrom([]string{f.ID.Short(), ""}).Draw(t, "typed")
		b, epoch, actor = EffectForced{Effect: f.ID, Choice: choice, Reason: "r", Typed: typed}, 0, ActorOperator+"a"
	case "abandon":
		b, epoch, actor = EffectAbandoned{Effect: f.ID}, 0, ActorOperator+"a"
	case "undo":
		b, epoch, actor = CompensationAsked{Effect: f.ID, At: o.now()}, 0, ActorOperator+"a"
	}
	return b, o.apply(actor, epoch, b)
}

// look is an honest probe: it sees what has landed, the lagging one only after
// its settle time.
func (o *oracle) look(f *Effect) Body {
	seen := 0
	for _, l := range o.world[f.ID] {
		lag := int64(0)
		if p := f.Contract.Probe; p != nil && !p.ReadsOwnWrites {
			lag = p.Settle
		}
		if l.lands >= 0 && l.lands+lag <= o.mono {
			seen++
		}
	}
	v := VerdictNotHappened
	if seen > 0 {
		v = VerdictHappened
	}
	return EvidenceAdded{Effect: f.ID, Evidence: Evidence{Verdict: v, Authority: AuthProbe, Covers: len(f.Attempts), Started: o.now()}}
}

func (o *oracle) dispatch(t *rapid.T, f *Effect, epoch int64) (Body, error) {
	d := EffectDispatched{Effect: f.ID, Attempt: len(f.Attempts) + 1, Digest: f.Digest, Approval: f.Approval}
	d.Attempt += rapid.SampledFrom([]int{0, 0, 0, 0, 1, -1}).Draw(t, "skips")
	if rapid.IntRange(0, 5).Draw(t, "swapped") == 0 {
		d.Digest = DigestOf([]byte("other"))
	}
	if rapid.IntRange(0, 3).Draw(t, "snapshot") > 0 {
		d.Pre = Snapshot{Tree: "t"}
	}
	before := o.s
	if err := o.apply(ActorEngine, epoch, d); err != nil {
		return d, err
	}
	o.checkDispatch(t, &before, d)
	lands := int64(-1)
	if rapid.Bool().Draw(t, "lands") {
		lands = o.mono + int64(rapid.IntRange(0, 2*maxInFlight).Draw(t, "after"))
	}
	if f.Contract.Class == ClassKeyed && o.everLands(f.ID) > 0 {
		lands = -1 // the provider knows the key
	}
	o.world[f.ID] = append(o.world[f.ID], landing{sent: o.mono, lands: lands})
	return d, nil
}

// broken reports an invariant that does not hold.
func (o *oracle) broken(t *rapid.T, format string, a ...any) {
	violation = fmt.Sprintf(format, a...)
	t.Fatalf("%s", violation)
}

// violation is the last invariant that was broken: the mutation check reads it.
var violation string

// check holds the State against the world after an event that passed.
func (o *oracle) check(t *rapid.T, before *State, b Body) {
	for _, f := range o.s.Effects.All() {
		forced := f.Forced
		class := f.Contract.Class
		switch f.State {
		case StateHappened: // no false success
			if o.landed(f.ID) == 0 && class != ClassRead {
				o.broken(t, "%s is proven to have happened and did not, after %s", f.ID, b.Kind())
			}
		case StateNotHappened: // no false failure, late arrivals included
			if o.everLands(f.ID) > 0 {
				o.broken(t, "%s is proven not to have happened and did or will, after %s\n%+v", f.ID, b.Kind(), o.world[f.ID])
			}
			if !hasProof(f) {
				o.broken(t, "%s is not happened without a look after quiescence", f.ID)
			}
		case StateRejected:
			if o.everLands(f.ID) > 0 && !forced {
				o.broken(t, "%s was rejected and happened", f.ID)
			}
		default:
		}
		if class != ClassRead && class != ClassWorkspace && !forced && o.everLands(f.ID) > 1 {
			o.broken(t, "%s lands %d times without a forced verdict, after %s", f.ID, o.everLands(f.ID), b.Kind())
		}
		if len(o.world[f.ID]) != len(f.Attempts) { // write-ahead
			o.broken(t, "%s: %d sent, %d dispatched", f.ID, len(o.world[f.ID]), len(f.Attempts))
		}
		was := before.Effect(f.ID)
		if was != nil && was.State != f.State && len(f.Evidence) < len(was.Evidence) {
			o.broken(t, "%s: evidence vanished", f.ID)
		}
		if was != nil && isFinal(was.State) && was.State != f.State && !verdictMayMove(was, f, b) {
			o.broken(t, "%s went from %s to %s by %s", f.ID, was.State, f.State, b.Kind())
		}
		for _, a := range f.Attempts {
			if f.Asks && !forced && a.Approval == "" {
				o.broken(t, "%s attempt %d ran without a grant", f.ID, a.N)
			}
		}
	}
	if _, late := b.(EvidenceAdded); o.actor == ActorEngine && !late && o.epoch < o.s.Epoch {
		o.broken(t, "%s passed under epoch %d, current is %d", b.Kind(), o.epoch, o.s.Epoch)
	}
	if used := o.s.Spent + o.s.AtMost; used > propertyBudget || o.s.TokensIn+o.s.TokensOut+o.s.TokensMay > propertyBudget {
		o.broken(t, "a budget of %d is overspent: %d", propertyBudget, used)
	}
	switch b := b.(type) {
	case ApprovalGranted:
		if a := o.s.Approval(b.Approval); a.Expires != 0 && o.mono >= a.Expires {
			o.broken(t, "%s was granted after it had expired", a.ID)
		}
	case ApprovalClosed:
		if a := o.s.Approval(b.Approval); b.State == ApprovalExpired && (a.Expires == 0 || o.mono < a.Expires) {
			o.broken(t, "%s expired too early", a.ID)
		}
	case EffectIntended:
		if turn := o.s.Turn(b.Turn); turn == nil || turn.Stop == "" {
			o.broken(t, "%s was intended from a response without a stop reason", b.Effect)
		}
	case EffectCompleted:
		if f := o.s.Effect(b.Effect); f.Contract.Sender == SenderCommand && !f.Last().Started {
			o.broken(t, "%s ended without ever having started", b.Effect)
		}
	case EffectForced:
		if b.Typed == "" && before.Effect(b.Effect).State != StateNotHappened {
			o.broken(t, "%s was forced without typing", b.Effect)
		}
	case CompensationAsked:
		was := before.Effect(b.Effect)
		if us, ok := b.At.Since(quietSince(was)); was.State == StateAmbiguous && (!ok || us < was.Contract.InFlight) {
			o.broken(t, "%s is undone while it may still land", b.Effect)
		}
	}
}

func quietSince(f *Effect) Instant {
	if f.Quiescence == nil || f.Quiescence.Covers < len(f.Attempts) {
		return Instant{}
	}
	return f.Quiescence.At
}

// checkDispatch holds every promise about a dispatch that passed.
func (o *oracle) checkDispatch(t *rapid.T, before *State, d EffectDispatched) {
	was, now := before.Effect(d.Effect), o.s.Effect(d.Effect)
	if d.Attempt != len(was.Attempts)+1 {
		o.broken(t, "attempt %d follows %d", d.Attempt, len(was.Attempts))
	}
	if was.Contract.Writes && d.Pre.IsZero() {
		o.broken(t, "%s may write and starts from no snapshot", d.Effect)
	}
	if now.Auto > MaxAutoAttempts {
		o.broken(t, "%s was repeated by itself %d times", d.Effect, now.Auto)
	}
	if (was.State == StateNotHappened || was.State == StateForcedNot) && was.Contract.Probe != nil && !LookedSince(was, was.DecidedN) {
		o.broken(t, "%s is tried again without a fresh look", d.Effect)
	}
	if was.State == StateAmbiguous && was.Contract.Class == ClassKeyed && was.KeyPast {
		o.broken(t, "%s was sent with a key past its horizon", d.Effect)
	}
	if was.Retry {
		return // the operator's word is the grant, and passes the barriers
	}
	if before.Phase != PhaseRunning && was.Proposed() {
		o.broken(t, "%s was dispatched while the run was %s", d.Effect, before.Phase)
	}
	for _, other := range before.Open() {
		if other.ID != was.ID && other.State != StateIntended {
			o.broken(t, "%s was dispatched while %s is %s", d.Effect, other.ID, other.State)
		}
	}
	if !was.Asks {
		return
	}
	a := before.Approval(d.Approval)
	if a == nil || a.Digest != now.Last().Digest || a.Effect != was.ID {
		o.broken(t, "%s was dispatched as %s, agreed to was %+v", d.Effect, now.Last().Digest.Short(), a)
	}
	if a.State == ApprovalGrantedS && a.Expires != 0 && o.mono >= a.Expires {
		o.broken(t, "%s used approval %s after it had expired", d.Effect, a.ID)
	}
	resend := len(was.Attempts) > 0 && was.Last().Digest == a.Digest && (was.State == StateAmbiguous || was.State == StateNotHappened)
	if a.State != ApprovalGrantedS && (a.State != ApprovalConsumed || !resend) {
		o.broken(t, "%s used approval %s, which was %s", d.Effect, a.ID, a.State)
	}
}

func hasProof(f *Effect) bool {
	return slices.ContainsFunc(f.Evidence, func(v Evidence) bool { return v.Verdict == VerdictNotHappened }) && f.Quiescence != nil
}

func isFinal(s EffectState) bool {
	switch s {
	case StateHappened, StateNotHappened, StateForcedHappened, StateForcedNot, StateCompleted, StateRejected, StateCancelled, StateRefused, StateAbandoned:
		return true
	default:
		return false
	}
}

// verdictMayMove lists what may change a final state: evidence, the operator,
// a retry, an undoing.
func verdictMayMove(was, now *Effect, b Body) bool {
	switch b.(type) {
	case EffectSettled:
		return len(was.Evidence) > was.Considered
	case EffectForced, EffectAbandoned, CompensationAsked:
		return true
	case EffectDispatched:
		return was.State == StateNotHappened || was.State == StateForcedNot
	case RunClaimed:
		return now.State == StateAmbiguous
	default:
		return false
	}
}
