package engine

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pawl/engine/confine"
	"pawl/engine/machine"
	"pawl/engine/model"
	"pawl/engine/policy"
	"pawl/engine/tool"
)

// call is one tool call of a part.
func call(name string, args any) model.RawCall {
	b, err := json.Marshal(args)
	if err != nil {
		panic(err)
	}
	return model.RawCall{ProviderID: name + string(b), Name: name, Args: string(b)}
}

type obj = map[string]any

// parts answers each run by its goal: turn n with the n-th entry. A run whose
// part is over finishes with the goal's claim.
type parts struct {
	mu     sync.Mutex
	turns  map[string][][]model.RawCall
	claims map[string]string
	cost   int64
	asked  map[string]int
	hook   func(goal string, req model.Request)
}

func (p *parts) Complete(_ context.Context, req model.Request, _ func(string)) (model.Response, error) {
	goal := ""
	_, rest, _ := strings.Cut(req.Messages[0].Text, "The goal, in the ")
	_, rest, _ = strings.Cut(rest, ":\n")
	goal, _, _ = strings.Cut(rest, "\n")
	if p.hook != nil {
		p.hook(goal, req)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.asked == nil {
		p.asked = map[string]int{}
	}
	p.asked[goal]++
	u := machine.Usage{Input: 10, Output: 10, Cost: p.cost}
	if t := p.turns[goal]; req.Turn <= len(t) {
		return model.Response{Stop: machine.StopTools, Calls: t[req.Turn-1], Usage: u}, nil
	}
	claim := p.claims[goal]
	if claim == "" {
		claim = "nothing to say"
	}
	return model.Response{Stop: machine.StopTools, Calls: []model.RawCall{call("finish", obj{"summary": claim})}, Usage: u}, nil
}

func write(path, content string) []model.RawCall {
	return []model.RawCall{call("write_file", obj{"path": path, "content": content})}
}

func delegate(goal string, more ...any) model.RawCall {
	args := obj{"goal": goal}
	for i := 0; i < len(more); i += 2 {
		args[more[i].(string)] = more[i+1]
	}
	return call("delegate", args)
}

var collect = []model.RawCall{call("collect", obj{})}

// priced is a model whose price is known.
type priced struct{ p model.Provider }

func (f priced) Resolve(context.Context, string, []byte) (model.Provider, string, model.Limits, error) {
	return f.p, "m", model.Limits{Priced: true, MaxOutput: 100, OutPrice: 1}, nil
}

// grove is a repository with a ledger in memory and engines on it.
type grove struct {
	*stand
	repo string
	tree TreeLimits
}

func newGrove(t *testing.T) *grove {
	t.Helper()
	g := &grove{stand: newStand(t, &sender{}), repo: t.TempDir()}
	g.write("README", "a project\n")
	g.git("init", "--quiet", "--template=", "-b", "main")
	g.git("add", "--all")
	g.git("-c", "user.name=A", "-c", "user.email=a@example.com", "-c", "commit.gpgSign=false", "commit", "--quiet", "-m", "start")
	return g
}

func (g *grove) write(name, text string) {
	g.t.Helper()
	if err := os.WriteFile(filepath.Join(g.repo, name), []byte(text), 0o644); err != nil {
		g.t.Fatal(err)
	}
}

func (g *grove) git(args ...string) {
	g.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = g.repo
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull)
	if out, err := cmd.CombinedOutput(); err != nil {
		g.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

// open opens an engine; it is closed with the test at the latest.
func (g *grove) open(name string, m model.Provider, crash Crasher) *Engine {
	g.t.Helper()
	h, err := g.mem.Open(name)
	if err != nil {
		g.t.Fatal(err)
	}
	e, err := New(Options{
		Store: h, Holder: h.Process(), StateDir: g.dir, Operator: name, Models: priced{m}, Crash: crash, Tree: g.tree, Log: g.t.Logf,
		Tools: tool.All(tool.Options{}), Level: &confine.Report{Level: confine.LevelNone},
	})
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := e.Close(ctx); err != nil {
			g.t.Error(err)
		}
	})
	return e
}

func (g *grove) create(e *Engine, n NewRun) machine.RunID {
	g.t.Helper()
	n.Repo, n.Model = g.repo, "fixed/m"
	id, err := e.Create(context.Background(), n)
	if err != nil {
		g.t.Fatal(err)
	}
	return id
}

func (g *grove) state(e *Engine, id machine.RunID) machine.State {
	g.t.Helper()
	s, err := e.State(context.Background(), id)
	if err != nil {
		g.t.Fatal(err)
	}
	return s
}

// kid is the child of a run with a goal.
func (g *grove) kid(e *Engine, id machine.RunID, goal string) *machine.Child {
	g.t.Helper()
	s := g.state(e, id)
	for _, c := range s.Children.All() {
		if c.Goal == goal {
			return c
		}
	}
	for _, f := range s.Effects.All() {
		g.t.Logf("%s %s: %s", f.Tool, f.State, f.Result.Output.Inline)
	}
	g.t.Fatalf("run %s has no child %q", id, goal)
	return nil
}

func (g *grove) review(e *Engine, id machine.RunID, v Review) {
	g.t.Helper()
	if err := e.Review(context.Background(), id, v); err != nil {
		g.t.Fatal(err)
	}
}

// until drives a run and waits for something about it to become true.
func (g *grove) until(e *Engine, id machine.RunID, what string, ok func(s *machine.State) bool) {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	changes, drop := e.subscribe()
	defer drop()
	if err := e.Drive(ctx, id); err != nil {
		g.t.Fatal(err)
	}
	for {
		if s := g.state(e, id); ok(&s) {
			return
		}
		select {
		case <-changes:
		case <-ctx.Done():
			g.t.Fatalf("waited in vain: %s", what)
		}
	}
}

// idle waits until the engine drives nothing.
func (g *grove) idle(e *Engine) {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	e.mu.Lock()
	runs := slices.Collect(maps.Values(e.runs))
	e.mu.Unlock()
	for _, r := range runs {
		select {
		case <-r.done:
		case <-ctx.Done():
			g.t.Fatalf("still driven: %v", e.Driven())
		}
	}
}

func done(s *machine.State) bool { return s.Phase == machine.PhaseDone }

// stands is true once the child with a goal stands so.
func stands(goal string, at machine.ChildStanding) func(*machine.State) bool {
	return func(s *machine.State) bool {
		for _, c := range s.Children.All() {
			if c.Goal == goal {
				return c.Standing() == at
			}
		}
		return false
	}
}

// verified checks that rows and guards agree with the events.
func (g *grove) verified(e *Engine) {
	g.t.Helper()
	v, err := e.Verify(context.Background(), nil)
	if err != nil || !v.OK {
		g.t.Fatalf("verify: %+v, %v", v, err)
	}
}

func (g *grove) file(e *Engine, id machine.RunID, name string) string {
	g.t.Helper()
	s := g.state(e, id)
	b, err := os.ReadFile(filepath.Join(s.Space.Path, name))
	if err != nil {
		return ""
	}
	return string(b)
}

// Two children work on copies of the parent's files, uncommitted ones included;
// their work is reviewed, taken over once, and told to the parent.
func TestDelegation(t *testing.T) {
	g := newGrove(t)
	m := &parts{
		turns: map[string][][]model.RawCall{
			"root": {write("shared.txt", "from the parent\n"), {delegate("left"), delegate("right")}, collect},
			"left": {{call("read_file", obj{"path": "shared.txt"})}, write("left.txt", "l\n")},
			// The parent may have moved on; this sees what it had then.
			"right": {write("right.txt", "r\n"), write("shared.txt", "from the parent\nand the right\n")},
		},
		claims: map[string]string{"left": "I added left.txt", "right": "all tests pass and I pushed it"},
	}
	e := g.open("ann", m, nil)
	id := g.create(e, NewRun{Goal: "root"})
	rest := g.rest(e, id)
	if len(rest.Waits) != 2 || rest.Waits[0].Kind != machine.WaitReview {
		t.Fatalf("it rests with %+v", rest)
	}
	left, right := g.kid(e, id, "left"), g.kid(e, id, "right")
	if c := g.state(e, left.ID); c.Effect(machine.EffectIDOf(left.ID, 1)).Result.OK != true || c.Charter.Depth != 1 || c.Charter.Root != id {
		t.Fatalf("the left child did not see its parent's uncommitted file, or is misplaced: %+v", c.Charter)
	}
	if len(left.Report.Flags) != 0 {
		t.Errorf("an honest claim is flagged: %q", left.Report.Flags)
	}
	if flags := strings.Join(right.Report.Flags, "\n"); !strings.Contains(flags, "tests or checks pass") || !strings.Contains(flags, "pushed") {
		t.Errorf("the lie is not flagged: %q", right.Report.Flags)
	}
	card, err := e.ReviewCard(context.Background(), right.ID)
	if err != nil || !strings.Contains(card.Diff, "and the right") || card.Claim != "all tests pass and I pushed it" || !slices.Equal(card.Files, []string{"right.txt", "shared.txt"}) || len(card.Forecast) > 0 {
		t.Fatalf("the card: %+v, %v", card, err)
	}
	g.review(e, left.ID, Review{Verdict: machine.ReviewAccept})
	g.review(e, right.ID, Review{Verdict: machine.ReviewAccept})
	if err := e.Review(context.Background(), right.ID, Review{Verdict: machine.ReviewDiscard}); err == nil {
		t.Error("work that was accepted is discarded")
	}
	g.until(e, id, "it ends", done)
	for name, want := range map[string]string{"left.txt": "l\n", "right.txt": "r\n", "shared.txt": "from the parent\nand the right\n"} {
		if got := g.file(e, id, name); got != want {
			t.Errorf("%s is %q", name, got)
		}
	}
	s := g.state(e, id)
	adopted := 0
	for _, f := range s.Effects.All() {
		if f.Tool == machine.ToolAdopt && f.State == machine.StateCompleted && f.Result.OK {
			adopted++
		}
	}
	if adopted != 2 || s.Changes.Len() != 0 {
		t.Errorf("%d adoptions, %d changes by others", adopted, s.Changes.Len())
	}
	if main, _ := os.ReadFile(filepath.Join(g.repo, "right.txt")); len(main) > 0 {
		t.Error("the operator's checkout was touched")
	}
	g.verified(e)
}

// What two children would do to each other is known before either is taken
// over, and settled by the operator.
func TestSiblingsClash(t *testing.T) {
	g := newGrove(t)
	m := &parts{turns: map[string][][]model.RawCall{
		"root": {{delegate("one"), delegate("two")}, collect},
		"one":  {write("README", "one\n")},
		"two":  {write("README", "two\n"), write("more.txt", "more\n")},
	}}
	e := g.open("ann", m, nil)
	id := g.create(e, NewRun{Goal: "root", Allow: []string{AdoptGreen}})
	g.rest(e, id)
	one, two := g.kid(e, id, "one").ID, g.kid(e, id, "two").ID
	card, err := e.ReviewCard(context.Background(), two)
	if err != nil || len(card.Conflicts) != 0 || len(card.Forecast) != 1 || card.Forecast[0].With != one || !slices.Equal(card.Forecast[0].Files, []string{"README"}) {
		t.Fatalf("the forecast: %+v, %v", card, err)
	}
	g.review(e, one, Review{Verdict: machine.ReviewAccept})
	g.until(e, id, "one is taken over", stands("one", machine.ChildAdopted))
	err = e.Review(context.Background(), two, Review{Verdict: machine.ReviewAccept})
	if err == nil || !strings.Contains(err.Error(), "README") {
		t.Fatalf("the conflict is not named: %v", err)
	}
	// A part of it goes in all the same.
	g.review(e, two, Review{Verdict: machine.ReviewAccept, Files: []string{"more.txt"}})
	g.until(e, id, "it ends", done)
	if a, b := g.file(e, id, "README"), g.file(e, id, "more.txt"); a != "one\n" || b != "more\n" {
		t.Errorf("README %q, more.txt %q", a, b)
	}
	g.verified(e)
}

// Work that is sent back goes on with the feedback; what is discarded keeps a ref.
func TestReviewRejectAndDiscard(t *testing.T) {
	g := newGrove(t)
	m := &parts{turns: map[string][][]model.RawCall{
		"root":  {{delegate("part"), delegate("waste")}, collect},
		"part":  {write("a.txt", "1\n"), {call("finish", obj{"summary": "first try"})}, write("a.txt", "2\n")},
		"waste": {write("w.txt", "w\n")},
	}}
	e := g.open("ann", m, nil)
	id := g.create(e, NewRun{Goal: "root"})
	g.rest(e, id)
	part, waste := g.kid(e, id, "part").ID, g.kid(e, id, "waste").ID
	if err := e.Review(context.Background(), part, Review{Verdict: machine.ReviewReject}); err == nil {
		t.Error("it is sent back without a word")
	}
	g.review(e, part, Review{Verdict: machine.ReviewReject, Feedback: "write 2"})
	g.until(e, id, "it reports again", stands("part", machine.ChildReview))
	if c := g.kid(e, id, "part"); c.Reports != 2 || c.Standing() != machine.ChildReview {
		t.Fatalf("after the feedback: %+v", c)
	}
	g.review(e, part, Review{Verdict: machine.ReviewAccept})
	g.review(e, waste, Review{Verdict: machine.ReviewDiscard, Feedback: "not needed"})
	if c := g.kid(e, id, "waste"); !strings.Contains(c.Feedback, "refs/pawl/kept/") {
		t.Errorf("nothing says where it is kept: %q", c.Feedback)
	}
	g.until(e, id, "it ends", done)
	if g.file(e, id, "a.txt") != "2\n" || g.file(e, id, "w.txt") != "" {
		t.Fatalf("a.txt %q", g.file(e, id, "a.txt"))
	}
	g.verified(e)
}

// A run that always delegates comes up against the caps, and a cancel at the
// root leaves nothing that works.
func TestDelegatesForEver(t *testing.T) {
	g := newGrove(t)
	g.tree = TreeLimits{Depth: 2, Children: 3, Tree: 8}
	again := [][]model.RawCall{{delegate("x1"), delegate("x2"), delegate("x3"), delegate("x4")}, collect}
	m := &parts{turns: map[string][][]model.RawCall{}}
	for _, goal := range []string{"root", "x1", "x2", "x3", "x4"} {
		m.turns[goal] = again
	}
	e := g.open("ann", m, nil)
	id := g.create(e, NewRun{Goal: "root"})
	if rest := g.rest(e, id); !rest.Ended {
		t.Fatalf("it rests with %+v", rest)
	}
	lines, err := e.Tree(context.Background(), id)
	if err != nil || len(lines) != 8 {
		t.Fatalf("the tree holds %d runs: %v", len(lines), err)
	}
	for _, l := range lines {
		if l.Depth > 2 || l.State != Done {
			t.Errorf("%s at depth %d is %s", l.ID, l.Depth, l.State)
		}
	}
	g.verified(e)
}

// After a cancel of the root nothing of the tree is dispatched, whatever was
// starting at that moment.
func TestCancelWhileGrandchildrenStart(t *testing.T) {
	g := newGrove(t)
	deep := [][]model.RawCall{{delegate("leaf a"), delegate("leaf b"), delegate("leaf c")}, collect}
	started := make(chan struct{}, 64)
	m := &parts{turns: map[string][][]model.RawCall{
		"root": {{delegate("mid a"), delegate("mid b"), delegate("mid c")}, collect}, "mid a": deep, "mid b": deep, "mid c": deep,
		"leaf a": {write("a.txt", "a\n")}, "leaf b": {write("b.txt", "b\n")}, "leaf c": {write("c.txt", "c\n")},
	}}
	m.hook = func(goal string, _ model.Request) {
		if strings.HasPrefix(goal, "leaf") {
			started <- struct{}{}
		}
	}
	e := g.open("ann", m, nil)
	id := g.create(e, NewRun{Goal: "root"})
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	if err := e.Drive(ctx, id); err != nil {
		t.Fatal(err)
	}
	select {
	case <-started:
	case <-ctx.Done():
		t.Fatal("no grandchild started")
	}
	if err := e.Cancel(ctx, id, "enough"); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Wait(ctx, id); err != nil {
		t.Fatal(err)
	}
	g.idle(e)
	lines, err := e.Tree(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range lines {
		if l.State != Cancelled && l.State != Done {
			t.Errorf("%s is %s", l.ID, l.State)
		}
		evs, err := e.store.Events(ctx, string(l.ID), 0, 1000)
		if err != nil {
			t.Fatal(err)
		}
		over := false
		for _, ev := range evs {
			switch ev.Kind {
			case "RunCancelled":
				over = true
			case "EffectDispatched", "TurnRequested", "ChildSpawned":
				if over {
					t.Errorf("%s: %s after the cancel", l.ID, ev.Kind)
				}
			}
		}
	}
	g.verified(e)
}

// A parent that ends before its child freezes it; the child can go on, and its
// work is still reviewed and taken over, once.
func TestChildOutlivesParent(t *testing.T) {
	g := newGrove(t)
	gate := make(chan struct{})
	m := &parts{turns: map[string][][]model.RawCall{
		"root": {{delegate("slow")}}, "slow": {write("s.txt", "1\n"), write("s.txt", "2\n")},
	}}
	m.hook = func(goal string, req model.Request) {
		if goal == "slow" && req.Turn == 1 {
			<-gate
		}
	}
	e := g.open("ann", m, nil)
	id := g.create(e, NewRun{Goal: "root"})
	g.rest(e, id)
	slow := g.kid(e, id, "slow").ID
	close(gate)
	if s := g.state(e, slow); s.Phase != machine.PhasePaused || !strings.Contains(s.Reason, string(id)) {
		t.Fatalf("the child is %s: %s", s.Phase, s.Reason)
	}
	if err := e.Unpause(context.Background(), slow); err != nil {
		t.Fatal(err)
	}
	if rest := g.rest(e, slow); !rest.Ended {
		t.Fatalf("the child rests with %+v", rest)
	}
	items, err := e.Inbox(context.Background())
	if err != nil || !slices.ContainsFunc(items, func(i Item) bool { return i.Kind == KindReview && i.ID == string(slow) && i.Run == id }) {
		t.Fatalf("the inbox: %+v, %v", items, err)
	}
	g.review(e, slow, Review{Verdict: machine.ReviewAccept})
	if got := g.file(e, id, "s.txt"); got != "2\n" {
		t.Errorf("s.txt is %q", got)
	}
	g.verified(e)
}

// Reserved, spent and free add up at every event, and a child gets no more than is free.
func TestBudgetOfATree(t *testing.T) {
	g := newGrove(t)
	m := &parts{cost: 1000, turns: map[string][][]model.RawCall{
		"root": {{delegate("a", "budget_usd", 0.05), delegate("b", "budget_usd", 0.5), delegate("c")}, collect},
		"a":    {{delegate("aa", "budget_usd", 0.04)}, collect},
	}}
	e := g.open("ann", m, nil)
	id := g.create(e, NewRun{Goal: "root", BudgetUSD: 0.2})
	g.rest(e, id)
	s := g.state(e, id)
	if s.Children.Len() != 2 {
		for _, f := range s.Effects.All() {
			t.Logf("%s %s: %s", f.Tool, f.State, f.Result.Output.Inline)
		}
		t.Fatalf("%d children", s.Children.Len())
	}
	if a := g.kid(e, id, "a"); a.Reserve != 50_000 || a.Report.Spent != 4000 {
		t.Errorf("a has %d set aside and spent %d", a.Reserve, a.Report.Spent)
	}
	if s.Used() > s.Budget || s.Used() != s.Spent+s.AtMost+4000+g.kid(e, id, "c").Report.Spent {
		t.Errorf("used %d of %d, own %d", s.Used(), s.Budget, s.Spent)
	}
	g.verified(e)
}

// A child has what its parent has, at most: nothing of the operator's word to
// the parent reaches it, and a rule that the parent lacks does not help it.
func TestAuthorityIsAnIntersection(t *testing.T) {
	g := newGrove(t)
	m := &parts{turns: map[string][][]model.RawCall{
		"root": {{delegate("part", "paths", []string{"src"})}, collect},
		"part": {write("src/a.txt", "a\n"), write("../../elsewhere.txt", "x\n"), write("other.txt", "o\n")},
	}}
	e := g.open("ann", m, nil)
	id := g.create(e, NewRun{Goal: "root"})
	rest := g.rest(e, id)
	part := g.kid(e, id, "part")
	s := g.state(e, part.ID)
	if f := s.Effect(machine.EffectIDOf(part.ID, 1)); f.State != machine.StateCompleted {
		t.Errorf("inside: %s (%s)", f.State, f.Reason)
	}
	for n := 2; n <= 3; n++ {
		if f := s.Effect(machine.EffectIDOf(part.ID, n)); f == nil || f.State != machine.StateRefused {
			t.Errorf("effect %d outside its paths: %+v; it rests with %+v", n, f, rest)
		}
	}
	if _, err := os.Stat(filepath.Join(g.repo, "other.txt")); err == nil {
		t.Error("the checkout was changed")
	}
	parent := g.state(e, id)
	narrow, wide := parent.Charter, s.Charter
	wide.Allow = []string{"curl https://example.com"}
	sub := policy.Subject{Tool: "shell", Line: "curl https://example.com", Network: true, Class: machine.ClassIrreversible}
	cs, err := policy.Parse(sub.Line)
	if err != nil {
		t.Fatal(err)
	}
	sub.Commands = &cs
	s.Charter = wide
	if d := e.judge(context.Background(), &s, nil, sub); d.Verdict != policy.Ask {
		t.Errorf("a rule that %s does not have lets the child go: %+v", narrow.ID, d)
	}
}

// A word between runs is in both records and arrives once.
func TestWordsArriveOnce(t *testing.T) {
	g := newGrove(t)
	heard := map[string]int{}
	var mu sync.Mutex
	m := &parts{turns: map[string][][]model.RawCall{
		"root":   {{delegate("talker")}, collect},
		"talker": {{call("tell_parent", obj{"text": "half of it is done"})}, {call("tell_child", obj{"child": "rxxxxxx", "text": "x"})}},
	}}
	m.hook = func(goal string, req model.Request) {
		mu.Lock()
		defer mu.Unlock()
		n := 0
		for _, x := range req.Messages {
			n += strings.Count(x.Text, "half of it is done")
		}
		heard[goal] = max(heard[goal], n)
	}
	e := g.open("ann", m, nil)
	id := g.create(e, NewRun{Goal: "root"})
	g.rest(e, id)
	s := g.state(e, id)
	words := 0
	for _, x := range s.Mail {
		if x.Kind == "child" {
			words++
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if words != 1 || heard["root"] != 1 {
		t.Errorf("%d words on record, shown %d times", words, heard["root"])
	}
	g.verified(e)
}
