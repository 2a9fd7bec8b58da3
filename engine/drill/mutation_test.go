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
	mutationTrials = 5
)

// Each guard that is switched off is missed within a bounded number of seeds.
// A guard that nobody misses is a gap in the explorer.
func TestMutationEveryGuardIsMissed(t *testing.T) {
	defer func() { machine.Off = "" }()
	k := newKit()
	for _, g := range machine.Guards() {
		t.Run(string(g), func(t *testing.T) {
			machine.Off = g
			var took []int
			var first Violation
			for trial := range mutationTrials {
				seeds, found, err := findRogue(k, uint64(1+trial*mutationSeeds), mutationSeeds)
				if err != nil {
					t.Fatal(err)
				}
				if len(found) == 0 {
					t.Fatalf("nothing fell within %d seeds", mutationSeeds)
				}
				if first.Rule == "" {
					first = found[0]
				}
				took = append(took, seeds)
			}
			slices.Sort(took)
			t.Logf("median %d seeds, at most %d of %d; first: %s", took[len(took)/2], took[len(took)-1], mutationSeeds, first)
		})
	}
}
