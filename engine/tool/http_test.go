package tool

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"pawl/engine/machine"
)

// direct sends without a proxy, whatever the environment says.
var direct = Options{Proxy: func(*http.Request) (*url.URL, error) { return nil, nil }}

func TestHTTPRequestIsSentAsShown(t *testing.T) {
	var got *http.Request
	var body []byte
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ = io.ReadAll(r.Body)
		got = r
		w.Header().Set("X-B", "2")
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{"id":1}`)
	}))
	defer srv.Close()
	b := newBench(t, direct)
	req := m{"method": "POST", "url": srv.URL + "/tickets?a=b", "headers": m{"content-type": "text/x"}, "body": "héllo"}
	p := b.mustPlan("http_request", req)
	wantText(t, p.Text, "POST "+srv.URL+"/tickets?a=b\n", "Content-Type: text/x\n", "User-Agent: pawl\n", "\n\nhéllo")
	s := p.Subject
	if p.Contract.Class != machine.ClassIrreversible || p.Contract.Sender != machine.SenderPawl || !s.Network || s.Method != "POST" ||
		s.Host != strings.TrimPrefix(srv.URL, "http://") || s.URL != srv.URL+"/tickets?a=b" || s.Sealed {
		t.Errorf("%+v %+v", p.Contract, s)
	}
	o := b.do("http_request", req)
	wantEnd(t, o, EndCompleted, "201")
	wantText(t, text(t, o), "HTTP/1.1 201 Created\n", "X-B: 2\n", "\n\n{\"id\":1}")
	if string(body) != "héllo" || got.Header.Get("Content-Type") != "text/x" || got.Header.Get("User-Agent") != "pawl" ||
		got.Header.Get("Accept-Encoding") != "" || got.URL.RawQuery != "a=b" {
		t.Errorf("%v %q", got, body)
	}
	if !o.Result.OK || o.Closed == nil {
		t.Errorf("%+v", o)
	}
}

func TestHTTPRefusals(t *testing.T) {
	b := newBench(t, direct)
	for _, c := range []struct {
		args m
		want string
	}{
		{m{"method": "GET", "url": "ftp://x/"}, "must begin with http"},
		{m{"method": "GET", "url": "/x"}, "must begin with http"},
		{m{"method": "GET", "url": "http:///x"}, "names no host"},
		{m{"method": "GET", "url": "http://u:p@x/"}, "credentials"},
		{m{"method": "GET", "url": "http://x/#f"}, "fragment"},
		{m{"method": "GET", "url": "http://x/\x7f"}, "cannot be read"},
		{m{"method": "GET", "url": "http://x/", "body": "x"}, "no body"},
		{m{"method": "POST", "url": "http://x/", "headers": m{"Host": "y"}}, "set by the connection"},
		{m{"method": "POST", "url": "http://x/", "headers": m{"a b": "y"}}, "no name of a header"},
		{m{"method": "POST", "url": "http://x/", "headers": m{"a": "x\r\nEvil: 1"}}, "cannot be sent"},
		{m{"method": "POST", "url": "http://x/", "headers": m{"A": "1", "a": "2"}}, "given twice"},
		{m{"method": "POST", "url": "http://x/", "key_header": "a b"}, "no name of a header"},
		{m{"method": "POST", "url": "http://x/", "key_header": "Key", "headers": m{"key": ""}}, "is empty"},
	} {
		wantText(t, b.refused("http_request", c.args), c.want)
	}
}

// raw serves connections by hand and counts those on which a request arrived.
func raw(t *testing.T, serve func(net.Conn)) (addr string, requests *atomic.Int32) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	requests = &atomic.Int32{}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer func() { _ = c.Close() }()
				buf := make([]byte, 64<<10)
				if n, _ := c.Read(buf); n > 0 {
					requests.Add(1)
				}
				serve(c)
			})
		}
	})
	t.Cleanup(func() { _ = l.Close(); wg.Wait() })
	return "http://" + l.Addr().String() + "/tickets", requests
}

func reset(c net.Conn) { _ = c.(*net.TCPConn).SetLinger(0); _ = c.Close() }

// A request without an answer is unknown, whatever broke, and it was sent once.
func TestHTTPLostAnswersAreUnknown(t *testing.T) {
	for name, c := range map[string]struct {
		serve func(net.Conn)
		cause string
	}{
		"reset":          {reset, "no answer came back"},
		"closed":         {func(net.Conn) {}, "no answer came back"},
		"half a status":  {func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 20") }, "no answer came back"},
		"half headers":   {func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 201 Created\r\nX: ") }, "no answer came back"},
		"no HTTP":        {func(c net.Conn) { _, _ = io.WriteString(c, "SSH-2.0-x\r\n\r\n") }, "no answer came back"},
		"endless header": {func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nX: "+strings.Repeat("x", 1<<20)) }, "no answer came back"},
		"bad gateway": {func(c net.Conn) {
			_, _ = io.WriteString(c, "HTTP/1.1 502 Bad Gateway\r\nContent-Length: 3\r\n\r\nwho")
		}, "502"},
	} {
		t.Run(name, func(t *testing.T) {
			u, n := raw(t, c.serve)
			for _, headers := range []m{nil, {"Idempotency-Key": "k"}, {"X-Idempotency-Key": "k"}} {
				n.Store(0)
				b := newBench(t, direct)
				o := b.do("http_request", m{"method": "POST", "url": u, "body": "x", "headers": headers})
				if o.End != EndAmbiguous || !strings.Contains(o.Cause, c.cause) || o.Closed == nil {
					t.Errorf("%+v", o)
				}
				if n.Load() != 1 {
					t.Errorf("the request arrived %d times", n.Load())
				}
			}
		})
	}
}

func TestHTTPTimeoutIsUnknownAndEndsTheConnection(t *testing.T) {
	gone := make(chan error, 1)
	u, n := raw(t, func(c net.Conn) {
		_, err := c.Read(make([]byte, 1)) // ends when the other side has cut the connection
		gone <- err
	})
	b := newBench(t, direct)
	before := b.env.Mono()
	o := b.do("http_request", m{"method": "DELETE", "url": u, "timeout_s": 1})
	if o.End != EndAmbiguous || !strings.Contains(o.Cause, "its time of 1s was over") {
		t.Errorf("%+v", o)
	}
	if o.Closed == nil || o.Closed.Mono <= before.Mono {
		t.Errorf("no instant of the closing: %+v", o.Closed)
	}
	if err := <-gone; err == nil {
		t.Error("the connection is still open")
	}
	if n.Load() != 1 {
		t.Errorf("%d requests", n.Load())
	}
}

// What never got a connection has not been sent, and that is proven.
func TestHTTPBeforeItsFirstByteIsRejected(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := "http://" + l.Addr().String()
	_ = l.Close()
	plainServer := httptest.NewServer(http.NotFoundHandler())
	defer plainServer.Close()
	tlsServer := httptest.NewUnstartedServer(http.NotFoundHandler())
	tlsServer.Config.ErrorLog = log.New(io.Discard, "", 0)
	tlsServer.TLS = &tls.Config{}
	tlsServer.StartTLS()
	defer tlsServer.Close()
	for _, c := range []struct{ name, url, code string }{
		{"refused", closed, "connection_refused"},
		{"no TLS there", strings.Replace(plainServer.URL, "http:", "https:", 1), CodeNotStarted},
		{"a certificate nobody vouches for", tlsServer.URL, "tls_certificate"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, direct)
			p := b.mustPlan("http_request", m{"method": "POST", "url": c.url, "body": "x"})
			call := b.call(p)
			call.Before = func() { t.Error("the first byte was announced") }
			o := b.set.Get("http_request").Run(t.Context(), b.env, call)
			wantEnd(t, o, EndRejected, c.code)
			wantText(t, text(t, o), "was not sent")
		})
	}
}

// A proxy that refuses the tunnel keeps every byte of the request from leaving.
func TestHTTPProxyRefusesTheTunnel(t *testing.T) {
	var methods []string
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		methods = append(methods, r.Method)
		http.Error(w, "no", http.StatusServiceUnavailable)
	}))
	defer proxy.Close()
	u, err := url.Parse(proxy.URL)
	if err != nil {
		t.Fatal(err)
	}
	b := newBench(t, Options{Proxy: func(*http.Request) (*url.URL, error) { return u, nil }})
	o := b.do("http_request", m{"method": "POST", "url": "https://example.org/x"})
	wantEnd(t, o, EndRejected, CodeNotStarted)
	// Without a tunnel the proxy has the request itself, and its word proves nothing.
	o = b.do("http_request", m{"method": "POST", "url": "http://example.org/x"})
	if o.End != EndAmbiguous || !strings.Contains(o.Cause, "503") {
		t.Errorf("%+v", o)
	}
	if got := strings.Join(methods, " "); got != "CONNECT POST" {
		t.Error(got)
	}
}

func TestHTTPLookWithoutAnswerIsAResult(t *testing.T) {
	u, n := raw(t, reset)
	b := newBench(t, direct)
	p := b.mustPlan("http_request", m{"method": "GET", "url": u})
	if p.Contract.Class != machine.ClassRead {
		t.Errorf("%+v", p.Contract)
	}
	o := b.do("http_request", m{"method": "GET", "url": u})
	wantEnd(t, o, EndCompleted, CodeNoAnswer)
	if n.Load() != 1 {
		t.Errorf("%d requests", n.Load())
	}
}

func TestHTTPStoppedByPawlIsUnknown(t *testing.T) {
	for _, method := range []string{"GET", "POST"} {
		ctx, stop := context.WithCancel(t.Context())
		u, _ := raw(t, func(c net.Conn) {
			stop()
			_, _ = c.Read(make([]byte, 1))
		})
		b := newBench(t, direct)
		p := b.mustPlan("http_request", m{"method": method, "url": u})
		o := b.set.Get("http_request").Run(ctx, b.env, b.call(p))
		if o.End != EndAmbiguous || !strings.Contains(o.Cause, "Pawl was told to stop") {
			t.Errorf("%s: %+v", method, o)
		}
	}
}

func TestHTTPFollowsNoRedirect(t *testing.T) {
	var hits atomic.Int32
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		hits.Add(1)
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
	}))
	defer srv.Close()
	for i, method := range []string{"GET", "POST"} {
		b := newBench(t, direct)
		o := b.do("http_request", m{"method": method, "url": srv.URL})
		wantEnd(t, o, EndCompleted, "307")
		wantText(t, text(t, o), "Location: /elsewhere")
		if int(hits.Load()) != i+1 {
			t.Errorf("%d requests", hits.Load())
		}
	}
}

// The status is the observed end; a body that breaks off does not unsay it.
func TestHTTPBodyCutShort(t *testing.T) {
	u, _ := raw(t, func(c net.Conn) {
		_, _ = io.WriteString(c, "HTTP/1.1 201 Created\r\nContent-Length: 100\r\n\r\nhalf")
	})
	b := newBench(t, direct)
	o := b.do("http_request", m{"method": "POST", "url": u})
	wantEnd(t, o, EndCompleted, "201")
	wantText(t, o.Result.Note, "cut short")
	wantText(t, text(t, o), "half")
}

func TestHTTPKeyIsTheEffectsOwn(t *testing.T) {
	var keys []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		keys = append(keys, r.Header.Get("Payment-Key"))
	}))
	defer srv.Close()
	b := newBench(t, direct)
	p := b.mustPlan("http_request", m{"method": "POST", "url": srv.URL, "key_header": "payment-key"})
	if p.Contract.Class != machine.ClassKeyed || p.Contract.KeyHorizon <= 0 {
		t.Errorf("%+v", p.Contract)
	}
	wantText(t, p.Text, "Payment-Key: (a key made from the effect's id)")
	tl := b.set.Get("http_request")
	c1, c2 := b.call(p), b.call(p)
	again := c1
	again.Attempt = 2
	given := b.call(b.mustPlan("http_request", m{"method": "POST", "url": srv.URL, "key_header": "Payment-Key", "headers": m{"payment-key": "mine"}}))
	if given.Contract.Key != "mine" {
		t.Errorf("%+v", given.Contract)
	}
	for _, c := range []Call{c1, c2, again, given} {
		wantEnd(t, tl.Run(t.Context(), b.env, c), EndCompleted, "200")
	}
	if keys[0] == "" || keys[0] == keys[1] || keys[0] != keys[2] || keys[0] != KeyFor(c1.Effect) || keys[3] != "mine" {
		t.Errorf("%q", keys)
	}
}

func TestHTTPHooksSurroundTheRequest(t *testing.T) {
	var order []string
	var mu sync.Mutex
	note := func(s string) { mu.Lock(); order = append(order, s); mu.Unlock() }
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { note("request") }))
	defer srv.Close()
	b := newBench(t, direct)
	c := b.call(b.mustPlan("http_request", m{"method": "POST", "url": srv.URL}))
	c.Before, c.After = func() { note("before") }, func() { note("after") }
	wantEnd(t, b.set.Get("http_request").Run(t.Context(), b.env, c), EndCompleted, "200")
	if got := strings.Join(order, " "); got != "before request after" {
		t.Error(got)
	}
}

func TestHTTPLargeBodyKeepsHeadAndTail(t *testing.T) {
	var all bytes.Buffer
	for i := range 3000 {
		fmt.Fprintf(&all, "line %d\n", i)
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(all.Bytes()) }))
	defer srv.Close()
	for _, limit := range []int{4096, all.Len() - 1, all.Len(), all.Len() + 1} {
		o := direct
		o.MaxBody = limit
		b := newBench(t, o)
		out := b.do("http_request", m{"method": "GET", "url": srv.URL})
		wantEnd(t, out, EndCompleted, "200")
		_, body, _ := strings.Cut(text(t, out), "\n\n")
		if limit >= all.Len() {
			if body != all.String() {
				t.Errorf("limit %d: not whole", limit)
			}
			continue
		}
		head, rest, ok := strings.Cut(body, "\n[… ")
		var missing int
		if _, err := fmt.Sscanf(rest, "%d byte", &missing); err != nil || !ok {
			t.Fatalf("limit %d: nothing is said to be left out: %v", limit, err)
		}
		_, tail, _ := strings.Cut(rest, " …]\n")
		if !strings.HasPrefix(all.String(), head) || !strings.HasSuffix(all.String(), tail) || len(head)+missing+len(tail) != all.Len() {
			t.Errorf("limit %d: %d + %d + %d of %d", limit, len(head), missing, len(tail), all.Len())
		}
	}
}
