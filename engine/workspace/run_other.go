//go:build !linux

package workspace

import "os/exec"

// runBound runs cmd. Here it cannot be tied to our life; the lock that it inherits keeps the next process waiting.
func runBound(cmd *exec.Cmd, _ bool) error { return cmd.Run() }
