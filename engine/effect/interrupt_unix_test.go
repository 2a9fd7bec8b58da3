//go:build unix

package effect

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"pawl/engine/machine"
)

// interrupted runs a push until a hook of the remote has come to its gate, and
// then kills the whole session of the push.
func (w *world) interrupted(hook string) {
	w.t.Helper()
	gate := filepath.Join(w.home, "gate")
	if err := syscall.Mkfifo(gate, 0o600); err != nil {
		w.t.Fatal(err)
	}
	w.hook(hook, "cat >/dev/null; echo here > '"+gate+"'; exec sleep 1000")
	cmd := exec.Command("sh", "-c", pushMain)
	cmd.Dir, cmd.Env = w.work, w.environ()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	if b, err := os.ReadFile(gate); err != nil || string(b) != "here\n" {
		w.t.Fatalf("%q %v", b, err)
	}
	if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); err != nil {
		w.t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		w.t.Fatal("the push ended well")
	}
}

func TestProbeAfterAnInterruptedPush(t *testing.T) {
	for hook, want := range map[string]machine.Verdict{
		"pre-receive":  machine.VerdictNotHappened, // before the ref moves
		"update":       machine.VerdictNotHappened,
		"post-receive": machine.VerdictHappened, // after it has moved
		"post-update":  machine.VerdictHappened,
	} {
		t.Run(hook, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.commit("second")
			c, params := w.dispatched(pushMain)
			w.interrupted(hook)
			w.want(w.probe(c, params), want, "refs/heads/main")
		})
	}
}
