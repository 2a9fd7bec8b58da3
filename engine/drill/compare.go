package drill

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// CompareOptions say how much to compare. Zero values mean the defaults.
type CompareOptions struct {
	Seeds      int        // runs per cell; 100
	Sweep      int        // runs per point of the sweep over p; a fifth of Seeds
	First      uint64     // first seed; 1
	Strategies []Strategy // all
	Workers    int
	// Progress is told when a cell is filled, from any goroutine but never from
	// two at once.
	Progress func(done, of int, c Cell)
}

// Cell is one workload under one strategy and one condition.
type Cell struct {
	Workload  string   `json:"workload"`
	Strategy  Strategy `json:"strategy"`
	Condition string   `json:"condition"`
	P         float64  `json:"p"`
	Runs      int      `json:"runs"`
	Tally
	// Wrong outcomes, questions, per 100 effects whose end is not on record, with
	// 95 % confidence intervals by bootstrap over runs.
	WrongRate Interval `json:"wrong_per_100"`
	AskedRate Interval `json:"asked_per_100"`
	P50       float64  `json:"recovery_p50_s"`
	P99       float64  `json:"recovery_p99_s"`
	SyncRate  float64  `json:"syncs_per_effect"`

	runs []Tally
}

// Interval is an estimate with its 95 % confidence interval.
type Interval struct {
	Mean float64 `json:"mean"`
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// Comparison is the whole table.
type Comparison struct {
	Seeds     int         `json:"seeds_per_cell"`
	SweepRuns int         `json:"seeds_per_sweep_point"`
	First     uint64      `json:"first_seed"`
	Took      float64     `json:"seconds"`
	Cells     []Cell      `json:"cells"`
	Overall   []Cell      `json:"overall"` // each strategy and condition over all workloads
	Sweep     []Cell      `json:"sweep"`
	BreakEven []BreakEven `json:"break_even"`
}

// sweepSteps are the shares of ambiguous attempts that landed, in tenths.
const sweepSteps = 10

// Fell counts invariants that fell under honest contracts.
func (c *Comparison) Fell() int {
	n := 0
	for i := range c.Cells {
		n += c.Cells[i].Fell
	}
	for i := range c.Sweep {
		n += c.Sweep[i].Fell
	}
	return n
}

// cellJob is a cell to be filled.
type cellJob struct {
	w     Workload
	st    Strategy
	c     Condition
	runs  int
	sweep bool
	cell  Cell

	sum     Tally   // with all times
	tallies []Tally // by run
}

// Compare plays every workload under every strategy and condition, with the
// same faults for each.
func Compare(ctx context.Context, o CompareOptions) (Comparison, error) {
	if o.Seeds <= 0 {
		o.Seeds = 100
	}
	if o.Sweep <= 0 {
		o.Sweep = max(o.Seeds/5, 5)
	}
	if o.First == 0 {
		o.First = 1
	}
	if len(o.Strategies) == 0 {
		o.Strategies = Strategies()
	}
	if o.Workers <= 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	var jobs []*cellJob
	for _, w := range Workloads() {
		for _, st := range o.Strategies {
			for _, c := range Conditions() {
				jobs = append(jobs, &cellJob{w: w, st: st, c: c, runs: o.Seeds})
			}
			for i := range sweepSteps + 1 {
				jobs = append(jobs, &cellJob{w: w, st: st, c: Condition{Name: "sweep", P: float64(i) / sweepSteps}, runs: o.Sweep, sweep: true})
			}
		}
	}
	defer debug.SetGCPercent(debug.SetGCPercent(lazyGC))
	begin := time.Now()
	if err := fill(ctx, o, jobs); err != nil {
		return Comparison{}, err
	}
	c := Comparison{Seeds: o.Seeds, SweepRuns: o.Sweep, First: o.First, Took: time.Since(begin).Seconds()}
	for _, j := range jobs {
		if j.sweep {
			c.Sweep = append(c.Sweep, j.cell)
		} else {
			c.Cells = append(c.Cells, j.cell)
		}
	}
	c.Overall = overall(jobs, o.First)
	c.BreakEven = c.breakEven()
	return c, nil
}

// overall makes one cell of a strategy's cells under each condition.
func overall(jobs []*cellJob, seed uint64) []Cell {
	var out []Cell
	for _, j := range jobs {
		if j.sweep {
			continue
		}
		i := slices.IndexFunc(out, func(c Cell) bool { return c.Strategy == j.st && c.Condition == j.c.Name })
		if i < 0 {
			i = len(out)
			out = append(out, Cell{Workload: "all", Strategy: j.st, Condition: j.c.Name, P: j.c.P})
		}
		out[i].Runs += j.runs
		out[i].Tally.add(j.sum)
		out[i].runs = append(out[i].runs, j.tallies...)
	}
	for i := range out {
		out[i].finish(seed)
	}
	return out
}

// fill plays the cells.
func fill(ctx context.Context, o CompareOptions, jobs []*cellJob) error {
	var next atomic.Int64
	var mu sync.Mutex
	var group sync.WaitGroup
	errs := make([]error, o.Workers)
	done := 0
	for i := range o.Workers {
		group.Go(func() {
			k := newKit()
			defer k.close()
			for ctx.Err() == nil {
				n := int(next.Add(1)) - 1
				if n >= len(jobs) {
					return
				}
				j := jobs[n]
				if err := j.play(ctx, k, o.First); err != nil {
					errs[i] = err
					return
				}
				mu.Lock()
				done++
				if o.Progress != nil {
					o.Progress(done, len(jobs), j.cell)
				}
				mu.Unlock()
			}
		})
	}
	group.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (j *cellJob) play(ctx context.Context, k *kit, first uint64) error {
	c := Cell{Workload: j.w.Name, Strategy: j.st, Condition: j.c.Name, P: j.c.P, Runs: j.runs}
	for i := range j.runs {
		if err := ctx.Err(); err != nil {
			return err
		}
		s := schedule{seed: first + uint64(i), w: &j.w, c: j.c}
		var t Tally
		if j.st == ClassPolicy {
			var err error
			if t, err = s.real(k); err != nil {
				return err
			}
		} else {
			t = s.model(j.st)
		}
		c.Tally.add(t)
		t.Times = nil
		c.runs = append(c.runs, t)
	}
	j.sum, j.tallies = c.Tally, c.runs
	j.sum.Times = slices.Clone(c.Times)
	c.finish(first)
	j.cell = c
	return nil
}

// finish derives rates, quantiles and intervals.
func (c *Cell) finish(seed uint64) {
	slices.Sort(c.Times)
	if n := len(c.Times); n > 0 {
		c.P50 = float64(c.Times[n/2]) / 1e6
		c.P99 = float64(c.Times[min(n-1, n*99/100)]) / 1e6
	}
	c.WrongRate = bootstrap(c.runs, seed, (*Tally).Wrong)
	c.AskedRate = bootstrap(c.runs, seed, func(t *Tally) int { return t.Asked })
	if c.Effects > 0 {
		c.SyncRate = float64(c.Syncs) / float64(c.Effects)
	}
	c.Times, c.runs = nil, nil
}

// resamples of a bootstrap.
const resamples = 200

// bootstrap estimates a count per 100 ambiguous effects over runs.
func bootstrap(runs []Tally, seed uint64, count func(*Tally) int) Interval {
	rate := func(pick func(i int) int) float64 {
		sum, of := 0, 0
		for i := range runs {
			t := &runs[pick(i)]
			sum += count(t)
			of += t.Ambiguous
		}
		if of == 0 {
			return 0
		}
		return 100 * float64(sum) / float64(of)
	}
	r := dice(seed).on(topicStrategy, len(runs))
	means := make([]float64, resamples)
	for i := range means {
		means[i] = rate(func(int) int { return r.below(len(runs)) })
	}
	slices.Sort(means)
	return Interval{Mean: rate(func(i int) int { return i }), Low: means[resamples*25/1000], High: means[resamples*975/1000]}
}

// BreakEven says from where on Pawl costs less than another strategy: when one
// wrong outcome costs more than Ratio questions. Zero: always. Below zero: never.
type BreakEven struct {
	Strategy  Strategy `json:"strategy"`
	Condition string   `json:"condition"`
	Ratio     float64  `json:"ratio"`
	Verdict   string   `json:"verdict"`
}

// totals sums cells over workloads.
func (c *Comparison) totals(cells []Cell, st Strategy, condition string, p float64) (wrong, asked float64, t Tally) {
	for _, x := range cells {
		if x.Strategy == st && x.Condition == condition && x.P == p {
			t.add(x.Tally)
		}
	}
	if t.Ambiguous == 0 {
		return 0, 0, t
	}
	of := float64(t.Ambiguous) / 100
	return float64(t.Wrong()) / of, float64(t.Asked) / of, t
}

func (c *Comparison) breakEven() []BreakEven {
	var out []BreakEven
	for _, cond := range Conditions() {
		pw, pa, t := c.totals(c.Cells, ClassPolicy, cond.Name, cond.P)
		if t.Effects == 0 {
			return nil
		}
		for _, st := range Strategies() {
			w, a, t := c.totals(c.Cells, st, cond.Name, cond.P)
			if st == ClassPolicy || t.Effects == 0 {
				continue
			}
			b := BreakEven{Strategy: st, Condition: cond.Name}
			switch {
			case pw <= w && pa <= a:
				b.Verdict = "Pawl is never worse"
			case pw >= w && pa >= a:
				b.Ratio, b.Verdict = -1, "Pawl is never better"
			case pw < w:
				b.Ratio = (pa - a) / (w - pw)
				b.Verdict = fmt.Sprintf("Pawl is better once a wrong outcome costs more than %.2f questions", b.Ratio)
			default:
				b.Ratio = (a - pa) / (pw - w)
				b.Verdict = fmt.Sprintf("Pawl is better as long as a wrong outcome costs less than %.2f questions", b.Ratio)
			}
			out = append(out, b)
		}
	}
	return out
}
