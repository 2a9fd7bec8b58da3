//go:build unix

package workspace

import (
	"io/fs"
	"syscall"
)

// inode tells a file from another that took its name.
func inode(st fs.FileInfo) int64 {
	if s, ok := st.Sys().(*syscall.Stat_t); ok {
		return int64(s.Ino)
	}
	return 0
}
