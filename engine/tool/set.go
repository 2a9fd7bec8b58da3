package tool

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"pawl/engine/machine"
)

// Set is the tools of one Pawl, by name. It is safe for concurrent use.
type Set struct {
	list    []Tool
	byName  map[string]Tool
	schemas map[string]*jsonschema.Schema
	props   map[string]properties
	o       Options
}

// properties says what a tool takes, for messages.
type properties struct {
	names    []string // required ones first, in the schema's order
	required map[string]bool
}

// All makes every tool. It panics if one of Options.More has a schema that does
// not compile or the name of another tool.
func All(o Options) *Set {
	o = o.withDefaults()
	tools := append(builtIn(o), o.More...)
	for _, d := range o.Declared {
		tools = append(tools, &userTool{o: o, d: d})
	}
	s, err := newSet(tools...)
	if err != nil {
		panic(err) // a fault of the program: a test sees it first
	}
	s.o = o
	return s
}

func builtIn(o Options) []Tool {
	return []Tool{
		&listDir{}, &readFile{}, &searchTool{},
		&writeFile{}, &editFile{},
		&shell{o: o}, &httpRequest{o: o},
		&internalTool{spec: askSpec, check: checkAsk},
		&internalTool{spec: planSpec, check: checkPlan, done: planDone},
		&internalTool{spec: decisionSpec, check: checkDecision, done: decisionDone},
		&internalTool{spec: noteSpec, check: checkNote, done: noteDone},
		&internalTool{spec: delegateSpec, check: checkDelegate}, &internalTool{spec: collectSpec, check: checkCollect},
		&internalTool{spec: tellChildSpec, check: checkWord}, &internalTool{spec: tellParentSpec, check: checkWord},
		&readEvidence{}, &finish{shell: shell{o: o}},
	}
}

// BuiltInNames lists the names that no declared tool may have.
func BuiltInNames() []string {
	names := []string{machine.ToolLand, machine.ToolAdopt}
	for _, t := range builtIn(Options{}) {
		names = append(names, t.Spec().Name)
	}
	return names
}

// newSet compiles the schemas of tools.
func newSet(tools ...Tool) (*Set, error) {
	s := &Set{
		list:    tools,
		byName:  make(map[string]Tool, len(tools)),
		schemas: make(map[string]*jsonschema.Schema, len(tools)),
		props:   make(map[string]properties, len(tools)),
	}
	c := jsonschema.NewCompiler()
	for _, t := range tools {
		spec := t.Spec()
		if s.byName[spec.Name] != nil {
			return nil, fmt.Errorf("two tools are called %s", spec.Name)
		}
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(spec.Schema))
		if err != nil {
			return nil, fmt.Errorf("schema of %s: %w", spec.Name, err)
		}
		url := "pawl:" + spec.Name
		if err := c.AddResource(url, doc); err != nil {
			return nil, fmt.Errorf("schema of %s: %w", spec.Name, err)
		}
		sch, err := c.Compile(url)
		if err != nil {
			return nil, fmt.Errorf("schema of %s: %w", spec.Name, err)
		}
		p, err := propertiesOf(spec.Schema)
		if err != nil {
			return nil, fmt.Errorf("schema of %s: %w", spec.Name, err)
		}
		s.byName[spec.Name], s.schemas[spec.Name], s.props[spec.Name] = t, sch, p
	}
	return s, nil
}

// Get returns a tool by name or nil.
func (s *Set) Get(name string) Tool { return s.byName[name] }

// Names lists the tools in the order in which they are shown to the model.
func (s *Set) Names() []string {
	out := make([]string, len(s.list))
	for i, t := range s.list {
		out[i] = t.Spec().Name
	}
	return out
}

// Specs lists how the tools present themselves, in that same order.
func (s *Set) Specs() []Spec {
	out := make([]Spec, len(s.list))
	for i, t := range s.list {
		out[i] = t.Spec()
	}
	return out
}

// Validate checks a call as the model wrote it and returns its arguments in
// canonical form. An error is an *ArgError: one sentence for the model, naming
// the argument and what would be right. Optional arguments given as null are
// left out, as some models spell "not given" that way.
func (s *Set) Validate(name, rawArgs string) (json.RawMessage, error) {
	sch, ok := s.schemas[name]
	if !ok {
		return nil, &ArgError{Text: s.unknown(name)}
	}
	args, err := decodeObject(rawArgs)
	if err != nil {
		return nil, argErrorf("The arguments of %s cannot be used: %v. Send one JSON object: %s.", name, err, s.usage(name))
	}
	for k, v := range args {
		if v == nil && !s.props[name].required[k] {
			delete(args, k)
		}
	}
	if err := sch.Validate(args); err != nil {
		return nil, argErrorf("The arguments of %s are not right: %s. It takes %s.", name, problems(err), s.usage(name))
	}
	canonical, err := encodeCanonical(args)
	if err != nil {
		return nil, argErrorf("The arguments of %s cannot be used: %v.", name, err)
	}
	return canonical, nil
}

// unknown words the refusal of a tool that does not exist.
func (s *Set) unknown(name string) string {
	names := s.Names()
	text := fmt.Sprintf("There is no tool %s. The tools are: %s.", quoteShort(name), strings.Join(names, ", "))
	folded := strings.ToLower(strings.NewReplacer("-", "_", " ", "_").Replace(name))
	if slices.Contains(names, folded) {
		text += fmt.Sprintf(" You may mean %s.", folded)
	}
	return text
}

// usage lists what a tool takes: "path, content" or "command, and optionally timeout_s".
func (s *Set) usage(name string) string {
	p := s.props[name]
	var need, may []string
	for _, n := range p.names {
		if p.required[n] {
			need = append(need, n)
		} else {
			may = append(may, n)
		}
	}
	switch {
	case len(need) == 0 && len(may) == 0:
		return "no arguments"
	case len(need) == 0:
		return "optionally " + strings.Join(may, ", ")
	case len(may) == 0:
		return strings.Join(need, ", ")
	}
	return strings.Join(need, ", ") + " and optionally " + strings.Join(may, ", ")
}

// schema takes the space out of a schema: it goes out with every request.
func schema(text string) json.RawMessage {
	var b bytes.Buffer
	if err := json.Compact(&b, []byte(text)); err != nil {
		panic(err) // a schema of ours that is no JSON: a test sees it first
	}
	return b.Bytes()
}

// propertiesOf reads the names that a schema lists, in its order.
func propertiesOf(schema json.RawMessage) (properties, error) {
	var doc struct {
		Required   []string        `json:"required"`
		Properties json.RawMessage `json:"properties"`
	}
	if err := json.Unmarshal(schema, &doc); err != nil {
		return properties{}, err
	}
	p := properties{required: map[string]bool{}}
	for _, r := range doc.Required {
		p.required[r] = true
	}
	if len(doc.Properties) == 0 {
		return p, nil
	}
	d := json.NewDecoder(bytes.NewReader(doc.Properties))
	if _, err := d.Token(); err != nil {
		return properties{}, err
	}
	for d.More() {
		k, err := d.Token()
		if err != nil {
			return properties{}, err
		}
		var skip json.RawMessage
		if err := d.Decode(&skip); err != nil {
			return properties{}, err
		}
		p.names = append(p.names, fmt.Sprint(k))
	}
	return p, nil
}

// quoteShort quotes a word from outside so that it stays on one line.
func quoteShort(s string) string {
	r := []rune(s)
	if len(r) > 60 {
		s = string(r[:60]) + "…"
	}
	return fmt.Sprintf("%q", s)
}
