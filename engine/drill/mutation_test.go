//go:build mutate

package drill

import (
	"slices"
	"testing"

	"pawl/engine/machine"
)

// The bound on what one mutation may cost, and how often each is looked for.
const (
	mutationSeeds  = 600
	mutationTrials = 9
)

// Each guard that is switched off is missed within a bounded number of seeds.
// A guard that nobody misses is a gap in the explorer.
func TestMutationEveryGuardIsMissed(t *testing.T) {
	defer func() { machine.Off = "" }()
	k := newKit()
	for _, g := range machine.Guards() {
		machine.Off = g
		var took []int
		var first Violation
		for trial := range mutationTrials {
			seeds, found, err := findRogue(k, uint64(1+trial*mutationSeeds), mutationSeeds)
			if err != nil {
				t.Fatal(err)
			}
			if len(found) == 0 {
				t.Errorf("guard %s: nothing fell within %d seeds", g, mutationSeeds)
				break
			}
			if first.Rule == "" {
				first = found[0]
			}
			took = append(took, seeds)
		}
		if len(took) == mutationTrials {
			slices.Sort(took)
			t.Logf("%-14s median %4d seeds, at most %4d; first: %s", g, took[len(took)/2], took[len(took)-1], first)
		}
	}
}
