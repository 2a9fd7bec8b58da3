package headless_test

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"pawl/engine"
)

// manyDeeds are commands of which each can be told from itself done twice or by half: they append, commit, amend,
// rename, change what is staged, and write files that git ignores.
var manyDeeds = []string{
	"for i in 1 2 3 4 5 6 7 8; do echo one $i >>a.txt; echo $i >>x.env; sleep 0.01; done",
	"git add -A && git commit -qm 'first of the run'",
	"echo two >>a.txt; git add a.txt; echo three >>a.txt; mkdir -p deep/er; for i in 1 2 3 4 5; do echo $i >>deep/er/$i.txt; sleep 0.01; done",
	"git commit -qm 'what was staged' && echo s >>x.env && mkdir -p empty/dir",
	"git mv b.txt c.txt && git rm -q --cached a.txt && sleep 0.05 && git add a.txt && git add -A && git commit -qm 'moved, and all the rest'",
	"echo four >>c.txt && git commit -qa --amend -m 'moved, and all the rest, amended'",
	"git checkout -q -b pawl/$(git symbolic-ref --short HEAD | cut -d/ -f2)/side && echo side >s.txt && git add s.txt && git commit -qm side && git checkout -q - && sleep 0.05 && git merge -q --no-ff -m merged -",
	"rm x.env; rm -r deep; echo five >>a.txt; chmod 755 a.txt; ln -s a.txt link; echo again >y.env",
}

// picture is everything of a run's work that a person could tell apart.
func (s *stand) picture(run string) string {
	s.t.Helper()
	cmd := exec.Command("sh", "-c", `find . -name .git -prune -o -printf '%P %y %m %l\n' | sort; cat $(find . -name .git -prune -o -type f -print | sort)
		git log --graph --format='%T %s %an %ad' --all -- ; git status --porcelain; git for-each-ref --format='%(refname) %(tree) %(contents)' refs/heads/pawl | sed 's,/r[a-z0-9]*/,/RUN/,'; git symbolic-ref HEAD | cut -d/ -f5`)
	cmd.Dir = s.show(run).Workspace.Path
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

// A worker is killed at random moments, wherever they fall: while it takes a snapshot, dispatches, runs a command, or
// takes the snapshot after it. In the end nobody can tell.
func TestKilledAtRandomMomentsNobodyCanTell(t *testing.T) {
	t.Parallel()
	kills := 24
	if v, err := strconv.Atoi(os.Getenv("PAWL_TEST_KILLS")); err == nil {
		kills = v
	}
	if testing.Short() {
		kills = 5
	}
	var script strings.Builder
	script.WriteString("name = \"many\"\n")
	for _, d := range manyDeeds {
		q, err := json.Marshal("export GIT_AUTHOR_DATE='2026-01-01T00:00:00Z' GIT_COMMITTER_DATE='2026-01-01T00:00:00Z'; " + d)
		if err != nil {
			t.Fatal(err)
		}
		script.WriteString("[[step]]\n[[step.call]]\ntool = \"shell\"\nargs = { command = " + string(q) + " }\n")
	}
	script.WriteString(stepFinish)
	project := map[string]string{"a.txt": "a\n", "b.txt": "b\n", ".gitignore": "*.env\n"}
	begun := func() *stand {
		s := newStand(t, project)
		s.git("-c", "user.name=A", "-c", "user.email=a@example.com", "-c", "commit.gpgSign=false", "commit", "--quiet", "--amend", "--date=2026-01-01T00:00:00Z", "-m", "start")
		s.git("config", "user.name", "A")
		s.git("config", "user.email", "a@example.com")
		return s
	}
	calm := begun()
	start := time.Now()
	calm.must(0, calm.run(calm.script(script.String()))...)
	whole := time.Since(start)
	want := calm.picture(string(calm.only().ID))

	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d; uninterrupted it takes %v", seed, whole)
	rng := rand.New(rand.NewPCG(seed, 1))
	killed, asked, runs := 0, 0, 0
	for killed < kills {
		runs++
		s := begun()
		args := s.run(s.script(script.String()))
		for killed < kills {
			p := s.start(nil, args...)
			timer := time.AfterFunc(time.Duration(rng.Int64N(int64(whole/3))), func() { _ = p.cmd.Process.Kill() })
			e := p.wait()
			timer.Stop()
			if e.code == 0 {
				break
			}
			if e.code == 3 { // three attempts of one command were killed: the next one is a person's word
				for _, it := range s.inbox() {
					asked++
					if it.Kind != engine.KindAmbiguous {
						t.Fatalf("it asks something else: %+v", it)
					}
					_, short, _ := strings.Cut(it.ID, ".")
					s.must(0, "settle", it.ID, "retry", "--reason", "killed by the test", "--confirm", short)
				}
				continue
			}
			if !e.killed {
				t.Fatalf("it ended otherwise: %s", e)
			}
			killed++
			if _, err := os.Stat(s.ledger); err == nil {
				if list := s.pawl("list", "--json"); list.code == 0 && list.out != "" {
					args = []string{"resume", string(s.only().ID)}
				}
			}
		}
		if args[0] != "resume" {
			continue // it was never begun
		}
		run := string(s.only().ID)
		for range 10 {
			if s.pawl("resume", run).code == 0 {
				break
			}
			for _, it := range s.inbox() {
				asked++
				_, short, _ := strings.Cut(it.ID, ".")
				s.must(0, "settle", it.ID, "retry", "--reason", "killed by the test", "--confirm", short)
			}
		}
		if got := s.picture(run); got != want {
			t.Fatalf("after %d kills:\n%s\nwant:\n%s", killed, got, want)
		}
		s.must(0, "verify")
		if out := s.git("status", "--porcelain"); out != "" {
			t.Fatalf("the user's checkout changed: %s", out)
		}
	}
	t.Logf("%d kills in %d runs, %d questions", killed, runs, asked)
}
