package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"pawl/engine/machine"
	"pawl/engine/tool"
	"pawl/engine/workspace"
	"pawl/ledger"
)

// adoptArgs are the arguments of an adoption, frozen when it is intended.
type adoptArgs struct {
	Child machine.RunID `json:"child"`
	Tree  string        `json:"tree"` // of the work that was reviewed
	Files []string      `json:"files,omitempty"`
}

// intendAdoption makes an effect of the review that accepted a child's work. It
// changes the run's own work tree and nothing else, so that after a crash the
// snapshot from before is restored and it is done again, from the same commits.
func (r *run) intendAdoption(ctx context.Context, child machine.RunID) error {
	c := r.state.Child(child)
	args, err := json.Marshal(adoptArgs{Child: child, Tree: c.Report.Tree, Files: c.Files})
	if err != nil {
		return err
	}
	text, blobs := r.e.text(args)
	id := r.state.NextEffect()
	turn := 0
	if t := r.state.LastTurn(); t != nil {
		turn = t.N
	}
	in := machine.EffectIntended{
		Effect: id, Turn: turn, Call: -1, Tool: machine.ToolAdopt, ToolVersion: 1, Args: text, Target: string(child),
		Summary: preview("take over the work of "+string(child)+": "+c.Goal, 300),
		Digest:  machine.DigestOf([]byte(string(id) + "\x00" + string(args))), Rule: "the review accepted it", Level: r.state.Space.Level,
		Contract: machine.Contract{Name: "adopt", Version: 1, Class: machine.ClassWorkspace, Sender: machine.SenderLocal, Writes: true},
	}
	return r.decide(ctx, ledger.Full, batch{bodies: []machine.Body{in}, blobs: blobs})
}

// adoptTool carries an adoption out. The model cannot call it.
type adoptTool struct{ r *run }

func (adoptTool) Spec() tool.Spec { return tool.Spec{Name: machine.ToolAdopt, Version: 1} }

func (adoptTool) Plan(context.Context, tool.Env, json.RawMessage) (tool.Plan, error) {
	return tool.Plan{}, &tool.ArgError{Text: "work is taken over by a review only"}
}

func (adoptTool) Measure(context.Context, tool.Env, machine.Contract, json.RawMessage) (tool.Measured, error) {
	return tool.Measured{}, nil
}

func (t adoptTool) Run(ctx context.Context, env tool.Env, c tool.Call) tool.Outcome {
	note, ok, err := t.adopt(ctx, env.Space, c.Args)
	if c.After != nil {
		c.After()
	}
	var refused *workspace.RefusedError
	switch {
	case errors.As(err, &refused):
		return tool.Outcome{End: tool.EndCompleted, Result: machine.Result{Code: "refused", Note: err.Error()}}
	case err != nil:
		return tool.Outcome{End: tool.EndAmbiguous, Cause: err.Error(), Closed: closedNow(t.r)}
	case !ok:
		return tool.Outcome{End: tool.EndCompleted, Result: machine.Result{Code: "conflict", Note: note}}
	}
	return tool.Outcome{End: tool.EndCompleted, Result: machine.Result{OK: true, Code: "0", Note: note, Changed: true}}
}

func (t adoptTool) adopt(ctx context.Context, parent workspace.Workspace, raw json.RawMessage) (note string, ok bool, err error) {
	var a adoptArgs
	if err := json.Unmarshal(raw, &a); err != nil {
		return err.Error(), false, nil
	}
	fk, can := t.r.e.space.(forks)
	if !can {
		return "this process cannot merge work trees", false, nil
	}
	s, err := t.r.e.state(ctx, a.Child)
	if err != nil {
		return "", false, err
	}
	child, err := spaceOf(&s)
	if err != nil {
		return err.Error(), false, nil
	}
	p, err := fk.PreviewAdopt(ctx, parent, child, a.Files)
	switch {
	case err != nil:
		return "", false, err
	case p.Blocked != "":
		return p.Blocked, false, nil
	case len(p.Conflicts) > 0:
		return "it conflicts in " + few(p.Conflicts, 10), false, nil
	case a.Tree != "" && p.Tree != a.Tree:
		return "its files have changed since they were reviewed; look at them again", false, nil
	}
	if err := fk.Adopt(ctx, parent, p); err != nil {
		return "", false, err
	}
	return fmt.Sprintf("%d files taken over as %s", len(p.Files), p.Commit), true, nil
}

func few(list []string, most int) string {
	if len(list) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(list[:most], ", "), len(list)-most)
	}
	return strings.Join(list, ", ")
}
