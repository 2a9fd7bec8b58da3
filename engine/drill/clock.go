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
	proc    *proc
	f       func()
	on      *thread     // nil until its first turn
	ready   func() bool // nil: it can go on
	killing bool
	done    bool
}

// thread is a coroutine that tasks run on, one after the other: its stack has
// grown once and for all.
type thread struct {
	next  func() (struct{}, bool)
	stop  func()
	yield func(struct{}) bool
	task  *task
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
	idle   *threads
	wild   any // a panic that was not ours
}

// spawn makes a goroutine of a process; it begins at its turn.
func (g *stage) spawn(p *proc, f func()) { g.tasks = append(g.tasks, &task{proc: p, f: f}) }

// resume gives a task its turn, and returns when it gives it away or is done.
func (g *stage) resume(t *task) {
	if t.on == nil {
		t.on = g.idle.take()
		t.on.task = t
	}
	was := g.cur
	g.cur = t
	t.on.next()
	g.cur = was
	if t.done {
		g.idle.give(t.on)
	}
}

// run carries out the task that a thread was given.
func (t *thread) run() {
	defer func() {
		t.task.done = true
		if e := recover(); e != nil {
			if _, ours := e.(killed); !ours {
				t.task.proc.s.wild = trouble{e, stack()}
			}
		}
	}()
	t.task.f()
}

// threads are those without a task. They belong to a kit, which ends them.
type threads struct{ free []*thread }

func (x *threads) take() *thread {
	if n := len(x.free); n > 0 {
		t := x.free[n-1]
		x.free = x.free[:n-1]
		return t
	}
	t := &thread{}
	t.next, t.stop = iter.Pull(func(yield func(struct{}) bool) {
		t.yield = yield
		for {
			t.run()
			if !yield(struct{}{}) {
				return
			}
		}
	})
	return t
}

func (x *threads) give(t *thread) {
	t.task = nil
	x.free = append(x.free, t)
}

func (x *threads) close() {
	for _, t := range x.free {
		t.stop()
	}
	x.free = nil
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
	t.on.yield(struct{}{})
	if t.killing {
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
		g.resume(t)
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
		if p != nil && t.proc != p || t == g.cur || t.done {
			continue
		}
		if t.on == nil { // it never had a turn
			t.done = true
			continue
		}
		t.killing = true
		g.resume(t)
	}
}
