package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"pawl/engine/machine"
	"pawl/engine/model"
	"pawl/engine/window"
	"pawl/ledger"
)

// source reads blobs for the window.
type source struct {
	ctx   context.Context
	store ledger.Store
}

func (s source) Blob(d machine.Digest) ([]byte, error) { return s.store.Blob(s.ctx, ledger.Hash(d)) }

// provider resolves the run's model once per process.
func (r *run) provider(ctx context.Context) (*bound, error) {
	if r.model != nil {
		return r.model, nil
	}
	var script []byte
	if d := r.state.Charter.Script; !d.IsZero() {
		b, err := r.e.store.Blob(ctx, ledger.Hash(d))
		if err != nil {
			return nil, fmt.Errorf("read the script of %s: %w", r.id, err)
		}
		script = b
	}
	p, name, limits, err := r.e.o.Models.Resolve(ctx, r.state.Charter.Model, script)
	if err != nil {
		return nil, err
	}
	r.model = &bound{Provider: p, name: name, limits: limits}
	return r.model, nil
}

// bound is a provider with the model's name and limits.
type bound struct {
	model.Provider
	name   string
	limits model.Limits
}

// specs are the tools as this run's model sees them.
func (e *Engine) specs() []window.ToolSpec {
	var out []window.ToolSpec
	for _, s := range e.tools.Specs() {
		out = append(out, window.ToolSpec{Name: s.Name, Description: s.Description, Schema: s.Schema})
	}
	return out
}

// Pack builds what the model of a run would be shown next.
func (e *Engine) Pack(ctx context.Context, id machine.RunID) (window.Pack, error) {
	s, err := e.state(ctx, id)
	if err != nil {
		return window.Pack{}, err
	}
	return e.build(ctx, &s)
}

// PackAt builds what the model was shown first in window n, from the ledger up
// to the event that opened it.
func (e *Engine) PackAt(ctx context.Context, id machine.RunID, n int) (window.Pack, error) {
	s, err := e.state(ctx, id)
	if err != nil {
		return window.Pack{}, err
	}
	if n < 1 || n > s.Window {
		return window.Pack{}, fmt.Errorf("run %s has no window %d: it has %d so far", id, n, s.Window)
	}
	// The first window has no event of its own: it is shown as it was asked in last.
	at := s.Tail
	if n > 1 {
		at = s.Openings[n-2].Event
	} else if s.Window > 1 {
		at = s.Openings[0].Event - 1
		if t := s.Turn(s.Openings[0].Turn - 1); t != nil {
			at = t.Tail - 1
		}
	}
	if s, err = e.stateAt(ctx, id, at); err != nil {
		return window.Pack{}, err
	}
	return e.build(ctx, &s)
}

// stateAt folds a run up to an event.
func (e *Engine) stateAt(ctx context.Context, id machine.RunID, at int64) (machine.State, error) {
	var s machine.State
	const page = 512
	for s.Tail < at {
		evs, err := e.store.Events(ctx, string(id), s.Tail, int(min(page, at-s.Tail)))
		if err != nil {
			return s, fmt.Errorf("read run %s: %w", id, err)
		}
		if len(evs) == 0 {
			return s, fmt.Errorf("run %s has no event %d: it has %d", id, at, s.Tail)
		}
		for _, raw := range evs {
			ev, err := decode(raw)
			if err != nil {
				return s, err
			}
			if s, err = machine.Fold(s, ev); err != nil {
				return s, fmt.Errorf("run %s, event %d: %w", id, raw.N, err)
			}
		}
	}
	return s, nil
}

func (e *Engine) build(ctx context.Context, s *machine.State) (window.Pack, error) {
	budget := requestBudget(s, model.Limits{})
	if _, _, limits, err := e.o.Models.Resolve(ctx, s.Charter.Model, nil); err == nil {
		budget = requestBudget(s, limits)
	}
	return window.Build(s, source{ctx, e.store}, e.windowOptions(budget))
}

func (e *Engine) windowOptions(budget int) window.Options {
	return window.Options{Budget: budget, Tools: e.specs()}
}

// request asks the model for a turn.
func (r *run) request(ctx context.Context, a machine.Action) error {
	if a.RetryAt > 0 {
		if d := time.Duration(a.RetryAt-r.e.now()) * time.Microsecond; d > 0 {
			tail := r.state.Tail
			if err := r.sleep(ctx, d); err != nil || r.state.Tail != tail || r.halting.Load() {
				return err
			}
			if r.e.now() < a.RetryAt {
				return nil // woken early: Next is asked again
			}
		}
	}
	if until, why := r.e.meters.held(meterOf(&r.state), r.e.now()); until > a.RetryAt {
		until += spread(r.id, time.Duration(until-r.e.now())*time.Microsecond).Microseconds()
		return r.decide(ctx, ledger.Lazy, batch{bodies: []machine.Body{machine.TurnHeld{Turn: a.Turn, Until: until, Why: why}}})
	}
	p, perr := r.provider(ctx)
	if perr == nil {
		if paged, err := r.page(ctx, a, p); paged || err != nil {
			return err
		}
	}
	reserve := int64(0)
	if perr == nil {
		reserve = p.limits.AtMost(int(r.nextInput()), maxOutput(p.limits))
	}
	tokens := r.nextInput() + int64(maxOutputOf(p))
	if asked, err := r.overBudget(ctx, a, reserve, tokens); asked || err != nil {
		return err
	}
	ask := machine.TurnRequested{Turn: a.Turn, Attempt: a.Attempt, Window: r.state.Window, Reserve: reserve, Tokens: tokens}
	if err := r.decide(ctx, ledger.Lazy, batch{bodies: []machine.Body{ask}}); err != nil {
		return err
	}
	return r.complete(ctx, a.Turn)
}

// lastInput is the size of the last request in tokens, as the provider said.
func (r *run) lastInput() int64 {
	if t := r.state.LastTurn(); t != nil {
		return t.Usage.Input
	}
	return 0
}

// complete carries out a request whose dispatch is in the ledger.
func (r *run) complete(ctx context.Context, turn int) error {
	p, err := r.provider(ctx)
	if err != nil {
		return r.failTurn(ctx, turn, 0, err, 0)
	}
	asked := r.state
	pack, err := r.packs.Build(&asked, source{ctx, r.e.store}, r.e.windowOptions(requestBudget(&asked, p.limits)))
	if err != nil {
		return fmt.Errorf("build the context of turn %d: %w", turn, err)
	}
	t := asked.Turn(turn)
	if pack.Over && t.Shrunk == 0 {
		return r.record(ctx, ledger.Lazy, machine.TurnFailed{
			Turn: turn, Class: machine.FailContext, Message: fmt.Sprintf("not sent: the request would take about %d tokens, more than is to be had", pack.Tokens),
		})
	}
	req := model.Request{
		Model: p.name, System: pack.System, Messages: pack.Messages, Tools: r.e.specs(), MaxOutput: maxOutput(p.limits),
		Run: string(r.id), Turn: turn, Attempt: t.Attempts, Vars: asked.Charter.Vars, Tokens: pack.Tokens,
	}
	if turn > 1 {
		req.Prior = asked.Turn(turn - 1).RequestID
	}
	live := &liveFeed{e: r.e, run: r.id, turn: turn}
	var resp model.Response
	var cerr error
	sent := r.e.now()
	lost := r.during(ctx, ended, func(ctx context.Context, _ *job) {
		leave, err := r.place(ctx)
		if err != nil {
			cerr = err
			return
		}
		defer leave()
		free, err := r.e.slots.take(ctx, "model calls", modelCalls)
		if err != nil {
			cerr = err
			return
		}
		defer free()
		sent = r.e.now()
		resp, cerr = p.Complete(ctx, req, live.add)
	})
	live.end()
	if lost != nil {
		return lost
	}
	if cerr != nil {
		return r.failTurn(ctx, turn, sent, cerr, p.limits.AtMost(pack.Tokens, maxOutput(p.limits)))
	}
	r.e.meters.answered(meterOf(&r.state))
	resp.Usage = p.limits.Charge(resp.Usage)
	r.e.o.Crash.Pass(PointBeforeIntent, fmt.Sprintf("turn %d", turn))
	return r.respond(ctx, turn, resp, &pack)
}

// maxOutput bounds an answer: no single step needs more, and an answer that
// runs away is cut where it still costs little.
func maxOutput(l model.Limits) int {
	const most = 32 << 10
	return min(l.MaxOutput, most) // 0, unknown, leaves it to the provider
}

// backoff is the pause before request number n+1 of a turn when the provider names none.
func backoff(n int) time.Duration { return min(time.Second<<min(n-1, 6), time.Minute) }

// failTurn books a request, sent at a time in Unix µs, that gave no answer.
func (r *run) failTurn(ctx context.Context, turn int, sent int64, err error, atMost int64) error {
	if ctx.Err() != nil {
		return ctx.Err() // this process ends; the next claim books the call as lost
	}
	fail := machine.TurnFailed{Turn: turn, Class: machine.FailNetwork, Message: err.Error()}
	var m *model.Error
	if errors.As(err, &m) {
		fail.Class, fail.Message = m.Class, m.Message
		switch {
		case m.Usage.Cost > 0:
			fail.Cost = m.Usage.Cost
		case m.Sent:
			fail.AtMost = atMost
		}
		fail.Partial = machine.Text{Inline: preview(m.Partial, 1024)}
	} else {
		fail.Class = machine.FailBadRequest
	}
	if t := r.state.Turn(turn); t != nil && fail.Class.Retryable() {
		given := time.Duration(0)
		if m != nil {
			given = m.RetryAfter
		}
		name := meterOf(&r.state)
		wait, spent := r.e.meters.fail(name, fail.Class, sent, r.e.now(), given)
		if !strings.HasPrefix(name, "script/") {
			wait += spread(r.id, wait)
		}
		fail.RetryAt, fail.Spent = r.e.o.Now().Add(wait).UnixMicro(), spent
	}
	return r.record(ctx, ledger.Lazy, fail)
}

// liveFeed passes on model text as it arrives. It may lose any of it.
type liveFeed struct {
	e    *Engine
	run  machine.RunID
	turn int
	mu   sync.Mutex
	text []byte
}

const maxLive = 64 << 10

func (l *liveFeed) add(delta string) {
	l.mu.Lock()
	if len(l.text) < maxLive {
		l.text = append(l.text, delta...)
	}
	text := string(l.text)
	l.mu.Unlock()
	l.e.publish(LiveText{Run: l.run, Turn: l.turn, Text: text})
}

func (l *liveFeed) end() {
	l.mu.Lock()
	text := string(l.text)
	l.mu.Unlock()
	l.e.publish(LiveText{Run: l.run, Turn: l.turn, Text: text, Done: true})
}

// heldNow: the provider must not be asked at this time.
func (r *run) heldNow() bool {
	until, _ := r.e.meters.held(meterOf(&r.state), r.e.now())
	return until > 0
}
