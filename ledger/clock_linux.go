package ledger

import (
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// monotonic is a clock that all processes of one boot share and that neither
// the wall clock nor a suspended machine moves: after a suspend every lease has
// as much time left as before, its owner's as well as ours.
func monotonic() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		return 0 // cannot fail with a clock id that every kernel has
	}
	return time.Duration(t.Nano())
}

// bootID names this boot of the machine: monotonic times of another one mean nothing.
func bootID() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(b))
}
