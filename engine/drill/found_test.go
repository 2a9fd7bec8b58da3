package drill

import (
	"strings"
	"testing"
)

// Seeds that once failed, and what was wrong then. They are kept so that it
// stays mended.
func TestSeedsThatOnceFailed(t *testing.T) {
	k := newKit()
	defer k.close()
	for _, c := range []struct {
		seed uint64
		was  string
	}{
		{1, "an ack that found the disk full was dropped, and the run stood still for ever"},
		{836, "a look that proved nothing about an abandoned effect stopped the run"},
		{5910, "a failed compensation hid that the effect itself was still ambiguous"},
		{6560, "a retry that had to be asked again was dispatched without waiting"},
		{11417, "a pause during a read left a request to be sent that was not in the ledger"},
		{14332, "the same, at the end of a run"},
	} {
		e, err := k.play(NewPlan(c.seed, true), true, false)
		if err != nil {
			t.Fatal(err)
		}
		if open := e.Open(); len(open) > 0 {
			t.Errorf("seed %d (once: %s): %v\n%s", c.seed, c.was, open, strings.Join(e.Trace, "\n"))
		}
	}
}
