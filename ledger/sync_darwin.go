package ledger

import (
	"os"

	"golang.org/x/sys/unix"
)

// fdatasync asks the drive itself, which fsync does not do on this system.
func fdatasync(f *os.File) error {
	_, err := unix.FcntlInt(f.Fd(), unix.F_FULLFSYNC, 0)
	return err
}
