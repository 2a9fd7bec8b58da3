package tool

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"pawl/engine/machine"
)

func TestInternalTools(t *testing.T) {
	b := newBench(t, Options{})
	for _, name := range b.set.Names() {
		want := name == "ask_operator" || name == "update_plan" || name == "record_decision" || name == "handoff_note"
		if Internal(name) != want {
			t.Errorf("Internal(%s) = %v", name, !want)
		}
	}
	for _, c := range []struct {
		tool          string
		args          m
		summary, text string
	}{
		{"ask_operator", m{"question": "Which?\nmore", "choices": []string{"a", "b"}}, "ask: Which? …", "Which?\nmore\n1. a\n2. b"},
		{"update_plan", m{"items": []m{{"text": "x", "state": "done"}, {"text": "y", "state": "doing"}}}, "plan: 1 of 2 steps done", "done  x\ndoing y\n"},
		{"record_decision", m{"text": "use b"}, "decision: use b", "use b"},
		{"handoff_note", m{"text": "tests\nare red"}, "note: tests …", "tests\nare red"},
	} {
		p := b.mustPlan(c.tool, c.args)
		if p.Summary != c.summary || p.Text != c.text || !p.Subject.Internal || p.Contract.Class != machine.ClassRead {
			t.Errorf("%+v", p)
		}
	}
	wantText(t, text(t, b.do("update_plan", m{"items": []m{{"text": "x", "state": "done"}}})), "1 of 1 step done")
	wantEnd(t, b.do("ask_operator", m{"question": "q"}), EndRejected, CodeNotStarted)
	wantText(t, b.refused("record_decision", m{"text": strings.Repeat("é", 300)}), "600 bytes long; at most 500")
	wantText(t, b.refused("record_decision", m{"text": " "}), "empty")
	wantText(t, b.refused("handoff_note", m{"text": strings.Repeat("é", 1500)}), "3000 bytes long; at most 2000")
	wantText(t, b.refused("handoff_note", m{"text": " "}), "empty")
	wantText(t, b.refused("update_plan", m{"items": []m{{"text": strings.Repeat("é", 150), "state": "todo"}}}), "Entry 1", "300 bytes")
	wantText(t, b.refused("ask_operator", m{"question": "  "}), "empty")
	wantText(t, b.refused("finish", m{"summary": "  "}), "empty")
}

func TestParsersReturnWhatWasSaid(t *testing.T) {
	a, err := ParseAsk(json.RawMessage(`{"choices":["a","b"],"question":"q"}`))
	if err != nil || a.Question != "q" || len(a.Choices) != 2 {
		t.Errorf("%+v, %v", a, err)
	}
	items, err := ParsePlan(json.RawMessage(`{"items":[{"state":"doing","text":"x"}]}`))
	if err != nil || len(items) != 1 || items[0] != (machine.PlanItem{Text: "x", State: "doing"}) {
		t.Errorf("%+v, %v", items, err)
	}
	if d, err := ParseDecision(json.RawMessage(`{"text":"d"}`)); err != nil || d != "d" {
		t.Errorf("%q, %v", d, err)
	}
	if f, err := ParseFinish(json.RawMessage(`{"summary":"s"}`)); err != nil || f.Summary != "s" {
		t.Errorf("%+v, %v", f, err)
	}
}

// stateWith folds a run whose one effect has an output blob.
func stateWith(t *testing.T, outputs ...machine.Digest) *machine.State {
	t.Helper()
	var s machine.State
	var n int64
	add := func(b machine.Body) {
		n++
		var err error
		if s, err = machine.Fold(s, machine.Event{N: n, Actor: machine.ActorEngine, Epoch: 1, Body: b}); err != nil {
			t.Fatalf("%s: %v", b.Kind(), err)
		}
	}
	add(machine.RunCreated{Charter: machine.Charter{ID: "r1abc", Goal: "g", Model: "script/x", Prompt: 1}})
	add(machine.RunClaimed{Owner: "test", Boot: "test"})
	add(machine.WorkspaceReady{Path: "/w", Mode: "folder", Level: "none"})
	for i, d := range outputs {
		id := s.NextEffect()
		add(machine.TurnRequested{Turn: i + 1, Attempt: 1, Window: 1})
		add(machine.TurnResponded{Turn: i + 1, Stop: machine.StopTools, Calls: []machine.Call{{Tool: "search", Args: machine.Text{Inline: `{"pattern":"x"}`}, Effect: id}}})
		add(machine.EffectIntended{Effect: id, Turn: i + 1, Tool: "search", ToolVersion: 1, Args: machine.Text{Inline: `{"pattern":"x"}`}, Contract: readContract("search", 1)})
		add(machine.EffectDispatched{Effect: id, Attempt: 1})
		add(machine.EffectCompleted{Effect: id, Attempt: 1, Result: machine.Result{OK: true, Code: "0", Output: machine.Text{Inline: "…", Blob: d, Size: 5000}}})
	}
	return &s
}

func TestReadEvidence(t *testing.T) {
	b := newBench(t, Options{})
	whole := []byte(strings.Repeat("äb\n", 1000))
	bin := []byte("\x00\xff")
	d, db := machine.DigestOf(whole), machine.DigestOf(bin)
	b.env.State = stateWith(t, d, db)
	b.env.Blob = func(_ context.Context, have machine.Digest) ([]byte, error) {
		return map[machine.Digest][]byte{d: whole, db: bin}[have], nil
	}
	got := text(t, b.do("read_evidence", m{"handle": d.Short()}))
	if got != string(whole)+"[bytes 0 to 4000 of 4000]\n" {
		t.Errorf("%q", got[len(got)-60:])
	}
	for _, c := range []struct {
		off, lim int
		want     string
	}{
		{0, 1, "ä\n[bytes 0 to 2 of 4000; go on with offset 2]\n"},
		{1, 2, "äb\n[bytes 0 to 3 of 4000"}, // never begins inside a character
		{4, 5, "äb\n[bytes 4 to 8 of 4000; go on with offset 8]\n"},
		{-4, 100, "äb\n[bytes 3996 to 4000 of 4000]\n"},
		{-9999, 4, "äb\n[bytes 0 to 4 of 4000"},
	} {
		got := text(t, b.do("read_evidence", m{"handle": "sha256:" + strings.ToUpper(d.String()), "offset": c.off, "limit": c.lim}))
		if !strings.HasPrefix(got, c.want) {
			t.Errorf("offset %d limit %d: %q, want %q", c.off, c.lim, got, c.want)
		}
	}
	wantEnd(t, b.do("read_evidence", m{"handle": d.Short(), "offset": 4000}), EndCompleted, CodeNotFound)
	wantText(t, text(t, b.do("read_evidence", m{"handle": db.Short()})), "is binary", "2 bytes")
	// Another run's output is none of this run's business, even by its whole hash.
	other := machine.DigestOf([]byte("other"))
	o := b.do("read_evidence", m{"handle": other.String()})
	wantEnd(t, o, EndCompleted, CodeNotFound)
	wantText(t, b.refused("read_evidence", m{"handle": "the output"}), "hexadecimal")
	b.env.State = nil
	wantEnd(t, b.do("read_evidence", m{"handle": d.Short()}), EndCompleted, CodeNotFound)
}
