package drill

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"pawl/engine"
	"pawl/engine/confine"
	"pawl/engine/machine"
	"pawl/engine/model"
	"pawl/engine/policy"
	"pawl/engine/tool"
	"pawl/engine/workspace"
	"pawl/ledger"
)

// plainSpace is a folder that nothing happens in.
type plainSpace struct {
	engine.Space
	dir string
}

func (plainSpace) Check(context.Context, workspace.Request) error { return nil }

func (plainSpace) Gone(workspace.Workspace) string { return "" }

func (p plainSpace) Prepare(_ context.Context, r workspace.Request) (workspace.Workspace, error) {
	return workspace.Workspace{Run: r.Run, Kind: workspace.KindFolder, Path: p.dir}, nil
}

// hanging acts and never hears back.
type hanging struct{ begun *atomic.Int64 }

func (hanging) Spec() tool.Spec {
	return tool.Spec{Name: "hang", Version: 1, Description: "acts and never hears back", Schema: json.RawMessage(`{"type":"object"}`)}
}

func (hanging) Plan(_ context.Context, _ tool.Env, args json.RawMessage) (tool.Plan, error) {
	return tool.Plan{
		Args: args, Summary: "hang", Subject: policy.Subject{Tool: "hang", Internal: true},
		Contract: machine.Contract{Name: "hang", Version: 1, Class: machine.ClassIrreversible, Sender: machine.SenderPawl},
	}, nil
}

func (hanging) Measure(context.Context, tool.Env, machine.Contract, json.RawMessage) (tool.Measured, error) {
	return tool.Measured{}, nil
}

func (h hanging) Run(ctx context.Context, _ tool.Env, _ tool.Call) tool.Outcome {
	h.begun.Add(1)
	<-ctx.Done()
	return tool.Outcome{}
}

// oneCall asks for one call, whatever it is shown.
type oneCall struct{}

func (oneCall) Resolve(context.Context, string, []byte) (model.Provider, string, model.Limits, error) {
	return oneCall{}, "m", model.Limits{}, nil
}

func (oneCall) Complete(context.Context, model.Request, func(string)) (model.Response, error) {
	return model.Response{Stop: machine.StopTools, Calls: []model.RawCall{{ProviderID: "c", Name: "hang", Args: "{}"}}}, nil
}

// BenchmarkInterruptedRuns measures how soon an operator sees where things
// stand after a crash of 1,000 runs, each with an effect in flight: the first
// page of runs, the whole inbox, and all of them taken over.
func BenchmarkInterruptedRuns(b *testing.B) {
	const runs = 1000
	for range b.N {
		b.StopTimer()
		ctx := context.Background()
		dir := b.TempDir()
		path := filepath.Join(dir, "ledger.db")
		begun := &atomic.Int64{}
		open := func() (*ledger.DB, *engine.Engine) {
			db, err := ledger.Open(ctx, ledger.Options{Path: path})
			if err != nil {
				b.Fatal(err)
			}
			e, err := engine.New(engine.Options{
				Store: db, Holder: db.Process(), StateDir: dir, Models: oneCall{}, Tools: tool.All(tool.Options{More: []tool.Tool{hanging{begun}}}),
				Space: plainSpace{dir: dir}, Level: &confine.Report{Level: confine.LevelNone},
			})
			if err != nil {
				b.Fatal(err)
			}
			return db, e
		}
		db, e := open()
		ids := make([]machine.RunID, runs)
		for i := range ids {
			var err error
			if ids[i], err = e.Create(ctx, engine.NewRun{Goal: fmt.Sprint("run ", i), Model: "m/m"}); err != nil {
				b.Fatal(err)
			}
		}
		if err := e.Drive(ctx, ids...); err != nil {
			b.Fatal(err)
		}
		changes := e.Changes()
		for begun.Load() < runs {
			select {
			case <-changes:
			case <-time.After(100 * time.Millisecond): // the last one may act after its last commit
			}
		}
		gone, cancel := context.WithCancel(ctx)
		cancel()
		_ = e.Close(gone) // in flight, as a crash leaves it
		if err := db.Close(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		t := time.Now()
		db, e = open()
		if _, err := e.Runs(ctx, engine.RunsQuery{Limit: 60}); err != nil {
			b.Fatal(err)
		}
		first := time.Since(t)
		items, err := e.Inbox(ctx)
		if err != nil {
			b.Fatal(err)
		}
		inbox := time.Since(t)
		took, err := e.Adopt(ctx)
		if err != nil {
			b.Fatal(err)
		}
		for _, id := range took {
			if _, err := e.Wait(ctx, id); err != nil {
				b.Fatal(err)
			}
		}
		all := time.Since(t)
		b.StopTimer()
		if len(took) != runs {
			b.Fatalf("%d runs were taken over", len(took))
		}
		after, err := e.Inbox(ctx)
		if err != nil || len(after) != runs {
			b.Fatalf("%d items wait, %v", len(after), err)
		}
		b.ReportMetric(float64(len(items)), "items-at-once")
		b.ReportMetric(first.Seconds()*1000, "first-page-ms")
		b.ReportMetric(inbox.Seconds()*1000, "inbox-ms")
		b.ReportMetric(all.Seconds()*1000, "taken-over-ms")
		if err := e.Close(ctx); err != nil {
			b.Fatal(err)
		}
		if err := db.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
