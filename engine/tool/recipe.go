package tool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"pawl/engine/effect"
	"pawl/engine/machine"
	"pawl/engine/policy"
)

// recipePlace is where a recipe's line works.
func recipePlace(o Options, env Env) effect.Place {
	return effect.Place{Dir: env.Space.Path, Scratch: env.Space.Scratch, Environ: o.Environ}
}

// planRecipe turns the plan of a command line into that of a recipe, if the
// line is one and what it acts on can be told in advance. Otherwise the line is
// undeclared, and why says so if it looked like a recipe.
func planRecipe(ctx context.Context, o Options, env Env, p Plan) (_ Plan, why string, ok bool) {
	r, ok := effect.Match(p.Subject.Commands)
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
	if c.Probe == nil {
		return Measured{}, nil
	}
	cmds, err := policy.Parse(line)
	if err != nil {
		return Measured{}, fmt.Errorf("measure %s: %w", c.Name, err)
	}
	r, ok := effect.Match(&cmds)
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
	if c.Probe == nil {
		return reach{}, nil
	}
	cmds, err := policy.Parse(line)
	if err != nil {
		return reach{}, err
	}
	r, ok := effect.Match(&cmds)
	if !ok || r.Name != c.Name {
		return reach{}, fmt.Errorf("the command line is no %s any more", c.Name)
	}
	does, err := r.Plan(ctx, recipePlace(o, env))
	if err != nil {
		return reach{}, err
	}
	if !maps.Equal(does.Contract.Params, c.Params) {
		return reach{}, errors.New("it would now act on " + does.Target + ", not on what was agreed to")
	}
	out := reach{writable: does.OutsideWrite}
	for _, name := range does.Env {
		v, ok := lookupEnv(o.Environ, name)
		if !ok || v == "" {
			continue
		}
		out.env = append(out.env, name+"="+v)
		if filepath.IsAbs(v) && isSocket(v) {
			out.sockets = append(out.sockets, v)
		}
	}
	for _, p := range does.Reveal {
		if o.Home == "" {
			break
		}
		abs := filepath.Join(o.Home, p)
		if _, err := os.Lstat(abs); err == nil {
			out.reveal = append(out.reveal, abs)
		}
	}
	return out, nil
}

func lookupEnv(environ []string, name string) (string, bool) {
	for _, kv := range slices.Backward(environ) {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			return v, true
		}
	}
	return "", false
}

func isSocket(p string) bool {
	st, err := os.Stat(p)
	return err == nil && st.Mode()&os.ModeSocket != 0
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

// httpContract is what a request promises. A key that the model did not give
// is left to the dispatch, since it is made from the effect's id.
func httpContract(a httpArgs) machine.Contract {
	c := effect.HTTP(a.Method, a.URL, a.KeyHeader)
	if c.Class == machine.ClassKeyed {
		c.Key = a.key()
	}
	return c
}
