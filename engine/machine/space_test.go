package machine

import "testing"

// A workspace that cannot be used is asked about once, however much waits for it.
func TestAnUnusableWorkspaceIsAskedAboutOnce(t *testing.T) {
	y := begin(t)
	id := y.turn(sealedC, false)
	y.dispatch(id)
	y.claim()
	y.do(QuiescenceProven{Effect: id, Quiescence: Quiescence{Covers: 1, Proof: "pid-namespace", At: Instant{boot, 5}}})
	y.next(ActReplay)
	q := y.s.NextQuestion()
	y.do(QuestionAsked{Question: q, Sort: SortDrift, Data: []byte("workspace"), Text: "the disk is full", Choices: []string{AnswerRetry, AnswerStop}})
	if a := y.next(ActWait); len(a.Waits) != 1 || a.Waits[0].Ref != string(q) {
		t.Errorf("it waits for %+v", a.Waits)
	}
	y.op(QuestionAnswered{Question: q, Answer: AnswerRetry})
	y.next(ActReplay)
}

func TestARebuiltWorkspace(t *testing.T) {
	y := begin(t)
	if snap, after := y.s.Newest(); !snap.IsZero() || after != "" {
		t.Errorf("newest of none: %v %q", snap, after)
	}
	id := y.turn(sealedC, false)
	y.dispatch(id)
	y.do(EffectCompleted{Effect: id, Attempt: 1, Result: Result{OK: true, Code: "0"}})
	snap, after := y.s.Newest()
	if snap.Tree != "t" || after != id {
		t.Errorf("before its snapshot: %v %q", snap, after)
	}
	y.refused(GuardFrom, WorkspaceRebuilt{Why: "gone", From: snap, Path: "/elsewhere"})
	y.do(WorkspaceRebuilt{Why: "gone", From: snap, After: after, Path: "/elsewhere", Branch: "b", Level: "none", Data: []byte("x")})
	if w := y.s.Space; w.Path != "/elsewhere" || w.Known.Tree != "t" || w.Level != "none" || w.Mode != "worktree" {
		t.Errorf("it works in %+v", w)
	}
	if c := y.s.Changes.At(0); c.Rebuilt != "gone" || c.After != id || c.Turn != 1 {
		t.Errorf("the model is told %+v", c)
	}
	y.do(SnapshotTaken{Effect: id, Attempt: 1, Snapshot: Snapshot{Commit: "c2", Tree: "t2"}})
	if snap, after := y.s.Newest(); snap.Tree != "t2" || after != "" {
		t.Errorf("newest: %v %q", snap, after)
	}
}
