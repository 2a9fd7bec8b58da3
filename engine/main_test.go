package engine

import (
	"os"
	"testing"

	"pawl/engine/confine"
)

func TestMain(m *testing.M) {
	confine.Main() // this binary is also every stage of a box
	os.Exit(m.Run())
}
