package confine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// spawner is the one thread that starts keepers. A death signal is sent when the thread that started the process
// ends, not its process, so this one is locked and never ends.
var spawner = sync.OnceValue(func() chan<- func() {
	c := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range c {
			f()
		}
	}()
	return c
})

// Proc is one command from its gated start to the proof of its end. Its methods may be called from any goroutine.
type Proc struct {
	id     Identity
	boxed  bool
	notes  map[string]string
	marker string
	pidfd  int

	mu     sync.Mutex // guards the fields below
	gate   *os.File   // nil once closed
	opened time.Time  // zero until Open
	killed bool

	done   chan struct{} // closed when the keeper was waited for
	result message       // valid after done
	took   time.Duration // valid after done
}

// Start builds the box and stops before the command: nothing of Argv runs until [Proc.Open], and never if this
// process dies first. Every error means that nothing ran; it is a [*NotRunError]. ctx bounds the start only.
func Start(ctx context.Context, s Spec) (*Proc, error) {
	p, err := start(ctx, &s)
	if err != nil {
		var n *NotRunError
		if errors.As(err, &n) {
			return nil, err
		}
		return nil, &NotRunError{What: "preparing it", Err: err}
	}
	return p, nil
}

func start(ctx context.Context, s *Spec) (*Proc, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	who, err := runAs(s)
	if err != nil {
		return nil, err
	}
	o := &order{Argv: s.Argv, Dir: s.Dir, Env: s.Env, Level: s.Level, Network: s.Network, Probe: s.probe}
	if s.Level == LevelSealed {
		o.Box, o.OwnNet = true, !s.Network
		if err := makeLayers(s.Caches, who); err != nil {
			return nil, err
		}
		if err := planBox(s, o); err != nil {
			return nil, err
		}
	} else {
		o.Rights, o.Reach = s.Writable, s.Sockets
	}
	out, err := os.OpenFile(s.Output, os.O_CREATE|os.O_WRONLY|os.O_APPEND|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the output file: %w", err)
	}
	defer out.Close()
	return spawn(ctx, o, who, out, markerOf(s.Env))
}

// user is whom the command runs as: ourselves, but for root working in somebody else's files, which a root without
// capabilities could not read.
type user struct{ uid, gid int }

func runAs(s *Spec) (user, error) {
	u := user{os.Geteuid(), os.Getegid()}
	if u.uid != 0 || s.Level == LevelNone {
		return u, nil
	}
	var st unix.Stat_t
	if err := unix.Stat(s.Dir, &st); err != nil {
		return u, fmt.Errorf("the working directory %s: %w", s.Dir, err)
	}
	return user{int(st.Uid), int(st.Gid)}, nil
}

func makeLayers(caches []Cache, who user) error {
	for _, c := range caches {
		for _, d := range []string{c.Layer, filepath.Join(c.Layer, "upper"), filepath.Join(c.Layer, "work")} {
			if err := os.MkdirAll(d, 0o700); err != nil {
				return fmt.Errorf("a private cache: %w", err)
			}
			if who.uid != os.Geteuid() {
				if err := os.Lchown(d, who.uid, who.gid); err != nil {
					return fmt.Errorf("a private cache: %w", err)
				}
			}
		}
	}
	return nil
}

func spawn(ctx context.Context, o *order, who user, out *os.File, marker string) (*Proc, error) {
	orders, err := memFile(o)
	if err != nil {
		return nil, err
	}
	defer orders.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	gateR, gateW, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer gateR.Close()
	repR, repW, err := os.Pipe()
	if err != nil {
		gateW.Close()
		return nil, err
	}
	env := []string{}
	if marker != "" {
		env = append(env, MarkerEnv+"="+marker)
	}
	files := []*os.File{null, out, out, orders, gateR, repW}
	child, err := launch(o, who, files, env)
	repW.Close()
	if err != nil {
		gateW.Close()
		repR.Close()
		return nil, &NotRunError{What: "making its namespaces", Err: err}
	}
	p := &Proc{boxed: o.Box, marker: marker, gate: gateW, pidfd: -1, done: make(chan struct{})}
	dec := json.NewDecoder(repR)
	if err := p.meet(ctx, child, dec); err != nil {
		p.shut()
		_ = child.Kill()
		_, _ = child.Wait()
		repR.Close()
		if p.pidfd >= 0 {
			unix.Close(p.pidfd)
		}
		return nil, err
	}
	go p.follow(child, dec, repR)
	return p, nil
}

// meet waits until the box stands and learns who its keeper is.
func (p *Proc) meet(ctx context.Context, child *os.Process, dec *json.Decoder) error {
	stop := context.AfterFunc(ctx, func() { _ = child.Kill() })
	var m message
	err := dec.Decode(&m)
	if !stop() {
		return &NotRunError{What: "building the box", Err: ctx.Err()}
	}
	switch {
	case err != nil:
		return &NotRunError{What: "building the box", Err: fmt.Errorf("its keeper ended without a word: %w", err)}
	case m.Failed != nil:
		return &NotRunError{What: m.Failed.What, Err: errors.New(m.Failed.Why)}
	case m.Ready == nil:
		return &NotRunError{What: "building the box", Err: errors.New("its keeper said something else than ready")}
	}
	// The child has not been waited for, so the pid is still its own.
	if p.pidfd, err = unix.PidfdOpen(child.Pid, 0); err != nil {
		return &NotRunError{What: "holding its process", Err: err}
	}
	if p.id, err = identify(child.Pid); err != nil {
		return &NotRunError{What: "identifying its process", Err: err}
	}
	p.id.Inner, p.notes = m.Ready.Inner, m.Ready.Notes
	return nil
}

// launch starts the keeper on the spawner's thread.
func launch(o *order, who user, files []*os.File, env []string) (*os.Process, error) {
	start := func(sys *syscall.SysProcAttr) (child *os.Process, err error) {
		sys.Setsid = true // the terminal's interrupt is for the supervisor
		attr := &os.ProcAttr{Dir: "/", Env: env, Files: files, Sys: sys}
		ok := make(chan struct{})
		spawner() <- func() {
			defer close(ok)
			child, err = os.StartProcess("/proc/self/exe", []string{argvKeeper}, attr)
		}
		<-ok
		return child, err
	}
	sys := &syscall.SysProcAttr{}
	if who.uid != os.Geteuid() {
		sys.Credential = &syscall.Credential{Uid: uint32(who.uid), Gid: uint32(who.gid)}
	}
	if !o.Box {
		return start(sys) // no death signal: the keeper sees the gate end, ends everything, and only then itself
	}
	sys.Pdeathsig = syscall.SIGKILL
	// Held within the new user namespace until the command starts. Layers need the override for the directory without
	// permissions in which the kernel prepares its changes.
	sys.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_SETPCAP, unix.CAP_DAC_OVERRIDE, unix.CAP_FOWNER}
	sys.Cloneflags = syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS
	if o.OwnNet {
		sys.Cloneflags |= syscall.CLONE_NEWNET
	}
	plain := *sys
	sys.Cloneflags |= syscall.CLONE_NEWUSER
	sys.UidMappings = []syscall.SysProcIDMap{{ContainerID: who.uid, HostID: who.uid, Size: 1}}
	sys.GidMappings = []syscall.SysProcIDMap{{ContainerID: who.gid, HostID: who.gid, Size: 1}}
	child, err := start(sys)
	if err != nil && os.Geteuid() == 0 {
		if c, err2 := start(&plain); err2 == nil { // root needs no user namespace for the others
			return c, nil
		}
	}
	return child, err
}

func memFile(o *order) (*os.File, error) {
	fd, err := unix.MemfdCreate("pawl-order", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("memory for the order: %w", err)
	}
	f := os.NewFile(uintptr(fd), "order")
	if err := json.NewEncoder(f).Encode(o); err != nil {
		f.Close()
		return nil, err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
