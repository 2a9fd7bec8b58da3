package drill

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"pawl/engine"
	"pawl/engine/confine"
	"pawl/engine/effect"
	"pawl/engine/machine"
	"pawl/engine/model"
	"pawl/engine/policy"
	"pawl/engine/tool"
)

// kit is what all episodes of one worker share: tools are compiled once.
type kit struct {
	cur   *sim
	extra func(*sim) // called when an episode begins
	tools *tool.Set
	level confine.Report
	idle  threads
}

// close ends the threads of a kit.
func (k *kit) close() { k.idle.close() }

func newKit() *kit {
	k := &kit{level: confine.Report{Level: confine.LevelSealed}}
	k.tools = tool.All(tool.Options{More: []tool.Tool{&act{k, "act"}, &act{k, "undo"}}})
	return k
}

// undoes is added to a deed's index for the effect that undoes it.
const undoes = 100

// undoDeed is how compensations behave: keyed, and remembered for ever.
var undoDeed = Deed{Class: machine.ClassKeyed, Sender: machine.SenderPawl, D: 5 * second, Most: 5 * second, Keeps: 1 << 60, Takes: 100 * ms}

func (s *sim) deed(n int) *Deed {
	if n >= undoes {
		return &undoDeed
	}
	return &s.plan.Effects[n]
}

// act is the one tool of the simulation. What an action does and promises
// stands in the plan, by its number.
type act struct {
	k    *kit
	name string
}

// Spec presents the tool.
func (a *act) Spec() tool.Spec {
	return tool.Spec{Name: a.name, Version: 1, Description: "acts on the simulated world", Schema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer","minimum":0}},"required":["n"],"additionalProperties":false}`)}
}

func number(args json.RawMessage) int {
	const head = len(`{"n":`)
	if len(args) <= head {
		return 0
	}
	n, err := strconv.Atoi(string(args[head : len(args)-1])) // canonical arguments have one spelling
	if err != nil {
		return 0
	}
	return n
}

// Plan says what an action promises.
func (a *act) Plan(_ context.Context, _ tool.Env, args json.RawMessage) (tool.Plan, error) {
	s, n := a.k.cur, number(args)
	d := s.deed(n)
	c := machine.Contract{
		Name: fmt.Sprintf("%s-%d", a.name, n), Version: 1, Class: d.Class, Sender: d.Sender, Probe: d.Probe, InFlight: d.D, KeyHorizon: d.Horizon,
		Declared: d.Declared, BeforeEffect: []string{"refused", tool.CodeNotStarted}, Writes: d.Class == machine.ClassWorkspace,
		Params: map[string]string{"path": strconv.Itoa(n)},
	}
	if d.Undo {
		c.Compensation = &machine.Compensation{Tool: "undo", Args: fmt.Sprintf(`{"n":%d}`, n+undoes), NullSafe: d.NullSafe}
	}
	p := tool.Plan{
		Contract: c, Summary: fmt.Sprintf("%s %d (%s)", a.name, n, d.Class), Target: fmt.Sprintf("thing %d", n), Args: args,
		Subject: policy.Subject{Tool: a.name, Internal: !d.Gated, Network: d.Gated, Host: "world", Class: d.Class},
	}
	if d.File {
		p.Files = []machine.File{{Path: "script", Digest: machine.DigestOf([]byte(strconv.Itoa(s.world.version)))}}
	}
	if s.cur != nil {
		s.audit.planned(s.cur.proc, n, s.world.version)
	}
	return p, nil
}

// Measure records what an own edit starts from and leads to.
func (a *act) Measure(_ context.Context, _ tool.Env, c machine.Contract, args json.RawMessage) (tool.Measured, error) {
	if c.Sender != machine.SenderLocal {
		return tool.Measured{}, nil
	}
	n := number(args)
	now := a.k.cur.world.files[slot(n)]
	return tool.Measured{Old: slotDigest(n, now), New: slotDigest(n, now+2)}, nil
}

func slot(n int) int { return n % userSlot }

func slotDigest(n int, v uint16) machine.Digest {
	return machine.Digest{0: byte(slot(n)) + 1, 1: byte(v), 2: byte(v >> 8)}
}

// Run does one attempt.
func (a *act) Run(ctx context.Context, _ tool.Env, c tool.Call) tool.Outcome {
	s, n := a.k.cur, number(c.Args)
	d := s.deed(n)
	switch d.Sender {
	case machine.SenderCommand:
		return s.runCommand(ctx, c, n, d)
	case machine.SenderLocal:
		return s.runEdit(c, n)
	case machine.SenderPawl, machine.SenderUnknown:
	}
	if d.Class == machine.ClassRead {
		s.sleep(ctx, d.Takes)
		return completed(true, "0")
	}
	return s.runRequest(ctx, c, n)
}

func completed(ok bool, code string) tool.Outcome {
	return tool.Outcome{End: tool.EndCompleted, Result: machine.Result{OK: ok, Code: code}, Output: tool.Content{Bytes: []byte("done\n")}}
}

func (s *sim) dies(at, m Moment) {
	if at == m {
		s.note("the sender dies")
		s.kill(s.cur.proc)
		panic(killed{})
	}
}

// timeout is how long an answer is waited for.
const timeout = 10 * second

// runRequest is an action that Pawl sends itself.
func (s *sim) runRequest(ctx context.Context, c tool.Call, n int) tool.Outcome {
	cut := func(why string) tool.Outcome {
		at := s.instant()
		return tool.Outcome{Cause: why, Closed: &at}
	}
	early := s.plan.fate(n, c.Attempt)
	s.dies(early.Dies, BeforeByte)
	s.pass1("first byte", string(c.Effect))
	if ctx.Err() != nil {
		return cut("called off")
	}
	s.audit.sent(s.cur.proc, c.Effect, c.Attempt, c.Args)
	f := s.world.send(c.Effect, n, c.Attempt, c.Contract.Key)
	s.dies(f.Dies, InFlight)
	if !f.Acked {
		s.sleep(ctx, timeout)
		s.pass1("time-out", string(c.Effect))
		return cut("no answer came")
	}
	r := s.dice.on(topicFate, n, c.Attempt, 3)
	s.sleep(ctx, f.Delay+r.between(0, 100*ms))
	if ctx.Err() != nil {
		return cut("called off")
	}
	s.dies(f.Dies, BeforeAck)
	s.pass1("last byte", string(c.Effect))
	switch {
	case f.Refused:
		return tool.Outcome{End: tool.EndRejected, Code: "refused", Result: machine.Result{Code: "refused"}}
	case f.Failed:
		return completed(false, "422")
	}
	return completed(true, "0")
}

// runCommand is an action of a command, with a gate, an identity and a life of its own.
func (s *sim) runCommand(ctx context.Context, c tool.Call, n int, d *Deed) tool.Outcome {
	p := s.cur.proc
	cmd := s.world.launch(p, d)
	if err := c.Started(cmd.identity); err != nil {
		cmd.stop()
		return tool.Outcome{End: tool.EndRejected, Code: tool.CodeNotStarted, Result: machine.Result{Code: tool.CodeNotStarted}}
	}
	early := s.plan.fate(n, c.Attempt)
	s.dies(early.Dies, BeforeByte)
	s.pass1("gate", string(c.Effect))
	cmd.open(func(stage int) { s.commandStep(cmd, c, n, d, stage, p) })
	s.park(func() bool { return cmd.begun || cmd.ended || ctx.Err() != nil })
	if cmd.begun && c.Output != nil {
		c.Output([]byte("working\n"))
	}
	s.dies(early.Dies, InFlight)
	s.park(func() bool { return cmd.ended || ctx.Err() != nil })
	if !cmd.ended {
		cmd.stop()
		if d.Class == machine.ClassWorkspace && d.Inner {
			return completed(false, "killed")
		}
		return s.unseen(d, "its process was ended")
	}
	c.After()
	s.dies(early.Dies, BeforeAck)
	s.pass1("last byte", string(c.Effect))
	switch {
	case cmd.dead:
		return s.unseen(d, "its process was ended by somebody else")
	case d.Class == machine.ClassWorkspace:
		return completed(true, "0")
	case cmd.fate.Failed:
		return completed(false, "1")
	case cmd.fate.Refused && s.plan.Lie == RejectedLands:
		return tool.Outcome{End: tool.EndRejected, Code: "refused", Result: machine.Result{Code: "refused"}}
	case !cmd.fate.Acked || cmd.fate.Refused:
		return s.unseen(d, "exit code 128 proves nothing")
	}
	s.sleep(ctx, max(d.Takes/3+cmd.fate.Delay-d.Takes, 0)+ms) // it reports what has landed
	return completed(true, "0")
}

func (s *sim) unseen(d *Deed, why string) tool.Outcome {
	out := tool.Outcome{Cause: why}
	if d.Inner {
		at := s.instant()
		out.Dead = &at
	}
	return out
}

// commandStep is what a command does at its stages.
func (s *sim) commandStep(cmd *command, c tool.Call, n int, d *Deed, stage int, p *proc) {
	w := &s.world
	if d.Class == machine.ClassWorkspace {
		if stage == 1 {
			s.audit.sent(p, c.Effect, c.Attempt, c.Args)
			if d.Ignored {
				w.ignored++
			}
		}
		w.files[slot(n)]++
		w.note(c.Effect, c.Attempt, fmt.Sprintf("wrote, stage %d", stage))
		return
	}
	if stage == 1 {
		s.audit.sent(p, c.Effect, c.Attempt, c.Args)
		cmd.fate = w.send(c.Effect, n, c.Attempt, c.Contract.Key)
	}
}

// runEdit is Pawl's own edit of a file, exchanged in one step.
func (s *sim) runEdit(c tool.Call, n int) tool.Outcome {
	early := s.plan.fate(n, c.Attempt)
	s.dies(early.Dies, BeforeByte)
	s.pass1("first byte", string(c.Effect))
	w := &s.world
	switch slotDigest(n, w.files[slot(n)]) {
	case c.Measured.New: // an earlier attempt did it
	case c.Measured.Old:
		s.audit.sent(s.cur.proc, c.Effect, c.Attempt, c.Args)
		w.files[slot(n)] += 2
		w.note(c.Effect, c.Attempt, "edited")
	default:
		return completed(false, tool.CodeDrift)
	}
	s.dies(early.Dies, InFlight)
	s.pass1("last byte", string(c.Effect))
	s.dies(early.Dies, BeforeAck)
	return completed(true, "0")
}

// look is how a process finds out what became of an effect.
func (p *proc) look(ctx context.Context, f *machine.Effect, _ effect.Request) effect.Finding {
	s := p.s
	s.pass1("look", string(f.ID))
	n := number(json.RawMessage(f.Args.Inline))
	if f.Args.Inline == "" {
		n = 0
	}
	r := s.dice.on(topicProbe, n, len(f.Evidence))
	s.sleep(ctx, r.between(10*ms, 300*ms))
	d := s.deed(n)
	found := effect.Finding{Verdict: machine.VerdictNotHappened, Text: "it is not there"}
	if s.world.visible(f.ID, d.Lag) {
		found = effect.Finding{Verdict: machine.VerdictHappened, Text: "it is there"}
	}
	if !s.calm() && !s.fair {
		switch k := r.below(100); {
		case k < 8:
			found = effect.Finding{Verdict: machine.VerdictInconclusive, Text: "nobody answered"}
		case k < 10:
			found = effect.Finding{Verdict: machine.VerdictConflict, Text: "something else is there"}
		}
	}
	there := len(s.world.of(f.ID).landed) > 0
	switch {
	case s.plan.Lie == ProbeYes && !there && r.percent(50):
		found = effect.Finding{Verdict: machine.VerdictHappened, Text: "it is there"}
		s.world.lie(f.ID)
	case s.plan.Lie == ProbeNo && there && r.percent(50):
		found = effect.Finding{Verdict: machine.VerdictNotHappened, Text: "it is not there"}
		s.world.lie(f.ID)
	case s.plan.Lie == LagOverSettle && there && found.Verdict == machine.VerdictNotHappened:
		s.world.lie(f.ID)
	}
	s.note("%s looks for %s: %s", p.name, f.ID.Short(), found.Verdict)
	s.pass1("looked", string(f.ID))
	return found
}

// models resolve every name to the episode's model.
type models struct{ s *sim }

func (k *kit) models(s *sim) engine.Resolver { return models{s} }

// Resolve returns the model that plays the plan.
func (m models) Resolve(context.Context, string, []byte) (model.Provider, string, model.Limits, error) {
	return player(m), "model", model.Limits{}, nil
}

// player answers each turn with the calls of the plan.
type player struct{ s *sim }

// Complete plays one turn.
func (m player) Complete(ctx context.Context, req model.Request, _ func(string)) (model.Response, error) {
	s := m.s
	s.pass1("model", "")
	r := s.dice.on(topicModel, req.Turn, req.Attempt)
	if err := s.audit.shown(req, s.cur.proc); err != nil {
		s.fail(RulePack, "", "%v", err)
	}
	s.sleep(ctx, r.between(50*ms, 2*second))
	if ctx.Err() != nil {
		return model.Response{}, &model.Error{Class: machine.FailNetwork, Message: "called off", Sent: true}
	}
	if !s.calm() && !s.fair && r.percent(8) {
		class := []machine.FailClass{machine.FailRate, machine.FailCut, machine.FailServer, machine.FailNetwork}[r.below(4)]
		return model.Response{}, &model.Error{Class: class, Message: "the model did not answer", Sent: true}
	}
	out := model.Response{Stop: machine.StopTools, RequestID: strconv.Itoa(req.Turn)}
	if req.Turn <= len(s.plan.Turns) {
		for i, n := range s.plan.Turns[req.Turn-1] {
			out.Calls = append(out.Calls, model.RawCall{ProviderID: fmt.Sprintf("c%d-%d", req.Turn, i), Name: "act", Args: fmt.Sprintf(`{"n":%d}`, n)})
		}
		return out, nil
	}
	out.Calls = []model.RawCall{{ProviderID: fmt.Sprintf("f%d", req.Turn), Name: "finish", Args: `{"summary":"done"}`}}
	return out, nil
}
