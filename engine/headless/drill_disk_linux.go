package headless

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// smallDisk mounts a file system of 48 MiB in memory, where we may.
func smallDisk(dir string) (path string, unmount func(), err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", nil, err
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "size=48m,mode=0700"); err != nil {
		return "", nil, fmt.Errorf("a small file system cannot be mounted here (%w)", err)
	}
	return dir, func() { _ = unix.Unmount(dir, unix.MNT_DETACH) }, nil // it ends with its last user
}
