package config

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"pawl/engine/config/source"
	"pawl/engine/effect"
	"pawl/engine/machine"
)

// Tool is a tool of the operator's own: a command with a contract.
type Tool struct {
	Name        string         `toml:"name"`
	Version     int            `toml:"version"` // count up when what it does changes
	Description string         `toml:"description"`
	Arg         []Arg          `toml:"arg"`
	Schema      map[string]any `toml:"schema"` // instead of arg: a JSON schema
	// Command is an argument list with {slots}, Shell a line for bash that finds
	// the arguments in variables: "$arg_name".
	Command []string        `toml:"command"`
	Shell   string          `toml:"shell"`
	Timeout source.Duration `toml:"timeout"`
	Class   string          `toml:"class"`
	// InFlight is D: how long after its death the effect may still land.
	InFlight      *source.Duration       `toml:"in_flight"`
	Network       bool                   `toml:"network"`
	Env           []string               `toml:"env"`
	Reveal        []string               `toml:"reveal"`
	Sockets       []string               `toml:"sockets"`
	Files         []string               `toml:"files"`
	Key           string                 `toml:"key"` // template, or "{effect}" for one made from the effect's id
	KeyHorizon    source.Duration        `toml:"key_horizon"`
	Approval      string                 `toml:"approval"` // always, policy
	BeforeEffect  source.Codes           `toml:"before_effect"`
	ProvesNothing source.Codes           `toml:"proves_nothing"`
	Refused       []string               `toml:"refused"` // output by which such a code is an answer all the same
	Probe         *effect.ProbeDecl      `toml:"probe"`
	Compensate    *effect.CompensateDecl `toml:"compensate"`

	class  machine.Class
	json   json.RawMessage
	scalar []string // arguments that slots may name
}

// Arg is one argument of a tool, in short.
type Arg struct {
	Name        string   `toml:"name"`
	Type        string   `toml:"type"` // string, integer, number, boolean
	Description string   `toml:"description"`
	Optional    bool     `toml:"optional"`
	Enum        []string `toml:"enum"`
	Pattern     string   `toml:"pattern"`
}

// Approval of a tool.
const (
	ApprovalAlways = "always"
	ApprovalPolicy = "policy"
)

// KeyEffect as a tool's key makes one from the effect's id.
const KeyEffect = "{effect}"

// Contract is the class that was declared; nothing declared is irreversible.
func (t *Tool) Contract() machine.Class {
	if t.class == machine.ClassUnknown {
		return machine.ClassIrreversible
	}
	return t.class
}

// JSONSchema is the schema of its arguments.
func (t *Tool) JSONSchema() json.RawMessage { return t.json }

// Scalars names the arguments that slots may use.
func (t *Tool) Scalars() []string { return t.scalar }

// defaultInFlight is D of what uses the network and says nothing, and
// keyHorizon how long a key is taken to be remembered.
const (
	defaultInFlight = 2 * time.Minute
	keyHorizon      = 23 * time.Hour
)

// Bound is D.
func (t *Tool) Bound() time.Duration { return bound(t.InFlight, t.Network, t.Contract()) }

func bound(d *source.Duration, network bool, class machine.Class) time.Duration {
	switch {
	case d != nil:
		return time.Duration(*d)
	case !network, class == machine.ClassRead, class == machine.ClassWorkspace:
		return 0
	}
	return defaultInFlight
}

// Horizon is how long its key may be used again.
func (t *Tool) Horizon() time.Duration {
	if t.KeyHorizon > 0 {
		return time.Duration(t.KeyHorizon)
	}
	return keyHorizon
}

// Needs is what its command gets beside the usual, nil if nothing.
func (t *Tool) Needs() *machine.Needs {
	if len(t.Env)+len(t.Reveal)+len(t.Sockets) == 0 {
		return nil
	}
	return &machine.Needs{Env: t.Env, Reveal: t.Reveal, Sockets: t.Sockets}
}

var (
	toolName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,63}$`)
	argName  = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)
	envName  = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// toolCheck collects the faults of one tool.
type toolCheck struct {
	t    *Tool
	text *source.Text
	at   []any
	out  []*source.Problem
}

func (c *toolCheck) bad(key, what, why, next string) {
	at := slices.Clone(c.at)
	for _, k := range strings.Split(key, ".") {
		at = append(at, k)
	}
	c.out = append(c.out, c.text.Fault(at, what, why, next))
}

func (t *Tool) check(text *source.Text, i int, taken map[string]bool) []*source.Problem {
	c := toolCheck{t: t, text: text, at: []any{"tool", i}}
	if t.Version == 0 {
		t.Version = 1
	}
	switch {
	case !toolName.MatchString(t.Name):
		c.bad("name", fmt.Sprintf("%q is no name for a tool", t.Name), "models are told of it under this name", "use small letters, digits and _, at most 64")
	case taken[t.Name]:
		c.bad("name", "there is a tool "+t.Name+" already", "two tools of one name could not be told apart", "choose another name")
	}
	if strings.TrimSpace(t.Description) == "" {
		c.bad("description", "the tool has no description", "a model can only guess what it is for", "say in one sentence what it does")
	}
	c.schema()
	c.command()
	t.class = c.class(t.Class)
	c.contract()
	return c.out
}

// class reads a class's name; none is ClassUnknown.
func (c *toolCheck) class(name string) machine.Class {
	var class machine.Class
	if name == "" {
		return class
	}
	if err := class.UnmarshalText([]byte(name)); err != nil || class == machine.ClassUnknown {
		c.bad("class", fmt.Sprintf("%q is no class", name), "the class says what may be done by itself when an answer is lost",
			"use READ, WORKSPACE, KEYED, PROBEABLE, COMPENSABLE or IRREVERSIBLE")
		return machine.ClassUnknown
	}
	return class
}

func (c *toolCheck) command() {
	t := c.t
	switch {
	case len(t.Command) == 0 && t.Shell == "":
		c.bad("command", "the tool runs nothing", "it has neither command nor shell", `say what to run, as in command = ["./deploy", "{service}"]`)
	case len(t.Command) > 0 && t.Shell != "":
		c.bad("shell", "the tool runs two things", "it has a command and a shell line", "keep one of them")
	case len(t.Command) > 0 && (t.Command[0] == "" || len(effect.Slots(t.Command[0])) > 0):
		c.bad("command", "the program is not named", "an argument would choose what runs", "begin with the program's own name")
	}
	if len(effect.Slots(t.Shell)) > 0 {
		c.bad("shell", "a shell line has no slots", "what a model writes could end up as part of the program", `write "$arg_name" for the argument name`)
	}
	d := c.declared()
	c.out = append(c.out, d.Slots("command", t.Command...)...)
	c.out = append(c.out, d.Slots("files", t.Files...)...)
	for _, n := range t.Env {
		if !envName.MatchString(n) {
			c.bad("env", fmt.Sprintf("%q is no name of a variable", n), "its value comes from your environment, not from this file", "write the name alone")
		}
	}
	for _, p := range t.Reveal {
		if strings.HasPrefix(p, "/") || strings.HasPrefix(p, "~") || slices.Contains(strings.Split(p, "/"), "..") || p == "" || p == "." {
			c.bad("reveal", fmt.Sprintf("%q is no path below the home directory", p), "", `write it relative, as in ".config/gh"`)
		}
	}
	for _, s := range t.Sockets {
		if !strings.HasPrefix(s, "/") {
			c.bad("sockets", fmt.Sprintf("%q is no absolute path", s), "", "write the whole path")
		}
	}
	switch t.Approval {
	case "":
		t.Approval = ApprovalAlways
	case ApprovalAlways, ApprovalPolicy:
	default:
		c.bad("approval", fmt.Sprintf("%q is no kind of approval", t.Approval), "", "use always or policy")
	}
}

func (c *toolCheck) declared() effect.Declared {
	return effect.Declared{Text: c.text, At: c.at, Names: append(slices.Clone(c.t.scalar), effect.KeyName), Class: c.t.class, Network: c.t.Network}
}

// contract checks what the tool promises against itself.
func (c *toolCheck) contract() {
	t := c.t
	local := t.class == machine.ClassRead || t.class == machine.ClassWorkspace
	switch {
	case t.class == machine.ClassWorkspace && t.Network:
		c.bad("network", "class WORKSPACE and the network", "what reaches the outside cannot be undone by a snapshot", "take network out, or declare another class")
	case t.class == machine.ClassProbeable && t.Probe == nil:
		c.bad("class", "class PROBEABLE and no probe", "there would be no way to look", "add [tool.probe], or declare IRREVERSIBLE")
	case t.class == machine.ClassCompensable && t.Compensate == nil:
		c.bad("class", "class COMPENSABLE and no compensation", "there would be no way back", "add [tool.compensate], or declare PROBEABLE or IRREVERSIBLE")
	case t.class == machine.ClassKeyed && t.Key == "":
		c.bad("class", "class KEYED and no key", "without one a second sending is a second effect", `add key = "{effect}", and {key} to the command`)
	case t.class == machine.ClassKeyed && t.Shell == "" && !slices.Contains(effect.Slots(t.Command...), effect.KeyName):
		c.bad("command", "the key is not passed on", "class KEYED promises that the other side sees the same key again", "put {key} into the command")
	case t.class == machine.ClassKeyed && t.Shell != "" && !strings.Contains(t.Shell, KeyEnv):
		c.bad("shell", "the key is not passed on", "class KEYED promises that the other side sees the same key again", `put "$`+KeyEnv+`" into the line`)
	}
	if t.class != machine.ClassKeyed {
		if t.Key != "" {
			c.bad("key", "there is a key and the class is not KEYED", "a key promises that sending twice is one effect", "declare KEYED, or take the key out; {key} may be used as a mark without it")
		}
		if t.KeyHorizon > 0 {
			c.bad("key_horizon", "there is a horizon and no key", "", "take it out")
		}
	} else if t.Key != "" && t.Key != KeyEffect {
		d := c.declared()
		d.Names = t.scalar
		c.out = append(c.out, d.Slots("key", t.Key)...)
		if len(effect.Slots(t.Key)) == 0 {
			c.bad("key", "the key is always the same", "every call would count as the first one again", `use "{effect}", or arguments that name the one thing to be done`)
		}
	}
	if local && t.Probe != nil {
		c.bad("probe", fmt.Sprintf("class %s and a probe", t.class), "there is nothing outside to look at", "take the probe out, or declare another class")
	}
	if local && t.InFlight != nil && *t.InFlight > 0 {
		c.bad("in_flight", fmt.Sprintf("class %s and an in-flight bound", t.class), "nothing is under way once its processes are dead", "take it out, or declare another class")
	}
	c.codes()
	c.out = append(c.out, effect.RefusedFaults(c.declared(), t.Refused, t.ProvesNothing)...)
	if t.Probe != nil {
		c.out = append(c.out, t.Probe.Faults(c.declared())...)
		if t.Probe.Tested && t.Network && t.InFlight == nil {
			c.bad("in_flight", "the probe may prove that nothing happened, and there is no in-flight bound", "what was sent over a network may land after its sender is dead", `say how long, as in in_flight = "30s"`)
		}
	}
	if t.Compensate != nil {
		c.out = append(c.out, t.Compensate.Faults(c.declared())...)
	}
}

func (c *toolCheck) codes() {
	for _, code := range c.t.BeforeEffect {
		if code == "0" {
			c.bad("before_effect", "success is listed as proof that nothing happened", "", "take 0 out")
		}
		if slices.Contains(c.t.ProvesNothing, code) {
			c.bad("before_effect", "the code "+code+" contradicts itself", "it cannot prove that nothing happened and prove nothing at all", "keep it in one list")
		}
	}
}

// The variables in which a tool's command finds its key and its arguments.
const (
	KeyEnv  = "PAWL_KEY"
	ArgsEnv = "PAWL_ARGS"
)

// schema makes the JSON schema of the arguments.
func (c *toolCheck) schema() {
	t := c.t
	doc := t.Schema
	if doc != nil && len(t.Arg) > 0 {
		c.bad("schema", "the arguments are given twice", "there are [[tool.arg]] and a schema", "keep one of them")
		return
	}
	if doc == nil {
		doc = c.args()
	}
	if _, ok := doc["type"]; !ok {
		doc["type"] = "object"
	}
	if doc["type"] != "object" {
		c.bad("schema", "the schema is not one of an object", "arguments have names", `set type = "object"`)
		return
	}
	if _, ok := doc["additionalProperties"]; !ok {
		doc["additionalProperties"] = false
	}
	raw, err := json.Marshal(doc)
	if err == nil {
		err = compiles(raw)
	}
	if err != nil {
		c.bad("schema", "the schema of the arguments cannot be used", oneLine(err.Error()), "mend it")
		return
	}
	t.json = raw
	props, _ := doc["properties"].(map[string]any)
	for name, p := range props {
		m, _ := p.(map[string]any)
		if typ, _ := m["type"].(string); argName.MatchString(name) && (typ == "string" || typ == "integer" || typ == "number" || typ == "boolean" || typ == "" && m["enum"] != nil) {
			t.scalar = append(t.scalar, name)
		}
	}
	slices.Sort(t.scalar)
}

func (c *toolCheck) args() map[string]any {
	props, required := map[string]any{}, []any{}
	for i, a := range c.t.Arg {
		at := append(slices.Clone(c.at), "arg", i)
		switch {
		case !argName.MatchString(a.Name) || a.Name == effect.KeyName:
			c.out = append(c.out, c.text.Fault(append(at, "name"), fmt.Sprintf("%q is no name for an argument", a.Name), "it is used as {name}, and {key} is taken", "use small letters, digits and _"))
		case props[a.Name] != nil:
			c.out = append(c.out, c.text.Fault(append(at, "name"), "there are two arguments "+a.Name, "", "choose another name"))
		}
		p := map[string]any{"type": a.Type}
		if a.Type == "" {
			p["type"] = "string"
		}
		if !slices.Contains([]any{"string", "integer", "number", "boolean"}, p["type"]) {
			c.out = append(c.out, c.text.Fault(append(at, "type"), fmt.Sprintf("%q is no type of an argument", a.Type), "", "use string, integer, number or boolean, or a schema"))
			p["type"] = "string"
		}
		if a.Description != "" {
			p["description"] = a.Description
		}
		if len(a.Enum) > 0 {
			p["enum"] = a.Enum
		}
		if a.Pattern != "" {
			p["pattern"] = a.Pattern
		}
		if p["type"] == "string" && len(a.Enum) == 0 {
			p["minLength"] = 1
		}
		props[a.Name] = p
		if !a.Optional {
			required = append(required, a.Name)
		}
	}
	doc := map[string]any{"type": "object", "properties": props, "additionalProperties": false}
	if len(required) > 0 {
		doc["required"] = required
	}
	return doc
}

func compiles(raw []byte) error {
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(raw)))
	if err != nil {
		return err
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("pawl:tool", doc); err != nil {
		return err
	}
	_, err = c.Compile("pawl:tool")
	return err
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
