package watch

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestFilesTellsOfAChange(t *testing.T) {
	dir := t.TempDir()
	ctx, stop := context.WithCancel(t.Context())
	told := Files(ctx, []string{dir, filepath.Join(dir, "missing")}, func(string, ...any) {})
	if err := os.WriteFile(filepath.Join(dir, "mine.toml"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	select {
	case <-told:
	case <-time.After(10 * time.Second):
		t.Fatal("a new file was not told of")
	}
	stop()
	for range told { // it is closed: the goroutine has ended
	}
}
