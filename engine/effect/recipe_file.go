package effect

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"pawl/engine/config/source"
	"pawl/engine/machine"
)

// recipeFile is a recipe as it stands in a file. docs/recipes.md says what the
// keys mean to those who write one.
type recipeFile struct {
	Name     string          `toml:"name"`
	Version  int             `toml:"version"`
	About    string          `toml:"about"`
	Class    string          `toml:"class"`
	InFlight source.Duration `toml:"in_flight"`
	// Network: it reaches the outside. Default true.
	Network *bool    `toml:"network"`
	Env     []string `toml:"env"`
	Reveal  []string `toml:"reveal"`
	Sockets []string `toml:"sockets"`
	// Files decide what the line does: an approval covers their contents, and a
	// look afterwards is worth nothing if they have changed.
	Files         []string     `toml:"files"`
	BeforeEffect  source.Codes `toml:"before_effect"`
	ProvesNothing source.Codes `toml:"proves_nothing"`
	// Refused are patterns of output by which a code that proves nothing is an answer all the same.
	Refused    []string        `toml:"refused"`
	Target     string          `toml:"target"`
	Text       string          `toml:"text"`
	Match      []matchForm     `toml:"match"`
	Fact       []fact          `toml:"fact"`
	Probe      *ProbeDecl      `toml:"probe"`
	Compensate *CompensateDecl `toml:"compensate"`

	class machine.Class
}

// matchForm is one way to write the command.
type matchForm struct {
	// Words are the program and its subcommand, as they must be written.
	Words    []string      `toml:"words"`
	Operands []operandForm `toml:"operand"`
	// Switches are options without a value that do not change what the contract
	// says; Values are those with one, and the name that it is captured under, ""
	// for a value that does not matter.
	Switches []string          `toml:"switches"`
	Values   map[string]string `toml:"values"`
	Require  []string          `toml:"require"` // one of these options must be there
	Forbid   map[string]string `toml:"forbid"`  // options, and why there is no contract with them
	Set      map[string]string `toml:"set"`     // captures that this form itself gives
	Where    map[string]string `toml:"where"`   // capture → pattern that the whole of it must fit; no value is ""
	Style    string            `toml:"style"`   // "getopt" or "go" (one dash, long names)
}

// operandForm is one word that is no option.
type operandForm struct {
	Name     string `toml:"name"`
	Pattern  string `toml:"pattern"` // that the whole word fits; named groups are captured, too
	Optional bool   `toml:"optional"`

	re *regexp.Regexp
}

// fact is something that a file of the workspace says.
type fact struct {
	Name     string `toml:"name"`
	JSON     string `toml:"json"` // file
	TOML     string `toml:"toml"` // file
	At       string `toml:"at"`   // dotted path in it
	MD5      string `toml:"md5"`  // file
	Optional bool   `toml:"optional"`
}

var (
	recipeName  = regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`)
	captureName = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)
)

// parseRecipe reads and checks a recipe. A recipe with any fault is none: half a
// promise is worse than no promise.
func parseRecipe(file, name string, text []byte) (*recipeFile, []*source.Problem) {
	r := &recipeFile{Version: 1}
	t, faults := source.Read(file, text, r)
	if len(faults) > 0 {
		return nil, faults
	}
	c := recipeCheck{r: r, t: t}
	c.head(name)
	for i := range r.Match {
		c.form(i)
	}
	if len(r.Match) == 0 {
		c.bad([]any{"name"}, "the recipe matches nothing", "it has no [[match]]", "say which command line it is for")
	}
	c.facts()
	c.promises()
	if len(c.out) > 0 {
		return nil, c.out
	}
	return r, nil
}

type recipeCheck struct {
	r   *recipeFile
	t   *source.Text
	out []*source.Problem
}

func (c *recipeCheck) bad(at []any, what, why, next string) {
	c.out = append(c.out, c.t.Fault(at, what, why, next))
}

func (c *recipeCheck) head(name string) {
	r := c.r
	switch {
	case !recipeName.MatchString(r.Name):
		c.bad([]any{"name"}, fmt.Sprintf("%q is no name for a recipe", r.Name), "it is written into contracts and rules", "use small letters, digits and dashes")
	case r.Name != name:
		c.bad([]any{"name"}, fmt.Sprintf("the recipe is called %s and its file %s", r.Name, name), "the file's name says which recipe it replaces", "make them equal")
	case r.Name == PushName:
		c.bad([]any{"name"}, "git push is not read from a file", "what it proves needs more than a file can say", "choose another name")
	}
	if r.Version < 1 {
		c.bad([]any{"version"}, "the version is below 1", "contracts of different versions are told apart by it", "count up from 1")
	}
	if err := r.class.UnmarshalText([]byte(r.Class)); r.Class != "" && (err != nil || r.class == machine.ClassUnknown) {
		c.bad([]any{"class"}, fmt.Sprintf("%q is no class", r.Class), "the class says what may be done by itself", "use READ, PROBEABLE, COMPENSABLE or IRREVERSIBLE")
		return
	}
	switch r.class {
	case machine.ClassKeyed:
		c.bad([]any{"class"}, "a recipe cannot be KEYED", "a command line that a model writes holds no key of ours", "declare a [[tool]] with a key in the configuration instead")
	case machine.ClassWorkspace:
		c.bad([]any{"class"}, "a recipe cannot be WORKSPACE", "only a sealed command is, and that is measured, not declared", "take the recipe out; sealed commands need none")
	case machine.ClassUnknown:
		c.bad([]any{"class"}, "the recipe has no class", "what declares nothing is IRREVERSIBLE, and should say so", "declare a class")
	case machine.ClassRead, machine.ClassProbeable, machine.ClassCompensable, machine.ClassIrreversible:
	}
}

func (c *recipeCheck) form(i int) {
	f := &c.r.Match[i]
	at := func(keys ...any) []any { return append([]any{"match", i}, keys...) }
	if len(f.Words) == 0 || f.Words[0] == "" {
		c.bad(at("words"), "this form names no program", "every line would fit", `begin with the program, as in words = ["npm", "publish"]`)
	}
	if f.Style != "" && f.Style != "getopt" && f.Style != "go" {
		c.bad(at("style"), fmt.Sprintf("%q is no style of options", f.Style), "", "use getopt or go")
	}
	seen := map[string]bool{}
	for _, o := range slices.Concat(f.Switches, keysOf(f.Values), keysOf(f.Forbid)) {
		if !strings.HasPrefix(o, "-") || o == "-" || o == "--" || strings.Contains(o, "=") {
			c.bad(at(), fmt.Sprintf("%q is no option", o), "options begin with a dash and are named without a value", "mend its name")
		}
		if seen[o] {
			c.bad(at(), o+" is listed twice", "it cannot be two things", "keep one of switches, values and forbid")
		}
		seen[o] = true
	}
	for _, o := range f.Require {
		if !seen[o] {
			c.bad(at("require"), o+" is required and not known", "a line with an option that is not listed does not match", "list it under switches or values")
		}
	}
	optional := false
	for j := range f.Operands {
		o := &f.Operands[j]
		if !captureName.MatchString(o.Name) {
			c.bad(at("operand", j, "name"), fmt.Sprintf("%q is no name", o.Name), "captures are used as {name}", "use small letters, digits and _")
		}
		if optional && !o.Optional {
			c.bad(at("operand", j), "a required word stands after an optional one", "nobody could tell them apart", "put it first")
		}
		optional = optional || o.Optional
		var err error
		if o.re, err = regexp.Compile("^(?:" + o.Pattern + ")$"); err != nil {
			c.bad(at("operand", j, "pattern"), "the pattern cannot be read", err.Error(), "mend the regular expression")
		}
	}
	for name, p := range f.Where {
		if _, err := regexp.Compile("^(?:" + p + ")$"); err != nil {
			c.bad(at("where", name), "the pattern cannot be read", err.Error(), "mend the regular expression")
		}
		if !slices.Contains(f.names(), name) {
			c.bad(at("where", name), fmt.Sprintf("nothing captures %s", name), "the condition would never hold", "capture it, or take the condition out")
		}
	}
	for o, name := range f.Values {
		if name != "" && !captureName.MatchString(name) {
			c.bad(at("values"), fmt.Sprintf("%s is captured as %q", o, name), "captures are used as {name}", "use small letters, digits and _")
		}
	}
}

// names lists what the form captures.
func (f *matchForm) names() []string {
	var out []string
	for _, o := range f.Operands {
		out = append(out, o.Name)
		if o.Pattern != "" && o.re != nil {
			for _, g := range o.re.SubexpNames() {
				if g != "" {
					out = append(out, g)
				}
			}
		}
	}
	for _, n := range f.Values {
		if n != "" {
			out = append(out, n)
		}
	}
	out = append(out, keysOf(f.Set)...)
	slices.Sort(out)
	return slices.Compact(out)
}

func (r *recipeFile) names() []string {
	var out []string
	for i := range r.Match {
		out = append(out, r.Match[i].names()...)
	}
	for _, f := range r.Fact {
		out = append(out, f.Name)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (c *recipeCheck) facts() {
	for i, f := range c.r.Fact {
		at := []any{"fact", i}
		n := 0
		for _, file := range []string{f.JSON, f.TOML, f.MD5} {
			if file != "" {
				n++
			}
		}
		switch {
		case !captureName.MatchString(f.Name):
			c.bad(at, fmt.Sprintf("%q is no name", f.Name), "facts are used as {name}", "use small letters, digits and _")
		case n != 1:
			c.bad(at, "the fact has no source, or more than one", "", "give exactly one of json, toml and md5")
		case f.MD5 == "" && f.At == "":
			c.bad(at, "the fact does not say where in the file it stands", "", `add at, as in at = "package.version"`)
		}
		c.slots(at, f.JSON, f.TOML, f.MD5)
	}
}

func (c *recipeCheck) slots(at []any, templates ...string) {
	d := Declared{Text: c.t, At: at, Names: c.r.names()}
	key := "it"
	if s, ok := at[len(at)-1].(string); ok {
		key = s
	}
	for _, p := range d.slots(key, templates...) {
		p.Line = c.t.Line(at...)
		c.out = append(c.out, p)
	}
}

// promises checks what the recipe promises against itself.
func (c *recipeCheck) promises() {
	r := c.r
	d := Declared{Text: c.t, Names: r.names(), Class: r.class, Network: r.network()}
	c.slots([]any{"target"}, r.Target)
	c.slots([]any{"text"}, r.Text)
	c.slots([]any{"files"}, r.Files...)
	for _, code := range r.BeforeEffect {
		if slices.Contains(r.ProvesNothing, code) {
			c.bad([]any{"before_effect"}, "the code "+code+" contradicts itself", "it cannot prove that nothing happened and prove nothing at all", "keep it in one list")
		}
		if code == "0" {
			c.bad([]any{"before_effect"}, "success is listed as proof that nothing happened", "", "take 0 out")
		}
	}
	c.out = append(c.out, RefusedFaults(d, r.Refused, r.ProvesNothing)...)
	if r.class == machine.ClassRead && (r.Probe != nil || r.Compensate != nil || r.InFlight > 0) {
		c.bad([]any{"class"}, "class READ promises too much", "what only reads has nothing to probe, to undo or to wait for", "take probe, compensate and in_flight out, or change the class")
	}
	if r.class == machine.ClassProbeable && r.Probe == nil {
		c.bad([]any{"class"}, "class PROBEABLE and no probe", "there would be no way to look", "add [probe], or declare IRREVERSIBLE")
	}
	if r.class == machine.ClassCompensable && r.Compensate == nil {
		c.bad([]any{"class"}, "class COMPENSABLE and no compensation", "there would be no way back", "add [compensate], or declare PROBEABLE or IRREVERSIBLE")
	}
	if r.Probe != nil {
		if r.network() && r.InFlight == 0 && r.Probe.Tested {
			c.bad([]any{"in_flight"}, "the probe may prove that nothing happened, and there is no in-flight bound",
				"what was sent over a network may land after its sender is dead", `say how long, as in in_flight = "2m"`)
		}
		c.out = append(c.out, r.Probe.Faults(d)...)
	}
	if r.Compensate != nil {
		c.out = append(c.out, r.Compensate.Faults(d)...)
	}
	for i, s := range r.Sockets {
		if !strings.HasPrefix(s, "/") {
			c.bad([]any{"sockets", i}, fmt.Sprintf("%q is no absolute path", s), "", "write the whole path")
		}
	}
	for i, p := range r.Reveal {
		if strings.HasPrefix(p, "/") || strings.HasPrefix(p, "~") || slices.Contains(strings.Split(p, "/"), "..") || p == "" || p == "." {
			c.bad([]any{"reveal", i}, fmt.Sprintf("%q is no path below the home directory", p), "", `write it relative, as in ".config/gh"`)
		}
	}
}

func (r *recipeFile) network() bool { return r.Network == nil || *r.Network }

func keysOf[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}
