package tool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"pawl/engine/effect"
	"pawl/engine/machine"
	"pawl/engine/policy"
)

// recipePlace is where a recipe's line works.
func recipePlace(o Options, env Env) effect.Place {
	p := effect.Place{
		Dir: env.Space.Path, Scratch: env.Space.Scratch, Environ: o.Environ, Home: o.Home, Level: env.Level, Hidden: env.Hidden,
	}
	if env.Manager != nil && env.Space.Path != "" {
		p.Readable = readable(env, nil)
	}
	return p
}

// Place is where a run's effects are looked at, and how.
func (s *Set) Place(env Env) effect.Place { return recipePlace(s.o, env) }

// planRecipe turns the plan of a command line into that of a recipe, if the
// line is one and what it acts on can be told in advance. Otherwise the line is
// undeclared, and why says so if it looked like a recipe.
func planRecipe(ctx context.Context, o Options, env Env, p Plan) (_ Plan, why string, ok bool) {
	r, ok := o.Recipes.Match(p.Subject.Commands)
	if !ok {
		return p, "", false
	}
	does, err := r.Plan(ctx, recipePlace(o, env))
	if err != nil {
		return p, fmt.Sprintf("%s is not recognised here: %v", r.Name, plain(err)), false
	}
	p.Contract = does.Contract
	p.Contract.BeforeEffect = withNotStarted(p.Contract.BeforeEffect)
	p.Target = does.Target
	p.Contract.Needs = needsOf(does)
	p.Text += "\n\n" + does.Text
	p.Subject.Recipe, p.Subject.Class = p.Contract.Name, p.Contract.Class
	p.Subject.Network, p.Subject.OutsideWrite = p.Contract.Network, does.OutsideWrite
	for _, f := range does.Files {
		if d, ok := hashFile(place{abs: f}); ok {
			p.Files = append(p.Files, machine.File{Path: f, Digest: d})
		}
	}
	return p, "", true
}

// withNotStarted adds the code that this package proves itself.
func withNotStarted(codes []string) []string {
	if slices.Contains(codes, CodeNotStarted) {
		return codes
	}
	return append(slices.Clone(codes), CodeNotStarted)
}

// measureRecipe reads what a recipe's probe will need. A line that would now
// act on something else than it was planned for is an error: it must not run.
func measureRecipe(ctx context.Context, o Options, env Env, c machine.Contract, line string) (Measured, error) {
	if !isRecipe(c) {
		return Measured{}, nil
	}
	cmds, err := policy.Parse(line)
	if err != nil {
		return Measured{}, fmt.Errorf("measure %s: %w", c.Name, err)
	}
	r, ok := o.Recipes.Match(&cmds)
	if !ok || r.Name != c.Name {
		return Measured{}, fmt.Errorf("measure %s: the command line is no %s any more", c.Name, c.Name)
	}
	params, err := r.Measure(ctx, recipePlace(o, env), c)
	if err != nil {
		return Measured{}, fmt.Errorf("measure %s: %w", c.Name, err)
	}
	return Measured{Params: params}, nil
}

// reach is what a recipe's command gets beside the usual.
type reach struct {
	writable []string // outside the workspace
	env      []string // KEY=value
	reveal   []string // absolute paths below the home directory
	sockets  []string
}

// recipeReach finds out again what a recipe needs, just before it runs. If it
// would act on anything else than its contract says, nothing may run.
func recipeReach(ctx context.Context, o Options, env Env, c machine.Contract, line string) (reach, error) {
	if !isRecipe(c) {
		return needed(o, c.Needs), nil
	}
	cmds, err := policy.Parse(line)
	if err != nil {
		return reach{}, err
	}
	r, ok := o.Recipes.Match(&cmds)
	if !ok || r.Name != c.Name {
		return reach{}, fmt.Errorf("the command line is no %s any more", c.Name)
	}
	does, err := r.Plan(ctx, recipePlace(o, env))
	if err != nil {
		return reach{}, err
	}
	if !sameAim(does.Contract.Params, c.Params) {
		return reach{}, errors.New("it would now act on " + does.Target + ", not on what was agreed to")
	}
	// What it gets is what the contract says, whatever a recipe's file says by now.
	out := needed(o, c.Needs)
	out.writable = does.OutsideWrite
	return out, nil
}

// sameAim compares what a line acts on. What a source names may have moved on
// by the run's own commits; whoever was asked about it is asked again.
func sameAim(now, was map[string]string) bool {
	now, was = maps.Clone(now), maps.Clone(was)
	delete(now, effect.ParamPlanned)
	delete(was, effect.ParamPlanned)
	return maps.Equal(now, was)
}

// isRecipe reports whether a command line's contract is that of a recipe: then
// what it acts on is found out again before it runs.
func isRecipe(c machine.Contract) bool { return c.Name != shellSpec.Name && c.Name != checkName }

// needsOf is what a plan says its command needs.
func needsOf(does effect.Planned) *machine.Needs {
	if does.Contract.Needs != nil || len(does.Env)+len(does.Reveal) == 0 {
		return does.Contract.Needs
	}
	return &machine.Needs{Env: does.Env, Reveal: does.Reveal}
}

func needed(o Options, n *machine.Needs) reach {
	r := effect.Reach(n, o.Home, o.Environ)
	return reach{env: r.Env, reveal: r.Reveal, sockets: r.Sockets}
}

func lookupEnv(environ []string, name string) (string, bool) {
	for _, kv := range slices.Backward(environ) {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			return v, true
		}
	}
	return "", false
}

// commandAnswered asks the contract whether a command's end says what became of its
// effect. Only the end of a long output is looked at: that is where programs
// report.
func commandAnswered(c machine.Contract, code, output string) (bool, string) {
	const window = 64 << 10
	f, err := os.Open(output)
	if err != nil {
		return effect.Answered(c, code, nil)
	}
	defer func() { _ = f.Close() }()
	if st, err := f.Stat(); err == nil && st.Size() > window {
		if _, err := f.Seek(-window, io.SeekEnd); err != nil {
			return effect.Answered(c, code, nil)
		}
	}
	b, err := io.ReadAll(io.LimitReader(f, window))
	if err != nil {
		b = nil
	}
	return effect.Answered(c, code, b)
}
