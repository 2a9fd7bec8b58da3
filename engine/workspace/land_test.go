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

func plan(t testing.TB, m *Manager, ws Workspace, onto string) LandPlan {
	t.Helper()
	p, err := m.Preview(ctx, ws, onto)
	must(t, err)
	return p
}

func landing(t testing.TB, m *Manager, ws Workspace, onto string) LandPlan {
	t.Helper()
	p, err := m.Commit(ctx, ws, plan(t, m, ws, onto))
	must(t, err)
	return p
}

func TestFastForwardInTheCleanCheckout(t *testing.T) {
	m, ws := newSpace(t)
	if p := plan(t, m, ws, ""); p.How != HowNothing || p.Commit != ws.Base || p.Onto != "main" {
		t.Errorf("nothing done yet: %+v", p)
	}
	sh(t, ws.Path, "echo five >>a.txt && git commit -qam five && echo new >left && rm dir/b.txt")
	p := plan(t, m, ws, "")
	if p.How != HowFastForward || p.CheckedOut != ws.Repo || p.Blocked != "" || strings.Join(p.Leftovers, " ") != "dir/b.txt left" || strings.Join(p.Files, " ") != "a.txt" || p.Commit != "" {
		t.Errorf("preview %+v", p)
	}
	put(t, ws.Repo+"/theirs.log", "untracked and unrelated")
	put(t, ws.Repo+"/untracked", "untracked and unrelated")
	p, err := m.Commit(ctx, ws, p)
	must(t, err)
	if p.Commit == "" || len(p.Leftovers) != 0 {
		t.Errorf("committed %+v", p)
	}
	if done, err := m.Landed(ctx, ws, p); err != nil || done {
		t.Errorf("landed before landing: %v", err)
	}
	must(t, m.Land(ctx, ws, p))
	if read(t, ws.Repo+"/a.txt") != "one\ntwo\nthree\nfour\nfive\n" || read(t, ws.Repo+"/left") != "new\n" || read(t, ws.Repo+"/untracked") == "" {
		t.Error("the checkout was not updated")
	}
	if got := sh(t, ws.Repo, "git rev-parse main; git status --porcelain; git log -1 --format='%an %s%n%b'; git fsck --strict --no-dangling"); got != p.Commit+"\n?? untracked\nAda mend it: uncommitted work\nPawl-Run: r1\n\n" {
		t.Errorf("%q", got)
	}
	if done, err := m.Landed(ctx, ws, p); err != nil || !done {
		t.Errorf("not landed: %v", err)
	}
	// Twice is once, also when the user has gone on.
	sh(t, ws.Repo, "echo six >>a.txt && git commit -qam six")
	tip := sh(t, ws.Repo, "git rev-parse main")
	must(t, m.Land(ctx, ws, p))
	if sh(t, ws.Repo, "git rev-parse main") != tip {
		t.Error("the second landing did something")
	}
	if p := plan(t, m, ws, ""); p.How != HowNothing {
		t.Errorf("afterwards: %+v", p)
	}
}

func TestMergeIsTheSameEachTime(t *testing.T) {
	m, ws := newSpace(t)
	sh(t, ws.Path, "echo work >work && git add work && git commit -qm work")
	sh(t, ws.Repo, "echo theirs >theirs && git add theirs && git commit -qm theirs")
	p := landing(t, m, ws, "")
	if q := landing(t, m, ws, ""); p.How != HowMerge || p.Commit != q.Commit || p.Commit == p.Tip || strings.Join(p.Files, " ") != "work" {
		t.Errorf("%+v then %+v", p, q)
	}
	must(t, m.Land(ctx, ws, p))
	must(t, m.Land(ctx, ws, p))
	if got := sh(t, ws.Repo, "git log --format=%s; git status --porcelain; cat work theirs; git log -1 --format=%P"); got != "Merge pawl/r1/work into main\ntheirs\nwork\nsecond\nfirst\nwork\ntheirs\n"+p.Base+" "+p.Tip+"\n" {
		t.Errorf("%q", got)
	}
}

func TestConflictsAreNamedAndNothingHappens(t *testing.T) {
	m, ws := newSpace(t)
	sh(t, ws.Path, "sed -i s/two/agent/ a.txt && git commit -qam agent")
	sh(t, ws.Repo, "sed -i s/two/human/ a.txt && git commit -qam human")
	before := refsOf(t, ws.Repo) + picture(t, ws.Repo)
	p := plan(t, m, ws, "")
	if p.How != HowMerge || strings.Join(p.Conflicts, " ") != "a.txt" || p.Commit != "" {
		t.Errorf("%+v", p)
	}
	var r *RefusedError
	if _, err := m.Commit(ctx, ws, p); !errors.As(err, &r) || !strings.Contains(err.Error(), "a.txt") {
		t.Errorf("got %v", err)
	}
	if err := m.Land(ctx, ws, p); !errors.As(err, &r) {
		t.Errorf("got %v", err)
	}
	if refsOf(t, ws.Repo)+picture(t, ws.Repo) != before {
		t.Error("the user's repository changed")
	}
}

func TestLandingThatIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		script string // done by the user between preview and landing
		want   string
	}{
		"dirty checkout":          {"echo x >>a.txt", "uncommitted changes"},
		"staged":                  {"echo x >>a.txt && git add a.txt", "uncommitted changes"},
		"branch moved":            {"git commit -q --allow-empty -m moved", "has moved"},
		"branch deleted":          {"git switch -q other && git branch -qD main", "has moved"},
		"untracked in the way":    {"echo mine >work", "would be overwritten"},
		"the user's git is at it": {"touch .git/index.lock", "index.lock"},
	} {
		t.Run(name, func(t *testing.T) {
			m, ws := newSpace(t)
			sh(t, ws.Path, "echo work >work && git add work && git commit -qm work")
			p := landing(t, m, ws, "")
			sh(t, ws.Repo, c.script)
			files, head := picture(t, ws.Repo), sh(t, ws.Repo, "git for-each-ref refs/heads; cat .git/HEAD")
			var r *RefusedError
			if err := m.Land(ctx, ws, p); !errors.As(err, &r) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v", err)
			}
			if picture(t, ws.Repo) != files || sh(t, ws.Repo, "git for-each-ref refs/heads; cat .git/HEAD") != head {
				t.Error("something was changed")
			}
			if done, err := m.Landed(ctx, ws, p); err != nil || done {
				t.Errorf("landed: %v %v", done, err)
			}
		})
	}
	m, ws := newSpace(t)
	put(t, ws.Repo+"/a.txt", "dirty")
	put(t, ws.Path+"/work", "w")
	if p := plan(t, m, ws, ""); !strings.Contains(p.Blocked, "commit or stash") || !strings.Contains(p.Blocked, "a.txt") {
		t.Errorf("%+v", p)
	}
	var r *RefusedError
	if _, err := m.Preview(ctx, ws, "nope"); !errors.As(err, &r) {
		t.Errorf("no such branch: %v", err)
	}
}

func TestABranchThatIsNotCheckedOutMovesByItself(t *testing.T) {
	m, ws := newSpace(t)
	sh(t, ws.Path, "echo work >work && git add work && git commit -qm work")
	put(t, ws.Repo+"/a.txt", "dirty, and of no concern\n")
	files := picture(t, ws.Repo)
	p := landing(t, m, ws, "other")
	if p.CheckedOut != "" || p.How != HowFastForward {
		t.Errorf("%+v", p)
	}
	must(t, m.Land(ctx, ws, p))
	if got := strings.TrimSpace(sh(t, ws.Repo, "git rev-parse other")); got != p.Commit || picture(t, ws.Repo) != files {
		t.Errorf("other is on %s", got)
	}
	// In a worktree of the user's own, that one is updated.
	wt := filepath.Join(t.TempDir(), "wt")
	sh(t, ws.Repo, "git branch third main && git worktree add -q "+wt+" third")
	p = landing(t, m, ws, "third")
	if real, _ := filepath.EvalSymlinks(wt); p.CheckedOut != real {
		t.Errorf("checked out in %q", p.CheckedOut)
	}
	must(t, m.Land(ctx, ws, p))
	if read(t, wt+"/work") != "work\n" || sh(t, wt, "git status --porcelain") != "" {
		t.Error("the user's worktree is stale")
	}
}

func TestUnfinishedWorkBlocks(t *testing.T) {
	m, ws := newSpace(t)
	sh(t, ws.Path, "git switch -qc pawl/r1/side other && echo z >>a.txt && git commit -qam z && ! git rebase -q pawl/r1/work")
	if p := plan(t, m, ws, ""); !strings.Contains(p.Blocked, "rebase") {
		t.Errorf("%+v", p)
	}
}

func TestKilledWhileLanding(t *testing.T) {
	const rounds = 8
	done := 0
	for i := range rounds {
		m, ws := newSpace(t)
		sh(t, ws.Path, "for i in $(seq 200); do echo $i >w$i; done; git add . && git commit -qm work")
		onto := "main"
		if i%2 == 1 {
			onto = "other"
		}
		p := landing(t, m, ws, onto)
		if killedWhile(t, map[string]any{"State": m.state, "Op": "land", "WS": ws, "Plan": p}, time.Duration(i)*9*time.Millisecond) {
			done++
		}
		// A git that is still at it is waited for, so the first answer counts.
		first, err := m.Landed(ctx, ws, p)
		must(t, err)
		if now := strings.TrimSpace(sh(t, ws.Repo, "git rev-parse "+onto)); (now == p.Commit) != first {
			t.Errorf("round %d: landed %v, yet %s is on %s", i, first, onto, now)
		}
		must(t, m.Land(ctx, ws, p))
		if got := strings.TrimSpace(sh(t, ws.Repo, "git rev-parse "+onto)); got != p.Commit {
			t.Errorf("round %d: %s is on %s", i, onto, got)
		}
		if out := sh(t, ws.Repo, "git status --porcelain; git fsck --no-dangling"); out != "" {
			t.Errorf("round %d: the checkout is %q", i, out)
		}
		_ = os.RemoveAll(m.state)
	}
	t.Logf("%d of %d were done before they were killed", done, rounds)
}
