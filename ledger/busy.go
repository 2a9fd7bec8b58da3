package ledger

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// busyError names, where the system tells, the process that holds the write
// lock: it is the byte at offset 120 of the -shm file.
func busyError(o *Options, waited time.Duration) *BusyError {
	e := &BusyError{Path: o.Path, Waited: waited}
	st, err := os.Stat(o.shm())
	if err != nil {
		return e
	}
	sys, ok := st.Sys().(*syscall.Stat_t)
	if !ok {
		return e
	}
	locks, err := os.ReadFile("/proc/locks")
	if err != nil {
		return e
	}
	e.PID = lockHolder(string(locks), sys.Ino, 120)
	if e.PID > 0 {
		e.Who, e.Halted = describe(e.PID)
	}
	return e
}

// lockHolder finds who holds an exclusive lock on byte at of the file with
// inode ino, in the format of /proc/locks:
//
//	1: POSIX  ADVISORY  WRITE 4711 fe:00:123456 120 120
//
// Waiters have "->" after the number. 0 means that nobody here does (a holder
// in another pid namespace is shown as 0, too).
func lockHolder(locks string, ino uint64, at int64) int {
	suffix := ":" + strconv.FormatUint(ino, 10)
	for line := range strings.Lines(locks) {
		f := strings.Fields(line)
		if len(f) < 8 || f[1] != "POSIX" || f[3] != "WRITE" || !strings.HasSuffix(f[5], suffix) {
			continue
		}
		from, err1 := strconv.ParseInt(f[6], 10, 64)
		to, err2 := strconv.ParseInt(f[7], 10, 64)
		if f[7] == "EOF" {
			to, err2 = at, nil
		}
		if err1 != nil || err2 != nil || at < from || at > to {
			continue
		}
		if pid, err := strconv.Atoi(f[4]); err == nil && pid > 0 {
			return pid
		}
	}
	return 0
}

// describe returns a process's command name and whether a signal stopped it.
func describe(pid int) (name string, halted bool) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", false
	}
	s := string(b)
	i, j := strings.IndexByte(s, '('), strings.LastIndexByte(s, ')')
	if i < 0 || j < i {
		return "", false
	}
	state := strings.TrimSpace(s[j+1:])
	return s[i+1 : j], strings.HasPrefix(state, "T") || strings.HasPrefix(state, "t")
}
