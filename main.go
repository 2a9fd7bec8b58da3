// Pawl supervises long-running agents over a ledger in which every step is
// written before it is taken. This file wires command line, engine and screen
// together and does nothing else.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/charmbracelet/x/term"

	"pawl/engine"
	"pawl/engine/confine"
	"pawl/engine/headless"
	"pawl/tui"
)

func main() {
	confine.Main() // must be first: in a stage of the box it does not return
	os.Exit(run())
}

func run() int {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	width := 0
	if w, _, err := term.GetSize(os.Stdout.Fd()); err == nil {
		width = w
	}
	return headless.Execute(context.Background(), headless.Options{
		Args: os.Args[1:], In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Getenv: os.Getenv, Now: time.Now,
		Terminal: term.IsTerminal(os.Stdin.Fd()) && width > 0, Width: width, Screen: screen, Signals: signals,
	})
}

// screen runs the TUI over an engine.
func screen(ctx context.Context, e *engine.Engine, o headless.ScreenOptions) error {
	t := tui.Options{
		StateDir: o.StateDir, Hint: o.Hint, CanBackground: o.Leave != nil,
		Theme: o.Look.Theme, Silent: o.Look.Silent, Keys: o.Look.Keys, Themes: o.Themes, Demo: o.Demo, ThemesChanged: o.ThemesChanged,
	}
	if o.Leave != nil {
		t.Leave = func(ctx context.Context, how tui.Leave) error { return o.Leave(ctx, how == tui.LeaveBackground) }
	}
	return tui.Run(ctx, e, t)
}
