package effect

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pawl/engine/confine"
	"pawl/engine/machine"
)

// yard is a workspace with programs that act as probes.
type yard struct {
	t  *testing.T
	at Place
}

func newYard(t *testing.T, level confine.Level) *yard {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	y := &yard{t: t, at: Place{
		Dir: filepath.Join(dir, "work"), Scratch: filepath.Join(dir, "scratch"), Home: filepath.Join(dir, "home"), Level: level,
		Environ: []string{"PATH=" + os.Getenv("PATH"), "TOKEN=t0p", "OTHER=x"}, Hidden: []string{filepath.Join(dir, "state")},
	}}
	for _, d := range []string{y.at.Dir, y.at.Scratch, filepath.Join(y.at.Home, ".secret"), filepath.Join(dir, "state")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []string{filepath.Join(y.at.Home, ".secret", "key"), filepath.Join(dir, "state", "ledger"), filepath.Join(y.at.Dir, "kept")} {
		if err := os.WriteFile(f, []byte("content\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		if left, err := os.ReadDir(y.at.Scratch); err != nil || len(left) > 0 {
			t.Errorf("left behind: %v %v", left, err)
		}
	})
	return y
}

// contract is one whose probe runs a shell script: 0 with "there" means
// happened, 1 means not.
func (y *yard) contract(script string) machine.Contract {
	return machine.Contract{Name: "x", Class: machine.ClassProbeable, Sender: machine.SenderCommand, Probe: &machine.Probe{
		Kind: ProbeCommand, Command: []string{"sh", "-c", script},
		Answers: []machine.Answer{
			{Verdict: machine.VerdictHappened, Codes: []string{"0"}, Match: "(?m)^there$"},
			{Verdict: machine.VerdictNotHappened, Codes: []string{"1"}},
			{Verdict: machine.VerdictConflict, Codes: []string{"3"}},
		},
	}}
}

func (y *yard) ask(c machine.Contract) Finding {
	y.t.Helper()
	return Probe(y.t.Context(), Request{Contract: c, Place: y.at})
}

func (y *yard) want(f Finding, v machine.Verdict, texts ...string) {
	y.t.Helper()
	if f.Verdict != v {
		y.t.Errorf("%v (%s), want %v\n%s", f.Verdict, f.Text, v, f.Detail)
	}
	for _, w := range texts {
		if !strings.Contains(f.Text, w) {
			y.t.Errorf("%q is not in %q\n%s", w, f.Text, f.Detail)
		}
	}
}

func TestCommandProbeAnswers(t *testing.T) {
	atLevels(t, func(t *testing.T, level confine.Level) {
		for _, tt := range []struct {
			name, script string
			want         machine.Verdict
			text         string
		}{
			{"it is there", "echo there", machine.VerdictHappened, "says that it is there (0)"},
			{"it is not", "exit 1", machine.VerdictNotHappened, "not there (1)"},
			{"something else is", "exit 3", machine.VerdictConflict, "something else"},
			{"success that says nothing", "echo hello", machine.VerdictInconclusive, "answered with 0"},
			{"a code without a meaning", "echo boom; exit 77", machine.VerdictInconclusive, "answered with 77"},
			{"no login", "echo 'fatal: Authentication failed for x' >&2; exit 128", machine.VerdictInconclusive, "wants a password or a login"},
			{"a password on the terminal", "read -r p </dev/tty && echo there", machine.VerdictInconclusive, "answered with"},
			{"a password on its input", "printf 'Password: '; read -r p && echo there; exit 9", machine.VerdictInconclusive, "wants a password"},
			{"killed", "kill -9 $$", machine.VerdictInconclusive, "was ended by"},
			{"a program that is missing within", "no-such-program-here", machine.VerdictInconclusive, "answered with 127"},
		} {
			t.Run(tt.name, func(t *testing.T) {
				y := newYard(t, level)
				f := y.ask(y.contract(tt.script))
				y.want(f, tt.want, tt.text)
				if !strings.Contains(f.Detail, "code ") {
					t.Errorf("no detail: %q", f.Detail)
				}
			})
		}
	})
}

func TestCommandProbeIsBounded(t *testing.T) {
	atLevels(t, func(t *testing.T, level confine.Level) {
		t.Run("hangs", func(t *testing.T) {
			y := newYard(t, level)
			c := y.contract("echo there; while :; do sleep 1000; done")
			c.Probe.Timeout = (500 * time.Millisecond).Microseconds()
			y.want(y.ask(c), machine.VerdictInconclusive, "did not answer within 500ms")
		})
		t.Run("prints megabytes", func(t *testing.T) {
			y := newYard(t, level)
			f := y.ask(y.contract("echo there; yes there | head -c 20000000; sleep 1000"))
			y.want(f, machine.VerdictInconclusive, "printed more than 1024 KiB")
			if len(f.Detail) > 20<<10 {
				t.Errorf("the detail has %d bytes", len(f.Detail))
			}
		})
		t.Run("prints megabytes and is done", func(t *testing.T) {
			y := newYard(t, level)
			y.want(y.ask(y.contract("echo there; yes there | head -c 3000000")), machine.VerdictInconclusive, "printed more than")
		})
		t.Run("is called off", func(t *testing.T) {
			y := newYard(t, level)
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			y.want(Probe(ctx, Request{Contract: y.contract("sleep 1000"), Place: y.at}), machine.VerdictInconclusive)
		})
	})
}

func TestCommandProbeThatCannotBeAsked(t *testing.T) {
	y := newYard(t, confine.LevelNone)
	c := y.contract("")
	c.Probe.Command = []string{"no-such-program-here", "x"}
	y.want(y.ask(c), machine.VerdictInconclusive, "there is no program no-such-program-here here")
	c.Probe.Command = []string{"./kept"} // not executable
	y.want(y.ask(c), machine.VerdictInconclusive, "there is no program ./kept")
	y.at.Level = confine.LevelUnknown
	y.want(y.ask(y.contract("echo there")), machine.VerdictInconclusive, "was not measured")
	y.at.Level = confine.LevelNone
	c = y.contract("echo there")
	c.Probe.Kind = "telepathy"
	y.want(y.ask(c), machine.VerdictInconclusive, "telepathy")
	c.Probe = nil
	y.want(y.ask(c), machine.VerdictInconclusive, "no way to look")
	c = y.contract("echo there")
	c.Probe.Answers[0].Match = "("
	y.want(y.ask(c), machine.VerdictInconclusive, "cannot be read")
}

// A probe reads; where the machine can hold it to that, it changes nothing, and
// it sees no more than its contract names.
func TestCommandProbeOnlyLooks(t *testing.T) {
	if r := measured(); r.Level != confine.LevelSealed {
		t.Skipf("this machine cannot seal commands: %s", strings.Join(r.Missing, "; "))
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	for _, tt := range []struct {
		name, script string
		want         machine.Verdict
	}{
		{"reads the workspace", "grep -q content kept && echo there", machine.VerdictHappened},
		{"writes to the workspace", "echo x > new 2>/dev/null && echo there; exit 1", machine.VerdictNotHappened},
		{"changes a file", "echo x >> kept || exit 1; echo there", machine.VerdictNotHappened},
		{"has a place to write", "echo x > \"$TMPDIR/a\" && echo there", machine.VerdictHappened},
		{"sees Pawl's state", "cat ../state/ledger 2>/dev/null || exit 1; echo there", machine.VerdictNotHappened},
		{"has a variable that is not named", "[ -n \"$OTHER$TOKEN\" ] || exit 1; echo there", machine.VerdictNotHappened},
		{"has the network", "(exec 3<>/dev/tcp/127.0.0.1/" + port + ") 2>/dev/null || exit 1; echo there", machine.VerdictNotHappened},
	} {
		y := newYard(t, confine.LevelSealed)
		c := y.contract(tt.script)
		c.Probe.Command[0] = "bash"
		f := y.ask(c)
		if f.Verdict != tt.want {
			t.Errorf("%s: %v\n%s", tt.name, f.Verdict, f.Detail)
		}
		if _, err := os.Stat(filepath.Join(y.at.Dir, "new")); err == nil {
			t.Errorf("%s: a file was made", tt.name)
		}
	}
	y := newYard(t, confine.LevelSealed)
	c := y.contract(`[ "$TOKEN" = t0p ] && [ -z "$OTHER" ] && grep -q content ~/.secret/key && (exec 3<>/dev/tcp/127.0.0.1/` + port + `) && echo there`)
	c.Probe.Command[0], c.Probe.Network = "bash", true
	c.Needs = &machine.Needs{Env: []string{"TOKEN", "UNSET"}, Reveal: []string{".secret", ".none"}}
	y.want(y.ask(c), machine.VerdictHappened)
}

// What was there before says nothing about who put it there.
func TestBaseline(t *testing.T) {
	y := newYard(t, confine.LevelNone)
	const script = "[ -e flag ] && echo there && exit 0; [ -e odd ] && exit 9; exit 1"
	flag := func(name string, on bool) {
		t.Helper()
		p := filepath.Join(y.at.Dir, name)
		_ = os.Remove(p)
		if on {
			if err := os.WriteFile(p, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	c := y.contract(script)
	c.Probe.Baseline = true
	for _, tt := range []struct {
		before, after string // a flag, "" for none, "-" for no look
		want          machine.Verdict
		text          string
	}{
		{"", "flag", machine.VerdictHappened, "is there"},
		{"", "", machine.VerdictNotHappened, "not there"},
		{"flag", "flag", machine.VerdictInconclusive, "somebody else's"},
		{"flag", "", machine.VerdictConflict, "something else has changed it"},
		{"odd", "flag", machine.VerdictInconclusive, "is not known: "},
		{"odd", "", machine.VerdictNotHappened, ""},
		{"-", "flag", machine.VerdictInconclusive, "nobody looked"},
	} {
		var params map[string]string
		set := func(name string) {
			flag("flag", name == "flag")
			flag("odd", name == "odd")
		}
		if tt.before != "-" {
			set(tt.before)
			var err error
			if params, err = Measure(t.Context(), y.at, c); err != nil {
				t.Fatal(err)
			}
		}
		set(tt.after)
		f := Probe(t.Context(), Request{Contract: c, Params: params, Place: y.at})
		if f.Verdict != tt.want || !strings.Contains(f.Text, tt.text) {
			t.Errorf("before %q, after %q: %v %q", tt.before, tt.after, f.Verdict, f.Text)
		}
	}
	c.Probe.Baseline = false
	if p, err := Measure(t.Context(), y.at, c); p != nil || err != nil {
		t.Errorf("a look that nobody asked for: %v %v", p, err)
	}
	flag("flag", true)
	y.want(y.ask(c), machine.VerdictHappened)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c.Probe.Baseline = true
	if _, err := Measure(ctx, y.at, c); err == nil {
		t.Error("a look that was called off counts")
	}
}

// A look about a file that has changed since would ask about something else.
func TestProbeOfChangedFiles(t *testing.T) {
	at := folder(t)
	at.Level, at.Scratch = confine.LevelNone, t.TempDir()
	r, _ := lookUp(t, "kubectl apply -f k8s/app.yaml")
	p, err := r.Plan(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Files) != 1 || !strings.HasSuffix(p.Files[0], "k8s/app.yaml") {
		t.Errorf("files %q", p.Files)
	}
	p.Contract.Probe.Command = []string{"true"}
	if f := Probe(t.Context(), Request{Contract: p.Contract, Place: at}); f.Verdict != machine.VerdictHappened {
		t.Errorf("%+v", f)
	}
	if _, err := r.Measure(t.Context(), at, p.Contract); err != nil {
		t.Errorf("unchanged: %v", err)
	}
	if err := os.WriteFile(filepath.Join(at.Dir, "k8s/app.yaml"), []byte("kind: Other\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	f := Probe(t.Context(), Request{Contract: p.Contract, Place: at})
	if f.Verdict != machine.VerdictInconclusive || !strings.Contains(f.Text, "k8s/app.yaml is not what it was") {
		t.Errorf("%+v", f)
	}
	if _, err := r.Measure(t.Context(), at, p.Contract); err == nil || !strings.Contains(err.Error(), "was not sent") {
		t.Errorf("a changed file is sent: %v", err)
	}
}
