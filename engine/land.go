package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"pawl/engine/effect"
	"pawl/engine/machine"
	"pawl/engine/tool"
	"pawl/engine/workspace"
	"pawl/ledger"
)

// LandView is what landing would do, or did.
type LandView struct {
	Run       machine.RunID `json:"run"`
	Branch    string        `json:"branch"`
	Onto      string        `json:"onto"`
	Base      string        `json:"base"`   // what Onto points at
	Tip       string        `json:"tip"`    // what lands
	Commit    string        `json:"commit"` // what Onto will point at
	How       string        `json:"how"`    // fast-forward, merge, nothing
	Files     []string      `json:"files"`
	Conflicts []string      `json:"conflicts,omitempty"`
	Leftovers []string      `json:"leftovers,omitempty"` // uncommitted work, committed first
	Blocked   string        `json:"blocked,omitempty"`   // why it cannot land now, and what to do
	Done      bool          `json:"done"`
}

// probeLand is the look that asks whether a branch contains a commit.
const probeLand = "git-land"

// LandPreview says what landing a run would do. onto "" is the branch the run
// started from.
func (e *Engine) LandPreview(ctx context.Context, id machine.RunID, onto string) (LandView, error) {
	s, err := e.state(ctx, id)
	if err != nil {
		return LandView{}, err
	}
	return e.preview(ctx, &s, onto)
}

func (e *Engine) preview(ctx context.Context, s *machine.State, onto string) (LandView, error) {
	v := LandView{Run: s.Charter.ID}
	if s.Landed != nil {
		return LandView{Run: s.Charter.ID, Branch: s.Space.Branch, Onto: s.Landed.Onto, Commit: s.Landed.Commit, How: "nothing", Done: true}, nil
	}
	ws, err := spaceOf(s)
	if err != nil {
		return v, err
	}
	if ws.Kind != workspace.KindWorktree {
		return v, fmt.Errorf("run %s worked in your own folder (%s): there is nothing to land", s.Charter.ID, ws.Kind)
	}
	p, err := e.space.Preview(ctx, ws, onto)
	if err != nil {
		return v, err
	}
	return LandView{
		Run: s.Charter.ID, Branch: ws.Branch, Onto: p.Onto, Base: p.Base, Tip: p.Tip, Commit: p.Commit, How: string(p.How), Files: p.Files,
		Conflicts: p.Conflicts, Leftovers: p.Leftovers, Blocked: p.Blocked,
	}, nil
}

func spaceOf(s *machine.State) (workspace.Workspace, error) {
	var ws workspace.Workspace
	if !s.Space.Ready {
		return ws, fmt.Errorf("run %s has no workspace yet", s.Charter.ID)
	}
	if err := machine.DecodeValue(s.Space.Data, &ws); err != nil {
		return ws, fmt.Errorf("the record of the workspace of %s: %w", s.Charter.ID, err)
	}
	return ws, nil
}

// Land brings a run's work onto the operator's branch, once. It is an effect:
// interrupted, it is looked at and not repeated blindly.
func (e *Engine) Land(ctx context.Context, id machine.RunID, onto string) (LandView, error) {
	v, err := e.LandPreview(ctx, id, onto)
	if err != nil || v.Done {
		return v, err
	}
	if v.Blocked != "" {
		return v, errors.New(v.Blocked)
	}
	if len(v.Conflicts) > 0 {
		return v, fmt.Errorf("%s does not merge into %s by itself: conflicts in %s; merge it by hand (`git merge %s` in a clone of your own), or tell the run to rebase with `pawl tell %s …`",
			v.Branch, v.Onto, strings.Join(v.Conflicts, ", "), v.Branch, id)
	}
	err = e.act(ctx, id, func(s *machine.State) ([]machine.Body, error) {
		if s.Phase == machine.PhaseRunning {
			return nil, fmt.Errorf("run %s is still at work: pause it first, or wait for its end", id)
		}
		if len(s.Unproven()) > 0 && blocking(s) {
			return nil, fmt.Errorf("run %s has effects that are not settled: see `pawl inbox`", id)
		}
		if s.LandAsk != nil || s.Landed != nil {
			return nil, nil
		}
		return []machine.Body{machine.LandAsked{Onto: v.Onto, Base: v.Base, Tip: v.Tip}}, nil
	})
	if err != nil {
		return v, err
	}
	if err := e.drive(ctx, id); err != nil {
		return v, err
	}
	if _, err := e.Wait(ctx, id); err != nil {
		return v, err
	}
	s, err := e.state(ctx, id)
	if err != nil {
		return v, err
	}
	if s.Landed == nil {
		return v, e.whyNotLanded(ctx, &s)
	}
	v.Done, v.Onto, v.Commit = true, s.Landed.Onto, s.Landed.Commit
	return v, nil
}

func blocking(s *machine.State) bool {
	for _, f := range s.Open() {
		if f.State == machine.StateAmbiguous || f.State == machine.StateContradicted || f.State == machine.StateDispatched {
			return true
		}
	}
	return false
}

func (e *Engine) whyNotLanded(ctx context.Context, s *machine.State) error {
	for i := s.Effects.Len(); i > 0; i-- {
		f := s.Effects.At(i - 1)
		if f.Tool != machine.ToolLand {
			continue
		}
		switch f.State {
		case machine.StateCompleted, machine.StateRejected:
			b, _ := e.bytes(ctx, f.Result.Output)
			return fmt.Errorf("it did not land: %s", strings.TrimSpace(string(b)))
		case machine.StateCancelled, machine.StateRefused:
			return fmt.Errorf("it did not land: %s", f.Reason)
		default:
			return fmt.Errorf("whether it landed is not known yet: see `pawl show %s`", f.ID)
		}
	}
	return fmt.Errorf("it did not land: nobody carried it out; `pawl resume %s` does", s.Charter.ID)
}

// landArgs are the arguments of a landing, frozen when it is intended.
type landArgs struct {
	Onto string `json:"onto"`
	Base string `json:"base"`
	Tip  string `json:"tip"`
}

// intendLanding makes an effect of the operator's wish.
func (r *run) intendLanding(ctx context.Context) error {
	ask := r.state.LandAsk
	args, err := json.Marshal(landArgs{Onto: ask.Onto, Base: ask.Base, Tip: ask.Tip})
	if err != nil {
		return err
	}
	text, blobs := r.e.text(args)
	id := r.state.NextEffect()
	in := machine.EffectIntended{
		Effect: id, Call: -1, Tool: machine.ToolLand, ToolVersion: 1, Args: text, Target: ask.Onto, Summary: fmt.Sprintf("land %s on %s", r.state.Space.Branch, ask.Onto),
		Digest: machine.DigestOf([]byte(string(id) + "\x00" + string(args))), Rule: "the operator asked for it",
		Contract: machine.Contract{
			Name: "git-land", Version: 1, Class: machine.ClassProbeable, Sender: machine.SenderPawl,
			Probe: &machine.Probe{Kind: probeLand, ReadsOwnWrites: true, ProvesNot: true},
		},
	}
	return r.decide(ctx, ledger.Full, batch{bodies: []machine.Body{in}, blobs: blobs})
}

// landTool carries a landing out. The model cannot call it.
type landTool struct{ r *run }

func (landTool) Spec() tool.Spec { return tool.Spec{Name: machine.ToolLand, Version: 1} }

func (landTool) Plan(context.Context, tool.Env, json.RawMessage) (tool.Plan, error) {
	return tool.Plan{}, &tool.ArgError{Text: "only the operator lands a run"}
}

// Measure makes the commit that will land, so that it can be looked for.
func (t landTool) Measure(ctx context.Context, _ tool.Env, _ machine.Contract, raw json.RawMessage) (tool.Measured, error) {
	var a landArgs
	if err := json.Unmarshal(raw, &a); err != nil {
		return tool.Measured{}, err
	}
	p, err := t.r.e.space.Preview(ctx, *t.r.space, a.Onto)
	if err != nil {
		return tool.Measured{}, err
	}
	if p.Blocked != "" {
		return tool.Measured{}, errors.New(p.Blocked)
	}
	if p.Base != a.Base {
		return tool.Measured{}, fmt.Errorf("%s has moved since it was previewed: look at `pawl land %s --dry-run` again", a.Onto, t.r.id)
	}
	if p, err = t.r.e.space.Commit(ctx, *t.r.space, p); err != nil {
		return tool.Measured{}, err
	}
	data, err := json.Marshal(p)
	if err != nil {
		return tool.Measured{}, err
	}
	return tool.Measured{Params: map[string]string{"commit": p.Commit, "onto": p.Onto, "old": p.Base, "plan": string(data)}}, nil
}

func (t landTool) Run(ctx context.Context, _ tool.Env, c tool.Call) tool.Outcome {
	var p workspace.LandPlan
	if err := json.Unmarshal([]byte(c.Measured.Params["plan"]), &p); err != nil {
		return tool.Outcome{End: tool.EndCompleted, Result: machine.Result{Code: "plan"}, Output: tool.Content{Bytes: []byte(err.Error())}}
	}
	err := t.r.e.space.Land(ctx, *t.r.space, p)
	if c.After != nil {
		c.After()
	}
	var refused *workspace.RefusedError
	switch {
	case err == nil:
		return tool.Outcome{End: tool.EndCompleted, Result: machine.Result{OK: true, Code: "0", Note: fmt.Sprintf("%s is now %s", p.Onto, p.Commit)}}
	case errors.As(err, &refused):
		return tool.Outcome{End: tool.EndCompleted, Result: machine.Result{Code: "refused"}, Output: tool.Content{Bytes: []byte(err.Error())}}
	}
	return tool.Outcome{End: tool.EndAmbiguous, Cause: err.Error(), Closed: closedNow(t.r)}
}

func closedNow(r *run) *machine.Instant {
	now := r.e.o.Mono()
	return &now
}

// lookLanding asks whether the branch contains the commit that was to land.
func (r *run) lookLanding(ctx context.Context, last *machine.Attempt) effect.Finding {
	var p workspace.LandPlan
	if err := json.Unmarshal([]byte(last.Params["plan"]), &p); err != nil || r.space == nil {
		return effect.Finding{Verdict: machine.VerdictInconclusive, Text: "the record of the landing cannot be read"}
	}
	there, err := r.e.space.Landed(ctx, *r.space, p)
	switch {
	case err != nil:
		return effect.Finding{Verdict: machine.VerdictInconclusive, Text: "the branch could not be read: " + err.Error()}
	case there:
		return effect.Finding{Verdict: machine.VerdictHappened, Text: fmt.Sprintf("%s contains %s", p.Onto, p.Commit)}
	}
	return effect.Finding{Verdict: machine.VerdictNotHappened, Text: fmt.Sprintf("%s does not contain %s", p.Onto, p.Commit)}
}

// toolOf finds the tool that carries an effect out.
func (r *run) toolOf(name string) (tool.Tool, error) {
	if name == machine.ToolLand {
		return landTool{r}, nil
	}
	if name == machine.ToolAdopt {
		return adoptTool{r}, nil
	}
	if t := r.e.tools.Get(name); t != nil {
		return t, nil
	}
	return nil, fmt.Errorf("run %s needs the tool %q, which this pawl does not have", r.id, name)
}

// Diff is what the run has changed so far against its base.
func (e *Engine) Diff(ctx context.Context, id machine.RunID) (string, error) {
	s, err := e.state(ctx, id)
	if err != nil {
		return "", err
	}
	ws, err := spaceOf(&s)
	if err != nil {
		return "", err
	}
	b, err := e.space.DiffBase(ctx, ws)
	return string(b), err
}
