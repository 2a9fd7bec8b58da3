package tool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"pawl/engine/effect"
	"pawl/engine/machine"
)

// exchange is one request to send.
type exchange struct {
	method  string
	url     *url.URL
	header  http.Header
	body    *string
	timeout time.Duration
	safe    bool
}

// wire is the one connection of a request, and how far the request has come.
// It may be touched by the transport's goroutines, hence the lock.
type wire struct {
	mu    sync.Mutex
	conns []net.Conn
	// handed: the connection, secured if need be, was given to the request.
	// Before it no byte of the request has left, afterwards nobody can know.
	handed atomic.Bool
}

// dial connects and keeps the connection, so that it can be cut for certain.
func (w *wire) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, network, addr)
	if err == nil {
		w.mu.Lock()
		w.conns = append(w.conns, c)
		w.mu.Unlock()
	}
	return c, err
}

// cut closes what was connected. Without linger unsent bytes are thrown away
// too, so that after it this side puts nothing more into the world.
func (w *wire) cut(abort bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.conns {
		if t, ok := c.(*net.TCPConn); ok && abort {
			_ = t.SetLinger(0)
		}
		_ = c.Close()
	}
}

// send makes exactly one attempt. The connection is new and never used again,
// HTTP/1.1 only, and the body cannot be read twice: each of these alone would
// keep the transport from repeating the request by itself.
func (o Options) send(ctx context.Context, env Env, c Call, x exchange) Outcome {
	ctx, stop := context.WithTimeout(ctx, x.timeout)
	defer stop()
	w := &wire{}
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	tr := &http.Transport{
		Proxy:                  o.Proxy,
		DialContext:            w.dial,
		DisableKeepAlives:      true,
		DisableCompression:     true,
		Protocols:              &protocols,
		MaxResponseHeaderBytes: 256 << 10,
	}
	defer tr.CloseIdleConnections()
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) {
			if c.Before != nil {
				c.Before()
			}
			w.handed.Store(true)
		},
	})
	req, err := x.request(ctx)
	if err != nil {
		return notStarted(fmt.Sprintf("The request was not sent: %v.", urlCause(err)))
	}
	resp, err := tr.RoundTrip(req) // the transport itself: no redirects, no cookies
	if err != nil {
		w.cut(true)
		return o.failed(env, c, w, x, err)
	}
	body, cutShort := readBody(resp.Body, o.MaxBody)
	_ = resp.Body.Close()
	w.cut(cutShort != nil)
	if c.After != nil {
		c.After()
	}
	return answered(env, c, x, resp, body, cutShort)
}

func (x exchange) request(ctx context.Context) (*http.Request, error) {
	var body io.Reader
	if x.body != nil {
		body = strings.NewReader(*x.body)
	}
	req, err := http.NewRequestWithContext(ctx, x.method, x.url.String(), body)
	if err != nil {
		return nil, err
	}
	req.GetBody = nil
	req.Header = x.header
	return req, nil
}

// failed is a request without an answer: refused before its first byte, or
// unknown.
func (o Options) failed(env Env, c Call, w *wire, x exchange, err error) Outcome {
	at := closedAt(env)
	if !w.handed.Load() {
		code, _ := effect.HTTPError(err)
		out := notStarted(fmt.Sprintf("%s %s was not sent: %s.", x.method, hostPort(x.url), connectText(err)))
		out.Closed = at
		// What the contract does not list by name is proven here all the same:
		// no connection was handed to the request.
		if code != "" && slices.Contains(c.Contract.BeforeEffect, code) {
			out.Code, out.Result.Code = code, code
		}
		return out
	}
	if x.safe && !errors.Is(err, context.Canceled) {
		// It only looked: that no answer came is the answer.
		out := done(false, CodeNoAnswer, upper(lostText(x, err))+".")
		out.Closed = at
		return out
	}
	return Outcome{End: EndAmbiguous, Cause: lostText(x, err), Closed: at}
}

func closedAt(env Env) *machine.Instant {
	if env.Mono == nil {
		return nil
	}
	at := env.Mono()
	return &at
}

func connectText(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "no connection within its time"
	}
	return urlCause(err).Error()
}

func lostText(x exchange, err error) string {
	what := fmt.Sprintf("%s %s was sent and no answer came back: ", x.method, hostPort(x.url))
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return what + fmt.Sprintf("its time of %s was over", x.timeout)
	case errors.Is(err, context.Canceled):
		return what + "Pawl was told to stop"
	}
	return what + urlCause(err).Error()
}

// answered is a request whose status arrived. A body that was cut afterwards
// does not unsay the status.
func answered(env Env, c Call, x exchange, resp *http.Response, body []byte, cutShort error) Outcome {
	code := strconv.Itoa(resp.StatusCode)
	text := answerText(resp, body)
	out := Outcome{Output: Content{Bytes: text}, Closed: closedAt(env)}
	if slices.Contains(c.Contract.ProvesNothing, code) {
		out.Cause = fmt.Sprintf("%s %s was answered with %s, which says nothing about whether it was carried out",
			x.method, hostPort(x.url), resp.Status)
		return out
	}
	// An answer, whatever it says, is an observed end.
	out.End = EndCompleted
	out.Result = machine.Result{OK: resp.StatusCode < 400, Code: code}
	if cutShort != nil {
		out.Result.Note = fmt.Sprintf("the answer's body was cut short: %v", urlCause(cutShort))
	}
	return out
}

// answerText shows an answer: status, headers, body.
func answerText(resp *http.Response, body []byte) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s\n", resp.Proto, visible([]byte(resp.Status)))
	names := make([]string, 0, len(resp.Header))
	for k := range resp.Header {
		names = append(names, k)
	}
	sort.Strings(names)
	for _, k := range names {
		for _, v := range resp.Header[k] {
			fmt.Fprintf(&b, "%s: %s\n", k, v)
		}
	}
	b.WriteByte('\n')
	b.Write(body)
	return b.Bytes()
}

// readBody reads a body to its end but keeps at most limit bytes of it: the
// first three quarters and the last one, with a line between them that says how
// much is missing. The error says that the body did not come to its end.
func readBody(r io.Reader, limit int) ([]byte, error) {
	head, err := io.ReadAll(io.LimitReader(r, int64(limit)))
	if err != nil || len(head) < limit {
		return head, err
	}
	keep := limit - limit*3/4
	ring := newRing(keep)
	n, err := io.Copy(ring, r)
	if n == 0 {
		return head, err
	}
	// What was read beyond the head pushes its last quarter out of the tail.
	all := append(head[limit*3/4:], ring.bytes()...)
	tail := all[max(0, len(all)-keep):]
	missing := int64(limit) + n - int64(limit*3/4) - int64(len(tail))
	mark := fmt.Sprintf("\n[… %s left out …]\n", count(missing, "byte"))
	out := append(append(slices.Clone(head[:limit*3/4]), mark...), tail...)
	return out, err
}

// ring keeps the last n bytes written to it.
type ring struct {
	buf  []byte
	next int
	full bool
}

func newRing(n int) *ring { return &ring{buf: make([]byte, max(1, n))} }

func (r *ring) Write(p []byte) (int, error) {
	n := len(p)
	if len(p) >= len(r.buf) {
		copy(r.buf, p[len(p)-len(r.buf):])
		r.next, r.full = 0, true
		return n, nil
	}
	for len(p) > 0 {
		m := copy(r.buf[r.next:], p)
		p = p[m:]
		r.next += m
		if r.next == len(r.buf) {
			r.next, r.full = 0, true
		}
	}
	return n, nil
}

func (r *ring) bytes() []byte {
	if !r.full {
		return r.buf[:r.next]
	}
	return append(slices.Clone(r.buf[r.next:]), r.buf[:r.next]...)
}
