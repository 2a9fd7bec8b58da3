package tool

import (
	"testing"

	"pawl/engine/workspace"
)

func newSpace(t *testing.T) (*workspace.Manager, workspace.Workspace) {
	dir := t.TempDir()
	return &workspace.Manager{}, workspace.Workspace{Run: "r1abc", Path: dir, Kind: "folder", Scratch: t.TempDir()}
}
