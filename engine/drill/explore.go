package drill

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// ExploreOptions say how far to look. Zero values mean the defaults.
type ExploreOptions struct {
	First   uint64 // first seed; 1
	Seeds   int    // how many; 1000
	Workers int    // default: one for each core
	Disk    int    // every so many-th honest episode plays on a real ledger file as well; 0: none
	// Progress is told now and then, and for every failure, from any goroutine
	// but never from two at once.
	Progress func(Progress)
}

// Progress is how far an exploration has come.
type Progress struct {
	Episodes, Seeds int
	Failure         *Failure // a new one, if there is one
}

// Report is what an exploration found.
type Report struct {
	Episodes   int            `json:"episodes"`
	Violations int            `json:"violations"` // episodes with a broken invariant that no broken contract explains
	Honest     int            `json:"honest_episodes"`
	Lying      int            `json:"lying_episodes"`
	Twice      int            `json:"twice_recovered"`
	OnDisk     int            `json:"on_disk"`
	Named      map[string]int `json:"named_contracts"` // broken contract → episodes in which an invariant fell and it was named
	Events     int64          `json:"events"`
	Boundaries int64          `json:"boundaries"`
	Deaths     int64          `json:"deaths"`
	PerSecond  float64        `json:"episodes_per_second"`
	Workers    int            `json:"workers"`
	Failures   []Failure      `json:"failures"`
}

// Failure is one seed that fails, cut down to what is needed for it.
type Failure struct {
	Seed       uint64   `json:"seed"`
	Kind       string   `json:"kind"` // honest, lying, twice, disk
	Violations []string `json:"violations"`
	Plan       string   `json:"plan"`
	Trace      []string `json:"trace"`
}

// lazyGC is the collector's target while episodes are played: they leave much
// behind, and little of it lives.
const lazyGC = 800

// maxFailures bounds how many failures are kept with their traces.
const maxFailures = 10

// sort of an episode: what a seed is played as.
type sortOf struct {
	kind           string
	plan           *Plan
	onDisk, double bool
}

// variants are the episodes of one seed.
func variants(seed uint64, disk int) []sortOf {
	out := []sortOf{{kind: "honest", plan: NewPlan(seed, true)}}
	if seed%4 == 0 {
		out = append(out, sortOf{kind: "lying", plan: NewPlan(seed, false)})
	}
	if seed%8 == 0 {
		out = append(out, sortOf{kind: "twice", plan: calmPlan(seed), double: true})
	}
	if disk > 0 && seed%uint64(disk) == 0 {
		out = append(out, sortOf{kind: "disk", plan: NewPlan(seed, true), onDisk: true})
	}
	return out
}

// calmPlan has one crash and no other surprise, so that two recoveries can be compared.
func calmPlan(seed uint64) *Plan {
	p := NewPlan(seed, true)
	r := dice(seed).on(topicRestart, 99)
	p.Calm, p.Wrong, p.Acts = true, 0, nil
	p.Faults = []Fault{{At: 1 + r.below(14+18*len(p.Effects)), Kind: Crash}}
	for i := range p.Effects {
		if p.Effects[i].Horizon > 0 {
			p.Effects[i].Horizon = 24 * 60 * minute
		}
	}
	return p
}

// Explore plays seeds and reports what fell.
func Explore(ctx context.Context, o ExploreOptions) (Report, error) {
	if o.First == 0 {
		o.First = 1
	}
	if o.Seeds <= 0 {
		o.Seeds = 1000
	}
	if o.Workers <= 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	rep := Report{Named: map[string]int{}, Workers: o.Workers, Failures: []Failure{}}
	var next atomic.Uint64
	var mu sync.Mutex
	var group sync.WaitGroup
	errs := make([]error, o.Workers)
	defer debug.SetGCPercent(debug.SetGCPercent(lazyGC))
	begin := time.Now()
	for w := range o.Workers {
		group.Go(func() {
			k := newKit()
			defer k.close()
			for ctx.Err() == nil {
				i := next.Add(1) - 1
				if i >= uint64(o.Seeds) {
					return
				}
				for _, v := range variants(o.First+i, o.Disk) {
					e, found, err := k.judge(v)
					if err != nil {
						errs[w] = err
						return
					}
					var f *Failure
					if len(found) > 0 {
						fail := k.failure(v, found)
						f = &fail
					}
					mu.Lock()
					rep.add(v, e, f)
					if o.Progress != nil && (f != nil || rep.Episodes%256 == 0) {
						o.Progress(Progress{Episodes: rep.Episodes, Seeds: int(i) + 1, Failure: f})
					}
					mu.Unlock()
				}
			}
		})
	}
	group.Wait()
	rep.PerSecond = float64(rep.Episodes) / time.Since(begin).Seconds()
	for _, err := range errs {
		if err != nil {
			return rep, err
		}
	}
	return rep, ctx.Err()
}

func (r *Report) add(v sortOf, e *Episode, f *Failure) {
	r.Episodes++
	r.Events += e.Events
	r.Boundaries += int64(e.Boundaries)
	r.Deaths += int64(e.Crashes)
	switch v.kind {
	case "honest":
		r.Honest++
	case "lying":
		r.Lying++
		named := map[string]bool{}
		for _, x := range e.Violations {
			if x.Lie != Honest {
				named[x.Lie.String()] = true
			}
		}
		for n := range named {
			r.Named[n]++
		}
	case "twice":
		r.Twice++
	case "disk":
		r.OnDisk++
	}
	if f != nil {
		r.Violations++
		if len(r.Failures) < maxFailures {
			r.Failures = append(r.Failures, *f)
		}
	}
}

// judge plays one variant and returns what nothing explains.
func (k *kit) judge(v sortOf) (*Episode, []Violation, error) {
	e, err := k.play(v.plan, false, v.onDisk)
	if err != nil {
		return nil, nil, err
	}
	found := e.Open()
	if !v.double {
		return e, found, nil
	}
	twice := *v.plan
	twice.Double = true
	e2, err := k.play(&twice, false, false)
	if err != nil {
		return nil, nil, err
	}
	found = append(found, e2.Open()...)
	if one, two := e.outcome(), e2.outcome(); one != two {
		found = append(found, Violation{Rule: RuleTwice, Text: fmt.Sprintf("once: %s; twice: %s", one, two)})
	}
	return e, found, nil
}

// outcome is what an episode came to, but for times and epochs. Whether a
// person or a look was first to say what happened is a matter of time too.
func (e *Episode) outcome() string {
	s := string(e.phase)
	for _, id := range e.order {
		f := e.facts[id]
		n := 0
		if d := e.deeds[id]; d != nil {
			n = len(d.landed)
		}
		s += fmt.Sprintf(" %s=%s/%d attempts/there %d", id.Short(), strings.TrimPrefix(f.state.String(), "forced_"), len(f.attempts), n)
	}
	return s + fmt.Sprintf(" files %v", e.files)
}

// failure cuts a failing plan down and traces it.
func (k *kit) failure(v sortOf, found []Violation) Failure {
	small := k.shrink(v, found[0].Rule)
	f := Failure{Seed: v.plan.Seed, Kind: v.kind, Plan: small.plan.String(), Violations: []string{}}
	for _, x := range found {
		f.Violations = append(f.Violations, x.String())
	}
	if v.double {
		small.plan.Double = true
	}
	if e, err := k.play(small.plan, true, v.onDisk); err == nil {
		f.Trace = e.Trace
	}
	return f
}

// shrink leaves away what a failure does not need: faults, acts, calls.
func (k *kit) shrink(v sortOf, rule Rule) sortOf {
	return k.shrinkWhile(v, func(p *Plan) bool {
		_, found, err := k.judge(sortOf{kind: v.kind, plan: p, onDisk: v.onDisk, double: v.double})
		return err == nil && slices.ContainsFunc(found, func(x Violation) bool { return x.Rule == rule })
	})
}

// shrinkBy is shrink for whatever an episode shows.
func (k *kit) shrinkBy(v sortOf, shows func(*Episode) bool) sortOf {
	return k.shrinkWhile(v, func(p *Plan) bool {
		e, err := k.play(p, false, v.onDisk)
		return err == nil && shows(e)
	})
}

func (k *kit) shrinkWhile(v sortOf, fails func(*Plan) bool) sortOf {
	for smaller := true; smaller; {
		smaller = false
		for _, p := range v.plan.without() {
			if fails(p) {
				v.plan, smaller = p, true
				break
			}
		}
	}
	return v
}

// without lists the plans that have one thing less.
func (p *Plan) without() []*Plan {
	var out []*Plan
	add := func(change func(q *Plan)) {
		q := *p
		q.Faults = append([]Fault(nil), p.Faults...)
		q.Acts = append([]Act(nil), p.Acts...)
		q.Turns = nil
		for _, t := range p.Turns {
			q.Turns = append(q.Turns, append([]int(nil), t...))
		}
		change(&q)
		out = append(out, &q)
	}
	for i := range p.Turns {
		for j := range p.Turns[i] {
			add(func(q *Plan) {
				q.Turns[i] = append(q.Turns[i][:j], q.Turns[i][j+1:]...)
				if len(q.Turns[i]) == 0 {
					q.Turns = append(q.Turns[:i], q.Turns[i+1:]...)
				}
			})
		}
	}
	for i := range p.Acts {
		add(func(q *Plan) { q.Acts = append(q.Acts[:i], q.Acts[i+1:]...) })
	}
	for i := range p.Faults {
		add(func(q *Plan) { q.Faults = append(q.Faults[:i], q.Faults[i+1:]...) })
	}
	if p.Wrong > 0 {
		add(func(q *Plan) { q.Wrong = 0 })
	}
	return out
}

// Replay plays all variants of one seed, traced.
func Replay(seed uint64) ([]*Episode, error) {
	k := newKit()
	defer k.close()
	var out []*Episode
	for _, v := range variants(seed, 0) {
		e, err := k.play(v.plan, true, v.onDisk)
		if err != nil {
			return nil, err
		}
		out = append(out, e)
	}
	return out, nil
}

// tempDir is where real ledgers of a drill lie, for the length of an episode.
func tempDir() (string, error) { return os.MkdirTemp("", "pawl-drill-") }
