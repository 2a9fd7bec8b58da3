package scripted

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"pawl/engine/machine"
	"pawl/engine/model"
)

// talk holds a conversation with a script, as the engine would.
type talk struct {
	t    *testing.T
	s    *Script
	req  model.Request
	keep bool // pass the last answer's id on
}

func newTalk(t *testing.T, s *Script, opening string) *talk {
	return &talk{t: t, s: s, req: model.Request{
		Turn: 1, Attempt: 1, Messages: []model.Message{{Role: model.RoleUser, Text: opening}}, Vars: map[string]string{"WORLD": "http://w"},
	}}
}

// say plays one turn and shows result to the model after it.
func (k *talk) say(result string) Reply {
	k.t.Helper()
	r, err := k.s.Play(k.req)
	if err != nil {
		k.t.Fatal(err)
	}
	k.req.Messages = append(k.req.Messages,
		model.Message{Role: model.RoleAssistant, Text: r.Text}, model.Message{Role: model.RoleTool, Text: result})
	k.req.Turn++
	if k.keep {
		k.req.Prior = r.Place
	}
	return r
}

func (k *talk) stuck(want string) {
	k.t.Helper()
	_, err := k.s.Play(k.req)
	e := model.AsError(err)
	if e == nil || e.Class != machine.FailScript {
		k.t.Fatalf("err = %v, want a script failure", err)
	}
	if !strings.Contains(e.Message, want) {
		k.t.Errorf("message lacks %q:\n%s", want, e.Message)
	}
}

const branching = `
name = "branching"
[[step]]
label = "test"
[[step.call]]
tool = "shell"
args = { command = "go test" }
[[step]]
label = "judge"
expect = ["ok"]
say = "green"
[[step.call]]
tool = "http_request"
args = { url = "{{env.WORLD}}/tickets", body = "took {{last:in ([0-9.]+)s}}" }
[[step.branch]]
match = ["FAIL"]
say = "red"
goto = "test"
[[step.branch.call]]
tool = "edit_file"
raw = "{broken"
id = "x1"
[[step]]
say = "wait"
repeat = 2
[[step]]
say = "poll"
repeat_until = ["landed"]
[[step]]
say = "bye"
`

func TestPlayBranchesRepeatsAndFillsIn(t *testing.T) {
	for _, keep := range []bool{true, false} {
		k := newTalk(t, mustParse(t, branching), "repair it")
		k.keep = keep
		k.say("exit code: 1\nFAIL")
		if r := k.say("edited"); r.Text != "red" || r.Calls[0].Args != "{broken" || r.Calls[0].ProviderID != "x1" || r.Stop != machine.StopTools {
			t.Fatalf("branch answered %+v", r)
		}
		k.say("ok in 0.25s")
		r := k.say("created")
		if r.Text != "green" || r.Calls[0].Args != `{"body":"took 0.25","url":"http://w/tickets"}` {
			t.Fatalf("own answer is %+v", r)
		}
		k.say("a")
		k.say("b")
		for range 4 {
			if r := k.say("not yet"); r.Text != "poll" {
				t.Fatalf("said %q, want poll", r.Text)
			}
		}
		k.say("landed")
		if r := k.say("end"); r.Text != "bye" || r.Stop != machine.StopEnd {
			t.Fatalf("said %q (%s), want bye", r.Text, r.Stop)
		}
		k.stuck("has no step left: it has 5")
	}
}

func TestPlaySaysWhatDoesNotFit(t *testing.T) {
	k := newTalk(t, mustParse(t, branching), "repair it")
	k.say("neither word")
	k.stuck(`script "branching" (test.toml), step 2 "judge" (line 8): it expects "ok" in what the model is shown`)
	k.stuck("neither word")

	k = newTalk(t, mustParse(t, "[[step]]\nreject=[\"unknown\"]\nsay=\"a\""), "unknown: it may have happened")
	k.stuck(`it rejects "unknown"`)

	k = newTalk(t, mustParse(t, "[[step]]\nsay=\"{{env.NOPE}}\""), "x")
	k.stuck("this run was given no variable NOPE")

	k = newTalk(t, mustParse(t, "[[step]]\nsay=\"{{last:id (\\\\d{2})}}\""), "id x")
	k.stuck("nothing there matches")

	k = newTalk(t, mustParse(t, "[[step]]\n[[step.branch]]\nmatch=[\"a\"]\nsay=\"b\""), "x")
	k.stuck("none of its branches matches")

	k = newTalk(t, mustParse(t, "[[step]]\nsay=\"a\"\nrepeat=2\nrepeat_until=[\"z\"]"), "x")
	k.say("1")
	k.say("2")
	k.stuck(`it was played 2 times and is to go on until the model is shown "z"`)

	k = newTalk(t, mustParse(t, "[[step]]\nsay=\"a\"\n[[step]]\nsay=\"b\""), "x")
	k.req.Turn = 7
	k.stuck("shows 0 earlier answers, but this is turn 7")
}

func TestTextInDoubleBracesIsLeftAlone(t *testing.T) {
	k := newTalk(t, mustParse(t, "[[step]]\nsay=\"${{ github.ref }} {{.Name}} {{env.WORLD}} {{\""), "x")
	if r := k.say(""); r.Text != "${{ github.ref }} {{.Name}} http://w {{" {
		t.Errorf("said %q", r.Text)
	}
}

// Whatever a run was shown, its place by the last answer's id and its place by
// the whole conversation are the same, and asking twice gets the same answer.
func TestPlaceFromIDEqualsPlaceFromConversation(t *testing.T) {
	s := mustParse(t, branching)
	rapid.Check(t, func(rt *rapid.T) {
		req := model.Request{Turn: 1, Vars: map[string]string{"WORLD": "w"}, Messages: []model.Message{{Role: model.RoleUser, Text: "go"}}}
		for range rapid.IntRange(1, 20).Draw(rt, "turns") {
			whole := req
			whole.Prior = ""
			a, errA := s.Play(req)
			b, errB := s.Play(whole)
			c, errC := s.Play(req)
			if !reflect.DeepEqual(a, b) || !reflect.DeepEqual(a, c) {
				rt.Fatalf("by id %+v, by conversation %+v, again %+v", a, b, c)
			}
			if (errA == nil) != (errB == nil) || (errA == nil) != (errC == nil) {
				rt.Fatalf("errors %v, %v, %v", errA, errB, errC)
			}
			if errA != nil {
				return
			}
			res := rapid.SampledFrom([]string{"FAIL", "ok in 1s", "landed", "ok in 2s landed", ""}).Draw(rt, "result")
			req.Messages = append(req.Messages, model.Message{Role: model.RoleAssistant, Text: a.Text}, model.Message{Role: model.RoleTool, Text: res})
			req.Turn++
			req.Prior = a.Place
		}
	})
}

func TestFailuresCountAttemptsNotCalls(t *testing.T) {
	p := New(mustParse(t, "[[step]]\nsay=\"hello there\"\nfail=\"server\"\nfail_times=2\nretry_after_ms=1500\n"))
	req := model.Request{Turn: 1, Messages: []model.Message{{Role: model.RoleUser, Text: "x"}}}
	for _, attempt := range []int{1, 1, 2, 0} { // a restart asks again under the same number
		req.Attempt = attempt
		_, err := p.Complete(context.Background(), req, nil)
		if e := model.AsError(err); e == nil || e.Class != machine.FailServer || e.RetryAfter != 1500*time.Millisecond || !e.Sent {
			t.Fatalf("attempt %d: %+v", attempt, err)
		}
	}
	req.Attempt = 3
	r, err := p.Complete(context.Background(), req, nil)
	if err != nil || r.Text != "hello there" {
		t.Fatalf("attempt 3: %+v, %v", r, err)
	}
}

func TestCutDeliversTextButNoCall(t *testing.T) {
	for _, at := range []string{"start", "text", "args", "calls"} {
		p := New(mustParse(t, "[[step]]\nsay=\"one two three four five six seven\"\nfail=\"cut\"\nfail_at=\""+at+"\"\n[[step.call]]\ntool=\"shell\"\nargs={command=\"ls\"}\n"))
		var live strings.Builder
		r, err := p.Complete(context.Background(), model.Request{Turn: 1}, func(d string) { live.WriteString(d) })
		e := model.AsError(err)
		if e == nil || e.Class != machine.FailCut || len(r.Calls) != 0 {
			t.Fatalf("%s: response %+v, error %v", at, r, err)
		}
		if e.Partial != live.String() || (at == "start") != (e.Partial == "") {
			t.Errorf("%s: partial %q, live %q", at, e.Partial, live.String())
		}
	}
}

func TestCompletePacesAndStops(t *testing.T) {
	p := New(mustParse(t, "[[step]]\nsay=\"0123456789 0123456789 0123456789 0123456789\"\ndelay_ms=70\n"))
	var waited time.Duration
	p.sleep = func(ctx context.Context, d time.Duration) error { waited += d; return ctx.Err() }
	r, err := p.Complete(context.Background(), model.Request{Turn: 1}, nil)
	if err != nil || r.Stop != machine.StopEnd || waited != 3*70*time.Millisecond {
		t.Fatalf("%+v, %v, waited %v", r, err, waited)
	}
	ctx, cancel := context.WithCancel(context.Background())
	n := 0
	p.sleep = func(ctx context.Context, _ time.Duration) error {
		if n++; n == 2 {
			cancel()
		}
		return ctx.Err()
	}
	_, err = p.Complete(ctx, model.Request{Turn: 1}, nil)
	e := model.AsError(err)
	if !errors.Is(err, context.Canceled) || e.Class != machine.FailLost || len(e.Partial) != 24 {
		t.Fatalf("after a stop: %+v", e)
	}
}

func TestPiecesLoseNothing(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := rapid.String().Draw(rt, "s")
		if got := strings.Join(Pieces(s), ""); got != s {
			rt.Fatalf("%q became %q", s, got)
		}
		if h := Half(s); !strings.HasPrefix(s, h) || len(h) > len(s)/2 {
			rt.Fatalf("half of %q is %q", s, h)
		}
	})
}
