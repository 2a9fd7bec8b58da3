package drill

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"pawl/engine/machine"
	"pawl/ledger"
)

// rogue is a driver with every fault at once: beside the real engine, under the
// real lease, it proposes whatever looks like an event, and does what it gets
// through. Nothing but the guards of the fold stands in its way. It tells no
// lies about what it saw: a guard cannot know better than evidence.
type rogue struct {
	s   *sim
	rnd stream
}

// goRogue sets a rogue upon an episode.
func goRogue(s *sim) {
	r := &rogue{s: s, rnd: s.dice.on(topicStrategy, 1)}
	s.at(fairAt-1, func() { s.most = s.steps }) // whether it comes to an end is not the question here
	for i := range 60 {
		s.at(int64(i)*second/2+r.rnd.between(0, second), func() {
			p := s.owner()
			if p == nil || p.frozen > s.now || s.fair {
				return
			}
			s.spawn(p, func() { r.meddle(p) })
		})
	}
}

// state folds the run as it is in the ledger.
func (r *rogue) state(p *proc) (machine.State, bool) {
	evs, err := p.store.Store.Events(context.Background(), string(r.s.run), 0, 10000)
	if err != nil {
		return machine.State{}, false
	}
	var s machine.State
	for _, e := range evs {
		body, err := machine.Decode(e.Kind, e.Payload)
		if err != nil {
			return s, false
		}
		if s, err = machine.Fold(s, machine.Event{N: e.N, At: e.At, Actor: e.Actor, Epoch: e.Epoch, Body: body}); err != nil {
			return s, false
		}
	}
	return s, s.Tail > 0 && s.Space.Ready
}

// proposal is one event as a faulty driver would write it.
type proposal struct {
	body  machine.Body
	actor string
	epoch int64
	skip  int64 // added to the event's number
}

func (r *rogue) meddle(p *proc) {
	for range 6 {
		s, ok := r.state(p)
		if !ok {
			return
		}
		x := r.propose(&s)
		if x.body == nil {
			continue
		}
		if x.actor == "" {
			x.actor = machine.ActorEngine
		}
		if !r.commit(p, &s, x) {
			continue
		}
		if d, ok := x.body.(machine.EffectDispatched); ok {
			r.carryOut(p, d)
		}
	}
}

func (r *rogue) commit(p *proc, s *machine.State, x proposal) bool {
	ev := machine.Event{N: s.Tail + 1 + x.skip, At: r.s.clock().UnixMicro(), Actor: x.actor, Epoch: x.epoch, Body: x.body}
	if _, err := machine.Fold(*s, ev); err != nil {
		return false
	}
	if x.skip != 0 {
		r.s.fail(RuleTable, "", "event %d is taken after event %d", ev.N, s.Tail)
		return false
	}
	payload, err := machine.Encode(x.body)
	if err != nil {
		return false
	}
	part := ledger.Part{Run: string(r.s.run), Tail: s.Tail, Epoch: x.epoch, Events: []ledger.NewEvent{{Kind: x.body.Kind(), At: r.s.clock().UnixMicro(), Actor: x.actor, Payload: payload}}}
	if _, err := r.rnd.Read(part.Cmd[:]); err != nil {
		return false
	}
	_, err = p.store.Commit(context.Background(), ledger.Full, part)
	return err == nil
}

// carryOut acts on the world as a dispatch says, and notes that no end was seen.
func (r *rogue) carryOut(p *proc, d machine.EffectDispatched) {
	s, ok := r.state(p)
	if !ok {
		return
	}
	f := s.Effect(d.Effect)
	if f == nil {
		return
	}
	args := json.RawMessage(f.Args.Inline)
	n := number(args)
	if f.Contract.Sender == machine.SenderCommand {
		if r.rnd.percent(30) {
			return // it stays at its gate, and under way
		}
		cmd := r.s.world.launch(p, r.s.deed(n))
		cmd.ended = true
		if !r.commit(p, &s, proposal{body: machine.AttemptStarted{Effect: f.ID, Attempt: len(f.Attempts), Identity: cmd.identity}, epoch: s.Epoch, actor: machine.ActorEngine}) {
			return
		}
		if s, ok = r.state(p); !ok {
			return
		}
	}
	switch {
	case f.Tool != "act" && f.Tool != "undo", f.Contract.Class == machine.ClassRead:
	case f.Contract.Class == machine.ClassWorkspace:
		r.s.audit.sent(p, f.ID, d.Attempt, args)
		r.s.world.files[slot(n)] += 2
	default:
		r.s.audit.sent(p, f.ID, d.Attempt, args)
		r.s.world.send(f.ID, n, d.Attempt, f.Contract.Key)
	}
	if r.rnd.percent(20) {
		return // nobody notes anything
	}
	r.commit(p, &s, proposal{body: machine.EffectAmbiguous{Effect: f.ID, Attempt: len(f.Attempts), Cause: "nobody looked"}, epoch: s.Epoch, actor: machine.ActorEngine})
}

// propose makes up one event.
func (r *rogue) propose(s *machine.State) proposal {
	rnd := &r.rnd
	epoch := s.Epoch
	var f *machine.Effect
	if n := s.Effects.Len(); n > 0 {
		f = s.Effects.At(rnd.below(n))
	}
	op := machine.ActorOperator + "mallory"
	if f == nil || rnd.percent(10) {
		return r.proposeTurn(s)
	}
	if f.Tool != "act" && f.Tool != "undo" {
		return proposal{}
	}
	switch rnd.below(13) {
	case 0, 1, 2, 3:
		return r.proposeDispatch(s, f)
	case 4, 5:
		to := []machine.EffectState{machine.StateHappened, machine.StateNotHappened, machine.StateContradicted}[rnd.below(3)]
		return proposal{body: machine.EffectSettled{Effect: f.ID, State: to, Text: "so it seems"}, epoch: epoch}
	case 6:
		a := f.Last()
		if a == nil || f.State != machine.StateDispatched || f.Contract.Sender != machine.SenderCommand || a.Started {
			return proposal{}
		}
		return proposal{body: machine.EffectCompleted{Effect: f.ID, Attempt: a.N, Result: machine.Result{OK: true, Code: "0"}}, epoch: epoch}
	case 7:
		code := "timeout"
		if len(f.Attempts) > 1 && rnd.percent(50) {
			code = "refused"
		}
		if f.State != machine.StateDispatched || code == "refused" && provenBefore(f) {
			return proposal{}
		}
		return proposal{body: machine.EffectRejected{Effect: f.ID, Attempt: len(f.Attempts), Code: code}, epoch: epoch}
	case 8:
		return proposal{body: machine.EffectForced{Effect: f.ID, Choice: machine.ChooseHappened, Reason: "", Typed: "e"}, actor: op}
	case 9:
		return proposal{body: machine.CompensationAsked{Effect: f.ID, Reason: "undo"}, actor: op}
	case 10:
		if f.State != machine.StateIntended {
			return proposal{}
		}
		expires := r.s.clock().UnixMicro() + rnd.between(-second, 3*second)
		return proposal{body: machine.ApprovalRequested{Approval: s.NextApproval(), Effect: f.ID, Digest: f.Digest, Why: "hurry", Expires: expires}, epoch: epoch}
	case 11:
		if s.Approvals.Len() == 0 {
			return proposal{}
		}
		a := s.Approvals.At(rnd.below(s.Approvals.Len()))
		digest := a.Digest
		switch k := rnd.below(8); {
		case k < 3:
			digest = machine.DigestOf([]byte("else"))
		case k == 3:
			return proposal{body: machine.ApprovalClosed{Approval: a.ID, State: machine.ApprovalExpired}, epoch: epoch}
		}
		return proposal{body: machine.ApprovalGranted{Approval: a.ID, Digest: digest}, actor: op}
	}
	// What a process writes that has no lease, or an old one.
	return proposal{body: machine.EffectDispatched{Effect: f.ID, Attempt: len(f.Attempts) + 1, Approval: f.Approval, Pre: r.tree(f)}}
}

func provenBefore(f *machine.Effect) bool {
	for _, a := range f.Attempts[:len(f.Attempts)-1] {
		if a.Forced || a.End != machine.EndNotHappened && a.End != machine.EndRejected {
			return false
		}
	}
	return true
}

func (r *rogue) tree(f *machine.Effect) machine.Snapshot {
	if !f.Contract.Writes || r.rnd.percent(25) {
		return machine.Snapshot{}
	}
	t := treeOf(r.s.world.files)
	return machine.Snapshot{Commit: "c" + t, Tree: t}
}

func (r *rogue) proposeDispatch(s *machine.State, f *machine.Effect) proposal {
	d := machine.EffectDispatched{Effect: f.ID, Attempt: len(f.Attempts) + 1, Approval: f.Approval, Pre: r.tree(f)}
	switch r.rnd.below(8) {
	case 0:
		d.Attempt = len(f.Attempts) + 2
	case 1:
		d.Approval = ""
	case 2:
		d.Digest = machine.DigestOf([]byte("something else"))
	case 3:
		if n := s.Approvals.Len(); n > 0 {
			d.Approval = s.Approvals.At(r.rnd.below(n)).ID
		}
	}
	return proposal{body: d, epoch: s.Epoch}
}

// proposeTurn makes up events about the run, its turns and new effects.
func (r *rogue) proposeTurn(s *machine.State) proposal {
	last := s.LastTurn()
	turn := s.Turns.Len()
	switch r.rnd.below(6) {
	case 0:
		ask := machine.TurnRequested{Turn: turn + 1, Attempt: 1, Window: s.Window}
		if r.rnd.percent(50) {
			ask.Tokens = 1 << 40
		}
		if last != nil && last.State == machine.TurnBroken {
			ask.Turn, ask.Attempt = turn, last.Attempts+1
		}
		return proposal{body: ask, epoch: s.Epoch}
	case 1:
		if last == nil || last.State != machine.TurnAsked {
			return proposal{}
		}
		return proposal{body: machine.TurnResponded{Turn: turn, Text: machine.Text{Inline: "cut off"}}, epoch: s.Epoch}
	case 2:
		id := machine.EffectIDOf(s.Charter.ID, s.Effects.Len()+2)
		return proposal{body: r.intent(id, turn, machine.ClassProbeable), epoch: s.Epoch}
	case 3:
		return proposal{body: r.intent(s.NextEffect(), turn, machine.ClassUnknown), epoch: s.Epoch}
	case 4:
		return proposal{body: machine.PlanUpdated{}, epoch: s.Epoch, skip: 1}
	}
	return proposal{body: r.intent(s.NextEffect(), turn+1, machine.ClassProbeable), epoch: s.Epoch}
}

func (r *rogue) intent(id machine.EffectID, turn int, c machine.Class) machine.Body {
	return machine.EffectIntended{
		Effect: id, Turn: turn, Call: 7, Tool: "act", Summary: "made up", Args: machine.Text{Inline: `{"n":0}`}, Digest: machine.DigestOf([]byte(id)),
		Contract: machine.Contract{Name: "act-0", Class: c, Sender: machine.SenderPawl},
	}
}

// guarded are the rules that the guards of the fold keep by themselves, with
// any driver. The others need the driver too: it has to go on, and to keep rows.
func guarded(v Violation) bool {
	switch v.Rule {
	case RuleRest, RuleEnds, RuleDriver, RuleConsistency, RulePack, RuleTwice:
		return false
	default:
		return v.Lie == Honest
	}
}

// roguePlan leaves room for misuse: more faults, no operators who are wrong.
func roguePlan(seed uint64) *Plan {
	p := NewPlan(seed, true)
	p.Wrong, p.Tokens = 0, 50_000_000
	for i := range p.Effects {
		p.Effects[i].File = false // which file was read is the driver's to check
		p.Effects[i].Ignored = false
	}
	return p
}

// findRogue plays rogue episodes until one breaks a guarded rule.
func findRogue(k *kit, from uint64, most int) (seeds int, found []Violation, err error) {
	k.extra = goRogue
	defer func() { k.extra = nil }()
	for i := range most {
		e, err := k.play(roguePlan(from+uint64(i)), false, false)
		if err != nil {
			return i, nil, err
		}
		for _, v := range e.Violations {
			if guarded(v) {
				found = append(found, v)
			}
		}
		if len(found) > 0 {
			return i + 1, found, nil
		}
	}
	return most, nil, nil
}

// With the guards in place no driver can break what they guard, however faulty it is.
func TestGuardsHoldAgainstAnyDriver(t *testing.T) {
	n := seedsOfTest(t) / 10
	seeds, found, err := findRogue(newKit(), 1, n)
	if err != nil {
		t.Fatal(err)
	}
	if len(found) > 0 {
		k := newKit()
		k.extra = goRogue
		e, err := k.play(roguePlan(uint64(seeds)), true, false)
		if err != nil {
			t.Fatal(err)
		}
		t.Errorf("seed %d: %v\n%s\n%s", seeds, found, e.Plan, fmt.Sprint(lines(e.Trace)))
	}
}

func lines(trace []string) string {
	out := ""
	for _, l := range trace {
		out += l + "\n"
	}
	return out
}
