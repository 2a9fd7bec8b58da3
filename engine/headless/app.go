package headless

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"pawl/engine"
	"pawl/engine/config"
	"pawl/engine/machine"
	"pawl/ledger"
)

// app is what the commands of one invocation share.
type app struct {
	o    Options
	path string // --ledger; "" if it was not given
	json bool
	root *cobra.Command

	configPath string // --config; "" if it was not given
	configOnce sync.Once
	config     config.Config
	complained sync.Once

	// driving: runs move in this process, so that an interrupt goes to
	// interrupts instead of cancelling everything.
	driving    atomic.Bool
	screened   atomic.Bool // the screen is up: it handles signals, and nothing may be printed
	interrupts chan os.Signal
}

// out and err are where results and everything else go.
func (a *app) out() io.Writer { return a.o.Out }
func (a *app) err() io.Writer { return a.o.Err }

// say writes a line for the operator beside the result: to standard error, so
// that what is piped stays clean.
func (a *app) say(format string, args ...any) { fmt.Fprintf(a.o.Err, format+"\n", args...) }

// stamp shows a time: its age for a person, exact for a program.
func (a *app) stamp(t time.Time) string {
	if a.o.Width > 0 {
		return age(a.o.Now(), t)
	}
	if t.IsZero() || t.UnixMicro() == 0 {
		return "-"
	}
	return t.UTC().Format(time.RFC3339)
}

// ledgerPath is the ledger that this invocation is about, and whether the
// operator named it.
func (a *app) ledgerPath() (path string, named bool, err error) {
	if a.path != "" {
		return a.path, true, nil
	}
	if p := a.o.Getenv("PAWL_LEDGER"); p != "" {
		return p, true, nil
	}
	state := a.o.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(state) { // a relative one is to be ignored, says the XDG specification
		home := a.o.Getenv("HOME")
		if home == "" {
			return "", false, &Problem{
				What: "there is no place for the ledger", Why: "neither HOME nor XDG_STATE_HOME is set",
				Next: "name a file with --ledger or PAWL_LEDGER",
			}
		}
		state = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(state, "pawl", "ledger.db"), false, nil
}

// command is a command line of Pawl that means the same ledger as this one.
func (a *app) command(name string, args ...string) string {
	s := "pawl "
	if a.path != "" {
		s += "--ledger " + quote(a.path) + " "
	}
	return s + strings.Join(append([]string{name}, args...), " ")
}

// own makes command lines in a sentence name the ledger that was named here.
func (a *app) own(s string) string {
	if a.path == "" {
		return s
	}
	return commandLine.ReplaceAllStringFunc(s, func(c string) string {
		if strings.Contains(c, "--help") {
			return c
		}
		return "`" + a.command(strings.TrimPrefix(c, "`pawl "))
	})
}

var commandLine = regexp.MustCompile("`pawl [^`]*`")

// access is what a command needs of the ledger.
type access uint8

const (
	// viewing never writes: another process's lock is no hindrance, and a
	// ledger that lost its tail can be looked at.
	viewing access = iota
	// deciding writes to a ledger that must be there.
	deciding
	// making is deciding that also makes a ledger where there is none.
	making
	// showing is making that is content with looking where writing is not possible.
	showing
)

// session is an open ledger with an engine on it.
type session struct {
	*engine.Engine
	db *ledger.DB
}

// open opens the ledger for a command. Whoever gets a session closes it.
func (a *app) open(ctx context.Context, name string, how access) (*session, error) {
	path, _, err := a.ledgerPath()
	if err != nil {
		return nil, err
	}
	o := ledger.Options{
		Path: path, Owner: ownerOf(name), BusyTimeout: a.o.BusyTimeout,
		MustExist: how < making, ViewOnly: how == viewing,
	}
	db, err := ledger.Open(ctx, o)
	if err != nil {
		return nil, err
	}
	if readOnly, why := db.ReadOnly(); readOnly && (how == deciding || how == making) {
		return nil, errors.Join(&ledger.ReadOnlyError{Path: db.Path(), Reason: why}, db.Close())
	}
	if lost := db.Lost(); lost != nil && how == viewing {
		a.say("pawl: warning: %s", a.own(lost.Error()))
	}
	return a.start(db, name)
}

// start puts an engine on an open ledger; on failure the ledger is closed.
func (a *app) start(db *ledger.DB, name string) (*session, error) {
	o := engine.Options{Store: db, Owner: ownerOf(name), StateDir: filepath.Dir(db.Path()), PolicyFile: a.policyPath(), Now: a.o.Now, Log: a.logger(), Tools: a.tools()}
	if readOnly, _ := db.ReadOnly(); !readOnly {
		o.Holder = db.Process()
		a.complain()
	}
	e, err := engine.New(o)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &session{Engine: e, db: db}, nil
}

// logger reports what the engine has to say beside results; from any goroutine.
func (a *app) logger() func(string, ...any) {
	var mu sync.Mutex
	return func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		text := line(fmt.Sprintf(format, args...), 0)
		if a.screened.Load() {
			a.note(text)
			return
		}
		a.say("pawl: %s", text)
	}
}

// close gives back leases and closes the ledger. Nothing is in flight in a
// session that only looked or decided.
func (s *session) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeWithin)
	defer cancel()
	return errors.Join(s.Close(ctx), s.db.Close())
}

// closeWithin bounds the end of a session that drives nothing.
const closeWithin = 10 * time.Second

// with opens a session around f.
func (a *app) with(cmd *cobra.Command, how access, f func(ctx context.Context, s *session) error) error {
	ctx := cmd.Context()
	s, err := a.open(ctx, cmd.Name(), how)
	if err != nil {
		return err
	}
	err = f(ctx, s)
	if cerr := s.close(); err == nil {
		err = cerr
	}
	return err
}

// looking is with(viewing), but where the operator named no ledger and none
// was made yet it calls empty instead: nothing is wrong then.
func (a *app) looking(cmd *cobra.Command, empty func() error, f func(ctx context.Context, s *session) error) error {
	err := a.with(cmd, viewing, f)
	var missing *ledger.NotFoundError
	if _, named, perr := a.ledgerPath(); perr == nil && !named && errors.As(err, &missing) && missing.What == "ledger" {
		a.say("There is no ledger yet. `pawl demo` shows what Pawl does; `pawl run GOAL` starts a first run.")
		return empty()
	}
	return err
}

// ownerOf names this process to people who find a run held by it.
func ownerOf(name string) string {
	host, err := os.Hostname()
	if err != nil {
		host = "this machine"
	}
	words := "pawl"
	if name != "pawl" {
		words += " " + name
	}
	return fmt.Sprintf("pid %d (%s) on %s", os.Getpid(), words, host)
}

// carriedOut tells who acts on a decision that was just recorded, and says so
// if nobody does yet.
func (a *app) carriedOut(ctx context.Context, s *session, id machine.RunID) (owner, next string) {
	l, err := s.Run(ctx, id)
	if err != nil || l.Owner != "" {
		return l.Owner, ""
	}
	return "", a.command("resume", string(id))
}
