package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	"pawl/engine/machine"
	"pawl/engine/model"
	"pawl/engine/policy"
	"pawl/engine/tool"
	"pawl/engine/workspace"
	"pawl/ledger"
)

// stepper answers at once with 300 bytes of text and one allowed effect; after
// so many turns it finishes.
type stepper struct{ steps int }

func (s stepper) Complete(_ context.Context, req model.Request, _ func(string)) (model.Response, error) {
	call := model.RawCall{ProviderID: "f", Name: "finish", Args: `{"summary":"enough"}`}
	if req.Turn <= s.steps {
		call = model.RawCall{ProviderID: fmt.Sprint("c", req.Turn), Name: "noop", Args: fmt.Sprintf(`{"n":%d}`, req.Turn)}
	}
	text := fmt.Sprintf("step %d ", req.Turn)
	return model.Response{Text: text + strings.Repeat("x", 300-len(text)), Stop: machine.StopTools, Calls: []model.RawCall{call}}, nil
}

type fixedModel struct{ p model.Provider }

func (f fixedModel) Resolve(context.Context, string, []byte) (model.Provider, string, model.Limits, error) {
	return f.p, "m", model.Limits{}, nil
}

// noop is an effect that is allowed, needs no snapshot, and returns 300 bytes.
// It notes when it ran.
type noop struct {
	mu sync.Mutex
	at map[machine.RunID][]time.Time
}

func (*noop) Spec() tool.Spec {
	return tool.Spec{Name: "noop", Version: 1, Description: "does nothing", Schema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`)}
}

func (*noop) Plan(_ context.Context, _ tool.Env, args json.RawMessage) (tool.Plan, error) {
	return tool.Plan{
		Args: args, Summary: "noop", Text: string(args), Subject: policy.Subject{Tool: "noop", Internal: true},
		Contract: machine.Contract{Name: "noop", Version: 1, Class: machine.ClassKeyed, Sender: machine.SenderPawl, Key: "k"},
	}, nil
}

func (*noop) Measure(context.Context, tool.Env, machine.Contract, json.RawMessage) (tool.Measured, error) {
	return tool.Measured{}, nil
}

var noopOutput = []byte(strings.Repeat("y", 300))

func (n *noop) Run(_ context.Context, env tool.Env, _ tool.Call) tool.Outcome {
	n.mu.Lock()
	n.at[env.Run] = append(n.at[env.Run], time.Now())
	n.mu.Unlock()
	return tool.Outcome{End: tool.EndCompleted, Result: machine.Result{OK: true, Code: "0"}, Output: tool.Content{Bytes: noopOutput}}
}

// benchRuns drives runs of so many steps on a real ledger, and returns the
// gaps between successive effects of a run, in order.
func benchRuns(b *testing.B, runs, steps int) (gaps []time.Duration, took time.Duration, st ledger.Stats, grown int64) {
	b.Helper()
	ctx := context.Background()
	dir := b.TempDir()
	path := filepath.Join(dir, "ledger.db")
	n := &noop{at: map[machine.RunID][]time.Time{}}
	open := func() (*ledger.DB, *Engine) {
		db, err := ledger.Open(ctx, ledger.Options{Path: path})
		if err != nil {
			b.Fatal(err)
		}
		e, err := New(Options{Store: db, Holder: db.Process(), StateDir: dir, Models: fixedModel{stepper{steps}}, Tools: tool.All(tool.Options{More: []tool.Tool{n}})})
		if err != nil {
			b.Fatal(err)
		}
		return db, e
	}
	shut := func(db *ledger.DB, e *Engine) int64 {
		if err := e.Close(ctx); err != nil {
			b.Fatal(err)
		}
		if err := db.Close(); err != nil {
			b.Fatal(err)
		}
		st, err := os.Stat(path)
		if err != nil {
			b.Fatal(err)
		}
		return st.Size()
	}
	db, e := open()
	ids := make([]machine.RunID, runs)
	for i := range ids {
		ids[i] = readyRun(b, e, dir, steps+10)
	}
	size := shut(db, e)
	db, e = open()
	before := db.Stats()
	b.ResetTimer()
	begin := time.Now()
	if err := e.Drive(ctx, ids...); err != nil {
		b.Fatal(err)
	}
	for _, id := range ids {
		rest, err := e.Wait(ctx, id)
		if err != nil || rest.Err != nil || rest.Phase != machine.PhaseDone {
			b.Fatalf("run %s rests as %+v: %v", id, rest, err)
		}
	}
	took = time.Since(begin)
	b.StopTimer()
	after := db.Stats()
	st = ledger.Stats{Commits: after.Commits - before.Commits, Syncs: after.Syncs - before.Syncs, LazySyncs: after.LazySyncs - before.LazySyncs, Events: after.Events - before.Events}
	grown = shut(db, e) - size
	for _, at := range n.at {
		if len(at) != steps {
			b.Fatalf("%d effects, want %d", len(at), steps)
		}
		for i := 1; i < len(at); i++ {
			gaps = append(gaps, at[i].Sub(at[i-1]))
		}
	}
	return gaps, took, st, grown
}

// readyRun makes a run whose workspace is there already: a plain folder.
func readyRun(tb testing.TB, e *Engine, dir string, turns int) machine.RunID {
	tb.Helper()
	ctx := context.Background()
	id, err := e.newID()
	if err != nil {
		tb.Fatal(err)
	}
	data, err := machine.Encode(workspace.Workspace{Run: string(id), Path: dir})
	if err != nil {
		tb.Fatal(err)
	}
	c := machine.Charter{ID: id, Root: id, Goal: "measure", Model: "m/m", MaxTurns: turns}
	s, err := e.commit(ctx, ledger.Full, machine.State{}, batch{bodies: []machine.Body{machine.RunCreated{Charter: c}}, actor: e.operator})
	if err != nil {
		tb.Fatal(err)
	}
	ready := machine.WorkspaceReady{Path: dir, Mode: "folder", Level: "none", Data: data}
	if _, err = e.commit(ctx, ledger.Full, s, batch{bodies: append(claimBodies(&s, "setup", e.self, e.o.Mono().Boot), ready), claim: true, epoch: 1, free: true}); err != nil {
		tb.Fatal(err)
	}
	return id
}

// fdatasync measures the disk: an append of 4 KiB and a sync, as the ledger's WAL does.
func fdatasync(b *testing.B, n int) time.Duration {
	b.Helper()
	f, err := os.Create(filepath.Join(b.TempDir(), "raw"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	page := make([]byte, 4096)
	times := make([]time.Duration, n)
	for i := range times {
		t := time.Now()
		if _, err := f.Write(page); err != nil {
			b.Fatal(err)
		}
		if err := syncData(f); err != nil {
			b.Fatal(err)
		}
		times[i] = time.Since(t)
	}
	return quantile(times, 0.5)
}

func quantile(d []time.Duration, q float64) time.Duration {
	s := append([]time.Duration(nil), d...)
	sort.Slice(s, func(i, j int) bool { return s[i] < s[j] })
	return s[int(q*float64(len(s)-1))]
}

// BenchmarkStep measures a durable step: a model response with one allowed
// effect that needs no snapshot, and its result.
func BenchmarkStep(b *testing.B) {
	for _, shape := range []struct{ runs, steps int }{{1, 2000}, {50, 100}, {1, 5000}} {
		b.Run(fmt.Sprintf("runs=%d/steps=%d", shape.runs, shape.steps), func(b *testing.B) {
			for range b.N {
				raw := fdatasync(b, 500)
				gaps, took, st, grown := benchRuns(b, shape.runs, shape.steps)
				total := float64(shape.runs * shape.steps)
				p50 := quantile(gaps, 0.5)
				b.ReportMetric(total/took.Seconds(), "steps/s")
				b.ReportMetric(float64(p50.Microseconds()), "p50-µs")
				b.ReportMetric(float64(quantile(gaps, 0.99).Microseconds()), "p99-µs")
				b.ReportMetric(float64(st.Syncs)/total, "syncs/step")
				b.ReportMetric(float64(st.Commits)/total, "commits/step")
				b.ReportMetric(float64(grown)/total, "bytes/step")
				b.ReportMetric(float64(raw.Microseconds()), "fdatasync-p50-µs")
				b.ReportMetric(float64(p50)/float64(raw), "p50/fdatasync")
				if shape.runs == 1 {
					k := len(gaps) / 10
					b.ReportMetric(float64(quantile(gaps[len(gaps)-k:], 0.5))/float64(quantile(gaps[:k], 0.5)), "last/first")
				}
			}
		})
	}
}
