package tool

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"pawl/engine/confine"
	"pawl/engine/machine"
)

// boxFor describes what one command may touch: its workspace and the run's
// scratch directory to write, what the user may read but for credentials and
// Pawl's own state, and what its recipe adds.
func boxFor(ctx context.Context, o Options, env Env, c Call, r lineRun) (confine.Spec, error) {
	output, err := outputFile(env, c)
	if err != nil {
		return confine.Spec{}, err
	}
	extra := needed(o, c.Contract.Needs)
	if !r.own {
		extra, err = recipeReach(ctx, o, env, c.Contract, r.line)
	}
	if err != nil {
		return confine.Spec{}, err
	}
	tools, err := confine.Defaults(env.Space.Path, env.Space.Scratch, o.Home, o.Environ)
	if err != nil {
		return confine.Spec{}, err
	}
	tools.Reveal(extra.reveal...)
	writable, protected := env.Manager.Confinement(env.Space)
	visible := readable(env, extra.reveal)
	if c.Contract.Class == machine.ClassRead { // it promised to change nothing
		writable, protected, visible = nil, nil, append(visible, env.Space.Path)
		tools.Writable = slices.DeleteFunc(tools.Writable, func(w string) bool { return w == env.Space.Path })
	}
	s := confine.Spec{
		Argv:      []string{shellPath(), "-c", r.line},
		Dir:       env.Space.Path,
		Writable:  slices.Concat(writable, extra.writable),
		Protected: protected,
		Readable:  visible,
		Hidden:    slices.Clone(env.Hidden),
		Sockets:   extra.sockets,
		Network:   r.network,
		Output:    output,
		Level:     env.Level,
	}
	tools.Apply(&s)
	if r.network {
		s.Env = append(s.Env, proxyEnv(o.Environ)...)
	}
	slices.Sort(s.Writable)
	s.Writable = slices.Compact(s.Writable)
	s.Env = lastOf(slices.Concat(s.Env, extra.env, r.env, identityEnv(ctx, env, tools.Env),
		[]string{confine.MarkerEnv + "=" + string(c.Effect), "PWD=" + env.Space.Path}))
	return s, nil
}

// readable lists what a command must see although it may lie in what is hidden
// or masked: of the repository its objects, borrowed ones included.
func readable(env Env, reveal []string) []string {
	out := slices.Concat(env.Manager.Visible(env.Space), reveal)
	if env.Space.CommonDir != "" {
		out = append(out, borrowed(filepath.Join(env.Space.CommonDir, "objects"), maxBorrow)...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// maxBorrow is how many repositories deep git follows borrowed objects.
const maxBorrow = 5

// borrowed lists the object directories that a repository borrows from, and
// those that they borrow from.
func borrowed(objects string, depth int) []string {
	b, err := os.ReadFile(filepath.Join(objects, "info", "alternates"))
	if err != nil || depth == 0 {
		return nil
	}
	var out []string
	for line := range strings.Lines(string(b)) {
		dir := strings.TrimRight(line, "\r\n")
		if dir == "" || strings.HasPrefix(dir, "#") || strings.HasPrefix(dir, `"`) {
			continue
		}
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(objects, dir)
		}
		if st, err := os.Stat(dir); err == nil && st.IsDir() {
			out = append(append(out, dir), borrowed(dir, depth-1)...)
		}
	}
	return out
}

// proxyEnv is how the user's programs reach the network: proxies, but none that
// carries a login.
func proxyEnv(environ []string) []string {
	var out []string
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy"} {
		if v, ok := lookupEnv(environ, name); ok && !strings.Contains(v, "@") {
			out = append(out, name+"="+v)
		}
	}
	return out
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

// identityEnv names the author of commits where git would find none: the user
// as their own repository knows them, or the run. A name that git finds by
// itself stays the repository's affair. The question is asked in the
// environment that the command will have.
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
	name, email := env.Space.Name, env.Space.Email
	if name == "" || email == "" {
		name, email = "Pawl "+string(env.Run), "pawl@localhost"
	}
	var set []string
	for _, v := range []struct{ key, env, value string }{
		{"user.name", "NAME", name},
		{"user.email", "EMAIL", email},
	} {
		if !has(v.key) {
			set = append(set, "GIT_AUTHOR_"+v.env+"="+v.value, "GIT_COMMITTER_"+v.env+"="+v.value)
		}
	}
	return set
}
