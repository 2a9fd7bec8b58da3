package tool

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pawl/engine/confine"
	"pawl/engine/machine"
	"pawl/engine/workspace"
	"pawl/fixtures/sample"
)

// repoBench is a run's own worktree of the sample repository, prepared as a run
// gets it, with Pawl's state hidden from its commands.
func repoBench(t *testing.T) (*bench, sample.Repo) {
	t.Helper()
	dir := t.TempDir()
	repo, err := sample.NewRepo(t.Context(), filepath.Join(dir, "user"))
	if err != nil {
		t.Skipf("the sample repository cannot be made: %v", err)
	}
	b := newBench(t, Options{})
	state := filepath.Join(dir, "state")
	b.env.Manager = workspace.New(state)
	b.env.Hidden = []string{state}
	b.env.Outputs = filepath.Join(state, "outputs")
	b.env.Space, err = b.env.Manager.Prepare(t.Context(), workspace.Request{Run: string(b.env.Run), Repo: repo.Path, Title: "repair"})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(state, "ledger.db"), []byte("private"), 0o600); err != nil {
		t.Fatal(err)
	}
	return b, repo
}

// A whole repair through the tools: look, edit, test, commit, push.
func TestToolsInAWorktree(t *testing.T) {
	for _, level := range []confine.Level{confine.LevelNone, confine.LevelSealed} {
		t.Run(level.String(), func(t *testing.T) {
			b, repo := repoBench(t)
			if level == confine.LevelSealed {
				b.sealed()
			}
			sh := func(line, code string) string {
				t.Helper()
				o := b.do("shell", m{"command": line})
				wantEnd(t, o, EndCompleted, code)
				return text(t, o)
			}
			wantText(t, text(t, b.do("list_dir", m{})), "go.mod")
			wantText(t, sh("go test ./...", "1"), "FAIL") // the fixture's bug, with the user's build cache and no network
			wantEnd(t, b.do("write_file", m{"path": "NOTES.md", "content": "found it\n"}), EndCompleted, "0")
			sh("git add -A && git commit -qm 'note'", "0")
			if got := strings.TrimSpace(sh("git status --porcelain", "0")); got != "" {
				t.Errorf("left over: %s", got)
			}
			if level == confine.LevelSealed {
				sh("! cat "+filepath.Join(filepath.Dir(b.env.Outputs), "ledger.db"), "0")
				sh("! git config user.name Evil", "0")
				b.do("shell", m{"command": "echo x > " + filepath.Join(repo.Path, "x")}) // what it can reach there is not the user's
				if _, err := os.Stat(filepath.Join(repo.Path, "x")); err == nil {
					t.Error("it wrote into the user's checkout")
				}
			}
			p := b.mustPlan("shell", m{"command": "git push origin HEAD:refs/heads/fix/x"})
			if p.Contract.Class != machine.ClassProbeable || p.Subject.Recipe != "git-push" {
				t.Fatalf("%+v", p)
			}
			sh("git push origin HEAD:refs/heads/fix/x", "0")
			head := strings.TrimSpace(sh("git rev-parse HEAD", "0"))
			if got := gitIn(t, repo.Remote, "rev-parse", "refs/heads/fix/x"); got != head {
				t.Errorf("the remote has %s, not %s", got, head)
			}
			b.env.Check = "go vet ./..."
			o := b.do("finish", m{"summary": "s"})
			wantEnd(t, o, EndCompleted, "0")
		})
	}
}

// An edit interrupted at any moment is brought to its end by repeating it, and
// somebody else's late edit survives.
func TestRepeatedEditAfterALateEdit(t *testing.T) {
	b, _ := repoBench(t)
	p := b.mustPlan("edit_file", m{"path": "go.mod", "old": "module", "new": "// new\nmodule"})
	c := b.call(p)
	var err error
	tl := b.set.Get("edit_file")
	if c.Measured, err = tl.Measure(context.Background(), b.env, p.Contract, p.Args); err != nil {
		t.Fatal(err)
	}
	wantEnd(t, tl.Run(t.Context(), b.env, c), EndCompleted, "0")
	again := c
	again.Attempt = 2
	o := tl.Run(t.Context(), b.env, again)
	wantEnd(t, o, EndCompleted, "0")
	wantText(t, text(t, o), "already has the new content")
	b.put("go.mod", "somebody else's\n")
	wantEnd(t, tl.Run(t.Context(), b.env, again), EndCompleted, CodeDrift)
	if b.disk("go.mod") != "somebody else's\n" {
		t.Error(b.disk("go.mod"))
	}
}
