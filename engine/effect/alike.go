package effect

import (
	"encoding/json"
	"slices"
	"strings"

	"pawl/engine/machine"
	"pawl/engine/policy"
)

// Footprint lists what an action touches outside the workspace, in words that
// two actions share if one could be the other's way around: "http POST
// host:port", "git-ref URL ref", "recipe git-push", "line …", "command npm
// publish". It is derived each time and stored nowhere. An action that cannot
// reach outside has none.
//
// It errs towards too much: what it is used for is to show two actions side by
// side and to keep rules from letting the second one go.
func Footprint(tool string, args []byte, c machine.Contract) []string {
	switch {
	case c.Class == machine.ClassRead, c.Class == machine.ClassWorkspace && !c.Network:
		return nil
	}
	var out []string
	add := func(s string) {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	var a struct {
		Command string `json:"command"`
		Method  string `json:"method"`
		URL     string `json:"url"`
	}
	// Arguments that do not parse leave the contract's own parameters.
	_ = json.Unmarshal(args, &a)
	if c.Name == PushName {
		add("recipe " + PushName)
		add("git-ref " + c.Params[ParamURL] + " " + c.Params[ParamRef])
	}
	if isRecipe(c) {
		add("recipe " + c.Name)
	}
	if line := c.Params[ParamLine]; line != "" { // a declared tool runs a command line, too
		for _, s := range linePrints(line) {
			add(s)
		}
	}
	if c.Name == HTTPName {
		method, host := c.Params["method"], c.Params["host"]
		if a.URL != "" {
			method, host = strings.ToUpper(a.Method), hostPort(a.URL)
		}
		if host != "" {
			add("http " + method + " " + host)
		}
	}
	if a.Command != "" {
		for _, s := range linePrints(a.Command) {
			add(s)
		}
	}
	if len(out) == 0 && c.Name != "" {
		add("contract " + c.Name + " " + tool)
	}
	return out
}

// isRecipe reports whether a contract is that of a recognised command line.
func isRecipe(c machine.Contract) bool {
	return c.Name != PushName && c.Name != HTTPName && c.Sender == machine.SenderCommand && (c.Probe != nil || c.Needs != nil || BuiltIn().Knows(c.Name))
}

// linePrints lists what a shell line may reach.
func linePrints(line string) []string {
	out := []string{"line " + strings.Join(strings.Fields(line), " ")}
	cmds, _ := policy.Parse(line)
	for _, s := range cmds.Simple {
		if len(s.Words) == 0 {
			continue
		}
		prog := s.Program()
		if prog == "git" && slices.Contains(s.Words, "push") {
			out = append(out, "recipe "+PushName)
		}
		if policy.IsWrapper(prog) {
			continue // what it wraps stands after it
		}
		if sub := firstOperand(s); prog != "" && sub != "" {
			out = append(out, "command "+prog+" "+sub)
		} else if strings.Contains(s.Words[0], "/") {
			out = append(out, "command "+prog)
		}
	}
	for _, u := range inText.FindAllString(line, 64) {
		if h := hostPort(strings.TrimRight(u, ",;)}]")); h != "" {
			out = append(out, "host "+h)
		}
	}
	return out
}

// firstOperand is the first literal word after the program that is no option.
func firstOperand(s policy.Simple) string {
	for i := 1; i < len(s.Words); i++ {
		if w, ok := s.Word(i); ok && !strings.HasPrefix(w, "-") {
			return w
		}
	}
	return ""
}

// Alike reports whether b could be another way to do what a does: the same
// method at the same host, the same ref of a remote, the same recipe, the same
// line, or a shell line that names the host. Both must be able to reach
// outside. It is symmetric.
func Alike(a, b *machine.Effect) bool {
	if a == nil || b == nil || a.ID == b.ID && a.ID != "" {
		return false
	}
	return AlikePrints(printsOf(a), printsOf(b))
}

// Prints is the footprint of an action with the text that may name hosts.
type Prints struct {
	Marks []string // of Footprint
	Line  string   // shell line, "" if there is none
}

// PrintsOf is the footprint of an action that is not an effect yet.
func PrintsOf(tool string, args []byte, c machine.Contract) Prints {
	p := Prints{Marks: Footprint(tool, args, c)}
	var a struct {
		Command string `json:"command"`
	}
	if len(p.Marks) > 0 && json.Unmarshal(args, &a) == nil {
		p.Line = a.Command
	}
	return p
}

// printsOf reads an effect. Arguments that were too large to be kept inline are
// cut short there; summary and target stand in for them.
func printsOf(e *machine.Effect) Prints {
	if e.Args.Blob.IsZero() {
		return PrintsOf(e.Tool, []byte(e.Args.Inline), e.Contract)
	}
	p := Prints{Marks: Footprint(e.Tool, nil, e.Contract)}
	if len(p.Marks) > 0 && e.Contract.Name != HTTPName {
		p.Line = e.Args.Inline + " " + e.Summary + " " + e.Target
		for _, u := range inText.FindAllString(p.Line, 64) {
			if h := hostPort(u); h != "" {
				p.Marks = append(p.Marks, "host "+h)
			}
		}
	}
	return p
}

// AlikePrints compares two footprints.
func AlikePrints(a, b Prints) bool {
	for _, m := range a.Marks {
		if slices.Contains(b.Marks, m) {
			return true
		}
	}
	return reaches(a, b) || reaches(b, a)
}

// reaches reports whether a, being a line, names a host that b acts on.
func reaches(a, b Prints) bool {
	for _, m := range b.Marks {
		kind, rest, _ := strings.Cut(m, " ")
		host := rest
		switch kind {
		case "http":
			_, host, _ = strings.Cut(rest, " ")
		case "host":
		default:
			continue
		}
		if slices.Contains(a.Marks, "host "+host) || names(a.Line, host) {
			return true
		}
	}
	return false
}

// names reports whether a line holds a host's name in any of its spellings. It
// looks at the text, not at words: the name may stand in a script's argument.
func names(line, hostport string) bool {
	if line == "" {
		return false
	}
	host := hostport
	if i := strings.LastIndexByte(hostport, ':'); i > 0 {
		host = strings.Trim(hostport[:i], "[]")
	}
	spellings := []string{host}
	if host == "localhost" {
		spellings = []string{"localhost", "127.0.0.1", "127.1", "0.0.0.0", "[::1]", "::1"}
	}
	line = strings.ToLower(line)
	for _, s := range spellings {
		if s != "" && strings.Contains(line, s) {
			return true
		}
	}
	return false
}
