package tool

import (
	"testing"

	"pawl/engine/workspace"
)

func newSpace(t testing.TB) (*workspace.Manager, workspace.Workspace) {
	dir := t.TempDir()
	return workspace.New(t.TempDir()), workspace.Workspace{Run: "r1abc", Path: dir, Kind: workspace.KindFolder, Scratch: t.TempDir()}
}
