//go:build unix && !linux

package workspace

import "golang.org/x/sys/unix"

// syncAll makes everything durable that was written.
func syncAll(string) error { return unix.Sync() }
