package drill

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"pawl/engine/machine"
	"pawl/engine/model"
	"pawl/ledger"
)

// audit holds what the ledger says against the rules and against the world. It
// states the rules anew: it shares no code with the machine that it judges but
// the shape of events.
type audit struct {
	s         *sim
	found     []Violation
	facts     map[machine.EffectID]*fact
	order     []machine.EffectID
	approvals map[machine.ApprovalID]*grant
	questions map[machine.QuestionID]bool // answered
	epoch     int64
	owner     int // number of the process that claimed it
	phase     machine.Phase
	n         int64
	turn      int
	asked     bool // the last turn is being asked for
	calls     int  // of the last response
	stopped   bool // it has its stop reason
	tries     int
	budget    int64 // tokens that the run may take; 0: any number
	commits   int   // seen
	safe      int   // of them, safe from a power cut
	fulls     int   // that waited for a sync
	seen      map[[2]int]int
	checked   int
}

// fact is what the ledger has said about one effect.
type fact struct {
	id           machine.EffectID
	args         string
	contract     machine.Contract
	proposed     bool
	asks         bool
	digest       machine.Digest
	files        []machine.File
	state        machine.EffectState
	approval     machine.ApprovalID
	attempts     []dispatch
	evidence     []machine.Evidence
	weighed      int
	quiet        *machine.Quiescence
	verdict      int64 // event of the last one
	forced       bool
	retry        bool
	auto         int
	past         bool // its key's horizon
	before       machine.EffectState
	compensation machine.EffectID
	compensates  machine.EffectID
	givenUp      bool

	// for comparisons
	begun, over  int64 // µs: first dispatch, decided outcome
	asked        int   // decisions about it
	afterCancel  int   // attempts sent after a cancel
	contradicted bool
}

// dispatch is one attempt as the ledger has it.
type dispatch struct {
	digest   machine.Digest
	approval machine.ApprovalID
	commit   int
	event    int64
	pre      string
	sent     int
	started  bool
	notDone  bool // said not to have happened
	forced   bool
}

type grant struct {
	effect machine.EffectID
	digest machine.Digest
	state  machine.ApprovalState
	file   machine.Digest // of the file that it was shown with
	lapses int64          // Unix µs; 0: never
}

func newAudit(s *sim) audit {
	return audit{
		s: s, facts: map[machine.EffectID]*fact{}, approvals: map[machine.ApprovalID]*grant{}, questions: map[machine.QuestionID]bool{},
		seen: map[[2]int]int{},
	}
}

// committed is told of every commit, in order.
func (a *audit) committed(p *proc, d ledger.Durability, parts []ledger.Part, _ []ledger.Committed) {
	a.commits++
	for i := range parts {
		for _, e := range parts[i].Events {
			body, err := machine.Decode(e.Kind, e.Payload)
			if err != nil {
				a.s.fail(RuleConsistency, "", "an event of kind %s cannot be read: %v", e.Kind, err)
				continue
			}
			a.n++
			if a.s.trace != nil {
				a.s.note("%s: %s", p.name, tell(body))
			}
			a.event(machine.Event{N: a.n, At: e.At, Actor: e.Actor, Epoch: parts[i].Epoch, Body: body})
			a.clock(body)
		}
	}
	if d == ledger.Full {
		a.safe = a.commits
		a.fulls++
	}
}

// clock notes when an effect was first sent and when its outcome was decided.
func (a *audit) clock(b machine.Body) {
	var id machine.EffectID
	switch b := b.(type) {
	case machine.EffectDispatched:
		if f := a.facts[b.Effect]; f != nil && len(f.attempts) == 1 {
			f.begun = a.s.now
		}
		return
	case machine.EffectCompleted:
		id = b.Effect
	case machine.EffectRejected:
		id = b.Effect
	case machine.EffectSettled:
		id = b.Effect
	case machine.EffectForced:
		id = b.Effect
	case machine.EffectAbandoned:
		id = b.Effect
	default:
		return
	}
	f := a.facts[id]
	if f == nil {
		return
	}
	f.contradicted = f.contradicted || f.state == machine.StateContradicted
	if !f.open() {
		f.over = max(f.over, a.s.now)
	}
}

// synced: everything so far is safe.
func (a *audit) synced() { a.safe = a.commits }

// rewind begins anew with what a power cut has left.
func (a *audit) rewind() {
	mem, ok := a.s.disk.(memory)
	if !ok {
		return
	}
	h, err := mem.m.Open("auditor")
	if err != nil {
		a.s.fail(RuleConsistency, "", "the ledger cannot be read after a power cut: %v", err)
		return
	}
	defer h.Kill()
	evs, err := h.Events(context.Background(), string(a.s.run), 0, 100000)
	if err != nil {
		a.s.fail(RuleConsistency, "", "the ledger cannot be read after a power cut: %v", err)
		return
	}
	was := *a
	*a = newAudit(a.s)
	a.found, a.seen = was.found, was.seen
	quiet := len(a.found)
	for _, e := range evs {
		body, err := machine.Decode(e.Kind, e.Payload)
		if err != nil {
			continue
		}
		a.n++
		a.event(machine.Event{N: a.n, At: e.At, Actor: e.Actor, Epoch: e.Epoch, Body: body})
	}
	a.found = a.found[:quiet] // what was wrong with them was said when they were written
	for id, f := range a.facts {
		if old := was.facts[id]; old != nil {
			for i := range f.attempts {
				if i < len(old.attempts) {
					f.attempts[i].sent = old.attempts[i].sent
				}
			}
		}
	}
}

// planned notes which file a process saw when it judged an action.
func (a *audit) planned(p *proc, n, version int) { a.seen[[2]int{p.n, n}] = version }

// sent is the first byte of an attempt leaving.
func (a *audit) sent(p *proc, id machine.EffectID, attempt int, args json.RawMessage) {
	f := a.facts[id]
	if f == nil || attempt < 1 || attempt > len(f.attempts) {
		a.s.fail(RuleWriteAhead, id, "attempt %d acts on the world, and no dispatch of it is on record", attempt)
		return
	}
	d := &f.attempts[attempt-1]
	if a.phase == machine.PhaseCancelled && attempt > 1 {
		f.afterCancel++
	}
	if d.commit > a.safe {
		a.s.fail(RuleWriteAhead, id, "attempt %d acts on the world before its dispatch is safe from a power cut", attempt)
	}
	if f.args != string(args) {
		a.s.fail(RuleWriteAhead, id, "attempt %d does %s, on record is %s", attempt, args, f.args)
	}
	if d.sent++; d.sent > 1 {
		a.s.fail(RuleUnplanned, id, "attempt %d is sent again under the same number", attempt)
	}
	if f.contract.Writes && attempt == len(f.attempts) {
		want, have := diskOf(d.pre), a.s.world.files
		want[userSlot], have[userSlot] = 0, 0
		if d.pre == "" || want != have {
			a.s.fail(RuleSnapshot, id, "attempt %d starts from %v, its snapshot is %v", attempt, have, want)
		}
	}
}

// landed is an attempt taking effect in the world.
func (a *audit) landed(id machine.EffectID, attempt int) {
	f := a.facts[id]
	w := a.s.world.of(id)
	if f == nil {
		return // the first byte was complained about
	}
	if len(w.landed) > 1 && !f.forced && !f.contract.Declared && f.contract.Class != machine.ClassRead {
		a.s.fail(RuleOnce, id, "it is there %d times", len(w.landed))
	}
	if attempt <= len(f.attempts) {
		if d := &f.attempts[attempt-1]; d.notDone && !d.forced && !f.forced {
			a.s.fail(RuleFailure, id, "attempt %d landed after it was said not to have happened", attempt)
		}
	}
	if f.state == machine.StateCompensated && !f.forced {
		a.s.fail(RuleSuccess, id, "it landed after it was said to be undone")
	}
}

// shown checks what the model is about to see.
func (a *audit) shown(req model.Request, p *proc) error {
	if p.n != a.owner || req.Turn != a.turn || a.s.plan.Seed%4 != 0 {
		return nil // a process that lost the run sees an older one
	}
	a.checked++
	results := map[string]int{}
	var calls []string
	for _, m := range req.Messages {
		for _, c := range m.Calls {
			calls = append(calls, c.ID)
		}
		if m.Role == model.RoleTool {
			results[m.CallID]++
		}
	}
	for _, id := range calls {
		if results[id] != 1 {
			return fmt.Errorf("turn %d: call %s has %d results", req.Turn, id, results[id])
		}
	}
	if len(results) > len(calls) {
		return fmt.Errorf("turn %d: %d results for %d calls", req.Turn, len(results), len(calls))
	}
	for _, id := range a.order {
		f := a.facts[id]
		switch f.state {
		case machine.StateAmbiguous, machine.StateContradicted, machine.StateForcedHappened, machine.StateForcedNot, machine.StateAbandoned:
			if len(req.Messages) == 0 || !strings.Contains(req.Messages[0].Text, id.Short()) {
				return fmt.Errorf("turn %d: %s is %s and does not stand in the context", req.Turn, id.Short(), f.state)
			}
		default:
		}
	}
	return nil
}

// open reports whether the run must wait for an effect.
func (f *fact) open() bool {
	switch f.state {
	case machine.StateIntended, machine.StateDispatched, machine.StateAmbiguous, machine.StateCompensating, machine.StateContradicted:
		return true
	case machine.StateNotHappened, machine.StateForcedNot:
		return !f.givenUp
	default:
		return false
	}
}

// says reports whether evidence that was not weighed yet has a verdict.
func (f *fact) says(v machine.Verdict) bool {
	return slices.ContainsFunc(f.evidence[f.weighed:], func(e machine.Evidence) bool { return e.Verdict == v })
}

// provenNot reports whether unweighed evidence proves that no attempt landed
// or can still land.
func (f *fact) provenNot() bool {
	for _, e := range f.evidence[f.weighed:] {
		if e.Verdict != machine.VerdictNotHappened || e.Covers != len(f.attempts) {
			continue
		}
		if e.Authority == machine.AuthGate {
			return true
		}
		if f.quiet == nil || f.contract.Probe == nil || f.quiet.Covers != len(f.attempts) || e.Started.Boot != f.quiet.At.Boot || !f.contract.Probe.ProvesNot {
			continue
		}
		wait := f.contract.InFlight
		if !f.contract.Probe.ReadsOwnWrites {
			wait += f.contract.Probe.Settle
		}
		if e.Started.Mono >= f.quiet.At.Mono+wait {
			return true
		}
	}
	return false
}

// tell is an event in a line.
func tell(b machine.Body) string {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(b); err != nil {
		return b.Kind()
	}
	text := strings.TrimSpace(out.String())
	if len(text) > 220 {
		text = text[:220] + "…"
	}
	return b.Kind() + " " + text
}
