package headless_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"pawl/engine"
	"pawl/engine/machine"
)

// treeScript is played by every run of a tree: what a run does, its goal says.
// Below the first run there are nine more, in three levels.
const treeScript = `
[[step]]
say = "A leaf."
[[step.call]]
tool = "write_file"
args = { path = "{{last:goal, in the [^:]*:\\n(\\S+)}}.txt", content = "{{last:goal, in the [^:]*:\\n(\\S+)}}\n" }

[[step.branch]]
match = ["do what the script says"]
[[step.branch.call]]
tool = "write_file"
args = { path = "first.txt", content = "of the first run, never committed by it\n" }

[[step.branch]]
match = ["mid-a writes"]
[[step.branch.call]]
tool = "write_file"
args = { path = "mid-a.txt", content = "mid-a\n" }

[[step.branch]]
match = ["low-a writes"]
[[step.branch.call]]
tool = "write_file"
args = { path = "low-a.txt", content = "low-a\n" }

[[step]]
[[step.call]]
tool = "finish"
args = { summary = "the file is written" }

[[step.branch]]
match = ["first.txt"]
[[step.branch.call]]
tool = "delegate"
args = { goal = "mid-a writes and delegates" }
[[step.branch.call]]
tool = "delegate"
args = { goal = "mid-b writes" }
[[step.branch.call]]
tool = "delegate"
args = { goal = "mid-c writes" }

[[step.branch]]
match = ["mid-a.txt"]
[[step.branch.call]]
tool = "delegate"
args = { goal = "low-a writes and delegates" }
[[step.branch.call]]
tool = "delegate"
args = { goal = "low-b writes" }
[[step.branch.call]]
tool = "delegate"
args = { goal = "low-c writes" }

[[step.branch]]
match = ["low-a.txt"]
[[step.branch.call]]
tool = "delegate"
args = { goal = "leaf-a writes" }
[[step.branch.call]]
tool = "delegate"
args = { goal = "leaf-b writes" }
[[step.branch.call]]
tool = "delegate"
args = { goal = "leaf-c writes" }

[[step]]
[[step.call]]
tool = "collect"
args = {}

[[step]]
[[step.call]]
tool = "finish"
args = { summary = "the parts are together" }
`

// treeRounds is how often the tree is run with kills; PAWL_TREE_ROUNDS sets it.
func treeRounds(t *testing.T) int {
	if v := os.Getenv("PAWL_TREE_ROUNDS"); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	return 2
}

// A tree of nine delegated runs in three levels comes to the same end, however
// often its process is killed: every delegation made one run, and every work
// was taken over once.
func TestTreeUnderKill(t *testing.T) {
	want := growTree(t, nil)
	for round := range treeRounds(t) {
		seed := uint64(round) + 1
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			if got := growTree(t, rand.New(rand.NewPCG(seed, 1))); got != want {
				t.Errorf("after kills the files are\n%s\nwithout\n%s", got, want)
			}
		})
	}
}

// growTree runs the tree to its end, kills included if there are dice, and
// returns the files that the first run ends with.
func growTree(t *testing.T, dice *rand.Rand) string {
	s := newStand(t, map[string]string{"README": "a project\n"})
	script := s.script(treeScript)
	args := s.run(script)
	kills := 0
	for turn := 0; ; turn++ {
		if turn > 400 {
			t.Fatal("the tree does not come to an end")
		}
		p := s.start(nil, args...)
		if dice != nil && kills < 8 {
			kills++
			select {
			case <-p.done:
			case <-time.After(time.Duration(dice.IntN(900)) * time.Millisecond): // the moment is what is tried
				if err := p.cmd.Process.Signal(syscall.SIGKILL); err != nil && !strings.Contains(err.Error(), "finished") {
					t.Fatal(err)
				}
			}
		}
		e := p.wait()
		if !e.killed && e.code != 0 && e.code != 3 {
			t.Fatal(e)
		}
		runs := objects[engine.RunLine](t, s.pawl("list", "--json").out)
		if len(runs) == 0 {
			continue // killed before the ledger or the run was made
		}
		root := runs[len(runs)-1].ID
		args = []string{"resume", string(root)}
		open := false
		for _, i := range s.inbox() {
			if i.Kind != engine.KindReview {
				continue
			}
			open = true
			s.must(0, "review", i.ID, "accept")
		}
		if runs[len(runs)-1].State == engine.Done && !open {
			return s.checkTree(root)
		}
	}
}

// checkTree holds what must be so at the end, and returns the files.
func (s *stand) checkTree(root machine.RunID) string {
	s.t.Helper()
	lines := objects[engine.TreeLine](s.t, s.must(0, "tree", string(root), "--json").out)
	if len(lines) != 10 {
		s.t.Fatalf("%d runs in the tree", len(lines))
	}
	for _, l := range lines {
		if l.State != engine.Done || l.Depth > 0 && l.Standing != machine.ChildAdopted || l.Unknown > 0 {
			b, _ := json.Marshal(l)
			s.t.Errorf("%s", b)
		}
		spawned := s.kinds(string(l.ID))["ChildSpawned"]
		adopted := 0
		for _, f := range s.show(string(l.ID)).Effects {
			if f.Tool == machine.ToolAdopt && f.State == "completed" {
				adopted++
			}
		}
		if spawned != adopted || spawned != 0 && spawned != 3 {
			s.t.Errorf("%s delegated %d times and took over %d works", l.ID, spawned, adopted)
		}
	}
	s.must(0, "verify")
	var b strings.Builder
	dir := s.workspace(string(root))
	entries, err := os.ReadDir(dir)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() != ".git" {
			fmt.Fprintf(&b, "%s: %s", e.Name(), s.worked(string(root), e.Name()))
		}
	}
	if n := strings.Count(b.String(), "\n"); n != 11 {
		s.t.Errorf("%d files:\n%s", n, b.String())
	}
	return b.String()
}
