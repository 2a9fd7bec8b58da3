package tui

import (
	"strings"
	"testing"
	"time"

	"pawl/engine"
	"pawl/engine/machine"
)

func story(rows ...string) []engine.TimelineRow {
	var out []engine.TimelineRow
	for i, r := range rows {
		f := strings.SplitN(r, "|", 3) // kind | effect | title
		out = append(out, engine.TimelineRow{
			N: int64(i + 1), At: epoch.Add(time.Duration(i) * time.Second), Kind: f[0], Effect: machine.EffectID(f[1]), Title: f[2],
			Detail: []string{"detail " + f[2]},
		})
	}
	return out
}

func titles(rows []engine.TimelineRow) string {
	var t []string
	for _, r := range rows {
		t = append(t, r.Title)
	}
	return strings.Join(t, "\n")
}

// TestOneRowAnAttempt holds that routine is one row, and that nothing that
// changes what is known is ever folded away.
func TestOneRowAnAttempt(t *testing.T) {
	raw := story(
		"TurnRequested||turn 1 asked",
		"TurnResponded||turn 1: I test and push.",
		"EffectIntended|r1.e1|will run go test",
		"EffectIntended|r1.e2|will run git push",
		"EffectDispatched|r1.e1|sent: go test",
		"AttemptStarted|r1.e1|process 9 started: go test",
		"EffectCompleted|r1.e1|go test → 1",
		"SnapshotTaken|r1.e1|snapshot after go test",
		"EffectDispatched|r1.e2|sent: git push",
		"RunClaimed||driven by pid 2",
		"EffectAmbiguous|r1.e2|no result on record: git push",
		"QuiescenceProven|r1.e2|nothing can land",
		"EvidenceAdded|r1.e2|looked: not happened",
		"EffectSettled|r1.e2|settled as not happened: git push",
		"EffectDispatched|r1.e2|sent (attempt 2): git push",
		"EffectCompleted|r1.e2|git push",
		"EffectIntended|r1.e3|next: plan: 2 steps",
		"EffectDispatched|r1.e3|sent: plan: 2 steps",
		"EffectCompleted|r1.e3|plan: 2 steps",
		"PlanUpdated||plan: 2 items",
		"EffectIntended|r1.e4|will run npm publish",
		"ApprovalRequested||asks for approval r1.a1",
		"ApprovalGranted||ann approved r1.a1",
		"EffectDispatched|r1.e4|sent: npm publish",
		"EffectCompleted|r1.e4|npm publish",
	)
	got := gather(raw)
	want := strings.Join([]string{
		"turn 1: I test and push.", "go test → 1", "sent: git push", "driven by pid 2", "no result on record: git push",
		"looked: not happened", "settled as not happened: git push", "git push", "plan: 2 steps",
		"will run npm publish", "asks for approval r1.a1", "ann approved r1.a1", "npm publish",
	}, "\n")
	if titles(got) != want {
		t.Errorf("rows:\n%s\nwant:\n%s", titles(got), want)
	}
	all := strings.Join(got[1].Detail, "\n")
	for _, w := range []string{"meant", "process 9 started", "ended, took 4.0 s", "snapshot of the files", "detail go test → 1"} {
		if !strings.Contains(all, w) {
			t.Errorf("the unfolded row does not say %q:\n%s", w, all)
		}
	}
	if strings.Contains(strings.Join(got[2].Detail, "\n"), "ended") {
		t.Error("an attempt without a result on record says that it ended")
	}
	if d := strings.Join(got[8].Detail, "\n"); !strings.Contains(d, "detail plan: 2 items") {
		t.Errorf("the plan's items are not in its row:\n%s", d)
	}
	// However the history is cut into pages, no event is lost.
	for cut := range raw {
		n := 0
		for _, part := range [][]engine.TimelineRow{raw[:cut], raw[cut:]} {
			n += len(gather(part))
		}
		if n < len(got) {
			t.Errorf("cut at %d: %d rows, want at least %d", cut, n, len(got))
		}
	}
}
