package headless

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"pawl/engine/confine"
	"pawl/engine/effect"
	"pawl/engine/machine"
	"pawl/engine/tool"
	"pawl/engine/workspace"
)

func (a *app) toolsCheckCommand() *cobra.Command {
	var given []string
	var dir string
	cmd := &cobra.Command{
		Use:   "check NAME",
		Short: "Rehearse a tool's promises without doing anything",
		Long: `Rehearse what a tool promises: its arguments are validated, its probe looks for an effect that nobody has had, which should be a clean "not there", and its compensation is shown and not run.
Arguments that are not given with --arg are made up. The tool's own command never runs.
It ends with 1 if a promise was seen not to hold. What cannot be checked without doing it is named as such.`,
		Example: `pawl tools check deploy --arg service=web --arg version=0.0.0
pawl tools check shell --arg command="npm publish"`,
		Args: exactly("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.checkTool(cmd.Context(), args[0], given, dir)
		},
	}
	cmd.Flags().StringArrayVar(&given, "arg", nil, "an argument as NAME=VALUE; JSON where it is no text")
	cmd.Flags().StringVar(&dir, "dir", ".", "the folder that stands for the workspace; nothing is written to it")
	return cmd
}

// rehearsal is what `pawl tools check --json` prints.
type rehearsal struct {
	Name         string          `json:"name"`
	OK           bool            `json:"ok"`
	Level        confine.Level   `json:"confinement"` // at which the probe ran
	Args         json.RawMessage `json:"args"`
	Class        string          `json:"class"`
	Runs         string          `json:"runs"` // what a call would run or send; it was not
	Card         string          `json:"card"` // what the operator would be shown
	Probe        string          `json:"probe"`
	Compensation string          `json:"compensation"` // what would undo it; it was not run
	Checks       []promise       `json:"checks"`
}

// promise is one thing that a contract says, and what became of it here.
type promise struct {
	Promise string `json:"promise"`
	State   string `json:"state"` // kept, broken, unchecked
	Text    string `json:"text"`
}

// The states of a promise.
const (
	promiseKept      = "kept"
	promiseBroken    = "broken"
	promiseUnchecked = "unchecked"
)

func (r *rehearsal) note(what, state, format string, args ...any) {
	r.Checks = append(r.Checks, promise{what, state, fmt.Sprintf(format, args...)})
}

// checkTool rehearses and tells.
func (a *app) checkTool(ctx context.Context, name string, given []string, dir string) error {
	set := a.tools()
	a.complain()
	t := set.Get(name)
	if t == nil {
		return a.noSuchTool(name, set)
	}
	dir, err := filepath.Abs(dir)
	if err == nil {
		var st os.FileInfo
		if st, err = os.Stat(dir); err == nil && !st.IsDir() {
			err = errors.New("it is no folder")
		}
	}
	if err != nil {
		return &Problem{What: "the folder " + dir + " cannot stand for a workspace", Why: plainCause(err), Next: "name another one with --dir"}
	}
	scratch, err := os.MkdirTemp("", "pawl-check-")
	if err != nil {
		return fmt.Errorf("make a scratch folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	level := confine.Measure(ctx, confine.MaxFromEnv()).Level
	env := tool.Env{
		Run: "rcheck", Manager: workspace.New(scratch), Level: level, Outputs: filepath.Join(scratch, "outputs"), Now: a.o.Now,
		Space: workspace.Workspace{Run: "rcheck", Kind: workspace.KindFolder, Path: dir, Repo: dir, Scratch: filepath.Join(scratch, "scratch")},
	}
	if err := os.MkdirAll(env.Space.Scratch, 0o700); err != nil {
		return fmt.Errorf("make a scratch folder: %w", err)
	}
	r := rehearsal{Name: name, Level: level, Checks: []promise{}}
	raw, err := callArgs(t.Spec().Schema, given)
	if err != nil {
		return err
	}
	if err := rehearse(ctx, &r, set, t, env, raw); err != nil {
		return err
	}
	r.OK = !slices.ContainsFunc(r.Checks, func(p promise) bool { return p.State == promiseBroken })
	if a.json {
		err = object(a.out(), r)
	} else {
		a.tellRehearsal(r)
		err = nil
	}
	if err == nil && !r.OK {
		return codeError(ExitError)
	}
	return err
}

func plainCause(err error) string {
	var pe *os.PathError
	if errors.As(err, &pe) {
		return pe.Err.Error()
	}
	return err.Error()
}

func (a *app) noSuchTool(name string, set *tool.Set) error {
	why := "neither Pawl nor your configuration has one of this name"
	for _, p := range a.configured().Problems {
		if strings.Contains(p.Kept, "tool "+name+" ") {
			why = p.Error()
		}
	}
	return &Problem{What: fmt.Sprintf("there is no tool %q", name), Why: why, Next: "the tools are " + oneOf(set.Names())}
}

// rehearse takes a made-up call as far as nothing happens.
func rehearse(ctx context.Context, r *rehearsal, set *tool.Set, t tool.Tool, env tool.Env, raw string) error {
	args, err := set.Validate(r.Name, raw)
	if err != nil {
		return &Problem{What: "the call cannot be made up: " + err.Error(), Why: "the tool's schema wants something that a rehearsal cannot guess", Next: "give it with --arg NAME=VALUE"}
	}
	r.Args = args
	r.note("arguments", promiseKept, "the schema takes them")
	plan, err := t.Plan(ctx, env, args)
	if err != nil {
		return &Problem{What: "the call cannot be planned", Why: err.Error(), Next: "give other arguments with --arg NAME=VALUE, or another folder with --dir"}
	}
	c := plan.Contract
	key := c.Key
	if key == "" {
		key = tool.KeyFor(machine.EffectIDOf(env.Run, 1))
	}
	effect.Bind(&c, key)
	r.Class, r.Runs, r.Card = c.Class.String(), plan.Summary, plan.Text
	if l := c.Params[effect.ParamLine]; l != "" {
		r.Runs = l
	}
	rehearseProbe(ctx, r, set.Place(env), c)
	rehearseUndo(r, set, c)
	rehearseRest(r, c)
	return nil
}

// rehearseProbe looks for an effect that nobody has had.
func rehearseProbe(ctx context.Context, r *rehearsal, at effect.Place, c machine.Contract) {
	if c.Probe == nil {
		if c.Class != machine.ClassRead && c.Class != machine.ClassWorkspace {
			r.note("look", promiseUnchecked, "there is no probe: a lost answer is for you to settle")
		}
		return
	}
	r.Probe = effect.ProbeText(c.Probe)
	f := effect.Rehearse(ctx, at, c)
	switch f.Verdict {
	case machine.VerdictNotHappened:
		r.note("look", promiseKept, "a clean negative: %s", f.Text)
	case machine.VerdictHappened:
		text := "it says that it is there, though nobody did it: every lost answer would count as a success"
		if c.Probe.Baseline {
			r.note("look", promiseUnchecked, "this one is there already; name one that is not, with --arg: %s", f.Text)
			break
		}
		r.note("look", promiseBroken, "%s: %s", text, f.Text)
	case machine.VerdictConflict, machine.VerdictInconclusive, machine.VerdictUnknown:
		state := promiseUnchecked
		if c.Probe.ProvesNot {
			state = promiseBroken // it promises to tell, and cannot
		}
		r.note("look", state, "no clean negative: %s", f.Text)
	}
	r.note("look finds what is there", promiseUnchecked, "only a real effect could show that")
	if !c.Probe.ProvesNot {
		r.note("look proves that it did not happen", promiseUnchecked, "it is not declared as tested, so its negative never counts as proof")
		return
	}
	if !c.Probe.ReadsOwnWrites {
		r.note("settle time", promiseUnchecked, "%s is taken as it is declared", time.Duration(c.Probe.Settle)*time.Microsecond)
	} else {
		r.note("reads its own writes", promiseUnchecked, "only a real effect could show that")
	}
}

// rehearseUndo shows the compensation and checks its form.
func rehearseUndo(r *rehearsal, set *tool.Set, c machine.Contract) {
	k := c.Compensation
	if k == nil {
		return
	}
	r.Compensation = effect.CompensationText(k)
	if _, err := set.Validate(k.Tool, k.Args); err != nil {
		r.note("undo", promiseBroken, "%s cannot be called like that: %v", k.Tool, err)
	} else {
		r.note("undo", promiseUnchecked, "it would be called like that; it was not run")
	}
	if k.NullSafe {
		r.note("undo is harmless where there is nothing", promiseUnchecked, "it is taken as declared: it may run while the outcome is unknown")
	}
}

// rehearseRest names what nothing but the real thing can show.
func rehearseRest(r *rehearsal, c machine.Contract) {
	if c.InFlight > 0 {
		r.note("in-flight bound", promiseUnchecked, "%s is taken as it is declared", time.Duration(c.InFlight)*time.Microsecond)
	}
	if c.Class == machine.ClassKeyed {
		r.note("key", promiseUnchecked, "that the other side counts one key once, for %s, is taken as declared", time.Duration(c.KeyHorizon)*time.Microsecond)
	}
	if c.Class == machine.ClassRead && c.Network {
		r.note("it only reads", promiseUnchecked, "it is taken as declared; the box keeps it from the workspace, not from the network")
	}
}

func (a *app) tellRehearsal(r rehearsal) {
	w := a.out()
	say := func(what, text string) {
		if text != "" {
			fmt.Fprintf(w, "%-8s %s\n", what, line(text, 0))
		}
	}
	say("tool", r.Name)
	say("class", r.Class)
	say("call", string(r.Args))
	say("runs", r.Runs+"   (not run)")
	if r.Card != r.Runs {
		fmt.Fprint(w, "card\n", block(r.Card, "  "))
	}
	say("look", r.Probe)
	if r.Compensation != "" {
		say("undo", r.Compensation+"   (not run)")
	}
	for _, p := range r.Checks {
		fmt.Fprintf(w, "%-10s %s: %s\n", p.State, line(p.Promise, 0), line(p.Text, 0))
	}
}

// made is what stands for a text that was not given.
const made = "pawl-rehearsal"

// callArgs makes the arguments of a call: what was given, and for required ones
// that were not something that their schema takes.
func callArgs(schema json.RawMessage, given []string) (string, error) {
	var doc struct {
		Required   []string `json:"required"`
		Properties map[string]struct {
			Type      string            `json:"type"`
			Enum      []json.RawMessage `json:"enum"`
			Minimum   *float64          `json:"minimum"`
			MinLength int               `json:"minLength"`
		} `json:"properties"`
	}
	if err := json.Unmarshal(schema, &doc); err != nil {
		return "", fmt.Errorf("read the tool's schema: %w", err)
	}
	args := map[string]json.RawMessage{}
	for _, g := range given {
		name, v, ok := strings.Cut(g, "=")
		p, known := doc.Properties[name]
		switch {
		case !ok:
			return "", usage(fmt.Sprintf("--arg %q has no value", g), "an argument is given as NAME=VALUE", "write --arg "+name+"=…")
		case !known:
			return "", usage(fmt.Sprintf("the tool has no argument %q", name), "its schema does not name it", "it takes "+oneOf(slices.Sorted(maps.Keys(doc.Properties))))
		}
		if args[name] = json.RawMessage(v); p.Type == "string" || !json.Valid(args[name]) {
			args[name] = text(v)
		}
	}
	for _, name := range doc.Required {
		if args[name] != nil {
			continue
		}
		p := doc.Properties[name]
		switch {
		case len(p.Enum) > 0:
			args[name] = p.Enum[0]
		case p.Type == "integer" || p.Type == "number":
			n := 1.0
			if p.Minimum != nil {
				n = max(n, *p.Minimum)
			}
			args[name] = json.RawMessage(strconv.FormatFloat(n, 'f', -1, 64))
		case p.Type == "boolean":
			args[name] = json.RawMessage("true")
		case p.Type == "array":
			args[name] = json.RawMessage("[]")
		case p.Type == "object":
			args[name] = json.RawMessage("{}")
		default:
			args[name] = text(made)
		}
	}
	b, err := json.Marshal(args)
	return string(b), err
}

// text is a JSON string.
func text(s string) json.RawMessage {
	b, err := json.Marshal(s)
	if err != nil {
		return json.RawMessage(`""`) // strings always encode
	}
	return b
}
