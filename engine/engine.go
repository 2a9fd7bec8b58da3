// Package engine runs agents over a ledger: it asks the pure machine for the
// one next action of each run, carries it out, and commits what came of it.
//
// One goroutine owns each running run and alone writes under its lease. Every
// process may watch and decide: decisions are events too, guarded by the tail
// they were taken on. There is no recovery path: a restarted process folds the
// same events and asks the same Next.
package engine

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"path/filepath"
	"sync"
	"time"

	"pawl/engine/confine"
	"pawl/engine/machine"
	"pawl/engine/model"
	"pawl/engine/model/registry"
	"pawl/engine/tool"
	"pawl/engine/workspace"
	"pawl/ledger"
)

// Options configure an Engine. Zero values mean the real thing.
type Options struct {
	Store    ledger.Store // required
	Holder   string       // the process id under which Store takes leases; required to drive
	StateDir string       // worktrees, snapshots, outputs; required to drive
	Owner    string       // this process for people: "pid 4711 (pawl run) on host"
	Operator string       // who decides here; default: the login name
	Models   Resolver     // default: the registry over the environment
	Tools    *tool.Set    // default: all
	Max      confine.Level
	// The seams; nil means the real thing.
	Space     Space
	Processes Processes
	Look      Looker
	Self      machine.Identity // of this process
	Level     *confine.Report  // measured already
	After     func(time.Duration) (c <-chan time.Time, stop func())
	Now       func() time.Time
	Mono      func() machine.Instant
	Rand      io.Reader
	Crash     Crasher // named crash points; default: from PAWL_CRASH
	Turns     Turns
	Tree      TreeLimits // zero values mean the defaults
	// PolicyFile is the operator's own policy file; "" for none. It need not exist.
	PolicyFile string
	Log        func(format string, a ...any)
}

// Resolver finds the provider of a model named "provider/name". script is the
// text of the scripted model's script, nil for others.
type Resolver interface {
	Resolve(ctx context.Context, name string, script []byte) (model.Provider, string, model.Limits, error)
}

// Engine drives runs and answers questions about them.
type Engine struct {
	o        Options
	store    ledger.Store
	space    Space
	manager  *workspace.Manager // what tools get; nil behind a simulated Space
	tools    *tool.Set
	self     machine.Identity
	level    func() confine.Report
	operator string

	mu      sync.Mutex // guards the fields below
	runs    map[machine.RunID]*run
	closed  bool
	changed []chan struct{}
	live    []chan LiveText
	cache   map[machine.RunID]*machine.State
	order   []machine.RunID // of cache, oldest first

	rulebook rulebook
	desk     desk

	slots  slots
	meters meters
	own    ownEvents // events that this engine appended and watch has not passed yet

	ctx   context.Context // of everything the engine started
	stop  context.CancelFunc
	group sync.WaitGroup

	tree     TreeLimits
	spawning sync.Mutex // held while a tree grows
}

// New makes an engine over an open ledger. Close it before the ledger.
func New(o Options) (*Engine, error) {
	if o.Store == nil {
		return nil, errors.New("engine: no ledger was given")
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Mono == nil {
		o.Mono = monotonic
	}
	if o.Rand == nil {
		o.Rand = rand.Reader
	}
	if o.Log == nil {
		o.Log = func(string, ...any) {}
	}
	if o.Operator == "" {
		o.Operator = loginName()
	}
	if o.Crash == nil {
		o.Crash = CrashFromEnv(os.Getenv("PAWL_CRASH"))
	}
	if o.Owner == "" {
		o.Owner = fmt.Sprintf("pid %d", os.Getpid())
	}
	if o.Models == nil {
		o.Models = registry.New(registry.Options{Env: os.Getenv})
	}
	if o.Tools == nil {
		o.Tools = tool.All(tool.Options{})
	}
	if o.Max == confine.LevelUnknown {
		o.Max = confine.MaxFromEnv()
	}
	if o.Processes == nil {
		o.Processes = realProcesses{}
	}
	if o.Look == nil {
		o.Look = realLook
	}
	if o.After == nil {
		o.After = realAfter
	}
	if o.Self == (machine.Identity{}) {
		o.Self = selfIdentity()
	}
	e := &Engine{
		o: o, store: o.Store, tools: o.Tools, operator: machine.ActorOperator + o.Operator,
		runs: map[machine.RunID]*run{}, cache: map[machine.RunID]*machine.State{},
		self: o.Self, space: o.Space, tree: o.Tree.orDefault(),
	}
	if o.StateDir != "" && o.Space == nil {
		e.manager = workspace.New(o.StateDir)
		e.space = e.manager
	}
	e.level = sync.OnceValue(func() confine.Report {
		if o.Level != nil {
			return *o.Level
		}
		return confine.Measure(context.Background(), o.Max)
	})
	e.ctx, e.stop = context.WithCancel(context.Background())
	if o.Turns == nil {
		e.group.Add(1)
		go e.watch()
	}
	return e, nil
}

// Close stops every run at its next safe point, waits for them, and gives the
// leases back. What is in flight is waited for as long as ctx allows; after
// that it is left as a crash would leave it, which loses nothing.
func (e *Engine) Close(ctx context.Context) error {
	e.mu.Lock()
	e.closed = true
	runs := make([]*run, 0, len(e.runs))
	for _, r := range e.runs {
		runs = append(runs, r)
	}
	e.mu.Unlock()
	for _, r := range runs {
		r.ask(stopSafe)
	}
	var err error
	for _, r := range runs {
		select {
		case <-r.done:
		case <-ctx.Done():
			err = fmt.Errorf("run %s was left in flight: %w", r.id, context.Cause(ctx))
		}
	}
	e.stop()
	if err != nil {
		for _, r := range runs {
			<-r.done // its context has ended: it ends without an ack
		}
	}
	e.group.Wait()
	return err
}

// Operator is the name under which decisions of this process are recorded.
func (e *Engine) Operator() string { return e.o.Operator }

// Level reports the measured confinement of commands on this machine.
func (e *Engine) Level() confine.Report { return e.level() }

// Space is the manager of workspaces, nil if the engine has no state directory.
func (e *Engine) Space() *workspace.Manager { return e.manager }

// Tools are the tools of this engine.
func (e *Engine) Tools() *tool.Set { return e.tools }

func (e *Engine) outputs(run machine.RunID) string {
	return filepath.Join(e.o.StateDir, "outputs", string(run))
}

func (e *Engine) now() int64 { return e.o.Now().UnixMicro() }

func loginName() string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return "operator"
}

func selfIdentity() machine.Identity {
	id, err := confine.Self()
	if err != nil {
		return machine.Identity{Boot: confine.BootID(), PID: os.Getpid()}
	}
	return toIdentity(id)
}

func toIdentity(i confine.Identity) machine.Identity {
	return machine.Identity{Boot: i.Boot, PIDNS: i.PIDNS, PID: i.PID, Start: i.Start, Inner: i.Inner}
}

func fromIdentity(i machine.Identity) confine.Identity {
	return confine.Identity{Boot: i.Boot, PIDNS: i.PIDNS, PID: i.PID, Start: i.Start, Inner: i.Inner}
}
