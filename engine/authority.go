package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"pawl/engine/machine"
	"pawl/engine/policy"
)

// judge asks policy about an action of a run. A delegated run may do what its
// own rules allow and those of every run above it, as they are now, within the
// paths that it was given. What the operator allowed to it alone, by a grant for
// this run, only a denial further up takes back.
func (e *Engine) judge(ctx context.Context, s *machine.State, args json.RawMessage, sub policy.Subject) policy.Decision {
	sub.Args, sub.Level, sub.Spent = args, s.Space.Level, s.Spent+s.AtMost
	d := e.decideUnder(ctx, &s.Charter, sub)
	if s.Charter.Parent == "" {
		return d
	}
	if why := beyondPaths(s, &sub); why != "" {
		return policy.Decision{Verdict: policy.Deny, Rule: "built-in: paths of a delegation", Why: why, Scope: policy.ScopeBuiltIn}
	}
	granted := d.Verdict == policy.Allow && d.Scope == policy.ScopeRun && strings.Contains(d.Rule, "grant ")
	for up, hops := s.Charter.Parent, 0; up != "" && hops < 64; hops++ {
		above, err := e.state(ctx, up)
		if err != nil {
			return policy.Decision{Verdict: policy.Ask, Rule: "built-in: authority unreadable", Why: "the rules of run " + string(up) + " cannot be read: " + err.Error(), Scope: policy.ScopeBuiltIn}
		}
		if a := e.decideUnder(ctx, &above.Charter, sub); stricter(a, d) && (a.Verdict == policy.Deny || !granted) {
			d = a
			d.Why = fmt.Sprintf("%s (so it is for run %s, which delegated)", d.Why, up)
		}
		up = above.Charter.Parent
	}
	return d
}

func (e *Engine) decideUnder(ctx context.Context, c *machine.Charter, sub policy.Subject) policy.Decision {
	set, err := e.rulesFor(ctx, c)
	if err != nil {
		return policy.Decision{Verdict: policy.Ask, Rule: "built-in: rules unreadable", Why: "the rules cannot be read, so nothing is let go: " + err.Error(), Scope: policy.ScopeBuiltIn}
	}
	return set.Decide(sub)
}

// stricter reports whether a lets through less than b.
func stricter(a, b policy.Decision) bool { return strictness(a.Verdict) > strictness(b.Verdict) }

func strictness(v policy.Verdict) int {
	switch v {
	case policy.Allow:
		return 0
	case policy.Deny:
		return 2
	default:
		return 1
	}
}

// beyondPaths says why an edit lies beyond what a run was given. What a command
// writes is not known before; the report tells.
func beyondPaths(s *machine.State, sub *policy.Subject) string {
	for _, w := range sub.Writes {
		rel := w.Rel
		if r, err := filepath.Rel(s.Space.Path, w.Path); rel == "" && err == nil {
			rel = filepath.ToSlash(r)
		}
		if w.Inside && !underAny(rel, s.Charter.Paths) {
			return fmt.Sprintf("%s lies outside what this run may change: %s", rel, strings.Join(s.Charter.Paths, ", "))
		}
		if !w.Inside {
			return fmt.Sprintf("%s lies outside this run's work tree, and a delegated run changes nothing else", w.Path)
		}
	}
	return ""
}
