package tui

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/term"

	"pawl/views"
)

// Run shows the screen until the operator quits, ctx ends, a signal comes or
// something fails. However it ends, the terminal is as it was before. The error
// is nil if the operator quit; else it says in one line why it ended.
func Run(ctx context.Context, b Backend, o Options) error {
	o.defaults()
	if err := o.terminal(); err != nil {
		return err
	}
	// What is wrong with keys and theme is told on the screen, which comes up
	// with the usual ones.
	keys, err := DefaultKeys().With(o.Keys)
	if err != nil {
		keys, o.Hint = DefaultKeys(), "The usual keys are in force. "+err.Error()
	}
	styles, err := o.styles(true)
	if err != nil {
		o.Hint = "The usual colours are in force. " + err.Error()
		o.Theme = ""
		if styles, err = o.styles(true); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	m := newModel(ctx, b, o, keys, views.Pen{Styles: styles, Method: ansi.WcWidth})

	opts := []tea.ProgramOption{tea.WithoutSignalHandler(), tea.WithEnvironment(o.Environ)}
	if o.out != nil {
		opts = append(opts, tea.WithInput(o.in), tea.WithOutput(o.out))
	} else {
		opts = append(opts, tea.WithInput(o.In), tea.WithOutput(o.Out))
	}
	p := tea.NewProgram(m, append(opts, o.more...)...)

	// The terminal's own modes are kept here as well, so that they come back
	// even if the program cannot restore them.
	restore := keepModes(&o)
	defer restore()

	var join sync.WaitGroup
	join.Go(func() { pump(ctx, b, m.crashes, o.Crash, p.Send, time.After) })
	join.Go(func() { // it ends when its channel is closed, or with ctx
		for {
			select {
			case <-ctx.Done():
				return
			case _, ok := <-o.ThemesChanged:
				if !ok {
					return
				}
				p.Send(themesChangedMsg{})
			}
		}
	})
	join.Go(func() { watchSignals(ctx, p, restore) })
	join.Go(func() { // an end from outside ends in order, too
		<-ctx.Done()
		p.Quit()
	})

	_, err = p.Run()
	cancel()
	join.Wait()
	restore()
	return m.outcome(err, out(&o))
}

func out(o *Options) io.Writer {
	if o.out != nil {
		return io.Discard
	}
	return o.Out
}

// outcome says how it ended: by the operator's word without an error, with one
// line if runs go on or stay.
func (m *Model) outcome(err error, w io.Writer) error {
	switch {
	case m.ending.err != nil:
		return m.ending.err
	case errors.Is(err, tea.ErrProgramPanic):
		return fmt.Errorf("pawl stopped: the screen failed. What was committed is safe; “pawl” goes on with it: %w", err)
	case err != nil && !errors.Is(err, tea.ErrProgramKilled):
		return fmt.Errorf("the screen ended: the terminal could not be used: %w. “pawl inbox” works without one", err)
	case m.ending.signal != "":
		return fmt.Errorf("pawl ended by %s. The runs are in the ledger as they stood; “pawl” or “pawl resume --all” goes on with them", m.ending.signal)
	case m.ending.line != "":
		_, _ = fmt.Fprintln(w, m.ending.line) // the screen is gone; nothing to report a fault to
	}
	return nil
}

// keepModes remembers the terminal's modes and returns what sets them again.
func keepModes(o *Options) (restore func()) {
	if o.out != nil {
		return func() {}
	}
	state, err := term.GetState(o.In.Fd())
	if err != nil {
		return func() {}
	}
	fd := o.In.Fd()
	return func() { _ = term.Restore(fd, state) } // a terminal that has gone cannot be restored
}
