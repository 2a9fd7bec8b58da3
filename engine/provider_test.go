package engine

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pawl/engine/machine"
	"pawl/engine/model/fakeopenai"
	"pawl/engine/model/registry"
	"pawl/engine/model/scripted"
	"pawl/engine/tool"
	"pawl/engine/workspace"
	"pawl/ledger"
)

// leaps is a clock that jumps to the end of every wait, and remembers it. A
// wait of more than most does not end.
type leaps struct {
	mu    sync.Mutex
	now   time.Time
	most  time.Duration
	waits []time.Duration
}

func (l *leaps) Now() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now = l.now.Add(time.Microsecond)
	return l.now
}

func (l *leaps) After(d time.Duration) (<-chan time.Time, func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := make(chan time.Time, 1)
	if d >= time.Second {
		l.waits = append(l.waits, d)
	}
	if l.most == 0 || d <= l.most {
		l.now = l.now.Add(d)
		c <- l.now
	}
	return c, func() {}
}

func (l *leaps) waited() []time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.waits)
}

// asking is an engine whose runs ask a server through the official SDKs.
type asking struct {
	*Engine
	t     *testing.T
	dir   string
	clock *leaps
	send  *sender
}

func newAsking(t *testing.T, base string, most time.Duration) *asking {
	t.Helper()
	ctx := context.Background()
	a := &asking{t: t, dir: t.TempDir(), clock: &leaps{now: time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC), most: most}}
	a.send = &sender{contract: machine.Contract{Class: machine.ClassIrreversible}}
	db, err := ledger.Open(ctx, ledger.Options{Path: filepath.Join(a.dir, "ledger.db")})
	if err != nil {
		t.Fatal(err)
	}
	a.Engine, err = New(Options{
		Store: db, Holder: db.Process(), StateDir: a.dir, Now: a.clock.Now, After: a.clock.After,
		Models: registry.New(registry.Options{BaseURLs: map[string]string{"openai": base, "anthropic": base}}),
		Tools:  tool.All(tool.Options{More: []tool.Tool{a.send}}),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(ctx); err != nil {
			t.Error(err)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return a
}

// create makes a run whose workspace is a plain folder.
func (a *asking) create(name string) machine.RunID {
	a.t.Helper()
	ctx := context.Background()
	id, err := a.newID()
	if err != nil {
		a.t.Fatal(err)
	}
	data, err := machine.Encode(workspace.Workspace{Run: string(id), Path: a.dir})
	if err != nil {
		a.t.Fatal(err)
	}
	s, err := a.commit(ctx, ledger.Full, machine.State{}, batch{bodies: []machine.Body{machine.RunCreated{Charter: machine.Charter{ID: id, Root: id, Goal: "ask", Model: name}}}, actor: a.operator})
	if err != nil {
		a.t.Fatal(err)
	}
	ready := machine.WorkspaceReady{Path: a.dir, Mode: "folder", Level: "none", Data: data}
	if _, err = a.commit(ctx, ledger.Full, s, batch{bodies: append(claimBodies(&s, "setup", a.self, a.o.Mono().Boot), ready), claim: true, epoch: 1, free: true}); err != nil {
		a.t.Fatal(err)
	}
	return id
}

// rest drives a run until it rests.
func (a *asking) rest(id machine.RunID) (Rest, machine.State) {
	a.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := a.Drive(ctx, id); err != nil {
		a.t.Fatal(err)
	}
	rest, err := a.Wait(ctx, id)
	if err != nil || rest.Err != nil {
		a.t.Fatalf("run %s: %+v, %v", id, rest, err)
	}
	s, err := a.state(ctx, id)
	if err != nil {
		a.t.Fatal(err)
	}
	return rest, s
}

const (
	// goodChat is a whole answer of the chat-completions format: it finishes.
	goodChat = `data: {"id":"x","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"finish","arguments":"{\"summary\":\"done\"}"}}]},"finish_reason":"tool_calls"}]}` + "\n\ndata: [DONE]\n\n"
	busyChat = `data: {"id":"x","choices":[{"index":0,"delta":{"content":"so"}}]}` + "\n\n" + `data: {"error":{"type":"overloaded_error","message":"Overloaded"}}` + "\n\n"
)

// answering serves the n-th request with the n-th answer, and later ones with
// the last.
type answering struct {
	mu      sync.Mutex
	n       int
	answers []answerOf
}

type answerOf struct {
	status int
	after  string
	body   string
}

func (s *answering) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	s.mu.Lock()
	a := s.answers[min(s.n, len(s.answers)-1)]
	s.n++
	s.mu.Unlock()
	if a.after != "" {
		w.Header().Set("Retry-After", a.after)
	}
	if a.status == 200 {
		w.Header().Set("Content-Type", "text/event-stream")
	}
	w.WriteHeader(a.status)
	_, _ = io.WriteString(w, a.body)
}

func (s *answering) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.n
}

func times(n int, a answerOf) []answerOf {
	out := make([]answerOf, n)
	for i := range out {
		out[i] = a
	}
	return out
}

// A busy provider is waited for as it asks, before the stream and within it; a
// hopeless failure is said at once; tries are bounded; the run stays usable.
func TestProviderTrouble(t *testing.T) {
	good := answerOf{status: 200, body: goodChat}
	for _, c := range []struct {
		name     string
		answers  []answerOf
		requests int
		done     bool
		wait     time.Duration // the first one at least
	}{
		{"overloaded before the stream", []answerOf{{status: 529, body: `{"error":{"type":"overloaded_error"}}`}, good}, 2, true, time.Second},
		{"overloaded within the stream", []answerOf{{status: 200, body: busyChat}, good}, 2, true, time.Second},
		{"limited for two seconds", []answerOf{{status: 429, after: "2", body: `{}`}, good}, 2, true, 2 * time.Second},
		{"limited for five hours", []answerOf{{status: 429, after: "18000", body: `{}`}, good}, 2, true, 5 * time.Hour},
		{"limited for no stated time", []answerOf{{status: 429, body: `{}`}, good}, 2, true, time.Second},
		{"five faults, then well", append(times(5, answerOf{status: 500, body: `{}`}), good), 6, true, time.Second},
		{"down for good", []answerOf{{status: 500, body: `{}`}}, machine.LimitModelTries, false, time.Second},
		{"the quota is gone", []answerOf{{status: 429, body: `{"error":{"code":"insufficient_quota","message":"You exceeded your current quota"}}`}}, 1, false, 0},
		{"a wrong key", []answerOf{{status: 401, body: `{}`}}, 1, false, 0},
		{"no such model", []answerOf{{status: 404, body: `{"error":{"message":"model not found"}}`}}, 1, false, 0},
		{"a wrong address", []answerOf{{status: 200, body: ""}}, machine.LimitModelTries, false, time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			srv := &answering{answers: c.answers}
			ts := httptest.NewServer(srv)
			defer ts.Close()
			a := newAsking(t, ts.URL+"/v1", 0)
			id := a.create("openai/m")
			rest, s := a.rest(id)
			if n := srv.count(); n != c.requests {
				t.Errorf("%d requests, want %d", n, c.requests)
			}
			if got := rest.Phase == machine.PhaseDone; got != c.done {
				t.Fatalf("done: %v, rests as %+v", got, rest)
			}
			waits := a.clock.waited()
			if c.wait > 0 && (len(waits) == 0 || waits[0] < c.wait-time.Millisecond || waits[0] > c.wait*5/4+5*time.Second) {
				t.Errorf("waited %v, want %v first", waits, c.wait)
			}
			if c.done {
				return
			}
			if len(rest.Waits) != 1 || rest.Waits[0].Kind != machine.WaitLimit {
				t.Fatalf("it waits for %+v", rest.Waits)
			}
			// The session stays usable: the provider recovers, the operator says go on.
			srv.mu.Lock()
			srv.answers = []answerOf{good}
			srv.mu.Unlock()
			if err := a.Answer(context.Background(), s.OpenQuestion().ID, "extend 1"); err != nil {
				t.Fatal(err)
			}
			until := time.Now().Add(time.Minute)
			for rest.Phase != machine.PhaseDone && time.Now().Before(until) {
				rest, _ = a.rest(id)
			}
			if rest.Phase != machine.PhaseDone {
				t.Errorf("after the operator's answer: %+v", rest)
			}
		})
	}
}

// What one run is told, all runs of that provider obey, without asking
// themselves; others do not wait; and a run that waits can be cancelled.
func TestRunsShareTheProvidersLimit(t *testing.T) {
	srv := &answering{answers: []answerOf{{status: 429, after: "18000", body: `{}`}}}
	ts := httptest.NewServer(srv)
	defer ts.Close()
	a := newAsking(t, ts.URL+"/v1", time.Minute)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	news := a.Changes()
	wait := func(what string, ok func() bool) {
		t.Helper()
		for !ok() {
			select {
			case <-news:
			case <-ctx.Done():
				t.Fatalf("%s: it never was so", what)
			}
		}
	}
	state := func(id machine.RunID) machine.State {
		s, err := a.state(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	first := a.create("openai/m")
	if err := a.Drive(ctx, first); err != nil {
		t.Fatal(err)
	}
	wait("the first is refused", func() bool { l := state(first); t := l.LastTurn(); return t != nil && t.RetryAt > 0 })
	var ids []machine.RunID
	for range 9 {
		ids = append(ids, a.create("openai/m"))
	}
	if err := a.Drive(ctx, ids...); err != nil {
		t.Fatal(err)
	}
	untils := map[int64]bool{}
	for _, id := range ids {
		wait("another run is held", func() bool { s := state(id); return s.Hold != nil })
		s := state(id)
		untils[s.Hold.Until] = true
		if !strings.Contains(note(&s), "waits until 17:00") {
			t.Errorf("the run says %q", note(&s))
		}
	}
	if len(untils) < 5 {
		t.Errorf("they all come back at once: %v", untils)
	}
	if n := srv.count(); n != 1 {
		t.Errorf("%d requests were sent, though the first was told to wait", n)
	}
	if err := a.Cancel(ctx, ids[0], "no more"); err != nil {
		t.Fatal(err)
	}
	if rest, err := a.Wait(ctx, ids[0]); err != nil || rest.Phase != machine.PhaseCancelled {
		t.Errorf("%+v, %v", rest, err)
	}
}

// When a provider fails all its runs for long, they stop trying by themselves.
func TestSharedTriesAreBounded(t *testing.T) {
	var m meters
	now := int64(1)
	spent := false
	for i := range sharedTries {
		if spent {
			t.Fatalf("used up after %d", i)
		}
		_, spent = m.fail("p", machine.FailServer, now, now+1, 0)
		now += 2
	}
	if !spent {
		t.Error("never used up")
	}
	if until, _ := m.held("q", now); until != 0 {
		t.Error("another provider waits")
	}
	m.answered("p")
	if until, _ := m.held("p", now); until != 0 {
		t.Error("it waits although the provider answers")
	}
	// Ten that failed together are one failure when it comes to the pause.
	var first, last time.Duration
	for i := range 10 {
		last, _ = m.fail("p", machine.FailOverload, 100, int64(200+i), 0)
		if i == 0 {
			first = last
		}
	}
	if last > first {
		t.Errorf("ten failures at once made the pause grow from %v to %v", first, last)
	}
}

const actAndFinish = `
[[step]]
say = "I send it."
%s
[[step.call]]
tool = "send"
args = { n = "one" }
[[step]]
[[step.call]]
tool = "finish"
args = { summary = "sent" }
`

// Wherever the connection is cut, no call of an unfinished answer runs, and none
// runs twice: the world counts. With both wire formats.
func TestCutAnswersNeverAct(t *testing.T) {
	for _, name := range []string{"openai/m", "anthropic/m"} {
		for _, at := range []string{"start", "text", "args", "calls"} {
			for _, always := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/always=%v", strings.TrimSuffix(name, "/m"), at, always), func(t *testing.T) {
					fail := fmt.Sprintf("fail = \"cut\"\nfail_at = %q\n", at)
					if always {
						fail += "fail_times = -1\n"
					}
					sc, err := scripted.Parse("cut.toml", fmt.Appendf(nil, actAndFinish, fail))
					if err != nil {
						t.Fatal(err)
					}
					srv, err := fakeopenai.Start("127.0.0.1:0", fakeopenai.Options{Script: sc})
					if err != nil {
						t.Fatal(err)
					}
					defer func() { _ = srv.Close() }()
					a := newAsking(t, srv.URL, 0)
					id := a.create(name)
					rest, s := a.rest(id)
					want, requests := 1, 3
					if always {
						want, requests = 0, machine.LimitModelTries
					}
					if got := a.send.sent(); len(got) != want {
						t.Errorf("the world has %v", got)
					}
					if n := len(srv.Requests()); n != requests {
						t.Errorf("%d requests, want %d", n, requests)
					}
					if done := rest.Phase == machine.PhaseDone; done == always {
						t.Errorf("rests as %+v", rest)
					}
					if always && (len(rest.Waits) != 1 || rest.Waits[0].Kind != machine.WaitLimit) {
						t.Errorf("waits for %+v", rest.Waits)
					}
					// What was seen of a cut answer is never shown to the model again.
					p, err := a.build(context.Background(), &s)
					if err != nil {
						t.Fatal(err)
					}
					if n := strings.Count(p.Transcript(), "I send it."); n > want {
						t.Errorf("the text stands %d times in the context", n)
					}
				})
			}
		}
	}
}

// A request that is too long is made shorter once, which is recorded; then the
// operator is asked.
func TestTooLongIsShrunkOnce(t *testing.T) {
	read := `{\"path\":\"big.txt\"}`
	reads := `data: {"id":"x","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"read_file","arguments":"` + read + `"}},` +
		`{"index":1,"id":"b","function":{"name":"read_file","arguments":"` + read + `"}}]},"finish_reason":"tool_calls"}]}` + "\n\ndata: [DONE]\n\n"
	tooLong := answerOf{status: 400, body: `{"error":{"code":"context_length_exceeded","message":"This model's maximum context length is 8192 tokens"}}`}
	for _, again := range []int{1, 2} {
		srv := &answering{answers: slices.Concat([]answerOf{{status: 200, body: reads}}, times(again, tooLong), []answerOf{{status: 200, body: goodChat}})}
		ts := httptest.NewServer(srv)
		defer ts.Close()
		a := newAsking(t, ts.URL+"/v1", 0)
		if err := os.WriteFile(filepath.Join(a.dir, "big.txt"), []byte(strings.Repeat("a line of text\n", 3000)), 0o600); err != nil {
			t.Fatal(err)
		}
		rest, s := a.rest(a.create("openai/m"))
		if s.Window != 2 || s.Limit == 0 || len(s.Openings) != 1 || s.Openings[0].After >= s.Openings[0].Before || !strings.Contains(s.Openings[0].Why, "8192") {
			t.Errorf("%d refusals: window %d, limit %d, %+v", again, s.Window, s.Limit, s.Openings)
		}
		if again == 1 && (rest.Phase != machine.PhaseDone || srv.count() != 3) {
			t.Errorf("after one refusal and %d requests: %+v", srv.count(), rest)
		}
		if again == 2 && (len(rest.Waits) != 1 || rest.Waits[0].Kind != machine.WaitLimit || srv.count() != 3) {
			t.Errorf("after two refusals and %d requests: %+v", srv.count(), rest)
		}
	}
}

// Output that is no text never spoils a later request: a strict server of either
// format takes every one of them.
func TestBinaryOutputNeverSpoilsARequest(t *testing.T) {
	raw := make([]byte, 64<<10)
	for i := range raw {
		raw[i] = byte(i * 7) // NUL, ESC and 0xFF among them
	}
	for _, name := range []string{"openai/m", "anthropic/m"} {
		steps := strings.Repeat("[[step]]\n[[step.call]]\ntool = \"send\"\nargs = { n = \"x\" }\n", 4)
		sc, err := scripted.Parse("raw.toml", []byte(steps+"[[step]]\n[[step.call]]\ntool = \"finish\"\nargs = { summary = \"ok\" }\n"))
		if err != nil {
			t.Fatal(err)
		}
		srv, err := fakeopenai.Start("127.0.0.1:0", fakeopenai.Options{Script: sc})
		if err != nil {
			t.Fatal(err)
		}
		a := newAsking(t, srv.URL, 0)
		a.send.end = func(int) tool.Outcome {
			return tool.Outcome{End: tool.EndCompleted, Result: machine.Result{OK: true, Code: "0"}, Output: tool.Content{Bytes: raw}}
		}
		rest, s := a.rest(a.create(name))
		if rest.Phase != machine.PhaseDone || len(srv.Requests()) != 5 {
			t.Errorf("%s: %+v after %d requests: %s", name, rest, len(srv.Requests()), s.Reason)
		}
		p, err := a.build(context.Background(), &s)
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(p.Transcript(), "bytes that are no text, sha256"); n != 4 || len(p.Left) != 4 || p.Left[0].Handle == "" {
			t.Errorf("%s: described %d times, left out %+v", name, n, p.Left)
		}
		_ = srv.Close()
	}
}
