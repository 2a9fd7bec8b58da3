//go:build !linux

package headless

import (
	"os/exec"
	"syscall"
)

// endWithParent keeps an interrupt typed at the terminal from a worker: the
// demo passes one on, and two would mean "at once". A worker whose demo was
// killed goes on until its run rests; only Linux can tell it.
func endWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
}
