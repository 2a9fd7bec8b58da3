package policy

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
)

// Scope says whose a rule is. Scopes do not outrank each other: a stricter rule
// wins wherever it comes from.
type Scope string

// The scopes, from the widest.
const (
	ScopeBuiltIn Scope = "built-in"
	ScopeUser    Scope = "user"    // the operator's own policy file
	ScopeProject Scope = "project" // the repository's policy file, or a grant for this project
	ScopeRun     Scope = "run"     // --allow, or a grant for this run
)

// Entry is one rule of a set: conditions, all of which must hold, and what is
// decided then. An entry without a condition matches nothing.
type Entry struct {
	Scope    Scope
	From     string // for people: "policy.toml rule 3", "--allow", "grant g2"
	Decision Verdict
	Reason   string
	// Expires bounds how long what an Ask rule asked for stays open or granted, in µs; 0: for ever.
	Expires int64

	Tool    string            // tool name, "" for any
	Pattern *Rule             // command words, or an HTTP request
	Paths   []string          // globs; what is read or written
	Writes  []string          // globs; what is written
	Network *bool             // it uses the network, or does not
	Below   string            // confinement level: it would run below this one
	Reached string            // confinement level: it would run at this one or above
	Over    int64             // the run has spent more than this, micro-USD
	Args    map[string]string // argument name → glob over its value
}

// Set is every rule that holds for one run at one moment.
type Set struct {
	Entries []Entry
	// Allow are rules in the short form of --allow, of the run itself.
	Allow []string
	// Broken says why the rules may not be all there are; then everything asks
	// that touches more than the ledger.
	Broken string
}

// Named is how a decision names the entry.
func (e *Entry) Named() string {
	text := e.Condition()
	if e.From == "" {
		return fmt.Sprintf("%s: %s %s", e.Scope, e.Decision, text)
	}
	return fmt.Sprintf("%s (%s): %s %s", e.Scope, e.From, e.Decision, text)
}

// Condition is what the entry matches, in one line.
func (e *Entry) Condition() string {
	var out []string
	add := func(format string, a ...any) { out = append(out, fmt.Sprintf(format, a...)) }
	if e.Tool != "" {
		add("tool %s", e.Tool)
	}
	if e.Pattern != nil {
		add("%s", e.Pattern)
	}
	if len(e.Paths) > 0 {
		add("touching %s", strings.Join(e.Paths, ", "))
	}
	if len(e.Writes) > 0 {
		add("writing %s", strings.Join(e.Writes, ", "))
	}
	if e.Network != nil {
		if *e.Network {
			add("with the network")
		} else {
			add("without the network")
		}
	}
	if e.Below != "" {
		add("below level %s", e.Below)
	}
	if e.Reached != "" {
		add("from level %s", e.Reached)
	}
	if e.Over > 0 {
		add("once the run has spent $%.2f", float64(e.Over)/1e6)
	}
	for _, k := range sortedKeys(e.Args) {
		add("%s = %s", k, e.Args[k])
	}
	return strings.Join(out, ", ")
}

func sortedKeys(m map[string]string) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// match is whether an entry applies.
type match uint8

const (
	no      match = iota
	perhaps       // the line hides what would decide it
	yes
)

// Decide judges one action. The order is fixed: what cannot run is refused;
// then deny rules; then what resembles an unresolved effect asks; then ask
// rules; then the built-in table lets go; then an allow rule may; the rest asks.
func (set Set) Decide(s Subject) Decision {
	if strings.IndexByte(s.Line, 0) >= 0 {
		return Decision{Verdict: Deny, Rule: "built-in: unrunnable", Why: "the line holds a NUL byte, which no program can be given", Scope: ScopeBuiltIn}
	}
	var hidden *Entry
	for i := range set.Entries {
		e := &set.Entries[i]
		if e.Decision != Deny {
			continue
		}
		switch e.tightens(&s) {
		case yes:
			return Decision{Verdict: Deny, Rule: e.Named(), Why: orElse(e.Reason, "a rule denies it"), Scope: e.Scope}
		case perhaps:
			if hidden == nil {
				hidden = e
			}
		case no:
		}
	}
	if s.Like {
		return Decision{
			Verdict: Ask, Rule: "built-in: like an unresolved effect", Scope: ScopeBuiltIn,
			Why: "it resembles an action whose outcome is still unknown, so no rule lets it go",
		}
	}
	for i := range set.Entries {
		e := &set.Entries[i]
		if e.Decision == Ask && e.tightens(&s) != no {
			return Decision{Verdict: Ask, Rule: e.Named(), Why: orElse(e.Reason, "a rule asks"), Scope: e.Scope, Expires: e.Expires}
		}
	}
	if set.Broken != "" && !s.Internal {
		return Decision{Verdict: Ask, Rule: "built-in: broken policy", Why: set.Broken, Scope: ScopeBuiltIn}
	}
	if hidden != nil {
		return Decision{
			Verdict: Ask, Rule: hidden.Named(), Scope: hidden.Scope,
			Why: "the line does not tell everything it would do, so a rule that denies may apply: " + orElse(hidden.Reason, hidden.Condition()),
		}
	}
	if d, ok := builtIn(s); ok {
		return d
	}
	for i := range set.Entries {
		if e := &set.Entries[i]; e.Decision == Allow && e.covers(&s) {
			return Decision{Verdict: Allow, Rule: e.Named(), Why: orElse(e.Reason, "a rule allows it"), Scope: e.Scope}
		}
	}
	for _, text := range set.Allow {
		r, err := ParseRule(text)
		if err == nil && r.Covers(s) {
			return Decision{Verdict: Allow, Rule: "allow: " + r.String(), Why: "the run's rules allow it", Scope: ScopeRun}
		}
	}
	return Decision{Verdict: Ask, Rule: "built-in: ask", Why: whyAsk(s), Scope: ScopeBuiltIn}
}

func orElse(s, other string) string {
	if s != "" {
		return s
	}
	return other
}

// covers: an allow entry must match the whole action, for certain.
func (e *Entry) covers(s *Subject) bool {
	if !e.conditional() || !e.plain(s) {
		return false
	}
	if e.Pattern != nil {
		if !e.Pattern.Covers(*s) {
			return false
		}
	} else if s.Commands != nil || s.URL != "" || len(s.OutsideWrite) > 0 {
		return false // a command or a request is allowed by its own words only
	}
	if len(e.Paths) > 0 && !allUnder(e.Paths, s.Reads, s.Writes) {
		return false
	}
	if len(e.Writes) > 0 && (len(s.Writes) == 0 || !allUnder(e.Writes, s.Writes)) {
		return false
	}
	return true
}

// allUnder: there is a path, and each is known and matches one of the globs.
func allUnder(globs []string, lists ...[]Access) bool {
	n := 0
	for _, l := range lists {
		for _, a := range l {
			if n++; a.Path == "" || !anyGlob(globs, a.names()) {
				return false
			}
		}
	}
	return n > 0
}

// tightens: a deny or ask entry matches if any part of the action does.
func (e *Entry) tightens(s *Subject) match {
	if !e.conditional() || !e.plain(s) {
		return no
	}
	out := yes
	if e.Pattern != nil {
		out = min(out, e.Pattern.within(s))
	}
	if len(e.Paths) > 0 {
		out = min(out, touches(e.Paths, s, false))
	}
	if len(e.Writes) > 0 {
		out = min(out, touches(e.Writes, s, true))
	}
	return out
}

func (e *Entry) conditional() bool {
	return e.Tool != "" || e.Pattern != nil || len(e.Paths) > 0 || len(e.Writes) > 0 || e.Network != nil || e.Below != "" ||
		e.Reached != "" || e.Over > 0 || len(e.Args) > 0
}

// plain checks the conditions that have no parts. What Pawl does in its own
// record is judged by rules that name the tool only.
func (e *Entry) plain(s *Subject) bool {
	switch {
	case e.Tool != "" && e.Tool != s.Tool:
		return false
	case e.Tool == "" && s.Internal:
		return false
	case e.Network != nil && *e.Network != s.Network:
		return false
	case e.Below != "" && levelRank(s.Level) >= levelRank(e.Below):
		return false
	case e.Reached != "" && levelRank(s.Level) < levelRank(e.Reached):
		return false
	case e.Over > 0 && s.Spent <= e.Over:
		return false
	}
	if len(e.Args) == 0 {
		return true
	}
	var args map[string]json.RawMessage
	if json.Unmarshal(s.Args, &args) != nil {
		return false
	}
	for k, glob := range e.Args {
		raw, ok := args[k]
		if !ok {
			return false
		}
		var text string
		if json.Unmarshal(raw, &text) != nil {
			text = string(raw)
		}
		if !globText(glob, text) {
			return false
		}
	}
	return true
}

// Levels of confinement, from the loosest. An unknown level counts as none.
var levels = []string{"none", "partial", "guarded", "sealed"}

func levelRank(s string) int { return max(slices.Index(levels, s), 0) }

// within reports whether any command of a line, or the request, is one the
// pattern is about: its words stand at the beginning. A program may be written
// with or without its folder.
func (r *Rule) within(s *Subject) match {
	if r.method != "" {
		if s.URL == "" {
			return no
		}
		if s.Method != r.method {
			return no
		}
		u, err := cleanURL(s.URL)
		if err != nil {
			return perhaps
		}
		for _, p := range r.prefixes {
			if p.Scheme == u.Scheme && p.Host == u.Host && below(u.Path, p.Path) {
				return yes
			}
		}
		return no
	}
	if s.Commands == nil {
		return no
	}
	out := no
	for i := range s.Commands.Simple {
		out = max(out, r.begins(&s.Commands.Simple[i]))
	}
	if out == no && s.Commands.Hidden {
		return perhaps
	}
	return out
}

// begins compares word by word; options between the words do not
// hide them: "git -C x push" is a "git push".
func (r *Rule) begins(c *Simple) match {
	if len(c.Words) == 0 {
		return no
	}
	out := yes
	prog, ok := c.Word(0)
	switch {
	case !ok:
		out = perhaps
	case r.words[0].any:
	case strings.Contains(r.words[0].word, "/"):
		if prog != r.words[0].word && base(prog) != base(r.words[0].word) {
			return no
		}
	case base(prog) != r.words[0].word:
		return no
	}
	if m := subsequence(r.words[1:], c, 1); m < out {
		out = m
	}
	return out
}

// subsequence: the pattern's words follow in this order, with nothing between
// them but options, and words that may be the value of one: "git stash push" is
// no "git push". An opaque word may be any of them, or several.
func subsequence(want []pattern, c *Simple, from int) match {
	i := 0
	option := false // the word before is an option, so the next may be its value
	for w := from; i < len(want); w++ {
		if w >= len(c.Words) {
			if c.Open {
				return perhaps
			}
			return no
		}
		word, ok := c.Word(w)
		switch {
		case !ok:
			return perhaps
		case !want[i].any && word == want[i].word, want[i].any && !strings.HasPrefix(word, "-"):
			i++
			option = false
		case strings.HasPrefix(word, "-"):
			option = true
		case !option:
			return no
		default:
			option = false
		}
	}
	return yes
}

// touches reports whether an action reads or writes below one of the globs.
func touches(globs []string, s *Subject, writes bool) match {
	for _, a := range s.Writes {
		if anyGlob(globs, a.names()) {
			return yes
		}
	}
	for _, p := range s.OutsideWrite {
		if anyGlob(globs, []string{p}) {
			return yes
		}
	}
	if !writes {
		for _, a := range s.Reads {
			if anyGlob(globs, a.names()) {
				return yes
			}
		}
	}
	if s.Commands == nil {
		return no
	}
	return s.Commands.touches(globs, writes)
}

// touches looks at what a line names: the targets of its redirections, where it
// changes to, and every word that could be a path. What a program does with a
// path cannot be told, so for a rule about writing any word counts as well.
func (c *Commands) touches(globs []string, writes bool) match {
	dirs := []string{""}
	opaque := c.Hidden
	hit := func(p string) bool {
		if p == "" {
			return false
		}
		for _, d := range dirs {
			full := p
			if !path.IsAbs(p) && d != "" {
				full = path.Join(d, p)
			}
			if anyGlob(globs, []string{path.Clean(full)}) {
				return true
			}
		}
		return false
	}
	for i := range c.Simple {
		s := &c.Simple[i]
		for _, r := range s.Redirects {
			switch {
			case writes && !r.Writes(), r.Op == "<<", r.Op == "<<-", r.Op == "<<<", isDescriptor(r.Target):
			case !r.Literal:
				opaque = true
			case hit(r.Target):
				return yes
			}
		}
		for w := range s.Words {
			word, ok := s.Word(w)
			if !ok {
				opaque = true
				continue
			}
			if w == 0 && !strings.Contains(word, "/") {
				continue // a program found by PATH
			}
			if hit(word) || hit(afterEquals(word)) {
				return yes
			}
		}
		if s.Open {
			opaque = true
		}
		if name := s.Program(); name == "cd" || name == "pushd" {
			switch to, ok := s.Word(1); {
			case !ok || len(s.Words) != 2 || len(dirs) > 16:
				opaque = true
			case path.IsAbs(to):
				dirs = append(dirs, to)
			default:
				for _, d := range slices.Clone(dirs) {
					dirs = append(dirs, path.Join(d, to))
				}
			}
		}
	}
	if opaque {
		return perhaps
	}
	return no
}

// afterEquals is the path in --file=PATH or if=PATH.
func afterEquals(word string) string {
	_, v, _ := strings.Cut(word, "=")
	return v
}

// names are the ways in which a rule may name a path: as it is, and as it is
// relative to the workspace.
func (a Access) names() []string {
	if a.Rel != "" {
		return []string{a.Path, a.Rel}
	}
	return []string{a.Path}
}

func anyGlob(globs, names []string) bool {
	for _, g := range globs {
		for _, n := range names {
			if n != "" && globPath(g, n) {
				return true
			}
		}
	}
	return false
}

// globPath matches a path by segments: "*" and "?" within one, "**" for any
// number of them. A pattern without a slash matches any one segment; "dir/**"
// matches dir itself too. It allocates nothing: a line has many words.
func globPath(glob, name string) bool {
	name = strings.TrimPrefix(path.Clean(name), "./")
	glob = strings.TrimPrefix(glob, "./")
	if !strings.Contains(glob, "/") {
		for more := true; more; {
			var seg string
			if seg, name, more = strings.Cut(name, "/"); globSegment(glob, seg) {
				return true
			}
		}
		return false
	}
	return globSegments(glob, name)
}

// globSegment matches one segment.
func globSegment(glob, seg string) bool {
	if !strings.ContainsAny(glob, `*?[\`) {
		return glob == seg
	}
	ok, _ := path.Match(glob, seg)
	return ok
}

func globSegments(glob, name string) bool {
	for gmore, nmore := true, true; gmore; {
		var g, n string
		g, glob, gmore = strings.Cut(glob, "/")
		if g == "**" {
			if !gmore {
				return true
			}
			for ; nmore; _, name, nmore = strings.Cut(name, "/") {
				if globSegments(glob, name) {
					return true
				}
			}
			return false
		}
		if !nmore {
			return false
		}
		if n, name, nmore = strings.Cut(name, "/"); !globSegment(g, n) {
			return false
		}
		if !gmore {
			return !nmore
		}
	}
	return false
}

// globText matches a whole text; "*" stands for any characters, slashes too.
func globText(glob, s string) bool {
	parts := strings.Split(glob, "*")
	if len(parts) == 1 {
		return glob == s
	}
	if !strings.HasPrefix(s, parts[0]) {
		return false
	}
	s = s[len(parts[0]):]
	for _, p := range parts[1 : len(parts)-1] {
		i := strings.Index(s, p)
		if i < 0 {
			return false
		}
		s = s[i+len(p):]
	}
	return strings.HasSuffix(s, parts[len(parts)-1])
}

// Tightest drops what a file that is not trusted may not do: its allow rules.
func Tightest(es []Entry) []Entry {
	return slices.DeleteFunc(slices.Clone(es), func(e Entry) bool { return e.Decision == Allow })
}

// Applies reports whether a deny or ask entry is about an action, or may be.
func (e *Entry) Applies(s Subject) bool { return e.tightens(&s) != no }
