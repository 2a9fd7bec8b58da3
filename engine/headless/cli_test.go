package headless

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"pawl/engine/confine"
)

// bePawl makes the test binary act as pawl, so that tests can start, stop and
// kill real processes without building another binary.
const bePawl = "PAWL_TEST_BE_PAWL"

// init stands in for main in processes that tests start: it must not get as far as the tests.
func init() {
	confine.Main() // boxes are started by running this binary again
	if os.Getenv(bePawl) != "" {
		os.Exit(actAsPawl())
	}
	if job := os.Getenv(helperJob); job != "" {
		os.Exit(help(job))
	}
}

func actAsPawl() int {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	return Execute(context.Background(), Options{
		Args: os.Args[1:], In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Getenv: os.Getenv, Now: time.Now, Signals: signals,
	})
}

// pawlCmd is the command line of one test's operator.
type pawlCmd struct {
	t      *testing.T
	dir    string // holds everything
	ledger string
	env    map[string]string // beside HOME
}

func newPawl(t *testing.T) *pawlCmd {
	t.Helper()
	dir := t.TempDir()
	return &pawlCmd{t: t, dir: dir, ledger: filepath.Join(dir, "state", "ledger.db")}
}

// said is what one command line printed, and its exit code.
type said struct {
	t        *testing.T
	args     string
	code     int
	out, err string
}

// do gives a command line in this process.
func (p *pawlCmd) do(args ...string) said {
	p.t.Helper()
	return p.doWith(Options{}, args...)
}

func (p *pawlCmd) doWith(o Options, args ...string) said {
	p.t.Helper()
	var out, errs bytes.Buffer
	o.Args = append([]string{"--ledger", p.ledger}, args...)
	o.Out, o.Err, o.Getenv = &out, &errs, p.getenv
	code := Execute(p.t.Context(), o)
	return said{p.t, strings.Join(args, " "), code, out.String(), errs.String()}
}

func (p *pawlCmd) getenv(name string) string {
	if name == "HOME" {
		return p.dir
	}
	return p.env[name]
}

// process prepares the same command line as a process of its own.
func (p *pawlCmd) process(env []string, args ...string) *exec.Cmd {
	p.t.Helper()
	cmd := exec.CommandContext(p.t.Context(), os.Args[0], append([]string{"--ledger", p.ledger}, args...)...)
	cmd.Env = append(append(os.Environ(), bePawl+"=1"), env...)
	return cmd
}

// spawn runs a command line as a process of its own.
func (p *pawlCmd) spawn(env []string, args ...string) said {
	p.t.Helper()
	var out, errs bytes.Buffer
	cmd := p.process(env, args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		p.t.Fatalf("%v: %v", args, err)
	}
	return said{p.t, strings.Join(args, " "), cmd.ProcessState.ExitCode(), out.String(), errs.String()}
}

// want fails the test unless the command ended with a code.
func (s said) want(code int) said {
	s.t.Helper()
	if s.code != code {
		s.t.Fatalf("pawl %s: exit code %d, want %d\nstdout:\n%s\nstderr:\n%s", s.args, s.code, code, s.out, s.err)
	}
	return s
}

// has fails the test unless everything was printed that is named.
func (s said) has(texts ...string) said {
	s.t.Helper()
	for _, text := range texts {
		if !strings.Contains(s.out+s.err, text) {
			s.t.Fatalf("pawl %s: does not say %q\nstdout:\n%s\nstderr:\n%s", s.args, text, s.out, s.err)
		}
	}
	return s
}

// lacks fails the test if something was printed that must not be.
func (s said) lacks(texts ...string) said {
	s.t.Helper()
	for _, text := range texts {
		if strings.Contains(s.out+s.err, text) {
			s.t.Fatalf("pawl %s: says %q\nstdout:\n%s\nstderr:\n%s", s.args, text, s.out, s.err)
		}
	}
	return s
}

// object reads standard output as one JSON object.
func (s said) object() map[string]any {
	s.t.Helper()
	lines := s.objects()
	if len(lines) != 1 {
		s.t.Fatalf("pawl %s: %d lines of JSON, want one:\n%s", s.args, len(lines), s.out)
	}
	return lines[0]
}

// objects reads standard output as one JSON object a line.
func (s said) objects() []map[string]any {
	s.t.Helper()
	var all []map[string]any
	for l := range strings.Lines(s.out) {
		var v map[string]any
		if err := json.Unmarshal([]byte(l), &v); err != nil {
			s.t.Fatalf("pawl %s: not JSON: %v\n%s", s.args, err, l)
		}
		all = append(all, v)
	}
	return all
}

// threeParts checks that an error says what, why and what next, as text.
func (s said) threeParts() said {
	s.t.Helper()
	return s.has("pawl: ", "\n  why:  ", "\n  next: ")
}

// write makes a file below the test's directory and returns its path.
func (p *pawlCmd) write(name, text string) string {
	p.t.Helper()
	path := filepath.Join(p.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
	return path
}

// repo is a folder to work on; without git it needs no history.
func (p *pawlCmd) repo() string {
	p.t.Helper()
	p.write("project/notes.txt", "first line\n")
	return filepath.Join(p.dir, "project")
}

// start runs a script without a screen and returns its run's id.
func (p *pawlCmd) start(code int, script string, more ...string) (string, said) {
	p.t.Helper()
	args := append([]string{"run", "do what the script says", "--repo", p.repo(), "--script", p.write("script.toml", script), "--json"}, more...)
	s := p.do(args...).want(code)
	id, _ := s.object()["id"].(string)
	return id, s
}

// The scripts of these tests.
const (
	finishes = `
name = "finishes"
[[step]]
say = "There is nothing to do."
[[step.call]]
tool = "finish"
args = { summary = "Nothing was to be done." }
`
	asks = `
name = "asks"
[[step]]
say = "Two things could be meant."
[[step.call]]
tool = "ask_operator"
args = { question = "Which one?", choices = ["left", "right"] }
[[step]]
say = "As you say."
[[step.call]]
tool = "finish"
args = { summary = "It was decided." }
`
	posts = `
name = "posts"
[[step]]
say = "I open the ticket."
[[step.call]]
tool = "http_request"
args = { method = "POST", url = "{{env.WORLD}}/tickets", headers = { Content-Type = "application/json" }, body = '{"title":"flaky","body":"it is"}' }
[[step]]
say = "The ticket is there."
[[step.call]]
tool = "finish"
args = { summary = "The ticket was opened." }
`
)
