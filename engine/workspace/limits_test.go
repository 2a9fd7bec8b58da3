//go:build unix

package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func withLimits(t testing.TB, l Limits) *Manager {
	m := newManager(t)
	m.limits = l
	return m
}

func TestWhatDoesNotFitIsLeftOutByName(t *testing.T) {
	repo := newRepo(t)
	m := withLimits(t, Limits{File: 1000, Files: 10, Total: 5000})
	put(t, repo+"/tracked.bin", strings.Repeat("t", 3000)) // large, but git has it
	sh(t, repo, "git add tracked.bin && git commit -qm large")
	ws, err := m.Prepare(ctx, Request{Run: "r1", Repo: repo})
	must(t, err)
	put(t, ws.Path+"/dump.sql", strings.Repeat("d", 2000))
	for i := range 20 {
		put(t, fmt.Sprintf("%s/junk/deep/%d", ws.Path, i), "j")
	}
	put(t, ws.Path+"/src/new.go", "package src\n")
	put(t, ws.Path+"/dir/beside.txt", "beside\n")
	s := snap(t, m, ws)
	if got := strings.Join(s.Left, "|"); got != "dump.sql (2.0 KB: larger than 1000 bytes)|junk/ (20 files, 20 bytes: more than 10 files that git does not track)" {
		t.Errorf("left out: %q", got)
	}
	names := sh(t, ws.Shadow, "git --git-dir=. ls-tree -r --name-only "+s.Tree)
	if names != ".gitignore\na.txt\ndir/b.txt\ndir/beside.txt\nsrc/new.go\ntracked.bin\n" {
		t.Errorf("taken in:\n%s", names)
	}
	again := snap(t, m, ws)
	if again.Tree != s.Tree || len(again.Left) != 2 {
		t.Errorf("the same files make another snapshot: %+v", again)
	}

	put(t, ws.Path+"/a.txt", "spoilt")
	_, err = m.Restore(ctx, ws, s)
	must(t, err)
	if read(t, ws.Path+"/dump.sql") == "" || read(t, ws.Path+"/a.txt") != "one\ntwo\nthree\nfour\n" {
		t.Error("a file that was left out is gone, or one that was not did not come back")
	}

	// An interrupted command that touched what was left out cannot be undone, and that is said before anything is.
	put(t, ws.Path+"/a.txt", "spoilt")
	put(t, ws.Path+"/junk/deep/3", "other")
	var drift *DriftError
	if _, err = m.Restore(ctx, ws, s); !errors.As(err, &drift) || !strings.Contains(drift.Why, "junk/") {
		t.Errorf("got %v", err)
	}
	if read(t, ws.Path+"/a.txt") != "spoilt" {
		t.Error("it was restored in part")
	}
}

func TestTotalIsBounded(t *testing.T) {
	m := withLimits(t, Limits{File: 1000, Total: 2500})
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	for i := range 5 {
		put(t, fmt.Sprintf("%s/data/%d", dir, i), strings.Repeat("x", 900))
	}
	put(t, dir+"/notes/a", strings.Repeat("y", 900))
	ws, err := m.Prepare(ctx, Request{Run: "r1", Repo: dir})
	must(t, err)
	s := snap(t, m, ws)
	if got := strings.Join(s.Left, "|"); got != "data/ (5 files, 4.4 KB: more than 2.4 KB in files that git does not track)" || s.Files != 1 {
		t.Errorf("left out %q, %d files taken in", got, s.Files)
	}
}

// Field report: a huge untracked tree and a file of 5 GB.
func TestAHugeUntrackedTree(t *testing.T) {
	if testing.Short() {
		t.Skip("makes 200,000 files")
	}
	repo, m := newRepo(t), newManager(t)
	for i := range 200 {
		d := fmt.Sprintf("%s/huge/%d", repo, i)
		must(t, os.MkdirAll(d, 0o755))
		must(t, os.WriteFile(d+"/0", []byte("small\n"), 0o644))
		for k := 1; k < 1000; k++ { // many names of one file: quicker made, and no less to look at
			must(t, os.Link(d+"/0", fmt.Sprintf("%s/%d", d, k)))
		}
	}
	f, err := os.Create(repo + "/image.iso")
	must(t, err)
	must(t, f.Truncate(5<<30))
	must(t, f.Close())
	put(t, repo+"/new.txt", "new\n")

	ws, err := m.Prepare(ctx, Request{Run: "r1", Repo: repo, InPlace: true})
	must(t, err)

	// Cancelling works at once, and leaves nothing locked.
	stop, cancel := context.WithCancel(ctx)
	began := make(chan struct{})
	ended := make(chan error, 1)
	go func() {
		close(began)
		_, err := m.Snapshot(stop, ws, "cancelled")
		ended <- err
	}()
	<-began
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}

	start := time.Now()
	s := snap(t, m, ws)
	t.Logf("the snapshot took %v", time.Since(start))
	if got := strings.Join(s.Left, "|"); got != "image.iso (5.0 GB: larger than 50.0 MB)|huge/ (200000 files, 1.1 MB: more than 50000 files that git does not track)" {
		t.Errorf("left out: %q", got)
	}
	if got := strings.TrimSpace(sh(t, ws.Shadow, "git --git-dir=. ls-tree -r --name-only "+s.Tree)); got != ".gitignore\na.txt\ndir/b.txt\nnew.txt" {
		t.Errorf("taken in:\n%s", got)
	}
	var used int64
	must(t, filepath.WalkDir(ws.Shadow, func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			st, err := d.Info()
			must(t, err)
			used += st.Size()
		}
		return err
	}))
	if used > 10<<20 {
		t.Errorf("the snapshots take up %s", size(used))
	}

	// A worktree with the uncommitted changes starts, and says what stayed behind.
	ws, err = m.Prepare(ctx, Request{Run: "r2", Repo: repo, WithChanges: true})
	must(t, err)
	if notes := strings.Join(ws.Notes, "|"); !strings.Contains(notes, "not brought along: huge/") || !strings.Contains(notes, "image.iso (5.0 GB") {
		t.Errorf("notes: %q", notes)
	}
	if read(t, ws.Path+"/new.txt") != "new\n" {
		t.Error("what fits did not come along")
	}
}

func TestASnapshotThatTakesTooLongIsGivenUp(t *testing.T) {
	m, ws := newSpace(t)
	m.limits.Time = time.Nanosecond
	var refused *RefusedError
	if _, err := m.Snapshot(ctx, ws, "slow"); !errors.As(err, &refused) || !strings.Contains(err.Error(), "longer than 1ns") {
		t.Errorf("got %v", err)
	}
	m.limits.Time = 0
	snap(t, m, ws)
}

// Whatever takes a file's place, the snapshot is of what is there.
func TestFilesFoldersAndLinksChangePlaces(t *testing.T) {
	m, ws := newSpace(t)
	put(t, ws.Path+"/x/y", "1\n")
	put(t, ws.Path+"/z/y", "2\n")
	put(t, ws.Path+"/plain", "3\n")
	a, before := snap(t, m, ws), picture(t, ws.Path)
	sh(t, ws.Path, "rm -r x && ln -s z x && rm plain && mkdir plain && echo 4 >plain/in && rm -r dir && mkfifo dir && rm a.txt && mkfifo a.txt && mv z/y z/Y")
	b := snap(t, m, ws)
	if got := sh(t, ws.Shadow, "git --git-dir=. ls-tree -r "+b.Tree+" | sed 's/ [^\t]*//'"); got != "100644\t.gitignore\n100644\tplain/in\n120000\tx\n100644\tz/Y\n" {
		t.Errorf("taken in:\n%s", got)
	}
	must(t, os.Remove(ws.Path+"/dir"))
	must(t, os.Remove(ws.Path+"/a.txt"))
	_, err := m.Restore(ctx, ws, a)
	must(t, err)
	if got := picture(t, ws.Path); got != before {
		t.Errorf("restored:\n%s\nwant:\n%s", got, before)
	}
}
