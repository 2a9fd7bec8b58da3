//go:build unix

package effect

import (
	"os/exec"
	"syscall"
)

// detach gives a command its own session, so that it has no terminal to ask
// on and ends with all that it started.
func detach(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
