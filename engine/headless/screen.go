package headless

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"

	"github.com/spf13/cobra"

	"pawl/engine/machine"
	"pawl/engine/watch"
)

// screen opens the TUI on the ledger of this invocation.
func (a *app) screen(cmd *cobra.Command, o ScreenOptions) error {
	if a.json {
		return usage("the screen prints no JSON", "pawl alone opens the screen", "`pawl list --json` and `pawl inbox --json` print what it shows")
	}
	if !a.o.Terminal || a.o.Screen == nil {
		return usage("there is no terminal for the screen", "input or output is not a terminal",
			"`pawl inbox` shows what waits for you, `pawl list` the runs; `pawl --help` lists all commands")
	}
	s, err := a.open(cmd.Context(), "pawl", showing)
	if err != nil {
		return err
	}
	return a.onScreen(cmd.Context(), s, o)
}

// onScreen shows a session, which it closes, and drives what nobody drives.
func (a *app) onScreen(ctx context.Context, s *session, o ScreenOptions) error {
	if o.Hint == "" {
		o.Hint = a.configHint()
	}
	o.Demo = append(append([]string{}, a.o.Self...), "demo")
	c := a.configured()
	o.Look, o.Themes = c.Screen, c.Themes()
	if c.Dir != "" {
		o.ThemesChanged = watch.Files(ctx, []string{filepath.Join(c.Dir, "themes")}, func(string, ...any) {}) // without it they are read at the next start
	}
	a.screened.Store(true)
	defer a.screened.Store(false)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	o.StateDir = filepath.Dir(s.db.Path())
	var adopted sync.WaitGroup
	if readOnly, _ := s.db.ReadOnly(); !readOnly {
		adopted.Go(func() {
			if _, err := s.Adopt(ctx); err != nil && ctx.Err() == nil {
				a.logger()("interrupted runs were not taken over: %v", err)
			}
		})
		o.Leave = func(ctx context.Context, background bool) error { return a.leave(ctx, s, background) }
	}
	err := a.o.Screen(ctx, s.Engine, o)
	cancel()
	adopted.Wait()
	a.screened.Store(false)
	return errors.Join(err, a.closeDriving(s, func(bool) {}))
}

// leave stops the runs of this process at a safe point and, if they are to go
// on in the background, starts a process that drives them without a screen.
func (a *app) leave(ctx context.Context, s *session, background bool) error {
	ids := s.Driven()
	if err := s.Close(ctx); err != nil {
		return err
	}
	if !background || len(ids) == 0 {
		return nil
	}
	return a.background(s.db.Path(), ids)
}

// background starts `pawl resume --wait` on its own, outside this terminal.
// What it prints goes to a file beside the ledger.
func (a *app) background(path string, ids []machine.RunID) error {
	name := filepath.Join(filepath.Dir(path), "background.log")
	out, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("keep a log of the background process: %w", err)
	}
	defer func() { _ = out.Close() }() // the child has its own
	argv := append([]string{}, a.o.Self...)
	argv = append(argv, "resume", "--wait", "--ledger", path)
	for _, id := range ids {
		argv = append(argv, string(id))
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr = out, out
	detach(cmd)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start a process for the background: %w", err)
	}
	return cmd.Process.Release()
}
