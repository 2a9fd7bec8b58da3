package drill

import (
	"slices"
	"strings"
	"testing"
)

// seedsOfTest bounds what every test run explores; `pawl drill` goes further.
func seedsOfTest(t *testing.T) int {
	t.Helper()
	if testing.Short() {
		return 100
	}
	return 400
}

// Under honest contracts no invariant falls, whatever breaks and when; where a
// contract was broken, what falls is explained by it.
func TestNothingFallsThatNoBrokenContractExplains(t *testing.T) {
	rep, err := Explore(t.Context(), ExploreOptions{Seeds: seedsOfTest(t), Disk: 50})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range rep.Failures {
		t.Errorf("seed %d (%s)\n%s\n%s\n%s", f.Seed, f.Kind, strings.Join(f.Violations, "\n"), f.Plan, strings.Join(f.Trace, "\n"))
	}
	if rep.Violations > 0 {
		t.Errorf("%d of %d episodes fail", rep.Violations, rep.Episodes)
	}
	t.Logf("%d episodes, %.0f a second, %d events, %d boundaries, %d deaths; named: %v", rep.Episodes, rep.PerSecond, rep.Events, rep.Boundaries, rep.Deaths, rep.Named)
	if rep.Deaths == 0 || rep.Lying == 0 || rep.Twice == 0 || rep.OnDisk == 0 {
		t.Errorf("something was not played: %+v", rep)
	}
}

// Each lie of the world makes an invariant fall that names it; an explorer that
// cannot see a lie proves nothing by its silence.
func TestEveryLieIsSeenAndNamed(t *testing.T) {
	k := newKit()
	seen := map[Lie]int{}
	for seed := uint64(1); seed <= 4000 && len(seen) < int(lies)-1; seed++ {
		e, err := k.play(NewPlan(seed, false), false, false)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range e.Violations {
			seen[v.Lie]++
		}
	}
	for l := Honest + 1; l < lies; l++ {
		if seen[l] == 0 {
			t.Errorf("no invariant fell and named it: %s", l)
		}
	}
}

// The same seed is the same episode, line by line.
func TestSeedsReplay(t *testing.T) {
	a, b := newKit(), newKit()
	for seed := uint64(1); seed <= 60; seed++ {
		first, err := a.play(NewPlan(seed, true), true, false)
		if err != nil {
			t.Fatal(err)
		}
		second, err := b.play(NewPlan(seed, true), true, false)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(first.Trace, second.Trace) {
			t.Fatalf("seed %d differs:\n%s\n---\n%s", seed, strings.Join(first.Trace, "\n"), strings.Join(second.Trace, "\n"))
		}
	}
}

// A failing plan is cut down to what it needs.
func TestFailingPlansAreCutDown(t *testing.T) {
	p := NewPlan(7, true)
	p.Effects = []Deed{{Class: 2, Sender: 3, D: second, Most: second, Takes: ms}, {Class: 4, Sender: 1, D: second, Most: second, Takes: ms}}
	p.Turns = [][]int{{0, 1}}
	p.Faults = []Fault{{At: 9999, Kind: Crash}, {At: 5, Kind: Crash}}
	p.Acts = nil
	p.Fates = func(effect, attempt int) Fate { return Fate{Acked: true, Lands: effect != 1} } // an empty answer
	k := newKit()
	v := sortOf{kind: "honest", plan: p}
	e, err := k.play(p, false, false)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(e.Violations, func(v Violation) bool { return v.Rule == RuleSuccess }) {
		t.Fatalf("an empty answer was not noticed: %v", e.Violations)
	}
	for i := range e.Violations {
		e.Violations[i].Lie = Honest
	}
	small := k.shrinkBy(v, func(e *Episode) bool {
		return slices.ContainsFunc(e.Violations, func(v Violation) bool { return v.Rule == RuleSuccess })
	})
	if len(small.plan.Faults) != 0 || len(small.plan.Turns) != 1 || len(small.plan.Turns[0]) != 1 || small.plan.Turns[0][0] != 1 {
		t.Errorf("left over: %v", small.plan)
	}
}

func BenchmarkEpisode(b *testing.B) {
	k := newKit()
	b.ReportAllocs()
	for i := range b.N {
		if _, err := k.play(NewPlan(uint64(i+1), true), false, false); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "episodes/s")
}
