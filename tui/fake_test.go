package tui

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"pawl/engine"
	"pawl/engine/machine"
	"pawl/engine/window"
	"pawl/themes"
	"pawl/views"
)

var epoch = time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)

// fake is a backend in memory that records every decision.
type fake struct {
	mu        sync.Mutex
	items     []engine.Item
	runs      []engine.RunLine
	rows      map[machine.RunID][]engine.TimelineRow
	effects   map[machine.EffectID]engine.EffectCard
	approvals map[machine.ApprovalID]engine.ApprovalCard
	questions map[machine.QuestionID]engine.QuestionCard
	status    engine.Status
	landing   engine.LandView
	recovery  engine.Recovery
	place     string
	diff      string
	err       error // of the next decision
	decisions []string
	reads     int
	driven    []machine.RunID
	elsewhere error // what Drive answers
	panics    bool
	changes   chan struct{}
	live      chan engine.LiveText
}

func newFake() *fake {
	return &fake{
		rows:      map[machine.RunID][]engine.TimelineRow{},
		effects:   map[machine.EffectID]engine.EffectCard{},
		approvals: map[machine.ApprovalID]engine.ApprovalCard{},
		questions: map[machine.QuestionID]engine.QuestionCard{},
		status:    engine.Status{Path: "/state/ledger.db", Runs: map[engine.Standing]int{}},
		changes:   make(chan struct{}, 1),
		live:      make(chan engine.LiveText, 16),
	}
}

func (f *fake) decide(format string, a ...any) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.err; err != nil {
		f.err = nil
		return err
	}
	f.decisions = append(f.decisions, fmt.Sprintf(format, a...))
	return nil
}

func (f *fake) decided() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.decisions)
}

// remove takes an item out of the inbox, as its decision does.
func (f *fake) remove(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.items = slices.DeleteFunc(slices.Clone(f.items), func(it engine.Item) bool { return it.ID == id })
}

func (f *fake) signal() {
	select {
	case f.changes <- struct{}{}:
	default:
	}
}

func (f *fake) Inbox(context.Context) ([]engine.Item, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reads++
	if f.panics {
		panic("the inbox burst")
	}
	return slices.Clone(f.items), nil
}

func (f *fake) Runs(_ context.Context, q engine.RunsQuery) ([]engine.RunLine, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []engine.RunLine
	on := q.Before == ""
	for _, r := range f.runs {
		if on && strings.Contains(r.Goal, q.Search) && len(out) < q.Limit {
			out = append(out, r)
		}
		if r.ID == q.Before {
			on = true
		}
	}
	return out, nil
}

func (f *fake) Run(_ context.Context, id machine.RunID) (engine.RunLine, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.runs {
		if r.ID == id {
			return r, nil
		}
	}
	return engine.RunLine{}, fmt.Errorf("there is no run %s", id)
}

func (f *fake) Timeline(_ context.Context, run machine.RunID, after int64, back bool, limit int) ([]engine.TimelineRow, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := f.rows[run]
	if !back {
		i := slices.IndexFunc(all, func(r engine.TimelineRow) bool { return r.N > after })
		if i < 0 {
			return nil, nil
		}
		return slices.Clone(all[i:min(i+limit, len(all))]), nil
	}
	n := len(all)
	for after > 0 && n > 0 && all[n-1].N >= after {
		n--
	}
	return slices.Clone(all[max(n-limit, 0):n]), nil
}

func (f *fake) Effects(_ context.Context, run machine.RunID, _ int64, _ bool, _ int) ([]engine.EffectLine, error) {
	var out []engine.EffectLine
	for i, st := range []string{"completed", "completed", "rejected", "forced_happened", "compensated", "dispatched", "ambiguous", "intended"} {
		out = append(out, engine.EffectLine{
			ID: machine.EffectID(fmt.Sprintf("%s.e%d", run, i+1)), Turn: i + 1, Tool: "shell", Class: "PROBEABLE", State: st, Attempts: 1 + i%2,
			Forced: st == "forced_happened", Summary: []string{"go test ./...", "read retry.go", "curl -X POST example.org", "npm publish", "git tag v1", "make lint", "git push origin fix/retry", "finish"}[i], Updated: epoch,
		})
	}
	return out, nil
}

func (f *fake) Children(_ context.Context, run machine.RunID) ([]engine.RunLine, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []engine.RunLine
	for _, r := range f.runs {
		if r.Parent == run {
			out = append(out, r)
		}
	}
	return out, nil
}

func (f *fake) Context(_ context.Context, run machine.RunID, n int) (engine.ContextView, error) {
	if n == 0 {
		n = 2
	}
	v := engine.ContextView{Run: run, Window: n, Windows: 2, Tokens: 12345, Budget: 200000}
	for _, s := range []struct {
		name string
		n    int
	}{{"instructions", 900}, {"charter", 120}, {"plan and decisions", 300}, {"unresolved and forced effects", 210}, {"turns", 10800}} {
		v.Sections = append(v.Sections, engine.ContextSection{Name: s.name, Tokens: s.n, From: []string{"event 1", "events 3-9"}, Text: "what the model reads under “" + s.name + "”"})
	}
	v.Left = []window.LeftOut{{What: "output of c12_1", Why: "longer than an output may be", Bytes: 90000, Handle: "ev12"}}
	return v, nil
}

func (f *fake) StateTable(_ context.Context, run machine.RunID) (engine.StateTable, error) {
	t := engine.StateTable{Run: run, Tail: 31, Plug: "All 31 events are in the ledger. In flight, and without a result on record if it ended now: e6 (PROBEABLE, make lint)."}
	for _, k := range []string{"task", "execution", "evidence", "authority", "workspace", "context", "memory"} {
		t.Kinds = append(t.Kinds, engine.StateKind{Kind: k, Now: "what there is of " + k, More: []string{"more of " + k}, Lives: "ledger", Back: "folding its events"})
	}
	return t, nil
}

func (f *fake) Recovery(_ context.Context, run machine.RunID) (engine.Recovery, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.recovery
	r.Run = run
	return r, nil
}

func (f *fake) Workplace(context.Context, machine.RunID) (string, error) { return f.place, nil }

func (f *fake) ApproveFor(_ context.Context, id machine.ApprovalID, d machine.Digest, s machine.GrantScope) (machine.GrantAdded, error) {
	err := f.decide("approve %s %s for %s", id, d.Short(), s)
	if err == nil {
		f.remove(string(id))
	}
	return machine.GrantAdded{}, err
}

func (f *fake) Edit(_ context.Context, id machine.ApprovalID, _ machine.Digest, args string) (machine.ApprovalID, error) {
	err := f.decide("edit %s %s", id, strings.Join(strings.Fields(args), " "))
	if err == nil {
		f.remove(string(id))
	}
	return id, err
}

func (f *fake) EffectCard(_ context.Context, id machine.EffectID) (engine.EffectCard, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c, ok := f.effects[id]
	if !ok {
		return c, fmt.Errorf("there is no effect %s", id)
	}
	return c, nil
}

func (f *fake) ApprovalCard(_ context.Context, id machine.ApprovalID) (engine.ApprovalCard, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c, ok := f.approvals[id]
	if !ok {
		return c, fmt.Errorf("there is no approval %s", id)
	}
	return c, nil
}

func (f *fake) QuestionCard(_ context.Context, id machine.QuestionID) (engine.QuestionCard, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c, ok := f.questions[id]
	if !ok {
		return c, fmt.Errorf("there is no question %s", id)
	}
	return c, nil
}

func (f *fake) Approve(_ context.Context, id machine.ApprovalID, d machine.Digest) error {
	if err := f.decide("approve %s %s", id, d.Short()); err != nil {
		return err
	}
	f.remove(string(id))
	return nil
}

func (f *fake) Deny(_ context.Context, id machine.ApprovalID, feedback string) error {
	if err := f.decide("deny %s %q", id, feedback); err != nil {
		return err
	}
	f.remove(string(id))
	return nil
}

func (f *fake) Answer(_ context.Context, id machine.QuestionID, text string) error {
	if err := f.decide("answer %s %q", id, text); err != nil {
		return err
	}
	f.remove(string(id))
	return nil
}

func (f *fake) Settle(_ context.Context, id machine.EffectID, c machine.Choice, w engine.SettleWords) error {
	if err := f.decide("settle %s %s %q %q", id, c, w.Reason, w.Confirm); err != nil {
		return err
	}
	f.remove(string(id))
	return nil
}

func (f *fake) Pause(_ context.Context, id machine.RunID, _ string) error {
	return f.decide("pause %s", id)
}

func (f *fake) Unpause(_ context.Context, id machine.RunID) error { return f.decide("unpause %s", id) }

func (f *fake) Cancel(_ context.Context, id machine.RunID, why string) error {
	return f.decide("cancel %s %q", id, why)
}

func (f *fake) Tell(_ context.Context, id machine.RunID, text string) error {
	return f.decide("tell %s %q", id, text)
}

func (f *fake) LandPreview(context.Context, machine.RunID, string) (engine.LandView, error) {
	return f.landing, nil
}

func (f *fake) Land(_ context.Context, id machine.RunID, _ string) (engine.LandView, error) {
	v := f.landing
	v.Done = true
	return v, f.decide("land %s", id)
}
func (f *fake) Diff(context.Context, machine.RunID) (string, error) { return f.diff, nil }
func (f *fake) Create(_ context.Context, n engine.NewRun) (machine.RunID, error) {
	return "rnew", f.decide("create %q %q %q %q", n.Goal, n.Repo, n.Check, n.Model)
}

func (f *fake) Status(context.Context) (engine.Status, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.status
	s.Need = len(f.items)
	return s, nil
}
func (f *fake) Changes() <-chan struct{}     { return f.changes }
func (f *fake) Live() <-chan engine.LiveText { return f.live }

// Drive notes what was driven; a run that another process has is an error.
func (f *fake) Drive(_ context.Context, runs ...machine.RunID) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.driven = append(f.driven, runs...)
	return f.elsewhere
}

var _ Backend = (*fake)(nil)

// demo is a backend with one of everything.
func demo() *fake {
	f := newFake()
	add := func(kind, id, summary string, age time.Duration) {
		run, _, _ := strings.Cut(id, ".")
		f.items = append(f.items, engine.Item{
			ID: id, Kind: kind, Run: machine.RunID(run), Goal: "fix the flaky retry", Summary: summary,
			Since: epoch.Add(-age), Reach: "holds the run", Next: "pawl settle " + id,
		})
	}
	add(engine.KindAmbiguous, "r1.e7", "git push origin fix/retry", 3*time.Minute)
	add(engine.KindApproval, "r2.a3", "npm publish", 12*time.Second)
	add(engine.KindQuestion, "r1.q1", "Which branch?", time.Hour)
	add(engine.KindFinished, "r4", "bump deps", 2*time.Hour)
	line := func(id, parent, goal string, s engine.Standing, needs int) {
		f.runs = append(f.runs, engine.RunLine{
			ID: machine.RunID(id), Parent: machine.RunID(parent), Goal: goal, State: s, Turns: 14, Spend: 0.42,
			Needs: needs, Checked: true, Created: epoch.Add(-time.Hour), Updated: epoch.Add(-3 * time.Minute), Note: "waits for you",
		})
	}
	line("r1", "", "fix the flaky retry", engine.Waiting, 2)
	line("r2", "r1", "parser-tests 日本語", engine.Waiting, 1)
	line("r3", "r1", "lexer-fuzz", engine.Running, 0)
	line("r4", "", "bump deps", engine.Done, 1)
	f.status.Runs = map[engine.Standing]int{engine.Waiting: 2, engine.Running: 1, engine.Done: 1}
	f.status.Spend, f.status.Budget = 1.42, 5
	for i := range 30 {
		f.rows["r1"] = append(f.rows["r1"], engine.TimelineRow{
			N: int64(i + 1), At: epoch.Add(time.Duration(i) * time.Second), Sign: "→", Kind: "TurnRequested",
			Title: fmt.Sprintf("turn %d asked", i+1), Detail: []string{"pack of 41 kB", "window 1"}, Tone: "plain",
		})
	}
	f.rows["r1"][29].Effect, f.rows["r1"][29].Title, f.rows["r1"][29].Tone = "r1.e7", "git push origin fix/retry: no result recorded", "warn"
	f.effects["r1.e7"] = engine.EffectCard{
		ID: "r1.e7", Run: "r1", Goal: "fix the flaky retry", Tool: "shell", Class: machine.ClassProbeable,
		State: machine.StateAmbiguous, Summary: "git push origin fix/retry",
		Sentence: "The push may have reached origin: it was sent at 10:04:11 and no result was recorded. The run waits for it.",
		Look:     "git ls-remote origin refs/heads/fix/retry", LookHow: "run", Since: epoch.Add(-3 * time.Minute),
		Meant:  []engine.Field{{Label: "command", Value: "git push origin fix/retry"}},
		Known:  []engine.Field{{Label: "last fact", Value: "dispatched as attempt 1"}},
		Looked: []engine.Field{{Label: "10:05:00", Value: "origin could not be reached: inconclusive"}},
		Quiet:  engine.Quiet{Proven: true, Proof: "the process namespace has ended", Passed: 3 * time.Second, Needed: 10 * time.Second},
		Choices: []engine.ChoiceView{
			{Choice: machine.ChooseWait, Title: "wait", Cost: "time", Open: true},
			{Choice: machine.ChooseProbe, Title: "probe now", Cost: "nothing: it only looks", Open: true},
			{Choice: machine.ChooseHappened, Title: "confirm it happened", Cost: "the fix may be missing on origin", ModelText: "The operator confirms that the push happened.", Open: true, Forced: true},
			{Choice: machine.ChooseRetry, Title: "confirm it did not, retry", Cost: "it may be pushed twice", ModelText: "The operator says that the push did not happen. It is sent again.", Open: true, Forced: true},
			{Choice: machine.ChooseCompensate, Title: "compensate", Why: "the contract knows no compensation"},
			{Choice: machine.ChooseAbandon, Title: "abandon", Cost: "nobody will know", ModelText: "Whether the push happened stays unknown.", Open: true},
		},
	}
	f.approvals["r2.a3"] = approvalCard("r2.a3", "npm publish --access public")
	f.questions["r1.q1"] = engine.QuestionCard{ID: "r1.q1", Run: "r1", Goal: "fix the flaky retry", Sort: machine.SortQuestion, Text: "Which branch should it land on?", Choices: []string{"main", "develop"}, Asked: epoch}
	f.recovery = engine.Recovery{
		Goal: "fix the flaky retry", Since: epoch.Add(-3 * time.Minute), Open: 1, Yours: 1, Next: "It waits for your word on e7, git push origin fix/retry.",
		Steps: []engine.RecoveryStep{
			{Title: "the answer to turn 14", Sort: engine.StepReplayed, How: "It was lost on its way and asked for again; the answer came at attempt 2."},
			{Title: "make lint", Effect: "r1.e6", Sort: engine.StepReplayed, How: "The files were put back to the snapshot before it and it was run again; attempt 2 ended with a result."},
			{Title: "git push origin fix/retry", Effect: "r1.e7", Sort: engine.StepYours, How: "The record cannot say what happened, and no look proves it: it waits for you.", More: []string{"looked (probe): inconclusive. origin could not be reached"}},
		},
	}
	f.landing = engine.LandView{Branch: "pawl/r4/work", Onto: "main", Commit: "a77d201", How: "fast-forward", Files: []string{"go.mod", "go.sum"}}
	f.diff = "diff --git a/backoff.go b/backoff.go\n--- a/backoff.go\n+++ b/backoff.go\n@@ -10,5 +10,6 @@ func (p Policy) wait(n int) time.Duration {\n \td := p.Base\n-\td = doubled(p.Base, n)\n+\td = doubled(p.Base, n-1)\n+\td = min(d, p.Max)\n \tif p.Jitter {\n \t\td = shortened(d, p.Rand)\n \t}\n" +
		"diff --git a/go.mod b/go.mod\n--- a/go.mod\n+++ b/go.mod\n@@ -1 +1 @@\n-go 1.25\n+go 1.26\n"
	return f
}

func approvalCard(id machine.ApprovalID, text string) engine.ApprovalCard {
	return engine.ApprovalCard{
		ID: id, Effect: machine.EffectID(string(id.Run()) + ".e9"), Run: id.Run(), Goal: "publish", State: machine.ApprovalPending,
		Tool: "shell", Class: machine.ClassIrreversible, Summary: text, Text: text, Args: `{"command":"npm publish"}`, OffersRule: "npm publish", Dir: "/src", Network: true, Level: "sealed",
		Why: "network asks", Digest: machine.DigestOf([]byte(text)), Asked: epoch,
	}
}

// timer is a message that comes later.
type timer struct {
	at  time.Time
	msg tea.Msg
}

// stage drives a Model by hand: a clock that only it moves, and commands that
// run to their end before the next message.
type stage struct {
	t      *testing.T
	m      *Model
	f      *fake
	clock  time.Time
	timers []timer
	quit   bool
	other  []tea.Msg // what went to the terminal
}

func newStage(t *testing.T, f *fake, w, h int, tune ...func(*Options)) *stage {
	t.Helper()
	s := &stage{t: t, f: f, clock: epoch}
	o := Options{Environ: []string{"TERM=xterm-256color"}, StateDir: t.TempDir()}
	for _, f := range tune {
		f(&o)
	}
	o.Now = func() time.Time { return s.clock }
	o.After = func(d time.Duration, msg tea.Msg) tea.Cmd {
		at := s.clock.Add(d)
		return func() tea.Msg { return timer{at, msg} }
	}
	o.frame = -1 // every frame is looked at
	o.defaults()
	keys, err := DefaultKeys().With(o.Keys)
	if err != nil {
		t.Fatal(err)
	}
	th, err := themes.Load("dark", nil)
	if err != nil {
		t.Fatal(err)
	}
	s.m = newModel(t.Context(), f, o, keys, views.Pen{Styles: th.Styles(), Method: ansi.GraphemeWidth})
	s.run(s.m.Init())
	s.send(tea.WindowSizeMsg{Width: w, Height: h})
	return s
}

func (s *stage) send(msg tea.Msg) {
	_, cmd := s.m.Update(msg)
	s.m.View()
	s.run(cmd)
}

func (s *stage) run(cmd tea.Cmd) {
	if cmd == nil {
		return
	}
	switch msg := cmd().(type) {
	case nil:
	case tea.BatchMsg:
		for _, c := range msg {
			s.run(c)
		}
	case timer:
		s.timers = append(s.timers, msg)
	case tea.QuitMsg:
		s.quit = true
	case loadedMsg, subjectLoadedMsg, pageLoadedMsg, runsLoadedMsg, diffLoadedMsg, sheetLoadedMsg, placedMsg, themeLoadedMsg, landLoadedMsg, decidedMsg, copiedMsg, leftMsg, crash:
		s.send(msg)
	default:
		s.other = append(s.other, msg)
	}
}

// wait moves the clock on; what falls due comes in order.
func (s *stage) wait(d time.Duration) {
	end := s.clock.Add(d)
	for {
		slices.SortStableFunc(s.timers, func(a, b timer) int { return a.at.Compare(b.at) })
		if len(s.timers) == 0 || s.timers[0].at.After(end) {
			break
		}
		next := s.timers[0]
		s.timers = s.timers[1:]
		if next.at.After(s.clock) {
			s.clock = next.at
		}
		s.send(next.msg)
	}
	s.clock = end
}

// press sends a key by its name, as the terminal would.
func (s *stage) press(names ...string) {
	s.t.Helper()
	for _, n := range names {
		s.send(keyOf(s.t, n))
	}
}

// slowly presses keys with long pauses, as someone who reads does.
func (s *stage) slowly(names ...string) {
	s.t.Helper()
	for _, n := range names {
		s.wait(time.Second)
		s.press(n)
	}
	s.wait(time.Second)
}

// write types a text at 15 keys a second.
func (s *stage) write(text string) {
	for _, r := range text {
		s.wait(time.Second / 15)
		k := tea.KeyPressMsg{Code: r, Text: string(r)}
		switch r {
		case '\n':
			k = tea.KeyPressMsg{Code: tea.KeyEnter}
		case ' ':
			k = tea.KeyPressMsg{Code: tea.KeySpace, Text: " "}
		}
		s.send(k)
	}
}

func keyOf(t *testing.T, n string) tea.KeyPressMsg {
	t.Helper()
	special := map[string]rune{
		"enter": tea.KeyEnter, "esc": tea.KeyEscape, "tab": tea.KeyTab, "up": tea.KeyUp, "down": tea.KeyDown,
		"left": tea.KeyLeft, "right": tea.KeyRight, "space": tea.KeySpace, "backspace": tea.KeyBackspace,
		"pgup": tea.KeyPgUp, "pgdown": tea.KeyPgDown, "home": tea.KeyHome, "end": tea.KeyEnd, "delete": tea.KeyDelete,
	}
	var k tea.KeyPressMsg
	for {
		rest, ok := strings.CutPrefix(n, "ctrl+")
		if ok {
			k.Mod |= tea.ModCtrl
		} else if rest, ok = strings.CutPrefix(n, "shift+"); ok {
			k.Mod |= tea.ModShift
		} else if rest, ok = strings.CutPrefix(n, "alt+"); ok {
			k.Mod |= tea.ModAlt
		} else {
			break
		}
		n = rest
	}
	if c, ok := special[n]; ok {
		k.Code = c
		if n == "space" && k.Mod == 0 {
			k.Text = " "
		}
		return k
	}
	if len([]rune(n)) != 1 {
		t.Fatalf("no such key: %q", n)
	}
	k.Code = []rune(n)[0]
	if k.Mod == 0 {
		k.Text = n
	}
	return k
}

// screen is what is drawn, without colours.
func (s *stage) screen() string { return ansi.Strip(s.m.View().Content) }

func (s *stage) sees(want ...string) {
	s.t.Helper()
	have := squash(s.screen())
	for _, w := range want {
		if !strings.Contains(have, squash(w)) {
			s.t.Errorf("the screen does not say %q:\n%s", w, s.screen())
		}
	}
}

func (s *stage) seesNot(not ...string) {
	s.t.Helper()
	have := squash(s.screen())
	for _, w := range not {
		if strings.Contains(have, squash(w)) {
			s.t.Errorf("the screen says %q:\n%s", w, s.screen())
		}
	}
}

// squash makes text comparable across line breaks and frames.
func squash(s string) string {
	s = strings.Map(func(r rune) rune {
		if strings.ContainsRune("│╭╮╰╯─┃", r) {
			return ' '
		}
		return r
	}, s)
	return strings.Join(strings.Fields(s), " ")
}

func (s *stage) decisions(want ...string) {
	s.t.Helper()
	if got := s.f.decided(); !slices.Equal(got, want) {
		s.t.Errorf("decisions %q, want %q\n%s", got, want, s.screen())
	}
}

var errNotPending = errors.New("a3 is not pending any more: bob denied it a minute ago. Look at the run with “pawl show r2”")

// exact fails if the frame is not h rows of w cells.
func (s *stage) exact(w, h int) {
	s.t.Helper()
	rows := strings.Split(s.m.View().Content, "\n")
	if len(rows) != h {
		s.t.Errorf("%d rows, want %d", len(rows), h)
	}
	for i, r := range rows {
		if got := s.m.pen.Method.StringWidth(r); got != w {
			s.t.Errorf("row %d is %d wide, want %d: %q", i, got, w, ansi.Strip(r))
		}
	}
}

// changed says that the ledger has changed, and lets the reading happen.
func (s *stage) changed() {
	s.wait(time.Second)
	s.send(pumpedMsg{changed: true})
	s.wait(time.Second)
}
