package drill

import (
	"fmt"
	"strings"

	"pawl/engine/machine"
)

// Plan is one episode: what the model does, what breaks, who meddles. It is
// drawn from a seed, and can be cut down while it still fails.
type Plan struct {
	Seed    uint64
	Effects []Deed
	Turns   [][]int // the calls of each turn, as indices of Effects
	Faults  []Fault
	Acts    []Act
	Lie     Lie
	Wrong   int  // percent of verdicts that an operator gets wrong
	Double  bool // every recovery is killed once, right after its claim
	Calm    bool // nothing else happens by chance, and operators are quick and sane
	// CancelIn cancels the run while its n-th effect, from 1, is on its way; 0: never.
	CancelIn int
	Tokens   int64 // budget of the run in tokens; 0: none
	CAS      bool  // the other side takes a repeated delivery for the same one
	// Fates, where set, decide about attempts instead of the seed.
	Fates func(effect, attempt int) Fate
}

// Deed is one effect that the model proposes.
type Deed struct {
	Class    machine.Class
	Sender   machine.Sender
	Gated    bool // needs an approval
	File     bool // the approval covers a file that may change
	Declared bool // re-runnable by the operator's word
	Probe    *machine.Probe
	Lag      int64 // µs that a probe is behind
	D        int64 // the contract's in-flight bound, µs
	Most     int64 // the world's own bound, µs; at most D under an honest contract
	Horizon  int64 // of the key, µs
	Keeps    int64 // how long the other side really keeps keys, µs
	Undo     bool  // has a compensation
	NullSafe bool
	Inner    bool  // a command in a pid namespace of its own
	Orphan   bool  // a command that outlives Pawl
	Ignored  bool  // a command that changes ignored files
	Takes    int64 // µs
}

// Trouble is a kind of fault.
type Trouble uint8

// The faults.
const (
	Crash  Trouble = iota + 1 // the process is killed
	Freeze                    // it stops for a while, and wakes as if nothing had been
	Power                     // the machine loses power
	Full                      // the disk is full for a while
	troubles
)

func (t Trouble) String() string {
	return [...]string{"none", "kill -9", "stopped", "power cut", "disk full"}[t]
}

// Fault breaks something at the At-th boundary that any process passes:
// before and after each commit, at each crash point, at first and last bytes.
type Fault struct {
	At   int
	Kind Trouble
	For  int64 // µs
}

// Act is something that people do besides answering.
type Act struct {
	At   int64 // µs
	What string
}

// Lie is a contract that the world breaks.
type Lie uint8

// The lies.
const (
	Honest        Lie = iota
	LateLanding       // lands later than D
	ProbeYes          // the probe says happened, and it did not
	ProbeNo           // the probe says not happened, and it did
	AckEmpty          // acknowledged, and nothing was done
	KeyForgotten      // the key was forgotten before its horizon
	RejectedLands     // turned away, and done all the same
	Redelivered       // delivered twice, without a key
	LagOverSettle     // the probe is further behind than its settle time
	lies
)

var lieNames = [...]string{
	"honest", "landed later than the in-flight bound D", "the probe said that it happened", "the probe said that it did not happen",
	"acknowledged without doing it", "the key was forgotten before its horizon", "turned away as before-effect, and done all the same",
	"one delivery arrived twice", "the probe lagged behind its settle time",
}

func (l Lie) String() string { return lieNames[l] }

// NewPlan draws an episode from a seed. Honest episodes break no contract.
func NewPlan(seed uint64, honest bool) *Plan {
	p := &Plan{Seed: seed}
	r := dice(seed).on(topicPlan)
	n := 1 + r.below(6)
	if r.percent(50) {
		n = 1 + r.below(3)
	}
	for range n {
		p.Effects = append(p.Effects, drawDeed(&r))
	}
	for i := 0; i < n; {
		k := 1 + r.below(min(3, n-i))
		var turn []int
		for range k {
			turn = append(turn, i)
			i++
		}
		p.Turns = append(p.Turns, turn)
	}
	if !honest {
		p.Lie = Lie(1 + r.below(int(lies)-1))
	}
	reach := 14 + 18*n
	for range []int{0, 1, 1, 1, 2, 2, 3}[r.below(7)] {
		f := Fault{At: 1 + r.below(reach), Kind: Crash}
		switch k := r.below(20); {
		case k < 11:
		case k < 15:
			f.Kind, f.For = Freeze, []int64{2 * second, 20 * second, 40 * second, 90 * second}[r.below(4)]
		case k < 18:
			f.Kind = Power
		default:
			f.Kind, f.For = Full, r.between(second, 20*second)
		}
		p.Faults = append(p.Faults, f)
		if r.percent(35) { // again, while the first one is being recovered from
			p.Faults = append(p.Faults, Fault{At: f.At + 1 + r.below(24), Kind: Crash})
		}
	}
	if r.percent(25) {
		for range 1 + r.below(2) {
			p.Acts = append(p.Acts, Act{At: r.between(0, 40*second), What: []string{"pause", "pause", "cancel", "tell", "edit", "touch", "contend"}[r.below(7)]})
		}
	}
	if r.percent(30) {
		p.Wrong = []int{5, 20, 50}[r.below(3)]
	}
	if p.Lie != Honest {
		for i := range p.Effects {
			p.Effects[i].believe(p.Lie)
		}
	}
	return p
}

func drawDeed(r *stream) Deed {
	d := Deed{Takes: r.between(20*ms, 2*second), D: 5 * second, Inner: r.percent(80), Orphan: r.percent(40), Gated: r.percent(30)}
	d.Most = d.D
	probe := func() {
		d.Probe = &machine.Probe{Kind: "drill", ReadsOwnWrites: r.percent(50), ProvesNot: r.percent(85)}
		if !d.Probe.ReadsOwnWrites {
			d.Probe.Settle = 3 * second
			d.Lag = r.between(0, d.Probe.Settle)
		}
	}
	d.Sender = machine.SenderPawl
	switch r.below(10) {
	case 0:
		d.Class, d.Gated = machine.ClassRead, false
	case 1, 2:
		d.Class, d.Sender, d.Gated, d.Ignored = machine.ClassWorkspace, machine.SenderCommand, false, r.percent(10)
	case 3:
		d.Class, d.Sender, d.Gated = machine.ClassWorkspace, machine.SenderLocal, false
	case 4, 5:
		d.Class, d.Horizon = machine.ClassKeyed, []int64{0, 10 * second, minute, 24 * 60 * minute}[r.below(4)]
		d.Keeps = d.Horizon + 10*minute
		if d.Horizon == 0 {
			d.Keeps = 1 << 60
		}
		if r.percent(50) {
			probe()
		}
	case 6, 7:
		d.Class = machine.ClassProbeable
		probe()
		if r.percent(40) {
			d.Sender = machine.SenderCommand
		}
	case 8:
		d.Class, d.Undo, d.NullSafe = machine.ClassCompensable, true, r.percent(50)
		probe()
	case 9:
		d.Class = machine.ClassIrreversible
		if r.percent(30) {
			probe()
		}
		if r.percent(30) {
			d.Sender, d.Declared = machine.SenderCommand, r.percent(50)
		}
	}
	d.File = d.Gated && r.percent(40)
	return d
}

// believe makes a deed one that the lie can be told about.
func (d *Deed) believe(l Lie) {
	switch l {
	case LateLanding:
		d.Most = 10 * d.D
	case KeyForgotten:
		d.Keeps = d.Horizon / 8
		if d.Horizon == 0 {
			d.Keeps = 2 * second
		}
	case LagOverSettle:
		if d.Probe != nil {
			d.Lag = 60 * second
		}
	case Honest, ProbeYes, ProbeNo, AckEmpty, RejectedLands, Redelivered, lies:
	}
}

// Fate is what the world does with one attempt.
type Fate struct {
	Lands   bool  // it takes effect
	Delay   int64 // µs from its first byte to that
	Acked   bool  // the answer reaches the sender
	Refused bool  // turned away before it took effect, and the sender is told
	Failed  bool  // an answer that says no; nothing was done
	Twice   bool  // delivered twice
	Dies    Moment
}

// Moment is where in an attempt its sender dies.
type Moment uint8

// The moments.
const (
	Lives      Moment = iota
	BeforeByte        // dispatched, nothing sent
	InFlight          // sent
	BeforeAck         // the answer is in, and not recorded
)

// fate draws what becomes of an attempt.
func (p *Plan) fate(effect, attempt int) Fate {
	if p.Fates != nil {
		return p.Fates(effect, attempt)
	}
	r := dice(p.Seed).on(topicFate, effect, attempt)
	d := &undoDeed
	if effect < undoes {
		d = &p.Effects[effect]
	}
	f := Fate{Lands: true, Acked: true, Delay: r.between(ms, 200*ms)}
	switch k := r.below(100); {
	case k < 60:
	case k < 70:
		f.Acked = false
	case k < 78:
		f.Acked, f.Delay = false, r.between(0, d.Most)
	case k < 86:
		f.Acked, f.Lands = false, false
	case k < 93:
		f.Refused, f.Lands = true, p.Lie == RejectedLands
	default:
		f.Failed, f.Lands = true, false
	}
	switch {
	case p.Lie == LateLanding && f.Lands && r.percent(50):
		f.Acked, f.Delay = false, r.between(d.D+1, d.Most)
	case p.Lie == AckEmpty && f.Acked && r.percent(50):
		f.Lands, f.Refused, f.Failed = false, false, false
	}
	f.Twice = f.Lands && r.percent(15) && (d.Class == machine.ClassKeyed || p.Lie == Redelivered)
	return f
}

// String is the plan in a few lines.
func (p *Plan) String() string {
	var b strings.Builder
	for i, d := range p.Effects {
		fmt.Fprintf(&b, "effect %d: %s, sent by %s", i+1, d.Class, senderName(d.Sender))
		for _, w := range []struct {
			is   bool
			word string
		}{
			{d.Gated, "gated"},
			{d.File, "on a file"},
			{d.Declared, "declared re-runnable"},
			{d.Undo, "can be undone"},
			{d.NullSafe, "null-safe"},
			{d.Sender == machine.SenderCommand && d.Inner, "own pid namespace"},
			{d.Sender == machine.SenderCommand && d.Orphan, "outlives Pawl"},
			{d.Ignored, "changes ignored files"},
		} {
			if w.is {
				b.WriteString(", " + w.word)
			}
		}
		if d.Probe != nil {
			fmt.Fprintf(&b, ", probe (reads own writes: %v, settle %ds, may prove not: %v)", d.Probe.ReadsOwnWrites, d.Probe.Settle/second, d.Probe.ProvesNot)
		}
		if d.Horizon > 0 {
			fmt.Fprintf(&b, ", key for %ds", d.Horizon/second)
		}
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "turns: %v", p.Turns)
	for _, f := range p.Faults {
		fmt.Fprintf(&b, "; %s at boundary %d", f.Kind, f.At)
		if f.For > 0 {
			fmt.Fprintf(&b, " for %.1fs", float64(f.For)/1e6)
		}
	}
	for _, a := range p.Acts {
		fmt.Fprintf(&b, "; %s at %.1fs", a.What, float64(a.At)/1e6)
	}
	if p.Wrong > 0 {
		fmt.Fprintf(&b, "; operators are wrong %d %% of the time", p.Wrong)
	}
	if p.Lie != Honest {
		fmt.Fprintf(&b, "; lie: %s", p.Lie)
	}
	if p.Double {
		b.WriteString("; every recovery is killed once after its claim")
	}
	return b.String()
}

func senderName(s machine.Sender) string {
	switch s {
	case machine.SenderPawl:
		return "Pawl"
	case machine.SenderCommand:
		return "a command"
	case machine.SenderLocal:
		return "Pawl's own edit"
	case machine.SenderUnknown:
	}
	return "nobody known"
}
