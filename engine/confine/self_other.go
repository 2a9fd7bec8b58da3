//go:build !linux

package confine

import "os"

// Self names this process as well as this system can.
func Self() (Identity, error) { return Identity{PID: os.Getpid()}, nil }
