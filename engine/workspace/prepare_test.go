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

func TestPrepareMakesAWorktreeAndLeavesTheUsersRepositoryAlone(t *testing.T) {
	repo, m := newRepo(t), newManager(t)
	before, files := refsOf(t, repo), picture(t, repo)
	ws, err := m.Prepare(ctx, Request{Run: "r1", Repo: repo, Title: "mend it"})
	must(t, err)
	if ws.Kind != KindWorktree || ws.Branch != "pawl/r1/work" || ws.Onto != "main" || ws.Name != "Ada" || ws.Email != "ada@example.org" {
		t.Errorf("got %+v", ws)
	}
	if read(t, ws.Path+"/a.txt") != "one\ntwo\nthree\nfour\n" || read(t, ws.Path+"/dir/b.txt") != "b\n" {
		t.Error("the files are not there")
	}
	if got := sh(t, ws.Path, "git status --porcelain; git symbolic-ref HEAD; git rev-parse HEAD main other v1 | uniq"); !strings.HasPrefix(got, "refs/heads/pawl/r1/work\n"+ws.Base+"\n") {
		t.Errorf("the worktree: %q", got)
	}
	pin := ws.Base + " commit\trefs/pawl/r1\n"
	after := refsOf(t, repo)
	if !strings.Contains(after, pin) || strings.Replace(after, pin, "", 1) != before {
		t.Errorf("the user's repository changed:\n%s\nwas\n%s", after, before)
	}
	if picture(t, repo) != files {
		t.Error("the user's files changed")
	}
	sh(t, repo, "git fsck --strict --no-dangling")
	again, err := m.Prepare(ctx, Request{Run: "r1", Repo: "/elsewhere"})
	if err != nil || again.Path != ws.Path || again.Base != ws.Base {
		t.Errorf("asked again: %+v, %v", again, err)
	}
	second, err := m.Prepare(ctx, Request{Run: "r2", Repo: repo, Ref: "other"})
	must(t, err)
	if second.CommonDir != ws.CommonDir || second.Onto != "other" || read(t, second.Path+"/a.txt") != "one\ntwo\nthree\n" {
		t.Errorf("a second run: %+v", second)
	}
}

func TestNothingOfTheUsersRuns(t *testing.T) {
	repo, m := newRepo(t), newManager(t)
	mark := filepath.Join(t.TempDir(), "ran")
	prog := filepath.Join(t.TempDir(), "prog")
	put(t, prog, "#!/bin/sh\necho \"$0 $*\" >>"+mark+"\nexit 1\n")
	must(t, os.Chmod(prog, 0o755))
	for _, h := range []string{"post-checkout", "reference-transaction", "pre-commit", "commit-msg", "prepare-commit-msg", "post-commit", "post-merge", "pre-merge-commit", "post-index-change", "update", "pre-receive", "post-rewrite"} {
		must(t, os.Symlink(prog, filepath.Join(repo, ".git/hooks", h)))
	}
	put(t, repo+"/.git/config", read(t, repo+"/.git/config")+"[core]\n\tfsmonitor = "+prog+"\n[filter \"f\"]\n\tclean = "+prog+"\n\tsmudge = "+prog+"\n[diff \"d\"]\n\tcommand = "+prog+"\n\ttextconv = "+prog+"\n[merge \"m\"]\n\tdriver = "+prog+"\n")
	put(t, repo+"/.git/info/attributes", "") // the attributes come from the tree, as an agent could write them
	ws, err := m.Prepare(ctx, Request{Run: "r1", Repo: repo, WithChanges: true})
	must(t, err)
	put(t, ws.Path+"/.gitattributes", "* filter=f diff=d merge=m\n")
	put(t, ws.Path+"/a.txt", "changed\n")
	// A repository inside, planted by a command, whose own settings name programs.
	sh(t, ws.Path, "mkdir in && cd in && git init -q && echo x >x && git add x && git commit -qm x && git config core.fsmonitor "+prog+" && git config core.hooksPath "+filepath.Dir(prog))
	first := snap(t, m, ws)
	put(t, ws.Path+"/in/x", "y\n")
	if _, err := m.Restore(ctx, ws, first); err != nil {
		t.Fatal(err)
	}
	if _, err := m.DiffBase(ctx, ws); err != nil {
		t.Fatal(err)
	}
	if _, err := m.IgnoredManifest(ctx, ws); err != nil {
		t.Fatal(err)
	}
	must(t, os.RemoveAll(ws.Path+"/in"))
	if b, err := os.ReadFile(mark); err == nil {
		t.Fatalf("these ran before landing:\n%s", b)
	}
	// In their own checkout the user's filters must apply, as in any merge of theirs (large files would stay pointers
	// otherwise). Nothing else may.
	sh(t, repo, "git config --remove-section filter.f")
	p, err := m.Preview(ctx, ws, "")
	must(t, err)
	p, err = m.Commit(ctx, ws, p)
	must(t, err)
	must(t, m.Land(ctx, ws, p))
	if b, err := os.ReadFile(mark); err == nil {
		t.Errorf("these ran:\n%s", b)
	}
}

func TestChangesComeAlong(t *testing.T) {
	repo, m := newRepo(t), newManager(t)
	put(t, repo+"/a.txt", "changed\r\n")
	put(t, repo+"/new/file", "new\n")
	put(t, repo+"/x.log", "ignored\n")
	must(t, os.Remove(repo+"/dir/b.txt"))
	sh(t, repo, "echo staged >s && git add s")
	dirty, err := m.Dirty(ctx, repo)
	must(t, err)
	if strings.Join(dirty, " ") != "s a.txt dir/b.txt new/" && len(dirty) != 4 {
		t.Errorf("dirty: %q", dirty)
	}
	before := refsOf(t, repo)
	ws, err := m.Prepare(ctx, Request{Run: "r1", Repo: repo, WithChanges: true})
	must(t, err)
	if read(t, ws.Path+"/a.txt") != "changed\r\n" || read(t, ws.Path+"/new/file") != "new\n" || read(t, ws.Path+"/s") != "staged\n" {
		t.Error("changes are missing")
	}
	for _, gone := range []string{"/dir/b.txt", "/x.log"} {
		if _, err := os.Lstat(ws.Path + gone); err == nil {
			t.Errorf("%s should not be there", gone)
		}
	}
	if after := refsOf(t, repo); strings.Replace(after, ws.Base+" commit\trefs/pawl/r1\n", "", 1) != before {
		t.Errorf("the user's checkout changed:\n%s", after)
	}
	clean, err := m.Prepare(ctx, Request{Run: "r2", Repo: repo})
	must(t, err)
	if read(t, clean.Path+"/a.txt") != "one\ntwo\nthree\nfour\n" {
		t.Error("changes came along unasked")
	}
}

func TestPlacesThatCannotBeAWorkspace(t *testing.T) {
	repo, m := newRepo(t), newManager(t)
	home, err := os.UserHomeDir()
	must(t, err)
	dir := t.TempDir()
	bare, empty, file := dir+"/bare.git", dir+"/empty", dir+"/file"
	sh(t, dir, "git init -q --bare bare.git && git init -q empty && touch file && mkdir plain")
	for name, c := range map[string]struct {
		r    Request
		want string
	}{
		"root":         {Request{Repo: "/"}, "whole file system"},
		"home":         {Request{Repo: home}, "home directory"},
		"above home":   {Request{Repo: filepath.Dir(home)}, "home directory"},
		"home inside":  {Request{Repo: home, InPlace: true}, "home directory"},
		"missing":      {Request{Repo: dir + "/none"}, "no such file"},
		"a file":       {Request{Repo: file}, "not a folder"},
		"bare":         {Request{Repo: bare}, "bare repository"},
		"no commit":    {Request{Repo: empty}, "no commit yet"},
		"no such ref":  {Request{Repo: repo, Ref: "nope"}, "no such commit"},
		"dashed ref":   {Request{Repo: repo, Ref: "--output=x"}, "no such commit"},
		"ref no git":   {Request{Repo: dir + "/plain", Ref: "main"}, "no git repository"},
		"bad run name": {Request{Run: "../x", Repo: repo}, "cannot be a run's id"},
	} {
		if c.r.Run == "" {
			c.r.Run = "r1"
		}
		_, err := m.Prepare(ctx, c.r)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
		if name != "bad run name" {
			if cerr := m.Check(ctx, c.r); cerr == nil || cerr.Error() != err.Error() {
				t.Errorf("%s: asked before: %v", name, cerr)
			}
		}
	}
	if ents, _ := filepath.Glob(m.state + "/journal/*"); len(ents) != 0 {
		t.Errorf("a refusal left %v", ents)
	}
	must(t, m.Check(ctx, Request{Run: "r1", Repo: repo}))
	if strings.Contains(refsOf(t, repo), "refs/pawl") {
		t.Error("asking made a ref")
	}
}

func TestInPlaceAndFolder(t *testing.T) {
	repo, m := newRepo(t), newManager(t)
	ws, err := m.Prepare(ctx, Request{Run: "r1", Repo: repo + "/dir", InPlace: true})
	must(t, err)
	if ws.Kind != KindInPlace || ws.Path != repo || ws.Branch != "main" {
		t.Errorf("got %+v", ws)
	}
	w, p := m.Confinement(ws)
	if len(w) != 1 || w[0] != repo || len(p) == 0 || p[0] != repo+"/.git" {
		t.Errorf("confinement: %v but %v", w, p)
	}
	index := read(t, repo+"/.git/index")
	s := snap(t, m, ws)
	if s.Head == "" || s.Branch != "refs/heads/main" || s.Head != ws.Base {
		t.Errorf("snapshot %+v", s)
	}
	put(t, repo+"/a.txt", "spoilt\n")
	if _, err := m.Restore(ctx, ws, s); err != nil || read(t, repo+"/a.txt") != "one\ntwo\nthree\nfour\n" || read(t, repo+"/.git/index") != index {
		t.Errorf("restore: %v", err)
	}
	var r *RefusedError
	if _, err := m.Preview(ctx, ws, ""); !errors.As(err, &r) {
		t.Errorf("landing in place: %v", err)
	}
	plain := t.TempDir()
	put(t, plain+"/f", "f\n")
	fw, err := m.Prepare(ctx, Request{Run: "r2", Repo: plain})
	must(t, err)
	if fw.Kind != KindFolder || fw.Base != "" {
		t.Errorf("got %+v", fw)
	}
	fs := snap(t, m, fw)
	put(t, plain+"/f", "g\n")
	put(t, plain+"/new", "n\n")
	if res, err := m.Restore(ctx, fw, fs); err != nil || len(res.Changed) != 2 || read(t, plain+"/f") != "f\n" {
		t.Errorf("restore: %+v %v", res, err)
	}
	if b, err := m.DiffBase(ctx, fw); err != nil || len(b) != 0 {
		t.Errorf("%q %v", b, err)
	}
}

func TestKilledWhilePreparing(t *testing.T) {
	repo := newRepo(t)
	put(t, repo+"/a.txt", "dirty\n")
	for i := range 300 {
		put(t, repo+"/many/"+strings.Repeat("d", i%7+1)+"/"+string(rune('a'+i%26))+strings.Repeat("x", i/26), "text\n")
	}
	sh(t, repo, "git add many && git commit -qm many -- many")
	req := Request{Run: "r1", Repo: repo, WithChanges: true}
	whole := newManager(t)
	start := time.Now()
	want, err := whole.Prepare(ctx, req)
	must(t, err)
	took := time.Since(start)
	const rounds = 10
	early := 0
	for i := range rounds {
		m := newManager(t)
		if !killedWhile(t, map[string]any{"State": m.state, "Op": "prepare", "Req": req}, took*time.Duration(i)/(rounds-3)) {
			early++
		}
		ws, err := m.Prepare(ctx, req)
		if err != nil {
			t.Fatalf("round %d: %v", i, err)
		}
		if ws.Base != want.Base || ws.Branch != want.Branch || strings.ReplaceAll(picture(t, ws.Path), m.state, "") != strings.ReplaceAll(picture(t, want.Path), whole.state, "") {
			t.Errorf("round %d: the workspace differs", i)
		}
		if got := sh(t, ws.Path, "git symbolic-ref HEAD; git status --porcelain; git fsck --no-dangling"); got != sh(t, want.Path, "git symbolic-ref HEAD; git status --porcelain; git fsck --no-dangling") {
			t.Errorf("round %d: git says %q", i, got)
		}
		must(t, os.RemoveAll(m.state))
	}
	t.Logf("%d of %d were killed before they were done", early, rounds)
	sh(t, repo, "git fsck --strict --no-dangling")
}
