package effect

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"pawl/engine/machine"
)

// shaped is a line that fits a recipe of a file.
type shaped struct {
	file *recipeFile
	fit  fit
	line string
}

// plan finds out what the line would act on, by reading files.
func (s shaped) plan(at Place) (Planned, error) {
	r := s.file
	if s.fit.refused != "" {
		return Planned{}, unresolved("%s", s.fit.refused)
	}
	v := maps.Clone(s.fit.vars)
	for _, f := range r.Fact {
		x, err := f.read(at, v)
		switch {
		case err == nil:
			v[f.Name] = x
		case !f.Optional:
			return Planned{}, unresolved("%v", err)
		}
	}
	c := machine.Contract{
		Name: r.Name, Version: r.Version, Class: r.class, Sender: machine.SenderCommand, Writes: r.class != machine.ClassRead,
		Network: r.network(), InFlight: r.InFlight.Microseconds(),
		BeforeEffect: r.BeforeEffect, ProvesNothing: r.ProvesNothing, Refused: r.Refused, Params: map[string]string{},
	}
	for k, x := range v {
		c.Params[k] = hideInText(x)
	}
	if len(r.Env)+len(r.Reveal)+len(r.Sockets) > 0 {
		c.Needs = &machine.Needs{Env: r.Env, Reveal: r.Reveal, Sockets: r.Sockets}
	}
	out := Planned{Target: hideInText(v.text(r.Target))}
	for _, f := range r.Files {
		if _, ok := v.has(f); !ok {
			continue
		}
		name := filepath.Clean(v.text(f))
		h, err := at.hash(name, sha256.New())
		if err != nil {
			return Planned{}, unresolved("%v", err)
		}
		c.Params[paramFile+name] = h
		out.Files = append(out.Files, filepath.Join(at.Dir, name))
	}
	var err error
	if r.Probe != nil {
		if c.Probe, err = r.Probe.Build(v, r.network()); err != nil {
			return Planned{}, unresolved("%v", err)
		}
	}
	if r.Compensate != nil {
		if c.Compensation, err = r.Compensate.Build(v, r.network()); err != nil {
			return Planned{}, unresolved("%v", err)
		}
	}
	if out.Target == "" {
		out.Target = r.Name
	}
	out.Contract = c
	out.Text = Describe(c, hideInText(v.text(r.Text)), noteOf(r.Compensate))
	return out, nil
}

func noteOf(c *CompensateDecl) string {
	if c == nil {
		return ""
	}
	return c.Note
}

// Describe tells a person what a declared contract promises: what is looked at
// afterwards, how far that goes, what could undo it, and what its command gets.
func Describe(c machine.Contract, text, note string) string {
	var b strings.Builder
	say := func(what, format string, args ...any) {
		fmt.Fprintf(&b, "%-8s"+format+"\n", append([]any{what}, args...)...)
	}
	if text = strings.TrimSpace(text); text != "" {
		b.WriteString(text + "\n")
	}
	if p := c.Probe; p != nil {
		say("look", "%s", ProbeText(p))
		if !p.ProvesNot {
			why := ""
			if slices.ContainsFunc(p.Answers, func(a machine.Answer) bool { return a.Verdict == machine.VerdictNotHappened }) {
				why = "it was not tested against the real thing: "
			}
			say("", "%sit may prove that this happened, never that it did not", why)
		}
	} else if c.Class != machine.ClassRead {
		say("look", "there is no way to look: if the answer is lost, you are asked")
	}
	if k := c.Compensation; k != nil {
		say("undo", "%s", CompensationText(k))
		if note != "" {
			say("", "%s", note)
		}
	}
	if n := c.Needs; n != nil {
		var gets []string
		gets = append(append(gets, n.Env...), n.Sockets...)
		for _, r := range n.Reveal {
			gets = append(gets, "~/"+r)
		}
		if len(gets) > 0 {
			say("gets", "%s", strings.Join(gets, ", "))
		}
	}
	return b.String()
}

// measure records what the probe needs, just before a dispatch.
func (s shaped) measure(ctx context.Context, at Place, c machine.Contract) (map[string]string, error) {
	now, err := s.plan(at)
	if err != nil {
		return nil, fmt.Errorf("it was not sent: what it would do can no longer be told: %w", err)
	}
	if key := differs(c.Params, now.Contract.Params); key != "" {
		return nil, fmt.Errorf("it was not sent: its %s is now %q, and was %q when it was planned; propose it again", key, now.Contract.Params[key], c.Params[key])
	}
	return Measure(ctx, at, c)
}

// differs names a parameter that is not the same in both, "" if none.
func differs(a, b map[string]string) string {
	for _, k := range slices.Concat(keysOf(a), keysOf(b)) {
		x, inA := a[k]
		y, inB := b[k]
		if x != y || inA != inB {
			return k
		}
	}
	return ""
}
