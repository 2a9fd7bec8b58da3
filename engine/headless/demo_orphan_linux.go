package headless

import (
	"os/exec"
	"syscall"
)

// endWithParent lets a worker stop at a safe point if the demo dies, instead
// of waiting for an approval that nobody will give. An interrupt typed at the
// terminal is the demo's: it passes on one, and two would mean "at once".
func endWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}
