// Package wire is what providers over HTTP have in common: exactly one request
// for one attempt, a watch over its silence, and what became of it in words.
//
// It knows no provider's format. It never repeats a request, and neither does
// anything below it: what net/http and the SDKs would send again by themselves
// is switched off here.
package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"time"

	"pawl/engine/machine"
	"pawl/engine/model"
)

// Peer is whom an attempt asks.
type Peer struct {
	Host    string // for messages
	BaseURL string
	Key     string // never shown
	// IDHeader is the header with the provider's id of a request.
	IDHeader string
	Idle     time.Duration // silence before and within an answer that ends an attempt
	Now      func() time.Time
	Limits   model.Limits
}

// Attempt is one HTTP request and what became of it. Its fields are written
// before the request's goroutine returns, except sent, which the transport's
// goroutines set.
type Attempt struct {
	p      *Peer
	req    model.Request
	parent context.Context
	ctx    context.Context
	cancel context.CancelCauseFunc
	idle   *watchdog
	sent   atomic.Bool
	id     string
}

// errIdle is the cause of an attempt that ended because nothing came.
var errIdle = errors.New("nothing came")

// Begin begins an attempt; Close ends it.
func Begin(ctx context.Context, p *Peer, req model.Request) *Attempt {
	a := &Attempt{p: p, req: req, parent: ctx}
	a.ctx, a.cancel = context.WithCancelCause(ctx)
	a.ctx = httptrace.WithClientTrace(a.ctx, &httptrace.ClientTrace{
		WroteHeaders: func() { a.sent.Store(true) },
	})
	a.idle = newWatchdog(p.Idle, func() { a.cancel(errIdle) })
	return a
}

// Context is what the request must be made with.
func (a *Attempt) Context() context.Context { return a.ctx }

// RequestID is the provider's id of the request, "" if it told none.
func (a *Attempt) RequestID() string { return a.id }

// Close releases what the attempt holds.
func (a *Attempt) Close() {
	a.idle.stop()
	a.cancel(nil)
}

// ClientID names a request in the provider's logs. It is no idempotency key:
// under that name net/http itself would send the request again.
func ClientID(req model.Request) string {
	return fmt.Sprintf("%s-t%d-a%d", req.Run, req.Turn, max(req.Attempt, 1))
}

// reply is an answer that is no stream of chunks.
type reply struct {
	fault    model.Fault
	location string
	page     bool // something that is no model server answered
}

func (r *reply) Error() string { return fmt.Sprintf("status %d: %s", r.fault.Status, r.fault.Text) }

// Send lets exactly this one request out, and reads refusals itself: the SDK
// would lose the status of one that is not written in its own format.
func (a *Attempt) Send(r *http.Request, next func(*http.Request) (*http.Response, error)) (*http.Response, error) {
	r.GetBody = nil
	r.Header.Del("Idempotency-Key")
	r.Header.Del("X-Idempotency-Key")
	res, err := next(r)
	if err != nil {
		return res, err
	}
	a.idle.kick()
	a.id = res.Header.Get(a.p.IDHeader)
	media := strings.ToLower(res.Header.Get("Content-Type"))
	if res.StatusCode == http.StatusOK && !strings.HasPrefix(media, "text/html") && !strings.HasPrefix(media, "application/json") {
		res.Body = &watched{ReadCloser: res.Body, idle: a.idle}
		return res, nil
	}
	body, _ := io.ReadAll(io.LimitReader(res.Body, 64<<10)) // what can be read of it is enough
	_ = res.Body.Close()
	out := &reply{fault: ParseFault(body)}
	out.fault.Status = res.StatusCode
	out.fault.RetryAfter = model.RetryAfter(res.Header, a.p.Now())
	if res.StatusCode < 300 {
		out.page = out.fault.Code == "" && out.fault.Type == ""
	}
	if res.StatusCode >= 300 && res.StatusCode < 400 {
		out.location = res.Header.Get("Location")
	}
	return nil, out
}

// Heard is what had arrived of an answer when it ended.
type Heard struct {
	Text   string
	Pieces int            // events of the stream
	Usage  *machine.Usage // nil: the provider told none
	Event  []byte         // an event of the stream that says what went wrong; nil: there was none
}

// Usage charges what the provider told, or guesses where it told nothing.
func (a *Attempt) Usage(told *machine.Usage, text string, calls []model.RawCall) machine.Usage {
	if told != nil {
		return a.p.Limits.Charge(*told)
	}
	return a.p.Limits.Charge(model.Estimate(a.req, text, calls))
}

// Empty is the error of a whole answer that says nothing and calls nothing.
func (a *Attempt) Empty(u machine.Usage, why string) error {
	return &model.Error{
		Class: machine.FailEmpty, Sent: true, Usage: u,
		Message: fmt.Sprintf("%s gave %s. %s", a.p.Host, why, model.Advice(machine.FailEmpty)),
	}
}

// Failed turns whatever ended the attempt into an error that says what, why
// and what next.
func (a *Attempt) Failed(err error, h Heard) error {
	out := &model.Error{Partial: h.Text, Sent: a.sent.Load(), Err: err}
	if h.Usage != nil {
		out.Usage = a.p.Limits.Charge(*h.Usage)
	}
	var r *reply
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &r):
		a.refused(out, r)
	case a.parent.Err() != nil:
		out.Class, out.Err = machine.FailLost, a.parent.Err()
		out.Message = fmt.Sprintf("The answer of %s was not waited for: the request was stopped here.", a.p.Host)
	case h.Event != nil:
		f := ParseFault(h.Event)
		out.Class, out.Sent = model.Classify(f), true
		out.Message = fmt.Sprintf("%s broke its answer off: %s. %s", a.p.Host, a.say(f.Text), model.Advice(out.Class))
	case context.Cause(a.ctx) == errIdle && h.Pieces == 0:
		out.Class = machine.FailNetwork
		out.Message = fmt.Sprintf("%s gave no answer within %v. %s", a.p.Host, a.p.Idle, model.Advice(out.Class))
	case context.Cause(a.ctx) == errIdle:
		out.Class = machine.FailCut
		out.Message = fmt.Sprintf("%s fell silent within its answer, for %v. %s", a.p.Host, a.p.Idle, model.Advice(out.Class))
	case errors.As(err, &syntax):
		out.Class = machine.FailCut
		out.Message = fmt.Sprintf("%s sent a piece of an answer that cannot be read (%v); nothing of it is used. %s", a.p.Host, syntax, model.Advice(out.Class))
	case !out.Sent:
		out.Class = machine.FailNetwork
		out.Message = fmt.Sprintf("%s could not be reached: %s. Nothing was sent. %s", a.p.Host, a.say(err.Error()), model.Advice(out.Class))
	case h.Pieces == 0 && !errors.Is(err, io.ErrUnexpectedEOF):
		out.Class = machine.FailNetwork
		out.Message = fmt.Sprintf("The connection to %s broke before an answer came: %s. %s", a.p.Host, a.say(err.Error()), model.Advice(out.Class))
	default:
		out.Class = machine.FailCut
		out.Message = fmt.Sprintf("The answer of %s ended without its stop reason; nothing of it is used. %s", a.p.Host, model.Advice(out.Class))
	}
	return out
}

func (a *Attempt) refused(out *model.Error, r *reply) {
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
		out.Message = fmt.Sprintf("What answers at %s is no model server that streams: it sent a page or a plain document. Check the base URL (%s), then resume the run.", a.p.Host, a.say(a.p.BaseURL))
		return
	case r.location != "":
		out.Message = fmt.Sprintf("%s redirects to %s, which is not followed. Set the base URL to that address, then resume the run.", a.p.Host, a.say(r.location))
		return
	case out.Class == machine.FailAuth && a.p.Key == "":
		said += ". No key is set"
	case out.Class == machine.FailNotFound:
		said += fmt.Sprintf(". Asked was for the model %q at %s", a.req.Model, a.say(a.p.BaseURL))
	}
	out.Message = fmt.Sprintf("%s refused the request with status %d (%s)%s. %s", a.p.Host, f.Status, out.Class, strings.TrimSuffix(said, "."), model.Advice(out.Class))
}
