package effect

import (
	"context"
	"os"
	"strings"
	"sync"
	"testing"

	"pawl/engine/confine"
)

// TestMain lets boxes be built: they run this binary again.
func TestMain(m *testing.M) {
	confine.Main()
	os.Exit(m.Run())
}

var measured = sync.OnceValue(func() confine.Report {
	return confine.Measure(context.Background(), confine.MaxFromEnv())
})

// atLevels runs a test unconfined and, where the machine can, sealed.
func atLevels(t *testing.T, test func(t *testing.T, level confine.Level)) {
	t.Run("none", func(t *testing.T) { test(t, confine.LevelNone) })
	t.Run("sealed", func(t *testing.T) {
		if r := measured(); r.Level != confine.LevelSealed {
			t.Skipf("this machine cannot seal commands: %s", strings.Join(r.Missing, "; "))
		}
		test(t, confine.LevelSealed)
	})
}
