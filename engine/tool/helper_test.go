package tool

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"pawl/engine/confine"
	"pawl/engine/machine"
)

func TestMain(m *testing.M) {
	confine.Main()
	os.Exit(m.Run())
}

var measuredLevel = sync.OnceValue(func() confine.Report {
	return confine.Measure(context.Background(), confine.MaxFromEnv())
})

// bench is one run's environment with everything a call goes through.
type bench struct {
	t   *testing.T
	set *Set
	env Env
	n   int
}

func newBench(t *testing.T, o Options) *bench {
	t.Helper()
	m, ws := newSpace(t)
	tick := int64(0)
	var mu sync.Mutex
	return &bench{t: t, set: All(o), env: Env{
		Run: "r1abc", Space: ws, Manager: m, Level: confine.LevelNone,
		Outputs: filepath.Join(t.TempDir(), "outputs"),
		Mono: func() machine.Instant {
			mu.Lock()
			defer mu.Unlock()
			tick++
			return machine.Instant{Boot: "test", Mono: tick}
		},
	}}
}

// sealed makes commands run sealed, or skips.
func (b *bench) sealed() *bench {
	b.t.Helper()
	if r := measuredLevel(); r.Level != confine.LevelSealed {
		b.t.Skipf("this machine cannot seal commands: %s", strings.Join(r.Missing, "; "))
	}
	b.env.Level = confine.LevelSealed
	return b
}

func (b *bench) put(name, content string) {
	b.t.Helper()
	p := filepath.Join(b.env.Space.Path, name)
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(p, []byte(content), 0o644); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) disk(name string) string {
	b.t.Helper()
	c, err := os.ReadFile(filepath.Join(b.env.Space.Path, name))
	if err != nil {
		b.t.Fatal(err)
	}
	return string(c)
}

// args builds raw arguments.
func args(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

type m map[string]any

// plan validates and plans.
func (b *bench) plan(name string, v any) (Plan, error) {
	b.t.Helper()
	c, err := b.set.Validate(name, args(b.t, v))
	if err != nil {
		return Plan{}, err
	}
	return b.set.Get(name).Plan(b.t.Context(), b.env, c)
}

func (b *bench) mustPlan(name string, v any) Plan {
	b.t.Helper()
	p, err := b.plan(name, v)
	if err != nil {
		b.t.Fatalf("plan %s: %v", name, err)
	}
	return p
}

// refused plans and returns the refusal for the model.
func (b *bench) refused(name string, v any) string {
	b.t.Helper()
	_, err := b.plan(name, v)
	var ae *ArgError
	if !errors.As(err, &ae) {
		b.t.Fatalf("%s %v: want a refusal for the model, have %v", name, v, err)
	}
	return ae.Text
}

// call makes the next call of a plan.
func (b *bench) call(p Plan) Call {
	b.n++
	return Call{Effect: machine.EffectIDOf(b.env.Run, b.n), Attempt: 1, Args: p.Args, Contract: p.Contract}
}

// do takes a call through its whole life.
func (b *bench) do(name string, v any) Outcome {
	b.t.Helper()
	p := b.mustPlan(name, v)
	c := b.call(p)
	tl := b.set.Get(name)
	var err error
	if c.Measured, err = tl.Measure(b.t.Context(), b.env, p.Contract, p.Args); err != nil {
		b.t.Fatalf("measure %s: %v", name, err)
	}
	return tl.Run(b.t.Context(), b.env, c)
}

func text(t *testing.T, o Outcome) string {
	t.Helper()
	r, err := o.Output.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func wantEnd(t *testing.T, o Outcome, end EndKind, code string) {
	t.Helper()
	have := o.Result.Code
	if o.End == EndRejected {
		have = o.Code
	}
	if o.End != end || have != code {
		t.Fatalf("end %d code %q cause %q output %q; want end %d code %q", o.End, have, o.Cause, text(t, o), end, code)
	}
}

func wantText(t *testing.T, have string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(have, w) {
			t.Errorf("%q is not in:\n%s", w, have)
		}
	}
}
