package drill

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"time"

	"pawl/engine"
	"pawl/engine/confine"
	"pawl/engine/machine"
	"pawl/ledger"
)

// sim is one episode under way.
type sim struct {
	stage
	plan  *Plan
	dice  dice
	kit   *kit
	boot  int
	disk  storage
	procs []*proc
	world world
	audit audit
	trace *trace
	run   machine.RunID

	boundary int // passed so far
	full     int64
	born     int // processes ever started
	fair     bool
	restart  bool // a new owner is on its way
	recovery []int64
	broke    int64 // when the run last lost its owner, 0: it has one
	asked    int
	lazy     bool // a lazy sync is due
	doubled  bool // the newest owner was killed right after its claim
}

// storage is where the ledger lies: in memory, or in a real file.
type storage interface {
	open(owner string, s *sim) (ledger.Store, string, error)
	kill(st ledger.Store)
	power(boot string)
	close()
}

// proc is one simulated process.
type proc struct {
	s        *sim
	n        int
	name     string
	store    *handle
	engine   *engine.Engine
	identity machine.Identity
	dead     bool
	frozen   int64 // until then it stands still
	renewed  int64
	driver   bool
	commands []*command
}

// trouble is a panic of the program under test.
type trouble struct {
	what  any
	stack []byte
}

func stack() []byte { return debug.Stack() }

// errFull is what a full disk says.
var errFull = errors.New("no space left on device")

func (s *sim) bootName() string { return fmt.Sprintf("boot%d", s.boot) }

func (s *sim) instant() machine.Instant { return machine.Instant{Boot: s.bootName(), Mono: s.now} }

// start makes a process; kind is how people call it.
func (s *sim) start(kind string, driver bool) (*proc, error) {
	s.born++
	p := &proc{s: s, n: s.born, name: fmt.Sprintf("%s%d", kind, s.born), driver: driver, renewed: s.now}
	p.identity = machine.Identity{Boot: s.bootName(), PIDNS: "sim", PID: 100 + p.n, Start: uint64(s.now)}
	st, holder, err := s.disk.open(p.name, s)
	if err != nil {
		return nil, err
	}
	p.store = &handle{Store: st, p: p}
	random := s.dice.on(topicIdentity, p.n)
	p.engine, err = engine.New(engine.Options{
		Store: p.store, Holder: holder, StateDir: "/drill", Owner: p.name, Operator: kind,
		Models: s.kit.models(s), Tools: s.kit.tools, Max: confine.LevelSealed, Space: &space{p},
		Processes: processes{s}, Look: p.look, Self: p.identity, Level: &s.kit.level,
		After: p.after, Now: s.clock, Mono: s.instant, Rand: io.Reader(&random), Crash: p, Turns: p,
	})
	if err != nil {
		return nil, err
	}
	s.procs = append(s.procs, p)
	return p, nil
}

func (s *sim) clock() time.Time { return wall.Add(time.Duration(s.now) * time.Microsecond) }

// Go and Park make the engine's goroutines tasks of the stage.
func (p *proc) Go(f func()) { p.s.spawn(p, f) }

// Park gives the turn away until ready.
func (p *proc) Park(ready func() bool) {
	if !ready() {
		p.s.park(ready)
	}
}

// Pass is told of the engine's crash points.
func (p *proc) Pass(at engine.Point, what string) { p.s.pass1(string(at), what) }

func (p *proc) after(d time.Duration) (<-chan time.Time, func()) {
	c := make(chan time.Time, 1)
	stopped := false
	p.s.at(d.Microseconds(), func() {
		if !stopped {
			c <- p.s.clock()
		}
	})
	return c, func() { stopped = true }
}

// pass1 is a boundary: something may break here, and others may go first.
func (s *sim) pass1(where, what string) {
	s.boundary++
	p := s.cur.proc
	for i := range s.plan.Faults {
		if f := &s.plan.Faults[i]; f.At == s.boundary && !s.fair {
			s.breaks(p, f, where, what)
		}
	}
	s.turn()
}

// calm: nothing happens by chance but what the plan's faults and fates say.
func (s *sim) calm() bool { return s.plan.Calm || s.plan.Fates != nil }

// breaks carries out a fault at the current task.
func (s *sim) breaks(p *proc, f *Fault, where, what string) {
	s.note("%s at boundary %d (%s %s)", f.Kind, s.boundary, where, what)
	switch f.Kind {
	case Crash:
		s.kill(p)
		panic(killed{})
	case Freeze:
		p.frozen = s.now + f.For
		s.at(f.For, func() {})
		if p.driver {
			s.replace(1*second + s.dice.on(topicRestart, s.boundary).pick(5*second, 20*second, 30*second))
		}
	case Power:
		s.power()
		panic(killed{})
	case Full:
		s.full = s.now + f.For
	case troubles:
	}
}

// pick draws one of some values.
func (s stream) pick(v ...int64) int64 { return v[s.below(len(v))] }

// kill ends a process as SIGKILL does: at once, with what it had in flight in
// the world going on.
func (s *sim) kill(p *proc) {
	if p.dead {
		return
	}
	p.dead = true
	s.disk.kill(p.store.Store)
	s.end(p)
	for _, c := range p.commands {
		c.orphaned()
	}
	if p.driver {
		if s.broke == 0 {
			s.broke = s.now
		}
		wait := s.dice.on(topicRestart, p.n).pick(0, 100*ms, second, 10*second, 20*second)
		if s.plan.Fates != nil {
			wait = restartTime
		}
		s.replace(wait)
	} else {
		s.hire(s.dice.on(topicRestart, p.n).pick(second, 20*second), p.engine.Operator())
	}
}

// power cuts the machine off: everything dies, and what was not synced is gone.
func (s *sim) power() {
	s.boot++
	for _, p := range s.procs {
		if p.dead {
			continue
		}
		p.dead = true
		s.end(p)
		for _, c := range p.commands {
			c.stop()
		}
		if !p.driver {
			s.hire(30*second, p.engine.Operator())
		}
	}
	s.disk.power(s.bootName())
	s.audit.rewind()
	if s.broke == 0 {
		s.broke = s.now
	}
	s.replace(20 * second)
}

// replace lets another process take the run over after d µs.
func (s *sim) replace(d int64) {
	if s.restart {
		return
	}
	s.restart = true
	s.at(d, s.takeOver)
}

// takeOver starts a process that drives the run.
func (s *sim) takeOver() {
	s.restart = false
	p, err := s.start("pawl", true)
	if err != nil {
		s.fail(RuleDriver, "", "a new process cannot open the ledger: %v", err)
		return
	}
	s.spawn(p, func() { s.own(p) })
}

// own claims the run and drives it, as long as somebody else does not.
func (s *sim) own(p *proc) {
	ctx := context.Background()
	for range 100 {
		err := p.engine.Drive(ctx, s.run)
		var held *ledger.HeldError
		var full *ledger.FullError
		switch {
		case err == nil:
			if s.broke > 0 {
				s.recovery = append(s.recovery, s.now-s.broke)
				s.broke = 0
			}
			if s.plan.Double && p.n > 1 {
				if s.doubled = !s.doubled; s.doubled {
					s.note("%s dies right after its claim", p.name)
					s.kill(p)
					panic(killed{})
				}
			}
			return
		case errors.As(err, &held):
			s.sleep(ctx, max(held.Left.Microseconds(), second))
		case errors.As(err, &full):
			s.sleep(ctx, second)
		default:
			s.fail(RuleDriver, "", "the run cannot be claimed: %v", err)
			return
		}
	}
}

// owner is the living process that drives the run, nil if there is none.
func (s *sim) owner() *proc {
	for i := len(s.procs) - 1; i >= 0; i-- {
		if p := s.procs[i]; !p.dead && p.driver && len(p.engine.Driven()) > 0 {
			return p
		}
	}
	return nil
}

// news wakes processes that drive the run, as their watch of the ledger would.
func (s *sim) news(from *proc) {
	r := s.dice.on(topicOrder, int(s.seq))
	s.at(r.between(0, 250*ms), func() {
		for _, p := range s.procs {
			if p != from && !p.dead && p.driver && len(p.engine.Driven()) > 0 {
				_ = p.engine.Drive(context.Background(), s.run) // it is driven already, so this only wakes it
			}
		}
	})
}

// passed keeps leases as living processes do while time goes by.
func (s *sim) passed(from, _ int64) {
	for _, p := range s.procs {
		if p.dead || p.frozen > from || !p.driver || s.now-p.renewed < 4*second || len(p.engine.Driven()) == 0 {
			continue
		}
		p.renewed = s.now
		_, _ = p.store.Store.Renew(context.Background()) // what is lost is found out at the next commit
	}
}

// sync makes lazy commits safe a little later, as the ledger does by itself.
func (s *sim) sync() {
	if s.lazy {
		return
	}
	s.lazy = true
	s.at(50*ms, func() {
		s.lazy = false
		for _, p := range s.procs {
			if !p.dead && p.frozen <= s.now {
				if err := p.store.Store.Sync(context.Background()); err == nil {
					s.audit.synced()
				}
				return
			}
		}
	})
}

// processes tell the living from the dead among simulated ones.
type processes struct{ s *sim }

// Reap kills a command.
func (x processes) Reap(_ context.Context, id confine.Identity) (confine.Liveness, error) {
	x.s.pass1("reap", "")
	if c := x.s.world.commands[id.PID]; c != nil && id.Boot == x.s.bootName() {
		c.stop()
	}
	return confine.LiveGone, nil
}

// Probe looks at a Pawl process.
func (x processes) Probe(id confine.Identity) confine.Liveness {
	for _, p := range x.s.procs {
		if p.identity.PID == id.PID && p.identity.Boot == id.Boot && !p.dead {
			return confine.LiveAlive
		}
	}
	return confine.LiveGone
}
