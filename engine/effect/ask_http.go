package effect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"pawl/engine/machine"
)

// secret is a variable of the environment in a header's template.
var secret = regexp.MustCompile(`\$\{env:([A-Za-z_][A-Za-z0-9_]*)\}`)

// askHTTP sends one GET: one attempt on a connection of its own, no redirect
// followed, no cookie, a bounded body.
func (p Place) askHTTP(ctx context.Context, probe *machine.Probe, limit time.Duration) Finding {
	shown := HideCredentials(probe.URL)
	what := "GET " + clipText(shown, 120)
	ctx, stop := context.WithTimeout(ctx, limit)
	defer stop()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, probe.URL, nil)
	if err != nil {
		return inconclusive("the look was not taken: its URL cannot be used")
	}
	req.Header.Set("User-Agent", "pawl")
	for name, v := range probe.Header {
		filled, missing := p.secrets(v)
		if missing != "" {
			return inconclusive(fmt.Sprintf("the look was not taken: the variable %s, which its header %s needs, is not set", missing, name))
		}
		req.Header.Set(name, filled)
	}
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	tr := &http.Transport{
		Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true, Protocols: &protocols, MaxResponseHeaderBytes: 256 << 10,
	}
	defer tr.CloseIdleConnections()
	resp, err := tr.RoundTrip(req)
	if err != nil {
		return inconclusive(what + " " + noAnswer(err, limit))
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxSaid+1))
	code := strconv.Itoa(resp.StatusCode)
	switch {
	case len(body) > maxSaid:
		return inconclusive(fmt.Sprintf("%s answered with more than %d KiB", what, maxSaid>>10))
	case err != nil:
		return inconclusive(what + " was answered in part only: " + noAnswer(err, limit))
	}
	f := judge(probe.Answers, what, code, string(body))
	if f.Verdict == machine.VerdictInconclusive && (resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden) {
		f.Text = what + " wants a login that is not at hand here (" + code + ")"
	}
	f.Detail = hideInText(detail("GET "+shown, resp.Status, string(body)))
	return f
}

// secrets fills in what is kept out of the record.
func (p Place) secrets(template string) (filled, missing string) {
	filled = secret.ReplaceAllStringFunc(template, func(s string) string {
		name := secret.FindStringSubmatch(s)[1]
		for _, kv := range p.environOrOwn() {
			if v, ok := strings.CutPrefix(kv, name+"="); ok && v != "" {
				return v
			}
		}
		missing = name
		return ""
	})
	return filled, missing
}

func noAnswer(err error, limit time.Duration) string {
	var ue *url.Error
	if errors.As(err, &ue) {
		err = ue.Err
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Sprintf("did not answer within %v", limit)
	}
	return "gave no answer: " + hideInText(err.Error())
}
