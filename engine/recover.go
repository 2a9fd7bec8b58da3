package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"pawl/engine/confine"
	"pawl/engine/effect"
	"pawl/engine/machine"
	"pawl/engine/workspace"
	"pawl/ledger"
)

// gate records that a command's gate never opened: its identity would be in
// the ledger, and nothing of it runs before that.
func (r *run) gate(ctx context.Context, a machine.Action) error {
	f := r.state.Effect(a.Effect)
	n := len(f.Attempts)
	ev := machine.EvidenceAdded{Effect: f.ID, Evidence: machine.Evidence{
		Verdict: machine.VerdictNotHappened, Authority: machine.AuthGate, Covers: n, Started: r.e.o.Mono(),
		Text: "the command's process waits at a gate until its identity is in the ledger; it is not there, so nothing of it ran",
	}}
	return r.decide(ctx, ledger.Full, batch{bodies: []machine.Body{ev}})
}

// prove looks for proof that every process that could send is dead.
func (r *run) prove(ctx context.Context, a machine.Action) error {
	f := *r.state.Effect(a.Effect)
	n := len(f.Attempts)
	proof, detail, why := r.deathOf(ctx, &f)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if proof == "" {
		ev := machine.EvidenceAdded{Effect: f.ID, Evidence: machine.Evidence{
			Verdict: machine.VerdictInconclusive, Authority: machine.AuthDeath, Covers: n, Started: r.e.o.Mono(),
			Text: "it is not proven that nothing can still happen: " + why,
		}}
		return r.decide(ctx, ledger.Lazy, batch{bodies: []machine.Body{ev}})
	}
	at := r.e.o.Mono()
	if c := f.Last().Closed; proof == "connection" && c != nil {
		at = *c
	}
	q := machine.Quiescence{Covers: n, Proof: proof, Detail: detail, At: at}
	return r.decide(ctx, ledger.Full, batch{bodies: []machine.Body{machine.QuiescenceProven{Effect: f.ID, Quiescence: q}}})
}

// deathOf proves the death of the sender of an effect's attempts, or says what is missing.
func (r *run) deathOf(ctx context.Context, f *machine.Effect) (proof, detail, why string) {
	boot := r.e.o.Mono().Boot
	for i := range f.Attempts {
		a := &f.Attempts[i]
		if a.End == machine.EndRejected || a.End == machine.EndNotHappened && !a.Forced {
			continue
		}
		switch {
		case a.Boot != boot && a.Event <= r.state.Moved && f.Contract.Class == machine.ClassWorkspace:
			proof, detail = "moved", "it ran in a workspace on another machine, and can reach nothing of this one"
		case a.Boot != boot && a.Event <= r.state.Moved:
			return "", "", "it was sent from another machine, and what is still alive there cannot be seen from here"
		case a.Boot != "" && a.Boot != boot:
			proof, detail = "boot", "the machine was restarted since"
		case f.Contract.Sender == machine.SenderLocal:
			proof, detail = "local", "an edit of Pawl's own ends with its process"
		case f.Contract.Sender == machine.SenderCommand && !a.Started:
			proof, detail = "gate", "its gate never opened"
		case f.Contract.Sender == machine.SenderCommand:
			p, d, w := r.reapCommand(ctx, a.Identity)
			if p == "" {
				return "", "", w
			}
			proof, detail = p, d
		default:
			p, d, w := r.requestOver(a)
			if p == "" {
				return "", "", w
			}
			proof, detail = p, d
		}
	}
	if proof == "" {
		proof, detail = "local", "no attempt is open"
	}
	return proof, detail, ""
}

func (r *run) reapCommand(ctx context.Context, id machine.Identity) (proof, detail, why string) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	live, err := r.e.o.Processes.Reap(ctx, fromIdentity(id))
	switch {
	case err != nil:
		return "", "", fmt.Sprintf("process %d: %v", id.PID, err)
	case live != confine.LiveGone:
		return "", "", fmt.Sprintf("process %d is %s", id.PID, live)
	case id.Inner == "":
		return "", "", "the command ran without a pid namespace of its own, so processes that it left behind cannot be ruled out"
	}
	return "pid-namespace", fmt.Sprintf("process %d and every process below it are dead", id.PID), ""
}

// requestOver proves that a request of Pawl's own can no longer be sent.
func (r *run) requestOver(a *machine.Attempt) (proof, detail, why string) {
	if a.Closed != nil && a.Closed.Boot == r.e.o.Mono().Boot {
		return "connection", "the request's connection is closed and nothing of it is left", ""
	}
	if a.Identity.PID == 0 {
		return "", "", "the process that sent it is not on record"
	}
	if a.Identity == r.e.self {
		return "", "", "the request belongs to this process, which has no record of its end"
	}
	if live := r.e.o.Processes.Probe(fromIdentity(a.Identity)); live != confine.LiveGone {
		return "", "", fmt.Sprintf("the pawl process %d that sent it is %s", a.Identity.PID, live)
	}
	return "process", fmt.Sprintf("the pawl process %d that sent it is dead", a.Identity.PID), ""
}

// probe looks at the world and appends what it saw.
func (r *run) probe(ctx context.Context, a machine.Action) error {
	if !a.After.IsZero() {
		if due, err := r.until(ctx, a.After); err != nil || !due {
			return err
		}
	}
	f := *r.state.Effect(a.Effect)
	at, err := r.placeToLook()
	if err != nil {
		return fmt.Errorf("make a place to look at %s from: %w", f.ID, err)
	}
	started := r.e.o.Mono()
	var found effect.Finding
	lost := r.during(ctx, func(*machine.State) bool { return false }, func(ctx context.Context, _ *job) {
		free, err := r.e.slots.take(ctx, "look at "+hostOf(&f), looksPerHost)
		if err != nil {
			return
		}
		defer free()
		started = r.e.o.Mono() // only now the look begins
		found = r.look(ctx, &f, at)
	})
	if lost != nil {
		return lost
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var blobs []ledger.Blob
	ev := machine.Evidence{Verdict: found.Verdict, Authority: machine.AuthProbe, Covers: len(f.Attempts), Text: preview(found.Text, 500), Started: started}
	if found.Detail != "" {
		b := ledger.NewBlob([]byte(found.Detail))
		blobs, ev.Blob = append(blobs, b), machine.Digest(b.Hash)
	}
	return r.record2(ctx, blobs, machine.EvidenceAdded{Effect: f.ID, Evidence: ev})
}

func (r *run) record2(ctx context.Context, blobs []ledger.Blob, bodies ...machine.Body) error {
	return r.observe(ctx, ledger.Full, func(*machine.State) (batch, error) { return batch{bodies: bodies, blobs: blobs}, nil })
}

// placeToLook is where a look at an effect starts from.
func (r *run) placeToLook() (effect.Place, error) {
	at := r.e.tools.Place(r.env(&r.state))
	at.Scratch = r.e.outputs(r.id)
	if at.Dir == "" {
		at.Dir = at.Scratch
	}
	return at, os.MkdirAll(at.Scratch, 0o700)
}

// look asks the world by the means that the contract names. It runs beside the
// run's goroutine and reads nothing of the run's state.
func (r *run) look(ctx context.Context, f *machine.Effect, at effect.Place) effect.Finding {
	last := f.Last()
	if f.Contract.Probe.Kind == probeLand {
		return r.lookLanding(ctx, last)
	}
	return r.e.o.Look(ctx, f, effect.Request{Contract: f.Contract, Params: last.Params, Place: at})
}

// replay does an interrupted workspace effect again: an own edit by comparing
// content, a command from the snapshot it started from.
func (r *run) replay(ctx context.Context, a machine.Action) error {
	f := *r.state.Effect(a.Effect)
	last := f.Last()
	if f.Contract.Sender == machine.SenderLocal && f.Tool != machine.ToolAdopt {
		return r.replayEdit(ctx, &f, last)
	}
	if last.Pre.IsZero() || r.space == nil {
		return r.askDrift(ctx, &f, "there is no snapshot to start again from")
	}
	if r.space.Kind != workspace.KindWorktree {
		return r.askDrift(ctx, &f, "the run works in your own folder, so what the interrupted command changed cannot be told from what you changed")
	}
	res, err := r.e.space.Restore(ctx, *r.space, unpackSnapshot(last.Pre))
	var drift *workspace.DriftError
	if errors.As(err, &drift) {
		return r.askDrift(ctx, &f, drift.Error())
	}
	if err != nil {
		return r.spaceTrouble(ctx, fmt.Errorf("restore the workspace for %s: %w", f.ID, err))
	}
	restored := machine.WorkspaceRestored{Effect: f.ID, Rescue: packSnapshot(res.Rescue), To: last.Pre, Files: res.Changed}
	ignored := last.Ignored
	if !ignored.IsZero() {
		now, why, err := r.e.space.PutBackIgnored(ctx, *r.space, ignored)
		switch {
		case err != nil:
			return r.spaceTrouble(ctx, fmt.Errorf("put ignored files back for %s: %w", f.ID, err))
		case why != "" && !rebuiltSince(&r.state, last.Event): // where all of it was made again, they are nobody's doing
			return r.decide(ctx, ledger.Lazy, batch{bodies: []machine.Body{restored, r.drifted(&f, why)}})
		}
		ignored = machine.Digest(now)
	}
	again := machine.EffectDispatched{
		Effect: f.ID, Attempt: a.Attempt, Digest: last.Digest, Approval: last.Approval, Pre: last.Pre, Ignored: ignored,
		Params: last.Params,
	}
	r.e.o.Crash.Pass(PointBeforeDispatch, line(&f))
	if err := r.decide(ctx, ledger.Full, batch{bodies: []machine.Body{restored, again}}); err != nil {
		return err
	}
	return r.execute(ctx, f.ID)
}

// replayEdit finishes an interrupted edit of our own through the tool itself,
// which adopts the new content, writes over the old one, and gives back a late
// edit that the crash left swapped out.
func (r *run) replayEdit(ctx context.Context, f *machine.Effect, last *machine.Attempt) error {
	path := f.Contract.Params["path"]
	if path == "" {
		path = f.Target
	}
	disk, err := r.e.space.FileDigest(ctx, *r.space, path)
	if err != nil {
		return r.spaceTrouble(ctx, fmt.Errorf("read %s: %w", f.Target, err))
	}
	if d := machine.Digest(disk); d != last.New && d != last.Old {
		return r.askDrift(ctx, f, f.Target+" has neither the content from before the edit nor the one that was to be written")
	}
	again := machine.EffectDispatched{
		Effect: f.ID, Attempt: last.N + 1, Digest: last.Digest, Approval: last.Approval, Pre: last.Pre, Old: last.Old, New: last.New,
	}
	r.e.o.Crash.Pass(PointBeforeDispatch, line(f))
	if err := r.decide(ctx, ledger.Full, batch{bodies: []machine.Body{again}}); err != nil {
		return err
	}
	return r.execute(ctx, f.ID)
}

// askDrift leaves an interrupted workspace effect to the operator.
func (r *run) askDrift(ctx context.Context, f *machine.Effect, why string) error {
	return r.decide(ctx, ledger.Lazy, batch{bodies: []machine.Body{r.drifted(f, why)}})
}

// drifted is the evidence that an effect is not for us to run again.
func (r *run) drifted(f *machine.Effect, why string) machine.Body {
	return machine.EvidenceAdded{Effect: f.ID, Evidence: machine.Evidence{
		Verdict: machine.VerdictConflict, Authority: machine.AuthProbe, Covers: len(f.Attempts), Started: r.e.o.Mono(),
		Text: "it is not run again by itself: " + why,
	}}
}

// compensate intends the effect that undoes another.
func (r *run) compensate(ctx context.Context, a machine.Action) error {
	f := r.state.Effect(a.Effect)
	c := f.Contract.Compensation
	cannot := func(err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		failed := machine.CompensationEnded{Effect: f.ID, Text: "it could not even be tried: " + refusal(err)}
		return r.decide(ctx, ledger.Full, batch{bodies: []machine.Body{failed}})
	}
	t, err := r.toolOf(c.Tool)
	if err != nil {
		return cannot(err)
	}
	canonical, err := r.e.tools.Validate(c.Tool, c.Args)
	if err != nil {
		return cannot(err)
	}
	plan, err := t.Plan(ctx, r.env(&r.state), canonical)
	if err != nil {
		return cannot(err)
	}
	if plan.Contract.Needs == nil {
		plan.Contract.Needs = f.Contract.Needs // what did it can undo it
	}
	p := proposal{spec: t.Spec(), plan: plan, call: machine.Call{Tool: c.Tool}}
	p.call.Args, p.blobs = r.e.text(canonical)
	in := r.intent(&p, r.state.NextEffect(), f.Turn, -1)
	in.Compensates, in.Asks, in.Rule = f.ID, false, "the operator asked for it"
	return r.decide(ctx, ledger.Full, batch{bodies: []machine.Body{in}, blobs: p.blobs})
}
