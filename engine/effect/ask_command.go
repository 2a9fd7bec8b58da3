package effect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"pawl/engine/confine"
	"pawl/engine/machine"
	"pawl/engine/policy"
)

// maxSaid is how much a look may print. What prints more is stopped: nobody
// could say what it means.
const maxSaid = 1 << 20

// lookEvery is how often the size of a look's output is checked.
const lookEvery = 25 * time.Millisecond

// askCommand runs a probe's command once. It may read what the effect's own
// command could read and change nothing but a directory that is thrown away,
// where the machine can hold it to that. It has no terminal and no input, and
// it ends with all that it started.
func (p Place) askCommand(ctx context.Context, c machine.Contract, limit time.Duration) Finding {
	what := "`" + clipText(policy.Join(c.Probe.Command), 120) + "`"
	if p.Level == confine.LevelUnknown {
		return inconclusive("the look was not taken: how far commands can be confined here was not measured")
	}
	dir, err := os.MkdirTemp(p.Scratch, "pawl-look-")
	if err != nil {
		return inconclusive("the look was not taken: " + plainError(err))
	}
	defer func() { _ = os.RemoveAll(dir) }()
	spec, err := p.lookBox(c, dir)
	if err != nil {
		return inconclusive("the look was not taken: " + plainError(err))
	}
	if !findable(spec.Argv[0], spec.Dir, spec.Env) {
		return inconclusive(fmt.Sprintf("the look was not taken: there is no program %s here", spec.Argv[0]))
	}
	code, end := runLook(ctx, spec, limit)
	said := readSaid(spec.Output)
	f := end
	if end.Verdict == machine.VerdictUnknown {
		f = judge(c.Probe.Answers, what, code, said)
	} else {
		f.Text = what + " " + end.Text
	}
	f.Text = hideInText(f.Text)
	f.Detail = hideInText(detail(policy.Join(c.Probe.Command)+" ("+spec.Level.String()+")", code, said))
	return f
}

// runLook runs the command to its end. A finding without a verdict means that
// the code is an answer.
func runLook(ctx context.Context, spec confine.Spec, limit time.Duration) (code string, f Finding) {
	ctx, stop := context.WithTimeout(ctx, limit)
	defer stop()
	proc, err := confine.Start(ctx, spec)
	if err != nil {
		return "", inconclusive("was not asked: " + err.Error())
	}
	if err := proc.Open(); err != nil {
		proc.Kill()
		_, _ = proc.Wait(context.WithoutCancel(ctx)) // nothing of it ran; bounded by the package
		return "", inconclusive("was not asked: " + err.Error())
	}
	tooMuch := watchSize(ctx, spec.Output, stop)
	e, err := proc.Wait(ctx)
	stopped := ctx.Err()
	stop()
	var nr *confine.NotRunError
	switch {
	case <-tooMuch:
		return "", inconclusive(fmt.Sprintf("printed more than %d KiB and was stopped", maxSaid>>10))
	case errors.As(err, &nr):
		return "", inconclusive("was not asked: " + nr.Err.Error())
	case errors.Is(stopped, context.DeadlineExceeded) || e.TimedOut && !errors.Is(stopped, context.Canceled):
		return "", inconclusive(fmt.Sprintf("did not answer within %v", limit))
	case e.TimedOut:
		return "", inconclusive("was called off")
	case err != nil:
		return "", inconclusive("gave no answer: " + err.Error())
	case e.Signal != "":
		return e.Signal, inconclusive("was ended by " + e.Signal)
	}
	return strconv.Itoa(e.Code), Finding{}
}

// watchSize stops a look that prints too much. The channel says whether it did,
// once, after ctx has ended.
func watchSize(ctx context.Context, path string, stop func()) <-chan bool {
	out := make(chan bool, 1)
	go func() {
		tick := time.NewTicker(lookEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				st, err := os.Stat(path)
				out <- err == nil && st.Size() > maxSaid
				return
			case <-tick.C:
				if st, err := os.Stat(path); err == nil && st.Size() > maxSaid {
					stop()
				}
			}
		}
	}()
	return out
}

func readSaid(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	b, err := io.ReadAll(io.LimitReader(f, maxSaid))
	if err != nil {
		return ""
	}
	return string(b)
}

// lookBox is what a look's command may touch: everything to read that the
// effect's own command may read, nothing of it to write.
func (p Place) lookBox(c machine.Contract, dir string) (confine.Spec, error) {
	home := p.Home
	if home == "" {
		home = dir // of a user who has none
	}
	tools, err := confine.Defaults(p.Dir, dir, home, p.environOrOwn())
	if err != nil {
		return confine.Spec{}, err
	}
	reach := Reach(c.Needs, home, p.environOrOwn())
	tools.Reveal(reach.Reveal...)
	tools.Writable = slices.DeleteFunc(tools.Writable, func(w string) bool { return w == p.Dir })
	s := confine.Spec{
		Argv: c.Probe.Command, Dir: p.Dir, Network: c.Probe.Network, Sockets: reach.Sockets, Level: p.Level,
		Readable: slices.Concat(p.Readable, reach.Reveal, []string{p.Dir}), Hidden: slices.Clone(p.Hidden),
		Output: filepath.Join(dir, "said"),
	}
	tools.Apply(&s)
	// Nothing may wait for a person, and no editor, pager or browser is wanted.
	s.Env = append(s.Env, reach.Env...)
	s.Env = append(s.Env, "LC_ALL=C", "CI=true", "GIT_TERMINAL_PROMPT=0", "GH_PROMPT_DISABLED=1", "AWS_PAGER=", "BROWSER=false", "PWD="+p.Dir)
	s.Env = lastWins(s.Env)
	return s, nil
}

func (p Place) environOrOwn() []string {
	if p.Environ == nil {
		return os.Environ()
	}
	return p.Environ
}

// Reached is what Needs come to on this machine.
type Reached struct {
	Env     []string // NAME=value, of those that are set
	Reveal  []string // absolute paths that are there
	Sockets []string
}

// Reach looks up what a contract needs. A variable that names a socket brings
// the socket along.
func Reach(n *machine.Needs, home string, environ []string) Reached {
	var r Reached
	if n == nil {
		return r
	}
	r.Sockets = slices.Clone(n.Sockets)
	for _, name := range n.Env {
		for _, kv := range slices.Backward(environ) {
			v, ok := strings.CutPrefix(kv, name+"=")
			if !ok {
				continue
			}
			if v != "" {
				r.Env = append(r.Env, kv)
				if st, err := os.Stat(v); filepath.IsAbs(v) && err == nil && st.Mode()&os.ModeSocket != 0 {
					r.Sockets = append(r.Sockets, v)
				}
			}
			break
		}
	}
	for _, p := range n.Reveal {
		if home == "" {
			break
		}
		abs := filepath.Join(home, p)
		if _, err := os.Lstat(abs); err == nil {
			r.Reveal = append(r.Reveal, abs)
		}
	}
	r.Sockets = slices.DeleteFunc(r.Sockets, func(s string) bool {
		st, err := os.Stat(s)
		return err != nil || st.Mode()&os.ModeSocket == 0
	})
	return r
}

// findable reports whether a program can be started by its name.
func findable(name, dir string, environ []string) bool {
	runnable := func(p string) bool {
		st, err := os.Stat(p)
		return err == nil && st.Mode().IsRegular() && st.Mode()&0o111 != 0
	}
	if strings.Contains(name, "/") {
		if !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		return runnable(name)
	}
	for _, kv := range slices.Backward(environ) {
		if list, ok := strings.CutPrefix(kv, "PATH="); ok {
			return slices.ContainsFunc(filepath.SplitList(list), func(d string) bool { return runnable(filepath.Join(d, name)) })
		}
	}
	return false
}

func lastWins(environ []string) []string {
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

func plainError(err error) string {
	var pe *os.PathError
	if errors.As(err, &pe) {
		return pe.Op + ": " + pe.Err.Error()
	}
	return err.Error()
}
