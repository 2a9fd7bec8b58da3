package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"pawl/engine/config"
	"pawl/engine/confine"
	"pawl/engine/effect"
	"pawl/engine/machine"
	"pawl/engine/policy"
)

// userTool is a tool that the operator declared: a command with a contract. It
// runs like any command, in the same box.
type userTool struct {
	o Options
	d config.Tool
}

func (t *userTool) Spec() Spec {
	return Spec{Name: t.d.Name, Version: t.d.Version, Description: t.d.Description, Schema: t.d.JSONSchema()}
}

// prepared is a call of a declared tool with its values in place.
type prepared struct {
	vars effect.Vars
	line string   // as bash reads it
	env  []string // arguments of a shell line
}

// prepare fills the declaration with arguments.
func (t *userTool) prepare(args json.RawMessage) (prepared, error) {
	given, err := decode[map[string]any](args)
	if err != nil {
		return prepared{}, err
	}
	p := prepared{vars: effect.Vars{}, env: []string{config.ArgsEnv + "=" + string(args)}}
	for _, name := range t.d.Scalars() {
		v, ok := given[name]
		if !ok {
			continue
		}
		s := scalarText(v)
		if strings.ContainsRune(s, 0) {
			return prepared{}, argErrorf("The argument %s holds a NUL byte; no program can be given one.", name)
		}
		p.vars[name] = s
		p.env = append(p.env, "arg_"+name+"="+s)
	}
	p.vars.KeyLater()
	if t.d.Key != "" && t.d.Key != config.KeyEffect {
		for _, n := range effect.Slots(t.d.Key) {
			if p.vars[n] == "" {
				return prepared{}, argErrorf("The argument %s is missing; the idempotency key of %s is made from it.", n, t.d.Name)
			}
		}
		p.vars[effect.KeyName] = p.vars.Text(t.d.Key)
	}
	p.line = t.d.Shell
	if len(t.d.Command) > 0 {
		words, err := p.vars.Words(t.d.Command)
		if err != nil {
			return prepared{}, argErrorf("The arguments of %s cannot be used: %v.", t.d.Name, err)
		}
		p.line = policy.Join(words)
	}
	return p, nil
}

func scalarText(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case json.Number:
		return v.String()
	}
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v) // plain values always encode
	}
	return string(b)
}

// Plan makes the contract from the declaration.
func (t *userTool) Plan(_ context.Context, env Env, args json.RawMessage) (Plan, error) {
	p, err := t.prepare(args)
	if err != nil {
		return Plan{}, err
	}
	c, err := t.contract(env, p)
	if err != nil {
		return Plan{}, argErrorf("The arguments of %s do not fit what it promises: %v.", t.d.Name, err)
	}
	cmds, err := policy.Parse(p.line)
	if err != nil {
		cmds = policy.Commands{Unresolved: []string{plain(err)}}
	}
	out := Plan{
		Contract: c, Summary: oneLine(t.d.Name+" "+string(args), 120), Target: t.d.Name, Args: args,
		Files:   t.files(env, p, cmds),
		Subject: policy.Subject{Tool: t.d.Name, Class: c.Class, Network: c.Network},
	}
	out.Text = strings.TrimRight(t.d.Name+" "+string(args)+"\n\n"+p.line+"\n\n"+t.shape(env, c), "\n")
	sealed := env.Level == confine.LevelSealed && !c.Network
	if t.d.Approval == config.ApprovalPolicy {
		out.Subject.Line, out.Subject.Commands = p.line, &cmds
		if sealed && (c.Class == machine.ClassRead || c.Class == machine.ClassWorkspace) {
			out.Subject.Class, out.Subject.Sealed = machine.ClassWorkspace, true
		}
	} else {
		out.Subject.Recipe = t.d.Name // asked about each time, whatever a rule says
	}
	return out, nil
}

// shape tells what the contract promises, for the card.
func (t *userTool) shape(env Env, c machine.Contract) string {
	note := ""
	if t.d.Compensate != nil {
		note = t.d.Compensate.Note
	}
	text := "class   " + c.Class.String()
	if t.d.Contract() == machine.ClassWorkspace && c.Class != machine.ClassWorkspace {
		text += fmt.Sprintf(" here, declared WORKSPACE: commands run at level %q, and only a sealed one can be done again from its snapshot", env.Level)
	}
	if c.Network {
		text += ", with the network"
	}
	return effect.Describe(c, text, note)
}

// contract freezes the declaration for one call.
func (t *userTool) contract(env Env, p prepared) (machine.Contract, error) {
	c := machine.Contract{
		Name: t.d.Name, Version: t.d.Version, Class: t.d.Contract(), Sender: machine.SenderCommand, Network: t.d.Network,
		InFlight:     t.d.Bound().Microseconds(),
		BeforeEffect: withNotStarted(t.d.BeforeEffect), ProvesNothing: t.d.ProvesNothing, Refused: t.d.Refused,
		Params: map[string]string{effect.ParamLine: p.line}, Needs: t.d.Needs(),
	}
	if c.Class == machine.ClassWorkspace && env.Level != confine.LevelSealed {
		c.Class = machine.ClassIrreversible // only what is sealed can be done again
	}
	c.Writes = c.Class != machine.ClassRead
	if c.InFlight == 0 && env.Level < confine.LevelGuarded && t.d.InFlight == nil && c.Class != machine.ClassRead {
		c.InFlight = networkInFlight.Microseconds() // nothing keeps it from the network
	}
	if c.Class == machine.ClassKeyed {
		c.KeyHorizon = t.d.Horizon().Microseconds()
		if t.d.Key != config.KeyEffect {
			c.Key = p.vars[effect.KeyName]
		}
	}
	var err error
	if t.d.Probe != nil {
		if c.Probe, err = t.d.Probe.Build(p.vars, t.d.Network); err != nil {
			return c, err
		}
		// A probe's own script may lie where the model can write.
		cmds, _ := policy.Parse(policy.Join(c.Probe.Command)) // what cannot be read names no files
		for _, f := range namedFiles(env, cmds) {
			c.Params[effect.FileParam(f.Path)] = f.Digest.String()
		}
	}
	if t.d.Compensate != nil {
		c.Compensation, err = t.d.Compensate.Build(p.vars, t.d.Network)
	}
	return c, err
}

// files are the contents that an approval covers: what the line names, and what
// the declaration names.
func (t *userTool) files(env Env, p prepared, cmds policy.Commands) []machine.File {
	f := finder{env: env, dirs: []string{"."}, files: namedFiles(env, cmds)}
	for _, name := range t.d.Files {
		f.add(p.vars.Text(name))
	}
	slices.SortFunc(f.files, func(a, b machine.File) int { return strings.Compare(a.Path, b.Path) })
	return f.files
}

// Measure looks before the dispatch where the probe needs it.
func (t *userTool) Measure(ctx context.Context, env Env, c machine.Contract, _ json.RawMessage) (Measured, error) {
	params, err := effect.Measure(ctx, recipePlace(t.o, env), c)
	if err != nil {
		return Measured{}, fmt.Errorf("measure %s: %w", c.Name, err)
	}
	return Measured{Params: params}, nil
}

// Run runs the command once.
func (t *userTool) Run(ctx context.Context, env Env, c Call) Outcome {
	p, err := t.prepare(c.Args)
	if err != nil {
		return badArgs(err)
	}
	key := c.Contract.Key
	if key == "" {
		key = KeyFor(c.Effect)
	}
	line := effect.Keyed(p.line, key)
	if was := c.Contract.Params[effect.ParamLine]; effect.Keyed(was, key) != line {
		return notStarted(fmt.Sprintf("It was not started: the declaration of %s has changed since this was proposed, and would run another command now. Call it again.", t.d.Name))
	}
	timeout := DefaultTimeout
	if t.d.Timeout > 0 {
		timeout = min(time.Duration(t.d.Timeout), MaxTimeout)
	}
	return runLine(ctx, t.o, env, c, lineRun{
		line: line, timeout: timeout, network: c.Contract.Network, env: append(p.env, config.KeyEnv+"="+key), own: true,
	})
}
