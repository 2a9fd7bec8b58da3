package drill

import (
	"pawl/engine/machine"
)

// world is what the runs act on. Its log is its own: nothing of it is derived
// from the ledger.
type world struct {
	s        *sim
	log      []Entry
	deeds    map[machine.EffectID]*done
	keys     map[string]int64 // when the other side first did it
	commands map[int]*command
	pids     int

	files   disk
	ignored int
	version int // of the file that approvals cover
	trouble int // times that the workspace was asked for
}

// Entry is one line of the world's log.
type Entry struct {
	At      int64
	Effect  machine.EffectID
	Attempt int
	What    string
}

// What the world notes.
const (
	WorldSent      = "sent"
	WorldLanded    = "landed"
	WorldDeduped   = "known by its key"
	WorldForgotten = "key forgotten"
)

// done is what the world knows about one effect.
type done struct {
	landed  []int64 // when, each time
	by      []int   // by which attempt
	pending int     // on the way
	sends   map[int]int
	lied    Lie // a contract that was broken about it
}

// disk is a workspace: each effect has a slot, which it raises by one when it
// begins and by one when it ends. The last slot is the operator's.
type disk [8]uint16

const userSlot = 7

func (w *world) of(id machine.EffectID) *done {
	d := w.deeds[id]
	if d == nil {
		d = &done{sends: map[int]int{}}
		w.deeds[id] = d
	}
	return d
}

func (w *world) note(id machine.EffectID, attempt int, what string) {
	w.log = append(w.log, Entry{At: w.s.now, Effect: id, Attempt: attempt, What: what})
	if w.s.trace != nil {
		w.s.note("world: %s attempt %d %s", id.Short(), attempt, what)
	}
}

// lie remembers that a contract was broken about an effect.
func (w *world) lie(id machine.EffectID) {
	d := w.of(id)
	if d.lied == Honest {
		d.lied = w.s.plan.Lie
		w.s.note("world: %s: %s", id.Short(), d.lied)
	}
}

// send is the first byte of an attempt reaching the world.
func (w *world) send(id machine.EffectID, n, attempt int, key string) Fate {
	s := w.s
	f := s.plan.fate(n, attempt)
	if s.plan.CAS && key == "" {
		key = string(id)
	}
	if s.plan.CancelIn == n+1 && attempt == 1 {
		s.at(ms, func() { s.meddle(Act{What: "cancel"}) })
	}
	w.note(id, attempt, WorldSent)
	d := w.of(id)
	d.sends[attempt]++
	deed := s.deed(n)
	switch {
	case f.Refused && f.Lands, f.Twice && key == "", !f.Refused && !f.Failed && f.Acked && !f.Lands, f.Delay > deed.D && f.Lands && s.plan.Lie == LateLanding:
		w.lie(id)
	}
	if f.Lands {
		w.deliver(id, attempt, key, deed, f.Delay)
		if f.Twice {
			r := s.dice.on(topicFate, n, attempt, 7)
			w.deliver(id, attempt, key, deed, f.Delay+r.between(ms, second))
		}
	}
	return f
}

// deliver makes an attempt land after d µs, or at once.
func (w *world) deliver(id machine.EffectID, attempt int, key string, deed *Deed, d int64) {
	w.of(id).pending++
	w.s.at(d, func() { w.land(id, attempt, key, deed) })
}

func (w *world) land(id machine.EffectID, attempt int, key string, deed *Deed) {
	x := w.of(id)
	x.pending--
	if key != "" {
		first, seen := w.keys[key]
		switch {
		case seen && (w.s.now-first <= deed.Keeps || w.s.plan.CAS):
			w.note(id, attempt, WorldDeduped)
			return
		case seen:
			w.note(id, attempt, WorldForgotten)
			if w.s.plan.Lie == KeyForgotten {
				w.lie(id)
			}
		}
		w.keys[key] = w.s.now
	}
	x.landed = append(x.landed, w.s.now)
	x.by = append(x.by, attempt)
	w.note(id, attempt, WorldLanded)
	w.s.audit.landed(id, attempt)
}

// visible reports whether a look that is lag µs behind shows an effect.
func (w *world) visible(id machine.EffectID, lag int64) bool {
	for _, at := range w.of(id).landed {
		if at <= w.s.now-lag {
			return true
		}
	}
	return false
}

// command is a simulated process of a shell command.
type command struct {
	p        *proc
	identity machine.Identity
	deed     *Deed
	begun    bool // its first byte was sent
	ended    bool
	dead     bool // killed
	fate     Fate
	steps    func(stage int)
}

// launch makes a command that waits at its gate.
func (w *world) launch(p *proc, deed *Deed) *command {
	w.pids++
	c := &command{p: p, deed: deed, identity: machine.Identity{Boot: w.s.bootName(), PIDNS: "sim", PID: 10000 + w.pids, Start: uint64(w.s.now)}}
	if deed.Inner {
		c.identity.Inner = "inner"
	}
	w.commands[c.identity.PID] = c
	p.commands = append(p.commands, c)
	return c
}

// open lets a command run: it acts after a third of its time, and ends at last.
func (c *command) open(steps func(stage int)) {
	c.steps = steps
	s := c.p.s
	s.at(c.deed.Takes/3, func() {
		if !c.dead {
			c.begun = true
			steps(1)
		}
	})
	s.at(c.deed.Takes, func() {
		if !c.dead {
			steps(2)
			c.ended = true
		}
	})
}

// stop kills a command and everything below it.
func (c *command) stop() { c.dead, c.ended = true, true }

// orphaned is what becomes of a command when its Pawl dies.
func (c *command) orphaned() {
	if !c.deed.Orphan {
		c.stop()
	}
}
