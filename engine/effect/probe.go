package effect

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"pawl/engine/machine"
)

// ProbeGitRef is the probe that reads a ref of a remote.
const ProbeGitRef = "git-ref"

// Request asks what became of one effect.
type Request struct {
	Contract machine.Contract
	// Params are those recorded with the attempt; they win over the contract's.
	Params map[string]string
	Place
}

// Finding is what one look at the world says. It is no verdict: whether a
// negative finding proves anything depends on quiescence and on the contract.
type Finding struct {
	Verdict machine.Verdict
	Text    string // one sentence for people
	Detail  string // what was seen, line by line
}

// Probe looks at the world. A remote that does not answer ends it after the
// place's timeout and a short drain, one that answers slowly after twice that;
// our own disk has half a minute, a declared probe what it declares. What it
// cannot find out is inconclusive, with the reason.
func Probe(ctx context.Context, r Request) Finding {
	if r.Contract.Probe == nil {
		return inconclusive("there is no way to look")
	}
	params := maps.Clone(r.Contract.Params)
	if params == nil {
		params = map[string]string{}
	}
	maps.Copy(params, r.Params)
	if r.Contract.Probe.Kind == ProbeGitRef {
		ctx, cancel := context.WithTimeout(ctx, localTimeout+2*r.timeout())
		defer cancel()
		return probeRef(ctx, r.Place, params)
	}
	if why := r.Place.changed(params); why != "" {
		return inconclusive(why)
	}
	return against(params, r.Contract.Probe, ask(ctx, r.Place, r.Contract))
}

// ask asks once, whatever was seen before.
func ask(ctx context.Context, at Place, c machine.Contract) Finding {
	limit := at.timeout()
	if c.Probe.Timeout > 0 {
		limit = min(time.Duration(c.Probe.Timeout)*time.Microsecond, maxLook)
	}
	switch c.Probe.Kind {
	case ProbeCommand:
		return at.askCommand(ctx, c, limit)
	case ProbeHTTP:
		return at.askHTTP(ctx, c.Probe, limit)
	}
	return inconclusive("this version does not know how to look by " + c.Probe.Kind)
}

// maxLook bounds a declared look, whatever it declares.
const maxLook = 10 * time.Minute

// What a look before the dispatch saw, if the probe asks for one.
const (
	paramBefore    = "before"     // a verdict
	paramBeforeWhy = "before_why" // its text
)

// against weighs a finding against the look before the dispatch: what was there
// already says nothing about who put it there.
func against(params map[string]string, p *machine.Probe, f Finding) Finding {
	if !p.Baseline {
		return f
	}
	before := params[paramBefore]
	switch {
	case f.Verdict == machine.VerdictHappened && before == machine.VerdictHappened.String():
		f.Verdict, f.Text = machine.VerdictInconclusive, f.Text+"; but so it was before it was sent, so this may be somebody else's doing"
	case f.Verdict == machine.VerdictHappened && before != machine.VerdictNotHappened.String():
		f.Verdict, f.Text = machine.VerdictInconclusive, f.Text+"; but whether it was so before is not known: "+unknownBefore(params)
	case f.Verdict == machine.VerdictNotHappened && before == machine.VerdictHappened.String():
		f.Verdict, f.Text = machine.VerdictConflict, f.Text+"; but it was there before it was sent, so something else has changed it"
	}
	return f
}

func unknownBefore(params map[string]string) string {
	if why := params[paramBeforeWhy]; why != "" {
		return why
	}
	return "nobody looked"
}

// lookBefore is the baseline of a dispatch, for its record.
func lookBefore(ctx context.Context, at Place, c machine.Contract) (map[string]string, error) {
	f := ask(ctx, at, c)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	out := maps.Clone(c.Params)
	if out == nil {
		out = map[string]string{}
	}
	out[paramBefore] = f.Verdict.String()
	if f.Verdict != machine.VerdictHappened && f.Verdict != machine.VerdictNotHappened {
		out[paramBeforeWhy] = f.Text
	}
	return out, nil
}

// Measure reads what the probe of a declared tool needs before a dispatch, nil
// if it needs nothing.
func Measure(ctx context.Context, at Place, c machine.Contract) (map[string]string, error) {
	if c.Probe == nil || !c.Probe.Baseline {
		return nil, nil
	}
	return lookBefore(ctx, at, c)
}

func inconclusive(text string) Finding {
	return Finding{Verdict: machine.VerdictInconclusive, Text: text}
}

// reason says in one clause why a remote could not be read.
func (at Place) reason(err error) string {
	var ge *gitError
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("the remote did not answer within %v", at.timeout())
	case errors.Is(err, context.Canceled):
		return "the look was called off"
	case errors.Is(err, errTooMuch):
		return "the remote answered with too much output"
	case !errors.As(err, &ge):
		return hideInText(err.Error())
	}
	for _, s := range []string{"terminal prompts disabled", "Authentication failed", "Permission denied", "could not read Username", "could not read Password", "Host key verification failed"} {
		if strings.Contains(ge.stderr, s) {
			return "the remote wants a password or a key that is not at hand here: " + ge.Error()
		}
	}
	return "the remote could not be read: " + ge.Error()
}

// Rehearse asks a declared probe once about something that nobody has done, as
// `pawl tools check` does. What was there before plays no part.
func Rehearse(ctx context.Context, at Place, c machine.Contract) Finding {
	if c.Probe == nil {
		return inconclusive("there is no way to look")
	}
	if c.Probe.Kind == ProbeGitRef {
		return inconclusive("a push is looked up by what is read of the remote right before it, so there is nothing to rehearse")
	}
	return ask(ctx, at, c)
}
