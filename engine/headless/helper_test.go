package headless

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
)

// helperJob names what the test binary does as a process beside the tests.
const helperJob = "PAWL_TEST_HELPER"

// help does a job for a test.
func help(job string) int {
	switch job {
	case "lock":
		if err := holdWriteLock(os.Getenv("PAWL_TEST_LEDGER")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return 0
	}
	return 2
}

// holdWriteLock takes the lock that SQLite writers take on the shared-memory
// file of a write-ahead log, says so, and stops itself with the lock held.
func holdWriteLock(ledger string) error {
	f, err := os.OpenFile(ledger+"-shm", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	const writeLock = 120 // offset of the lock byte, by SQLite's file format
	lock := syscall.Flock_t{Type: syscall.F_WRLCK, Whence: io.SeekStart, Start: writeLock, Len: 1}
	if err := syscall.FcntlFlock(f.Fd(), syscall.F_SETLK, &lock); err != nil {
		return fmt.Errorf("lock %s: %w", filepath.Base(f.Name()), err)
	}
	fmt.Println("locked")
	return syscall.Kill(os.Getpid(), syscall.SIGSTOP)
}
