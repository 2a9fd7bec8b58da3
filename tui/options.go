package tui

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/term"

	"pawl/themes"
)

// Options are how the screen is run. The zero value is ready to use.
type Options struct {
	// Theme is a theme's name; empty: dark or light, by the terminal's background.
	Theme string
	// Themes holds the operator's own theme files; may be nil.
	Themes fs.FS
	// Demo is the command line that plays the demo, on a ledger of its own; empty: none.
	Demo []string
	// ThemesChanged is signalled when one of them may have changed; may be nil.
	ThemesChanged <-chan struct{}
	// Silent: no notification and no bell.
	Silent bool
	// Keys replaces the keys of intents, by the names that the help shows.
	Keys map[string][]string
	// StateDir is where copies and crash reports go; empty: nowhere.
	StateDir string
	// Hint is one line shown at the start.
	Hint string
	// Repo, Check and Model are what the form of a new run begins with.
	Repo, Check, Model string
	// Leave takes care of the runs that this process drives before the screen
	// ends; it may block until they have reached a safe point. Nil: nothing to do.
	Leave func(context.Context, Leave) error
	// CanBackground: Leave can hand the runs to a process without a screen.
	CanBackground bool
	// Crash brings the panic of an engine goroutine that was recovered there.
	Crash <-chan error

	In      *os.File // nil: standard input
	Out     *os.File // nil: standard output
	Environ []string // nil: the process's own

	// Now and After are the clock; nil: the real one.
	Now   func() time.Time
	After func(time.Duration, tea.Msg) tea.Cmd

	seq   int           // of forms
	frame time.Duration // shortest time between two frames; 0: 8 ms, negative: none
	// For tests: a terminal that is no file.
	in   io.Reader
	out  io.Writer
	more []tea.ProgramOption
}

func (o *Options) defaults() {
	if o.In == nil {
		o.In = os.Stdin
	}
	if o.Out == nil {
		o.Out = os.Stdout
	}
	if o.Environ == nil {
		o.Environ = os.Environ()
	}
	if o.frame == 0 {
		o.frame = 8 * time.Millisecond
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.After == nil {
		o.After = func(d time.Duration, msg tea.Msg) tea.Cmd {
			return func() tea.Msg {
				time.Sleep(d)
				return msg
			}
		}
	}
}

func (o *Options) getenv(name string) string {
	for _, kv := range slices.Backward(o.Environ) {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			return v
		}
	}
	return ""
}

// noColor follows the convention of no-color.org: set and not empty.
func (o *Options) noColor() bool { return o.getenv("NO_COLOR") != "" }

// styles are those of the theme that was chosen, or of the one for a background.
func (o *Options) styles(dark bool) (*themes.Styles, error) {
	if o.noColor() {
		return themes.Plain(), nil
	}
	name := o.Theme
	if name == "" {
		name = themes.Default(dark)
	}
	t, err := themes.Load(name, o.Themes)
	if err != nil {
		return nil, err
	}
	return t.Styles(), nil
}

// ErrNoTerminal is wrapped by the error of Run where there is no screen to draw on.
var ErrNoTerminal = errors.New("no terminal")

type noTerminal struct{ why string }

func (e noTerminal) Error() string {
	return "the screen cannot be shown: " + e.why + ". Every command works without it: “pawl inbox” shows what waits for you, “pawl list” the runs, “pawl run GOAL” starts one"
}

func (e noTerminal) Unwrap() error { return ErrNoTerminal }

// terminal refuses where there is nothing to draw on.
func (o *Options) terminal() error {
	switch {
	case o.out != nil: // a test brings its own
		return nil
	case o.getenv("TERM") == "dumb":
		return noTerminal{"TERM is “dumb”, a terminal that can only print lines"}
	case !term.IsTerminal(o.Out.Fd()):
		return noTerminal{"standard output is not a terminal"}
	case !term.IsTerminal(o.In.Fd()):
		return noTerminal{"standard input is not a terminal"}
	}
	return nil
}
