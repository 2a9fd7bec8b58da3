package tui

import (
	"strings"
	"testing"
	"time"

	"pawl/engine"
	"pawl/engine/machine"
)

// TestTabs walks through every tab of a run: each says what it is for, unfolds,
// and leads to what stands behind a row.
func TestTabs(t *testing.T) {
	s := newStage(t, demo(), 120, 40)
	s.slowly("2", "enter")
	s.sees("[Timeline]")
	s.slowly("]")
	s.sees("[Effects]", "git push origin fix/retry · ambiguous", "npm publish · forced happened", "read retry.go · completed · 2 attempts")
	s.picture("20-effects")
	s.slowly("k", "enter") // the last but one: e7
	s.sees("effect e7", "Ways out")
	s.slowly("esc")
	s.sees("[Effects]")
	s.slowly("]", "]")
	s.sees("[Children]", "parser-tests", "lexer-fuzz")
	s.picture("21-children")
	s.slowly("enter")
	s.sees("parser-tests 日本語")
	s.slowly("esc", "]")
	s.sees("[Context]", "window 2 of 2", "12.3k tokens of 200.0k (6 %)", "unresolved and forced effects", "not whole: output of c12_1")
	s.slowly("j", "j", "enter")
	s.sees("what the model reads under “plan and decisions”", "made of event 1, events 3-9")
	s.picture("22-context")
	s.slowly("<")
	s.sees("window 1 of 2")
	s.slowly("<")
	s.sees("There are 2 windows so far")
	s.slowly("]")
	s.sees("[State]", "if the plug were pulled now", "In flight", "workspace", "memory")
	s.slowly("j", "enter")
	s.sees("lives in: ledger", "comes back by: folding its events", "more of task")
	s.picture("23-state")
	s.slowly("]")
	s.sees("[Timeline]")
	s.decisions()
	s.exact(120, 40)
}

// TestDiffTab folds files, changes to two columns and copies what it shows.
func TestDiffTab(t *testing.T) {
	s := newStage(t, demo(), 200, 40)
	s.slowly("2", "enter", "]", "]")
	s.sees("[Diff]", "2 files · +3 −2", "+2 −1", "backoff.go", "d = doubled(p.Base, n-1)", "go 1.26")
	s.picture("26-diff")
	s.slowly("v")
	s.sees("d = doubled(p.Base, n) │ 11 + d = doubled(p.Base, n-1)")
	s.picture("27-diff-beside")
	s.slowly("enter")
	s.seesNot("doubled(p.Base")
	s.slowly("j", "enter")
	s.seesNot("go 1.26")
	s.sees("backoff.go", "go.mod")
	s.exact(200, 40)
}

// TestRecoverySteps goes through an interruption step by step: a decision made
// from there holds the run first, and only the operator's word lets it go on.
func TestRecoverySteps(t *testing.T) {
	f := demo()
	f.runs[0].State = engine.Interrupted
	s := newStage(t, f, 120, 40)
	s.sees("1 run was interrupted", "r shows what became")
	s.slowly("2", "r")
	s.sees("2 of 3 steps settled", "run again", "yours", "What happens next", "your word on e7")
	s.picture("24-recovery")
	s.slowly("o")
	s.sees("1 of 3 steps are not settled yet")
	s.decisions()
	s.slowly("1")
	s.sees("There is nothing to open behind this step")
	s.slowly("3")
	s.sees("effect e7", "Ways out")
	s.slowly("x", "ctrl+s")
	s.decisions("pause r1", `settle r1.e7 abandon "" ""`)
	f.mu.Lock()
	f.recovery.Open, f.recovery.Yours, f.recovery.Held, f.recovery.Next = 0, 0, true, "Nothing: the run is paused. When it goes on: The model is asked for turn 15."
	f.recovery.Steps[2].Sort, f.recovery.Steps[2].How = engine.StepDecided, "you decided: abandoned."
	f.mu.Unlock()
	s.changed()
	s.sees("3 of 3 steps settled", "The run is held", "asked for turn 15")
	s.picture("25-recovery-held")
	s.press("j", "o") // at once: too soon after another key is no consent
	s.slowly("o")
	s.decisions("pause r1", `settle r1.e7 abandon "" ""`, "unpause r1")
}

// TestStandingGrantAndEdit shows the rule before it is laid down, and lets what
// was edited run.
func TestStandingGrantAndEdit(t *testing.T) {
	f := demo()
	s := newStage(t, f, 120, 40)
	digest := f.approvals["r2.a3"].Digest.Short()
	s.slowly("j", "enter", "s")
	s.sees("in this run, what this rule covers runs without asking", "npm publish")
	s.slowly("esc")
	s.decisions()
	s.slowly("S")
	s.sees("in every run on this project")
	s.slowly("ctrl+s")
	s.decisions("approve r2.a3 " + digest + " for project")

	f = demo()
	s = newStage(t, f, 120, 40)
	s.slowly("j", "enter", "e")
	s.sees("runs in place of what was proposed", `"command": "npm publish"`)
	s.write("x")
	s.slowly("ctrl+s")
	s.sees("no valid JSON yet")
	s.slowly("backspace", "ctrl+s")
	if got := s.f.decided(); len(got) != 1 || !strings.HasPrefix(got[0], "edit r2.a3") {
		t.Errorf("decided %q", got)
	}
}

// TestOutputOfACommandIsLive shows what a command prints while it runs, and
// takes it away when the ledger has it.
func TestOutputOfACommandIsLive(t *testing.T) {
	s := newStage(t, demo(), 120, 40)
	s.slowly("2", "enter")
	send := func(l engine.LiveText) {
		l.Run, l.Effect = "r1", machine.EffectID("r1.e8")
		s.send(pumpedMsg{live: []engine.LiveText{l}})
		s.wait(time.Second)
	}
	send(engine.LiveText{Text: "ok  pawl/views\n"})
	send(engine.LiveText{Text: "ok  pawl/tui\n"})
	s.sees("output of e8 (live, not in the ledger yet)", "ok pawl/views", "ok pawl/tui")
	send(engine.LiveText{Done: true})
	s.seesNot("output of e8", "pawl/views")
}
