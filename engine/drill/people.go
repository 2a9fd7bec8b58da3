package drill

import (
	"context"
	"errors"

	"pawl/engine"
	"pawl/engine/machine"
)

// fairAt is when the schedule becomes fair: nothing breaks any more, everyone
// is honest, and the episode must come to an end.
const fairAt = 100 * second

// hire lets an operator sit down after d µs.
func (s *sim) hire(d int64, name string) {
	s.at(d, func() {
		p, err := s.start(name, false)
		if err != nil {
			s.fail(RuleDriver, "", "an operator cannot open the ledger: %v", err)
			return
		}
		s.spawn(p, func() { s.attend(p) })
	})
}

// attend is an operator's day: look at what waits, decide something.
func (s *sim) attend(p *proc) {
	ctx := context.Background()
	for round := 0; ; round++ {
		r := s.dice.on(topicOperator, p.n, round)
		pause := r.between(second, 30*second)
		if s.fair {
			pause = r.between(second, 6*second)
		}
		if s.calm() {
			pause = r.between(askFrom, askTo)
			if s.plan.Calm {
				pause = r.between(second, 3*second)
			}
		}
		s.sleep(ctx, pause)
		items, err := p.engine.Inbox(ctx)
		if err != nil {
			continue
		}
		todo := items[:0:0]
		for _, i := range items {
			f := s.audit.facts[machine.EffectID(i.ID)]
			failed := i.Kind == engine.KindConflict && (f == nil || !f.open()) // of a compensation: nothing waits for it
			if i.Kind != engine.KindFinished && !failed {
				todo = append(todo, i)
			}
		}
		if len(todo) > 0 {
			s.decide(ctx, p, todo[r.below(len(todo))], &r)
			s.wake()
			continue
		}
		if !s.fair && !s.calm() {
			continue
		}
		line, err := p.engine.Run(ctx, s.run)
		switch {
		case err != nil:
			continue
		case line.State == engine.Done, line.State == engine.Cancelled, line.State == engine.Failed:
			if s.settled() {
				return
			}
		case line.State == engine.Paused:
			_ = p.engine.Unpause(ctx, s.run) // somebody else may have been quicker
		}
		s.wake()
		if round > 600 {
			s.fail(RuleEnds, "", "the run is %s (%s), and nobody is asked anything", line.State, line.Note)
			return
		}
	}
}

// settled reports whether nothing of the run is open any more.
func (s *sim) settled() bool {
	for _, id := range s.audit.order {
		f := s.audit.facts[id]
		switch f.state {
		case machine.StateDispatched, machine.StateAmbiguous, machine.StateCompensating, machine.StateContradicted:
			return false
		default:
		}
		if len(f.evidence) > f.weighed {
			return false
		}
	}
	return true
}

// wake sees to it that somebody drives the run.
func (s *sim) wake() {
	if s.owner() == nil {
		s.replace(100 * ms)
	}
}

// decide answers one item. In an unfair schedule an operator may be wrong,
// clumsy, or somebody else may have been quicker: that must be refused, and
// the refusal is no fault.
func (s *sim) decide(ctx context.Context, p *proc, i engine.Item, r *stream) {
	s.asked++
	var err error
	switch i.Kind {
	case engine.KindApproval:
		err = s.approve(ctx, p, machine.ApprovalID(i.ID), r)
	case engine.KindAmbiguous, engine.KindContradicted, engine.KindConflict:
		err = s.settle(ctx, p, machine.EffectID(i.ID), r)
	default:
		q := machine.QuestionID(i.ID)
		answer := "extend 5"
		if i.Kind == engine.KindDrift {
			answer = machine.AnswerRetry
		}
		if !s.fair && r.percent(8) {
			answer = machine.AnswerStop
		}
		err = p.engine.Answer(ctx, q, answer)
	}
	if err != nil {
		s.note("%s is told: %v", p.name, err)
		var guard *machine.GuardError
		if errors.As(err, &guard) {
			s.fail(RuleDriver, "", "an operator's decision runs into a guard: %v", err)
		}
	}
}

func (s *sim) approve(ctx context.Context, p *proc, id machine.ApprovalID, r *stream) error {
	k := r.below(100)
	if s.fair || s.calm() {
		k = 0
	}
	switch {
	case k < 80:
		return p.engine.Approve(ctx, id, machine.Digest{})
	case k < 88:
		return p.engine.Deny(ctx, id, "not like this")
	case k < 94:
		return p.engine.Approve(ctx, id, machine.DigestOf([]byte("something else")))
	}
	return nil // left for later
}

// settle is an operator's verdict on an effect, after a look of his own.
func (s *sim) settle(ctx context.Context, p *proc, id machine.EffectID, r *stream) error {
	w := s.world.of(id)
	there := len(w.landed) > 0
	f := s.audit.facts[id]
	if f == nil {
		return nil
	}
	f.asked++
	words := engine.SettleWords{Reason: "I looked", Confirm: id.Short()}
	calm := s.fair || s.calm()
	if !calm {
		switch k := r.below(100); {
		case k < 12:
			return p.engine.Settle(ctx, id, machine.ChooseWait, words)
		case k < 24 && f.contract.Probe != nil:
			return p.engine.Settle(ctx, id, machine.ChooseProbe, words)
		case k < 32:
			return p.engine.Settle(ctx, id, machine.ChooseAbandon, words)
		case k < 40:
			return p.engine.Settle(ctx, id, machine.ChooseCompensate, words)
		case k < 44:
			words.Confirm = "e0"
		}
	}
	if f.contract.Class == machine.ClassWorkspace {
		n := number([]byte(f.args))
		have := s.world.files[slot(n)]
		if have%2 == 1 || s.alive(f) {
			return p.engine.Settle(ctx, id, machine.ChooseAbandon, words)
		}
		there = have > 0
	} else if !there && (w.pending > 0 || s.alive(f)) && !r.chance(float64(s.plan.Wrong)/100) {
		if f.contract.Class == machine.ClassIrreversible || s.steps > s.most*3/4 {
			return p.engine.Settle(ctx, id, machine.ChooseAbandon, words)
		}
		return p.engine.Settle(ctx, id, machine.ChooseWait, words) // it may still arrive
	}
	if s.plan.Wrong > 0 && r.percent(s.plan.Wrong) {
		there = !there
	}
	if there && f.state == machine.StateNotHappened {
		return p.engine.Settle(ctx, id, machine.ChooseAbandon, words) // there is no other way to say: leave it
	}
	if there {
		return p.engine.Settle(ctx, id, machine.ChooseHappened, words)
	}
	return p.engine.Settle(ctx, id, machine.ChooseRetry, words)
}

// alive reports whether anything that sent an effect can still act.
func (s *sim) alive(f *fact) bool {
	for _, p := range s.procs {
		if !p.dead && p.frozen > s.now {
			return true
		}
	}
	deed := s.deed(number([]byte(f.args)))
	for _, c := range s.world.commands {
		if c.deed == deed && c.steps != nil && !c.dead && !c.ended {
			return true
		}
	}
	return false
}

// meddle carries out what people do besides answering.
func (s *sim) meddle(a Act) {
	var op *proc
	for _, p := range s.procs {
		if !p.dead && !p.driver {
			op = p
		}
	}
	s.note("%s", a.What)
	switch a.What {
	case "edit":
		s.world.files[userSlot]++
		return
	case "touch":
		s.world.version++
		return
	case "contend":
		if p, err := s.start("pawl", true); err == nil {
			s.spawn(p, func() { s.own(p) })
		}
		return
	}
	if op == nil {
		return
	}
	s.spawn(op, func() {
		ctx := context.Background()
		var err error
		switch a.What {
		case "pause":
			err = op.engine.Pause(ctx, s.run, "wait")
		case "cancel":
			err = op.engine.Cancel(ctx, s.run, "enough")
		case "tell":
			err = op.engine.Tell(ctx, s.run, "be careful")
		}
		if err != nil {
			s.note("%s is told: %v", op.name, err)
		}
		s.wake()
	})
}
