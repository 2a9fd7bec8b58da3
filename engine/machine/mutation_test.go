//go:build mutate

package machine

import (
	"testing"

	"pgregory.net/rapid"
)

// TestEveryGuardIsMissed switches each guard off and looks whether the random
// events notice. A guard that nobody misses would be a gap in the check.
func TestEveryGuardIsMissed(t *testing.T) {
	defer func() { Off = "" }()
	for _, g := range Guards() {
		Off = g
		if seed, ok := missed(3000); ok {
			t.Logf("%-14s missed after %4d histories: %s", g, seed, violation)
		} else {
			t.Errorf("%s: switched off, and nobody noticed", g)
		}
	}
}

// missed plays histories until one breaks an invariant.
func missed(most int) (int, bool) {
	violation = ""
	gen := rapid.Custom(history)
	for i := range most {
		func() {
			defer func() { _ = recover() }() // how a generator reports a failure
			gen.Example(i)
		}()
		if violation != "" {
			return i + 1, true
		}
	}
	return most, false
}
