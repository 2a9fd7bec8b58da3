package headless_test

import (
	"encoding/json"
	"strings"
	"testing"
)

// An agent does its worst to git: the user's repository is untouched, and the run's own work comes back.
func TestAnAgentThatRuinsGit(t *testing.T) {
	t.Parallel()
	s := newStand(t, map[string]string{"a.txt": "n = 1\n"})
	s.git("tag", "v1")
	var script strings.Builder
	script.WriteString("name = \"ruin\"\n")
	for _, d := range []string{
		"echo one >>a.txt && git commit -qam one",
		"rm -rf .git; rm -rf " + s.repo + "/.git; rm -rf $(git rev-parse --git-common-dir)/*; git update-ref -d refs/heads/main; git tag -d v1; git config core.hooksPath /tmp; true",
		"rm -rf ./* " + s.repo + "; rm -rf ../*; true",
	} {
		q, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		script.WriteString("[[step]]\n[[step.call]]\ntool = \"shell\"\nargs = { command = " + string(q) + " }\n")
	}
	script.WriteString("[[step]]\n[[step.call]]\ntool = \"write_file\"\nargs = { path = \"new.txt\", content = \"goes on\\n\" }\n" + stepFinish)
	before := s.git("for-each-ref", "refs/heads", "refs/tags") + s.git("status", "--porcelain", "--branch") + s.git("config", "--list", "--local")
	s.must(0, s.run(s.script(script.String()))...)
	run := string(s.only().ID)
	s.git("fsck", "--strict")
	if got := s.git("for-each-ref", "refs/heads", "refs/tags") + s.git("status", "--porcelain", "--branch") + s.git("config", "--list", "--local"); got != before {
		t.Errorf("the user's repository changed:\n%s\nwas:\n%s", got, before)
	}
	if got := s.inWork(run, "new.txt"); got != "goes on\n" {
		t.Errorf("new.txt: %q", got)
	}
	s.must(0, "verify")
}
