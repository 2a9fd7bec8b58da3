package openai_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"pawl/engine/machine"
	"pawl/engine/model"
	"pawl/engine/model/fakeopenai"
	"pawl/engine/model/openai"
	"pawl/engine/model/scripted"
	"pawl/engine/model/wire"
)

const twoCalls = `
[[step]]
say = "I look at the file, and push — ünïcödé."
[[step.call]]
tool = "read_file"
id = "call_a"
args = { path = "retry.go", note = "a longer argument, so that it is cut into several pieces" }
[[step.call]]
tool = "shell"
id = "call_a"
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

func provider(t testing.TB, o openai.Options) *openai.Provider {
	t.Helper()
	p, err := openai.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func request() model.Request {
	return model.Request{
		Model: "gpt-x", System: "You work.", Run: "rtest", Turn: 1, Attempt: 1,
		Messages: []model.Message{{Role: model.RoleUser, Text: "go on"}},
		Tools:    []model.ToolSpec{{Name: "shell", Description: "runs", Schema: json.RawMessage(`{"type":"object"}`)}},
	}
}

func TestCompleteReadsTextCallsAndUsage(t *testing.T) {
	srv := fake(t, fakeopenai.Options{Script: parse(t, twoCalls)})
	p := provider(t, openai.Options{BaseURL: srv.URL, Limits: model.Limits{Priced: true, InPrice: 2, OutPrice: 10}})
	var live strings.Builder
	r, err := p.Complete(context.Background(), request(), func(d string) { live.WriteString(d) })
	if err != nil {
		t.Fatal(err)
	}
	want := []model.RawCall{
		{ProviderID: "call_a", Name: "read_file", Args: `{"note":"a longer argument, so that it is cut into several pieces","path":"retry.go"}`},
		{ProviderID: "call_a", Name: "shell", Args: `{"command":"git push"}`}, // the same id: still two calls
	}
	if r.Text != "I look at the file, and push — ünïcödé." || live.String() != r.Text || r.Stop != machine.StopTools || !reflect.DeepEqual(r.Calls, want) {
		t.Errorf("response %+v, live %q", r, live.String())
	}
	if r.Usage.Input == 0 || r.Usage.Cost != r.Usage.Input*2+r.Usage.Output*10 || r.Usage.Estimated || r.RequestID != "req-chatcmpl-1" {
		t.Errorf("usage %+v, request id %q", r.Usage, r.RequestID)
	}
	h := srv.Requests()[0].Header
	if h.Get("X-Client-Request-Id") != "rtest-t1-a1" || h.Get("Idempotency-Key") != "" || h.Get("Authorization") != "" {
		t.Errorf("headers %v", h)
	}
}

func TestConversationGoesOutWhole(t *testing.T) {
	srv := fake(t, fakeopenai.Options{Script: parse(t, "[[step]]\nsay=\"a\"\n[[step]]\nexpect=[\"out\"]\nsay=\"b\"\n"), NoUsage: true, Key: "secret-key"})
	p := provider(t, openai.Options{BaseURL: srv.URL, Key: "secret-key"})
	req := request()
	req.Turn, req.MaxOutput = 2, 77
	req.Messages = append(req.Messages,
		model.Message{Role: model.RoleAssistant, Calls: []model.ToolCall{{ID: "c1_1", Name: "shell", Args: json.RawMessage(`{"command":"ls"}`)}}},
		model.Message{Role: model.RoleTool, CallID: "c1_1", Text: "out"})
	r, err := p.Complete(context.Background(), req, nil)
	if err != nil || r.Text != "b" || r.Stop != machine.StopEnd || !r.Usage.Estimated || r.Usage.Input == 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	var body struct {
		MaxTokens int `json:"max_tokens"`
		Stream    bool
		Messages  []map[string]any
		Tools     []map[string]any
	}
	if err := json.Unmarshal(srv.Requests()[0].Body, &body); err != nil {
		t.Fatal(err)
	}
	if body.MaxTokens != 77 || !body.Stream || len(body.Messages) != 4 || len(body.Tools) != 1 || body.Messages[0]["role"] != "system" {
		t.Errorf("body %+v", body)
	}
}

// Wherever a stream ends, there is either the whole answer or none.
func TestCutAnywhereDeliversNothing(t *testing.T) {
	s := parse(t, twoCalls)
	srv := fake(t, fakeopenai.Options{Script: s})
	p := provider(t, openai.Options{BaseURL: srv.URL})
	whole, err := p.Complete(context.Background(), request(), nil)
	if err != nil {
		t.Fatal(err)
	}
	size := streamSize(t, srv.URL)
	stop := 0
	for _, clean := range []bool{true, false} {
		for n := 1; n < size; n += 7 {
			cut := fakeopenai.New(fakeopenai.Options{Script: s, CutAfter: n, CleanCut: clean})
			ts := httptest.NewServer(cut)
			r, err := provider(t, openai.Options{BaseURL: ts.URL + "/v1"}).Complete(context.Background(), request(), nil)
			ts.Close()
			if err == nil {
				stop++
				if !reflect.DeepEqual(r.Calls, whole.Calls) || r.Text != whole.Text || r.Stop != whole.Stop {
					t.Fatalf("cut after %d bytes (clean %v): half an answer was delivered: %+v", n, clean, r)
				}
				continue
			}
			e := model.AsError(err)
			if e == nil || (e.Class != machine.FailCut && e.Class != machine.FailNetwork) || !e.Sent || len(r.Calls) != 0 {
				t.Fatalf("cut after %d bytes (clean %v): %+v, %v", n, clean, r, err)
			}
			if !strings.HasPrefix(whole.Text, e.Partial) {
				t.Fatalf("partial %q is no prefix", e.Partial)
			}
		}
	}
	if stop == 0 || stop > size/7 {
		t.Errorf("%d of the cuts came after the stop reason; that cannot be", stop)
	}
}

// streamSize asks for the whole stream and counts its bytes.
func streamSize(t *testing.T, base string) int {
	t.Helper()
	body := `{"model":"gpt-x","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"go on"}]}`
	res, err := http.Post(base+"/chat/completions", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	if err != nil || len(b) < 500 {
		t.Fatalf("%d bytes, %v", len(b), err)
	}
	return len(b)
}

// The same failure is of the same class before the stream and within it.
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
				p := provider(t, openai.Options{BaseURL: srv.URL})
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

func TestStatusesAndBodies(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name   string
		status int
		head   map[string]string
		body   string
		class  machine.FailClass
		after  time.Duration
		says   string
	}{
		{"401", 401, nil, `{"error":{"message":"Incorrect API key provided: sk-verysecretkey","code":"invalid_api_key"}}`, machine.FailAuth, 0, "(key)"},
		{"403", 403, nil, ``, machine.FailAuth, 0, ""},
		{"402", 402, nil, `{"error":{"message":"Insufficient credits"}}`, machine.FailQuota, 0, ""},
		{"404 of a server without such a model", 404, nil, `{"error":{"message":"model 'x' not found"}}`, machine.FailNotFound, 0, "gpt-x"},
		{"404 page", 404, nil, "<html>nginx</html>", machine.FailNotFound, 0, "status 404"},
		{"408", 408, nil, ``, machine.FailNetwork, 0, ""},
		{"413", 413, nil, ``, machine.FailContext, 0, ""},
		{"422", 422, nil, `{"detail":[{"msg":"bad"}]}`, machine.FailBadRequest, 0, "bad"},
		{"429 with seconds", 429, map[string]string{"Retry-After": "2"}, `{}`, machine.FailRate, 2 * time.Second, ""},
		{"429 with five hours", 429, map[string]string{"Retry-After": "18000"}, `{}`, machine.FailRate, 5 * time.Hour, ""},
		{"429 with a date", 429, map[string]string{"Retry-After": "Fri, 01 May 2026 12:01:00 GMT"}, `{}`, machine.FailRate, time.Minute, ""},
		{"429 with milliseconds", 429, map[string]string{"Retry-After-Ms": "1500", "Retry-After": "9"}, `{}`, machine.FailRate, 1500 * time.Millisecond, ""},
		{"429 with nonsense", 429, map[string]string{"Retry-After": "soon"}, `{}`, machine.FailRate, 0, ""},
		{"429 for a quota", 429, nil, `{"error":{"message":"You exceeded your current quota","type":"insufficient_quota"}}`, machine.FailQuota, 0, "add credit"},
		{"500", 500, nil, `{"error":{"message":"oops"}}`, machine.FailServer, 0, "oops"},
		{"502 page", 502, map[string]string{"Content-Type": "text/html"}, "<html>bad gateway</html>", machine.FailServer, 0, "status 502"},
		{"503", 503, nil, `busy`, machine.FailOverload, 0, "busy"},
		{"529", 529, nil, `{"error":{"type":"overloaded_error","message":"Overloaded"}}`, machine.FailOverload, 0, ""},
		{"400 too long", 400, nil, `{"error":{"message":"This model's maximum context length is 8192 tokens"}}`, machine.FailContext, 0, ""},
		{"400 of a list", 400, nil, `[{"error":{"message":"wrong","status":"INVALID_ARGUMENT","code":400}}]`, machine.FailBadRequest, 0, "wrong"},
		{"400 as plain string", 400, nil, `{"error":"no tools here"}`, machine.FailBadRequest, 0, "no tools here"},
		{"redirect", 307, map[string]string{"Location": "https://elsewhere.example/v1"}, ``, machine.FailBadRequest, 0, "elsewhere.example"},
		{"a page with status 200", 200, map[string]string{"Content-Type": "text/html"}, "<html>sign in</html>", machine.FailBadRequest, 0, "no model server"},
		{"an error with status 200", 200, map[string]string{"Content-Type": "application/json"}, `{"error":{"message":"slow down","code":429}}`, machine.FailRate, 0, ""},
		{"control characters", 500, nil, "{\"error\":{\"message\":\"a\\u001b[2Jb\\nc\\u202ed\"}}", machine.FailServer, 0, "a [2Jb c d"},
	} {
		t.Run(c.name, func(t *testing.T) {
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
			p := provider(t, openai.Options{BaseURL: ts.URL + "/v1", Key: "sk-verysecretkey", Now: func() time.Time { return now }})
			_, err := p.Complete(context.Background(), request(), nil)
			e := model.AsError(err)
			if e == nil || e.Class != c.class || e.RetryAfter != c.after || e.Status != c.status || !e.Sent {
				t.Fatalf("%#v", err)
			}
			if !strings.Contains(e.Message, c.says) || strings.Contains(e.Message, "verysecret") || strings.ContainsAny(e.Message, "\x1b\n\u202e") {
				t.Errorf("message %q", e.Message)
			}
			if n.Load() != 1 {
				t.Errorf("%d requests for one attempt", n.Load())
			}
		})
	}
}

func TestEventsInTheStream(t *testing.T) {
	chunk := func(delta, finish string) string {
		return `data: {"id":"x","choices":[{"index":0,"delta":` + delta + `,"finish_reason":` + finish + `}]}` + "\n\n"
	}
	for _, c := range []struct {
		name, body string
		class      machine.FailClass
		stop       machine.StopReason
		calls      []model.RawCall
	}{
		{"stop although it calls", chunk(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]}`, "null") + chunk(`{}`, `"stop"`), "", machine.StopTools, []model.RawCall{{ProviderID: "a", Name: "f", Args: "{}"}}},
		{"every call has index 0", chunk(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]}`, "null") + chunk(`{"tool_calls":[{"index":0,"id":"b","function":{"name":"g","arguments":"{}"}}]}`, `"tool_calls"`), "", machine.StopTools, []model.RawCall{{ProviderID: "a", Name: "f", Args: "{}"}, {ProviderID: "b", Name: "g", Args: "{}"}}},
		{"id and name in every piece", chunk(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":"}}]}`, "null") + chunk(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"1}"}}]}`, `"tool_calls"`), "", machine.StopTools, []model.RawCall{{ProviderID: "a", Name: "f", Args: `{"x":1}`}}},
		{
			"as Ollama writes it", `data: {"id":"chatcmpl-7","object":"chat.completion.chunk","created":1764580000,"model":"qwen3","system_fingerprint":"fp_ollama","choices":[{"index":0,"delta":{"role":"assistant","content":"","reasoning":"hm"},"finish_reason":null}]}` + "\n\n" +
				`data: {"id":"chatcmpl-7","object":"chat.completion.chunk","created":1764580000,"model":"qwen3","system_fingerprint":"fp_ollama","choices":[{"index":0,"delta":{"role":"assistant","content":"","tool_calls":[{"id":"call_x1","index":0,"type":"function","function":{"name":"f","arguments":"{\"x\":1}"}}]},"finish_reason":null}]}` + "\n\n" +
				`data: {"id":"chatcmpl-7","object":"chat.completion.chunk","created":1764580000,"model":"qwen3","system_fingerprint":"fp_ollama","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":"tool_calls"}]}` + "\n\n" +
				`data: {"id":"chatcmpl-7","object":"chat.completion.chunk","created":1764580000,"model":"qwen3","system_fingerprint":"fp_ollama","choices":[],"usage":{"prompt_tokens":180,"completion_tokens":21,"total_tokens":201}}` + "\n\ndata: [DONE]\n\n",
			"", machine.StopTools,
			[]model.RawCall{{ProviderID: "call_x1", Name: "f", Args: `{"x":1}`}},
		},
		{"no id at all", chunk(`{"tool_calls":[{"index":0,"function":{"name":"f","arguments":""}}]}`, `"tool_calls"`), "", machine.StopTools, []model.RawCall{{Name: "f", Args: "{}"}}},
		{"broken arguments with a stop reason", chunk(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{bro"}}]}`, `"tool_calls"`), "", machine.StopTools, []model.RawCall{{ProviderID: "a", Name: "f", Args: "{bro"}}},
		{"cut by length in a call", chunk(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":""}}]}`, `"length"`), "", machine.StopLength, []model.RawCall{{ProviderID: "a", Name: "f", Args: ""}}},
		{"filtered", chunk(`{"content":"no","tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]}`, `"content_filter"`), "", machine.StopRefusal, nil},
		{"refusal", chunk(`{"refusal":"I will not."}`, "null") + chunk(`{}`, `"stop"`), "", machine.StopRefusal, nil},
		{"DONE without stop reason", chunk(`{"content":"a"}`, "null") + "data: [DONE]\n\n", machine.FailCut, "", nil},
		{"nothing", "", machine.FailCut, "", nil},
		{"empty answer", chunk(`{"content":""}`, `"stop"`) + "data: [DONE]\n\n", machine.FailEmpty, "", nil},
		{"garbage", "data: {bro\n\n", machine.FailCut, "", nil},
		{"overload within", chunk(`{"content":"a"}`, "null") + `data: {"error":{"type":"overloaded_error","message":"Overloaded"}}` + "\n\n", machine.FailOverload, "", nil},
		{"a gateway's status within", chunk(`{"content":"a"}`, "null") + `data: {"error":{"code":429,"message":"slow"}}` + "\n\n", machine.FailRate, "", nil},
		{"an error after the stop reason", chunk(`{"content":"a"}`, `"stop"`) + `data: {"error":{"code":500,"message":"x"}}` + "\n\n", "", machine.StopEnd, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
				_, _ = io.WriteString(w, c.body)
			}))
			defer ts.Close()
			r, err := provider(t, openai.Options{BaseURL: ts.URL}).Complete(context.Background(), request(), nil)
			if c.class != "" {
				if e := model.AsError(err); e == nil || e.Class != c.class {
					t.Fatalf("%+v, %v", r, err)
				}
				return
			}
			if err != nil || r.Stop != c.stop || !reflect.DeepEqual(r.Calls, c.calls) {
				t.Fatalf("%+v, %v", r, err)
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
			b := make([]byte, 1)
			_, _ = c.Read(b)
			_ = c.Close()
		}
	}()
	p := provider(t, openai.Options{BaseURL: "http://" + l.Addr().String(), Headers: map[string]string{"Idempotency-Key": "k"}})
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

func TestSilenceAndStop(t *testing.T) {
	for _, c := range []struct {
		name  string
		head  bool
		class machine.FailClass
	}{{"no answer at all", false, machine.FailNetwork}, {"silent after a piece", true, machine.FailCut}} {
		t.Run(c.name, func(t *testing.T) {
			ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body) // only then does the server notice that the client has gone
				if c.head {
					w.Header().Set("Content-Type", "text/event-stream")
					_, _ = io.WriteString(w, `data: {"choices":[{"index":0,"delta":{"content":"a"}}]}`+"\n\n")
					w.(http.Flusher).Flush()
				}
				<-r.Context().Done()
			}))
			defer ts.Close()
			_, err := provider(t, openai.Options{BaseURL: ts.URL, Idle: 50 * time.Millisecond}).Complete(context.Background(), request(), nil)
			if e := model.AsError(err); e == nil || e.Class != c.class || !e.Sent {
				t.Fatalf("%#v", err)
			}
			// The operator stops it: cancelled by the first piece, or by the arrival of the request.
			ctx, cancel := context.WithCancel(context.Background())
			arrived := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				cancel()
				<-r.Context().Done()
			}))
			defer arrived.Close()
			_, err = provider(t, openai.Options{BaseURL: arrived.URL}).Complete(ctx, request(), nil)
			if e := model.AsError(err); e == nil || e.Class != machine.FailLost || !errors.Is(err, context.Canceled) || !e.Sent {
				t.Fatalf("after a stop: %#v", err)
			}
		})
	}
}

func TestNewSaysWhatToSet(t *testing.T) {
	_, err := openai.New(openai.Options{BaseURL: "https://api.openai.com/v1", KeyEnv: "OPENAI_API_KEY"})
	if err == nil || !strings.Contains(err.Error(), "set OPENAI_API_KEY") {
		t.Errorf("no key: %v", err)
	}
	for _, bad := range []string{"", "ftp://x", "api.openai.com", "http://", "http://[::1"} {
		if _, err := openai.New(openai.Options{BaseURL: bad, Key: "k"}); err == nil {
			t.Errorf("%q is taken as a base URL", bad)
		}
	}
	for host, local := range map[string]bool{
		"127.0.0.1:8080": true, "[::1]:80": true, "localhost": true, "10.1.2.3": true, "gpu-box:8000": true,
		"box.local": true, "api.openai.com": false, "8.8.8.8": false, "evil.localhost.example.com": false,
	} {
		u, err := url.Parse("http://" + host)
		if err != nil || wire.Local(u) != local {
			t.Errorf("%s: local is %v (%v)", host, !local, err)
		}
	}
}
