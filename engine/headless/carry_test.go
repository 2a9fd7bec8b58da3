package headless_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pawl/engine"
)

// A run is interrupted, exported, brought into a fresh state directory after all of the old one is gone, and finished.
func TestInterruptedHereAndFinishedElsewhere(t *testing.T) {
	t.Parallel()
	s := newStand(t, map[string]string{"a.txt": "n = 1\n", ".gitignore": "*.env\n"})
	script := s.script(`
name = "carried"
[[step]]
[[step.call]]
tool = "shell"
args = { command = "echo secret >x.env; git checkout -q -b pawl/$(git symbolic-ref --short HEAD | cut -d/ -f2)/side; echo one >>a.txt; git commit -qam one; echo staged >s.txt; git add s.txt; echo loose >s.txt" }
[[step]]
[[step.call]]
tool = "shell"
args = { command = "echo two >>a.txt; git commit -qm two a.txt; echo first; cat s.txt x.env >all.txt; git show :s.txt >>all.txt" }
` + stepFinish)
	if e := s.start([]string{"PAWL_CRASH=" + string(engine.PointWhileRunning) + "@two"}, s.run(script)...).wait(); !e.killed {
		t.Fatalf("it was not killed: %s", e)
	}
	run := string(s.only().ID)
	file := filepath.Join(t.TempDir(), "runs.pawl")
	s.must(0, "export", run, "--output", file)
	s.must(1, "export", run, "--output", file)
	if st, err := os.Stat(file); err != nil || st.Mode().Perm() != 0o600 {
		t.Fatalf("%v %v", st, err)
	}
	if st := s.only().State; st != engine.Paused {
		t.Errorf("here it is %s", st)
	}
	old := s.show(run).Workspace.Path
	if err := os.RemoveAll(filepath.Dir(s.ledger)); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(s.repo, s.repo+".away"); err != nil {
		t.Fatal(err)
	}

	there := *s
	there.ledger = filepath.Join(t.TempDir(), "elsewhere", "state", "ledger.db")
	there.must(0, "import", file)
	there.must(0, "verify")
	again := there.pawl("import", file)
	if again.code != 1 || !strings.Contains(again.err, "already") {
		t.Errorf("a second import: %s", again)
	}
	there.must(0, "resume", run)
	if got := there.inWork(run, "a.txt"); got != "n = 1\none\ntwo\n" {
		t.Errorf("a.txt: %q", got)
	}
	if got := there.inWork(run, "all.txt"); got != "loose\nsecret\nstaged\n" {
		t.Errorf("all.txt: %q", got)
	}
	if _, err := os.Stat(old); err == nil {
		t.Error("the old place was made again")
	}
	there.must(0, "verify")

	// Landing needs a repository.
	if e := there.pawl("land", run); e.code == 0 || !strings.Contains(e.err, "--repo") {
		t.Errorf("landing: %s", e)
	}
	if err := os.Rename(s.repo+".away", s.repo); err != nil {
		t.Fatal(err)
	}
	third := *s
	third.ledger = filepath.Join(t.TempDir(), "third", "ledger.db")
	third.must(0, "import", file, "--repo", s.repo)
	third.must(0, "resume", run)
	third.must(0, "land", run)
	if got := s.git("show", "main:a.txt"); got != "n = 1\none\ntwo\n" {
		t.Errorf("landed: %q", got)
	}
}

func TestADamagedExportChangesNothing(t *testing.T) {
	t.Parallel()
	s := newStand(t, map[string]string{"a.txt": "n = 1\n"})
	s.must(0, s.run(s.script("name = \"short\"\n"+stepFinish))...)
	file := filepath.Join(t.TempDir(), "runs.pawl")
	s.must(0, "export", "--output", file)
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	there := *s
	there.ledger = filepath.Join(t.TempDir(), "ledger.db")
	for name, bad := range map[string][]byte{"cut": whole[:len(whole)/2], "text": []byte("no export"), "empty": nil} {
		s.write(file, string(bad))
		e := there.pawl("import", file)
		if e.code != 1 || !strings.Contains(e.err, "cannot be imported") {
			t.Errorf("%s: %s", name, e)
		}
	}
	if list := there.must(0, "list", "--json"); list.out != "" {
		t.Errorf("it holds %s", list.out)
	}
}

func TestBackup(t *testing.T) {
	t.Parallel()
	s := newStand(t, map[string]string{"a.txt": "n = 1\n"})
	s.must(0, s.run(s.script("name = \"short\"\n"+stepFinish))...)
	file := filepath.Join(t.TempDir(), "copy.db")
	s.must(0, "backup", file)
	if e := s.pawl("backup", file); e.code != 1 || !strings.Contains(e.err, "exists already") {
		t.Errorf("a second time: %s", e)
	}
	there := *s
	there.ledger = file
	there.must(0, "verify")
	if there.only().ID != s.only().ID {
		t.Error("the copy holds something else")
	}
}
