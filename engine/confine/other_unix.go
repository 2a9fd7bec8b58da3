//go:build unix && !linux

package confine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// Systems without namespaces, landlock and process handles: a command is gated and runs in a session of its own, and
// nothing is claimed about what it left behind.

const noBox = "this system has no confinement that Pawl can measure yet; only Linux has"

// Measure reports LevelNone: nothing is promised that was not measured.
func Measure(_ context.Context, _ Level) Report {
	return Report{Level: LevelNone, Missing: []string{"partial: " + noBox}, Detail: map[string]string{}}
}

// BootID is unknown here, so no process is ever declared dead for being from an earlier start of the machine.
func BootID() string { return "" }

// Probe recognises that no process has the pid; that one has it may be chance.
func Probe(id Identity) Liveness {
	if id.PID > 0 && errors.Is(syscall.Kill(id.PID, 0), syscall.ESRCH) {
		return LiveGone
	}
	return LiveUnknown
}

// Reap ends nothing here: a pid alone does not name a process.
func Reap(_ context.Context, id Identity) (Liveness, error) {
	if l := Probe(id); l == LiveGone {
		return l, nil
	}
	return LiveUnknown, fmt.Errorf("process %d may be another by now, and this system cannot tell: look and end it yourself", id.PID)
}

// FindMarked finds nothing here: other processes' environments cannot be read.
func FindMarked(string) []Identity { return nil }

type order struct {
	Argv, Env []string
	Dir       string
}

const (
	fdOrder  = 3
	fdGate   = 4
	fdReport = 5
)

func probeMain() { os.Exit(2) }

// keeperMain waits at the gate and becomes the command.
func keeperMain() {
	report := os.NewFile(fdReport, "report")
	fail := func(err error) {
		fmt.Fprint(report, err)
		os.Exit(126)
	}
	for _, fd := range []int{fdOrder, fdGate, fdReport} {
		syscall.CloseOnExec(fd)
	}
	var o order
	if err := json.NewDecoder(os.NewFile(fdOrder, "order")).Decode(&o); err != nil {
		fail(err)
	}
	var b [1]byte
	if n, _ := os.NewFile(fdGate, "gate").Read(b[:]); n != 1 {
		os.Exit(99)
	}
	for _, kv := range o.Env {
		if len(kv) > 5 && kv[:5] == "PATH=" {
			_ = os.Setenv("PATH", kv[5:])
		}
	}
	path, err := exec.LookPath(o.Argv[0])
	if err != nil {
		fail(err)
	}
	fail(syscall.Exec(path, o.Argv, o.Env))
}

// Proc is one command from its gated start to its end.
type Proc struct {
	cmd    *exec.Cmd
	mu     sync.Mutex
	gate   *os.File
	opened time.Time
	killed bool
	done   chan struct{}
	failed string // valid after done
	took   time.Duration
}

// Start starts a keeper that runs nothing of Argv until [Proc.Open]. Only LevelNone exists here.
func Start(_ context.Context, s Spec) (*Proc, error) {
	p, err := start(&s)
	if err != nil {
		return nil, &NotRunError{What: "preparing it", Err: err}
	}
	return p, nil
}

func start(s *Spec) (*Proc, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	if s.Level != LevelNone {
		return nil, errors.New(noBox)
	}
	out, err := os.OpenFile(s.Output, os.O_CREATE|os.O_WRONLY|os.O_APPEND|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the output file: %w", err)
	}
	defer out.Close()
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	var pipes [3][2]*os.File
	for i := range pipes {
		if pipes[i][0], pipes[i][1], err = os.Pipe(); err != nil {
			return nil, err
		}
	}
	c := exec.Command(self)
	c.Args, c.Dir, c.Env = []string{argvKeeper}, s.Dir, []string{}
	c.Stdout, c.Stderr = out, out
	c.ExtraFiles = []*os.File{pipes[0][0], pipes[1][0], pipes[2][1]}
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = c.Start()
	for _, f := range c.ExtraFiles {
		f.Close()
	}
	if err != nil {
		return nil, err
	}
	p := &Proc{cmd: c, gate: pipes[1][1], done: make(chan struct{})}
	go p.follow(pipes[2][0])
	err = json.NewEncoder(pipes[0][1]).Encode(order{Argv: s.Argv, Env: s.Env, Dir: s.Dir})
	pipes[0][1].Close()
	if err != nil {
		p.Kill()
	}
	return p, err
}

func (p *Proc) follow(report *os.File) {
	var b [4096]byte
	n, _ := report.Read(b[:])
	report.Close()
	_ = p.cmd.Wait() // how it ended is in ProcessState
	p.failed = string(b[:n])
	p.mu.Lock()
	if !p.opened.IsZero() {
		p.took = time.Since(p.opened)
	}
	p.mu.Unlock()
	close(p.done)
}

// Identity holds the pid alone.
func (p *Proc) Identity() Identity { return Identity{PID: p.cmd.Process.Pid} }

// Notes says what is weaker here than it could be.
func (p *Proc) Notes() map[string]string { return map[string]string{"confinement": noBox} }

// Open lets the command run. It may be called once.
func (p *Proc) Open() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.killed || !p.opened.IsZero() {
		return &NotRunError{What: "opening its gate", Err: errors.New("it was ended or opened before")}
	}
	if _, err := p.gate.Write([]byte{1}); err != nil {
		return &NotRunError{What: "opening its gate", Err: err}
	}
	p.opened = time.Now()
	return nil
}

// Kill ends the command's session; what has left it goes on.
func (p *Proc) Kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.killed {
		return
	}
	p.killed = true
	p.gate.Close()
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
}

// Wait returns when the main process has ended. TreeDead is never claimed once the command ran.
func (p *Proc) Wait(ctx context.Context) (Exit, error) {
	timedOut := false
	select {
	case <-p.done:
	case <-ctx.Done():
		timedOut = true
		p.Kill()
		<-p.done
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failed != "" {
		return Exit{Code: -1, TreeDead: true}, &NotRunError{What: "starting it", Err: errors.New(p.failed)}
	}
	if p.opened.IsZero() {
		return Exit{Code: -1, TreeDead: true}, &NotRunError{What: "waiting at its gate", Err: errors.New("it was ended before the gate was opened")}
	}
	e := Exit{Code: p.cmd.ProcessState.ExitCode(), TimedOut: timedOut, Duration: p.took}
	if ws, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		e.Signal = ws.Signal().String()
	}
	return e, nil
}
