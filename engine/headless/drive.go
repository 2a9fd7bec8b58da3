package headless

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"pawl/engine"
	"pawl/engine/machine"
	"pawl/ledger"
)

// driver drives runs in this process, tells what they do line by line, and
// gathers how they come to rest. One goroutine, that of drive, owns it.
type driver struct {
	a    *app
	s    *session
	w    io.Writer // progress
	wait bool      // stay for the operator's answers
	ids  []machine.RunID

	seen    map[machine.RunID]int64 // events told so far
	rests   map[machine.RunID]engine.Rest
	told    map[machine.RunID]int64 // tail of the rest that was reported
	asking  map[machine.RunID]bool  // a goroutine waits for its rest
	rested  chan restedRun
	stopped bool // the operator interrupted
	atOnce  bool // and did not wait for a safe point
}

type restedRun struct {
	id   machine.RunID
	rest engine.Rest
	err  error
}

func (a *app) newDriver(s *session, wait bool, ids ...machine.RunID) *driver {
	d := &driver{
		a: a, s: s, w: a.out(), wait: wait, ids: ids, rested: make(chan restedRun),
		seen: map[machine.RunID]int64{}, rests: map[machine.RunID]engine.Rest{}, told: map[machine.RunID]int64{}, asking: map[machine.RunID]bool{},
	}
	if a.json {
		d.w = a.err()
	}
	return d
}

// drive claims the runs and stays until all of them rest, for good if d.wait
// is set, or until the operator interrupts. A run that cannot be claimed is an
// error; the others are driven all the same.
func (d *driver) drive(ctx context.Context) error {
	d.a.driving.Store(true) // until finish has closed the session
	changes := d.s.Changes()
	var errs []error
	var driven []machine.RunID
	for _, id := range d.ids {
		if err := d.s.Drive(ctx, id); err != nil {
			errs = append(errs, err)
			continue
		}
		driven = append(driven, id)
	}
	d.ids = driven
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for _, id := range d.ids {
		d.await(ctx, id)
	}
	for !d.settled(ctx) {
		select {
		case <-changes:
			errs = append(errs, d.tell(ctx))
			d.again(ctx)
		case r := <-d.rested:
			errs = append(errs, d.tell(ctx))
			d.rest(ctx, r)
		case <-d.a.interrupts:
			d.stopped = true
			return errors.Join(errs...)
		case <-ctx.Done():
			d.stopped = true
			return errors.Join(errs...)
		}
	}
	return errors.Join(append(errs, d.tell(ctx))...)
}

// await asks in the background for the rest of a run.
func (d *driver) await(ctx context.Context, id machine.RunID) {
	if d.asking[id] {
		return
	}
	d.asking[id] = true
	go func() {
		rest, err := d.s.Wait(ctx, id)
		select {
		case d.rested <- restedRun{id, rest, err}:
		case <-ctx.Done():
		}
	}()
}

func (d *driver) rest(ctx context.Context, r restedRun) {
	d.asking[r.id] = false
	if r.err != nil {
		r.rest.Err = r.err
	}
	d.rests[r.id] = r.rest
	if !d.wait || final(r.rest) || d.told[r.id] == r.rest.Tail {
		return
	}
	d.told[r.id] = r.rest.Tail
	d.a.tellRest(ctx, d.s, d.w, r.id, r.rest)
}

// again asks anew for runs that rested but may move on.
func (d *driver) again(ctx context.Context) {
	for id, rest := range d.rests {
		if !final(rest) {
			d.await(ctx, id)
		}
	}
}

// settled reports whether nothing is left to stay for. A run that waited while
// others moved may have been answered meanwhile; it is asked once more.
func (d *driver) settled(ctx context.Context) bool {
	for _, id := range d.ids {
		rest, ok := d.rests[id]
		if !ok || d.wait && !final(rest) {
			return false
		}
	}
	if d.wait || len(d.ids) < 2 {
		return true
	}
	moved := false
	for _, id := range d.ids {
		rest := d.rests[id]
		if final(rest) || rest.Err != nil || d.asking[id] {
			continue
		}
		if line, err := d.s.Run(ctx, id); err == nil && line.State == engine.Running {
			delete(d.rests, id)
			d.await(ctx, id)
			moved = true
		}
	}
	return !moved
}

// final reports whether a rest is the last one in this process.
func final(r engine.Rest) bool {
	if r.Ended {
		return true
	}
	var full *ledger.FullError
	var busy *ledger.BusyError
	if errors.As(r.Err, &full) || errors.As(r.Err, &busy) {
		return false // it tries again
	}
	return r.Err != nil || len(r.Waits) == 0 && r.Phase != machine.PhasePaused
}

// tell prints the events that came since the last call.
func (d *driver) tell(ctx context.Context) error {
	const page = 200
	for _, id := range d.ids {
		for {
			rows, err := d.s.Timeline(ctx, id, d.seen[id], false, page)
			if err != nil {
				if ctx.Err() != nil {
					return nil
				}
				return err
			}
			for _, r := range rows {
				d.seen[id] = r.N
				d.row(id, r)
			}
			if len(rows) < page {
				break
			}
		}
	}
	return nil
}

// row prints one event; what only a closer look wants is left to `pawl log`.
func (d *driver) row(id machine.RunID, r engine.TimelineRow) {
	if r.Tone == "dim" {
		return
	}
	who := ""
	if len(d.ids) > 1 {
		who = string(id) + " "
	}
	writeRow(d.w, who, r, progressDetail, d.a.o.Width)
}

// progressDetail is how many lines of detail a progress row shows.
const progressDetail = 3

// writeRow prints a timeline row: a line, and the first lines of its detail
// where something went another way than planned.
func writeRow(w io.Writer, who string, r engine.TimelineRow, detail, width int) {
	fmt.Fprintln(w, line(fmt.Sprintf("%s %s%s %s", r.At.Format(time.TimeOnly), who, r.Sign, r.Title), width))
	if r.Tone != "bad" && r.Tone != "warn" {
		return
	}
	indent := strings.Repeat(" ", len(time.TimeOnly)+3)
	n := 0
	for _, d := range r.Detail {
		for l := range strings.Lines(d) {
			if n++; n > detail {
				return
			}
			fmt.Fprintln(w, line(indent+strings.TrimRight(l, "\r\n"), width))
		}
	}
}

// outcome is how a driven run ended up, as --json tells it.
type outcome struct {
	ID      machine.RunID   `json:"id"`
	Goal    string          `json:"goal"`
	State   engine.Standing `json:"state"`
	Checked bool            `json:"checked"`
	Turns   int             `json:"turns"`
	Spend   float64         `json:"spend_usd"`
	AtMost  float64         `json:"at_most_usd,omitempty"`
	Waits   []engine.Item   `json:"waits"`
	Error   string          `json:"error,omitempty"`
	Next    string          `json:"next,omitempty"`
}

// standing of a run once this process has let go of it.
func standingOf(r engine.Rest) engine.Standing {
	switch r.Phase {
	case machine.PhaseDone:
		return engine.Done
	case machine.PhaseFailed:
		return engine.Failed
	case machine.PhaseCancelled:
		return engine.Cancelled
	case machine.PhasePaused:
		return engine.Paused
	case machine.PhaseRunning, machine.PhaseNone:
	}
	if len(r.Waits) > 0 {
		return engine.Waiting
	}
	return engine.Interrupted
}

// codeOf is the exit code that a rest stands for.
func codeOf(r engine.Rest) int {
	if r.Err != nil {
		return ExitError
	}
	switch standingOf(r) {
	case engine.Failed, engine.Cancelled:
		return ExitFailed
	case engine.Done:
		for _, w := range r.Waits {
			if w.Kind != machine.WaitFinished {
				return ExitWaits
			}
		}
		return ExitDone
	case engine.Running, engine.Waiting, engine.Interrupted, engine.Paused:
	}
	return ExitWaits
}

// worst sums up exit codes: an error before what waits, that before what failed.
func worst(codes ...int) int {
	for _, c := range []int{ExitError, ExitWaits, ExitFailed} {
		if slices.Contains(codes, c) {
			return c
		}
	}
	return ExitDone
}

// finish ends a drive: it closes the session at a safe point, tells how each
// run stands, and returns the error that carries the exit code.
func (d *driver) finish(ctx context.Context, failed error) error {
	if d.stopped {
		d.a.say("Stopping at a safe point: what is in flight is waited for. Nothing is lost; interrupt again to stop at once.")
	}
	ctx = context.WithoutCancel(ctx)
	waits := map[machine.RunID][]engine.Item{}
	lines := map[machine.RunID]engine.RunLine{}
	err := d.a.closeDriving(d.s, func(atOnce bool) {
		d.atOnce = atOnce
		if d.stopped {
			_ = d.tell(ctx)
		}
		items, err := d.s.Inbox(ctx)
		if err != nil {
			failed = errors.Join(failed, err)
		}
		for _, i := range items {
			at := d.of(ctx, i.Run)
			waits[at] = append(waits[at], i)
		}
		for _, id := range d.ids {
			if lines[id], err = d.s.Run(ctx, id); err != nil {
				failed = errors.Join(failed, err)
			}
			if !d.stopped {
				continue
			}
			if rest, err := d.s.Wait(ctx, id); err == nil { // its goroutine has ended
				if d.atOnce && errors.Is(rest.Err, context.Canceled) {
					rest.Err = nil // that was us
				}
				d.rests[id] = rest
			}
		}
	})
	var codes []int
	for _, id := range d.ids {
		rest := d.rests[id]
		codes = append(codes, codeOf(rest))
		if werr := d.report(lines[id], rest, waits[id]); werr != nil {
			return werr
		}
	}
	if failed = errors.Join(failed, err); failed != nil {
		return failed
	}
	if code := worst(codes...); code != ExitDone {
		return codeError(code)
	}
	return nil
}

// of is the driven run that an item belongs to: its own, or the one from which
// its run came by delegation.
func (d *driver) of(ctx context.Context, run machine.RunID) machine.RunID {
	if slices.Contains(d.ids, run) {
		return run
	}
	if root, err := d.s.RootOf(ctx, run); err == nil {
		return root
	}
	return run
}

func (d *driver) report(l engine.RunLine, rest engine.Rest, waits []engine.Item) error {
	if !d.a.json {
		d.tellEnd(l, rest, waits)
		return nil
	}
	o := outcome{
		ID: l.ID, Goal: l.Goal, State: standingOf(rest), Checked: rest.Checked, Turns: l.Turns, Spend: l.Spend, AtMost: l.AtMost,
		Waits: d.a.nexts(waits), Next: d.a.nextOf(l.ID, rest),
	}
	if o.Waits == nil {
		o.Waits = []engine.Item{}
	}
	if rest.Err != nil {
		o.Error = rest.Err.Error()
	}
	return object(d.a.out(), o)
}

// closeDriving closes a session that drives runs. What is in flight is waited
// for until the operator interrupts again; before is called while the ledger
// is still open and nothing moves any more.
func (a *app) closeDriving(s *session, before func(atOnce bool)) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	done := make(chan struct{})
	defer close(done)
	a.driving.Store(true)
	defer a.driving.Store(false)
	go func() {
		select {
		case <-a.interrupts:
			cancel()
		case <-done:
		}
	}()
	err := s.Close(ctx)
	atOnce := ctx.Err() != nil && err != nil
	if atOnce {
		a.say("Stopped at once. What was in flight is unknown; resuming looks first, and asks you where looking cannot settle it.")
		err = nil
	}
	before(atOnce)
	return errors.Join(err, s.db.Close())
}
