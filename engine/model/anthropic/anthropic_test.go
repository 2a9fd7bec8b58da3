package anthropic_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"pawl/engine/machine"
	"pawl/engine/model"
	"pawl/engine/model/anthropic"
	"pawl/engine/model/fakeopenai"
	"pawl/engine/model/scripted"
)

const twoCalls = `
[[step]]
say = "I look at the file, and push — ünïcödé."
[[step.call]]
tool = "read_file"
id = "toolu_a"
args = { path = "retry.go", note = "a longer argument, so that it is cut into several pieces" }
[[step.call]]
tool = "shell"
id = "toolu_a"
args = { command = "git push" }
`

func parse(t testing.TB, text string) *scripted.Script {
	t.Helper()
	s, err := scripted.Parse("test.toml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func fake(t testing.TB, o fakeopenai.Options) *fakeopenai.Server {
	t.Helper()
	s, err := fakeopenai.Start("127.0.0.1:0", o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func provider(t testing.TB, o anthropic.Options) *anthropic.Provider {
	t.Helper()
	p, err := anthropic.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func request() model.Request {
	return model.Request{
		Model: "claude-x", System: "You work.", Run: "rtest", Turn: 1, Attempt: 1,
		Messages: []model.Message{{Role: model.RoleUser, Text: "go on"}},
		Tools:    []model.ToolSpec{{Name: "shell", Description: "runs", Schema: json.RawMessage(`{"type":"object","properties":{"command":{"type":"string"}},"required":["command"],"additionalProperties":false}`)}},
	}
}

func TestCompleteReadsTextCallsAndUsage(t *testing.T) {
	srv := fake(t, fakeopenai.Options{Script: parse(t, twoCalls)})
	p := provider(t, anthropic.Options{BaseURL: srv.URL, Limits: model.Limits{Priced: true, InPrice: 2, OutPrice: 10, CachedPrice: 1}})
	var live strings.Builder
	r, err := p.Complete(context.Background(), request(), func(d string) { live.WriteString(d) })
	if err != nil {
		t.Fatal(err)
	}
	want := []model.RawCall{
		{ProviderID: "toolu_a", Name: "read_file", Args: `{"note":"a longer argument, so that it is cut into several pieces","path":"retry.go"}`},
		{ProviderID: "toolu_a", Name: "shell", Args: `{"command":"git push"}`}, // the same id: still two calls
	}
	if r.Text != "I look at the file, and push — ünïcödé." || live.String() != r.Text || r.Stop != machine.StopTools || !reflect.DeepEqual(r.Calls, want) {
		t.Errorf("response %+v, live %q", r, live.String())
	}
	u := r.Usage
	if u.Input == 0 || u.Cached != u.Input/2 || u.Cost != (u.Input-u.Cached)*2+u.Cached+u.Output*10 || u.Estimated || u.Guessed || r.RequestID != "req-1" {
		t.Errorf("usage %+v, request id %q", u, r.RequestID)
	}
	h := srv.Requests()[0].Header
	if h.Get("X-Client-Request-Id") != "rtest-t1-a1" || h.Get("Idempotency-Key") != "" || h.Get("Authorization")+h.Get("X-Api-Key") != "" {
		t.Errorf("headers %v", h)
	}
}

// A conversation with several results, words after them and a blank answer goes
// out in the form that the endpoint accepts, with what stays the same marked
// for its cache.
func TestConversationGoesOutWhole(t *testing.T) {
	srv := fake(t, fakeopenai.Options{Script: parse(t, "[[step]]\nsay=\"a\"\n[[step]]\nsay=\"b\"\n[[step]]\nexpect=[\"word\"]\nsay=\"c\"\n"), Key: "secret-key"})
	p := provider(t, anthropic.Options{BaseURL: strings.TrimSuffix(srv.URL, "/v1"), Key: "secret-key"})
	req := request()
	req.Turn, req.MaxOutput, req.Run = 3, 77, ""
	req.Messages = append(req.Messages,
		model.Message{Role: model.RoleAssistant, Calls: []model.ToolCall{
			{ID: "c1_1", Name: "shell", Args: json.RawMessage(`{"command":"ls"}`)}, {ID: "c1_2", Name: "shell", Args: json.RawMessage(`{}`)},
		}},
		model.Message{Role: model.RoleTool, CallID: "c1_1", Text: "out"},
		model.Message{Role: model.RoleTool, CallID: "c1_2", Text: ""},
		model.Message{Role: model.RoleUser, Text: "The operator says: faster"},
		model.Message{Role: model.RoleAssistant, Text: "  "},
		model.Message{Role: model.RoleUser, Text: "a word"})
	r, err := p.Complete(context.Background(), req, nil)
	if err != nil || r.Text != "c" || r.Stop != machine.StopEnd {
		t.Fatalf("%+v, %v", r, err)
	}
	var body struct {
		MaxTokens int `json:"max_tokens"`
		System    []map[string]any
		Messages  []struct {
			Role    string
			Content []map[string]any
		}
		Tools []map[string]any
	}
	if err := json.Unmarshal(srv.Requests()[0].Body, &body); err != nil {
		t.Fatal(err)
	}
	if body.MaxTokens != 77 || len(body.Messages) != 5 || len(body.Messages[2].Content) != 3 || len(body.Tools) != 1 {
		t.Fatalf("body %+v", body)
	}
	if s := body.Tools[0]["input_schema"].(map[string]any); s["additionalProperties"] != false || s["type"] != "object" || s["required"] == nil {
		t.Errorf("the schema went out as %v", s)
	}
	for name, b := range map[string]map[string]any{"instructions": body.System[0], "opening": body.Messages[0].Content[0], "end": body.Messages[4].Content[0]} {
		if b["cache_control"] == nil {
			t.Errorf("the %s is not marked for the cache", name)
		}
	}
}

// Wherever a stream ends, there is either the whole answer or none. The SDK
// takes a stream that ends in the middle of a call for a whole one.
func TestCutAnywhereDeliversNothing(t *testing.T) {
	s := parse(t, twoCalls)
	whole, err := provider(t, anthropic.Options{BaseURL: fake(t, fakeopenai.Options{Script: s}).URL}).Complete(context.Background(), request(), nil)
	if err != nil {
		t.Fatal(err)
	}
	delivered := 0
	for _, clean := range []bool{true, false} {
		for n := 1; ; n += 13 {
			cut := fakeopenai.New(fakeopenai.Options{Script: s, CutAfter: n, CleanCut: clean})
			ts := httptest.NewServer(cut)
			r, err := provider(t, anthropic.Options{BaseURL: ts.URL}).Complete(context.Background(), request(), nil)
			ts.Close()
			if err == nil {
				delivered++
				if !reflect.DeepEqual(r.Calls, whole.Calls) || r.Text != whole.Text || r.Stop != whole.Stop {
					t.Fatalf("cut after %d bytes (clean %v): half an answer was delivered: %+v", n, clean, r)
				}
				break // from here on everything is there
			}
			e := model.AsError(err)
			if e == nil || (e.Class != machine.FailCut && e.Class != machine.FailNetwork) || !e.Sent || len(r.Calls) != 0 {
				t.Fatalf("cut after %d bytes (clean %v): %+v, %v", n, clean, r, err)
			}
			if !strings.HasPrefix(whole.Text, e.Partial) {
				t.Fatalf("partial %q is no prefix", e.Partial)
			}
			if n > 20_000 {
				t.Fatal("the stream has no end")
			}
		}
	}
	if delivered != 2 {
		t.Errorf("delivered %d times", delivered)
	}
}

// The same failure is of the same class before the stream and within it, and
// is one request.
func TestFailuresBeforeAndWithinTheStream(t *testing.T) {
	for _, class := range []machine.FailClass{
		machine.FailRate, machine.FailOverload, machine.FailServer, machine.FailAuth, machine.FailQuota,
		machine.FailContext, machine.FailNotFound, machine.FailBadRequest, machine.FailCut,
	} {
		for _, at := range []string{"start", "text", "args", "calls"} {
			if class == machine.FailCut && at == "start" {
				continue // no byte of an answer: a broken connection, not a cut answer
			}
			t.Run(fmt.Sprintf("%s at %s", class, at), func(t *testing.T) {
				srv := fake(t, fakeopenai.Options{Script: parse(t, strings.Replace(twoCalls, "say =", "fail = \""+string(class)+"\"\nfail_at = \""+at+"\"\nsay =", 1))})
				p := provider(t, anthropic.Options{BaseURL: srv.URL})
				r, err := p.Complete(context.Background(), request(), nil)
				e := model.AsError(err)
				if e == nil || e.Class != class || !e.Sent || len(r.Calls) > 0 {
					t.Fatalf("response %+v, error %#v", r, err)
				}
				if !strings.Contains(e.Message, model.Advice(class)) {
					t.Errorf("message says not what next: %s", e.Message)
				}
				if n := len(srv.Requests()); n != 1 {
					t.Errorf("%d requests for one attempt", n)
				}
				req := request()
				req.Attempt = 2
				if _, err := p.Complete(context.Background(), req, nil); err != nil {
					t.Errorf("the second attempt: %v", err)
				}
			})
		}
	}
}

func TestStatuses(t *testing.T) {
	kind := func(k, text string) string {
		return fmt.Sprintf(`{"type":"error","error":{"type":%q,"message":%q}}`, k, text)
	}
	for _, c := range []struct {
		status int
		head   map[string]string
		body   string
		class  machine.FailClass
		after  time.Duration
		says   string
	}{
		{401, nil, kind("authentication_error", "invalid x-api-key sk-verysecretkey"), machine.FailAuth, 0, "(key)"},
		{403, nil, kind("permission_error", "no"), machine.FailAuth, 0, ""},
		{404, nil, kind("not_found_error", "model: claude-x"), machine.FailNotFound, 0, "claude-x"},
		{408, nil, ``, machine.FailNetwork, 0, ""},
		{413, nil, kind("request_too_large", "too large"), machine.FailContext, 0, ""},
		{429, map[string]string{"Retry-After": "2"}, kind("rate_limit_error", "slow"), machine.FailRate, 2 * time.Second, ""},
		{429, map[string]string{"Retry-After": "18000"}, kind("rate_limit_error", "slow"), machine.FailRate, 5 * time.Hour, ""},
		{429, nil, kind("rate_limit_error", "slow"), machine.FailRate, 0, ""},
		{400, nil, kind("invalid_request_error", "Your credit balance is too low to access the API"), machine.FailQuota, 0, "add credit"},
		{400, nil, kind("invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"), machine.FailContext, 0, ""},
		{400, nil, kind("invalid_request_error", "bad"), machine.FailBadRequest, 0, "bad"},
		{500, nil, kind("api_error", "oops"), machine.FailServer, 0, "oops"},
		{529, nil, kind("overloaded_error", "Overloaded"), machine.FailOverload, 0, ""},
	} {
		t.Run(fmt.Sprint(c.status, c.class), func(t *testing.T) {
			var n atomic.Int32
			ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				n.Add(1)
				for k, v := range c.head {
					w.Header().Set(k, v)
				}
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.body)
			}))
			defer ts.Close()
			_, err := provider(t, anthropic.Options{BaseURL: ts.URL, Key: "sk-verysecretkey"}).Complete(context.Background(), request(), nil)
			e := model.AsError(err)
			if e == nil || e.Class != c.class || e.RetryAfter != c.after || e.Status != c.status || !e.Sent {
				t.Fatalf("%#v", err)
			}
			if !strings.Contains(e.Message, c.says) || strings.Contains(e.Message, "verysecret") {
				t.Errorf("message %q", e.Message)
			}
			if n.Load() != 1 {
				t.Errorf("%d requests for one attempt", n.Load())
			}
		})
	}
}

func event(name, data string) string { return "event: " + name + "\ndata: " + data + "\n\n" }

func TestEventsInTheStream(t *testing.T) {
	start := event("message_start", `{"type":"message_start","message":{"id":"m","role":"assistant","content":[],"usage":{"input_tokens":10,"cache_read_input_tokens":30,"cache_creation_input_tokens":2,"output_tokens":1}}}`)
	text := event("content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`) +
		event("content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}}`) +
		event("content_block_stop", `{"type":"content_block_stop","index":0}`)
	think := event("content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":""}}`) +
		event("content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}`)
	call := func(input, delta string) string {
		s := event("content_block_start", `{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t","name":"f","input":`+input+`}}`)
		if delta != "" {
			s += event("content_block_delta", fmt.Sprintf(`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":%q}}`, delta))
		}
		return s
	}
	end := func(reason string) string {
		return event("message_delta", `{"type":"message_delta","delta":{"stop_reason":`+reason+`},"usage":{"output_tokens":7}}`) + event("message_stop", `{"type":"message_stop"}`)
	}
	f := func(args string) []model.RawCall {
		return []model.RawCall{{ProviderID: "t", Name: "f", Args: args}}
	}
	for _, c := range []struct {
		name, body string
		class      machine.FailClass
		stop       machine.StopReason
		calls      []model.RawCall
	}{
		{"a call without arguments", start + call("{}", "") + end(`"tool_use"`), "", machine.StopTools, f("{}")},
		{"arguments that come whole", start + call(`{"x":1}`, "") + end(`"tool_use"`), "", machine.StopTools, f(`{"x":1}`)},
		{"broken arguments with a stop reason", start + call("{}", "{bro") + end(`"tool_use"`), "", machine.StopTools, f("{bro")},
		{"a call although it says it ends", start + call("{}", `{"x":1}`) + end(`"end_turn"`), "", machine.StopTools, f(`{"x":1}`)},
		{"cut by length in a call", start + call("{}", "") + end(`"max_tokens"`), "", machine.StopLength, f("")},
		{"the context is full", start + text + end(`"model_context_window_exceeded"`), "", machine.StopLength, nil},
		{"a refusal with a call", start + call("{}", `{"x":1}`) + end(`"refusal"`), "", machine.StopRefusal, nil},
		{"a ping and an unknown event", start + event("ping", `{"type":"ping"}`) + event("novelty", `{"type":"novelty"}`) + text + end(`"end_turn"`), "", machine.StopEnd, nil},
		{"an unknown stop reason", start + text + end(`"novelty"`), machine.FailServer, "", nil},
		{"reasoning alone", start + think + end(`"end_turn"`), machine.FailEmpty, "", nil},
		{"an empty answer", start + end(`"end_turn"`), machine.FailEmpty, "", nil},
		{"no stop reason", start + text + end("null"), machine.FailCut, "", nil},
		{"no message_stop", start + text + event("message_delta", `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":7}}`), machine.FailCut, "", nil},
		{"nothing", "", machine.FailCut, "", nil},
		{"garbage", event("message_start", "{bro"), machine.FailCut, "", nil},
		{"overload within", start + text + event("error", `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`), machine.FailOverload, "", nil},
		{"a rate limit within", start + text + event("error", `{"type":"error","error":{"type":"rate_limit_error","message":"slow"}}`), machine.FailRate, "", nil},
		{"an error after the end", start + text + end(`"end_turn"`) + event("error", `{"type":"error","error":{"type":"api_error","message":"x"}}`), "", machine.StopEnd, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
				_, _ = io.WriteString(w, c.body)
			}))
			defer ts.Close()
			r, err := provider(t, anthropic.Options{BaseURL: ts.URL}).Complete(context.Background(), request(), nil)
			if c.class != "" {
				if e := model.AsError(err); e == nil || e.Class != c.class {
					t.Fatalf("%+v, %v", r, err)
				}
				return
			}
			if err != nil || r.Stop != c.stop || !reflect.DeepEqual(r.Calls, c.calls) {
				t.Fatalf("%+v, %v", r, err)
			}
			// The figures of the last event are totals: nothing is added up.
			if u := r.Usage; u.Input != 42 || u.Cached != 30 || u.Written != 2 || u.Output != 7 {
				t.Errorf("usage %+v", u)
			}
		})
	}
}

// A connection that dies before the answer is one attempt, and one only.
func TestOneAttemptOnTheWire(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var n atomic.Int32
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			n.Add(1)
			_, _ = c.Read(make([]byte, 1))
			_ = c.Close()
		}
	}()
	p := provider(t, anthropic.Options{BaseURL: "http://" + l.Addr().String(), Headers: map[string]string{"Idempotency-Key": "k"}})
	for i := 1; i <= 3; i++ {
		_, err := p.Complete(context.Background(), request(), nil)
		if e := model.AsError(err); e == nil || e.Class != machine.FailNetwork || !e.Sent {
			t.Fatalf("%#v", err)
		}
		if int(n.Load()) != i {
			t.Fatalf("%d connections for %d attempts", n.Load(), i)
		}
	}
	_ = l.Close()
	<-done
	_, err = p.Complete(context.Background(), request(), nil)
	if e := model.AsError(err); e == nil || e.Class != machine.FailNetwork || e.Sent || !strings.Contains(e.Message, "Nothing was sent") {
		t.Fatalf("nobody listens: %#v", err)
	}
}

func TestNewSaysWhatToSet(t *testing.T) {
	if _, err := anthropic.New(anthropic.Options{BaseURL: "https://api.anthropic.com"}); err == nil || !strings.Contains(err.Error(), "ANTHROPIC_API_KEY") {
		t.Errorf("without a key: %v", err)
	}
	if _, err := anthropic.New(anthropic.Options{BaseURL: "nowhere"}); err == nil || !strings.Contains(err.Error(), "nowhere") {
		t.Errorf("without an address: %v", err)
	}
}
