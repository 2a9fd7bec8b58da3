package headless

import (
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
	"time"

	"pawl/engine"
	"pawl/fixtures/world"
)

// drillStand is one ledger, one project, one remote and one world of a drill
// with real processes. Nothing outside its directory is written.
type drillStand struct {
	pawl
	dir   string
	state string // directory of the ledger
	repo  string
	world *world.World
}

// newStand makes a project with a commit that its remote does not have yet.
func (a *app) newStand(ctx context.Context, dir string) (*drillStand, error) {
	s := &drillStand{dir: dir, state: filepath.Join(dir, "state"), repo: filepath.Join(dir, "project")}
	s.pawl = pawl{self: a.o.Self, ledger: filepath.Join(s.state, "ledger.db")}
	for _, d := range []string{s.state, s.repo} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return nil, err
		}
	}
	if err := s.write("a.txt", "n = 1\n"); err != nil {
		return nil, err
	}
	if err := s.write("b.txt", "\n"); err != nil {
		return nil, err
	}
	for _, args := range [][]string{
		{"init", "--quiet", "--template=", "-b", "main"},
		{"add", "--all"},
		{"commit", "--quiet", "-m", "start"},
		{"init", "--quiet", "--template=", "--bare", "-b", "main", s.remote()},
		{"--git-dir", s.remote(), "config", "core.logAllRefUpdates", "always"},
		{"remote", "add", "origin", s.remote()},
		{"push", "--quiet", "origin", "main"},
		{"commit", "--quiet", "--allow-empty", "-m", "more"},
	} {
		if err := s.git(ctx, args...); err != nil {
			return nil, err
		}
	}
	var err error
	s.world, err = world.Start(world.Options{Dir: filepath.Join(dir, "world")})
	return s, err
}

func (s *drillStand) remote() string { return filepath.Join(s.dir, "origin.git") }

func (s *drillStand) write(name, text string) error {
	return os.WriteFile(filepath.Join(s.repo, name), []byte(text), 0o644)
}

// git runs git in the project, as a stranger without any configuration.
func (s *drillStand) git(ctx context.Context, args ...string) error {
	who := []string{"-c", "user.name=A", "-c", "user.email=a@example.com", "-c", "commit.gpgSign=false"}
	cmd := exec.CommandContext(ctx, "git", append(who, args...)...)
	cmd.Dir = s.repo
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, oneLine(string(out)))
	}
	return nil
}

// script writes what the model says: one call, then the end.
func (s *drillStand) script(step string) ([]string, error) {
	path := filepath.Join(s.dir, "script.toml")
	text := "[[step]]\nsay = \"I do it.\"\n" + step + "\n[[step]]\n[[step.call]]\ntool = \"finish\"\nargs = { summary = \"done\" }\n"
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		return nil, err
	}
	return []string{"run", "do what the script says", "--repo", s.repo, "--script", path, "--var", "WORLD=" + s.world.URL(), "--headless"}, nil
}

// begin starts a process, armed with a crash point or not.
func (s *drillStand) begin(ctx context.Context, crash string, args ...string) (*worker, error) {
	w := &worker{cmd: s.command(ctx, args...), stderr: &tail{max: 8 << 10}, ended: make(chan struct{})}
	if crash != "" {
		w.cmd.Env = append(w.cmd.Env, crashEnv+"="+crash)
	}
	w.cmd.Stderr = w.stderr
	if err := w.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start a process: %w", err)
	}
	go func() {
		defer close(w.ended)
		w.err = w.cmd.Wait()
	}()
	return w, nil
}

// wait waits for a process and returns its exit code; -1 if a signal ended it.
func (w *worker) wait(ctx context.Context) (int, error) {
	select {
	case <-w.ended:
		return w.cmd.ProcessState.ExitCode(), nil
	case <-ctx.Done():
		_ = w.cmd.Process.Kill() // it is ours, and nobody waits for it any more
		<-w.ended
		return 0, ctx.Err()
	}
}

func (w *worker) signal(sig syscall.Signal) error { return w.cmd.Process.Signal(sig) }

// only is the one run of the ledger; nil if there is none yet.
func (s *drillStand) only(ctx context.Context) (*engine.RunLine, error) {
	out, _, err := s.run(ctx, "list", "--json")
	if err != nil {
		return nil, err
	}
	for l := range bytes.Lines(out) {
		var r engine.RunLine
		if err := json.Unmarshal(l, &r); err != nil {
			return nil, fmt.Errorf("read `pawl list --json`: %w", err)
		}
		return &r, nil
	}
	return nil, nil
}

// worked reads a file of the run's workspace.
func (s *drillStand) worked(ctx context.Context, run, name string) (string, error) {
	out, _, err := s.run(ctx, "show", run, "--json")
	if err != nil {
		return "", err
	}
	var shown struct {
		Workspace struct {
			Path string `json:"path"`
		} `json:"workspace"`
	}
	if err := json.Unmarshal(out, &shown); err != nil {
		return "", fmt.Errorf("read `pawl show --json`: %w", err)
	}
	b, err := os.ReadFile(filepath.Join(shown.Workspace.Path, name))
	return string(b), err
}

// happened counts actions of a kind in the world's own log.
func (s *drillStand) happened(k world.Kind) int {
	n := 0
	for _, e := range s.world.Log() {
		if e.Kind == k {
			n++
		}
	}
	return n
}

// answer takes the decisions that a run waits for, as a person would who looks.
func (s *drillStand) answer(ctx context.Context, d *killDeed) (asked int, err error) {
	items, err := s.inbox(ctx)
	if err != nil {
		return 0, err
	}
	for _, i := range items {
		switch i.Kind {
		case engine.KindApproval:
			_, _, err = s.run(ctx, "approve", i.ID)
		case engine.KindDrift:
			_, _, err = s.run(ctx, "answer", i.ID, "retry")
		case engine.KindAmbiguous, engine.KindContradicted:
			if d.look == nil {
				return asked, fmt.Errorf("a person is asked about what can be found out: %s", i.Summary)
			}
			asked++
			var there bool
			if there, err = d.look(ctx, s); err != nil {
				return asked, err
			}
			choice := "retry"
			if there {
				choice = "happened"
			}
			_, short, _ := strings.Cut(i.ID, ".")
			_, _, err = s.run(ctx, "settle", i.ID, choice, "--reason", "I looked", "--confirm", short)
		case engine.KindFinished:
		default:
			return asked, fmt.Errorf("unexpected in the inbox: %s: %s", i.Kind, i.Summary)
		}
		if err != nil {
			return asked, err
		}
	}
	return asked, nil
}

// through takes a run to its end with one process after the other.
func (s *drillStand) through(ctx context.Context, d *killDeed, args []string) (asked int, err error) {
	const most = 12
	for range most {
		w, err := s.begin(ctx, "", args...)
		if err != nil {
			return asked, err
		}
		code, err := w.wait(ctx)
		switch {
		case err != nil:
			return asked, err
		case code == ExitDone:
			return asked, nil
		case code != ExitWaits:
			return asked, fmt.Errorf("it neither ended nor waits: %s", w.end())
		}
		n, err := s.answer(ctx, d)
		if err != nil {
			return asked, err
		}
		asked += n
		r, err := s.only(ctx)
		if err != nil || r == nil {
			return asked, errors.Join(errors.New("the run is not there"), err)
		}
		args = []string{"resume", string(r.ID)}
	}
	return asked, fmt.Errorf("no end after %d processes", most)
}

// judge holds the end against the world: it is there once, the run is done, and
// the ledger is what its events say.
func (s *drillStand) judge(ctx context.Context, d *killDeed) ([]string, error) {
	r, err := s.only(ctx)
	if err != nil {
		return nil, err
	}
	if r == nil {
		return []string{"the run is not in the ledger"}, nil
	}
	var out []string
	n, err := d.done(ctx, s, string(r.ID))
	if err != nil {
		return nil, err
	}
	if n != 1 {
		out = append(out, fmt.Sprintf("it is there %d times", n))
	}
	if r.State != engine.Done {
		out = append(out, "the run is "+string(r.State))
	}
	if _, code, err := s.run(ctx, "verify"); err != nil || code != ExitDone {
		out = append(out, fmt.Sprintf("the ledger does not verify: %v", err))
	}
	return out, nil
}

// until asks again and again until ok, for what other processes do by themselves.
func until(ctx context.Context, what string, ok func() (bool, error)) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		yes, err := ok()
		if yes || err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("waited in vain for this: %s: %w", what, context.Cause(ctx))
		}
	}
}
