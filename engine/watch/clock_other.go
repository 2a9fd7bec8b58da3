//go:build !linux

package watch

import "time"

var start = time.Now()

// Monotonic is the time since this process started; instants of other
// processes do not compare with it, since their boot id differs.
func Monotonic() time.Duration { return time.Since(start) }
