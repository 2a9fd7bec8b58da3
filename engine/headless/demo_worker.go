package headless

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"pawl/engine"
)

// crashEnv arms a crash point in the process that reads it.
const crashEnv = "PAWL_CRASH"

// pawl starts this same program again on the demo's ledger: the demo acts by
// the commands that a person would give.
type pawl struct {
	self   []string
	ledger string
	config string // configuration file, "" for the operator's own
}

// stopWithin is how long a process may take to stop at a safe point.
const stopWithin = 10 * time.Second

// command prepares one command. It takes nothing from the terminal, and its
// environment is ours without crash points and without another ledger.
func (p pawl) command(ctx context.Context, args ...string) *exec.Cmd {
	argv := append(append([]string{}, p.self...), args...)
	argv = append(argv, "--ledger", p.ledger)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = cleanEnv(os.Environ())
	if p.config != "" {
		cmd.Env = append(cmd.Env, "PAWL_CONFIG="+p.config)
	}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = stopWithin
	endWithParent(cmd)
	return cmd
}

func cleanEnv(environ []string) []string {
	var out []string
	for _, kv := range environ {
		name, _, _ := strings.Cut(kv, "=")
		if name != crashEnv && name != "PAWL_LEDGER" {
			out = append(out, kv)
		}
	}
	return out
}

// run gives one command and returns its standard output and exit code. An
// error means that it could not be given, or was ended by a signal.
func (p pawl) run(ctx context.Context, args ...string) (out []byte, code int, err error) {
	cmd := p.command(ctx, args...)
	var stdout bytes.Buffer
	stderr := &tail{max: 4 << 10}
	cmd.Stdout, cmd.Stderr = &stdout, stderr
	err = cmd.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return stdout.Bytes(), ExitDone, nil
	case ctx.Err() != nil:
		return nil, 0, ctx.Err()
	case errors.As(err, &exit) && exit.ExitCode() >= 0:
		return stdout.Bytes(), exit.ExitCode(), &Problem{
			What: fmt.Sprintf("`pawl %s` ended with code %d", strings.Join(args, " "), exit.ExitCode()),
			Why:  oneLine(stderr.String()), Next: "give it yourself to see more", Err: err,
		}
	}
	return nil, 0, fmt.Errorf("`pawl %s`: %w", strings.Join(args, " "), err)
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// inbox is `pawl inbox --json`.
func (p pawl) inbox(ctx context.Context) ([]engine.Item, error) {
	out, _, err := p.run(ctx, "inbox", "--json")
	if err != nil {
		return nil, err
	}
	var items []engine.Item
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, len(out)+1)
	for lines.Scan() {
		var i engine.Item
		if err := json.Unmarshal(lines.Bytes(), &i); err != nil {
			return nil, fmt.Errorf("read `pawl inbox --json`: %w", err)
		}
		items = append(items, i)
	}
	return items, lines.Err()
}

// worker is a `pawl resume` process that is armed, or not, with a crash point.
type worker struct {
	cmd    *exec.Cmd
	stderr *tail
	ended  chan struct{} // closed when the process was waited for
	err    error         // of Wait; valid after ended
}

// work starts a worker. crash is POINT@TEXT or "".
func (p pawl) work(ctx context.Context, crash string, args ...string) (*worker, error) {
	w := &worker{cmd: p.command(ctx, append([]string{"resume"}, args...)...), stderr: &tail{max: 4 << 10}, ended: make(chan struct{})}
	if crash != "" {
		w.cmd.Env = append(w.cmd.Env, crashEnv+"="+crash)
	}
	w.cmd.Stderr = w.stderr
	if err := w.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start a worker: %w", err)
	}
	go func() {
		defer close(w.ended)
		w.err = w.cmd.Wait()
	}()
	return w, nil
}

func (w *worker) pid() int { return w.cmd.Process.Pid }

// killed reports whether the worker, which has ended, died by SIGKILL.
func (w *worker) killed() bool {
	ws, ok := w.cmd.ProcessState.Sys().(syscall.WaitStatus)
	return ok && ws.Signaled() && ws.Signal() == syscall.SIGKILL
}

// end is how the worker ended, for a message.
func (w *worker) end() string {
	how := w.cmd.ProcessState.String()
	if s := oneLine(w.stderr.String()); s != "" {
		how += "; its last words: " + s
	}
	return how
}

// tail keeps the last max bytes written to it. It is safe for concurrent use.
type tail struct {
	mu  sync.Mutex
	max int
	b   []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, p...)
	if over := len(t.b) - t.max; over > 0 {
		t.b = append(t.b[:0], t.b[over:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.b)
}
