package drill

import "pawl/engine/machine"

// Strategy is a way to go on after an attempt without a recorded end.
type Strategy string

// The nine strategies. All but the last are small models of what other
// runtimes do; the last is the real machine.
const (
	NaiveReplay    Strategy = "naive replay"     // after a crash run again whatever has no result; a time-out is an error
	BlindRetry     Strategy = "blind retry"      // crash or time-out: send again, three times
	SkipFailed     Strategy = "skip as failed"   // no result is a failure
	SkipDone       Strategy = "skip as done"     // no result is a success
	KeyOnly        Strategy = "key only"         // send again under the same key, where there is one
	ProbeNow       Strategy = "probe at once"    // look, then trust what was seen
	ProbeLate      Strategy = "probe after D"    // wait for the in-flight bound and the settle time, then look
	AskAlways      Strategy = "ask always"       // a person decides each one
	ClassPolicy    Strategy = "Pawl"             // the class policy, on the real machine
	restartTime             = 10 * second        // from a crash to the next process
	lookTime                = 150 * ms           // one look at the world
	askFrom, askTo          = minute, 9 * minute // how long a person takes
)

// Strategies lists all of them.
func Strategies() []Strategy {
	return []Strategy{NaiveReplay, BlindRetry, SkipFailed, SkipDone, KeyOnly, ProbeNow, ProbeLate, AskAlways, ClassPolicy}
}

// Tally counts what came of one or more runs.
type Tally struct {
	Effects        int     `json:"effects"`
	Ambiguous      int     `json:"ambiguous"`       // effects whose first attempt had no recorded end
	Duplicates     int     `json:"duplicates"`      // times that something is there too often
	Losses         int     `json:"losses"`          // not there, and the work went on as if they were
	FalseSuccesses int     `json:"false_successes"` // of the losses, those where no person said so
	FalseFailures  int     `json:"false_failures"`  // there, and the model was told that it failed
	Unknown        int     `json:"unknown"`         // left open, and the model was told so
	Asked          int     `json:"asked"`           // decisions asked of a person
	Contradictions int     `json:"contradictions"`  // verdicts that were reopened by evidence
	AfterCancel    int     `json:"after_cancel"`    // attempts sent after the cancel
	Syncs          int     `json:"syncs"`           // blocking syncs of the record
	Fell           int     `json:"fell"`            // invariants that fell under honest contracts; of the real machine only
	Times          []int64 `json:"-"`               // µs from first dispatch to a decided outcome, of the ambiguous
}

// Wrong is how often the world is not as the work takes it to be. A failure
// that is told as one is not wrong: the model can do something else.
func (t *Tally) Wrong() int { return t.Duplicates + t.Losses + t.FalseFailures }

func (t *Tally) add(o Tally) {
	t.Effects += o.Effects
	t.Ambiguous += o.Ambiguous
	t.Duplicates += o.Duplicates
	t.Losses += o.Losses
	t.FalseSuccesses += o.FalseSuccesses
	t.FalseFailures += o.FalseFailures
	t.Unknown += o.Unknown
	t.Asked += o.Asked
	t.Contradictions += o.Contradictions
	t.AfterCancel += o.AfterCancel
	t.Syncs += o.Syncs
	t.Fell += o.Fell
	t.Times = append(t.Times, o.Times...)
}

// story is one effect under a modelled strategy.
type story struct {
	s       schedule
	d       Deed
	n       int
	now     int64
	landed  []int64 // when
	first   int64   // when the other side first knew the key
	known   bool
	said    verdict
	byHuman bool
	tally   Tally
	half    bool // a command left half of its work
}

type verdict uint8

const (
	saidNothing verdict = iota
	saidDone
	saidFailed
)

// model plays a workload under one of the eight modelled strategies.
func (s schedule) model(st Strategy) Tally {
	var sum Tally
	for n := range s.w.Count {
		if s.w.Cancel > 0 && n > s.w.Cancel-1 {
			break // cancelled before it was sent
		}
		x := story{s: s, d: s.deed(), n: n}
		x.play(st, s.w.Cancel == n+1)
		sum.add(x.tally)
	}
	return sum
}

// play takes one effect to a decided outcome. After a cancel none of these
// strategies knows a barrier: what they would do, they do.
func (x *story) play(st Strategy, cancelled bool) {
	x.tally.Effects = 1
	x.tally.Syncs = 1 // the result
	if st == KeyOnly || st == ProbeNow || st == ProbeLate || st == AskAlways {
		x.tally.Syncs = 2 // and the intent before
	}
	const most = 4
	for attempt := 1; ; attempt++ {
		f := x.s.fate(x.n, attempt)
		x.send(f, st)
		if cancelled && attempt > 1 {
			x.tally.AfterCancel++
		}
		if !f.faulty() {
			x.said = saidDone
			x.now += f.Delay
			break
		}
		if attempt == 1 {
			x.tally.Ambiguous = 1
		}
		x.now += restartTime // or the time-out, which is as long
		if attempt >= most || x.settle(st, f) {
			break
		}
		x.tally.Syncs++
	}
	x.judge()
}

// send lets an attempt reach the world.
func (x *story) send(f Fate, st Strategy) {
	if x.d.Class == machine.ClassWorkspace {
		// Nothing restores the files: a command adds to what is there.
		switch {
		case f.Dies == BeforeByte:
		case f.Dies == InFlight:
			x.half = true
		default:
			x.landed = append(x.landed, x.now)
		}
		return
	}
	if !f.Lands {
		return
	}
	at := x.now + f.Delay
	keyed := x.d.Class == machine.ClassKeyed && st != NaiveReplay && st != BlindRetry || x.s.w.CAS
	if keyed && x.known && (x.s.w.CAS || at-x.first <= x.d.Keeps) {
		return
	}
	if !x.known {
		x.first, x.known = at, true
	}
	x.landed = append(x.landed, at)
}

// settle is what a strategy does about an attempt without an end. It reports
// whether that decides the effect; else it is sent again.
func (x *story) settle(st Strategy, f Fate) bool {
	switch st {
	case NaiveReplay:
		if f.Dies == Lives {
			x.said = saidFailed
			return true
		}
		return false
	case BlindRetry, KeyOnly:
		return false
	case SkipFailed:
		x.said = saidFailed
		return true
	case SkipDone:
		x.said = saidDone
		return true
	case ProbeNow, ProbeLate:
		if x.d.Class == machine.ClassWorkspace || x.d.Probe == nil {
			return false // nothing to look at: again
		}
		lag := x.s.w.Effect.Lag
		if st == ProbeLate {
			x.now += x.d.D + x.d.Probe.Settle
		}
		x.now += lookTime
		if x.there(lag) {
			x.said = saidDone
			return true
		}
		return false
	case AskAlways:
		return x.ask()
	case ClassPolicy:
	}
	return true
}

// ask lets a person look and decide.
func (x *story) ask() bool {
	r := dice(x.s.seed).on(topicOperator, x.n, x.tally.Asked)
	x.tally.Asked++
	x.now += r.between(askFrom, askTo)
	there := x.there(0)
	if r.percent(x.s.c.Wrong) {
		there = !there
	}
	x.byHuman = true
	if there {
		x.said = saidDone
	}
	return there
}

func (x *story) there(lag int64) bool {
	for _, at := range x.landed {
		if at <= x.now-lag {
			return true
		}
	}
	return false
}

// judge compares what was said with what is there when all has landed.
func (x *story) judge() {
	n := len(x.landed)
	x.tally.Duplicates += max(0, n-1)
	if x.half && n > 0 {
		x.tally.Duplicates++ // the half that was done before
	}
	if x.half && n == 0 {
		n = 1
		x.tally.Duplicates++ // half a change is there
	}
	switch {
	case n == 0 && x.said == saidDone:
		x.tally.Losses++
		if !x.byHuman {
			x.tally.FalseSuccesses++
		}
	case n == 0:
	case x.said == saidFailed:
		x.tally.FalseFailures++
	case x.said == saidNothing:
		x.tally.FalseFailures++ // given up after the last attempt: reported as an error
	}
	if x.tally.Ambiguous > 0 {
		x.tally.Times = []int64{x.now}
	}
}

// real plays the workload on the real machine.
func (s schedule) real(k *kit) (Tally, error) {
	p := s.plan()
	e, err := k.play(p, false, false)
	if err != nil {
		return Tally{}, err
	}
	var t Tally
	t.Syncs = e.fulls
	if !s.c.Late && !s.c.Blind && !s.c.Short {
		t.Fell = len(e.Violations)
	}
	for _, id := range e.order {
		f := e.facts[id]
		if !f.proposed || f.contract.Name == "" || f.contract.Class == machine.ClassRead {
			continue
		}
		if len(f.attempts) == 0 {
			continue // cancelled before it was sent
		}
		t.Effects++
		first := s.fate(number([]byte(f.args)), 1)
		if first.faulty() {
			t.Ambiguous++
			t.Times = append(t.Times, f.over-f.begun)
		}
		n := 0
		if d := e.deeds[id]; d != nil {
			n = len(d.landed)
		}
		if f.contract.Class == machine.ClassWorkspace {
			steps := int(e.files[slot(number([]byte(f.args)))])
			n = (steps + 1) / 2
			if steps%2 == 1 && f.state != machine.StateAbandoned { // half a change that nobody was told of
				t.Duplicates++
			}
		}
		t.Duplicates += max(0, n-1)
		t.Asked += f.asked
		t.AfterCancel += f.afterCancel
		if f.contradicted {
			t.Contradictions++
		}
		switch f.state {
		case machine.StateCompleted, machine.StateHappened, machine.StateForcedHappened:
			if n == 0 {
				t.Losses++
				if !f.forced {
					t.FalseSuccesses++
				}
			}
		case machine.StateNotHappened, machine.StateForcedNot, machine.StateRejected:
			if n > 0 {
				t.FalseFailures++
			}
		default:
			t.Unknown++
		}
	}
	return t, nil
}
