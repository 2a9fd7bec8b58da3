package tool

import (
	"context"
	"os/exec"
	"slices"
	"strings"
	"time"

	"pawl/engine/confine"
)

// boxFor describes what one command may touch.
func boxFor(ctx context.Context, o Options, env Env, c Call, r lineRun) (confine.Spec, error) {
	output, err := outputFile(env, c)
	if err != nil {
		return confine.Spec{}, err
	}
	extra, err := recipeReach(ctx, o, env, c.Contract, r.line)
	if err != nil {
		return confine.Spec{}, err
	}
	writable, protected := env.Manager.Confinement(env.Space)
	sh := shellPath()
	s := confine.Spec{
		Argv:     []string{sh, "-c", r.line},
		Dir:      env.Space.Path,
		Writable: writable, Protected: protected,
		Network: r.network,
		Output:  output,
		Level:   env.Level,
	}
	s.Writable = append(s.Writable, extra.writable...)
	s.Readable = append(s.Readable, extra.reveal...)
	s.Sockets = append(s.Sockets, extra.sockets...)
	s.Env = append(s.Env, extra.env...)
	s.Env = append(s.Env, identityEnv(env)...)
	s.Env = append(s.Env, confine.MarkerEnv+"="+string(c.Effect), "PWD="+env.Space.Path)
	return s, nil
}

// identityEnv names the author of commits where the user has not configured
// one. Configured names are git's to read.
func identityEnv(env Env) []string {
	if env.Space.Base == "" && env.Space.GitDir == "" {
		return nil
	}
	ctx, stop := context.WithTimeout(context.Background(), 5*time.Second)
	defer stop()
	cmd := exec.CommandContext(ctx, "git", "config", "--get-regexp", `^user\.(name|email)$`)
	cmd.Dir = env.Space.Path
	out, err := cmd.Output()
	_ = err // 1: nothing is configured
	has := func(key string) bool {
		return slices.ContainsFunc(strings.Split(string(out), "\n"), func(l string) bool { return strings.HasPrefix(l, key+" ") })
	}
	if has("user.name") && has("user.email") {
		return nil
	}
	name, mail := "Pawl "+string(env.Run), "pawl@localhost"
	return []string{
		"GIT_AUTHOR_NAME=" + name, "GIT_AUTHOR_EMAIL=" + mail,
		"GIT_COMMITTER_NAME=" + name, "GIT_COMMITTER_EMAIL=" + mail,
	}
}
