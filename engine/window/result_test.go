package window

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/charmbracelet/x/exp/golden"

	"pawl/engine/machine"
)

// every is one effect in each state, made by real events where there is a short way.
func every(t *testing.T) (*run, []struct {
	name string
	e    *machine.Effect
},
) {
	t.Helper()
	r := newRun(t)
	type named = struct {
		name string
		e    *machine.Effect
	}
	var out []named
	add := func(name string, e machine.Effect) { out = append(out, named{name, &e}) }
	base := machine.Effect{
		ID: "rtest.e99", Ord: 99, Turn: 1, Tool: "http_request", Summary: "POST http://w/tickets",
		Args: machine.Text{Inline: `{"url":"http://w/tickets"}`}, Contract: irreversible,
	}
	with := func(f func(*machine.Effect)) machine.Effect {
		e := base
		f(&e)
		return e
	}
	lost := []machine.Attempt{{N: 1, End: machine.EndUnknown, Cause: "the connection broke before an answer came"}}
	evidence := func(v machine.Verdict, a machine.Authority, text string) []machine.Evidence {
		return []machine.Evidence{{N: 7, Verdict: v, Authority: a, Covers: 1, Text: text}}
	}

	add("refused", with(func(e *machine.Effect) {
		e.State, e.Reason = machine.StateRefused, "there is no tool called bash; use shell"
	}))
	n := r.ask(t, "", call("http_request", "{}"))
	id := r.intend(t, n, 0, irreversible)
	r.do(t, machine.ApprovalRequested{Approval: r.s.NextApproval(), Effect: id, Digest: r.s.Effect(id).Digest, Why: "network"})
	add("waits for approval", *r.s.Effect(id))
	r.do(t, machine.ApprovalDenied{Approval: r.s.Effect(id).Approval, Feedback: "not on a Friday"})
	add("denied", *r.s.Effect(id))
	add("cancelled", with(func(e *machine.Effect) {
		e.State, e.Reason = machine.StateCancelled, "the run was cancelled"
	}))
	add("completed shell", with(func(e *machine.Effect) {
		e.Tool, e.State = "shell", machine.StateCompleted
		e.Result = machine.Result{Code: "1", Output: machine.Text{Inline: "--- FAIL: TestX\n"}, Note: "took 3 s"}
	}))
	add("completed shell without output", with(func(e *machine.Effect) {
		e.Tool, e.State, e.Result = "shell", machine.StateCompleted, machine.Result{OK: true, Code: "0"}
	}))
	add("completed request", with(func(e *machine.Effect) {
		e.State = machine.StateCompleted
		e.Result = machine.Result{OK: true, Code: "201", Output: machine.Text{Inline: "created\n"}}
	}))
	add("completed read", with(func(e *machine.Effect) {
		e.Tool, e.State = "read_file", machine.StateCompleted
		e.Result = machine.Result{OK: true, Output: machine.Text{Inline: "package x\n"}}
	}))
	add("completed without success", with(func(e *machine.Effect) {
		e.Tool, e.State = "read_file", machine.StateCompleted
		e.Result = machine.Result{Note: "no such file"}
	}))
	add("answered", with(func(e *machine.Effect) {
		e.Tool, e.State, e.By = "ask_operator", machine.StateCompleted, "operator:ann"
		e.Result = machine.Result{OK: true, Output: machine.Text{Inline: "use main"}}
	}))
	add("completed after a replay", with(func(e *machine.Effect) {
		e.Tool, e.State, e.Contract.Class = "shell", machine.StateCompleted, machine.ClassWorkspace
		e.Attempts = []machine.Attempt{{N: 1, End: machine.EndUnknown}, {N: 2, End: machine.EndCompleted}}
		e.Result = machine.Result{OK: true, Code: "0"}
	}))
	add("completed after a forced retry", with(func(e *machine.Effect) {
		e.State, e.Forced = machine.StateCompleted, true
		e.Attempts = []machine.Attempt{{N: 1, End: machine.EndNotHappened, Forced: true}, {N: 2, End: machine.EndCompleted}}
		e.Result = machine.Result{OK: true, Code: "201"}
	}))
	add("rejected", with(func(e *machine.Effect) {
		e.State, e.Result = machine.StateRejected, machine.Result{Code: "connection_refused"}
	}))
	add("dispatched", with(func(e *machine.Effect) {
		e.State, e.Attempts = machine.StateDispatched, []machine.Attempt{{N: 1}}
	}))
	add("ambiguous", with(func(e *machine.Effect) { e.State, e.Attempts = machine.StateAmbiguous, lost }))
	add("ambiguous with output", with(func(e *machine.Effect) {
		e.State = machine.StateAmbiguous
		e.Attempts = []machine.Attempt{{N: 1, End: machine.EndUnknown, Cause: "pawl was killed.", Partial: machine.Text{Inline: "writing objects\n"}}}
	}))
	add("abandoned", with(func(e *machine.Effect) {
		e.State, e.Attempts, e.Reason = machine.StateAbandoned, lost, "I shall look tomorrow"
	}))
	add("confirmed by a probe", with(func(e *machine.Effect) {
		e.State, e.Attempts = machine.StateHappened, lost
		e.Evidence = evidence(machine.VerdictHappened, machine.AuthProbe, "the remote ref fix/retry is at 1234abcd")
	}))
	add("confirmed by a late answer", with(func(e *machine.Effect) {
		e.State, e.Attempts = machine.StateHappened, lost
		e.Evidence = evidence(machine.VerdictHappened, machine.AuthLateAck, "status 201 arrived after 40 s")
		e.Result = machine.Result{OK: true, Code: "201", Output: machine.Text{Inline: "created"}}
	}))
	add("forced happened", with(func(e *machine.Effect) {
		e.State, e.Forced, e.Attempts, e.Reason = machine.StateForcedHappened, true, lost, "I see ticket 4 in the list"
	}))
	add("not happened", with(func(e *machine.Effect) {
		e.State, e.Attempts = machine.StateNotHappened, lost
		e.Evidence = evidence(machine.VerdictNotHappened, machine.AuthProbe, "the ref still has its old value")
	}))
	add("not happened, given up", with(func(e *machine.Effect) {
		e.State, e.Attempts, e.GivenUp, e.Reason = machine.StateNotHappened, lost, true, "not needed any more"
		e.Evidence = evidence(machine.VerdictNotHappened, machine.AuthProbe, "the ref still has its old value")
	}))
	add("forced not", with(func(e *machine.Effect) {
		e.State, e.Forced, e.Attempts, e.Reason = machine.StateForcedNot, true, lost, "the list is empty"
	}))
	add("contradicted", with(func(e *machine.Effect) {
		e.State, e.Attempts, e.Reason = machine.StateContradicted, lost, "the ref was found at another commit"
	}))
	undo := irreversible
	undo.Compensation = &machine.Compensation{Tool: "http_request", Args: `{"method":"DELETE"}`}
	add("compensating", with(func(e *machine.Effect) {
		e.State, e.Before, e.Contract = machine.StateCompensating, machine.StateCompleted, undo
	}))
	add("compensated", with(func(e *machine.Effect) {
		e.State, e.Before, e.Contract = machine.StateCompensated, machine.StateAmbiguous, undo
	}))
	add("compensation failed", with(func(e *machine.Effect) {
		e.State, e.Failed = machine.StateCompleted, "status 409"
		e.Result = machine.Result{OK: true, Code: "201"}
	}))
	e1 := r.intend(t, r.ask(t, "", call("shell", `{"command":"rm -r build"}`)), 0, irreversible)
	r.do(t, machine.EffectCancelled{Effect: e1, Reason: "edited"})
	e2 := r.s.NextEffect()
	r.do(t, machine.EffectIntended{
		Effect: e2, Turn: 2, Call: -1, Tool: "shell", Args: machine.Text{Inline: `{"command":"make clean"}`},
		Contract: irreversible, Digest: machine.DigestOf([]byte("x")), Replaces: e1,
	})
	r.do(t, machine.EffectCompleted{Effect: e2, Attempt: r.dispatch(t, e2), Result: machine.Result{OK: true, Code: "0", Output: machine.Text{Inline: "cleaned\n"}}})
	add("edited by the operator", *r.s.Effect(e1))
	out = append(out, named{"nothing recorded", nil})
	return r, out
}

// The words of every result are product text.
func TestResultTexts(t *testing.T) {
	r, all := every(t)
	var b strings.Builder
	for _, c := range all {
		text, err := ResultText(&r.s, c.e, r.blobs)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "=== %s\n%s\n\n", c.name, text)
	}
	golden.RequireEqual(t, b.String())
}

// Whatever is not known is called unknown, and nothing else is; no text calls
// it a failure or invites to try again.
func TestUnknownIsNeverAFailure(t *testing.T) {
	r, all := every(t)
	for _, c := range all {
		text, err := ResultText(&r.s, c.e, r.blobs)
		if err != nil {
			t.Fatal(err)
		}
		open := c.e == nil
		if c.e != nil {
			open = slices.Contains([]machine.EffectState{
				machine.StateDispatched, machine.StateAmbiguous, machine.StateAbandoned, machine.StateContradicted,
			}, c.e.State)
		}
		if strings.HasPrefix(text, "unknown: ") != open {
			t.Errorf("%s: %q", c.name, text)
		}
		if !open {
			continue
		}
		low := strings.ToLower(text)
		for _, bad := range []string{"fail", "error", "try again", "retry", "did not happen"} {
			if strings.Contains(low, bad) {
				t.Errorf("%s says %q: %s", c.name, bad, text)
			}
		}
		for _, must := range []string{"Do not repeat it", "through another tool"} {
			if !strings.Contains(text, must) {
				t.Errorf("%s does not say %q", c.name, must)
			}
		}
	}
}

// The preview on a card is what the model gets afterwards, with the reason put in.
func TestResultIfIsWhatFollows(t *testing.T) {
	for _, choice := range []machine.Choice{machine.ChooseHappened, machine.ChooseAbandon} {
		r := newRun(t)
		id := r.intend(t, r.ask(t, "", call("http_request", "{}")), 0, irreversible)
		r.do(t, machine.EffectAmbiguous{Effect: id, Attempt: r.dispatch(t, id), Cause: "the process died"})
		preview := ResultIf(&r.s, r.s.Effect(id), choice)
		if choice == machine.ChooseHappened {
			r.do(t, machine.EffectForced{Effect: id, Choice: choice, Reason: "I saw it", Typed: id.Short()})
		} else {
			r.do(t, machine.EffectAbandoned{Effect: id, Reason: "I saw it"})
		}
		text, err := ResultText(&r.s, r.s.Effect(id), r.blobs)
		if err != nil || strings.Replace(preview, yourReason, "I saw it", 1) != text {
			t.Errorf("%s: preview %q, text %q (%v)", choice, preview, text, err)
		}
	}
	r, all := every(t)
	var b strings.Builder
	for _, c := range all {
		if c.e == nil || c.name != "ambiguous" && c.name != "not happened" {
			continue
		}
		for _, x := range []machine.Choice{machine.ChooseWait, machine.ChooseProbe, machine.ChooseHappened, machine.ChooseRetry, machine.ChooseCompensate, machine.ChooseAbandon} {
			fmt.Fprintf(&b, "=== %s, %s\n%s\n\n", c.name, x, ResultIf(&r.s, c.e, x))
		}
	}
	golden.RequireEqual(t, b.String())
}

func TestInstructionsAreKept(t *testing.T) {
	text, err := Instructions(1)
	if err != nil {
		t.Fatal(err)
	}
	golden.RequireEqual(t, text)
	t.Run("2", func(t *testing.T) {
		text, err := Instructions(2)
		if err != nil {
			t.Fatal(err)
		}
		golden.RequireEqual(t, text)
	})
	if _, err := Instructions(PromptVersion + 1); err == nil || !strings.Contains(err.Error(), "newer") {
		t.Errorf("a later version: %v", err)
	}
	// A changed text under an old version would change what old runs were shown.
	if _, err := os.Stat(filepath.Join("testdata", "TestInstructionsAreKept.golden")); err != nil {
		t.Error(err)
	}
}
