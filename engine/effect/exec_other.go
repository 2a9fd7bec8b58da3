//go:build !unix

package effect

import "os/exec"

// detach has nothing to do here: without sessions only the command itself ends.
func detach(cmd *exec.Cmd) {
	cmd.Cancel = func() error { return cmd.Process.Kill() }
}
