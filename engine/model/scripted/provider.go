package scripted

import (
	"context"
	"fmt"
	"time"
	"unicode/utf8"

	"pawl/engine/machine"
	"pawl/engine/model"
	"pawl/engine/window"
)

// Provider answers from one script.
type Provider struct {
	script *Script
	// sleep waits for the pace of a step; injected by tests.
	sleep func(ctx context.Context, d time.Duration) error
}

// New returns the model that plays s.
func New(s *Script) *Provider { return &Provider{script: s, sleep: sleep} }

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Complete answers a request from the script.
func (p *Provider) Complete(ctx context.Context, req model.Request, live func(string)) (model.Response, error) {
	if err := ctx.Err(); err != nil {
		return model.Response{}, stopped(err, "", false)
	}
	r, err := p.script.Play(req)
	if err != nil {
		return model.Response{}, err
	}
	usage := p.usage(req, r)
	if r.Fail != "" && r.FailAt == FailAtStart {
		return model.Response{}, p.failure(r, "", machine.Usage{Cost: r.Cost})
	}
	text := r.Text
	if r.Fail != "" && r.FailAt == FailAtText {
		text = Half(text)
	}
	seen := 0
	for _, piece := range Pieces(text) {
		if r.Delay > 0 {
			if err := p.sleep(ctx, r.Delay); err != nil {
				return model.Response{}, stopped(err, text[:seen], true)
			}
		}
		seen += len(piece)
		if live != nil {
			live(piece)
		}
	}
	if r.Delay > 0 { // calls and the stop reason take their time, too
		if err := p.sleep(ctx, r.Delay); err != nil {
			return model.Response{}, stopped(err, text, true)
		}
	}
	if r.Fail != "" {
		return model.Response{}, p.failure(r, text, usage)
	}
	return model.Response{Text: r.Text, Calls: r.Calls, Stop: r.Stop, Usage: usage, RequestID: r.Place}, nil
}

// usage counts as a real model would be counted; a script is free unless it
// says otherwise.
func (p *Provider) usage(req model.Request, r Reply) machine.Usage {
	u := machine.Usage{Input: int64(req.Tokens), Cost: r.Cost, Estimated: true}
	if req.Tokens == 0 {
		u.Input = int64(model.RequestTokens(req))
	}
	u.Output = int64(window.Tokens(r.Text))
	for _, c := range r.Calls {
		u.Output += int64(window.Tokens(c.Name) + window.Tokens(c.Args))
	}
	return u
}

func (p *Provider) failure(r Reply, partial string, u machine.Usage) error {
	return &model.Error{
		Class:      r.Fail,
		Message:    fmt.Sprintf("%s, step %d plays the failure %q. %s", p.script, r.Step, r.Fail, model.Advice(r.Fail)),
		RetryAfter: r.RetryAfter,
		Partial:    partial,
		Sent:       true,
		Usage:      u,
	}
}

func stopped(err error, partial string, sent bool) error {
	return &model.Error{
		Class: machine.FailLost, Message: "The answer was not waited for: the request was stopped here.",
		Partial: partial, Sent: sent, Err: err,
	}
}

// Pieces cuts a text as a stream would deliver it: small, never inside a character.
func Pieces(s string) []string {
	const size = 24
	var out []string
	for len(s) > 0 {
		n := min(size, len(s))
		for n < len(s) && !utf8.RuneStart(s[n]) {
			n++
		}
		out = append(out, s[:n])
		s = s[n:]
	}
	return out
}

// Half returns the first half of a text, never cut inside a character.
func Half(s string) string {
	n := len(s) / 2
	for n < len(s) && n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
