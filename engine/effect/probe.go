package effect

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

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
// our own disk has half a minute. What it cannot find out is inconclusive, with
// the reason.
func Probe(ctx context.Context, r Request) Finding {
	if r.Contract.Probe == nil {
		return inconclusive("there is no way to look")
	}
	params := maps.Clone(r.Contract.Params)
	if params == nil {
		params = map[string]string{}
	}
	maps.Copy(params, r.Params)
	ctx, cancel := context.WithTimeout(ctx, localTimeout+2*r.timeout())
	defer cancel()
	switch r.Contract.Probe.Kind {
	case ProbeGitRef:
		return probeRef(ctx, r.Place, params)
	default:
		return inconclusive("this version does not know how to look by " + r.Contract.Probe.Kind)
	}
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
