package tool

import (
	"context"
	"os/exec"
	"slices"
	"strings"
	"time"

	"pawl/engine/confine"
)

// boxFor describes what one command may touch: its workspace and the run's
// scratch directory to write, what the user may read but for credentials and
// Pawl's own state, and what its recipe adds.
func boxFor(ctx context.Context, o Options, env Env, c Call, r lineRun) (confine.Spec, error) {
	output, err := outputFile(env, c)
	if err != nil {
		return confine.Spec{}, err
	}
	extra, err := recipeReach(ctx, o, env, c.Contract, r.line)
	if err != nil {
		return confine.Spec{}, err
	}
	tools, err := confine.Defaults(env.Space.Path, env.Space.Scratch, o.Home, o.Environ)
	if err != nil {
		return confine.Spec{}, err
	}
	tools.Reveal(extra.reveal...)
	writable, protected := env.Manager.Confinement(env.Space)
	s := confine.Spec{
		Argv:      []string{shellPath(), "-c", r.line},
		Dir:       env.Space.Path,
		Writable:  slices.Concat(writable, extra.writable),
		Protected: protected,
		Readable:  slices.Clone(extra.reveal),
		Hidden:    slices.Clone(o.Hidden),
		Sockets:   extra.sockets,
		Network:   r.network,
		Output:    output,
		Level:     env.Level,
	}
	for _, dir := range []string{env.Space.CommonDir, env.Space.GitDir} {
		if dir != "" && !slices.Contains(s.Writable, dir) && !slices.Contains(s.Readable, dir) {
			s.Readable = append(s.Readable, dir) // it may lie in what is hidden
		}
	}
	tools.Apply(&s)
	slices.Sort(s.Writable)
	s.Writable = slices.Compact(s.Writable)
	s.Env = lastOf(slices.Concat(s.Env, extra.env, identityEnv(ctx, env, tools.Env),
		[]string{confine.MarkerEnv + "=" + string(c.Effect), "PWD=" + env.Space.Path}))
	return s, nil
}

// lastOf keeps the last value of each variable: which of two a program takes is
// its own affair.
func lastOf(environ []string) []string {
	var out []string
	seen := map[string]bool{}
	for _, kv := range slices.Backward(environ) {
		name, _, _ := strings.Cut(kv, "=")
		if !seen[name] {
			seen[name] = true
			out = append(out, kv)
		}
	}
	slices.Reverse(out)
	return out
}

// identityEnv names the author of commits where the user has not configured
// one. A configured name is git's to read, and stays the repository's affair.
// The question is asked in the environment that the command will have.
func identityEnv(ctx context.Context, env Env, environ []string) []string {
	if env.Space.GitDir == "" {
		return nil
	}
	ctx, stop := context.WithTimeout(ctx, 5*time.Second)
	defer stop()
	cmd := exec.CommandContext(ctx, "git", "config", "--get-regexp", `^user\.(name|email)$`)
	cmd.Dir = env.Space.Path
	cmd.Env = environ
	cmd.WaitDelay = time.Second
	out, _ := cmd.Output() // ends with 1 if nothing is configured
	has := func(key string) bool {
		return slices.ContainsFunc(strings.Split(string(out), "\n"), func(l string) bool { return strings.HasPrefix(l, key+" ") })
	}
	var set []string
	for _, v := range []struct{ key, env, value string }{
		{"user.name", "NAME", "Pawl " + string(env.Run)},
		{"user.email", "EMAIL", "pawl@localhost"},
	} {
		if !has(v.key) {
			set = append(set, "GIT_AUTHOR_"+v.env+"="+v.value, "GIT_COMMITTER_"+v.env+"="+v.value)
		}
	}
	return set
}
