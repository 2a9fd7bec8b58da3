package effect

import (
	"context"
	"fmt"
	"regexp"
	"slices"

	"pawl/engine/machine"
	"pawl/engine/policy"
)

// Recipe is a recognised command line with a contract of its own.
type Recipe struct {
	Name    string // of the contract: "git-push"
	Version int
	push    *push
	shaped  *shaped
}

// Planned is what a recipe's line would do, found out by reading only.
type Planned struct {
	Contract machine.Contract
	Target   string // what it acts on, without credentials
	Text     string // for the approval card: what will happen, in plain lines
	// OutsideWrite are the paths outside the workspace that the line has to write.
	OutsideWrite []string
	// Files are programs of the repository that the line runs (hooks), so that
	// an approval can be bound to their contents.
	Files []string
	// Env names variables, and Reveal paths below the home directory, that the
	// command needs beside the usual ones to reach its remote.
	Env    []string
	Reveal []string
}

// Unresolved says why a recognised line's effect cannot be told in advance.
// Such a line has no contract: it counts as undeclared.
type Unresolved struct{ Why string }

func (u *Unresolved) Error() string { return u.Why }

func unresolved(format string, args ...any) error {
	return &Unresolved{Why: fmt.Sprintf(format, args...)}
}

// Match recognises a line by the recipes that come with Pawl.
func Match(c *policy.Commands) (Recipe, bool) { return BuiltIn().Match(c) }

// Plan finds out what the line would act on. An *Unresolved error means that
// it has no contract; other errors are failures to read the repository.
func (r Recipe) Plan(ctx context.Context, p Place) (Planned, error) {
	ctx, cancel := context.WithTimeout(ctx, localTimeout)
	defer cancel()
	if r.shaped != nil {
		return r.shaped.plan(p)
	}
	return r.push.plan(ctx, p)
}

// Measure reads what a probe will need, just before a dispatch: for a push the
// remote, the ref, the new value and the ref's old one. If the remote cannot be
// read, ParamOldUnknown says why and a later probe can prove only that the push
// happened. An error means that the line would now act on something else than
// it was planned for; it must not be dispatched.
func (r Recipe) Measure(ctx context.Context, p Place, c machine.Contract) (map[string]string, error) {
	if r.shaped != nil {
		return r.shaped.measure(ctx, p, c)
	}
	ctx, cancel := context.WithTimeout(ctx, localTimeout+p.timeout())
	defer cancel()
	return r.push.measure(ctx, p, c)
}

// Answered reports whether a command's end says what became of its effect. A
// code that the contract lists as proving nothing still counts as an answer if
// the output has the other side's own refusal; why is one sentence.
func Answered(c machine.Contract, code string, output []byte) (answered bool, why string) {
	if !slices.Contains(c.ProvesNothing, code) {
		return true, "the code " + code + " is an answer"
	}
	if c.Name == PushName {
		return pushAnswered(code, output)
	}
	for _, p := range c.Refused {
		if re, err := regexp.Compile(p); err == nil && re.Match(output) {
			return true, "it says itself that it was refused"
		}
	}
	return false, "the code " + code + " does not say whether it happened"
}
