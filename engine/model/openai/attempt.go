package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/ssestream"

	"pawl/engine/machine"
	"pawl/engine/model"
)

// attempt is one HTTP request and what became of it. Its fields are written
// before the request's goroutine returns to Complete, except sent, which the
// transport's goroutines set.
type attempt struct {
	p      *Provider
	req    model.Request
	parent context.Context
	ctx    context.Context
	cancel context.CancelCauseFunc
	idle   *watchdog
	sent   atomic.Bool
	id     string // x-request-id
}

func newAttempt(ctx context.Context, p *Provider, req model.Request) *attempt {
	a := &attempt{p: p, req: req, parent: ctx}
	a.ctx, a.cancel = context.WithCancelCause(ctx)
	a.ctx = httptrace.WithClientTrace(a.ctx, &httptrace.ClientTrace{
		WroteHeaders: func() { a.sent.Store(true) },
	})
	a.idle = newWatchdog(p.o.Idle, func() { a.cancel(errIdle) })
	return a
}

func (a *attempt) close() {
	a.idle.stop()
	a.cancel(nil)
}

// reply is an answer that is no stream of chunks.
type reply struct {
	fault    model.Fault
	location string
	page     bool // something that is no model server answered
}

func (r *reply) Error() string { return fmt.Sprintf("status %d: %s", r.fault.Status, r.fault.Text) }

// send lets exactly this one request out, and reads refusals itself: the SDK
// would lose the status of one that is not written in its own format.
func (a *attempt) send(r *http.Request, next option.MiddlewareNext) (*http.Response, error) {
	r.GetBody = nil
	r.Header.Del("Idempotency-Key")
	r.Header.Del("X-Idempotency-Key")
	res, err := next(r)
	if err != nil {
		return res, err
	}
	a.idle.kick()
	a.id = res.Header.Get("X-Request-Id")
	media := strings.ToLower(res.Header.Get("Content-Type"))
	if res.StatusCode == http.StatusOK && !strings.HasPrefix(media, "text/html") && !strings.HasPrefix(media, "application/json") {
		res.Body = &watched{ReadCloser: res.Body, idle: a.idle}
		return res, nil
	}
	body, _ := io.ReadAll(io.LimitReader(res.Body, 64<<10)) // what can be read of it is enough
	_ = res.Body.Close()
	out := &reply{fault: parseFault(body)}
	out.fault.Status = res.StatusCode
	out.fault.RetryAfter = model.RetryAfter(res.Header, a.p.o.Now())
	if res.StatusCode < 300 {
		out.page = out.fault.Code == "" && out.fault.Type == ""
	}
	if res.StatusCode >= 300 && res.StatusCode < 400 {
		out.location = res.Header.Get("Location")
	}
	return nil, out
}

// parseFault reads the error formats that are about.
func parseFault(body []byte) model.Fault {
	var f model.Fault
	var doc struct {
		Error   json.RawMessage `json:"error"`
		Message string          `json:"message"`
		Detail  json.RawMessage `json:"detail"`
		Code    any             `json:"code"`
		Type    string          `json:"type"`
	}
	if json.Unmarshal(body, &doc) != nil {
		var list []json.RawMessage // Gemini wraps it
		if json.Unmarshal(body, &list) == nil && len(list) > 0 {
			return parseFault(list[0])
		}
		if !bytes.HasPrefix(bytes.TrimSpace(body), []byte("<")) {
			f.Text = string(body)
		}
		return f
	}
	var inner struct {
		Message string `json:"message"`
		Code    any    `json:"code"`
		Type    string `json:"type"`
		Status  string `json:"status"`
	}
	var plain string
	switch {
	case json.Unmarshal(doc.Error, &plain) == nil:
		f.Text = plain
	case json.Unmarshal(doc.Error, &inner) == nil && len(doc.Error) > 0:
		f.Text, f.Type = inner.Message, inner.Type
		if f.Type == "" {
			f.Type = inner.Status
		}
		f.Code = word(inner.Code)
	default:
		f.Text, f.Type, f.Code = doc.Message, doc.Type, word(doc.Code)
		if f.Text == "" && len(doc.Detail) > 0 && json.Unmarshal(doc.Detail, &f.Text) != nil {
			f.Text = string(doc.Detail)
		}
	}
	return f
}

func word(v any) string {
	switch x := v.(type) {
	case string:
		return x
	case float64:
		return fmt.Sprintf("%.0f", x)
	}
	return ""
}

// finish judges a stream that ended without an error.
func (a *attempt) finish(c *collector) (model.Response, error) {
	if c.stop == "" {
		return model.Response{}, a.failed(io.ErrUnexpectedEOF, c)
	}
	r := c.response()
	r.RequestID = a.id
	if r.RequestID == "" {
		r.RequestID = c.id
	}
	r.Usage = a.usage(c)
	if strings.TrimSpace(r.Text) == "" && len(r.Calls) == 0 && r.Stop != machine.StopLength {
		return model.Response{}, &model.Error{
			Class: machine.FailEmpty, Sent: true, Usage: r.Usage,
			Message: fmt.Sprintf("%s gave an empty answer. %s", a.p.host, model.Advice(machine.FailEmpty)),
		}
	}
	return r, nil
}

func (a *attempt) usage(c *collector) machine.Usage {
	u := machine.Usage{}
	if c.usage != nil {
		u = *c.usage
	} else {
		var calls []model.RawCall
		for _, p := range c.calls {
			calls = append(calls, model.RawCall{Name: p.name, Args: p.args.String()})
		}
		u = model.Estimate(a.req, c.text.String(), calls)
	}
	return a.p.o.Limits.Charge(u)
}

// failed turns whatever ended the attempt into an error that says what, why
// and what next.
func (a *attempt) failed(err error, c *collector) error {
	out := &model.Error{Partial: c.text.String(), Sent: a.sent.Load(), Err: err}
	if c.usage != nil {
		out.Usage = a.p.o.Limits.Charge(*c.usage)
	}
	var r *reply
	var in *ssestream.StreamError
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &r):
		a.refused(out, r)
	case a.parent.Err() != nil:
		out.Class, out.Err = machine.FailLost, a.parent.Err()
		out.Message = fmt.Sprintf("The answer of %s was not waited for: the request was stopped here.", a.p.host)
	case errors.As(err, &in):
		f := parseFault(in.Event.Data)
		out.Class, out.Sent = model.Classify(f), true
		out.Message = fmt.Sprintf("%s broke its answer off: %s. %s", a.p.host, a.say(f.Text), model.Advice(out.Class))
	case context.Cause(a.ctx) == errIdle && c.pieces == 0:
		out.Class = machine.FailNetwork
		out.Message = fmt.Sprintf("%s gave no answer within %v. %s", a.p.host, a.p.o.Idle, model.Advice(out.Class))
	case context.Cause(a.ctx) == errIdle:
		out.Class = machine.FailCut
		out.Message = fmt.Sprintf("%s fell silent within its answer, for %v. %s", a.p.host, a.p.o.Idle, model.Advice(out.Class))
	case errors.As(err, &syntax):
		out.Class = machine.FailCut
		out.Message = fmt.Sprintf("%s sent a piece of an answer that cannot be read (%v); nothing of it is used. %s", a.p.host, syntax, model.Advice(out.Class))
	case !out.Sent:
		out.Class = machine.FailNetwork
		out.Message = fmt.Sprintf("%s could not be reached: %s. Nothing was sent. %s", a.p.host, a.say(err.Error()), model.Advice(out.Class))
	case c.pieces == 0 && !errors.Is(err, io.ErrUnexpectedEOF):
		out.Class = machine.FailNetwork
		out.Message = fmt.Sprintf("The connection to %s broke before an answer came: %s. %s", a.p.host, a.say(err.Error()), model.Advice(out.Class))
	default:
		out.Class = machine.FailCut
		out.Message = fmt.Sprintf("The answer of %s ended without its stop reason; nothing of it is used. %s", a.p.host, model.Advice(out.Class))
	}
	return out
}

func (a *attempt) refused(out *model.Error, r *reply) {
	f := r.fault
	out.Status, out.Sent, out.RetryAfter = f.Status, true, f.RetryAfter
	out.Class = model.Classify(f)
	said := ""
	if t := a.say(f.Text); t != "" {
		said = ": " + t
	}
	switch {
	case r.page:
		out.Class = machine.FailBadRequest
		out.Message = fmt.Sprintf("What answers at %s is no model server that streams: it sent a page or a plain document. Check the base URL (%s), then resume the run.", a.p.host, a.say(a.p.o.BaseURL))
		return
	case r.location != "":
		out.Message = fmt.Sprintf("%s redirects to %s, which is not followed. Set the base URL to that address, then resume the run.", a.p.host, a.say(r.location))
		return
	case out.Class == machine.FailAuth && a.p.o.Key == "":
		said += ". No key is set"
	case out.Class == machine.FailNotFound:
		said += fmt.Sprintf(". Asked was for the model %q at %s", a.req.Model, a.say(a.p.o.BaseURL))
	}
	out.Message = fmt.Sprintf("%s refused the request with status %d (%s)%s. %s", a.p.host, f.Status, out.Class, strings.TrimSuffix(said, "."), model.Advice(out.Class))
}

// say makes a foreign text fit for a message: one line, bounded, without
// control characters and without the key.
func (a *attempt) say(s string) string {
	if k := a.p.o.Key; len(k) >= 8 {
		s = strings.ReplaceAll(s, k, "(key)")
	}
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.In(r, unicode.Cf) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
	s = strings.Join(strings.Fields(s), " ")
	const most = 400
	if len(s) > most {
		n := most
		for !utf8.RuneStart(s[n]) {
			n--
		}
		s = s[:n] + "…"
	}
	return s
}

// watchdog calls bark once nothing has kicked it for a while.
type watchdog struct {
	mu    sync.Mutex
	after time.Duration
	timer *time.Timer
}

func newWatchdog(after time.Duration, bark func()) *watchdog {
	return &watchdog{after: after, timer: time.AfterFunc(after, bark)}
}

func (w *watchdog) kick() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timer.Stop() { // else it has barked, or stopped for good
		w.timer.Reset(w.after)
	}
}

func (w *watchdog) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer.Stop()
}

// watched kicks the watchdog with every piece that arrives.
type watched struct {
	io.ReadCloser
	idle *watchdog
}

func (w *watched) Read(b []byte) (int, error) {
	n, err := w.ReadCloser.Read(b)
	if n > 0 {
		w.idle.kick()
	}
	return n, err
}
