package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"pawl/engine/effect"
	"pawl/engine/machine"
	"pawl/engine/policy"
	"pawl/engine/tool"
	"pawl/engine/workspace"
	"pawl/ledger"
)

// ready is work whose dispatch is in the ledger: it must be carried out at once.
type ready struct {
	effect  machine.EffectID
	attempt int
	turn    int // a model request, if effect is ""
}

func (r *run) perform(ctx context.Context, j *ready) error {
	if j.effect == "" {
		return r.complete(ctx, j.turn)
	}
	return r.execute(ctx, j.effect)
}

// line names an effect for crash points and logs.
func line(f *machine.Effect) string { return f.Tool + " " + f.Summary }

// dispatch takes an effect from intent (or a negative verdict) to its result.
func (r *run) dispatch(ctx context.Context, a machine.Action) error {
	f := *r.state.Effect(a.Effect)
	args, err := r.e.bytes(ctx, f.Args)
	if err != nil {
		return err
	}
	t, err := r.toolOf(f.Tool)
	if err != nil {
		return err
	}
	if tool.Delegates(f.Tool) {
		_, err := r.family(ctx, &f, args)
		return err
	}
	if f.Contract.Class == machine.ClassRead {
		return r.read(ctx, &f, t, args)
	}
	if past, err := r.keyPast(ctx, &f); err != nil || past {
		return err
	}
	env := r.env(&r.state)
	digest := f.Digest
	var planned map[string]string
	if a := r.state.Approval(f.Approval); a != nil && a.State == machine.ApprovalGrantedS && a.Lapsed(r.e.now()) {
		return r.expire(ctx, f.ID)
	}
	if f.Proposed() {
		plan, asked, err := r.recheck(ctx, env, &f, t, args)
		if err != nil || asked {
			return err
		}
		digest, planned = digestOf(f.ID, t.Spec(), plan, r.state.Space.Path), plan.Contract.Params
	}
	d := machine.EffectDispatched{Effect: f.ID, Attempt: a.Attempt}
	if digest != f.Digest {
		d.Digest = digest
	}
	if f.Asks && !f.Retry {
		d.Approval = f.Approval
	}
	var bodies []machine.Body
	if f.Contract.Writes && r.space != nil {
		changed, err := r.snapshot(ctx, &f, &d)
		if err != nil {
			return err
		}
		bodies = append(bodies, changed...)
	}
	m, err := t.Measure(ctx, env, f.Contract, args)
	if err != nil {
		return r.cannotMeasure(ctx, &f, err)
	}
	if shown := planned[effect.ParamPlanned]; f.Asks && shown != "" && m.Params[effect.ParamNew] != shown {
		return errMoved // it moved between two looks: what would be sent is held against what was agreed to again
	}
	d.Params, d.Old, d.New = m.Params, m.Old, m.New
	r.e.o.Crash.Pass(PointBeforeDispatch, line(&f))
	if err := r.decide(ctx, ledger.Full, batch{bodies: append(bodies, d)}); err != nil {
		var g *machine.GuardError
		if errors.As(err, &g) && g.Guard == machine.GuardExpiry {
			return r.expire(ctx, f.ID) // its time ran out while the snapshot was taken
		}
		return err
	}
	return r.execute(ctx, f.ID)
}

// recheck evaluates policy again and compares what will run with what was
// agreed to. It asks again only if the answer became stricter or, for a gated
// effect, if what would run is no longer what was shown.
func (r *run) recheck(ctx context.Context, env tool.Env, f *machine.Effect, t tool.Tool, args json.RawMessage) (tool.Plan, bool, error) {
	plan, err := t.Plan(ctx, env, args)
	if err != nil {
		if len(f.Attempts) > 0 || f.Asks {
			return plan, true, r.decide(ctx, ledger.Full, batch{bodies: []machine.Body{r.failBefore(f, "it can no longer be carried out: "+refusal(err))}})
		}
		return plan, true, r.decide(ctx, ledger.Lazy, batch{bodies: []machine.Body{machine.EffectCancelled{Effect: f.ID, Reason: refusal(err)}}})
	}
	like, now := r.verdict(ctx, &r.state, f.Tool, args, &plan)
	digest := digestOf(f.ID, t.Spec(), plan, r.state.Space.Path)
	if now.Verdict == policy.Deny {
		return plan, true, r.decide(ctx, ledger.Full, batch{bodies: []machine.Body{r.failBefore(f, "policy denies this: "+now.Why)}})
	}
	drift := ""
	switch {
	case f.Asks && digest != f.Digest:
		drift = difference(f, plan)
	case !f.Asks && now.Verdict == policy.Ask && len(f.Attempts) == 0:
	case f.Asks && f.Approval == "" && !f.Retry:
	default:
		return plan, false, nil
	}
	ask := machine.ApprovalRequested{Approval: r.state.NextApproval(), Effect: f.ID, Digest: digest, Why: now.Why, Drift: drift, Like: like, Files: plan.Files, Expires: r.e.expiry(now)}
	return plan, true, r.decide(ctx, ledger.Full, batch{bodies: []machine.Body{ask}})
}

// failBefore ends an effect that will not be dispatched.
func (r *run) failBefore(f *machine.Effect, why string) machine.Body {
	if f.State == machine.StateIntended {
		return machine.EffectCancelled{Effect: f.ID, Reason: why}
	}
	return machine.EffectAbandoned{Effect: f.ID, Reason: why}
}

// difference tells what changed since the operator was asked.
func difference(f *machine.Effect, p tool.Plan) string {
	was := map[string]machine.Digest{}
	for _, x := range f.Files {
		was[x.Path] = x.Digest
	}
	var out []string
	for _, x := range p.Files {
		old, ok := was[x.Path]
		switch {
		case !ok:
			out = append(out, fmt.Sprintf("%s is read now and was not before", x.Path))
		case old != x.Digest:
			out = append(out, fmt.Sprintf("%s has changed (%s, was %s)", x.Path, x.Digest.Short(), old.Short()))
		}
		delete(was, x.Path)
	}
	for path := range was {
		out = append(out, path+" is gone")
	}
	if now, then := p.Contract.Params[effect.ParamPlanned], f.Contract.Params[effect.ParamPlanned]; now != then {
		out = append(out, fmt.Sprintf("it would send %s, and not %s, which was shown", now, then))
	}
	if len(out) == 0 {
		return "what would run differs from what was shown"
	}
	return strings.Join(out, "; ")
}

// cannotMeasure: what must be recorded with the dispatch could not be read, so
// nothing was sent.
func (r *run) cannotMeasure(ctx context.Context, f *machine.Effect, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return r.decide(ctx, ledger.Lazy, batch{bodies: []machine.Body{r.failBefore(f, "nothing was sent: "+err.Error())}})
}

// snapshot takes the workspace as it is before a dispatch. What changed since
// our last effect is the operator's: it is recorded, kept, and told.
func (r *run) snapshot(ctx context.Context, f *machine.Effect, d *machine.EffectDispatched) ([]machine.Body, error) {
	var snap workspace.Snapshot
	var ignored [32]byte
	var err error
	ws, command, tail := *r.space, f.Contract.Sender == machine.SenderCommand, r.state.Tail
	lost := r.during(ctx, ended, func(ctx context.Context, _ *job) {
		if command { // first: what it keeps is made durable by the snapshot
			if ignored, err = r.e.space.IgnoredManifest(ctx, ws); err != nil {
				return
			}
		}
		snap, err = r.e.space.Snapshot(ctx, ws, string(f.ID))
	})
	switch {
	case lost != nil:
		return nil, lost
	case r.state.Tail != tail:
		return nil, errMoved // something was decided meanwhile: Next is asked again
	case err != nil:
		return nil, r.spaceTrouble(ctx, fmt.Errorf("take a snapshot before %s: %w", f.ID, err))
	}
	d.Pre = packSnapshot(snap)
	if command {
		d.Ignored = machine.Digest(ignored)
	}
	known := r.state.Space.Known
	if known.IsZero() || known.Tree == d.Pre.Tree {
		return nil, nil
	}
	files := r.changedFiles(ctx, known, d.Pre)
	if len(files) == 0 {
		return nil, nil
	}
	return []machine.Body{machine.WorkspaceChanged{From: known, To: d.Pre, Files: files}}, nil
}

func (r *run) changedFiles(ctx context.Context, from, to machine.Snapshot) []string {
	changes, err := r.e.space.Changed(ctx, *r.space, unpackSnapshot(from), unpackSnapshot(to))
	if err != nil {
		return []string{"(the difference could not be read: " + err.Error() + ")"}
	}
	const most = 50
	var files []string
	for i, c := range changes {
		if i == most {
			files = append(files, fmt.Sprintf("and %d more", len(changes)-most))
			break
		}
		files = append(files, c.String())
	}
	return files
}

// spaceTrouble turns a workspace that cannot be read into a question.
func (r *run) spaceTrouble(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	q := machine.QuestionAsked{
		Question: r.state.NextQuestion(), Sort: machine.SortDrift, Data: []byte("workspace"),
		Text: "The workspace cannot be used: " + err.Error(), Choices: []string{machine.AnswerRetry, machine.AnswerStop},
	}
	if derr := r.decide(ctx, ledger.Lazy, batch{bodies: []machine.Body{q}}); derr != nil {
		return derr
	}
	return errMoved
}

func packSnapshot(s workspace.Snapshot) machine.Snapshot {
	data, err := machine.Encode(s)
	if err != nil {
		panic(fmt.Sprintf("snapshot: %v", err)) // plain values always encode
	}
	return machine.Snapshot{Commit: s.Commit, Tree: s.Tree, Data: data}
}

func unpackSnapshot(m machine.Snapshot) workspace.Snapshot {
	var s workspace.Snapshot
	if err := machine.DecodeValue(m.Data, &s); err != nil || s.Tree == "" {
		return workspace.Snapshot{Commit: m.Commit, Tree: m.Tree}
	}
	return s
}

// read runs a READ effect and commits its dispatch and result together, after
// the read: a crash before that leaves an intent, which is simply run.
func (r *run) read(ctx context.Context, f *machine.Effect, t tool.Tool, args json.RawMessage) error {
	env := r.env(&r.state)
	attempt := len(f.Attempts) + 1
	r.e.o.Crash.Pass(PointBeforeDispatch, line(f))
	var out tool.Outcome
	lost := r.during(ctx, ended, func(ctx context.Context, _ *job) {
		out = t.Run(ctx, env, tool.Call{Effect: f.ID, Attempt: attempt, Args: args, Contract: f.Contract})
	})
	if lost != nil {
		return lost
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	r.e.o.Crash.Pass(PointAfterEffect, line(f))
	res, blobs, err := r.result(out)
	if err != nil {
		return err
	}
	r.e.o.Crash.Pass(PointBeforeAck, line(f))
	err = r.observe(ctx, ledger.Lazy, func(s *machine.State) (batch, error) {
		if s.Phase != machine.PhaseRunning {
			return batch{}, errMoved // paused or cancelled: nothing happened to the world, nothing is noted
		}
		d := machine.EffectDispatched{Effect: f.ID, Attempt: attempt, Approval: f.Approval}
		b := batch{bodies: []machine.Body{d, machine.EffectCompleted{Effect: f.ID, Attempt: attempt, Result: res}}, blobs: blobs}
		return r.withRequest(s, b)
	})
	if err != nil {
		return err
	}
	r.e.o.Crash.Pass(PointAfterAck, line(f))
	return nil
}

// withRequest adds the dispatch of the next model request to an ack where
// nothing stands between them, so that both share one commit.
func (r *run) withRequest(s *machine.State, b batch) (batch, error) {
	r.ready = nil
	if r.halting.Load() {
		return b, nil
	}
	b.epoch = r.epoch
	next, err := b.ahead(*s, r.e.now())
	if err != nil {
		return b, err
	}
	a := machine.Next(&next)
	if a.Kind != machine.ActRequest || a.RetryAt > 0 || r.model == nil || !r.likelyFits(&next) || r.heldNow() {
		return b, nil
	}
	b.bodies = append(b.bodies, machine.TurnRequested{Turn: a.Turn, Attempt: a.Attempt, Window: next.Window, Reserve: r.model.limits.AtMost(int(r.lastInput()), maxOutput(r.model.limits))})
	r.ready = &ready{turn: a.Turn}
	return b, nil
}

// execute runs the attempt that the ledger says is dispatched.
func (r *run) execute(ctx context.Context, id machine.EffectID) error {
	f := *r.state.Effect(id)
	last := f.Last()
	args, err := r.e.bytes(ctx, f.Args)
	if err != nil {
		return err
	}
	t, err := r.toolOf(f.Tool)
	if err != nil {
		return err
	}
	what := line(&f)
	r.e.o.Crash.Pass(PointAfterDispatch, what)
	env := r.env(&r.state)
	var out tool.Outcome
	lost := r.during(ctx, func(s *machine.State) bool { return ended(s) && f.Contract.Class == machine.ClassWorkspace }, func(ctx context.Context, j *job) {
		if f.Contract.Sender == machine.SenderCommand {
			leave, err := r.place(ctx)
			if err != nil {
				out = tool.Outcome{Cause: "stopped before it started"}
				return
			}
			defer leave()
			free, err := r.e.slots.take(ctx, "commands", commands)
			if err != nil {
				out = tool.Outcome{Cause: "stopped before it started"}
				return
			}
			defer free()
		}
		first := true
		out = t.Run(ctx, env, tool.Call{
			Effect: f.ID, Attempt: last.N, Args: args, Contract: f.Contract,
			Measured: tool.Measured{Params: last.Params, Old: last.Old, New: last.New},
			Started: func(who machine.Identity) error {
				return j.commit(ctx, func() error {
					return r.record(ctx, ledger.Lazy, machine.AttemptStarted{Effect: f.ID, Attempt: last.N, Identity: who})
				})
			},
			Output: func(b []byte) {
				if first && len(b) > 0 {
					first = false
					r.e.o.Crash.Pass(PointWhileRunning, what)
				}
				r.e.publish(LiveText{Run: r.id, Turn: f.Turn, Effect: f.ID, Text: string(b)})
			},
			After: func() { r.e.o.Crash.Pass(PointAfterEffect, what) },
		})
	})
	r.e.publish(LiveText{Run: r.id, Turn: f.Turn, Effect: f.ID, Done: true})
	if lost != nil {
		r.lateEvidence(f, last.N, out)
		return lost
	}
	if out.End != tool.EndCompleted && ctx.Err() != nil {
		return ctx.Err() // this process ends: the next claim says what is known
	}
	return r.ack(ctx, f.ID, out)
}

// ack commits how an attempt ended.
func (r *run) ack(ctx context.Context, id machine.EffectID, out tool.Outcome) error {
	f := *r.state.Effect(id)
	n := len(f.Attempts)
	what := line(&f)
	res, blobs, err := r.result(out)
	if err != nil {
		return err
	}
	r.e.o.Crash.Pass(PointBeforeAck, what)
	d := ledger.Lazy
	if f.Contract.Class != machine.ClassWorkspace && f.Contract.Probe == nil && f.Contract.Key == "" {
		d = ledger.Full // no probe could bring this ack back after a power cut
	}
	writes := f.Contract.Writes && r.space != nil
	err = r.observe(ctx, d, func(s *machine.State) (batch, error) {
		b := batch{blobs: blobs, bodies: outcomeBodies(s.Effect(id), n, out, res)}
		if writes {
			return b, nil
		}
		return r.withRequest(s, b)
	})
	if err != nil {
		return err
	}
	r.e.o.Crash.Pass(PointAfterAck, what)
	if !writes || out.End == tool.EndAmbiguous {
		return nil
	}
	snap, err := r.e.space.Snapshot(ctx, *r.space, string(id)+"+", workspace.Lazy())
	if err != nil {
		r.e.o.Log("run %s: no snapshot after %s: %v", r.id, id, err)
		return nil // what follows cannot be told from what this effect did; nothing is lost
	}
	return r.observe(ctx, ledger.Lazy, func(s *machine.State) (batch, error) {
		return r.withRequest(s, batch{bodies: []machine.Body{machine.SnapshotTaken{Effect: id, Attempt: n, Snapshot: packSnapshot(snap)}}})
	})
}

// outcomeBodies are the events of an attempt's end.
func outcomeBodies(f *machine.Effect, n int, out tool.Outcome, res machine.Result) []machine.Body {
	var bodies []machine.Body
	switch out.End {
	case tool.EndCompleted:
		return []machine.Body{machine.EffectCompleted{Effect: f.ID, Attempt: n, Result: res}}
	case tool.EndRejected:
		for _, a := range f.Attempts[:n-1] {
			if a.Forced || (a.End != machine.EndNotHappened && a.End != machine.EndRejected) {
				bodies = append(bodies, machine.EffectAmbiguous{
					Effect: f.ID, Attempt: n, Output: res.Output,
					Cause: fmt.Sprintf("this attempt was turned away before it took effect (%s), but what attempt %d did is not proven", out.Code, a.N),
				})
				return bodies
			}
		}
		return []machine.Body{machine.EffectRejected{Effect: f.ID, Attempt: n, Code: out.Code, Result: res}}
	case tool.EndAmbiguous:
	}
	bodies = append(bodies, machine.EffectAmbiguous{Effect: f.ID, Attempt: n, Cause: out.Cause, Output: res.Output, Closed: out.Closed})
	if out.Dead != nil {
		bodies = append(bodies, machine.QuiescenceProven{Effect: f.ID, Quiescence: machine.Quiescence{Covers: n, Proof: "pid-namespace", Detail: "every process of the command is dead", At: *out.Dead}})
	}
	return bodies
}

// result stores an attempt's output.
func (r *run) result(out tool.Outcome) (machine.Result, []ledger.Blob, error) {
	res := out.Result
	if !res.Output.IsZero() {
		return res, nil, nil
	}
	rd, err := out.Output.Open()
	if err != nil {
		res.Note = strings.TrimSpace(res.Note + " (its output could not be read: " + err.Error() + ")")
		return res, nil, nil
	}
	defer rd.Close()
	const most = 64 << 20
	b, err := io.ReadAll(io.LimitReader(rd, most))
	if err != nil {
		res.Note = strings.TrimSpace(res.Note + " (its output could not be read: " + err.Error() + ")")
		return res, nil, nil
	}
	if len(b) == most {
		res.Note = strings.TrimSpace(res.Note + " (output cut after 64 MiB)")
	}
	var blobs []ledger.Blob
	if hidden := r.e.tools.Hide(b); !bytes.Equal(hidden, b) {
		b = hidden
		if out.Output.Path != "" {
			if err := os.WriteFile(out.Output.Path, b, 0o600); err != nil {
				r.e.o.Log("run %s: an output holds a secret and cannot be cleaned: %v", r.id, err)
			}
		}
	}
	res.Output, blobs = r.e.text(b)
	return res, blobs, nil
}

// lateEvidence keeps what an attempt told us after the run was lost to another
// owner: a fact, which moves no state by itself.
func (r *run) lateEvidence(f machine.Effect, n int, out tool.Outcome) {
	if out.End != tool.EndCompleted {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	res, blobs, err := r.result(out)
	if err != nil {
		return
	}
	for range 20 {
		s, err := r.e.catchUp(ctx, r.state, r.id)
		if err != nil {
			return
		}
		ev := machine.EvidenceAdded{Effect: f.ID, Result: &res, Evidence: machine.Evidence{
			Verdict: machine.VerdictHappened, Authority: machine.AuthLateAck, Covers: n, Started: r.e.o.Mono(),
			Text: "the process that had run it reported its end (code " + res.Code + ") after losing the run",
		}}
		if _, err = r.e.commit(ctx, ledger.Full, s, batch{bodies: []machine.Body{ev}, blobs: blobs, actor: "engine:late"}); err == nil {
			return
		}
	}
}

// keyPast records that an idempotency key is too old to be sent again.
func (r *run) keyPast(ctx context.Context, f *machine.Effect) (bool, error) {
	h := f.Contract.KeyHorizon
	if f.State != machine.StateAmbiguous || f.Contract.Class != machine.ClassKeyed || h == 0 || r.e.now()-f.Attempts[0].At < h {
		return false, nil
	}
	ev := machine.EvidenceAdded{Effect: f.ID, Evidence: machine.Evidence{
		Verdict: machine.VerdictInconclusive, Authority: machine.AuthHorizon, Covers: len(f.Attempts), Started: r.e.o.Mono(),
		Text: fmt.Sprintf("the idempotency key was first sent more than %s ago; the other side may have forgotten it", time.Duration(h)*time.Microsecond),
	}}
	return true, r.decide(ctx, ledger.Lazy, batch{bodies: []machine.Body{ev}})
}
