package tool

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"pawl/engine/confine"
	"pawl/engine/machine"
)

// lineRun is one command line to run.
type lineRun struct {
	line    string
	timeout time.Duration
	network bool
	env     []string // KEY=value, beside the usual
	own     bool     // a declared tool's: it is no recipe, whatever its contract is called
}

// shellPath is the shell that command lines are run with. It is bash, whose
// grammar is the one that lines are judged by, or else the system's own.
func shellPath() string {
	for _, p := range []string{"/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash"} {
		if st, err := os.Stat(p); err == nil && st.Mode().IsRegular() && st.Mode()&0o111 != 0 {
			return p
		}
	}
	return "/bin/sh"
}

// runLine makes one attempt of a command line. The order is what recovery rests
// on: the process exists, its identity is recorded, its gate opens; after its
// end whatever it started is dead where the level can prove it.
func runLine(ctx context.Context, o Options, env Env, c Call, r lineRun) Outcome {
	out := attemptLine(ctx, o, env, c, r)
	if c.Contract.Class == machine.ClassRead && out.End == EndAmbiguous && ctx.Err() == nil {
		// It only looked: that no answer came is the answer.
		seen := out
		out = done(false, CodeNoAnswer, upper(seen.Cause)+".")
		if seen.Output.Path != "" {
			out.Output, out.Result.Note = seen.Output, seen.Cause
		}
		out.Dead = seen.Dead
	}
	return out
}

func attemptLine(ctx context.Context, o Options, env Env, c Call, r lineRun) Outcome {
	sealed := c.Contract.Class == machine.ClassWorkspace && !c.Contract.Declared
	if sealed && (env.Level != confine.LevelSealed || r.network) {
		return notStarted(fmt.Sprintf("It was not started: it was planned to run sealed, and commands here run at level %q.", env.Level))
	}
	spec, err := boxFor(ctx, o, env, c, r)
	if err != nil {
		return notStarted(fmt.Sprintf("It was not started: %v.", plain(err)))
	}
	p, err := confine.Start(ctx, spec)
	if err != nil {
		return notStarted(fmt.Sprintf("It was not started: %v.", err))
	}
	if c.Started != nil {
		if err := c.Started(machine.Identity(p.Identity())); err != nil {
			p.Kill()
			_, _ = p.Wait(context.WithoutCancel(ctx)) // bounded by the package; nothing of it ran
			return notStarted(fmt.Sprintf("It was not started: its start could not be recorded: %v.", err))
		}
	}
	if c.Before != nil {
		c.Before()
	}
	if err := p.Open(); err != nil {
		p.Kill()
		e, _ := p.Wait(context.WithoutCancel(ctx))
		var nr *confine.NotRunError
		if errors.As(err, &nr) {
			return notStarted(fmt.Sprintf("It was not started: %v.", err))
		}
		return unobserved(env, c, spec.Output, e, fmt.Sprintf("its gate could not be opened: %v", err))
	}
	return observe(ctx, o, env, c, r, p, spec.Output)
}

// observe follows a running command to its end.
func observe(ctx context.Context, o Options, env Env, c Call, r lineRun, p *confine.Proc, output string) Outcome {
	limit, stop := context.WithTimeout(ctx, r.timeout)
	defer stop()
	t := startTail(output, o.Poll, o.MaxOutput, c.Output, stop)
	e, err := p.Wait(limit)
	tooMuch := t.finish()
	if c.After != nil {
		c.After()
	}
	var nr *confine.NotRunError
	switch {
	case errors.As(err, &nr):
		return notStarted(fmt.Sprintf("It was not started: %v.", err))
	case err != nil:
		return unobserved(env, c, output, e, err.Error())
	case e.TimedOut && ctx.Err() != nil && !tooMuch:
		return unobserved(env, c, output, e, "Pawl was told to stop while it ran, and stopped it")
	case e.TimedOut:
		return stopped(env, c, r, output, e, tooMuch)
	}
	return ended(env, c, output, e)
}

// ended is a command whose end was seen.
func ended(env Env, c Call, output string, e confine.Exit) Outcome {
	code := strconv.Itoa(e.Code)
	if e.Signal != "" {
		code = e.Signal
	}
	if e.Signal != "" && c.Contract.Class != machine.ClassWorkspace {
		return unobserved(env, c, output, e, fmt.Sprintf("it was ended by %s before it could report", e.Signal))
	}
	if code != "0" && slices.Contains(c.Contract.BeforeEffect, code) {
		return Outcome{
			End: EndRejected, Code: code, Output: Content{Path: output}, Dead: dead(env, e),
			Result: machine.Result{Code: code, Note: "by its contract this code proves that nothing happened", Changed: c.Contract.Writes},
		}
	}
	if ok, why := commandAnswered(c.Contract, code, output); !ok {
		return unobserved(env, c, output, e, why)
	}
	out := Outcome{
		End: EndCompleted,
		Result: machine.Result{
			OK: code == "0", Code: code, Note: survivorsNote(e), Changed: c.Contract.Writes,
		},
		Output: Content{Path: output},
		Dead:   dead(env, e),
	}
	return out
}

// stopped is a command that Pawl ended because its time or its output was
// used up. For what was sealed and is dead that is an observed end; for
// anything else what it had done by then is not known.
func stopped(env Env, c Call, r lineRun, output string, e confine.Exit, tooMuch bool) Outcome {
	code, note := CodeTimeout, fmt.Sprintf("stopped after %s, its time limit", r.timeout)
	if tooMuch {
		code, note = CodeTooMuch, "stopped because it printed more than is kept"
	}
	if c.Contract.Class != machine.ClassWorkspace || !e.TreeDead {
		return unobserved(env, c, output, e, "it was "+note)
	}
	return Outcome{
		End:    EndCompleted,
		Result: machine.Result{Code: code, Note: note, Changed: c.Contract.Writes},
		Output: Content{Path: output},
		Dead:   dead(env, e),
	}
}

// unobserved is an attempt without an observed end.
func unobserved(env Env, _ Call, output string, e confine.Exit, cause string) Outcome {
	if note := survivorsNote(e); note != "" {
		cause += "; " + note
	}
	out := Outcome{End: EndAmbiguous, Cause: cause, Dead: dead(env, e)}
	if _, err := os.Stat(output); err == nil {
		out.Output = Content{Path: output}
	}
	return out
}

// dead is the instant of a proof of death. It is read after the proof.
func dead(env Env, e confine.Exit) *machine.Instant {
	if !e.TreeDead || env.Mono == nil {
		return nil
	}
	at := env.Mono()
	return &at
}

// survivorsNote lists what a command left running.
func survivorsNote(e confine.Exit) string {
	if len(e.Survivors) == 0 {
		return ""
	}
	var pids []string
	for i, s := range e.Survivors {
		if i == 10 {
			pids = append(pids, fmt.Sprintf("and %d more", len(e.Survivors)-i))
			break
		}
		pids = append(pids, fmt.Sprintf("pid %d (start time %d)", s.PID, s.Start))
	}
	return "it left processes running: " + strings.Join(pids, ", ")
}

// outputFile names the file of one attempt's output. It must not exist yet: an
// attempt is dispatched once.
func outputFile(env Env, c Call) (string, error) {
	if err := os.MkdirAll(env.Outputs, 0o700); err != nil {
		return "", err
	}
	name := fmt.Sprintf("%s.%d.out", c.Effect.Short(), c.Attempt)
	if c.Effect.Ord() == 0 || strings.ContainsAny(name, `/\`) {
		return "", fmt.Errorf("the effect id %q cannot name a file", c.Effect)
	}
	return filepath.Join(env.Outputs, name), nil
}
