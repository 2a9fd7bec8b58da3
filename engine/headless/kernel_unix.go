//go:build unix

package headless

import (
	"strings"

	"golang.org/x/sys/unix"
)

// kernel names the running kernel's release, "" if it does not tell.
func kernel() string {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return ""
	}
	return strings.TrimSpace(unix.ByteSliceToString(u.Sysname[:]) + " " + unix.ByteSliceToString(u.Release[:]))
}
