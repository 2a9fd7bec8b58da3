//go:build unix

package headless

import (
	"os/exec"
	"syscall"
)

// detach gives a process a session of its own, so that it outlives the terminal.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
