package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/textproto"
	"net/url"
	"sort"
	"strings"
	"time"

	"pawl/engine/effect"
	"pawl/engine/machine"
	"pawl/engine/policy"
)

var httpRequestSpec = Spec{
	Name:    "http_request",
	Version: 1,
	Description: "Send one HTTP request and get status, headers and body. It is sent once: no retry, no redirect is followed (the answer shows " +
		"where it leads). GET, HEAD and OPTIONS only look; other methods change the world, and the operator may have to agree. If the service " +
		"knows idempotency keys, name its header in key_header and Pawl supplies the key, so that a lost answer can be asked for again safely. " +
		"A result may be unknown: then the request may or may not have been carried out; do not repeat it or do the same another way.",
	Schema: schema(`{
  "type": "object",
  "properties": {
    "method": {"enum": ["GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"]},
    "url": {"type": "string", "minLength": 1, "maxLength": 8192, "description": "absolute http or https URL"},
    "headers": {"type": "object", "maxProperties": 50, "additionalProperties": {"type": "string", "maxLength": 8192}, "description": "request headers"},
    "body": {"type": "string", "description": "request body, sent as it is"},
    "key_header": {"type": "string", "minLength": 1, "maxLength": 100, "description": "header in which the service takes an idempotency key"},
    "timeout_s": {"type": "integer", "minimum": 1, "maximum": 600, "description": "seconds to wait for the whole answer; default 60"}
  },
  "required": ["method", "url"],
  "additionalProperties": false
}`),
}

type httpRequest struct{ o Options }

type httpArgs struct {
	Method    string            `json:"method"`
	URL       string            `json:"url"`
	Headers   map[string]string `json:"headers"`
	Body      *string           `json:"body"`
	KeyHeader string            `json:"key_header"`
	Timeout   int               `json:"timeout_s"`
}

func (a httpArgs) timeout() time.Duration {
	if a.Timeout == 0 {
		return time.Minute
	}
	return min(time.Duration(a.Timeout)*time.Second, 10*time.Minute)
}

func (a httpArgs) safe() bool {
	return a.Method == http.MethodGet || a.Method == http.MethodHead || a.Method == http.MethodOptions
}

// key is the value of the key header that the model gave itself, if it did.
func (a httpArgs) key() string {
	for k, v := range a.Headers {
		if a.KeyHeader != "" && strings.EqualFold(k, a.KeyHeader) {
			return v
		}
	}
	return ""
}

// KeyFor derives the idempotency key of an effect. It is the same for every
// attempt, in every process, and for no other effect.
func KeyFor(e machine.EffectID) string {
	return "pawl-" + machine.DigestOf([]byte("key\x00" + string(e))).String()[:32]
}

func (*httpRequest) Spec() Spec { return httpRequestSpec }

// target reads and judges the URL.
func (a httpArgs) target() (*url.URL, error) {
	u, err := url.Parse(a.URL)
	switch {
	case err != nil:
		return nil, argErrorf("The url %s cannot be read: %v.", quoteShort(a.URL), urlCause(err))
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, argErrorf("The url %s must begin with http:// or https://.", quoteShort(a.URL))
	case u.Hostname() == "":
		return nil, argErrorf("The url %s names no host.", quoteShort(a.URL))
	case u.User != nil:
		return nil, argErrorf("The url holds a user name or password; send credentials in a header.")
	case u.Fragment != "":
		return nil, argErrorf("The url holds a fragment (#…), which is never sent; leave it out.")
	}
	return u, nil
}

func urlCause(err error) error {
	if ue, ok := err.(*url.Error); ok {
		return ue.Err
	}
	return err
}

// hostPort is where the request goes, port always given.
func hostPort(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}

// checkHeaders refuses headers that cannot be sent as given, or that are the
// connection's own business.
func (a httpArgs) checkHeaders() error {
	seen := map[string]string{}
	for k, v := range a.Headers {
		c := textproto.CanonicalMIMEHeaderKey(k)
		switch {
		case !validHeaderName(k):
			return argErrorf("%s is no name of a header.", quoteShort(k))
		case !validHeaderValue(v):
			return argErrorf("The value of the header %s holds a character that cannot be sent.", quoteShort(k))
		case seen[c] != "":
			return argErrorf("The header %s is given twice.", quoteShort(k))
		}
		seen[c] = k
		switch c {
		case "Host", "Content-Length", "Transfer-Encoding", "Connection", "Keep-Alive", "Proxy-Connection", "Upgrade", "Te", "Trailer",
			"Proxy-Authorization", "Expect":
			return argErrorf("The header %s is set by the connection itself; leave it out.", quoteShort(k))
		}
	}
	if a.KeyHeader != "" {
		if !validHeaderName(a.KeyHeader) {
			return argErrorf("%s in key_header is no name of a header.", quoteShort(a.KeyHeader))
		}
		if seen[textproto.CanonicalMIMEHeaderKey(a.KeyHeader)] != "" && a.key() == "" {
			return argErrorf("The header %s named by key_header is empty; leave it out of headers and Pawl supplies the key.", quoteShort(a.KeyHeader))
		}
	}
	if a.Body != nil && (a.Method == http.MethodGet || a.Method == http.MethodHead) {
		return argErrorf("A %s request has no body; leave it out.", a.Method)
	}
	return nil
}

// Plan shows the whole request.
func (h *httpRequest) Plan(_ context.Context, _ Env, args json.RawMessage) (Plan, error) {
	a, err := decode[httpArgs](args)
	if err != nil {
		return Plan{}, err
	}
	u, err := a.target()
	if err != nil {
		return Plan{}, err
	}
	if err := a.checkHeaders(); err != nil {
		return Plan{}, err
	}
	c, note, err := h.o.httpContract(a, u)
	if err != nil {
		return Plan{}, err
	}
	secrets, err := h.o.secretsIn(a.texts()...)
	if err != nil {
		return Plan{}, err
	}
	c.BeforeEffect = withNotStarted(c.BeforeEffect)
	a = a.withKeyHeader(c)
	text := h.o.requestText(a, u)
	if note != "" {
		text += "\n\n" + note
	}
	return Plan{
		Contract: c,
		Summary:  a.Method + " " + clip(a.URL, 110),
		Target:   a.URL,
		Text:     text,
		Subject: policy.Subject{
			Tool: httpRequestSpec.Name, Network: true, Method: a.Method, Host: hostPort(u), URL: a.URL, Class: c.Class, Secrets: secrets,
		},
		Args: args,
	}, nil
}

// requestText writes the request out as it will be sent, for the card.
func (o Options) requestText(a httpArgs, u *url.URL) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s\n", a.Method, u.String())
	hdr := map[string]string{"User-Agent": o.UserAgent}
	for k, v := range a.Headers {
		hdr[textproto.CanonicalMIMEHeaderKey(k)] = v
	}
	if a.KeyHeader != "" && a.key() == "" {
		hdr[textproto.CanonicalMIMEHeaderKey(a.KeyHeader)] = "(a key made from the effect's id)"
	}
	names := make([]string, 0, len(hdr))
	for k := range hdr {
		names = append(names, k)
	}
	sort.Strings(names)
	for _, k := range names {
		fmt.Fprintf(&b, "%s: %s\n", k, hdr[k])
	}
	if a.Body != nil {
		b.WriteString("\n" + *a.Body)
	}
	return b.String()
}

// Measure looks before the dispatch where a declared probe needs it.
func (h *httpRequest) Measure(ctx context.Context, env Env, c machine.Contract, _ json.RawMessage) (Measured, error) {
	params, err := effect.Measure(ctx, recipePlace(h.o, env), c)
	if err != nil {
		return Measured{}, fmt.Errorf("measure %s: %w", c.Name, err)
	}
	return Measured{Params: params}, nil
}

// Run sends the request once.
func (h *httpRequest) Run(ctx context.Context, env Env, c Call) Outcome {
	a, err := decode[httpArgs](c.Args)
	if err != nil {
		return badArgs(err)
	}
	a = a.withKeyHeader(c.Contract)
	u, err := a.target()
	if err != nil {
		return badArgs(err)
	}
	if err := a.checkHeaders(); err != nil {
		return badArgs(err)
	}
	if a, err = h.o.filled(a); err != nil {
		return notStarted(fmt.Sprintf("The request was not sent: %v.", err))
	}
	if err := a.checkHeaders(); err != nil {
		return notStarted("The request was not sent: a secret holds a character that no header can.")
	}
	hdr := http.Header{"User-Agent": {h.o.UserAgent}}
	for k, v := range a.Headers {
		hdr.Set(k, v)
	}
	if a.KeyHeader != "" && a.key() == "" {
		key := c.Contract.Key
		if key == "" {
			key = KeyFor(c.Effect)
		}
		hdr.Set(a.KeyHeader, key)
	}
	return h.o.send(ctx, env, c, exchange{
		method: a.Method, url: u, header: hdr, body: a.Body, timeout: a.timeout(), safe: a.safe(),
	})
}

// validHeaderName reports whether s is a token as HTTP defines one.
func validHeaderName(s string) bool {
	for _, r := range s {
		alnum := r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !alnum && !strings.ContainsRune("!#$%&'*+-.^_`|~", r) {
			return false
		}
	}
	return s != ""
}

// validHeaderValue reports whether s can be sent without breaking the message
// apart: no control character but the tab.
func validHeaderValue(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f })
}
