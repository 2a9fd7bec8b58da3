package drill

import (
	"context"
	"encoding/xml"
	"strings"
	"testing"
)

func compared(t *testing.T, seeds int) Comparison {
	t.Helper()
	c, err := Compare(t.Context(), CompareOptions{Seeds: seeds, Sweep: 6})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Pawl's own row: nothing wrong under honest contracts, and each ablation shows
// what it costs.
func TestPawlIsRightWhereContractsAreAndTheAblationsShowWhy(t *testing.T) {
	c, err := Compare(t.Context(), CompareOptions{Seeds: 20, Sweep: 1, Strategies: []Strategy{ClassPolicy}})
	if err != nil {
		t.Fatal(err)
	}
	sum := map[string]*Tally{}
	for i := range c.Cells {
		x := &c.Cells[i]
		if x.Strategy != ClassPolicy {
			continue
		}
		if sum[x.Condition] == nil {
			sum[x.Condition] = &Tally{}
		}
		sum[x.Condition].add(x.Tally)
		if x.Ambiguous == 0 {
			t.Errorf("%s: no attempt ended without a result", x.Workload)
		}
		if x.Condition == "honest" && (x.Wrong() > 0 || x.Contradictions > 0 || x.AfterCancel > 0) {
			t.Errorf("%s, honest: %+v", x.Workload, x.Tally)
		}
	}
	if n := c.Fell(); n > 0 {
		t.Errorf("%d invariants fell under honest contracts", n)
	}
	for _, name := range []string{"no quiescence", "D wrong by ten", "key horizon exceeded"} {
		if sum[name].Wrong() == 0 {
			t.Errorf("%s: nothing went wrong, so it shows nothing", name)
		}
	}
	if five, twenty := sum["operators wrong 5 %"].Wrong(), sum["operators wrong 20 %"].Wrong(); twenty < five || twenty == 0 {
		t.Errorf("operators who are wrong: %d wrong outcomes at 5 %%, %d at 20 %%", five, twenty)
	}
}

// Retry and skip are bets on p: one wins where the other loses.
func TestBetsDependOnWhatHappened(t *testing.T) {
	c := compared(t, 4)
	at := func(st Strategy, p float64) float64 { w, _, _ := c.totals(c.Sweep, st, "sweep", p); return w }
	if at(SkipDone, 0) <= at(SkipDone, 1) || at(SkipFailed, 0) > 10 || at(SkipFailed, 1) < 90 || at(BlindRetry, 0) >= at(BlindRetry, 1) {
		t.Errorf("skip as done %v, %v; skip as failed %v, %v; blind retry %v, %v", at(SkipDone, 0), at(SkipDone, 1), at(SkipFailed, 0), at(SkipFailed, 1), at(BlindRetry, 0), at(BlindRetry, 1))
	}
	if len(c.BreakEven) != (len(Strategies())-1)*len(Conditions()) {
		t.Errorf("%d break-even points", len(c.BreakEven))
	}
	for name, svg := range c.Pictures() {
		if err := xml.Unmarshal([]byte(svg), new(struct{})); err != nil || strings.Count(svg, "<path") != len(Strategies()) {
			t.Errorf("%s: %v, %d curves", name, err, strings.Count(svg, "<path"))
		}
	}
}

// The same seeds give the same table.
func TestComparisonsRepeat(t *testing.T) {
	one := func() Comparison {
		c, err := Compare(t.Context(), CompareOptions{Seeds: 2, Sweep: 1, Strategies: []Strategy{ClassPolicy, ProbeNow}})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	a, b := one(), one()
	for i := range a.Cells {
		if a.Cells[i].WrongRate != b.Cells[i].WrongRate || a.Cells[i].P99 != b.Cells[i].P99 || a.Cells[i].Syncs != b.Cells[i].Syncs {
			t.Errorf("%+v\n%+v", a.Cells[i], b.Cells[i])
		}
	}
}

func TestComparisonsStopWhenTold(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Compare(ctx, CompareOptions{Seeds: 1000}); err == nil {
		t.Error("it went on")
	}
}
