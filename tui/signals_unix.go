//go:build unix

package tui

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	tea "charm.land/bubbletea/v2"
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
			signal.Stop(stop) // from here the signal stops the process
			suspend(p, cont)
			signal.Notify(stop, syscall.SIGTSTP)
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

// suspend gives the terminal back, stops, and takes the terminal again. Where no
// shell could wake it up, the system does not stop it, and it goes straight on.
func suspend(p *tea.Program, cont <-chan os.Signal) {
	if p.ReleaseTerminal() != nil {
		return // the terminal has gone
	}
	_ = syscall.Kill(0, syscall.SIGTSTP) // the whole job, as the key does elsewhere
	select {
	case <-cont:
	case <-time.After(orphaned):
	}
	_ = p.RestoreTerminal() // if the terminal has gone, reading it ends the program
	p.Send(tea.ResumeMsg{})
}

// orphaned is how long suspend waits to be stopped and woken up.
const orphaned = 300 * time.Millisecond

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
