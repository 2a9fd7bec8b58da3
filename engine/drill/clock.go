package drill

import (
	"context"
	"iter"
	"time"
)

// Times of the simulation are µs since its start.
const (
	ms     int64 = 1000
	second       = 1000 * ms
	minute       = 60 * second
)

// wall is the wall-clock time at which every episode begins.
var wall = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// task is one goroutine of a simulated process. Exactly one runs at a time.
type task struct {
	proc  *proc
	next  func() (struct{}, bool)
	stop  func()
	yield func(struct{}) bool
	ready func() bool // nil: it can go on
	done  bool
}

// killed unwinds a goroutine whose process has died.
type killed struct{}

// timer is something that happens at a time.
type timer struct {
	at, seq int64
	f       func()
}

// stage runs tasks one at a time and lets time pass when none can go on.
type stage struct {
	now    int64
	seq    int64
	steps  int
	tasks  []*task
	cur    *task
	timers []timer
	order  stream // who goes first
	most   int    // steps before an episode counts as endless
	jump   func(from, to int64)
	wild   any // a panic that was not ours
}

// spawn makes a goroutine of a process; it begins at its turn.
func (g *stage) spawn(p *proc, f func()) {
	t := &task{proc: p}
	t.next, t.stop = iter.Pull(func(yield func(struct{}) bool) {
		t.yield = yield
		defer func() {
			t.done = true
			if e := recover(); e != nil {
				if _, ours := e.(killed); !ours {
					g.wild = trouble{e, stack()}
				}
			}
		}()
		f()
	})
	g.tasks = append(g.tasks, t)
}

// at makes something happen d µs from now.
func (g *stage) at(d int64, f func()) {
	g.seq++
	g.timers = append(g.timers, timer{g.now + max(d, 0), g.seq, f})
}

func (g *stage) canGo(t *task) bool {
	return !t.done && t.proc.frozen <= g.now && (t.ready == nil || t.ready())
}

// park gives the turn away until ready; nil: until the next turn.
func (g *stage) park(ready func() bool) {
	t := g.cur
	t.ready = ready
	if !t.yield(struct{}{}) {
		panic(killed{})
	}
}

// turn lets others go first where any can.
func (g *stage) turn() {
	for _, t := range g.tasks {
		if t != g.cur && g.canGo(t) {
			g.park(nil)
			return
		}
	}
	if g.cur.proc.frozen > g.now {
		g.park(nil)
	}
}

// sleep lets d µs pass for the current task, or less if ctx ends.
func (g *stage) sleep(ctx context.Context, d int64) {
	due := g.now + d
	g.at(d, func() {})
	g.park(func() bool { return g.now >= due || ctx.Err() != nil })
}

// play runs until nothing can happen any more. It reports whether that came
// to pass before the episode was too long.
func (g *stage) play() bool {
	var can []*task
	for g.steps < g.most && g.wild == nil {
		can = can[:0]
		live := g.tasks[:0]
		for _, t := range g.tasks {
			if t.done {
				continue
			}
			live = append(live, t)
			if g.canGo(t) {
				can = append(can, t)
			}
		}
		clear(g.tasks[len(live):])
		g.tasks = live
		if len(can) == 0 {
			if !g.pass() {
				return true
			}
			continue
		}
		g.steps++
		t := can[g.order.below(len(can))]
		t.ready = nil
		g.cur = t
		t.next()
		g.cur = nil
	}
	return false
}

// pass lets the next thing happen that time brings.
func (g *stage) pass() bool {
	if len(g.timers) == 0 {
		return false
	}
	first := 0
	for i, t := range g.timers {
		if f := g.timers[first]; t.at < f.at || t.at == f.at && t.seq < f.seq {
			first = i
		}
	}
	t := g.timers[first]
	last := len(g.timers) - 1
	g.timers[first] = g.timers[last]
	g.timers[last] = timer{}
	g.timers = g.timers[:last]
	if t.at > g.now {
		from := g.now
		g.now = t.at
		g.jump(from, t.at)
	}
	g.steps++
	t.f()
	return true
}

// end unwinds the goroutines of a process, or all with nil; not the current
// one, which unwinds itself.
func (g *stage) end(p *proc) {
	for _, t := range g.tasks {
		if (p == nil || t.proc == p) && t != g.cur && !t.done {
			t.stop()
			t.done = true
		}
	}
}
