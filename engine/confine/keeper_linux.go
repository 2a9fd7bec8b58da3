package confine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// The keeper's file descriptors, beside an empty 0 and the output file as 1 and 2.
const (
	fdOrder  = 3
	fdGate   = 4
	fdReport = 5
)

// exitUngated is the keeper's exit code when its supervisor died: nothing ran, or everything was ended.
const exitUngated = 99

// message is one line of the keeper's report. Exactly one field is set.
type message struct {
	Ready  *ready  `json:"ready,omitempty"`  // the box stands, the gate is closed
	Failed *failed `json:"failed,omitempty"` // nothing of the command ran
	Done   *done   `json:"done,omitempty"`
}

type ready struct {
	Inner string            `json:"inner,omitempty"` // the keeper's own pid namespace, if it is its init
	Notes map[string]string `json:"notes,omitempty"`
}

type failed struct {
	What string `json:"what"`
	Why  string `json:"why"`
}

type done struct {
	Code      int        `json:"code"`
	Signal    string     `json:"signal,omitempty"`
	Dead      bool       `json:"dead"` // no descendant is left
	Survivors []Identity `json:"survivors,omitempty"`
}

// keeper runs between the supervisor and the command. In a box it is the init of the pid namespace, whose end takes
// everything along; outside of one it is the subreaper to which all descendants fall, so that it can end them and know
// that none is left.
type keeper struct {
	o      order
	report *os.File
}

// keeperMain ends by syscall.Exit throughout: there is nothing to flush, and nothing may delay the end.
func keeperMain() {
	runtime.LockOSThread() // rights are given up per thread, and the command is forked from this one
	swallowSignals()
	k := &keeper{report: os.NewFile(fdReport, "report")}
	defer func() {
		if r := recover(); r != nil {
			k.fail("building the box", fmt.Errorf("fault: %v", r))
		}
	}()
	// Whatever was inherited by accident ends here; the keeper's own descriptors too, when it forks.
	if err := unix.CloseRange(fdOrder, ^uint(0), unix.CLOSE_RANGE_CLOEXEC); err != nil {
		k.fail("closing inherited files", err)
	}
	if err := json.NewDecoder(os.NewFile(fdOrder, "order")).Decode(&k.o); err != nil {
		k.fail("reading the order", err)
	}
	notes := k.prepare()
	path, err := lookPath(k.o.Argv[0], k.o.Env, k.o.Dir)
	if err != nil && !k.o.Probe {
		k.fail("finding the program", err)
	}
	r := &ready{Notes: notes}
	if k.o.Box {
		r.Inner = ownPIDNS()
	}
	k.tell(message{Ready: r})
	k.awaitGate()
	k.run(path)
}

// swallowSignals keeps the keeper alive whatever the command sends it, without passing "ignored" on to the command.
func swallowSignals() {
	c := make(chan os.Signal, 8)
	signal.Notify(c)
	go func() {
		for range c {
		}
	}()
}

func (k *keeper) prepare() map[string]string {
	notes := map[string]string{}
	add := func(m map[string]string) {
		for a, b := range m {
			notes[a] = b
		}
	}
	if k.o.Box {
		ownPIDNS() // read while /proc still is what it was
		n, err := buildBox(&k.o)
		if err != nil {
			k.fail("building the box", err)
		}
		add(n)
	} else {
		if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
			k.fail("becoming the reaper", err)
		}
		if err := os.Chdir(k.o.Dir); err != nil {
			k.fail("entering the working directory", err)
		}
	}
	if k.o.Level > LevelNone {
		n, err := harden(&k.o)
		if err != nil {
			k.fail("giving up rights", err)
		}
		add(n)
	}
	return notes
}

func (k *keeper) tell(m message) {
	_ = json.NewEncoder(k.report).Encode(m) // with nobody listening there is nobody to tell
}

func (k *keeper) fail(what string, err error) {
	k.tell(message{Failed: &failed{What: what, Why: err.Error()}})
	syscall.Exit(126)
}

// awaitGate blocks until the supervisor has put our identity on record. The gate's end means that it died before.
// Afterwards the gate stays watched: its end means that nobody waits for the command any more.
func (k *keeper) awaitGate() {
	gate := os.NewFile(fdGate, "gate")
	var b [1]byte
	if n, _ := gate.Read(b[:]); n != 1 {
		syscall.Exit(exitUngated)
	}
	go func() {
		_, _ = gate.Read(b[:])
		if !k.o.Box {
			k.end(done{Code: -1, Signal: "killed"})
		}
		syscall.Exit(exitUngated)
	}()
}

func (k *keeper) run(path string) {
	argv, attr := k.o.Argv, &syscall.ProcAttr{Dir: k.o.Dir, Env: k.o.Env, Files: []uintptr{0, 1, 2}, Sys: &syscall.SysProcAttr{Setsid: true}}
	if k.o.Probe {
		path, argv = "/proc/self/exe", append([]string{argvProbe}, k.o.Argv...)
	}
	if !k.o.Box {
		attr.Sys.Pdeathsig = syscall.SIGKILL
	}
	pid, err := syscall.ForkExec(path, argv, attr)
	if err != nil {
		k.fail("starting "+path, err)
	}
	for {
		var ws syscall.WaitStatus
		p, err := syscall.Wait4(-1, &ws, 0, nil)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil {
			k.fail("waiting for the command", err)
		}
		if p != pid {
			continue
		}
		d := done{Code: ws.ExitStatus()}
		if ws.Signaled() {
			d.Code, d.Signal = -1, unix.SignalName(ws.Signal())
		}
		k.end(d)
	}
}

// end ends what the command left behind, reports and exits. In a box our own exit does the first.
func (k *keeper) end(d done) {
	if k.o.Box || noneLeft() {
		d.Dead = true
	} else {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		d.Survivors = killBelow(ctx, os.Getpid())
		cancel()
		d.Dead = noneLeft()
	}
	k.tell(message{Done: &d})
	syscall.Exit(0)
}

// noneLeft reaps what has ended. That no child is left proves that no descendant is: each would have fallen to us.
func noneLeft() bool {
	for {
		p, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.ECHILD):
			return true
		case err != nil || p == 0:
			return false
		}
	}
}

// lookPath finds the program as a shell with the command's own PATH would.
func lookPath(name string, env []string, dir string) (string, error) {
	runnable := func(p string) error {
		st, err := os.Stat(p)
		if err != nil {
			return err
		}
		if st.IsDir() {
			return fmt.Errorf("%s is a directory", p)
		}
		if err := unix.Access(p, unix.X_OK); err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
		return nil
	}
	if strings.Contains(name, "/") {
		if !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		return name, runnable(name)
	}
	path := ""
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, "PATH="); ok {
			path = v
		}
	}
	for _, d := range filepath.SplitList(path) {
		if !filepath.IsAbs(d) {
			continue
		}
		if p := filepath.Join(d, name); runnable(p) == nil {
			return p, nil
		}
	}
	return "", fmt.Errorf("%s is not in PATH (%s): %w", name, path, fs.ErrNotExist)
}
