package tool

import (
	"context"
	"encoding/json"
	"strings"

	"pawl/engine/confine"
	"pawl/engine/machine"
)

var finishSpec = Spec{
	Name:    "finish",
	Version: 1,
	Description: "End the task. summary tells the operator what was done and what was not. If the task has an acceptance check it is run now; " +
		"unless it passes the task does not end, and you see what it printed. Commit what belongs to the work before.",
	Schema: schema(`{
  "type": "object",
  "properties": {
    "summary": {"type": "string", "minLength": 1, "maxLength": 8000, "description": "what was done, what was left, what the operator should know"}
  },
  "required": ["summary"],
  "additionalProperties": false
}`),
}

// Finish is the model's wish to end the task.
type Finish struct {
	Summary string `json:"summary"`
}

// ParseFinish reads the arguments of finish.
func ParseFinish(args json.RawMessage) (Finish, error) {
	f, err := decode[Finish](args)
	if err == nil && strings.TrimSpace(f.Summary) == "" {
		err = argErrorf("The summary of finish is empty: say what was done.")
	}
	return f, err
}

// checkName is the contract of the run's acceptance command.
const checkName = "check"

// finish runs the run's acceptance command, the same way as shell does.
type finish struct{ shell shell }

func (*finish) Spec() Spec { return finishSpec }

// Plan plans the check.
func (*finish) Plan(_ context.Context, env Env, args json.RawMessage) (Plan, error) {
	f, err := ParseFinish(args)
	if err != nil {
		return Plan{}, err
	}
	p := CheckPlan(env)
	p.Args = args
	if env.Check == "" {
		p.Text = f.Summary
	}
	return p, nil
}

// CheckPlan is what running the run's acceptance command would do. The command
// is the operator's own: it is allowed, and re-runnable by declaration even
// where nothing can be sealed. Without a check it does nothing.
func CheckPlan(env Env) Plan {
	if env.Check == "" {
		p := internalPlan(finishSpec)
		p.Summary = "finish (no check)"
		return p
	}
	p := planLine(env, finishSpec, env.Check)
	p.Summary = "check: " + oneLine(env.Check, 110)
	if env.CheckProposed {
		return p // a model's line: as much authority as any other
	}
	p.Contract = machine.Contract{
		Name: checkName, Version: finishSpec.Version, Class: machine.ClassWorkspace, Sender: machine.SenderCommand,
		Writes: true, Declared: true, BeforeEffect: []string{CodeNotStarted},
	}
	p.Subject.Class, p.Subject.Declared = machine.ClassWorkspace, true
	p.Subject.Sealed = env.Level == confine.LevelSealed
	return p
}

// Measure has nothing to record: a check is run again if its end is unknown.
func (*finish) Measure(context.Context, Env, machine.Contract, json.RawMessage) (Measured, error) {
	return Measured{}, nil
}

// Run runs the check.
func (f *finish) Run(ctx context.Context, env Env, c Call) Outcome {
	if env.Check == "" {
		return done(true, CodeUnchecked, "The task has no check; nothing was run.\n")
	}
	if err := checkLine(env.Check); err != nil {
		return badArgs(err)
	}
	return runLine(ctx, f.shell.o, env, c, lineRun{line: env.Check, timeout: f.shell.o.CheckTimeout})
}
