package headless_test

import (
	"fmt"
	"os"
	"testing"

	"pawl/engine/confine"
)

// TestMain builds the program under test once, for all tests that start it.
func TestMain(m *testing.M) {
	confine.Main()
	os.Exit(runAll(m))
}

func runAll(m *testing.M) int {
	dir, err := os.MkdirTemp("", "pawl-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	built.bin, built.err = buildPawl(dir)
	return m.Run()
}
