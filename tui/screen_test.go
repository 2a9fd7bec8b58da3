package tui

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"pawl/engine"
	"pawl/engine/machine"
)

func TestWhatNeedsYouComesFirst(t *testing.T) {
	s := newStage(t, demo(), 120, 40)
	s.sees("4 need you", "ambiguous", "The push may have reached origin", "git ls-remote origin", "Ways out")
	if s.m.focus != panelNeeds {
		t.Error("the list of what waits has no focus at the start")
	}
	s.slowly("j")
	s.sees("May exactly this run?", "enter open, to decide")
	s.slowly("j")
	s.sees("Which branch should it land on?")
	s.slowly("j") // a finished run: its timeline
	s.sees("Timeline", "bump deps", "Nothing has happened yet.")
}

func TestEscOnlyClosesViews(t *testing.T) {
	s := newStage(t, demo(), 120, 40)
	s.slowly("enter", "esc")
	if s.m.focus != panelNeeds {
		t.Errorf("focus %v", s.m.focus)
	}
	s.slowly("esc", "esc", "n", "esc", "?", "esc", "@", "esc", ":", "esc", "esc")
	if s.quit || len(s.m.dialogs) != 0 {
		t.Errorf("quit %v, %d dialogs", s.quit, len(s.m.dialogs))
	}
	s.decisions()
}

func TestTheTreeFoldsAndCountsWhatWaitsBelow(t *testing.T) {
	s := newStage(t, demo(), 120, 40)
	s.slowly("2", "left")
	s.sees("▶ fix the flaky re")
	s.seesNot("lexer-fuzz")
	if n := s.m.runs.flat[0].needs; n != 3 {
		t.Errorf("%d needs bubbled up, want 3", n)
	}
	s.slowly("right", "j", "left") // on a leaf, to its parent
	if r, _ := s.m.runs.current(); r.ID != "r1" {
		t.Errorf("selected %s", r.ID)
	}
}

func TestThousandsOfRunsAreReadByPages(t *testing.T) {
	f := newFake()
	for i := range 1000 {
		f.runs = append(f.runs, engine.RunLine{ID: machine.RunID(fmt.Sprintf("r%04d", i)), Goal: fmt.Sprintf("task %d", i), State: engine.Done, Updated: epoch})
	}
	s := newStage(t, f, 120, 40)
	if n := len(s.m.runs.flat); n != pageRuns {
		t.Fatalf("%d runs read at the start", n)
	}
	s.press("2")
	for range 12 {
		s.press("G")
	}
	if n := len(s.m.runs.flat); n != 1000 {
		t.Errorf("%d runs after going to the end", n)
	}
	s.sees("task 999")
	// A new run shifts the pages; nothing is shown twice or lost.
	f.mu.Lock()
	f.runs = append([]engine.RunLine{{ID: "rnew", Goal: "newest", State: engine.Running, Updated: epoch}}, f.runs...)
	f.mu.Unlock()
	s.changed()
	s.press("g")
	s.sees("newest", "task 0")
	for range 12 {
		s.press("G")
	}
	seen := map[machine.RunID]bool{}
	for _, r := range s.m.runs.flat {
		if seen[r.run.ID] {
			t.Fatalf("%s twice", r.run.ID)
		}
		seen[r.run.ID] = true
	}
	if len(seen) != 1001 {
		t.Errorf("%d runs", len(seen))
	}
}

func TestFilters(t *testing.T) {
	s := newStage(t, demo(), 120, 40)
	s.slowly("/")
	s.write("npm")
	s.sees("Needs you / npm_", "May exactly this run?")
	s.seesNot("Which branch?")
	s.slowly("enter", "esc")
	s.sees("Which branch?")
	s.slowly("2", "/")
	s.write("bump")
	s.slowly("enter")
	s.seesNot("lexer-fuzz")
	s.slowly("/", "esc")
	s.sees("lexer-fuzz")
	s.slowly("/")
	s.send(tea.PasteMsg{Content: "lexer\n"})
	s.decisions()
	s.slowly("esc")
}

func longRun(n int) *fake {
	f := newFake()
	f.runs = []engine.RunLine{{ID: "r1", Goal: "long", State: engine.Running, Updated: epoch}}
	rows := make([]engine.TimelineRow, n)
	for i := range rows {
		rows[i] = engine.TimelineRow{N: int64(i + 1), At: epoch, Sign: "→", Title: fmt.Sprintf("event number %d", i+1), Tone: "plain"}
	}
	f.rows["r1"] = rows
	return f
}

func TestAHundredThousandEventsAreAWindow(t *testing.T) {
	s := newStage(t, longRun(100_000), 120, 40)
	line := &s.m.main.line
	s.sees("event number 100000")
	s.slowly("2", "enter", "g")
	s.sees("event number 1")
	if len(line.rows) > keepRows || !line.first {
		t.Errorf("%d rows kept, first %v", len(line.rows), line.first)
	}
	for range 200 {
		s.press("ctrl+d")
	}
	if n := line.rows[line.selected].N; n < 3000 || len(line.rows) > keepRows {
		t.Errorf("at event %d, %d rows kept", n, len(line.rows))
	}
	s.sees(fmt.Sprintf("event number %d", line.rows[line.selected].N))
	for range 220 {
		s.press("ctrl+u")
	}
	s.sees("event number 1")
	s.slowly("G")
	s.sees("event number 100000")
	for i := 1; i < len(line.rows); i++ {
		if line.rows[i].N != line.rows[i-1].N+1 {
			t.Fatalf("a gap after %d", line.rows[i-1].N)
		}
	}
	// New events come in below, and the end is followed.
	s.f.mu.Lock()
	s.f.rows["r1"] = append(s.f.rows["r1"], engine.TimelineRow{N: 100_001, Title: "the newest", At: epoch})
	s.f.mu.Unlock()
	s.send(pumpedMsg{changed: true})
	s.sees("the newest")
	// But someone who reads further up is left alone.
	s.slowly("k", "k", "k")
	s.f.mu.Lock()
	s.f.rows["r1"] = append(s.f.rows["r1"], engine.TimelineRow{N: 100_002, Title: "newer still", At: epoch})
	s.f.mu.Unlock()
	was := line.rows[line.selected].N
	s.send(pumpedMsg{changed: true})
	if line.rows[line.selected].N != was {
		t.Error("the selection moved")
	}
}

func TestALongUnfoldedRowCanBeReadToItsEnd(t *testing.T) {
	f := longRun(5)
	var b strings.Builder
	for i := range 300 {
		fmt.Fprintf(&b, "output line %d\n", i+1)
	}
	f.rows["r1"][2].Detail = []string{b.String()}
	s := newStage(t, f, 80, 24)
	s.slowly("2", "enter", "k", "k", "enter")
	s.sees("output line 1")
	s.seesNot("output line 300")
	for range 320 {
		if strings.Contains(s.screen(), "output line 300") {
			break
		}
		s.press("j")
	}
	s.sees("output line 300")
	s.press("j", "j", "j")
	s.sees("event number 5")
	for range 330 {
		s.press("k")
	}
	s.sees("event number 1")
	s.exact(80, 24)
}

func TestTheEffectBehindARowOpens(t *testing.T) {
	s := newStage(t, demo(), 120, 40)
	s.slowly("2", "enter", "G", "e")
	s.sees("effect e7", "w wait")
	s.slowly("esc")
	s.sees("[Timeline]", "no result recorded")
	s.slowly("k", "e")
	s.sees("No effect stands behind this row")
}

func TestLiveTextIsMarkedAndGoes(t *testing.T) {
	s := newStage(t, demo(), 120, 40)
	s.slowly("2", "enter")
	s.send(pumpedMsg{live: []engine.LiveText{{Run: "r1", Turn: 15, Text: "thinking\x1b[2J aloud"}}})
	s.sees("turn 15 is being written (live, not in the ledger yet)", "aloud")
	if strings.Contains(s.m.View().Content, "\x1b[2J") {
		t.Error("a control sequence got through")
	}
	s.send(pumpedMsg{live: []engine.LiveText{{Run: "r1", Turn: 15, Done: true}}})
	s.seesNot("aloud")
}

func TestNewRun(t *testing.T) {
	s := newStage(t, demo(), 120, 40, func(o *Options) { o.Repo, o.Model = "/src/parser", "fake/model" })
	s.slowly("n", "ctrl+s")
	s.sees("A run needs a goal")
	s.write("fix it\nwell")
	s.slowly("tab", "tab")
	s.write("go test ./...")
	s.slowly("ctrl+s")
	s.decisions(`create "fix it\nwell" "/src/parser" "go test ./..." "fake/model"`)
	s.sees("Started: fix it well")
}

func TestViewOnlySaysSo(t *testing.T) {
	f := demo()
	f.status.ReadOnly, f.status.Why = true, "The folder is read-only."
	s := newStage(t, f, 120, 40)
	s.sees("view only")
	s.slowly("n")
	s.sees("open for viewing only", "The folder is read-only.")
}

func TestLandingShowsFirst(t *testing.T) {
	s := newStage(t, demo(), 120, 40)
	s.slowly("2", "G", "l")
	s.sees("Lands cleanly on main.", "go.mod", "fast-forward")
	s.slowly("enter")
	s.decisions()
	s.slowly("ctrl+s")
	s.decisions("land r4")
	s.sees("Landed on main (fast-forward).")

	f := demo()
	f.landing.Blocked = "your checkout has changes in go.mod: commit or stash them"
	s = newStage(t, f, 120, 40)
	s.slowly("2", "G", "l", "ctrl+s")
	s.decisions()
	s.sees("It cannot land now: your checkout has changes in go.mod")
}

func TestTellAndCancel(t *testing.T) {
	s := newStage(t, demo(), 120, 40)
	s.slowly("2", "t")
	s.write("use main")
	s.slowly("ctrl+s", "X")
	s.sees("ends for good")
	s.slowly("ctrl+s")
	s.decisions(`tell r1 "use main"`, `cancel r1 ""`)
}

func TestQuitSaysWhatGoesOn(t *testing.T) {
	s := newStage(t, demo(), 120, 40)
	s.slowly("q")
	if !s.quit || !strings.Contains(s.m.ending.line, "1 run goes on") {
		t.Errorf("quit %v, line %q", s.quit, s.m.ending.line)
	}

	var left []Leave
	f := demo()
	f.status.Owned = 2
	s = newStage(t, f, 120, 40, func(o *Options) {
		o.CanBackground = true
		o.Leave = func(_ context.Context, l Leave) error { left = append(left, l); return nil }
	})
	s.slowly("q")
	s.sees("2 runs are driven from here", "in the background", "4 need you and will still wait")
	s.slowly("esc")
	if s.quit {
		t.Fatal("esc quit")
	}
	s.slowly("q", "b")
	if !s.quit || len(left) != 1 || left[0] != LeaveBackground {
		t.Errorf("quit %v, left %v", s.quit, left)
	}
}

func TestQuitStaysIfTheRunsCannotBeLeft(t *testing.T) {
	f := demo()
	f.status.Owned = 1
	s := newStage(t, f, 120, 40, func(o *Options) {
		o.Leave = func(context.Context, Leave) error { return fmt.Errorf("run r1 does not reach a safe point: try again") }
	})
	s.slowly("q", "p")
	if s.quit {
		t.Error("it quit all the same")
	}
	s.sees("does not reach a safe point")
}

func TestPaletteFindsAndDoes(t *testing.T) {
	s := newStage(t, demo(), 120, 40)
	s.slowly("1", "j", "enter", ":")
	for _, row := range s.m.top().(*palette).all {
		if row.intent == Approve || row.intent == Deny {
			t.Errorf("%s is in the palette, where Enter does things", row.intent)
		}
	}
	s.write("zzz")
	s.sees("No command has these letters")
	s.slowly("esc", ":")
	s.write("cmlg")
	s.slowly("enter")
	s.sees("Commands given here")
	s.decisions()
}

func TestHelpComesFromTheBindings(t *testing.T) {
	s := newStage(t, demo(), 120, 40, func(o *Options) { o.Keys = map[string][]string{"new-run": {"ctrl+n"}, "approve": {"A"}} })
	s.sees("ctrl+n new run")
	s.slowly("n")
	if len(s.m.dialogs) != 0 {
		t.Error("the old key still works")
	}
	s.slowly("j", "enter")
	s.sees("A approve once")
	s.slowly("?")
	s.sees("approve once (decides)")
}

func TestKeysAreChecked(t *testing.T) {
	for _, c := range []struct {
		own  map[string][]string
		want string
	}{
		{map[string][]string{"approve": {"enter"}}, "cannot be on enter"},
		{map[string][]string{"approve": {"d"}}, "means both"},
		{map[string][]string{"nosuch": {"x"}}, "there is no"},
		{map[string][]string{"quit": {}}, "no key left"},
	} {
		if _, err := DefaultKeys().With(c.own); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v", c.own, err)
		}
	}
	if _, err := DefaultKeys().With(nil); err != nil {
		t.Errorf("the default keys clash: %v", err)
	}
}

func TestAReadingFaultIsToldAndPasses(t *testing.T) {
	s := newStage(t, demo(), 120, 40)
	s.m.focus, s.m.main.subject = panelMain, subject{showEffect, "r1", "r1.e99"}
	s.changed()
	s.sees("there is no effect r1.e99")
}

func TestReadingsDoNotPileUp(t *testing.T) {
	f := demo()
	s := newStage(t, f, 120, 40)
	s.wait(time.Second)
	before := f.reads
	_, first := s.m.Update(pumpedMsg{changed: true})
	for range 50 {
		if _, cmd := s.m.Update(pumpedMsg{changed: true}); cmd != nil {
			t.Fatal("a second reading began beside the first")
		}
	}
	s.run(first)
	if n := f.reads - before; n != 1 {
		t.Errorf("%d readings at once", n)
	}
	s.wait(time.Second)
	if n := f.reads - before; n != 2 {
		t.Errorf("%d readings for 51 changes, want 2: one under way, one afterwards", n)
	}
}

func TestTheFrameIsComposedOnlyOnChange(t *testing.T) {
	s := newStage(t, demo(), 120, 40)
	a := s.m.View()
	s.m.w = 50 // would show if it were composed again
	s.m.Update(tea.MouseMotionMsg{X: 3, Y: 3})
	if s.m.View().Content != a.Content {
		t.Error("composed without a change")
	}
}

func TestMouse(t *testing.T) {
	s := newStage(t, demo(), 120, 40)
	s.send(tea.MouseClickMsg{X: 5, Y: 3, Button: tea.MouseLeft})
	s.sees("May exactly this run?")
	l := s.m.layout()
	s.send(tea.MouseClickMsg{X: 5, Y: l.runs.y + 3, Button: tea.MouseLeft})
	if r, _ := s.m.runs.current(); r.ID != "r3" || s.m.focus != panelRuns {
		t.Errorf("selected %s", r.ID)
	}
	s.send(tea.MouseWheelMsg{X: 5, Y: l.runs.y + 2, Button: tea.MouseWheelUp})
	if r, _ := s.m.runs.current(); r.ID != "r1" {
		t.Errorf("selected %s", r.ID)
	}
	s.send(tea.MouseWheelMsg{X: 100, Y: 10, Button: tea.MouseWheelUp})
	s.decisions()
}

func TestNotifiesOncePerTransitionWhileUnfocused(t *testing.T) {
	s := newStage(t, demo(), 120, 40)
	count := func() (n int) {
		for _, msg := range s.other {
			if r, ok := msg.(tea.RawMsg); ok && strings.Contains(fmt.Sprint(r.Msg), "\x1b]9;") {
				n++
			}
		}
		return n
	}
	add := func(id string) {
		s.f.mu.Lock()
		s.f.items = append(s.f.items, engine.Item{ID: id, Kind: engine.KindApproval, Run: "r2", Summary: "rm \x1b]0;x\x07 -rf", Since: s.clock})
		s.f.mu.Unlock()
	}
	add("r2.a8")
	s.changed()
	if count() != 0 {
		t.Error("notified although the terminal has the focus")
	}
	s.send(tea.BlurMsg{})
	add("r2.a9")
	add("r2.a10")
	s.changed()
	s.changed()
	if count() != 1 {
		t.Errorf("%d notifications for what came together", count())
	}
}

func TestCopyNamesTheFileToo(t *testing.T) {
	s := newStage(t, demo(), 120, 40)
	s.slowly("enter", "y")
	s.sees("Copied the line to look with", "copied.txt")
}

func TestAgesCount(t *testing.T) {
	s := newStage(t, demo(), 120, 40)
	s.sees("12s")
	s.wait(5 * time.Second)
	s.sees("17s")
}

func TestNoColourHasNone(t *testing.T) {
	s := newStage(t, demo(), 120, 40, func(o *Options) { o.Environ = append(o.Environ, "NO_COLOR=1") })
	st, err := s.m.opt.styles(true)
	if err != nil {
		t.Fatal(err)
	}
	s.m.pen.Styles = st
	s.send(tea.BackgroundColorMsg{}) // does not bring colour back
	s.slowly("j")
	if c := s.m.View().Content; strings.Contains(c, "38;") || strings.Contains(c, "48;") {
		t.Error("colour with NO_COLOR set")
	}
}

func TestAPanicWhileDrawingIsCarriedToTheEnd(t *testing.T) {
	s := newStage(t, demo(), 120, 40)
	s.m.pen.Styles = nil
	s.m.changed = true
	if v := s.m.View(); !v.AltScreen {
		t.Error("a failed frame leaves the alternate screen before the end")
	}
	select {
	case c := <-s.m.crashes:
		s.send(c)
	default:
		t.Fatal("nobody is told")
	}
	if !s.quit || s.m.ending.err == nil || !strings.Contains(s.m.ending.err.Error(), "the screen failed") {
		t.Errorf("quit %v, %v", s.quit, s.m.ending.err)
	}
	if !strings.Contains(s.m.ending.err.Error(), "crash-") {
		t.Errorf("no report is named: %v", s.m.ending.err)
	}
}

func TestAPanicInUpdateEndsInOrder(t *testing.T) {
	s := newStage(t, demo(), 120, 40)
	s.m.opt.After = func(time.Duration, tea.Msg) tea.Cmd { panic("burst") }
	model, cmd := s.m.Update(tickedMsg{s.m.clock.seq})
	if model == nil || cmd == nil {
		t.Fatal("no model, or no end")
	}
	if s.m.ending.err == nil {
		t.Error("no reason")
	}
}

func TestWhatIsDecidedHereIsDrivenHere(t *testing.T) {
	f := demo()
	f.elsewhere = fmt.Errorf("run r2 is driven by bob's pawl (pid 7)")
	s := newStage(t, f, 120, 40)
	openApproval(s)
	s.slowly("a")
	if len(f.driven) != 1 || f.driven[0] != "r2" {
		t.Errorf("driven %v", f.driven)
	}
	s.sees("Approved:") // its owner carries it out: no fault
	s.slowly("@")
	s.sees("driven by bob's pawl")
}

func TestABurstOfKeysCostsFewFrames(t *testing.T) {
	s := newStage(t, demo(), 120, 40)
	s.m.opt.frame = 8 * time.Millisecond
	s.slowly("/")
	s.wait(20 * time.Millisecond) // since a tick drew one
	s.press("n")                  // at once
	s.sees("Needs you / n_")
	s.press("p")
	s.sees("Needs you / n_") // held back
	s.wait(8 * time.Millisecond)
	s.sees("Needs you / np_") // and drawn in time
	s.wait(1020 * time.Millisecond)
	s.press("m")
	s.sees("Needs you / npm_")
}
