package drill

import (
	"context"
	"fmt"

	"pawl/engine"
	"pawl/engine/machine"
)

// Episode is what came of one plan.
type Episode struct {
	Plan       *Plan
	Violations []Violation
	Events     int64 // of the ledger
	World      []Entry
	Boundaries int // at which something could have broken
	Crashes    int
	Trace      []string // if asked for
	Lied       bool     // a contract was broken

	// for comparisons
	facts    map[machine.EffectID]*fact
	deeds    map[machine.EffectID]*done
	order    []machine.EffectID
	files    disk
	recovery []int64
	asked    int
	ended    int64
	phase    machine.Phase
	fulls    int // commits that waited for a sync
}

// Open is what of an episode nothing explains: under honest contracts there
// must be nothing.
func (e *Episode) Open() []Violation {
	var out []Violation
	for _, v := range e.Violations {
		if v.Lie == Honest {
			out = append(out, v)
		}
	}
	return out
}

// maxSteps bounds an episode; what takes longer does not end.
const maxSteps = 60000

// play runs one episode.
func (k *kit) play(p *Plan, traced, onDisk bool) (*Episode, error) {
	s := &sim{plan: p, dice: dice(p.Seed), kit: k, boot: 1}
	k.cur = s
	s.idle = &k.idle
	s.most, s.order, s.jump = maxSteps, s.dice.on(topicOrder), s.passed
	s.world = world{s: s, deeds: map[machine.EffectID]*done{}, keys: map[string]int64{}, commands: map[int]*command{}}
	s.audit = newAudit(s)
	if traced {
		s.trace = &trace{}
	}
	var err error
	if onDisk {
		dir, derr := tempDir()
		if derr != nil {
			return nil, derr
		}
		s.disk = newFile(dir)
	} else if s.disk, err = newMemory(s); err != nil {
		return nil, err
	}
	defer s.disk.close()
	if err := s.begin(); err != nil {
		return nil, err
	}
	if k.extra != nil {
		k.extra(s)
	}
	ended := s.play()
	if s.wild != nil {
		t := s.wild.(trouble)
		s.fail(RuleDriver, "", "the program panics: %v\n%s", t.what, t.stack)
	} else if !ended {
		s.fail(RuleEnds, "", "no end after %d steps", s.steps)
	}
	s.end(nil)
	s.verify(ended && s.wild == nil)
	e := &Episode{
		Plan: p, Violations: s.audit.found, Events: s.audit.n, World: s.world.log, Boundaries: s.boundary, facts: s.audit.facts, deeds: s.world.deeds,
		order: s.audit.order, files: s.world.files, recovery: s.recovery, asked: s.asked, ended: s.now, phase: s.audit.phase, fulls: s.audit.fulls,
	}
	for _, d := range s.world.deeds {
		e.Lied = e.Lied || d.lied != Honest
	}
	for _, p := range s.procs {
		if p.dead {
			e.Crashes++
		}
	}
	if s.trace != nil {
		e.Trace = s.trace.lines
	}
	return e, nil
}

// begin makes the run, its first owner, two operators, and what else happens.
func (s *sim) begin() error {
	p, err := s.start("pawl", true)
	if err != nil {
		return err
	}
	s.fair = true // making the run is not part of the drill: without it there is nothing to recover
	s.spawn(p, func() {
		id, err := p.engine.Create(context.Background(), engine.NewRun{Goal: "drill", Model: "drill/model", MaxTokens: s.plan.Tokens})
		if err != nil {
			s.fail(RuleDriver, "", "the run cannot be made: %v", err)
			return
		}
		s.run, s.fair, s.boundary = id, false, 0
		s.own(p)
	})
	s.at(0, func() {}) // the run is made before anybody else sits down
	s.hire(ms, "ann")
	s.hire(2*ms, "bob")
	for _, a := range s.plan.Acts {
		s.at(a.At, func() { s.meddle(a) })
	}
	if !s.calm() {
		s.at(fairAt, func() {
			s.note("from here on nothing breaks")
			s.fair = true
			s.wake()
		})
	}
	return nil
}

// verify holds the end of an episode against the rules.
func (s *sim) verify(ended bool) {
	if !ended {
		return
	}
	for _, id := range s.audit.order {
		f, w := s.audit.facts[id], s.world.of(id)
		switch {
		case w.pending > 0:
			s.fail(RuleDriver, id, "something is still on its way") // of the simulation, not of the engine
		case s.audit.phase.Ended() && f.state == machine.StateDispatched, f.state == machine.StateAmbiguous, f.state == machine.StateContradicted,
			f.state == machine.StateCompensating, f.state == machine.StateIntended:
			s.fail(RuleRest, id, "it is %s at the end", f.state)
		}
	}
	if s.run != "" && s.plan.Seed%8 == 0 {
		s.consistent()
	}
}

// consistent folds everything again and compares the rows.
func (s *sim) consistent() {
	st, _, err := s.disk.open("auditor", s)
	if err != nil {
		s.fail(RuleConsistency, "", "the ledger cannot be opened at the end: %v", err)
		return
	}
	e, err := engine.New(engine.Options{Store: st, Models: models{s}, Tools: s.kit.tools, Level: &s.kit.level, Self: machine.Identity{PID: 1}, Turns: &proc{s: s}})
	if err != nil {
		s.fail(RuleConsistency, "", "%v", err)
		return
	}
	v, err := e.Verify(context.Background(), nil)
	if err != nil {
		s.fail(RuleConsistency, "", "%v", err)
	}
	for _, p := range v.Problems {
		s.fail(RuleConsistency, "", "%s", p)
	}
	s.disk.kill(st)
}

// Play runs one plan, traced.
func Play(p *Plan) (*Episode, error) {
	k := newKit()
	defer k.close()
	return k.play(p, true, false)
}

func (e *Episode) String() string {
	return fmt.Sprintf("seed %d: %d events, %d deeds in the world, %d boundaries, %d processes died, %d violations", e.Plan.Seed, e.Events, len(e.World), e.Boundaries, e.Crashes, len(e.Violations))
}
