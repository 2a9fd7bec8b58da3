//go:build unix

package tui

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	tea "charm.land/bubbletea/v2"
	"golang.org/x/sys/unix"
)

// patience is how long the program has to end in order after a signal.
const patience = 2 * time.Second

// watchSignals ends the program in order on the signals that end programs, and
// gives the terminal back while it is stopped. It returns when ctx ends.
func watchSignals(ctx context.Context, p *tea.Program, restore func()) {
	end := make(chan os.Signal, 2)
	signal.Notify(end, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT)
	defer signal.Stop(end)
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTSTP)
	defer signal.Stop(stop)
	cont := make(chan os.Signal, 1)
	signal.Notify(cont, syscall.SIGCONT)
	defer signal.Stop(cont)

	for {
		select {
		case <-ctx.Done():
			return
		case s := <-end:
			p.Send(signalledMsg{name(s)})
			select {
			case <-ctx.Done():
			case <-time.After(patience): // Update is stuck: end without it
				p.Kill()
				restore()
			}
			return
		case <-stop:
			suspend(p, cont)
		case <-cont:
			// Stopped by something that cannot be caught: the shell had the
			// terminal meanwhile, so all of its modes are set anew.
			if p.ReleaseTerminal() == nil {
				_ = p.RestoreTerminal() // the terminal has gone; reading it ends the program
				p.Send(tea.ResumeMsg{})
			}
		}
	}
}

// suspend gives the terminal back, stops the job, and takes the terminal again
// when it goes on. Where no shell could wake it up, it does not stop.
//
// The job stops itself with SIGSTOP: once a Go program has asked for SIGTSTP,
// that signal no longer stops it, even when it is not asked for any more.
func suspend(p *tea.Program, cont <-chan os.Signal) {
	session, err := unix.Getsid(0)
	if err != nil || session == unix.Getpgrp() {
		p.Send(unsuspendedMsg{})
		return
	}
	if p.ReleaseTerminal() != nil {
		return // the terminal has gone
	}
	if syscall.Kill(0, syscall.SIGSTOP) == nil {
		<-cont
	}
	_ = p.RestoreTerminal() // if the terminal has gone, reading it ends the program
	p.Send(tea.ResumeMsg{})
}

// stopSelf asks for what the suspending key does elsewhere; watchSignals answers.
func stopSelf() { _ = syscall.Kill(syscall.Getpid(), syscall.SIGTSTP) }

func name(s os.Signal) string {
	switch s {
	case syscall.SIGTERM:
		return "SIGTERM"
	case syscall.SIGHUP:
		return "SIGHUP (the terminal was closed)"
	case syscall.SIGINT:
		return "SIGINT"
	case syscall.SIGQUIT:
		return "SIGQUIT"
	}
	return s.String()
}
