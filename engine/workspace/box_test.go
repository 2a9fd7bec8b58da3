//go:build linux

package workspace

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pawl/engine/confine"
)

// boxed runs a script in the workspace, confined as a run's commands are.
func boxed(t testing.TB, m *Manager, ws Workspace, script string) (int, string) {
	t.Helper()
	d, err := confine.Defaults(ws.Path, ws.Scratch, os.Getenv("HOME"), os.Environ())
	must(t, err)
	w, p := m.Confinement(ws)
	s := confine.Spec{
		Argv: []string{"sh", "-c", script}, Dir: ws.Path, Env: ws.Env(), Writable: w, Protected: p, Readable: append(m.Visible(ws), ws.Repo),
		Hidden: []string{m.state}, Output: filepath.Join(t.TempDir(), "out"), Level: confine.LevelSealed,
	}
	d.Apply(&s)
	proc, err := confine.Start(ctx, s)
	must(t, err)
	must(t, proc.Open())
	e, err := proc.Wait(ctx)
	must(t, err)
	return e.Code, read(t, s.Output)
}

func needBox(t testing.TB) {
	t.Helper()
	if r := confine.Measure(ctx, confine.LevelSealed); r.Level != confine.LevelSealed {
		t.Skipf("no sealed box here: %v", r.Missing)
	}
}

func TestGitInTheBox(t *testing.T) {
	needBox(t)
	m, ws := newSpace(t)
	_, err := m.Prepare(ctx, Request{Run: "r2", Repo: ws.Repo})
	must(t, err)
	before := refsOf(t, ws.Repo) + picture(t, ws.Repo)
	code, out := boxed(t, m, ws, `set -e; git status --porcelain; echo x >>a.txt; git commit -qam one; git log --format=%an%x20%s -1
git switch -qc pawl/r1/side HEAD~1; echo y >y; git add y; git commit -qm two; git rebase -q pawl/r1/work; git reset -q --hard HEAD~1; git switch -q pawl/r1/work; git diff main --stat | tail -1`)
	if code != 0 || !strings.Contains(out, "Ada one\n") || !strings.Contains(out, "1 file changed") {
		t.Errorf("what must work: %d\n%s", code, out)
	}
	for name, script := range map[string]string{
		"configuration":   "git config core.fsmonitor /bin/true",
		"worktree config": "git config --worktree core.fsmonitor /bin/true",
		"hooks":           "d=$(git rev-parse --git-common-dir); mkdir -p $d/hooks && echo >$d/hooks/pre-commit",
		"another branch":  "git branch -f main HEAD",
		"delete a branch": "git branch -D other",
		"a tag":           "git tag v2",
		"stash":           "echo z >>a.txt; git stash",
		"another run":     "git update-ref refs/heads/pawl/r2/work HEAD",
		"pack the refs":   "git pack-refs --all",
		"alternates":      "echo /tmp >$(git rev-parse --git-common-dir)/objects/info/alternates",
		"common dir":      "echo /tmp >$(git rev-parse --git-dir)/commondir",
		"its .git file":   "rm -f .git && echo gitdir: /tmp >.git",
		"the user's repo": "cd " + ws.Repo + " && git commit -q --allow-empty -m no",
		"the user's file": "echo no >" + ws.Repo + "/a.txt",
		"pawl's state":    "cat " + m.state + "/journal/r1.json || cat " + ws.Shadow + "/config",
		"another's files": "cat " + m.at("work", "r2") + "/a.txt",
	} {
		if code, out := boxed(t, m, ws, script); code == 0 {
			t.Errorf("%s was possible:\n%s", name, out)
		}
	}
	keep := snap(t, m, ws)
	want, history := picture(t, ws.Path), sh(t, ws.Path, "git log --format=%H%s; git status --porcelain; git symbolic-ref HEAD")
	boxed(t, m, ws, "rm -rf * .git "+ws.CommonDir+" "+ws.Repo+" "+ws.Repo+"/.git")
	if after := refsOf(t, ws.Repo) + picture(t, ws.Repo); after != before {
		t.Error("the user's repository changed")
	}
	sh(t, ws.Repo, "git fsck --strict --no-dangling")
	// Even after that, everything comes back.
	if _, err := m.Restore(ctx, ws, keep); err != nil {
		t.Fatal(err)
	}
	if picture(t, ws.Path) != want || sh(t, ws.Path, "git log --format=%H%s; git status --porcelain; git symbolic-ref HEAD") != history {
		t.Error("it did not come back as it was")
	}
	sh(t, ws.Path, "git fsck --no-reflogs --no-dangling && echo more >>a.txt && git commit -qam more")
}

func TestACommandKilledInTheBoxIsRunAgain(t *testing.T) {
	needBox(t)
	m, ws := newSpace(t)
	script := "echo start >>log.txt; mkdir made; for i in 1 2 3; do echo $i >made/$i; done; rm -r dir; mv a.txt b.txt; chmod 700 b.txt; git add -A; git commit -qm done; echo end >>log.txt"
	s := snap(t, m, ws)
	if code, out := boxed(t, m, ws, script); code != 0 {
		t.Fatal(out)
	}
	want := picture(t, ws.Path)
	tree := sh(t, ws.Path, "git rev-parse HEAD^{tree}; git log --format=%s; git status --porcelain")
	for _, stop := range []string{"echo start", "mkdir made", "rm -r dir", "chmod 700 b.txt", "git add -A", "git commit -qm done"} {
		if _, err := m.Restore(ctx, ws, s); err != nil {
			t.Fatal(err)
		}
		part, _, _ := strings.Cut(script, stop)
		if code, _ := boxed(t, m, ws, part+stop+" >/dev/null; kill -9 $$"); code != -1 {
			t.Fatalf("the command was not killed after %q", stop)
		}
		if _, err := m.Restore(ctx, ws, s); err != nil {
			t.Fatal(err)
		}
		if code, out := boxed(t, m, ws, script); code != 0 {
			t.Fatalf("after %q: %s", stop, out)
		}
		if picture(t, ws.Path) != want || sh(t, ws.Path, "git rev-parse HEAD^{tree}; git log --format=%s; git status --porcelain") != tree {
			t.Errorf("killed after %q and run again, the result differs", stop)
		}
	}
}
