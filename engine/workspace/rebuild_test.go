//go:build unix

package workspace

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// worked makes a workspace with commits, staged and loose work on a side branch, an odd mode and an empty directory.
func worked(t *testing.T) (*Manager, Workspace, Snapshot, string, string) {
	m, ws := newSpace(t)
	sh(t, ws.Path, "echo five >>a.txt && git commit -qam 'third' && git checkout -q -b pawl/r1/side && echo six >>a.txt && git commit -qam fourth")
	put(t, ws.Path+"/staged.txt", "staged\n")
	sh(t, ws.Path, "git add staged.txt && echo changed since it was staged >staged.txt && echo loose >loose.txt && chmod 600 loose.txt && mkdir -p empty/below && ln -s a.txt link")
	s := snap(t, m, ws)
	return m, ws, s, picture(t, ws.Path), gitPicture(t, ws)
}

// gitPicture is what git tells a person about a worktree.
func gitPicture(t testing.TB, ws Workspace) string {
	return sh(t, ws.Path, "git status --porcelain=v2 --branch; git log --format='%H %s' HEAD; git for-each-ref refs/heads/pawl")
}

func TestRebuild(t *testing.T) {
	cases := map[string]func(t *testing.T, ws Workspace){
		"the folder":        func(t *testing.T, ws Workspace) { must(t, os.RemoveAll(ws.Path)) },
		"the git directory": func(t *testing.T, ws Workspace) { must(t, os.RemoveAll(ws.GitDir)) },
		"folder and git directory": func(t *testing.T, ws Workspace) {
			must(t, os.RemoveAll(ws.Path))
			must(t, os.RemoveAll(ws.GitDir))
		},
		"the whole clone": func(t *testing.T, ws Workspace) { must(t, os.RemoveAll(ws.CommonDir)) },
		"folder and clone": func(t *testing.T, ws Workspace) {
			must(t, os.RemoveAll(ws.Path))
			must(t, os.RemoveAll(ws.CommonDir))
		},
		"everything but the snapshots": func(t *testing.T, ws Workspace) {
			for _, d := range []string{ws.Path, ws.CommonDir, ws.Scratch} {
				must(t, os.RemoveAll(d))
			}
		},
	}
	for name, lose := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, ws, s, files, git := worked(t)
			user := refsOf(t, ws.Repo)
			if why := m.Gone(ws); why != "" {
				t.Fatalf("it is said to be gone while it is there: %s", why)
			}
			lose(t, ws)
			if m.Gone(ws) == "" {
				t.Fatal("it is not noticed that it is gone")
			}
			_, err := m.Rebuild(ctx, ws, s)
			must(t, err)
			if why := m.Gone(ws); why != "" {
				t.Fatalf("rebuilt, and still: %s", why)
			}
			if got := picture(t, ws.Path); got != files {
				t.Errorf("files:\n%s\nwant:\n%s", got, files)
			}
			if got := gitPicture(t, ws); got != git {
				t.Errorf("git:\n%s\nwant:\n%s", got, git)
			}
			if got := snap(t, m, ws); got.Tree != s.Tree || got.Head != s.Head {
				t.Errorf("tree %s head %s, want %s %s", got.Tree, got.Head, s.Tree, s.Head)
			}
			sh(t, ws.Path, "git fsck --no-dangling --connectivity-only && git commit -qm goes-on")
			if got := refsOf(t, ws.Repo); got != user {
				t.Errorf("the user's repository changed:\n%s\nwas:\n%s", got, user)
			}
		})
	}
}

// What the run did after the snapshot is kept, where it is still there.
func TestRebuildKeepsNewer(t *testing.T) {
	m, ws, s, _, _ := worked(t)
	sh(t, ws.Path, "echo seven >>a.txt && git commit -qam fifth")
	newer := strings.TrimSpace(sh(t, ws.Path, "git rev-parse HEAD"))
	put(t, ws.Path+"/precious.txt", "not in any snapshot\n")
	must(t, os.RemoveAll(ws.GitDir))
	res, err := m.Rebuild(ctx, ws, s)
	must(t, err)
	if _, err := os.Stat(ws.Path + "/precious.txt"); err == nil {
		t.Fatal("the snapshot did not have this file")
	}
	shadow := func(args string) string { return sh(t, ws.Shadow, "git --git-dir=. "+args) }
	if got := shadow("cat-file blob " + res.Rescue.Tree + ":precious.txt"); got != "not in any snapshot\n" {
		t.Errorf("rescued: %q", got)
	}
	if got := shadow("for-each-ref --format='%(objectname)' refs/pawl/lost"); !strings.Contains(got, newer) {
		t.Errorf("the newer commit %s has no name: %s", newer, got)
	}
	must(t, os.RemoveAll(ws.CommonDir))
	if got := shadow("log -1 --format=%s " + newer); strings.TrimSpace(got) != "fifth" {
		t.Errorf("the newer commit: %q", got)
	}
}

// Before the first snapshot nothing of the run's has changed a file, so what
// was lost is the base, whole; an empty folder would look like a deletion.
func TestRebuildBeforeAnySnapshot(t *testing.T) {
	for name, lose := range map[string]func(ws Workspace) error{
		"the folder":        func(ws Workspace) error { return os.RemoveAll(ws.Path) },
		"the git directory": func(ws Workspace) error { return os.RemoveAll(ws.GitDir) },
		"the clone":         func(ws Workspace) error { return os.RemoveAll(ws.CommonDir) },
	} {
		t.Run(name, func(t *testing.T) {
			repo, m := newRepo(t), newManager(t)
			ws, err := m.Prepare(ctx, Request{Run: "r1", Repo: repo})
			must(t, err)
			want := picture(t, ws.Path)
			must(t, lose(ws))
			_, err = m.Rebuild(ctx, ws, Snapshot{})
			must(t, err)
			if got := picture(t, ws.Path); got != want {
				t.Fatalf("rebuilt:\n%s\nwant\n%s", got, want)
			}
			if out := sh(t, ws.Path, "git status --porcelain"); out != "" {
				t.Fatalf("it looks changed:\n%s", out)
			}
		})
	}
}

func TestRebuildFromStart(t *testing.T) {
	repo, m := newRepo(t), newManager(t)
	put(t, repo+"/new.txt", "uncommitted\n")
	ws, err := m.Prepare(ctx, Request{Run: "r1", Repo: repo, WithChanges: true})
	must(t, err)
	want := picture(t, ws.Path)
	must(t, os.RemoveAll(ws.Path))
	_, err = m.Rebuild(ctx, ws, Snapshot{})
	must(t, err)
	if got := picture(t, ws.Path); got != want {
		t.Errorf("files:\n%s\nwant:\n%s", got, want)
	}
}

func TestRebuildRefuses(t *testing.T) {
	var refused *RefusedError
	t.Run("a folder of the user's", func(t *testing.T) {
		m := newManager(t)
		dir := filepath.Join(t.TempDir(), "notes")
		put(t, dir+"/a.txt", "a\n")
		ws, err := m.Prepare(ctx, Request{Run: "r1", Repo: dir})
		must(t, err)
		s := snap(t, m, ws)
		must(t, os.Rename(dir, dir+".moved"))
		if _, err := m.Rebuild(ctx, ws, s); !errors.As(err, &refused) {
			t.Fatalf("got %v", err)
		}
		if _, err := os.Stat(dir); err == nil {
			t.Error("a folder was made")
		}
	})
	t.Run("without snapshots", func(t *testing.T) {
		m, ws, s, _, _ := worked(t)
		must(t, os.RemoveAll(ws.Path))
		must(t, os.RemoveAll(ws.Shadow))
		if _, err := m.Rebuild(ctx, ws, s); !errors.As(err, &refused) || !strings.Contains(err.Error(), "export") {
			t.Fatalf("got %v", err)
		}
	})
	t.Run("without clone and repository", func(t *testing.T) {
		m, ws, s, _, _ := worked(t)
		must(t, os.RemoveAll(ws.CommonDir))
		must(t, os.Rename(ws.Repo, ws.Repo+".moved"))
		if _, err := m.Rebuild(ctx, ws, s); !errors.As(err, &refused) || !strings.Contains(err.Error(), ws.RepoGit) {
			t.Fatalf("got %v", err)
		}
	})
}

// Killed at any moment, it can be done again.
func TestRebuildKilled(t *testing.T) {
	m, ws, s, files, git := worked(t)
	for i := range 12 {
		must(t, os.RemoveAll(ws.Path))
		if i%2 == 1 {
			must(t, os.RemoveAll(ws.GitDir))
		}
		killedWhile(t, map[string]any{"State": m.state, "Op": "rebuild", "WS": ws, "To": s}, time.Duration(i)*12*time.Millisecond)
		if m.Gone(ws) != "" {
			_, err := m.Rebuild(ctx, ws, s)
			must(t, err)
		} else {
			_, err := m.Restore(ctx, ws, s)
			must(t, err)
		}
		if got := picture(t, ws.Path); got != files {
			t.Fatalf("kill %d: files:\n%s\nwant:\n%s", i, got, files)
		}
		if got := gitPicture(t, ws); got != git {
			t.Fatalf("kill %d: git:\n%s\nwant:\n%s", i, got, git)
		}
	}
}
