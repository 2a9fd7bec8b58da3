package workspace

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// git runs git commands in one setting. Its environment is complete: nothing of the caller's reaches git unless it is
// put there.
type git struct {
	dir  string
	env  []string
	opts []string // -c settings before the subcommand
	hold *os.File // inherited by git, so that a lock outlives us for as long as git runs
	free bool     // git may finish what it does when we are gone
}

// harmless keeps a repository's own configuration from running anything, whoever wrote it.
var harmless = []string{
	"core.hooksPath=/dev/null", "core.fsmonitor=false", "safe.directory=*", "gc.auto=0", "maintenance.auto=false",
	"submodule.recurse=false", "diff.ignoreSubmodules=all", "commit.gpgSign=false", "core.pager=cat", "core.editor=true",
	"core.askPass=", "credential.helper=", "protocol.allow=never", "protocol.file.allow=always",
}

func settings(kv ...string) []string {
	var out []string
	for _, s := range kv {
		out = append(out, "-c", s)
	}
	return out
}

// bare is an environment in which nobody's configuration but the repository's is read.
func bare() []string {
	return []string{
		"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "XDG_CONFIG_HOME=/nonexistent", "LC_ALL=C",
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0",
		"GIT_LITERAL_PATHSPECS=1", "GIT_NO_REPLACE_OBJECTS=1", "GIT_NO_LAZY_FETCH=1",
	}
}

// own is git as the user has it, less what steers it to other repositories: for looking at their checkout the way
// they see it, and for landing there, where their filters must apply.
func own() []string {
	env := slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, "GIT_") || strings.HasPrefix(kv, "LC_ALL=") })
	return append(env, "LC_ALL=C", "GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0", "GIT_LITERAL_PATHSPECS=1")
}

// userGit works in the user's checkout or repository.
func userGit(dir string) git { return git{dir: dir, env: own(), opts: settings(harmless...)} }

// userWrite changes the user's repository. What it starts is finished even if we die meanwhile, so that no lock of git's
// is left there, and hold keeps others of us waiting until then.
func userWrite(dir string, hold *os.File) git {
	g := userGit(dir)
	g.hold, g.free = hold, true
	return g
}

// cloneGit works in the private clone, and with its GitDir in a worktree of it. The common directory is named
// outright: the file that names it lies where commands can write.
func cloneGit(common, gitDir, tree string) git {
	env := append(bare(), "GIT_DIR="+gitDir, "GIT_COMMON_DIR="+common)
	if tree != "" {
		env = append(env, "GIT_WORK_TREE="+tree)
	} else {
		tree = common
	}
	return git{dir: tree, env: env, opts: settings(harmless...)}
}

// with returns g with more variables; a later value of one takes the place of an earlier.
func (g git) with(env ...string) git {
	g.env = slices.Clone(g.env)
	for _, kv := range env {
		name, _, _ := strings.Cut(kv, "=")
		g.env = append(withoutVar(g.env, name), kv)
	}
	return g
}

// run returns standard output. A failure is a *GitError, or the context's error.
func (g git) run(ctx context.Context, stdin []byte, args ...string) ([]byte, error) {
	out, _, err := g.both(ctx, stdin, args...)
	return out, err
}

func (g git) both(ctx context.Context, stdin []byte, args ...string) (stdout, stderr []byte, err error) {
	bin, err := exec.LookPath("git")
	if err != nil {
		return nil, nil, errNoGit
	}
	cmd := exec.CommandContext(ctx, bin, append(slices.Clone(g.opts), args...)...)
	if g.free {
		cmd = exec.Command(bin, append(slices.Clone(g.opts), args...)...)
	}
	cmd.Dir, cmd.Env = g.dir, g.env
	if stdin != nil {
		cmd.Stdin = bytes.NewReader(stdin)
	}
	if g.hold != nil {
		cmd.ExtraFiles = []*os.File{g.hold}
	}
	var o, e bytes.Buffer
	cmd.Stdout, cmd.Stderr = &o, &e
	if err := runBound(cmd, !g.free); err != nil {
		if ctx.Err() != nil && !g.free {
			return nil, nil, ctx.Err()
		}
		return o.Bytes(), e.Bytes(), &GitError{Args: args, Code: cmd.ProcessState.ExitCode(), Stderr: e.String(), Err: err}
	}
	return o.Bytes(), e.Bytes(), nil
}

var errNoGit = errors.New("git is not installed or not in PATH: install it, or name a folder without a repository")

// line runs git and returns its output without the line's end.
func (g git) line(ctx context.Context, args ...string) (string, error) {
	out, err := g.run(ctx, nil, args...)
	return strings.TrimSuffix(string(out), "\n"), err
}

// zero splits NUL-terminated output.
func zero(b []byte) []string {
	s := strings.TrimSuffix(string(b), "\x00")
	if s == "" {
		return nil
	}
	return strings.Split(s, "\x00")
}

func within(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, string(filepath.Separator))+string(filepath.Separator))
}
