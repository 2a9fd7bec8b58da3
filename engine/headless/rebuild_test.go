package headless_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pawl/engine"
)

const stepFinish = `
[[step]]
[[step.call]]
tool = "finish"
args = { summary = "Done." }
`

// worked reads a file of the run's workspace, "" if there is none.
func (s *stand) inWork(run, name string) string {
	s.t.Helper()
	b, err := os.ReadFile(filepath.Join(s.show(run).Workspace.Path, name))
	if err != nil && !os.IsNotExist(err) {
		s.t.Fatal(err)
	}
	return string(b)
}

// A run is killed in the middle of a command, and then its folder is deleted.
func TestKilledAndItsFolderDeleted(t *testing.T) {
	t.Parallel()
	s := newStand(t, map[string]string{"a.txt": "n = 1\n", ".gitignore": "*.env\n"})
	script := s.script(`
name = "lost"
[[step]]
[[step.call]]
tool = "write_file"
args = { path = "kept.txt", content = "written before\n" }
[[step]]
[[step.call]]
tool = "shell"
args = { command = "git add -A && git commit -qm 'by the run' && echo secret >x.env && printf 'one\\n' >>a.txt && echo first && printf 'two\\n' >>a.txt" }
` + stepFinish)
	e := s.start([]string{"PAWL_CRASH=" + string(engine.PointWhileRunning)}, s.run(script)...).wait()
	if !e.killed {
		t.Fatalf("it was not killed: %s", e)
	}
	run := string(s.only().ID)
	before := s.git("status", "--porcelain", "--branch") + s.git("for-each-ref")
	if err := os.RemoveAll(s.show(run).Workspace.Path); err != nil {
		t.Fatal(err)
	}
	s.must(0, "resume", run)
	if got := s.inWork(run, "a.txt"); got != "n = 1\none\ntwo\n" {
		t.Errorf("a.txt: %q", got)
	}
	if got := s.inWork(run, "kept.txt"); got != "written before\n" {
		t.Errorf("kept.txt: %q", got)
	}
	if n := s.kinds(run); n["WorkspaceRebuilt"] != 1 {
		t.Errorf("rebuilt %d times", n["WorkspaceRebuilt"])
	}
	if got := s.git("status", "--porcelain", "--branch") + s.git("for-each-ref"); got != before {
		t.Errorf("the user's repository changed:\n%s\nwas:\n%s", got, before)
	}
	if told := s.must(0, "context", run).out; !strings.Contains(told, "was made again") {
		t.Errorf("the model is not told:\n%s", told)
	}
	s.must(0, "verify")
}

// The folder is deleted while a command runs in it: that command ends as it
// ends, the run goes on in a new folder, and nothing happens anywhere else.
func TestFolderDeletedWhileItsCommandRuns(t *testing.T) {
	t.Parallel()
	s := newStand(t, map[string]string{"a.txt": "n = 1\n"})
	script := s.script(`
name = "lost"
[[step]]
[[step.call]]
tool = "shell"
args = { command = "echo waits; while [ -e a.txt ]; do sleep 0.05; done; echo gone" }
[[step]]
[[step.call]]
tool = "write_file"
args = { path = "new.txt", content = "written after\n" }
` + stepFinish)
	p := s.start(nil, s.run(script)...)
	until(t, "the command runs", func() bool {
		list := s.pawl("list", "--json") // there may be no ledger yet
		runs := objects[engine.RunLine](t, list.out)
		return list.code == 0 && len(runs) == 1 && s.kinds(string(runs[0].ID))["AttemptStarted"] == 1
	})
	run := string(s.only().ID)
	if err := os.RemoveAll(s.show(run).Workspace.Path); err != nil {
		t.Fatal(err)
	}
	if e := p.wait(); e.code != 0 {
		t.Fatalf("it did not go on: %s", e)
	}
	if got := s.inWork(run, "a.txt") + s.inWork(run, "new.txt"); got != "n = 1\nwritten after\n" {
		t.Errorf("the new folder holds %q", got)
	}
	if out := s.git("status", "--porcelain"); out != "" {
		t.Errorf("the user's checkout changed: %s", out)
	}
	s.must(0, "verify")
}

// What a snapshot leaves out is said where the run is followed.
func TestWhatASnapshotLeavesOutIsSaid(t *testing.T) {
	t.Parallel()
	s := newStand(t, map[string]string{"a.txt": "n = 1\n", ".gitmodules": "[submodule \"x\"]\n\tpath = x\n\turl = ./x\n"})
	s.must(0, s.run(s.script("name = \"big\"\n[[step]]\n[[step.call]]\ntool = \"shell\"\nargs = { command = \"truncate -s 5G big.bin\" }\n"+stepFinish))...)
	run := string(s.only().ID)
	log := s.must(0, "log", run, "--json").out
	for _, want := range []string{"not all of it", "big.bin (5.0 GB", "submodules are empty folders here"} {
		if !strings.Contains(log, want) {
			t.Errorf("the log does not say %q:\n%s", want, log)
		}
	}
	if got := s.must(0, "diff", run).out; strings.Contains(got, "big.bin") {
		t.Errorf("the difference holds the large file: %.300s", got)
	}
	s.must(0, "verify")
}
