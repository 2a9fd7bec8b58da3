package effect

import (
	"testing"
)

func TestBuiltInRecipesAreWhole(t *testing.T) {
	for _, l := range BuiltIn().List() {
		if l.About == "" || l.Class == "" || len(l.Match) == 0 {
			t.Errorf("%+v", l)
		}
		t.Log(l.Name, l.Match, l.Class, l.InFlight, "|", l.Probe, "|", l.Compensate, l.Tested, l.ProvesNot)
	}
}
