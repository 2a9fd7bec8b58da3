//go:build unix && !linux

package workspace

import (
	"io/fs"

	"golang.org/x/sys/unix"
)

// exchange swaps two files. Where the system cannot do it in one step the name is missing for a moment.
func exchange(a, b place) error {
	spare := place{dir: a.dir, name: a.name + ".x", abs: a.abs + ".x"}
	if err := rename(b, spare, true); err != nil {
		return err
	}
	if err := rename(a, b, true); err != nil {
		return err
	}
	return rename(spare, a, true)
}

// rename moves a file to a name that must be free, or, with over, takes the place of what is there.
func rename(a, b place, over bool) error {
	fail := func(err error) error { return &fs.PathError{Op: "rename", Path: b.abs, Err: err} }
	if over {
		if err := unix.Renameat(int(a.dir.Fd()), a.name, int(b.dir.Fd()), b.name); err != nil {
			return fail(err)
		}
		return nil
	}
	// A second name is refused where one is in use; a plain rename would not be.
	if err := unix.Linkat(int(a.dir.Fd()), a.name, int(b.dir.Fd()), b.name, 0); err != nil {
		return fail(err)
	}
	return a.remove()
}
