package window

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"pawl/engine/machine"
)

// step draws one event that could come next; whether it may is Fold's to say.
func step(rt *rapid.T, r *run, i int) (machine.Body, string) {
	word := rapid.SampledFrom([]string{"", "a word", "zwei Wörter", "x\x00y", "\xff\xfe", strings.Repeat("long ", 4000)})
	s := &r.s
	effect := machine.EffectID("")
	attempt := 0
	var digest machine.Digest
	if n := s.Effects.Len(); n > 0 {
		e := s.Effects.At(max(0, n-1-rapid.IntRange(0, 3).Draw(rt, "back")))
		effect, attempt, digest = e.ID, len(e.Attempts), e.Digest
	}
	engine, person := machine.ActorEngine, machine.ActorOperator+"ann"
	turn := s.LastTurn()
	switch rapid.IntRange(0, 19).Draw(rt, "kind") {
	case 0, 1, 2:
		n, a := s.Turns.Len()+1, 1
		if turn != nil && turn.State == machine.TurnBroken {
			n, a = turn.N, turn.Attempts+1
		}
		return machine.TurnRequested{Turn: n, Attempt: a, Window: 1}, engine
	case 3, 4, 5:
		var calls []machine.Call
		ord := s.Effects.Len() + 1
		for range rapid.IntRange(0, 3).Draw(rt, "calls") {
			c := call(rapid.SampledFrom([]string{"shell", "read_file", "né", ""}).Draw(rt, "tool"), rapid.SampledFrom([]string{`{"a":1}`, `{}`, `{bro`, ``}).Draw(rt, "args"))
			c.Effect = machine.EffectIDOf(s.Charter.ID, ord)
			if rapid.IntRange(0, 5).Draw(rt, "repeat") > 0 {
				ord++
			}
			calls = append(calls, c)
		}
		return machine.TurnResponded{Turn: s.Turns.Len(), Stop: machine.StopTools, Text: r.text(word.Draw(rt, "text")), Calls: calls}, engine
	case 6:
		return machine.TurnFailed{Turn: s.Turns.Len(), Class: machine.FailCut, Message: "cut"}, engine
	case 7, 8, 9:
		if turn == nil || len(turn.Calls) == 0 {
			return machine.PlanUpdated{Items: []machine.PlanItem{{Text: fmt.Sprint("item ", i), State: "todo"}}}, engine
		}
		k := rapid.IntRange(0, len(turn.Calls)-1).Draw(rt, "call")
		if rapid.IntRange(0, 4).Draw(rt, "refuse") == 0 {
			return machine.EffectRefused{Effect: s.NextEffect(), Turn: turn.N, Call: k, Tool: turn.Calls[k].Tool, Reason: word.Draw(rt, "reason")}, engine
		}
		return machine.EffectIntended{
			Effect: s.NextEffect(), Turn: turn.N, Call: k, Tool: turn.Calls[k].Tool, Args: turn.Calls[k].Args,
			Contract: machine.Contract{Class: machine.ClassIrreversible, Sender: machine.SenderPawl, Compensation: &machine.Compensation{Tool: "shell"}},
		}, engine
	case 10, 11:
		return machine.EffectDispatched{Effect: effect, Attempt: attempt + 1, Digest: digest}, engine
	case 12:
		return machine.EffectCompleted{Effect: effect, Attempt: attempt, Result: machine.Result{Code: "0", Output: r.text(word.Draw(rt, "out"))}}, engine
	case 13:
		return machine.EffectAmbiguous{Effect: effect, Attempt: attempt, Cause: word.Draw(rt, "cause")}, engine
	case 14:
		return rapid.SampledFrom([]machine.Body{
			machine.EffectForced{Effect: effect, Choice: machine.ChooseHappened, Reason: "seen", Typed: effect.Short()},
			machine.EffectForced{Effect: effect, Choice: machine.ChooseRetry, Reason: "not there", Typed: effect.Short()},
			machine.EffectAbandoned{Effect: effect, Reason: "later"},
			machine.CompensationAsked{Effect: effect},
		}).Draw(rt, "verdict"), person
	case 15:
		return machine.EvidenceAdded{Effect: effect, Evidence: machine.Evidence{Verdict: machine.VerdictHappened, Authority: machine.AuthLateAck, Covers: attempt, Text: fmt.Sprint("seen ", i)}}, engine
	case 16:
		return rapid.SampledFrom([]machine.Body{
			machine.EffectSettled{Effect: effect, State: machine.StateHappened, Text: "so"},
			machine.EffectSettled{Effect: effect, State: machine.StateContradicted, Text: "so"},
			machine.WorkspaceChanged{Files: []string{fmt.Sprint("f", i)}},
			machine.DecisionRecorded{Text: fmt.Sprint("decision ", i)},
		}).Draw(rt, "other"), engine
	case 17:
		n := s.Turns.Len() + 1
		if turn != nil && turn.State == machine.TurnBroken {
			n = turn.N
		}
		return machine.WindowOpened{
			Window: s.Window + 1, Turn: n, Keep: rapid.IntRange(max(s.Keep, 1), max(n, s.Keep, 1)).Draw(rt, "keep"),
			Output: rapid.SampledFrom([]int{0, 0, 1 << 10}).Draw(rt, "output"), Budget: 20_000,
		}, engine
	case 18:
		return machine.NoteWritten{Text: fmt.Sprint("note ", i)}, engine
	default:
		return machine.Told{Text: fmt.Sprintf("told %d", i)}, person
	}
}

// Over any run: building again gives the same bytes, a builder that has seen
// every step gives what a fresh one gives, packs that were handed out never
// change, and every pack is legal and names what binds.
func TestBuildProperties(t *testing.T) {
	depth := 0
	rapid.Check(t, func(rt *rapid.T) {
		r := newRun(t)
		var b Builder
		type kept struct {
			pack Pack
			text string
		}
		var old []kept
		for i := range rapid.IntRange(5, 70).Draw(rt, "steps") {
			body, actor := step(rt, r, i)
			if r.try(body, actor) != nil {
				continue
			}
			depth = max(depth, r.s.Turns.Len())
			if rapid.IntRange(0, 2).Draw(rt, "build") == 0 {
				continue // builders do not see every state
			}
			p, err := b.Build(&r.s, r.blobs, Options{})
			if err != nil {
				rt.Fatal(err)
			}
			fresh, err := Build(&r.s, r.blobs, Options{})
			if err != nil {
				rt.Fatal(err)
			}
			if !reflect.DeepEqual(p, fresh) {
				rt.Fatalf("after %s: kept\n%s\nfresh\n%s", body.Kind(), render(&p), render(&fresh))
			}
			check(rt, &r.s, &p)
			for _, k := range old {
				if (k.pack.Digest == p.Digest) != (k.text == fmt.Sprint(p.Messages)) {
					rt.Fatalf("digest %s is equal: %v, messages are equal: %v", p.Digest.Short(), k.pack.Digest == p.Digest, k.text == fmt.Sprint(p.Messages))
				}
			}
			if len(old) < 3 {
				old = append(old, kept{p, fmt.Sprint(p.Messages)})
			}
		}
		for i, k := range old {
			if fmt.Sprint(k.pack.Messages) != k.text {
				rt.Fatalf("pack %d was changed after it was handed out", i)
			}
		}
	})
	if depth < 4 {
		t.Errorf("the longest run had %d turns; the events drawn do not get anywhere", depth)
	}
}

// grow adds one finished turn.
func grow(tb testing.TB, r *run, out string) {
	n := r.ask(tb, "I go on with the next thing.", call("shell", `{"command":"go test ./..."}`))
	r.complete(tb, n, 0, machine.Result{OK: true, Code: "0", Output: machine.Text{Inline: out, Size: int64(len(out))}})
}

func BenchmarkBuildNext(b *testing.B) {
	for _, turns := range []int{10, 1000, 5000} {
		b.Run(fmt.Sprintf("turns=%d", turns), func(b *testing.B) {
			r := newRun(b)
			out := strings.Repeat("ok pawl 0.1s\n", 80)
			for range turns {
				grow(b, r, out)
			}
			var w Builder
			if _, err := w.Build(&r.s, r.blobs, Options{}); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				grow(b, r, out)
				b.StartTimer()
				if _, err := w.Build(&r.s, r.blobs, Options{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkBuildFresh(b *testing.B) {
	r := newRun(b)
	for range 5000 {
		grow(b, r, strings.Repeat("ok pawl 0.1s\n", 80))
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Build(&r.s, r.blobs, Options{}); err != nil {
			b.Fatal(err)
		}
	}
}
