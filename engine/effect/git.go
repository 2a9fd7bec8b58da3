package effect

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"pawl/engine/confine"
)

// Bounds of one look at the world.
const (
	// DefaultTimeout bounds one exchange with a remote.
	DefaultTimeout = 20 * time.Second
	// localTimeout bounds reading our own disk, which is slow only in trouble.
	localTimeout = 30 * time.Second
	maxOutput    = 1 << 20 // bytes of a git command that are read
	maxStderr    = 64 << 10
	drain        = 2 * time.Second // after a kill, for pipes that a stray child holds
)

// Place is where a recipe works, and how the outside is asked from there.
type Place struct {
	Dir     string        // working directory of the command line
	Scratch string        // holds throw-away repositories; "": the system's
	Environ []string      // of Pawl itself; nil: os.Environ
	Timeout time.Duration // of one exchange with a remote; 0: DefaultTimeout

	// For probes that are commands: the user's home directory, the level to run
	// at, as measured, and what is hidden, or stays readable although it lies in
	// what is hidden. A command runs at no level that was not measured.
	Home             string
	Level            confine.Level
	Hidden, Readable []string
}

func (p Place) timeout() time.Duration {
	if p.Timeout > 0 {
		return p.Timeout
	}
	return DefaultTimeout
}

// errTooMuch stops a command that prints more than is read.
var errTooMuch = errors.New("it answered with too much output")

// gitError is a git command that ended badly.
type gitError struct {
	code   int // -1 if it did not end by itself
	stderr string
	err    error
}

func (e *gitError) Error() string {
	if line := firstFatal(e.stderr); line != "" {
		return line
	}
	return e.err.Error()
}

func (e *gitError) Unwrap() error { return e.err }

// firstFatal is the line of git's messages that says what went wrong, without
// credentials.
func firstFatal(stderr string) string {
	var last string
	for line := range strings.Lines(stderr) {
		line = strings.TrimSpace(line)
		for _, p := range []string{"fatal: ", "error: ", "ERROR: "} {
			if rest, ok := strings.CutPrefix(line, p); ok {
				return hideInText(rest)
			}
		}
		if line != "" {
			last = line
		}
	}
	return hideInText(last)
}

// git runs one git command in dir and returns its output. No code of the
// repository runs: hooks, file system monitors, pagers and editors are off,
// nothing may ask for a password, and the process has no terminal. If gitDir is
// set, only that repository's configuration counts beside the operator's own.
func (p Place) git(ctx context.Context, dir, gitDir string, args ...string) (string, error) {
	full := append([]string{
		"-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "core.pager=cat",
		"-c", "gc.auto=0", "-c", "maintenance.auto=false", "-c", "safe.directory=*",
	}, args...)
	cmd := exec.CommandContext(ctx, "git", full...)
	cmd.Dir = dir
	cmd.Env = p.environ(gitDir)
	detach(cmd)
	cmd.WaitDelay = drain
	out := &limited{max: maxOutput, over: func() { _ = cmd.Cancel() }}
	msg := &limited{max: maxStderr}
	cmd.Stdout, cmd.Stderr = out, msg
	err := cmd.Run()
	switch {
	case out.full:
		return "", &gitError{code: -1, stderr: "", err: errTooMuch}
	case ctx.Err() != nil:
		return "", &gitError{code: -1, err: ctx.Err()}
	case err != nil:
		return "", &gitError{code: cmd.ProcessState.ExitCode(), stderr: msg.buf.String(), err: err}
	}
	return out.buf.String(), nil
}

// environ is Pawl's own environment without what would steer git elsewhere or
// let it ask a person.
func (p Place) environ(gitDir string) []string {
	base := p.Environ
	if base == nil {
		base = os.Environ()
	}
	var env []string
	for _, kv := range base {
		name, value, _ := strings.Cut(kv, "=")
		switch {
		case name == "GIT_SSH_COMMAND" && value != "":
			env = append(env, kv+sshOptions)
		case strings.HasPrefix(name, "GIT_") && !strings.HasPrefix(name, "GIT_SSL_"), name == "SSH_ASKPASS", name == "LC_ALL", name == "LANGUAGE", name == "DISPLAY", name == "WAYLAND_DISPLAY":
		default:
			env = append(env, kv)
		}
	}
	env = append(env,
		"LC_ALL=C", "GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=", "GCM_INTERACTIVE=never", "GIT_OPTIONAL_LOCKS=0",
		"GIT_ALLOW_PROTOCOL=file:git:http:https:ssh", "GIT_NO_LAZY_FETCH=1", "GIT_ADVICE=0",
	)
	if gitDir != "" {
		env = append(env, "GIT_DIR="+gitDir)
	}
	return env
}

// limited keeps the first max bytes and calls over, once, when there are more.
// The buffer is a field of its own: embedded, its ReadFrom would be used
// instead of Write and nothing would be limited.
type limited struct {
	buf  bytes.Buffer
	max  int
	full bool
	over func()
}

func (l *limited) Write(b []byte) (int, error) {
	room := l.max - l.buf.Len()
	if len(b) <= room {
		return l.buf.Write(b)
	}
	l.buf.Write(b[:max(room, 0)])
	if !l.full {
		l.full = true
		if l.over != nil {
			l.over()
		}
	}
	return len(b), nil
}

// scratchRepo makes a throw-away bare repository whose remote "probe" is url
// and which borrows the objects of the working directory's repository. The URL
// goes into a file of our own, not into a process list.
func (p Place) scratchRepo(ctx context.Context, url string) (dir string, remove func(), err error) {
	dir, err = os.MkdirTemp(p.Scratch, "pawl-look-")
	if err != nil {
		return "", nil, fmt.Errorf("make a scratch repository: %w", err)
	}
	remove = func() { _ = os.RemoveAll(dir) }
	if _, err := p.git(ctx, dir, "", "init", "-q", "--bare", "--template=", dir); err != nil {
		remove()
		return "", nil, fmt.Errorf("make a scratch repository: %w", err)
	}
	if objects := p.objects(ctx); objects != "" {
		if err := appendFile(filepath.Join(dir, "objects", "info", "alternates"), objects+"\n"); err != nil {
			remove()
			return "", nil, fmt.Errorf("make a scratch repository: %w", err)
		}
	}
	// The operator's own ssh command, if the configuration outside the workspace has one.
	ssh, err := p.git(ctx, dir, dir, "config", "--get", "core.sshCommand")
	if ssh = strings.TrimSpace(ssh); err != nil || ssh == "" {
		ssh = "ssh"
	}
	text := "[core]\n\tsshCommand = " + configValue(ssh+sshOptions) + "\n[remote \"probe\"]\n\turl = " + configValue(url) + "\n"
	if err := appendFile(filepath.Join(dir, "config"), text); err != nil {
		remove()
		return "", nil, fmt.Errorf("make a scratch repository: %w", err)
	}
	return dir, remove, nil
}

// objects is the object directory to borrow from, "" if there is none.
func (p Place) objects(ctx context.Context) string {
	if p.Dir == "" {
		return ""
	}
	out, err := p.git(ctx, p.Dir, "", "rev-parse", "--path-format=absolute", "--git-path", "objects")
	out = strings.TrimSuffix(out, "\n")
	if err != nil || strings.ContainsAny(out, "\n\"") {
		return ""
	}
	return out
}

// sshOptions keep ssh from asking anybody anything.
const sshOptions = " -oBatchMode=yes -oConnectTimeout=10"

// configValue quotes a value for a git configuration file.
func configValue(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s) + `"`
}

func appendFile(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}
