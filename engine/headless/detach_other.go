//go:build !unix

package headless

import "os/exec"

func detach(*exec.Cmd) {}
