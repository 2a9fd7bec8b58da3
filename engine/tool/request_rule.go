package tool

import (
	"net/url"
	"strings"

	"pawl/engine/config"
	"pawl/engine/effect"
	"pawl/engine/machine"
)

// httpContract is what a request promises: what the operator declared for it,
// or else what its method says. A key that the model did not give is left to
// the dispatch, since it is made from the effect's id. note is for the card.
func (o Options) httpContract(a httpArgs, u *url.URL) (c machine.Contract, note string, err error) {
	body := ""
	if a.Body != nil {
		body = *a.Body
	}
	for i := range o.Requests {
		r := &o.Requests[i]
		if v, ok := r.Vars(a.Method, u, body); ok {
			return declaredRequest(r, a, v)
		}
	}
	c = effect.HTTP(a.Method, a.URL, a.KeyHeader)
	if c.Class == machine.ClassKeyed {
		c.Key = a.key()
	}
	return c, "", nil
}

// declaredRequest is the contract of a request that the configuration knows.
func declaredRequest(r *config.Request, a httpArgs, v effect.Vars) (machine.Contract, string, error) {
	if r.KeyHeader != "" && a.KeyHeader == "" {
		a.KeyHeader = r.KeyHeader
	}
	c := effect.HTTP(a.Method, a.URL, a.KeyHeader)
	if class := r.Contract(); class != machine.ClassUnknown && !a.safe() {
		if class != machine.ClassKeyed {
			c.KeyHorizon = 0
		}
		c.Class = class
		c.InFlight = r.Bound().Microseconds()
		if class == machine.ClassRead {
			c.BeforeEffect, c.ProvesNothing, c.InFlight = nil, nil, 0
		}
	}
	if len(r.ProvesNothing) > 0 {
		c.ProvesNothing = r.ProvesNothing
	}
	v.KeyLater()
	if key := a.key(); key != "" {
		v[effect.KeyName] = key
	}
	if c.Class == machine.ClassKeyed {
		c.Key, c.KeyHorizon = a.key(), r.Horizon().Microseconds()
	}
	var err error
	if r.Probe != nil {
		if c.Probe, err = r.Probe.Build(v, true); err != nil {
			return c, "", argErrorf("The request does not fit what is declared for %s: %v.", r.URL, err)
		}
	}
	note := ""
	if r.Compensate != nil {
		if c.Compensation, err = r.Compensate.Build(v, true); err != nil {
			return c, "", argErrorf("The request does not fit what is declared for %s: %v.", r.URL, err)
		}
		note = r.Compensate.Note
	}
	return c, effect.Describe(c, "declared "+strings.TrimSpace(r.Name+" "+c.Class.String()), note), nil
}

// keyHeader is the header that carries the key: the model's own word, or what
// was declared when the call was judged.
func (a httpArgs) withKeyHeader(c machine.Contract) httpArgs {
	if a.KeyHeader == "" {
		a.KeyHeader = c.Params[effect.ParamKeyHeader]
	}
	return a
}
