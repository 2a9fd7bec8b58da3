package effect

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"pawl/engine/machine"
)

func TestHTTPProbe(t *testing.T) {
	var hits atomic.Int64
	release := make(chan struct{})
	mux := http.NewServeMux()
	mux.HandleFunc("/there", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"key":"k1"}`) })
	mux.HandleFunc("/none", func(w http.ResponseWriter, _ *http.Request) { http.NotFound(w, nil) })
	mux.HandleFunc("/busy", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	mux.HandleFunc("/login", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "Bearer s3cret-value" {
			_, _ = io.WriteString(w, `{"key":"k1"}`)
			return
		}
		w.WriteHeader(http.StatusUnauthorized)
	})
	mux.HandleFunc("/moved", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/there", http.StatusFound) })
	mux.HandleFunc("/much", func(w http.ResponseWriter, _ *http.Request) {
		for range 40 {
			if _, err := io.WriteString(w, strings.Repeat(`{"key":"k1"}`, 10<<10)); err != nil {
				return
			}
		}
	})
	mux.HandleFunc("/hang", func(http.ResponseWriter, *http.Request) { <-release })
	mux.HandleFunc("/cut", func(w http.ResponseWriter, _ *http.Request) {
		c, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{\"key\":\"k1\"}")
		_ = c.Close()
	})
	mux.HandleFunc("/reset", func(w http.ResponseWriter, _ *http.Request) {
		if c, _, err := w.(http.Hijacker).Hijack(); err == nil {
			_ = c.(*net.TCPConn).SetLinger(0)
			_ = c.Close()
		}
	})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		hits.Add(1)
		mux.ServeHTTP(w, r)
	}))
	defer srv.Close()
	defer close(release)
	closed := httptest.NewServer(mux)
	closed.Close()

	for _, tt := range []struct {
		path  string
		want  machine.Verdict
		text  string
		auth  string
		asked int64
	}{
		{"/there", machine.VerdictHappened, "is there (200)", "", 1},
		{"/none", machine.VerdictNotHappened, "not there (404)", "", 1},
		{"/busy", machine.VerdictInconclusive, "answered with 503", "", 1},
		{"/login", machine.VerdictInconclusive, "wants a login", "", 1},
		{"/login", machine.VerdictHappened, "", "Bearer ${env:TOKEN}", 1},
		{"/login", machine.VerdictInconclusive, "variable NONE", "Bearer ${env:NONE}", 0},
		{"/moved", machine.VerdictInconclusive, "answered with 302", "", 1},
		{"/much", machine.VerdictInconclusive, "more than 1024 KiB", "", 1},
		{"/hang", machine.VerdictInconclusive, "did not answer within 300ms", "", 1},
		{"/cut", machine.VerdictInconclusive, "in part only", "", 1},
		{"/reset", machine.VerdictInconclusive, "gave no answer", "", 1},
	} {
		before := hits.Load()
		c := machine.Contract{Name: "http", Probe: &machine.Probe{
			Kind: ProbeHTTP, URL: srv.URL + tt.path + "?secret=q", Timeout: (10 * time.Second).Microseconds(),
			Answers: []machine.Answer{
				{Verdict: machine.VerdictHappened, Codes: []string{"200"}, Match: `"key":"k1"`},
				{Verdict: machine.VerdictNotHappened, Codes: []string{"404"}},
			},
		}}
		if tt.path == "/hang" {
			c.Probe.Timeout = (300 * time.Millisecond).Microseconds()
		}
		if tt.auth != "" {
			c.Probe.Header = map[string]string{"Authorization": tt.auth}
		}
		f := Probe(t.Context(), Request{Contract: c, Place: Place{Environ: []string{"TOKEN=s3cret-value"}}})
		if f.Verdict != tt.want || !strings.Contains(f.Text, tt.text) {
			t.Errorf("%s: %v %q, want %v %q", tt.path, f.Verdict, f.Text, tt.want, tt.text)
		}
		if n := hits.Load() - before; n != tt.asked {
			t.Errorf("%s was asked %d times", tt.path, n)
		}
		if all := f.Text + f.Detail; strings.Contains(all, "s3cret") || strings.Contains(all, "secret=q") {
			t.Errorf("%s: a secret is told: %s", tt.path, all)
		}
	}
	f := Probe(t.Context(), Request{Contract: machine.Contract{Probe: &machine.Probe{Kind: ProbeHTTP, URL: closed.URL + "/there"}}})
	if f.Verdict != machine.VerdictInconclusive || !strings.Contains(f.Text, "refused") {
		t.Errorf("%+v", f)
	}
}

func TestFilling(t *testing.T) {
	v := Vars{"a": "x y", "b": "-rf", "q": `say "hi"`, "slash": "../b?c"}
	for _, tt := range []struct {
		words []string
		want  string
		bad   bool
	}{
		{[]string{"p", "{a}", "--x={a}", "{none}", "--y={none}"}, "[p x y --x=x y]", false},
		{[]string{"p", "{b}"}, "", true},
		{[]string{"p", "--f={b}"}, "[p --f=-rf]", false},
		{[]string{"p", "--", "{b}"}, "[p -- -rf]", false},
		{[]string{"p", "{{.Id}}", "{A}", "{}", "{ a }"}, "[p {{.Id}} {A} {} { a }]", false},
		{[]string{"{q|json}"}, `["say \"hi\""]`, false},
	} {
		have, err := v.Words(tt.words)
		if (err != nil) != tt.bad || err == nil && fmt.Sprint(have) != tt.want {
			t.Errorf("%q: %v %v", tt.words, have, err)
		}
	}
	v[OriginName] = "http://h:8080"
	for in, want := range map[string]string{
		"{origin}/o/{slash}":          "http://h:8080/o/..%2Fb%3Fc",
		"https://h/o?x={slash}&y={a}": "https://h/o?x=..%2Fb%3Fc&y=x+y",
		"https://h/{a}/{b}?z={q}":     "https://h/x%20y/-rf?z=say+%22hi%22",
	} {
		if have := v.URL(in); have != want {
			t.Errorf("%s: %s", in, have)
		}
	}
	if have := (Vars{"p": "a.*b"}).Pattern(`^{p}{2}$`); have != `^a\.\*b{2}$` {
		t.Error(have)
	}
}

func TestBindPutsTheKeyInItsPlace(t *testing.T) {
	v := Vars{}
	v.KeyLater()
	words, err := v.Words([]string{"pay", "--key={key}", "{key}"})
	if err != nil {
		t.Fatal(err)
	}
	c := machine.Contract{
		Params: map[string]string{ParamLine: "pay " + v.Text("{key}"), "other": "x"},
		Probe: &machine.Probe{
			Command: words, URL: v.URL("https://h/p/{key}?k={key}"),
			Answers: []machine.Answer{{Match: v.Pattern("^{key}$")}},
		},
		Compensation: &machine.Compensation{Args: shellArgs(words, false)},
	}
	was, probe := c.Params, c.Probe
	Bind(&c, "pawl-1")
	if fmt.Sprint(c.Probe.Command) != "[pay --key=pawl-1 pawl-1]" || c.Probe.URL != "https://h/p/pawl-1?k=pawl-1" || c.Probe.Answers[0].Match != "^pawl-1$" ||
		c.Params[ParamLine] != "pay pawl-1" || c.Compensation.Args != `{"command":"pay '--key=pawl-1' 'pawl-1'"}` {
		t.Errorf("%+v\n%+v\n%+v", c.Probe, c.Compensation, c.Params)
	}
	if was[ParamLine] == c.Params[ParamLine] || probe.URL == c.Probe.URL {
		t.Error("the plan's own contract was changed")
	}
	if Keyed("a "+v.Text("{key}"), "k") != "a k" {
		t.Error("the line that runs lacks the key")
	}
}
