package scripted_test

import (
	"testing"

	"pawl/engine/model/scripted"
	"pawl/fixtures/scripts"
)

// The scripts that demo and tests use are read without complaint.
func TestFixtureScriptsParse(t *testing.T) {
	names := scripts.Names()
	if len(names) == 0 {
		t.Fatal("there are no scripts")
	}
	for _, name := range names {
		b, err := scripts.Read(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := scripted.Parse(name, b); err != nil {
			t.Error(err)
		}
	}
}
