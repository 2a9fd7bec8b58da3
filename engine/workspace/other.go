//go:build !unix

package workspace

import (
	"context"
	"errors"
	"io/fs"
	"os"
)

var errSystem = errors.New("workspaces need Linux, macOS or a BSD")

// WriteResult says what a write did.
type WriteResult struct {
	Path    string
	Already bool
	Mode    fs.FileMode
}

// FileDigest is not available here.
func (m *Manager) FileDigest(context.Context, Workspace, string) ([32]byte, error) {
	return [32]byte{}, errSystem
}

// ReadFile is not available here.
func (m *Manager) ReadFile(context.Context, Workspace, string, int64) ([]byte, [32]byte, int64, error) {
	return nil, [32]byte{}, 0, errSystem
}

// Write is not available here.
func (m *Manager) Write(context.Context, Workspace, string, [32]byte, [32]byte, []byte, fs.FileMode) (WriteResult, error) {
	return WriteResult{}, errSystem
}

func lockFile(context.Context, string) (*os.File, error) { return nil, errSystem }
func syncAll(string) error                               { return errSystem }
func inode(fs.FileInfo) int64                            { return 0 }
