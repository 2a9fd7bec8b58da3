package headless

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"pawl/engine"
	"pawl/engine/machine"
	"pawl/fixtures/scripts"
	"pawl/fixtures/world"
)

// demoPayments is what the demo remembers of its second act.
type demoPayments struct {
	Run   machine.RunID `json:"run"`
	Kills []demoKill    `json:"kills"`
	// Contradicted is the effect that the inbox showed as contradicted, "" before.
	Contradicted machine.EffectID `json:"contradicted,omitempty"`
}

// demoGoal is the task of the second act.
const demoGoal = "Pay invoice 17 and have it booked"

// demoConfig is the configuration of the second act: what the operator promises
// about two kinds of requests. WORLD stands for the world's address. The probe
// is not tested, so it may prove that a ticket is there and never that it is not.
const demoConfig = `# What may be done by itself when an answer is lost.
[[http]]
name = "payment"
method = "POST"
url = "WORLD/payments"
class = "KEYED"
key_header = "Payment-Key"
in_flight = "30s"

[http.compensate]
method = "POST"
url = "{origin}/void/{key}"
null_safe = true
note = "the key stays used up"

[[http]]
name = "ticket"
method = "POST"
url = "WORLD/tickets"
class = "PROBEABLE"
in_flight = "30s"

[http.probe]
url = "{origin}/tickets?title={body_title}"
reads_own_writes = true

[[http.probe.answer]]
verdict = "happened"
codes = [200]
match = '"title":\s*{body_title|json}'

[[http.probe.answer]]
verdict = "not_happened"
codes = [200]
match = '"tickets":\s*\[\]'
`

const (
	payText  = "/payments" // occurs in the payment's line
	bookText = "/tickets"  // occurs in the ticket's line

	// lateBy is when the ticket lands after its line was cut: later than a
	// person's decision, which takes two short commands.
	lateBy = 8 * time.Second
	// landWithin bounds the wait for what is on its way in this sitting.
	landWithin = 30 * time.Second
)

// payment is the kill of the second act.
func payment() stage {
	return stage{
		point: engine.PointAfterEffect, text: payText,
		title: "Killed after a payment", truth: (*demo).paymentTruth,
		moral: "The payment carries a key, and the service keeps its promise that one key is one payment: the same bytes may go again.",
	}
}

// play makes run the one that is told and driven.
func (d *demo) play(run machine.RunID) { d.run, d.tell.after = run, 0 }

// payments plays the second act, or what is left of it.
func (d *demo) payments(ctx context.Context) error {
	if done, err := d.paid(ctx); err != nil {
		return err
	} else if done {
		d.tell.line("The second act is finished, too.")
		return nil
	}
	d.tell.step("The second act: an invoice is paid")
	if err := d.promise(); err != nil {
		return err
	}
	defer func() { d.pawl.config = "" }()
	if err := d.makePayments(ctx); err != nil {
		return err
	}
	d.play(d.note.Payments.Run)
	defer func() { d.play(d.note.Run) }()
	const rounds = 12 // six steps, and as many again for what was interrupted
	for range rounds {
		done, err := d.payStep(ctx)
		if done || err != nil {
			return err
		}
	}
	return &Problem{
		What: "the second act comes to no end", Why: "its run does not move on",
		Next: "look with `pawl show " + string(d.run) + "`",
	}
}

// paid reports whether the second act has been played to its end.
func (d *demo) paid(ctx context.Context) (bool, error) {
	if d.note.Payments == nil {
		return false, nil
	}
	s, err := d.look.State(ctx, d.note.Payments.Run)
	if err != nil {
		return false, err
	}
	return over(&s), nil
}

// over: the run of the second act has ended, and its payment was taken back.
func over(s *machine.State) bool {
	pay := find(s, payText)
	return s.Phase.Ended() && pay != nil && pay.State == machine.StateCompensated
}

// promise writes the configuration that the commands of this act are given.
func (d *demo) promise() error {
	text := strings.ReplaceAll(demoConfig, "WORLD", d.world.URL)
	if err := os.WriteFile(d.place.config(), []byte(text), 0o600); err != nil {
		return fmt.Errorf("write the demo's configuration: %w", err)
	}
	d.pawl.config = d.place.config()
	return nil
}

func (d *demo) makePayments(ctx context.Context) error {
	if d.note.Payments != nil {
		return nil
	}
	script, err := scripts.Read(scripts.Invoice)
	if err != nil {
		return err
	}
	if err := os.WriteFile(d.place.invoice(), script, 0o600); err != nil {
		return fmt.Errorf("write the script: %w", err)
	}
	run, err := d.look.Create(ctx, engine.NewRun{
		Goal: demoGoal, Repo: d.note.Repo, Script: d.place.invoice(), Vars: map[string]string{"WORLD": d.world.URL},
		Allow: []string{"http POST " + d.world.URL + payText, "http POST " + d.world.URL + bookText},
	})
	if err != nil {
		return err
	}
	d.note.Payments = &demoPayments{Run: run, Kills: []demoKill{}}
	if err := d.note.save(d.place); err != nil {
		return err
	}
	d.tell.line("A second run on the same ledger, under rules that let its two requests go. " +
		"config.toml says what may be done when an answer is lost: a payment has a key and can be voided, a ticket can be looked up.")
	return nil
}

// payStep does the next thing that the second act needs, by the state of its effects.
func (d *demo) payStep(ctx context.Context) (done bool, err error) {
	s, err := d.state(ctx)
	if err != nil {
		return false, err
	}
	pay, book := find(&s, payText), find(&s, bookText)
	switch {
	case pay == nil || len(pay.Attempts) == 0:
		d.tell.step("5. " + payment().title)
		return false, d.kill(ctx, payment())
	case over(&s):
		return true, nil
	case s.Phase.Ended() && pay.State == machine.StateCompleted:
		return false, d.undo(ctx, pay)
	case book == nil || len(book.Attempts) == 0:
		d.tell.step("6. A line that is cut, and a ticket that lands later")
		return false, d.bookLate(ctx)
	case book.State == machine.StateAmbiguous:
		return false, d.denyBooking(ctx, &s, book)
	case book.State == machine.StateForcedNot:
		return false, d.reopenBooking(ctx, &s)
	case book.State == machine.StateContradicted:
		return false, d.confirmBooking(ctx, book)
	case s.Phase == machine.PhasePaused:
		return false, d.unpause(ctx)
	}
	return false, d.goOn(ctx)
}

// goOn lets a worker drive the run until it rests.
func (d *demo) goOn(ctx context.Context) error {
	w, err := d.pawl.work(ctx, "", string(d.run))
	if err != nil {
		return err
	}
	d.tell.line(fmt.Sprintf("`pawl resume %s` goes on, as process %d.", d.run, w.pid()))
	return d.accompany(ctx, w)
}

// bookLate lets the run send the ticket into a line that is cut, while the
// world lets it land later; then the run is paused and its worker ended.
func (d *demo) bookLate(ctx context.Context) error {
	rule := world.Rule{Endpoint: "POST /tickets", Fault: "late:" + lateBy.String(), Times: 1}
	if err := setRule(ctx, d.world.URL, rule); err != nil {
		return err
	}
	d.late = true
	d.tell.line(fmt.Sprintf("The world is told to cut the line of the next ticket, and to open it %s later all the same.", lateBy))
	w, err := d.pawl.work(ctx, "", string(d.run))
	if err != nil {
		return err
	}
	d.tell.line(fmt.Sprintf("`pawl resume %s` goes on, as process %d.", d.run, w.pid()))
	if err := d.untilAmbiguous(ctx, w); err != nil {
		return err
	}
	if err := d.follow(ctx); err != nil {
		return err
	}
	d.tell.line("The line was cut: no answer. The list does not show the ticket, which proves nothing: it may still be on its way.")
	return d.pause(ctx)
}

// untilAmbiguous tells what a worker does until the ticket's answer is lost,
// and ends the worker there, at a safe point.
func (d *demo) untilAmbiguous(ctx context.Context, w *worker) error {
	ctx, cancel := context.WithTimeout(ctx, workerWithin)
	defer cancel()
	defer func() { <-w.ended }() // bounded: it is told to stop, or the context ends it
	news := d.look.Changes()
	tick := time.NewTicker(500 * time.Millisecond) // a notification may be lost
	defer tick.Stop()
	for {
		if err := d.follow(ctx); err != nil {
			return d.stopped(ctx, w, err)
		}
		s, err := d.state(ctx)
		if err != nil {
			return d.stopped(ctx, w, err)
		}
		if f := find(&s, bookText); f != nil && f.State == machine.StateAmbiguous {
			_ = w.cmd.Cancel() // it may have ended by itself
			return nil
		}
		select {
		case <-w.ended:
			if code := w.cmd.ProcessState.ExitCode(); code != ExitWaits && code != ExitDone {
				return &Problem{What: fmt.Sprintf("worker %d ended too early", w.pid()), Why: w.end(), Next: "look with `pawl log " + string(d.run) + "`"}
			}
			return nil
		case <-news:
		case <-tick.C:
		case <-ctx.Done():
			return d.stopped(ctx, w, ctx.Err())
		}
	}
}

func (d *demo) pause(ctx context.Context) error {
	if _, _, err := d.pawl.run(ctx, "pause", string(d.run), "--reason", "the books are asked first"); err != nil {
		return err
	}
	d.tell.line(fmt.Sprintf("A person holds the run: `pawl pause %s`.", d.run))
	return nil
}

func (d *demo) unpause(ctx context.Context) error {
	if _, _, err := d.pawl.run(ctx, "unpause", string(d.run)); err != nil {
		return err
	}
	d.tell.line(fmt.Sprintf("The run may go on: `pawl unpause %s`.", d.run))
	return nil
}

// denyBooking decides wrongly, as a person does who trusts an empty list.
func (d *demo) denyBooking(ctx context.Context, s *machine.State, f *machine.Effect) error {
	if s.Phase != machine.PhasePaused {
		if err := d.pause(ctx); err != nil {
			return err
		}
	}
	found, err := world.Tickets(ctx, d.world.URL, scripts.InvoiceTicket)
	if err != nil {
		return err
	}
	if len(found) > 0 { // an earlier sitting was interrupted here, or this machine is very slow
		return d.settle(ctx, f.ID, machine.ChooseHappened, "the list shows it: "+found[0].ID)
	}
	return d.settle(ctx, f.ID, machine.ChooseRetry, "the list does not show it, so it is to be opened again")
}

// reopenBooking waits until the world has opened the ticket after all, and lets
// the run go on: it looks before it does again what a person said was not done.
func (d *demo) reopenBooking(ctx context.Context, s *machine.State) error {
	if err := d.landed(ctx); err != nil {
		return err
	}
	if s.Phase == machine.PhasePaused {
		if err := d.unpause(ctx); err != nil {
			return err
		}
	}
	if err := d.goOn(ctx); err != nil {
		return err
	}
	items, err := d.pawl.inbox(ctx)
	if err != nil {
		return err
	}
	for _, i := range items {
		if i.Run != d.run || i.Kind != engine.KindContradicted {
			continue
		}
		d.note.Payments.Contradicted = machine.EffectID(i.ID)
		d.tell.line("Before the second attempt Pawl looked, and the ticket is there: the verdict is contradicted, nothing is sent, and the inbox asks again.")
		return d.note.save(d.place)
	}
	return nil // it never arrived: it was done again, as the person said
}

// landed waits, if a ticket is on its way in this sitting, for the world's log
// to hold it. Nothing is on its way any more after the world was restarted.
func (d *demo) landed(ctx context.Context) error {
	if !d.late {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, landWithin)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		entries, err := world.ReadLog(d.place.world())
		if err != nil {
			return err
		}
		for _, e := range entries {
			if e.Kind == world.TicketCreated && world.Identity(e) == scripts.InvoiceTicket {
				d.tell.pair("the truth is", "the ticket has landed after all, as "+e.ID+", long after its line was cut")
				return nil
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return &Problem{
				What: "the ticket that was on its way has not landed", Why: fmt.Sprintf("the world was told to open it after %s (%v)", lateBy, ctx.Err()),
				Next: "go on with " + d.place.command("--headless"), Err: ctx.Err(),
			}
		}
	}
}

func (d *demo) confirmBooking(ctx context.Context, f *machine.Effect) error {
	found, err := world.Tickets(ctx, d.world.URL, scripts.InvoiceTicket)
	if err != nil {
		return err
	}
	if len(found) != 1 {
		return &Problem{
			What: fmt.Sprintf("the list shows %s that should be there once", counted(len(found), "ticket")), Why: "Pawl's look saw it there",
			Next: "look at " + d.world.URL + "/log and at `pawl show " + string(f.ID) + "`",
		}
	}
	return d.settle(ctx, f.ID, machine.ChooseHappened, "it arrived late: the list shows "+found[0].ID)
}

// undo takes the payment back, by the compensation that was declared for it.
func (d *demo) undo(ctx context.Context, f *machine.Effect) error {
	const reason = "invoice 17 was withdrawn"
	d.tell.step("7. The payment is taken back")
	if _, _, err := d.pawl.run(ctx, "settle", string(f.ID), string(machine.ChooseCompensate), "--reason", reason); err != nil {
		return err
	}
	d.tell.line(fmt.Sprintf("Asked for by a person: `pawl settle %s %s`, because “%s”.", f.ID, machine.ChooseCompensate, reason))
	return d.goOn(ctx)
}

// paymentTruth reads the world's own log.
func (d *demo) paymentTruth(context.Context) (string, error) {
	entries, err := world.ReadLog(d.place.world())
	if err != nil {
		return "", err
	}
	return "the world's log holds " + counted(times(world.Judge(entries, nil), world.PaymentMade, scripts.InvoiceKey), "payment") + " under the key " + scripts.InvoiceKey, nil
}

// setRule tells the world what to do wrong.
func setRule(ctx context.Context, base string, rule world.Rule) error {
	body, err := json.Marshal(rule)
	if err != nil {
		return fmt.Errorf("tell the world a fault: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/faults", bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("tell the world a fault: %w", err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("tell the world a fault: %w", err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		said, _ := io.ReadAll(io.LimitReader(res.Body, 1<<10)) // only for the message
		return fmt.Errorf("tell the world a fault: it answered %s: %s", res.Status, oneLine(string(said)))
	}
	return nil
}
