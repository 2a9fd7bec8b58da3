package headless

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"pawl/engine"
	"pawl/engine/model/scripted"
	"pawl/engine/workspace"
	"pawl/ledger"
)

// Problem is an error as the operator reads it: what is in the way, why, and
// what to do next.
type Problem struct {
	What, Why, Next string
	Code            int // exit code; 0 means ExitError
	Err             error

	late bool // a decision about something that is not open
}

func (p *Problem) Error() string {
	s := p.What
	if p.Why != "" {
		s += ": " + p.Why
	}
	if p.Next != "" {
		s += "; " + p.Next
	}
	return s
}

// Unwrap returns the cause, if there is one to look at.
func (p *Problem) Unwrap() error { return p.Err }

// usage is a problem with the command line itself.
func usage(what, why, next string) *Problem {
	return &Problem{What: what, Why: why, Next: next, Code: ExitUsage}
}

// explain turns any error into a Problem. The errors of ledger and engine
// become one by one; what is unknown is split where sentences are.
func explain(err error) *Problem {
	var p *Problem
	if errors.As(err, &p) {
		return p
	}
	for _, known := range []func(error) *Problem{explainPlace, explainFile, explainWrite, explainRun} {
		if p = known(err); p != nil {
			p.Err = err
			return p
		}
	}
	return split(err)
}

// explainPlace is about where the ledger lies and who may use it.
func explainPlace(err error) *Problem {
	var network *ledger.NetworkFSError
	var owner *ledger.OwnerError
	var readOnly *ledger.ReadOnlyError
	switch {
	case errors.As(err, &network):
		return &Problem{
			What: fmt.Sprintf("the ledger %s cannot be used there", network.Path),
			Why:  fmt.Sprintf("it lies on %s, where the locks that keep it whole cannot be trusted", network.FS),
			Next: "choose a directory on a local disk with --ledger or PAWL_LEDGER",
		}
	case errors.As(err, &owner):
		return &Problem{
			What: fmt.Sprintf("%s was not touched", owner.Path),
			Why:  fmt.Sprintf("it belongs to another user (uid %d), who could no longer open what you write there", owner.UID),
			Next: "choose another path with --ledger, or work as that user",
		}
	case errors.As(err, &readOnly):
		return &Problem{
			What: fmt.Sprintf("the ledger %s is open for viewing only, so nothing was decided or run", readOnly.Path),
			Why:  readOnly.Reason,
			Next: "make it writable, or choose another ledger with --ledger; list, show, log and inbox work as it is",
		}
	}
	return nil
}

// explainFile is about a file that is not the ledger it should be.
func explainFile(err error) *Problem {
	var foreign *ledger.ForeignError
	var emptied *ledger.EmptiedError
	var newer *ledger.NewerError
	var lost *ledger.LostTailError
	var corrupt *ledger.CorruptError
	switch {
	case errors.As(err, &foreign):
		return &Problem{
			What: foreign.Path + " is not a ledger, and was left as it is",
			Why:  "it is " + foreign.What,
			Next: "choose another path with --ledger or PAWL_LEDGER",
		}
	case errors.As(err, &emptied):
		how := "is empty"
		if emptied.Gone {
			how = "is gone"
		}
		why := "files beside it show that there was one, so no new one was started over it"
		if emptied.Want.Seq > 0 {
			why = fmt.Sprintf("it had %d events, so no new one was started over it", emptied.Want.Seq)
		}
		return &Problem{
			What: fmt.Sprintf("the ledger %s %s", emptied.Path, how), Why: why,
			Next: fmt.Sprintf("put it back from a backup, or move %s* away to start anew", emptied.Path),
		}
	case errors.As(err, &newer):
		return &Problem{
			What: fmt.Sprintf("the ledger %s was written by a newer Pawl", newer.Path),
			Why:  fmt.Sprintf("its schema version is %d, and this build knows up to %d", newer.Have, newer.Known),
			Next: "update Pawl, or choose another ledger with --ledger",
		}
	case errors.As(err, &lost):
		why := fmt.Sprintf("it ends at event %d, but event %d had been written: its -wal file was removed or cut, or an older copy was put in its place", lost.Have.Seq, lost.Want.Seq)
		if lost.Have.Seq >= lost.Want.Seq {
			why = fmt.Sprintf("event %d is another one than it was: an older or foreign copy was put in its place", lost.Want.Seq)
		}
		return &Problem{
			What: fmt.Sprintf("the ledger %s has lost events, so nothing runs on it", lost.Path), Why: why,
			Next: "put the right files back, or acknowledge the loss with `pawl verify --accept-loss`",
		}
	case errors.As(err, &corrupt):
		what := "the ledger " + corrupt.Path + " is damaged"
		if corrupt.Run != "" {
			what += " in run " + corrupt.Run
		}
		why := corrupt.What
		if corrupt.Seq > 0 {
			why = fmt.Sprintf("event %d: %s", corrupt.Seq, why)
		}
		return &Problem{What: what, Why: why, Next: "keep a copy of all its files, then run `pawl verify`, or put a backup in its place"}
	}
	return nil
}

// explainWrite is about a write that did not come about.
func explainWrite(err error) *Problem {
	var full *ledger.FullError
	var busy *ledger.BusyError
	var unknown *ledger.UnknownError
	switch {
	case errors.As(err, &full):
		return &Problem{
			What: fmt.Sprintf("the ledger %s could not be written: this was not done, and everything before it is kept", full.Path),
			Why:  fmt.Sprintf("the disk, a quota or a file size limit is exhausted (%v)", full.Err),
			Next: "free some space, then give the command again",
		}
	case errors.As(err, &busy):
		return explainBusy(busy)
	case errors.As(err, &unknown):
		return &Problem{
			What: fmt.Sprintf("it is not known whether the ledger %s holds this action", unknown.Path),
			Why:  fmt.Sprintf("the disk failed while it was being written (%v)", unknown.Err),
			Next: "check the disk, look with `pawl log RUN`, and give the command again if it is not there",
		}
	}
	return nil
}

func explainBusy(busy *ledger.BusyError) *Problem {
	who, next := "another process", "give the command again when it is done"
	if busy.PID > 0 {
		who = fmt.Sprintf("process %d", busy.PID)
		if busy.Who != "" {
			who += " (" + busy.Who + ")"
		}
		next += fmt.Sprintf(", or end process %d", busy.PID)
		if busy.Halted {
			who += ", which is stopped,"
			next = fmt.Sprintf("let it go on with `kill -CONT %d` or end it, then give the command again", busy.PID)
		}
	}
	return &Problem{
		What: fmt.Sprintf("the ledger %s is locked: this was not done", busy.Path),
		Why:  fmt.Sprintf("%s has held its write lock for %s", who, busy.Waited.Round(100*time.Millisecond)),
		Next: next,
	}
}

// explainRun is about runs and what is in them.
func explainRun(err error) *Problem {
	var missing *ledger.NotFoundError
	var held *ledger.HeldError
	var fenced *ledger.FencedError
	var tail *ledger.TailError
	var closed *engine.NotPendingError
	var script *scripted.ParseError
	var refused *workspace.RefusedError
	switch {
	case errors.As(err, &refused):
		return &Problem{What: refused.What, Why: refused.Why, Next: refused.Next}
	case errors.As(err, &missing) && missing.What == "ledger":
		return &Problem{
			What: "there is no ledger at " + missing.ID, Why: "no file has this name",
			Next: "check --ledger and PAWL_LEDGER, or make one with `pawl run` or `pawl demo`",
		}
	case errors.As(err, &missing):
		return notFound(missing.What, missing.ID)
	case errors.As(err, &held):
		return &Problem{
			What: fmt.Sprintf("run %s was not taken over", held.Run),
			Why:  fmt.Sprintf("it is driven by %s, whose lease has another %s", held.Owner, held.Left.Round(100*time.Millisecond)),
			Next: fmt.Sprintf("watch it with `pawl log %s --follow`, decide here as usual, or end that process first", held.Run),
		}
	case errors.As(err, &fenced):
		return &Problem{
			What: fmt.Sprintf("run %s was lost to another process, and nothing was written here", fenced.Run),
			Why:  fmt.Sprintf("its epoch is %d, this process drove it under %d", fenced.Current, fenced.Epoch),
			Next: fmt.Sprintf("watch it with `pawl log %s --follow`", fenced.Run),
		}
	case errors.As(err, &tail):
		return &Problem{
			What: fmt.Sprintf("nothing was written to run %s", tail.Run),
			Why:  fmt.Sprintf("somebody else wrote to it first (it has %d events, not %d)", tail.Have, tail.Want),
			Next: fmt.Sprintf("look with `pawl show %s`, then decide anew", tail.Run),
		}
	case errors.As(err, &closed):
		next := closed.Next
		if next == "" {
			next = "`pawl inbox` lists what can be decided"
		}
		return &Problem{What: closed.ID + " is not pending, so nothing was changed", Why: closed.Why, Next: next}
	case errors.As(err, &script):
		at := script.File
		if script.Line > 0 {
			at = fmt.Sprintf("%s, line %d", at, script.Line)
		}
		next := script.Mend
		if next == "" {
			next = "mend the script, then give the command again"
		}
		return &Problem{What: "the script " + at + " does not parse, so no run was made", Why: strings.TrimSuffix(script.What, "."), Next: strings.TrimSuffix(next, ".")}
	}
	return nil
}

func notFound(what, id string) *Problem {
	list := "`pawl list` names all runs"
	switch what {
	case "approval", "question", "inbox item":
		list = "`pawl inbox` lists what waits"
	case "effect":
		list = "`pawl show RUN` lists the effects of a run"
	}
	return &Problem{What: fmt.Sprintf("there is no %s %q", what, id), Why: "nothing in this ledger has this id", Next: list + "; or does --ledger name another ledger?"}
}

// split makes a Problem of an error whose text is all there is: our sentences
// end with what to do after a semicolon, and tell why after a colon.
func split(err error) *Problem {
	p := &Problem{What: err.Error(), Err: err}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return &Problem{What: "stopped before it was done", Why: err.Error(), Next: "give the command again", Err: err}
	}
	if i := strings.LastIndex(p.What, "; "); i > 0 {
		p.What, p.Next = p.What[:i], p.What[i+2:]
	}
	if i := strings.Index(p.What, ": "); i > 0 {
		p.What, p.Why = p.What[:i], p.What[i+2:]
	}
	if p.Next == "" && p.Why != "" {
		// "the goal is too long: put details into a file" has no why
		p.Next = "`pawl doctor` tells what this machine and this ledger lack"
	}
	if errors.Is(err, fs.ErrNotExist) && p.Next == "" {
		p.Next = "check the path"
	}
	if errors.Is(err, fs.ErrPermission) && p.Next == "" {
		p.Next = "check who may use it"
	}
	return p
}
