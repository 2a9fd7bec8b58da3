package scripted

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/BurntSushi/toml"

	"pawl/engine/machine"
)

// The document as it is written; docs/scripts.md explains the keys.
type (
	scriptDoc struct {
		Name  string    `toml:"name"`
		Steps []stepDoc `toml:"step"`
	}
	stepDoc struct {
		Label       string      `toml:"label"`
		Expect      []string    `toml:"expect"`
		Reject      []string    `toml:"reject"`
		Repeat      *int        `toml:"repeat"`
		RepeatUntil []string    `toml:"repeat_until"`
		Branches    []branchDoc `toml:"branch"`
		answerDoc
	}
	branchDoc struct {
		Match []string `toml:"match"`
		answerDoc
	}
	answerDoc struct {
		Say          string    `toml:"say"`
		Calls        []callDoc `toml:"call"`
		DelayMS      int       `toml:"delay_ms"`
		Stop         string    `toml:"stop"`
		Fail         string    `toml:"fail"`
		FailAt       string    `toml:"fail_at"`
		FailTimes    *int      `toml:"fail_times"`
		RetryAfterMS int64     `toml:"retry_after_ms"`
		CostUSD      float64   `toml:"cost_usd"`
		Goto         string    `toml:"goto"`
	}
	callDoc struct {
		Tool string         `toml:"tool"`
		ID   string         `toml:"id"`
		Raw  *string        `toml:"raw"`
		Args map[string]any `toml:"args"`
	}
)

// maxRepeat bounds a step that repeats until it is shown something.
const maxRepeat = 1000

// ParseError says where a script is wrong and how to mend it.
type ParseError struct {
	File string
	Line int // 0: of the whole file
	What string
	Mend string
}

func (e *ParseError) Error() string {
	at := e.File
	if e.Line > 0 {
		at = fmt.Sprintf("%s, line %d", e.File, e.Line)
	}
	return strings.TrimSpace(fmt.Sprintf("script %s: %s. %s", at, e.What, e.Mend))
}

// Parse reads a script. file is its name in messages; nothing is opened. The
// error is a *ParseError.
func Parse(file string, b []byte) (*Script, error) {
	p := parser{file: file, lines: strings.Split(string(b), "\n")}
	var doc scriptDoc
	md, err := toml.Decode(string(b), &doc)
	if err != nil {
		return nil, p.syntax(err)
	}
	for _, k := range md.Undecoded() {
		if !slices.Contains(k[:len(k)-1], "args") { // whatever stands in args belongs to the tool
			return nil, p.unknownKey(k)
		}
	}
	if len(doc.Steps) == 0 {
		return nil, p.fail(0, "it has no step", "Add at least one [[step]] with a `say` or a [[step.call]]")
	}
	s := &Script{Name: doc.Name, file: file, labels: map[string]int{}}
	if s.Name == "" {
		s.Name = file
	}
	heads := p.stepLines()
	for i, d := range doc.Steps {
		p.line = 0
		if i < len(heads) {
			p.line = heads[i]
		}
		if d.Label == "" {
			continue
		}
		if j, dup := s.labels[d.Label]; dup {
			return nil, p.fail(p.line, fmt.Sprintf("step %d has the label %q, which step %d has already", i+1, d.Label, j+1), "Give it another label")
		}
		s.labels[d.Label] = i
	}
	for i, d := range doc.Steps {
		p.line, p.step = 0, i+1
		if i < len(heads) {
			p.line = heads[i]
		}
		st, err := p.readStep(d, s.labels)
		if err != nil {
			return nil, err
		}
		s.steps = append(s.steps, st)
	}
	return s, nil
}

// parser holds what messages need: the file, its lines, the step at hand.
type parser struct {
	file  string
	lines []string
	line  int
	step  int
}

func (p *parser) fail(line int, what, mend string) error {
	if mend != "" && !strings.HasSuffix(mend, ".") {
		mend += "."
	}
	return &ParseError{File: p.file, Line: line, What: what, Mend: mend}
}

func (p *parser) here(mend, format string, args ...any) error {
	return p.fail(p.line, fmt.Sprintf("step %d: ", p.step)+fmt.Sprintf(format, args...), mend)
}

func (p *parser) syntax(err error) error {
	var pe toml.ParseError
	if errors.As(err, &pe) {
		what := pe.Message
		if what == "" {
			what = strings.TrimPrefix(pe.Error(), "toml: ")
		}
		return p.fail(pe.Position.Line, what, "Scripts are TOML; docs/scripts.md shows the keys")
	}
	return p.fail(0, strings.TrimPrefix(err.Error(), "toml: "), "docs/scripts.md shows the keys and their types")
}

func (p *parser) unknownKey(k toml.Key) error {
	name := k[len(k)-1]
	re := regexp.MustCompile(`^\s*(\[\[?\s*([\w.-]+\.)?)?"?` + regexp.QuoteMeta(name) + `"?\s*[\].={]`)
	line := slices.IndexFunc(p.lines, re.MatchString) + 1
	return p.fail(line, fmt.Sprintf("%q is no key of a script", k.String()), "Check its spelling against docs/scripts.md")
}

var stepHead = regexp.MustCompile(`^\s*\[\[\s*step\s*\]\]`)

// stepLines finds the lines of the step headers. A header inside a multi-line
// string would count too; only a line number in a message would be wrong then.
func (p *parser) stepLines() []int {
	var out []int
	for i, l := range p.lines {
		if stepHead.MatchString(l) {
			out = append(out, i+1)
		}
	}
	return out
}

func (p *parser) readStep(d stepDoc, labels map[string]int) (step, error) {
	st := step{line: p.line, label: d.Label, expect: d.Expect, reject: d.Reject, until: d.RepeatUntil, repeat: 1}
	switch {
	case d.Repeat != nil && (*d.Repeat < 1 || *d.Repeat > maxRepeat):
		return st, p.here("", "`repeat` is %d; it must be from 1 to %d", *d.Repeat, maxRepeat)
	case d.Repeat != nil:
		st.repeat = *d.Repeat
	case len(d.RepeatUntil) > 0:
		st.repeat = maxRepeat
	}
	var err error
	// A step that only branches needs no answer of its own.
	if st.own, err = p.readAnswer(d.answerDoc, labels, len(d.Branches) > 0); err != nil {
		return st, err
	}
	for i, b := range d.Branches {
		if len(b.Match) == 0 {
			return st, p.here("Say what must have been shown, or make it the step's own answer", "branch %d has no `match`", i+1)
		}
		a, err := p.readAnswer(b.answerDoc, labels, false)
		if err != nil {
			return st, err
		}
		st.branches = append(st.branches, branch{match: b.Match, answer: a})
	}
	return st, nil
}

func (p *parser) readAnswer(d answerDoc, labels map[string]int, mayBeEmpty bool) (answer, error) {
	a := answer{say: d.Say, next: -1, failTimes: 1}
	var err error
	for i, c := range d.Calls {
		if c.Raw != nil && c.Args != nil {
			return a, p.here("Keep one of them", "call %d has both `raw` and `args`", i+1)
		}
		k := call{tool: c.Tool, id: c.ID, args: c.Args, rawd: c.Raw != nil}
		if c.Raw != nil {
			k.raw = *c.Raw
		}
		a.calls = append(a.calls, k)
	}
	if a.stop, err = p.readStop(d.Stop, len(a.calls) > 0); err != nil {
		return a, err
	}
	if err := p.readFailure(d, &a); err != nil {
		return a, err
	}
	if d.Goto != "" {
		i, ok := labels[d.Goto]
		if !ok {
			return a, p.here("Give a step that label", "`goto` names the label %q, which no step has", d.Goto)
		}
		a.next = i
	}
	if d.DelayMS < 0 || d.DelayMS > 60_000 {
		return a, p.here("", "`delay_ms` is %d; it must be from 0 to 60000", d.DelayMS)
	}
	a.delay = time.Duration(d.DelayMS) * time.Millisecond
	if d.CostUSD < 0 || d.CostUSD > 1e6 || math.IsNaN(d.CostUSD) {
		return a, p.here("", "`cost_usd` is %v; it must be from 0 to a million", d.CostUSD)
	}
	a.cost = int64(math.Round(d.CostUSD * 1e6))
	if a.say == "" && len(a.calls) == 0 && a.fail == "" && !mayBeEmpty {
		return a, p.here("Give it a `say` or a [[step.call]]; an empty answer on purpose is `fail = \"empty\"`", "it says nothing and calls nothing")
	}
	if err := p.checkTemplates(a); err != nil {
		return a, err
	}
	return a, nil
}

func (p *parser) readStop(s string, calls bool) (machine.StopReason, error) {
	switch s {
	case "":
		if calls {
			return machine.StopTools, nil
		}
		return machine.StopEnd, nil
	case "tools":
		return machine.StopTools, nil
	case "end", "end_turn":
		return machine.StopEnd, nil
	case "length":
		return machine.StopLength, nil
	case "refusal":
		return machine.StopRefusal, nil
	}
	return "", p.here("Use one of end, tools, length, refusal", "`stop` is %q", s)
}

var failures = []machine.FailClass{
	machine.FailCut, machine.FailRate, machine.FailOverload, machine.FailServer, machine.FailNetwork, machine.FailAuth,
	machine.FailQuota, machine.FailContext, machine.FailNotFound, machine.FailBadRequest, machine.FailEmpty,
}

func (p *parser) readFailure(d answerDoc, a *answer) error {
	if d.Fail == "" {
		if d.FailAt != "" || d.FailTimes != nil || d.RetryAfterMS != 0 {
			return p.here("Say which failure with `fail`", "`fail_at`, `fail_times` and `retry_after_ms` mean nothing without `fail`")
		}
		return nil
	}
	a.fail = machine.FailClass(d.Fail)
	if !slices.Contains(failures, a.fail) {
		return p.here(fmt.Sprintf("Use one of %s", joinClasses(failures)), "`fail` is %q", d.Fail)
	}
	a.failAt = FailAt(d.FailAt)
	switch a.failAt {
	case "":
		a.failAt = FailAtStart
		if a.fail == machine.FailCut {
			a.failAt = FailAtText
		}
	case FailAtStart, FailAtText, FailAtCalls:
	case FailAtArgs:
		if len(a.calls) == 0 {
			return p.here("Add a call or use another place", "`fail_at` is \"args\", but there is no call")
		}
	default:
		return p.here("Use one of start, text, args, calls", "`fail_at` is %q", d.FailAt)
	}
	if d.FailTimes != nil {
		if *d.FailTimes == 0 || *d.FailTimes < -1 {
			return p.here("", "`fail_times` is %d; it must be -1 (always) or at least 1", *d.FailTimes)
		}
		a.failTimes = *d.FailTimes
	}
	if d.RetryAfterMS < 0 || d.RetryAfterMS > int64(365*24*time.Hour/time.Millisecond) {
		return p.here("", "`retry_after_ms` is %d; it must be from 0 to a year", d.RetryAfterMS)
	}
	a.retryAfter = time.Duration(d.RetryAfterMS) * time.Millisecond
	return nil
}

func joinClasses(cs []machine.FailClass) string {
	ss := make([]string, len(cs))
	for i, c := range cs {
		ss[i] = string(c)
	}
	return strings.Join(ss, ", ")
}

// checkTemplates compiles every {{last:REGEX}} once, so that a broken one is
// found when the script is read and not in the middle of a run.
func (p *parser) checkTemplates(a answer) error {
	texts := []string{a.say}
	for _, c := range a.calls {
		texts = append(texts, c.raw, c.id, c.tool)
		texts = collectStrings(texts, c.args)
	}
	for _, t := range texts {
		for _, f := range fields(t) {
			if f.kind != fieldLast {
				continue
			}
			re, err := regexp.Compile(f.arg)
			if err != nil {
				return p.here("It is a regular expression of Go", "{{last:%s}}: %v", f.arg, err)
			}
			if re.NumSubexp() == 0 {
				return p.here("Put ( ) around what is to be taken", "{{last:%s}} has no group", f.arg)
			}
		}
	}
	return nil
}

func collectStrings(out []string, v any) []string {
	switch x := v.(type) {
	case string:
		out = append(out, x)
	case map[string]any:
		for _, e := range x {
			out = collectStrings(out, e)
		}
	case []map[string]any:
		for _, e := range x {
			out = collectStrings(out, e)
		}
	case []any:
		for _, e := range x {
			out = collectStrings(out, e)
		}
	}
	return out
}
