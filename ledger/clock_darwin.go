package ledger

import (
	"time"

	"golang.org/x/sys/unix"
)

// monotonic is a clock that all processes of one boot share and that neither
// the wall clock nor a suspended machine moves.
func monotonic() time.Duration {
	var t unix.Timespec
	const uptimeRaw = 8 // CLOCK_UPTIME_RAW: like CLOCK_MONOTONIC_RAW without time asleep
	if err := unix.ClockGettime(uptimeRaw, &t); err != nil {
		return 0
	}
	return time.Duration(t.Nano())
}

// bootID names this boot of the machine.
func bootID() string {
	s, err := unix.Sysctl("kern.bootsessionuuid")
	if err != nil {
		return "unknown"
	}
	return s
}
