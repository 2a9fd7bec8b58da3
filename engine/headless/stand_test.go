package headless_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"pawl/engine"
	"pawl/fixtures/world"
)

// stand is one ledger, one project and one world, acted on by real processes.
type stand struct {
	t      *testing.T
	bin    string
	ledger string
	repo   string
	world  *world.World
	env    []string // of every process, besides the test's own
}

// patience bounds everything that a test waits for; nothing takes this long.
const patience = 90 * time.Second

// newStand makes a project of files and a world. Processes of different stands
// share nothing.
func newStand(t *testing.T, files map[string]string) *stand {
	t.Helper()
	for _, program := range []string{"git", "bash"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("needs %s", program)
		}
	}
	dir := t.TempDir()
	s := &stand{
		t: t, bin: builtPawl(t), ledger: filepath.Join(dir, "state", "ledger.db"), repo: filepath.Join(dir, "project"),
		world: world.StartTest(t, world.Options{}), env: []string{"PAWL_POLICY=" + filepath.Join(dir, "policy.toml")},
	}
	if err := os.MkdirAll(filepath.Dir(s.ledger), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		s.write(filepath.Join(s.repo, name), text)
	}
	if files != nil {
		s.git("init", "--quiet", "--template=", "-b", "main")
		s.git("add", "--all")
		s.git("-c", "user.name=A", "-c", "user.email=a@example.com", "-c", "commit.gpgSign=false", "commit", "--quiet", "-m", "start")
	}
	return s
}

func (s *stand) write(path, text string) {
	s.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		s.t.Fatal(err)
	}
}

func (s *stand) git(args ...string) string {
	s.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = s.repo
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull)
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// ended is a process that has ended.
type ended struct {
	args   string
	code   int // -1 if a signal ended it
	killed bool
	out    string
	err    string
}

func (e ended) String() string {
	return fmt.Sprintf("`pawl %s` ended with code %d (killed: %v)\n--- stdout\n%s--- stderr\n%s", e.args, e.code, e.killed, e.out, e.err)
}

// proc is a process that runs.
type proc struct {
	s        *stand
	cmd      *exec.Cmd
	args     string
	out, err bytes.Buffer // may be read after done
	done     chan struct{}
}

// start starts a pawl process; env is added to its environment.
func (s *stand) start(env []string, args ...string) *proc {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	p := &proc{s: s, args: strings.Join(args, " "), done: make(chan struct{})}
	p.cmd = exec.CommandContext(ctx, s.bin, append(args, "--ledger", s.ledger)...)
	p.cmd.Env = append(append(s.clean(), s.env...), env...)
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.err
	if err := p.cmd.Start(); err != nil {
		cancel()
		s.t.Fatal(err)
	}
	go func() {
		defer cancel()
		defer close(p.done)
		_ = p.cmd.Wait() // how it ended is in ProcessState
	}()
	s.t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.done
	})
	return p
}

// clean is the test's environment without what would change Pawl's ways.
func (s *stand) clean() []string {
	var out []string
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "PAWL_") && !strings.HasPrefix(kv, "OPENAI_") {
			out = append(out, kv)
		}
	}
	return out
}

func (p *proc) wait() ended {
	<-p.done
	ws := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	return ended{
		args: p.args, code: p.cmd.ProcessState.ExitCode(), killed: ws.Signaled() && ws.Signal() == syscall.SIGKILL,
		out: p.out.String(), err: p.err.String(),
	}
}

// pawl runs one command to its end.
func (s *stand) pawl(args ...string) ended {
	s.t.Helper()
	return s.start(nil, args...).wait()
}

// must is pawl with an expected exit code.
func (s *stand) must(code int, args ...string) ended {
	s.t.Helper()
	e := s.pawl(args...)
	if e.code != code {
		s.t.Fatalf("want code %d: %s", code, e)
	}
	return e
}

// objects reads JSON, one object a line.
func objects[T any](t *testing.T, text string) []T {
	t.Helper()
	out := []T{}
	lines := bufio.NewScanner(strings.NewReader(text))
	lines.Buffer(nil, len(text)+1)
	for lines.Scan() {
		var v T
		if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
			t.Fatalf("%v in %q", err, lines.Text())
		}
		out = append(out, v)
	}
	return out
}

func (s *stand) inbox() []engine.Item {
	s.t.Helper()
	return objects[engine.Item](s.t, s.must(0, "inbox", "--json").out)
}

func (s *stand) log(run string) []engine.TimelineRow {
	s.t.Helper()
	return objects[engine.TimelineRow](s.t, s.must(0, "log", run, "--json").out)
}

// kinds counts a run's events by kind.
func (s *stand) kinds(run string) map[string]int {
	s.t.Helper()
	n := map[string]int{}
	for _, r := range s.log(run) {
		n[r.Kind]++
	}
	return n
}

// shownRun is the part of `pawl show RUN --json` that tests look at.
type shownRun struct {
	ID      string        `json:"id"`
	State   string        `json:"state"`
	Effects []shownEffect `json:"effects"`

	Workspace struct {
		Path string `json:"path"`
	} `json:"workspace"`
}

type shownEffect struct {
	ID       string            `json:"id"`
	Tool     string            `json:"tool"`
	Class    string            `json:"class"`
	State    string            `json:"state"`
	Verdict  string            `json:"verdict"`
	Forced   bool              `json:"forced"`
	Attempts []json.RawMessage `json:"attempts"`
	Digest   string            `json:"digest"`
	Evidence []json.RawMessage `json:"evidence"`
}

func (s *stand) show(run string) shownRun {
	s.t.Helper()
	var r shownRun
	out := s.must(0, "show", run, "--json").out
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		s.t.Fatalf("%v in %s", err, out)
	}
	return r
}

func (s *stand) effect(run, id string) shownEffect {
	s.t.Helper()
	for _, e := range s.show(run).Effects {
		if e.ID == id {
			return e
		}
	}
	s.t.Fatalf("there is no effect %s", id)
	return shownEffect{}
}

// only is the one run of the ledger.
func (s *stand) only() engine.RunLine {
	s.t.Helper()
	runs := objects[engine.RunLine](s.t, s.must(0, "list", "--json").out)
	if len(runs) != 1 {
		s.t.Fatalf("the ledger holds %d runs", len(runs))
	}
	return runs[0]
}

// script writes a script and returns its path.
func (s *stand) script(text string) string {
	s.t.Helper()
	path := filepath.Join(filepath.Dir(s.ledger), "..", "script.toml")
	s.write(path, text)
	return path
}

// run are the arguments that start a run of a script on the stand's project.
func (s *stand) run(script string, more ...string) []string {
	return append([]string{"run", "do what the script says", "--repo", s.repo, "--script", script, "--var", "WORLD=" + s.world.URL(), "--headless"}, more...)
}

// until asks again and again until ok, or fails the test after its patience.
// It is for what other processes do by themselves.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	end := time.Now().Add(patience)
	for !ok() {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for this: %s", what)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

var built struct {
	bin string
	err error
}

// builtPawl is the program under test. TestMain has built it, or says why not.
func builtPawl(t *testing.T) string {
	t.Helper()
	if built.err != nil {
		t.Fatal(built.err)
	}
	return built.bin
}

// buildPawl builds the program into dir.
func buildPawl(dir string) (string, error) {
	bin := filepath.Join(dir, "pawl")
	out, err := exec.Command("go", "build", "-o", bin, "pawl").CombinedOutput()
	if err != nil {
		return "", errors.Join(err, errors.New(string(out)))
	}
	return bin, nil
}
