package headless

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"pawl/engine"
	"pawl/engine/confine"
	"pawl/engine/machine"
	"pawl/fixtures/sample"
	"pawl/fixtures/scripts"
	"pawl/fixtures/world"
)

// stage is one kill: where, of which effect, and how a person would find out
// what had really happened by then.
type stage struct {
	point engine.Point
	text  string // occurs in the effect's line, and in no other effect's
	title string
	moral string
	truth func(d *demo, ctx context.Context) (string, error)
}

// stages are the kills in the order of the script.
func stages() []stage {
	return []stage{
		{
			point: engine.PointWhileRunning, text: "scripts/replace.sh",
			title: "Killed while a command runs", truth: (*demo).filesTruth,
			moral: "Half an edit is wrong, and so is the whole edit on top of the half.",
		},
		{
			point: engine.PointAfterEffect, text: "git push",
			title: "Killed after a push", truth: (*demo).remoteTruth,
			moral: "Who takes the missing answer for a failure pushes twice; who takes it for success may never push.",
		},
		{
			point: engine.PointAfterEffect, text: "/tickets",
			title: "Killed after a ticket was posted", truth: (*demo).ticketTruth,
			moral: "The service knows no key and cannot be asked by machine, so Pawl neither repeats it nor believes it.",
		},
	}
}

// workerWithin bounds one worker's life; on two cores it takes a few seconds.
const workerWithin = 3 * time.Minute

// interrupt drives the run through all kills that are still to come.
func (d *demo) interrupt(ctx context.Context) error {
	all := stages()
	for i, st := range all {
		s, err := d.state(ctx)
		if err != nil {
			return err
		}
		if f := find(&s, st.text); s.Phase.Ended() || f != nil && len(f.Attempts) > 0 {
			continue // an earlier sitting came as far as this
		}
		d.tell.step(fmt.Sprintf("%d. %s", i+1, st.title))
		if err := d.kill(ctx, st); err != nil {
			return err
		}
		if err := d.settleEdit(ctx); err != nil {
			return err
		}
	}
	return nil
}

// kill starts a worker that is armed with one crash point and sees it die.
func (d *demo) kill(ctx context.Context, st stage) error {
	ctx, cancel := context.WithTimeout(ctx, workerWithin)
	defer cancel()
	run := string(d.run)
	w, err := d.pawl.work(ctx, string(st.point)+"@"+st.text, run, "--wait")
	if err != nil {
		return err
	}
	d.tell.line(fmt.Sprintf("A worker, process %d (`pawl resume %s`), drives the run. It kills itself %s of “%s”.", w.pid(), run, inWords(st.point), st.text))
	if err := d.watch(ctx, w); err != nil {
		return err
	}
	if !w.killed() {
		return &Problem{
			What: fmt.Sprintf("worker %d did not die as it was armed to (%s of “%s”)", w.pid(), inWords(st.point), st.text),
			Why:  w.end(), Next: "look with `pawl log " + run + "`; nothing is counted as a kill that was none",
		}
	}
	return d.afterKill(ctx, st, w.pid())
}

func inWords(p engine.Point) string {
	if p == engine.PointWhileRunning {
		return "at the first line that comes out"
	}
	return "before it can note the end"
}

// afterKill compares what the ledger knows with what really happened.
func (d *demo) afterKill(ctx context.Context, st stage, pid int) error {
	s, err := d.state(ctx)
	if err != nil {
		return err
	}
	f := find(&s, st.text)
	if f == nil || f.State != machine.StateAmbiguous {
		how := "there is no such effect"
		if f != nil {
			how = "the effect is " + f.State.String()
		}
		return &Problem{
			What: fmt.Sprintf("worker %d died, but not where it was armed to (%s of “%s”)", pid, inWords(st.point), st.text),
			Why:  "in the ledger " + how, Next: "look with `pawl show " + string(d.run) + "`",
		}
	}
	if err := waitGone(ctx, f); err != nil {
		return err
	}
	truth, err := st.truth(d, ctx)
	if err != nil {
		return err
	}
	k := demoKill{
		Point: st.point, Effect: f.ID, Tool: f.Tool, Summary: f.Summary, PID: pid,
		Found: fmt.Sprintf("%s was sent; no result is on record", f.ID.Short()), World: truth,
	}
	if p := d.note.Payments; p != nil && p.Run == d.run {
		p.Kills = append(p.Kills, k)
	} else {
		d.note.Kills = append(d.note.Kills, k)
	}
	if err := d.note.save(d.place); err != nil {
		return err
	}
	d.tell.line(fmt.Sprintf("Process %d is dead: SIGKILL.", pid))
	d.tell.pair("the ledger says", k.Found)
	d.tell.pair("the truth is", truth)
	d.tell.line(st.moral)
	return nil
}

// waitGone waits until the command that a dead worker left behind is dead too.
// A box dies with its worker; an unsealed command is ended by its keeper.
func waitGone(ctx context.Context, f *machine.Effect) error {
	last := f.Last()
	if last == nil || !last.Started {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, stopWithin)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for confine.Probe(confine.Identity(last.Identity)) == confine.LiveAlive {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return &Problem{
				What: fmt.Sprintf("the command of the killed worker is still alive (process %d)", last.Identity.PID),
				Why:  "it was to end with its worker", Next: "end it, then go on with the demo",
			}
		}
	}
	return nil
}

// watch tells what a worker does and grants what it asks for, until it ends.
func (d *demo) watch(ctx context.Context, w *worker) error {
	defer func() { <-w.ended }() // bounded: the context ends it
	news := d.look.Changes()
	tick := time.NewTicker(500 * time.Millisecond) // a notification may be lost
	defer tick.Stop()
	granted := map[string]bool{}
	for {
		if err := d.follow(ctx); err != nil {
			return d.stopped(ctx, w, err)
		}
		if err := d.grant(ctx, granted); err != nil {
			return d.stopped(ctx, w, err)
		}
		select {
		case <-w.ended:
			return d.follow(ctx)
		case <-news:
		case <-tick.C:
		case <-ctx.Done():
			return d.stopped(ctx, w, ctx.Err())
		}
	}
}

// stopped ends a worker that is no longer wanted, at a safe point.
func (d *demo) stopped(ctx context.Context, w *worker, err error) error {
	if ctx.Err() != nil {
		<-w.ended
		return &Problem{
			What: fmt.Sprintf("worker %d was stopped", w.pid()), Why: fmt.Sprintf("it came to no end in its time (%v)", ctx.Err()),
			Next: "look with `pawl log " + string(d.run) + "`", Err: ctx.Err(),
		}
	}
	_ = w.cmd.Cancel() // it may have ended by itself
	return err
}

// grant approves what the run asks for, as a person would who reads the card.
func (d *demo) grant(ctx context.Context, granted map[string]bool) error {
	waits, err := d.waits(ctx)
	if err != nil || len(waits) == 0 {
		return err
	}
	l, err := d.look.Run(ctx, d.run)
	if err != nil || l.Owner == "" {
		return err // the worker has just died, or has not begun
	}
	for _, i := range waits {
		switch {
		case granted[i.ID]:
		case i.Kind == engine.KindApproval:
			granted[i.ID] = true
			if err := d.approve(ctx, i.ID); err != nil {
				return err
			}
		case i.Kind == engine.KindFinished:
		default:
			return &Problem{
				What: "the run waits for something that the demo did not expect", Why: i.Kind + ": " + i.Summary,
				Next: "decide it with `" + i.Next + "`, then go on with " + d.place.command(),
			}
		}
	}
	return nil
}

// approve finds an approval in `pawl inbox` and grants it with `pawl approve`.
func (d *demo) approve(ctx context.Context, id string) error {
	items, err := d.pawl.inbox(ctx)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(items, func(i engine.Item) bool { return i.ID == id && i.Kind == engine.KindApproval })
	if at < 0 {
		return nil // it is decided already
	}
	if _, _, err := d.pawl.run(ctx, "approve", id); err != nil {
		return err
	}
	d.tell.line(fmt.Sprintf("The run asks first: “%s”. Granted, once and for exactly that: `pawl approve %s`.", items[at].Summary, id))
	return nil
}

// waits is what the run waits for, read beside the worker.
func (d *demo) waits(ctx context.Context) ([]engine.Item, error) {
	items, err := d.look.Inbox(ctx)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(items, func(i engine.Item) bool { return i.Run != d.run }), nil
}

// find is the newest effect whose line holds text.
func find(s *machine.State, text string) *machine.Effect {
	var found *machine.Effect
	for _, f := range s.Effects.All() {
		if strings.Contains(f.Tool+" "+f.Summary, text) {
			found = f
		}
	}
	return found
}

// filesTruth looks at the two files that the edit is about.
func (d *demo) filesTruth(ctx context.Context) (string, error) {
	changed, whole, err := d.editedFiles(ctx)
	if err != nil {
		return "", err
	}
	switch {
	case len(changed) == 0:
		return "neither file is changed", nil
	case whole:
		return "both files are changed", nil
	}
	return "of two files only " + strings.Join(changed, ", ") + " is changed", nil
}

// remoteTruth asks the remote.
func (d *demo) remoteTruth(ctx context.Context) (string, error) {
	v, err := world.JudgeRemote(ctx, d.note.Remote, scripts.RepairRefs(d.note.Base), "refs/heads/"+sample.Branch)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("on the remote %s was moved %s", scripts.RepairRef, counted(times(v, world.RefUpdated, scripts.RepairRef), "time")), nil
}

// ticketTruth reads the world's own log.
func (d *demo) ticketTruth(context.Context) (string, error) {
	entries, err := world.ReadLog(d.place.world())
	if err != nil {
		return "", err
	}
	v := world.Judge(entries, nil)
	return "the world's log holds " + counted(times(v, world.TicketCreated, scripts.RepairTicket), "ticket"), nil
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// times is how often one action landed.
func times(v world.Verdict, k world.Kind, identity string) int {
	n := 0
	for _, c := range v.Actions {
		if c.Kind == k && c.Identity == identity {
			n += c.Times
		}
	}
	return n
}
