package drill

import "pawl/engine/machine"

// Workload is a kind of work that an agent does, as far as recovery is concerned.
type Workload struct {
	Name   string
	Effect Deed
	Count  int
	Once   bool // all in one turn
	Cancel int  // the run is cancelled while this effect is on its way; 0: never
	CAS    bool // the other side takes a repeated delivery for the same one
}

// Workloads are the eight of the comparison. Where several runs would be
// delegated one run stands for them: eight effects of one turn.
func Workloads() []Workload {
	look := func(own bool, settle int64) *machine.Probe {
		return &machine.Probe{Kind: "drill", ReadsOwnWrites: own, Settle: settle, ProvesNot: true}
	}
	base := Deed{Sender: machine.SenderPawl, D: 5 * second, Most: 5 * second, Takes: 500 * ms, Inner: true}
	with := func(change func(d *Deed)) Deed {
		d := base
		change(&d)
		return d
	}
	day := 24 * 60 * minute
	return []Workload{
		{Name: "payment with a key", Count: 4, Effect: with(func(d *Deed) {
			d.Class, d.Horizon, d.Keeps = machine.ClassKeyed, day-60*minute, day
		})},
		{Name: "e-mail, search lags", Count: 4, Effect: with(func(d *Deed) {
			d.Class, d.Probe, d.Lag, d.D, d.Most = machine.ClassProbeable, look(false, 60*second), 45*second, 30*second, 30*second
		})},
		{Name: "ticket, list lags", Count: 4, Effect: with(func(d *Deed) {
			d.Class, d.Probe, d.Lag, d.Undo = machine.ClassCompensable, look(false, 5*second), 3*second, true
		})},
		{Name: "git push", Count: 4, CAS: true, Effect: with(func(d *Deed) {
			d.Class, d.Sender, d.Probe = machine.ClassProbeable, machine.SenderCommand, look(true, 0)
		})},
		{Name: "shell edits", Count: 4, Effect: with(func(d *Deed) {
			d.Class, d.Sender = machine.ClassWorkspace, machine.SenderCommand
		})},
		{Name: "irreversible webhook", Count: 4, Effect: with(func(d *Deed) { d.Class = machine.ClassIrreversible })},
		{Name: "fan-out, cancelled", Count: 8, Once: true, Cancel: 4, Effect: with(func(d *Deed) {
			d.Class, d.Probe = machine.ClassProbeable, look(true, 0)
		})},
		{Name: "approval batch", Count: 8, Once: true, Effect: with(func(d *Deed) {
			d.Class, d.Probe, d.Gated = machine.ClassProbeable, look(true, 0), true
		})},
	}
}

// Condition is what differs between cells of the same workload and strategy.
type Condition struct {
	Name  string
	Wrong int     // percent of verdicts that operators get wrong
	P     float64 // share of ambiguous attempts that landed
	Late  bool    // the world's in-flight bound is ten times the contract's
	Blind bool    // the contract claims that nothing is ever in flight: no quiescence
	Short bool    // keys are forgotten before recovery
}

// Conditions of the comparison: the honest one, what operators do to it, and
// what it costs to leave something out or to believe what is wrong.
func Conditions() []Condition {
	return []Condition{
		{Name: "honest", P: 0.5},
		{Name: "operators wrong 5 %", P: 0.5, Wrong: 5},
		{Name: "operators wrong 20 %", P: 0.5, Wrong: 20},
		{Name: "no quiescence", P: 0.5, Blind: true},
		{Name: "D wrong by ten", P: 0.5, Late: true},
		{Name: "key horizon exceeded", P: 0.5, Short: true},
	}
}

// schedule is what happens to each attempt: the same for every strategy.
type schedule struct {
	seed uint64
	w    *Workload
	c    Condition
}

// The faults of a comparison: how often, in percent, the first attempt of an
// effect and later ones end without an answer that is recorded.
const (
	faultFirst = 35
	faultLater = 15
)

// fate is what becomes of an attempt.
func (s schedule) fate(effect, attempt int) Fate {
	r := dice(s.seed).on(topicFate, effect, attempt)
	f := Fate{Lands: true, Acked: true, Delay: r.between(5*ms, 150*ms)}
	most := faultFirst
	if attempt > 1 || effect >= undoes {
		most = faultLater
	}
	if !r.percent(most) {
		return f
	}
	f.Lands = r.chance(s.c.P)
	d := s.w.Effect.Most
	if s.c.Late {
		d *= 10
	}
	kind := r.below(3)
	late := r.percent(40)
	delay := r.between(200*ms, d)
	switch {
	case kind == 0 && f.Lands:
		f.Dies = BeforeAck
	case kind == 0:
		f.Dies = BeforeByte
	case kind == 1:
		f.Dies, f.Acked = InFlight, false
	default:
		f.Acked = false
	}
	if late && f.Lands && f.Dies != BeforeAck {
		f.Delay = delay
	}
	return f
}

// faulty reports whether nobody has an answer on record after such an attempt.
func (f Fate) faulty() bool { return f.Dies != Lives || !f.Acked }

// deed is the workload's effect under a condition, as its contract has it.
func (s schedule) deed() Deed {
	d := s.w.Effect
	if s.c.Blind {
		d.D = 0
		if d.Probe != nil {
			p := *d.Probe
			p.ReadsOwnWrites, p.Settle = true, 0
			d.Probe = &p
		}
	}
	if s.c.Short && d.Horizon > 0 {
		d.Keeps = 3 * second
	}
	return d
}

// plan is the workload for the real machine.
func (s schedule) plan() *Plan {
	p := &Plan{Seed: s.seed, Fates: s.fate, Wrong: s.c.Wrong, CancelIn: s.w.Cancel, CAS: s.w.CAS}
	var turn []int
	for i := range s.w.Count {
		p.Effects = append(p.Effects, s.deed())
		if s.w.Once {
			turn = append(turn, i)
		} else {
			p.Turns = append(p.Turns, []int{i})
		}
	}
	if s.w.Once {
		p.Turns = [][]int{turn}
	}
	return p
}
