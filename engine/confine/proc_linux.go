package confine

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// drain is how long a killed tree may take to end before Wait returns without the proof. Only processes stuck in the
// kernel take longer.
const drain = 10 * time.Second

// keeperGrace is how long a keeper outside of a box may take to end its tree before that is done from here.
const keeperGrace = 3 * time.Second

// Identity names the process to put on record before the gate is opened.
func (p *Proc) Identity() Identity { return p.id }

// Notes says what of the box is weaker or slower on this machine than it could be, in plain words.
func (p *Proc) Notes() map[string]string { return p.notes }

// Open lets the command run. It may be called once.
func (p *Proc) Open() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gate == nil {
		return &NotRunError{What: "opening its gate", Err: errors.New("it was ended before")}
	}
	if !p.opened.IsZero() {
		return errors.New("the gate is open already")
	}
	p.opened = time.Now()
	if _, err := p.gate.Write([]byte{1}); err != nil {
		p.opened = time.Time{}
		return &NotRunError{What: "opening its gate", Err: err}
	}
	return nil // the pipe stays open: its end tells the keeper that we died
}

// shut closes the gate, for good.
func (p *Proc) shut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gate != nil {
		p.gate.Close()
		p.gate = nil
	}
}

// Kill ends the command and everything it started, at once and without asking. It does not wait.
func (p *Proc) Kill() {
	p.mu.Lock()
	first := !p.killed
	p.killed = true
	p.mu.Unlock()
	if !first {
		return
	}
	if p.boxed {
		p.signal()
		p.shut()
		return
	}
	p.shut() // the keeper ends its tree and can then say that none is left
	go func() {
		t := time.NewTimer(keeperGrace)
		defer t.Stop()
		select {
		case <-p.done:
		case <-t.C: // stopped or blinded by the command
			ctx, cancel := context.WithTimeout(context.Background(), drain)
			defer cancel()
			_ = unix.PidfdSendSignal(p.pidfd, unix.SIGSTOP, nil, 0)
			killBelow(ctx, p.id.PID)
			p.signal()
		}
	}()
}

// signal kills the keeper itself. The handle is closed only by follow, under the same lock.
func (p *Proc) signal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pidfd >= 0 {
		_ = unix.PidfdSendSignal(p.pidfd, unix.SIGKILL, nil, 0) // an error means that it is gone
	}
}

// follow owns the keeper: it reads what it reports and waits for its end.
func (p *Proc) follow(child *os.Process, dec *json.Decoder, rep *os.File) {
	for {
		var m message
		if dec.Decode(&m) != nil {
			break
		}
		if m.Done != nil || m.Failed != nil {
			p.result = m
		}
	}
	_, _ = child.Wait() // for the init of a namespace this returns after everything in it is dead
	rep.Close()
	p.mu.Lock()
	if !p.opened.IsZero() {
		p.took = time.Since(p.opened)
	}
	unix.Close(p.pidfd)
	p.pidfd = -1
	p.mu.Unlock()
	p.shut()
	close(p.done)
}

// Wait returns when the command has ended and, as far as the level can tell, everything it started. When ctx ends
// first, the tree is killed and Exit has TimedOut set. A [*NotRunError] says that nothing ran, [ErrUnobserved] that
// the end was not seen; any other way of ending is a result.
func (p *Proc) Wait(ctx context.Context) (Exit, error) {
	timedOut := false
	select {
	case <-p.done:
	case <-ctx.Done():
		select {
		case <-p.done: // both at once: the observed end counts
		default:
			timedOut = true
			p.Kill()
			t := time.NewTimer(drain)
			defer t.Stop()
			select {
			case <-p.done:
			case <-t.C:
				return Exit{Code: -1, Signal: "SIGKILL", TimedOut: true, Survivors: append(FindMarked(p.marker), p.id)}, nil
			}
		}
	}
	return p.exit(timedOut)
}

// exit reads the result off a Proc that is done.
func (p *Proc) exit(timedOut bool) (Exit, error) {
	p.mu.Lock()
	opened, killed := !p.opened.IsZero(), p.killed
	p.mu.Unlock()
	e := Exit{Code: -1, TimedOut: timedOut, TreeDead: p.boxed, Duration: p.took}
	switch {
	case p.result.Failed != nil:
		return Exit{Code: -1, TreeDead: true}, &NotRunError{What: p.result.Failed.What, Err: errors.New(p.result.Failed.Why)}
	case p.result.Done != nil:
		d := p.result.Done
		e.Code, e.Signal = d.Code, d.Signal
		e.TreeDead = p.boxed || d.Dead
		e.Survivors = d.Survivors
	case !opened:
		return Exit{Code: -1, TreeDead: true}, &NotRunError{What: "waiting at its gate", Err: errors.New("it was ended before the gate was opened")}
	case killed:
		e.Signal = "SIGKILL"
	}
	if !e.TreeDead {
		e.Survivors = merge(e.Survivors, FindMarked(p.marker))
	}
	if p.result.Done == nil && !killed {
		return e, ErrUnobserved
	}
	return e, nil
}

func merge(a, b []Identity) []Identity {
	for _, id := range b {
		known := false
		for _, o := range a {
			known = known || o.PID == id.PID && o.Start == id.Start
		}
		if !known {
			a = append(a, id)
		}
	}
	return a
}

func markerOf(env []string) string {
	m := ""
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, MarkerEnv+"="); ok {
			m = v
		}
	}
	return m
}
