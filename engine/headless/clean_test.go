package headless_test

import (
	"os"
	"strings"
	"testing"
)

func TestCleanKeepsWhatIsNowhereElse(t *testing.T) {
	t.Parallel()
	s := newStand(t, map[string]string{"a.txt": "n = 1\n"})
	script := s.script(`
name = "leaves"
[[step]]
[[step.call]]
tool = "write_file"
args = { path = "new.txt", content = "made by the run\n" }
` + stepFinish)
	s.must(0, s.run(script)...)
	run := string(s.only().ID)
	path := s.show(run).Workspace.Path
	if out := s.must(0, "worktrees").out; !strings.Contains(out, run) || !strings.Contains(out, `not committed: "new.txt"`) {
		t.Errorf("worktrees: %s", out)
	}
	if e := s.pawl("clean", run); e.code != 1 || !strings.Contains(e.out, `not committed: "new.txt"`) || !strings.Contains(e.err, "--save") {
		t.Errorf("clean: %s", e)
	}
	s.must(0, "clean")
	if _, err := os.Stat(path); err != nil {
		t.Fatal("it was removed")
	}
	s.must(0, "land", run)
	s.must(0, "clean", run, "--dry-run")
	if _, err := os.Stat(path); err != nil {
		t.Fatal("a dry run removed it")
	}
	s.must(0, "clean", run)
	if _, err := os.Stat(path); err == nil {
		t.Error("it is still there")
	}
	if out := s.must(0, "worktrees").out; !strings.Contains(out, "is gone") {
		t.Errorf("worktrees: %s", out)
	}

	other := newStand(t, map[string]string{"a.txt": "n = 1\n"})
	other.must(0, other.run(script)...)
	run = string(other.only().ID)
	other.must(0, "clean", run, "--save")
	if got := other.git("show", "refs/pawl/saved/"+run+"/files:new.txt"); got != "made by the run\n" {
		t.Errorf("saved: %q", got)
	}
	other.must(0, "verify")
}
