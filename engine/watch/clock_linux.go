package watch

import (
	"time"

	"golang.org/x/sys/unix"
)

// Monotonic is the time since boot, suspend included. It does not jump.
func Monotonic() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}
