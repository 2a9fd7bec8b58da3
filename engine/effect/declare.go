package effect

import (
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"pawl/engine/config/source"
	"pawl/engine/machine"
)

// The kinds of a declared probe.
const (
	ProbeCommand = "command"
	ProbeHTTP    = "http"
)

// ProbeDecl is a probe as it stands in a file: a command or a URL to ask, and
// what its answers mean.
type ProbeDecl struct {
	Command []string          `toml:"command"`
	URL     string            `toml:"url"`
	Header  map[string]string `toml:"header"`
	Network *bool             `toml:"network"`
	Timeout source.Duration   `toml:"timeout"`
	// ReadsOwnWrites: what is done is seen at once. Else Settle is how long it may take.
	ReadsOwnWrites bool            `toml:"reads_own_writes"`
	Settle         source.Duration `toml:"settle"`
	// Tested: somebody tried this probe against the real thing, the in-flight
	// bound included. Only then it may prove that something did not happen.
	Tested bool `toml:"tested"`
	// Baseline: look before the dispatch, too. Default true.
	Baseline *bool        `toml:"baseline"`
	Answer   []AnswerDecl `toml:"answer"`
}

// AnswerDecl is one answer and its meaning.
type AnswerDecl struct {
	Verdict string       `toml:"verdict"`
	Codes   source.Codes `toml:"codes"`
	Match   string       `toml:"match"`
}

// verdicts are what an answer may mean.
var verdicts = map[string]machine.Verdict{
	"happened": machine.VerdictHappened, "not_happened": machine.VerdictNotHappened,
	"conflict": machine.VerdictConflict, "inconclusive": machine.VerdictInconclusive,
}

// CompensateDecl is a compensation as it stands in a file: a command or one
// request.
type CompensateDecl struct {
	Command []string          `toml:"command"`
	Method  string            `toml:"method"`
	URL     string            `toml:"url"`
	Header  map[string]string `toml:"header"`
	Body    string            `toml:"body"`
	Network *bool             `toml:"network"`
	// NullSafe: it does no harm where there is nothing to undo.
	NullSafe bool         `toml:"null_safe"`
	Success  source.Codes `toml:"success"`
	Note     string       `toml:"note"` // what stays after it
}

// Declared is what both kinds of files say around a probe and a compensation.
type Declared struct {
	Text    *source.Text
	At      []any    // path of the table around it
	Names   []string // slots that may be used
	Prefix  string   // slots that begin with it may be used, too, "" if none
	Class   machine.Class
	Network bool
}

func (d Declared) fault(key, what, why, next string) *source.Problem {
	return d.Text.Fault(append(slices.Clone(d.At), strings2any(key)...), what, why, next)
}

func strings2any(dotted string) []any {
	var out []any
	for _, p := range strings.Split(dotted, ".") {
		out = append(out, p)
	}
	return out
}

// slots refuses names that have no value.
func (d Declared) slots(key string, templates ...string) []*source.Problem {
	var out []*source.Problem
	for _, n := range Slots(templates...) {
		if slices.Contains(d.Names, n) || d.Prefix != "" && strings.HasPrefix(n, d.Prefix) {
			continue
		}
		next := "known here are " + strings.Join(d.Names, ", ")
		if near := source.Nearest(n, d.Names); near != "" {
			next = "did you mean {" + near + "}?"
		} else if len(d.Names) == 0 {
			next = "there are none here; take it out"
		}
		out = append(out, d.fault(key, fmt.Sprintf("{%s} in %s has no value", n, key), "nothing of this name is captured or given", next))
	}
	return out
}

// Slots refuses slots of templates that have no value; key names their place.
func (d Declared) Slots(key string, templates ...string) []*source.Problem {
	return d.slots(key, templates...)
}

// RefusedFaults checks the patterns of refusals against the codes that they are for.
func RefusedFaults(d Declared, refused, provesNothing []string) []*source.Problem {
	var out []*source.Problem
	for _, p := range refused {
		if _, err := regexp.Compile(p); err != nil {
			out = append(out, d.fault("refused", "the pattern of a refusal cannot be read", err.Error(), "mend the regular expression"))
		}
		if p == "" {
			out = append(out, d.fault("refused", "the pattern of a refusal fits everything", "every lost answer would count as a refusal", "say what the refusal says"))
		}
	}
	if len(refused) > 0 && len(provesNothing) == 0 {
		out = append(out, d.fault("refused", "there are refusals and no code that proves nothing", "every other code is an answer anyway", "list the code in proves_nothing, or take refused out"))
	}
	return out
}

// Faults checks a probe against itself and against the contract around it.
func (p *ProbeDecl) Faults(d Declared) []*source.Problem {
	var out []*source.Problem
	bad := func(key, what, why, next string) { out = append(out, d.fault("probe."+key, what, why, next)) }
	switch {
	case len(p.Command) == 0 && p.URL == "":
		bad("command", "the probe asks nothing", "it has neither command nor url", "give one of them")
	case len(p.Command) > 0 && p.URL != "":
		bad("url", "the probe asks twice", "it has a command and a url", "keep one of them")
	}
	out = append(out, d.slots("probe.command", p.Command...)...)
	out = append(out, d.slots("probe.url", p.URL)...)
	if p.URL != "" {
		if why := badURL(p.URL); why != "" {
			bad("url", "the url of the probe cannot be asked", why, "write an absolute http or https URL, with slots in path and query only")
		}
		if p.Network != nil && !*p.Network {
			bad("network", "the probe has a url and no network", "a URL is asked over the network", "take network = false out")
		}
	} else if len(p.Header) > 0 {
		bad("header", "the probe has headers and no url", "a command takes none", "take them out")
	}
	if h := badHeader(p.Header); h != "" {
		bad("header", fmt.Sprintf("the header %q cannot be sent", h), "its name or its value holds a character that no header may have", "mend it")
	}
	if p.ReadsOwnWrites && p.Settle > 0 {
		bad("settle", "the probe contradicts itself", "what reads its own writes needs no time to settle", "keep reads_own_writes or settle")
	}
	happened, negative := p.answers(d, &out)
	if !happened {
		bad("answer", "no answer of the probe means happened", "such a probe could never settle anything", `add [[probe.answer]] with verdict = "happened"`)
	}
	if p.Tested && negative && !p.ReadsOwnWrites && p.Settle == 0 {
		bad("tested", "the probe may prove that nothing happened, and does not say when it sees what was done",
			"a look that comes too early would find nothing", "set reads_own_writes = true or a settle time")
	}
	return out
}

func (p *ProbeDecl) answers(d Declared, out *[]*source.Problem) (happened, negative bool) {
	for i, a := range p.Answer {
		at := append(slices.Clone(d.At), "probe", "answer", i)
		v, ok := verdicts[a.Verdict]
		if !ok {
			*out = append(*out, d.Text.Fault(append(at, "verdict"), fmt.Sprintf("%q is no verdict", a.Verdict), "an answer has to mean something",
				"use happened, not_happened, conflict or inconclusive"))
		}
		if len(a.Codes) == 0 && a.Match == "" {
			*out = append(*out, d.Text.Fault(at, "this answer fits everything", "it has neither codes nor match", "give one of them; what fits no answer is inconclusive anyway"))
		}
		happened = happened || v == machine.VerdictHappened
		negative = negative || v == machine.VerdictNotHappened
		for _, f := range d.slots("probe.answer", a.Match) {
			f.Line = d.Text.Line(append(at, "match")...)
			*out = append(*out, f)
		}
		if _, err := regexp.Compile(slot.ReplaceAllString(a.Match, "x")); err != nil {
			*out = append(*out, d.Text.Fault(append(at, "match"), "the pattern cannot be read", err.Error(), "mend the regular expression"))
		}
	}
	return happened, negative
}

// headerName is a token as HTTP defines one.
var headerName = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")

// badHeader names a header that cannot be sent, "" if all can.
func badHeader(h map[string]string) string {
	for _, name := range keysOf(h) {
		if !headerName.MatchString(name) || strings.ContainsFunc(h[name], func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
			return name
		}
	}
	return ""
}

// badURL says why a URL's template cannot be asked, "" if it can.
func badURL(t string) string {
	rest := t
	if r, ok := strings.CutPrefix(t, "{"+OriginName+"}"); ok {
		if r != "" && r[0] != '/' && r[0] != '?' {
			return "after {origin} comes the path"
		}
		rest = "http://x" + r
	}
	_, after, ok := strings.Cut(rest, "://")
	if !ok {
		return "it does not begin with http:// or https://"
	}
	host, path, _ := strings.Cut(after, "/")
	host, _, _ = strings.Cut(host, "?")
	if len(Slots(host)) > 0 || strings.Contains(path, "{"+OriginName+"}") {
		return "a slot stands where the host is named"
	}
	u, err := url.Parse(slot.ReplaceAllString(rest, "x"))
	switch {
	case err != nil:
		return "it is no URL"
	case u.Scheme != "http" && u.Scheme != "https":
		return "it does not begin with http:// or https://"
	case u.Host == "":
		return "it names no host"
	case u.User != nil:
		return "it holds a user name; use a header with ${env:NAME}"
	case u.Fragment != "":
		return "it holds a fragment, which is never sent"
	}
	return ""
}

// Build makes the contract's probe. It is frozen with the effect: what the file
// says later does not touch it.
func (p *ProbeDecl) Build(v Vars, network bool) (*machine.Probe, error) {
	out := &machine.Probe{
		ReadsOwnWrites: p.ReadsOwnWrites, Settle: p.Settle.Microseconds(), ProvesNot: p.Tested,
		Network: network, Timeout: p.Timeout.Microseconds(), Baseline: p.Baseline == nil || *p.Baseline,
	}
	if p.Network != nil {
		out.Network = *p.Network
	}
	if p.URL != "" {
		if n, ok := v.has(p.URL); !ok {
			return nil, fmt.Errorf("the probe needs %s, which is not given", n)
		}
		out.Kind, out.URL, out.Network = ProbeHTTP, v.URL(p.URL), true
		out.Header = p.Header
	} else {
		words, err := v.Words(p.Command)
		if err != nil {
			return nil, fmt.Errorf("the probe cannot be asked: %w", err)
		}
		out.Kind, out.Command = ProbeCommand, words
	}
	negative := false
	for _, a := range p.Answer {
		if n, ok := v.has(a.Match); !ok {
			return nil, fmt.Errorf("the probe's answers need %s, which is not given", n)
		}
		verdict := verdicts[a.Verdict]
		negative = negative || verdict == machine.VerdictNotHappened
		out.Answers = append(out.Answers, machine.Answer{Verdict: verdict, Codes: a.Codes, Match: v.Pattern(a.Match)})
	}
	out.ProvesNot = out.ProvesNot && negative
	return out, nil
}

// Faults checks a compensation against itself and against the contract around it.
func (c *CompensateDecl) Faults(d Declared) []*source.Problem {
	var out []*source.Problem
	bad := func(key, what, why, next string) {
		out = append(out, d.fault("compensate."+key, what, why, next))
	}
	switch {
	case len(c.Command) == 0 && c.URL == "":
		bad("command", "the compensation does nothing", "it has neither command nor url", "give one of them")
	case len(c.Command) > 0 && (c.URL != "" || c.Method != "" || c.Body != "" || len(c.Header) > 0):
		bad("url", "the compensation is two things", "it has a command and parts of a request", "keep one of them")
	}
	if c.URL != "" {
		if why := badURL(c.URL); why != "" {
			bad("url", "the url of the compensation cannot be used", why, "write an absolute http or https URL, with slots in path and query only")
		}
		if !slices.Contains([]string{"POST", "PUT", "PATCH", "DELETE"}, c.Method) {
			bad("method", fmt.Sprintf("the method %q undoes nothing", c.Method), "a compensation changes the world", "use POST, PUT, PATCH or DELETE")
		}
	}
	if h := badHeader(c.Header); h != "" {
		bad("header", fmt.Sprintf("the header %q cannot be sent", h), "its name or its value holds a character that no header may have", "mend it")
	}
	for _, v := range c.Header {
		if secret.MatchString(v) {
			bad("header", "a header of the compensation asks for a variable", "a compensation is on record as it will be sent, and secrets are not put on record", "undo it by a command, which may be given the variable with env")
		}
	}
	out = append(out, d.slots("compensate.command", c.Command...)...)
	out = append(out, d.slots("compensate.url", c.URL)...)
	out = append(out, d.slots("compensate.body", c.Body)...)
	switch d.Class {
	case machine.ClassRead, machine.ClassWorkspace:
		bad("command", "there is nothing to compensate", fmt.Sprintf("class %s leaves nothing in the world outside the workspace", d.Class), "take the compensation out or change the class")
	case machine.ClassUnknown:
		bad("command", "there is a compensation and no class", "what is undeclared counts as IRREVERSIBLE, which a compensation contradicts",
			"declare the class; COMPENSABLE is meant for this")
	case machine.ClassKeyed, machine.ClassProbeable, machine.ClassCompensable, machine.ClassIrreversible:
	}
	return out
}

// anyYes are the answers of a server that mean done.
var anyYes = []string{"200", "201", "202", "204"}

// Build makes the contract's compensation, frozen like the probe.
func (c *CompensateDecl) Build(v Vars, network bool) (*machine.Compensation, error) {
	out := &machine.Compensation{NullSafe: c.NullSafe, Success: c.Success}
	if c.URL == "" {
		for _, w := range c.Command {
			// A word that is left out would undo something else.
			if n, ok := v.has(w); !ok && !strings.HasPrefix(w, "-") {
				return nil, fmt.Errorf("the compensation needs %s, which is not given", n)
			}
		}
		words, err := v.Words(c.Command)
		if err != nil {
			return nil, fmt.Errorf("the compensation cannot be said: %w", err)
		}
		if c.Network != nil {
			network = *c.Network
		}
		out.Tool, out.Args = "shell", shellArgs(words, network)
		return out, nil
	}
	for _, t := range []string{c.URL, c.Body} {
		if n, ok := v.has(t); !ok {
			return nil, fmt.Errorf("the compensation needs %s, which is not given", n)
		}
	}
	args := map[string]any{"method": c.Method, "url": v.URL(c.URL)}
	if c.Body != "" {
		args["body"] = v.text(c.Body)
	}
	if len(c.Header) > 0 {
		args["headers"] = c.Header
	}
	b, err := json.Marshal(args)
	if err != nil {
		return nil, fmt.Errorf("the compensation cannot be said: %w", err)
	}
	out.Tool, out.Args = "http_request", string(b)
	if len(out.Success) == 0 {
		out.Success = anyYes
	}
	return out, nil
}
