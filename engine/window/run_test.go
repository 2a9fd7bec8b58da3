package window

import (
	"errors"
	"fmt"
	"testing"

	"pawl/engine/machine"
)

// run folds events into a state, as a ledger would give them.
type run struct {
	s     machine.State
	blobs blobs
}

type blobs map[machine.Digest][]byte

func (b blobs) Blob(d machine.Digest) ([]byte, error) {
	if v, ok := b[d]; ok {
		return v, nil
	}
	return nil, errors.New("no such blob")
}

func newRun(tb testing.TB) *run {
	tb.Helper()
	r := &run{blobs: blobs{}}
	r.do(tb, machine.RunCreated{Charter: machine.Charter{
		ID: "rtest", Goal: "mend the retry", Check: "go test ./...", Model: "script/x", Prompt: PromptVersion,
		Allow: []string{"git push origin *"}, Constraint: []string{"Leave the public API as it is."},
	}})
	r.do(tb, machine.RunClaimed{Owner: "me", Boot: "boot"})
	return r
}

// try applies an event if it may follow.
func (r *run) try(body machine.Body, actor string) error {
	epoch := r.s.Epoch
	if _, ok := body.(machine.RunClaimed); ok {
		epoch++
	}
	next, err := machine.Fold(r.s, machine.Event{N: r.s.Tail + 1, At: r.s.Tail + 1, Actor: actor, Epoch: epoch, Body: body})
	if err == nil {
		r.s = next
	}
	return err
}

func (r *run) do(tb testing.TB, bodies ...machine.Body) {
	tb.Helper()
	for _, b := range bodies {
		actor := machine.ActorEngine
		switch b.(type) {
		case machine.Told, machine.EffectForced, machine.EffectAbandoned, machine.CompensationAsked, machine.ApprovalDenied, machine.ApprovalGranted, machine.QuestionAnswered:
			actor = machine.ActorOperator + "ann"
		}
		if err := r.try(b, actor); err != nil {
			tb.Fatal(err)
		}
	}
}

func (r *run) text(s string) machine.Text {
	if len(s) <= machine.MaxInline {
		return machine.Text{Inline: s, Size: int64(len(s))}
	}
	d := machine.DigestOf([]byte(s))
	r.blobs[d] = []byte(s)
	return machine.Text{Inline: s[:16], Blob: d, Size: int64(len(s))}
}

func (r *run) bytes(b []byte) machine.Text {
	d := machine.DigestOf(b)
	r.blobs[d] = b
	return machine.Text{Blob: d, Size: int64(len(b))}
}

// ask adds an answered turn with these calls and returns its number.
func (r *run) ask(tb testing.TB, text string, calls ...machine.Call) int {
	tb.Helper()
	n := r.s.Turns.Len() + 1
	stop := machine.StopTools
	if len(calls) == 0 {
		stop = machine.StopEnd
	}
	first := r.s.Effects.Len() + 1
	for i := range calls {
		if calls[i].Effect == "" {
			calls[i].Effect = machine.EffectIDOf(r.s.Charter.ID, first)
			first++
		}
	}
	r.do(tb, machine.TurnRequested{Turn: n, Attempt: 1, Window: 1},
		machine.TurnResponded{Turn: n, Stop: stop, Text: r.text(text), Calls: calls, RequestID: fmt.Sprintf("req-%d", n)})
	return n
}

func call(tool, args string) machine.Call {
	return machine.Call{Provider: "call_0", Tool: tool, Args: machine.Text{Inline: args, Size: int64(len(args))}}
}

// intend adds the effect of call i of a turn.
func (r *run) intend(tb testing.TB, turn, i int, c machine.Contract) machine.EffectID {
	tb.Helper()
	id := r.s.NextEffect()
	k := r.s.Turn(turn).Calls[i]
	r.do(tb, machine.EffectIntended{
		Effect: id, Turn: turn, Call: i, Tool: k.Tool, Args: k.Args, Summary: k.Tool + " it", Contract: c, Digest: machine.DigestOf([]byte(id)),
	})
	return id
}

func (r *run) dispatch(tb testing.TB, id machine.EffectID) int {
	tb.Helper()
	e := r.s.Effect(id)
	n := len(e.Attempts) + 1
	r.do(tb, machine.EffectDispatched{Effect: id, Attempt: n, Digest: e.Digest, Approval: e.Approval})
	return n
}

var irreversible = machine.Contract{Name: "http", Class: machine.ClassIrreversible, Sender: machine.SenderPawl}

// complete runs one call to a good end.
func (r *run) complete(tb testing.TB, turn, i int, res machine.Result) machine.EffectID {
	tb.Helper()
	id := r.intend(tb, turn, i, irreversible)
	r.do(tb, machine.EffectCompleted{Effect: id, Attempt: r.dispatch(tb, id), Result: res})
	return id
}

func (r *run) build(tb testing.TB) Pack {
	tb.Helper()
	p, err := Build(&r.s, r.blobs, Options{})
	if err != nil {
		tb.Fatal(err)
	}
	return p
}
