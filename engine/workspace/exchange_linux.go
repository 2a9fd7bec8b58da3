package workspace

import (
	"io/fs"

	"golang.org/x/sys/unix"
)

// exchange swaps two files in one step: there is no moment at which either name is missing.
func exchange(a, b place) error {
	err := unix.Renameat2(int(a.dir.Fd()), a.name, int(b.dir.Fd()), b.name, unix.RENAME_EXCHANGE)
	if err != nil {
		return &fs.PathError{Op: "exchange", Path: b.abs, Err: err}
	}
	return nil
}

// rename moves a file to a name that must be free, or, with over, takes the place of what is there.
func rename(a, b place, over bool) error {
	flags := uint(unix.RENAME_NOREPLACE)
	if over {
		flags = 0
	}
	if err := unix.Renameat2(int(a.dir.Fd()), a.name, int(b.dir.Fd()), b.name, flags); err != nil {
		return &fs.PathError{Op: "rename", Path: b.abs, Err: err}
	}
	return nil
}
