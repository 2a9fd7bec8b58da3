package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"pawl/engine/machine"
	"pawl/engine/policy"
	"pawl/ledger"
)

// later carries out what the machine named for a later time, which has come.
func (r *run) later(ctx context.Context, a machine.Action) error {
	if a.Kind == machine.ActExpire {
		return r.expire(ctx, a.Effect)
	}
	return r.probe(ctx, a)
}

// expire closes an approval whose time is over, and with it the effect, which
// was not dispatched on its strength.
func (r *run) expire(ctx context.Context, id machine.EffectID) error {
	f := r.state.Effect(id)
	a := r.state.Approval(f.Approval)
	if a == nil || !a.Lapsed(r.e.now()) {
		return nil // moved meanwhile: Next is asked again
	}
	why := "nobody answered before it expired"
	if a.State == machine.ApprovalGrantedS {
		why = "it was granted, and expired before it was used"
	}
	return r.decide(ctx, ledger.Full, batch{bodies: []machine.Body{
		machine.ApprovalClosed{Approval: a.ID, State: machine.ApprovalExpired, Reason: why},
		r.failBefore(f, fmt.Sprintf("its approval expired at %s: %s; it was not run", wall(a.Expires).UTC().Format(stamp), why)),
	}})
}

// ApproveFor grants an approval and lays down a standing rule, so that the same
// is not asked again: in this run, or in every run on this project. The rule is
// the narrowest one that covers the action; it is returned as it would be
// written. Where no such rule exists nothing is granted.
func (e *Engine) ApproveFor(ctx context.Context, id machine.ApprovalID, shown machine.Digest, scope machine.GrantScope) (machine.GrantAdded, error) {
	var out machine.GrantAdded
	if scope != machine.GrantRun && scope != machine.GrantProject {
		return out, fmt.Errorf("a standing grant holds for run or project, not for %q", scope)
	}
	err := e.actBoth(ctx, id.Run(), func(s *machine.State, st *machine.Standing) (run, desk batch, err error) {
		a, err := pendingApproval(s, id, e.now())
		if err != nil {
			return run, desk, err
		}
		if !shown.IsZero() && shown != a.Digest {
			return run, desk, changedSince(id)
		}
		f := s.Effect(a.Effect)
		args, err := e.bytes(ctx, f.Args)
		if err != nil {
			return run, desk, err
		}
		p, err := e.planFor(ctx, s, f.Tool, args)
		if err != nil {
			return run, desk, err
		}
		p.plan.Subject.Like = len(e.alike(ctx, s, f.Tool, args, &p.plan)) > 0
		rule := policy.Offer(p.plan.Subject)
		if rule == "" {
			return run, desk, fmt.Errorf("no rule covers exactly %q: it runs other programs, could change behind its words, or resembles an action whose outcome is unknown; approve it once, without --for", f.Summary)
		}
		set, err := e.rulesFor(ctx, &s.Charter)
		if err != nil {
			return run, desk, err
		}
		for _, x := range set.Entries {
			if x.Decision == policy.Ask && x.Applies(p.plan.Subject) {
				return run, desk, fmt.Errorf("a grant could not hold: the rule %q asks each time, and a stricter rule wins; approve it once, without --for", x.Named())
			}
		}
		out = machine.GrantAdded{Grant: st.NextGrant(), Rule: rule, Scope: scope, Run: id.Run(), Approval: id}
		if scope == machine.GrantProject {
			if out.Repo = s.Charter.Repo; out.Repo == "" {
				return run, desk, errors.New("this run has no project: use --for run")
			}
		}
		run.bodies = []machine.Body{machine.ApprovalGranted{Approval: id, Digest: a.Digest, Grant: out.Grant}}
		desk.bodies = []machine.Body{out}
		return run, desk, nil
	})
	return out, err
}

func changedSince(id machine.ApprovalID) error {
	return &NotPendingError{ID: string(id), Why: "what would run has changed since it was shown", Next: "look at it again"}
}

// planFor plans a call for a run that this process need not drive.
func (e *Engine) planFor(ctx context.Context, s *machine.State, name string, canonical json.RawMessage) (proposal, error) {
	p := proposal{repeats: -1, call: machine.Call{Tool: name}}
	r := &run{e: e, id: s.Charter.ID, state: *s}
	if err := r.openSpace(); err != nil {
		return p, err
	}
	t, err := r.toolOf(name)
	if err != nil {
		return p, err
	}
	p.spec = t.Spec()
	p.plan, err = t.Plan(ctx, r.env(s), canonical)
	if err != nil {
		return p, fmt.Errorf("it cannot be planned: %s", refusal(err))
	}
	return p, nil
}

// Edit replaces a proposed action by another and lets that one run, once: the
// old one is cancelled and its approval superseded. args are the tool's
// arguments, whole; the model is told of the edit.
func (e *Engine) Edit(ctx context.Context, id machine.ApprovalID, shown machine.Digest, args string) (machine.ApprovalID, error) {
	var out machine.ApprovalID
	err := e.actBoth(ctx, id.Run(), func(s *machine.State, _ *machine.Standing) (run, desk batch, err error) {
		a, err := pendingApproval(s, id, e.now())
		if err != nil {
			return run, desk, err
		}
		if !shown.IsZero() && shown != a.Digest {
			return run, desk, changedSince(id)
		}
		f := s.Effect(a.Effect)
		if f.State != machine.StateIntended || len(f.Attempts) > 0 || !f.Proposed() {
			return run, desk, fmt.Errorf("%s cannot be edited: it was sent before, and what is sent again must be the same", f.ID)
		}
		canonical, err := e.tools.Validate(f.Tool, args)
		if err != nil {
			return run, desk, fmt.Errorf("the edit does not fit the tool %s: %w", f.Tool, err)
		}
		old, err := e.bytes(ctx, f.Args)
		if err != nil {
			return run, desk, err
		}
		if string(old) == string(canonical) {
			return run, desk, errors.New("the edit changes nothing: approve the action as it is, or change its arguments")
		}
		p, err := e.planFor(ctx, s, f.Tool, canonical)
		if err != nil {
			return run, desk, err
		}
		p.call.Args, p.blobs = e.text(canonical)
		p.like = e.alike(ctx, s, f.Tool, canonical, &p.plan)
		p.plan.Subject.Like = len(p.like) > 0
		p.verdict = e.judge(ctx, s, canonical, p.plan.Subject)
		if p.verdict.Verdict == policy.Deny {
			return run, desk, fmt.Errorf("policy denies the edited action: %s (%s)", p.verdict.Why, p.verdict.Rule)
		}
		out = s.NextApproval()
		r := run0(e, s)
		in := r.intent(&p, s.NextEffect(), f.Turn, f.Call)
		in.Args, in.Asks, in.Replaces = p.call.Args, true, f.ID
		run.blobs = p.blobs
		run.bodies = []machine.Body{
			machine.ApprovalClosed{Approval: id, State: machine.ApprovalSuperseded, Reason: "edited as " + string(in.Effect)},
			machine.EffectCancelled{Effect: f.ID, Reason: "the operator edited it; " + in.Effect.Short() + " runs in its place"},
			in,
			machine.ApprovalRequested{Approval: out, Effect: in.Effect, Digest: in.Digest, Why: p.verdict.Why, Like: p.like, Files: in.Files, Expires: e.expiry(p.verdict)},
			machine.ApprovalGranted{Approval: out, Digest: in.Digest},
		}
		return run, desk, nil
	})
	return out, err
}

// run0 is a run that nobody drives here, for what only reads its state.
func run0(e *Engine, s *machine.State) *run { return &run{e: e, id: s.Charter.ID, state: *s} }

// Revoke takes a grant back that was given and not used. The action is asked
// about again.
func (e *Engine) Revoke(ctx context.Context, id machine.ApprovalID, reason string) error {
	return e.act(ctx, id.Run(), func(s *machine.State) ([]machine.Body, error) {
		a := s.Approval(id)
		switch {
		case a == nil:
			return nil, &NotPendingError{ID: string(id), Why: "nobody asked for it", Next: "`pawl inbox` lists what is asked"}
		case a.State == machine.ApprovalConsumed:
			return nil, &NotPendingError{ID: string(id), Why: "it was used: the action was sent", Next: "`pawl show " + string(a.Effect) + "` tells what became of it"}
		case a.State != machine.ApprovalGrantedS:
			return nil, &NotPendingError{ID: string(id), Why: fmt.Sprintf("it is %s, so there is nothing to take back", a.State)}
		}
		bodies := []machine.Body{machine.ApprovalClosed{Approval: id, State: machine.ApprovalRevoked, Reason: reason}}
		if !s.Phase.Ended() {
			bodies = append(bodies, machine.ApprovalRequested{
				Approval: s.NextApproval(), Effect: a.Effect, Digest: a.Digest, Why: "its approval was taken back", Like: a.Like, Files: a.DigestFor, Expires: a.Expires,
			})
		}
		return bodies, nil
	})
}
