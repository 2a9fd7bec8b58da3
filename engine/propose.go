package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"unicode/utf8"

	"pawl/engine/effect"
	"pawl/engine/machine"
	"pawl/engine/model"
	"pawl/engine/policy"
	"pawl/engine/tool"
	"pawl/engine/window"
	"pawl/ledger"
)

// proposal is one call of a response, judged by reading only.
type proposal struct {
	call    machine.Call
	blobs   []ledger.Blob
	refused string // why it never becomes an intent
	repeats int    // index of the call that it truly repeats, -1
	plan    tool.Plan
	spec    tool.Spec
	verdict policy.Decision
	like    []machine.EffectID
}

// text makes content fit for an event: short content inline, the rest a blob.
func (e *Engine) text(b []byte) (machine.Text, []ledger.Blob) {
	if len(b) <= machine.MaxInline && utf8.Valid(b) {
		return machine.Text{Inline: string(b)}, nil
	}
	blob := ledger.NewBlob(b)
	t := machine.Text{Inline: preview(string(b[:min(len(b), machine.MaxInline)]), 400), Blob: machine.Digest(blob.Hash), Size: int64(len(b))}
	return t, []ledger.Blob{blob}
}

// bytes reads a text back, whole.
func (e *Engine) bytes(ctx context.Context, t machine.Text) ([]byte, error) {
	if t.Blob.IsZero() {
		return []byte(t.Inline), nil
	}
	return e.store.Blob(ctx, ledger.Hash(t.Blob))
}

// respond commits a whole response with an intent or a refusal for each call,
// and the first dispatch if that needs nothing more.
func (r *run) respond(ctx context.Context, turn int, resp model.Response, pack *window.Pack) error {
	text, blobs := r.e.text([]byte(resp.Text))
	env := r.env(&r.state)
	props := make([]proposal, 0, len(resp.Calls))
	calls := make([]machine.Call, 0, len(resp.Calls))
	for _, c := range resp.Calls {
		p := r.judge(ctx, env, c, calls)
		props = append(props, p)
		calls = append(calls, p.call)
		blobs = append(blobs, p.blobs...)
	}
	var job *ready
	err := r.observe(ctx, ledger.Full, func(s *machine.State) (batch, error) {
		job = nil
		answer := machine.TurnResponded{Turn: turn, Stop: resp.Stop, Text: text, Calls: slices.Clone(calls), Usage: resp.Usage, RequestID: resp.RequestID, Pack: pack.Digest, Guess: pack.Guess}
		b := batch{blobs: blobs}
		next := s.Effects.Len()
		id := func() machine.EffectID { next++; return machine.EffectIDOf(r.id, next) }
		var bodies []machine.Body
		approvals, questions := s.Approvals.Len(), s.Questions.Len()
		for i := range props {
			p := &props[i]
			if p.repeats >= 0 {
				answer.Calls[i].Effect = answer.Calls[p.repeats].Effect
				continue
			}
			eid := id()
			answer.Calls[i].Effect = eid
			bodies = append(bodies, r.intend(p, eid, turn, i, &approvals, &questions)...)
		}
		b.bodies = append([]machine.Body{answer}, bodies...)
		if s.Phase == machine.PhaseRunning && !r.halting.Load() {
			d, j := r.mergeDispatch(s, &b)
			if d != nil {
				b.bodies, job = append(b.bodies, *d), j
			}
		}
		return b, nil
	})
	if err != nil {
		return err
	}
	for i := range props {
		if props[i].refused == "" {
			r.e.o.Crash.Pass(PointAfterIntent, props[i].spec.Name+" "+props[i].plan.Summary)
		}
	}
	r.ready = job
	return nil
}

// judge finds out what a call would do and whether it may.
func (r *run) judge(ctx context.Context, env tool.Env, c model.RawCall, before []machine.Call) proposal {
	p := proposal{repeats: -1, call: machine.Call{Provider: preview(c.ProviderID, 200), Tool: preview(c.Name, 100)}}
	canonical, err := r.e.tools.Validate(c.Name, c.Args)
	if err != nil {
		p.call.Args, p.blobs = r.e.text([]byte(c.Args))
		p.refused = err.Error()
		return p
	}
	p.call.Args, p.blobs = r.e.text(canonical)
	for i, b := range before {
		if c.ProviderID != "" && b.Provider == p.call.Provider && b.Tool == p.call.Tool && b.Args == p.call.Args {
			p.repeats = i
			return p
		}
	}
	t := r.e.tools.Get(c.Name)
	p.spec = t.Spec()
	p.plan, err = t.Plan(ctx, env, canonical)
	if err != nil {
		p.refused = refusal(err)
		return p
	}
	p.like, p.verdict = r.verdict(ctx, &r.state, c.Name, canonical, &p.plan)
	if p.verdict.Verdict == policy.Deny {
		p.refused = "policy denies this: " + p.verdict.Why
	}
	return p
}

func refusal(err error) string {
	var arg *tool.ArgError
	if errors.As(err, &arg) {
		return arg.Text
	}
	return "this call cannot be carried out: " + err.Error()
}

// verdict asks policy. An action like one whose outcome is not proven is never
// allowed by a rule, and is shown with it.
func (r *run) verdict(ctx context.Context, s *machine.State, name string, args json.RawMessage, p *tool.Plan) ([]machine.EffectID, policy.Decision) {
	like := r.e.alike(ctx, s, name, args, p)
	p.Subject.Like = len(like) > 0
	return like, r.e.judge(ctx, s, args, p.Subject)
}

// alike lists the effects without a proven outcome that an action resembles.
func (e *Engine) alike(ctx context.Context, s *machine.State, name string, args json.RawMessage, p *tool.Plan) []machine.EffectID {
	unproven := s.Unproven()
	if p.Contract.Class == machine.ClassRead || len(unproven) == 0 {
		return nil
	}
	var out []machine.EffectID
	mine := effect.PrintsOf(name, args, p.Contract)
	for _, f := range unproven {
		theirs, err := e.bytes(ctx, f.Args)
		if err != nil || effect.AlikePrints(mine, effect.PrintsOf(f.Tool, theirs, f.Contract)) {
			out = append(out, f.ID) // what cannot be read is taken as alike
		}
	}
	return out
}

// intend makes the events of one call.
func (r *run) intend(p *proposal, id machine.EffectID, turn, call int, approvals, questions *int) []machine.Body {
	if p.refused != "" {
		return []machine.Body{machine.EffectRefused{Effect: id, Turn: turn, Call: call, Tool: p.call.Tool, Reason: p.refused}}
	}
	in := r.intent(p, id, turn, call)
	bodies := []machine.Body{in}
	if in.Asks {
		*approvals++
		bodies = append(bodies, machine.ApprovalRequested{
			Approval: machine.ApprovalIDOf(r.id, *approvals), Effect: id, Digest: in.Digest, Why: p.verdict.Why, Like: p.like, Files: in.Files,
			Expires: r.e.expiry(p.verdict),
		})
		return bodies
	}
	args := p.plan.Args
	done := func(note string) []machine.Body {
		return []machine.Body{
			machine.EffectDispatched{Effect: id, Attempt: 1},
			machine.EffectCompleted{Effect: id, Attempt: 1, Result: machine.Result{OK: true, Note: note}},
		}
	}
	switch in.Tool {
	case machine.ToolAsk:
		q, err := tool.ParseAsk(args)
		if err != nil {
			return []machine.Body{machine.EffectRefused{Effect: id, Turn: turn, Call: call, Tool: in.Tool, Reason: refusal(err)}}
		}
		*questions++
		bodies = append(bodies, machine.QuestionAsked{
			Question: machine.QuestionIDOf(r.id, *questions), Sort: machine.SortQuestion, Effect: id, Text: q.Question, Choices: q.Choices,
		})
	case "update_plan":
		items, err := tool.ParsePlan(args)
		if err != nil {
			return []machine.Body{machine.EffectRefused{Effect: id, Turn: turn, Call: call, Tool: in.Tool, Reason: refusal(err)}}
		}
		bodies = append(append(bodies, done("plan updated")...), machine.PlanUpdated{Items: items})
	case "record_decision":
		text, err := tool.ParseDecision(args)
		if err != nil {
			return []machine.Body{machine.EffectRefused{Effect: id, Turn: turn, Call: call, Tool: in.Tool, Reason: refusal(err)}}
		}
		bodies = append(append(bodies, done("decision recorded")...), machine.DecisionRecorded{Text: text})
	case "handoff_note":
		text, err := tool.ParseNote(args)
		if err != nil {
			return []machine.Body{machine.EffectRefused{Effect: id, Turn: turn, Call: call, Tool: in.Tool, Reason: refusal(err)}}
		}
		bodies = append(append(bodies, done("note kept")...), machine.NoteWritten{Text: text})
	}
	return bodies
}

func (r *run) intent(p *proposal, id machine.EffectID, turn, call int) machine.EffectIntended {
	c := p.plan.Contract
	if c.Class == machine.ClassKeyed && c.Key == "" {
		c.Key = keyOf(id)
	}
	effect.Bind(&c, cmp.Or(c.Key, keyOf(id)))
	in := machine.EffectIntended{
		Effect: id, Turn: turn, Call: call, Tool: p.spec.Name, ToolVersion: p.spec.Version,
		Summary: preview(p.plan.Summary, 300), Target: preview(p.plan.Target, 300), Contract: c,
		Digest: digestOf(id, p.spec, p.plan, r.state.Space.Path), Level: r.state.Space.Level, Rule: p.verdict.Rule,
		Asks: p.verdict.Verdict == policy.Ask, Files: p.plan.Files,
	}
	if call < 0 {
		in.Args = p.call.Args
	}
	return in
}

// keyOf derives an effect's idempotency key: the same for every attempt, and
// for no other effect.
func keyOf(id machine.EffectID) string {
	return "pawl-" + machine.DigestOf([]byte("key\x00" + string(id))).String()[:32]
}

// digestOf is what an approval is bound to: everything that decides what runs,
// and nothing that is only said about it.
func digestOf(id machine.EffectID, spec tool.Spec, p tool.Plan, dir string) machine.Digest {
	b, err := machine.Encode(struct {
		Effect  machine.EffectID  `json:"effect"`
		Tool    string            `json:"tool"`
		Version int               `json:"version"`
		Args    string            `json:"args"`
		Dir     string            `json:"dir"`
		Target  string            `json:"target"`
		Params  map[string]string `json:"params"`
		Files   []machine.File    `json:"files"`
	}{id, spec.Name, spec.Version, string(p.Args), dir, p.Target, p.Contract.Params, p.Files})
	if err != nil {
		panic(fmt.Sprintf("digest of %s: %v", id, err)) // plain values always encode
	}
	return machine.DigestOf(b)
}

// mergeDispatch puts the first dispatch into the response's own commit where it
// needs neither an approval nor a snapshot nor a look before it.
func (r *run) mergeDispatch(s *machine.State, b *batch) (*machine.EffectDispatched, *ready) {
	b.epoch = r.epoch
	next, err := b.ahead(*s, r.e.now())
	if err != nil {
		return nil, nil
	}
	a := machine.Next(&next)
	if a.Kind != machine.ActDispatch {
		return nil, nil
	}
	f := next.Effect(a.Effect)
	c := f.Contract
	if f.Asks || c.Writes || c.Class == machine.ClassRead || c.Probe != nil || len(f.Files) > 0 {
		return nil, nil
	}
	d := &machine.EffectDispatched{Effect: f.ID, Attempt: 1}
	return d, &ready{effect: f.ID, attempt: 1}
}

// env is what tools of this run may touch.
func (r *run) env(s *machine.State) tool.Env {
	state := *s
	env := tool.Env{
		Run: r.id, Manager: r.e.manager, Level: r.e.level().Level, Allow: s.Charter.Allow, Check: s.Charter.Check, CheckProposed: s.Charter.CheckProposed,
		Outputs: r.e.outputs(r.id), Self: r.e.self, Now: r.e.o.Now, Mono: r.e.o.Mono, State: &state,
		Blob: func(ctx context.Context, d machine.Digest) ([]byte, error) {
			return r.e.store.Blob(ctx, ledger.Hash(d))
		},
		Hidden: []string{r.e.o.StateDir, filepath.Dir(r.e.store.Path())},
	}
	if r.space != nil {
		env.Space = *r.space
	}
	return env
}
