package policy

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Rule lets some actions of a run go without a question. There are two forms:
//
//	git push origin *            a command: literal words, * for exactly one word
//	http POST https://host/path  requests by this method to URLs below these prefixes
//
// A command rule matches only a line that is exactly one simple command of
// literal words. What wraps a command, is chained to it, or redirects it is
// another line. A star stands for one word that is not an option, so that
// "git push origin *" does not cover "git push origin --mirror".
type Rule struct {
	text     string
	words    []pattern // command rule
	method   string    // http rule
	prefixes []*url.URL
}

type pattern struct {
	word string
	any  bool
}

// String is the rule as it was given.
func (r Rule) String() string { return r.text }

// methods that an http rule may name.
var methods = []string{"GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"}

// ParseRule reads a rule. Its errors are sentences for the operator.
func ParseRule(text string) (Rule, error) {
	trimmed := strings.TrimSpace(text)
	if trimmed == "" {
		return Rule{}, ruleError(text, "it is empty", "write a command, as in: git status")
	}
	if err := readable(trimmed); err != nil {
		return Rule{}, ruleError(text, err.Error(), "write the words of one command")
	}
	if strings.ContainsRune(trimmed, '\n') {
		return Rule{}, ruleError(text, "it has more than one line", "give each rule by itself")
	}
	if f := strings.Fields(trimmed); f[0] == "http" && len(f) > 1 && isMethod(f[1]) {
		return httpRule(trimmed, f[1], f[2:])
	}
	file, err := parseFile(trimmed, syntax.LangBash)
	if err != nil {
		return Rule{}, ruleError(text, err.Error(), "quote the characters that a shell treats specially")
	}
	words, err := ruleWords(file)
	if err != nil {
		return Rule{}, ruleError(text, err.Error(), "a rule is one command of literal words, with * for exactly one word")
	}
	r := Rule{text: trimmed, words: words}
	if words[0].any {
		return Rule{}, ruleError(text, "it does not name the program", "begin with the program's name")
	}
	if IsWrapper(base(words[0].word)) && slices.ContainsFunc(words, func(p pattern) bool { return p.any }) {
		return Rule{}, ruleError(text, words[0].word+" runs other programs, so a star there would let any of them go",
			"write that command out in full")
	}
	return r, nil
}

func ruleError(text, why, next string) error {
	return fmt.Errorf("the rule %q cannot be used: %s; %s", text, why, next)
}

// ruleWords returns the words of a rule: literal, or a bare star.
func ruleWords(f *syntax.File) ([]pattern, error) {
	if len(f.Stmts) != 1 {
		return nil, fmt.Errorf("it is not one command")
	}
	st := f.Stmts[0]
	call, ok := st.Cmd.(*syntax.CallExpr)
	switch {
	case !ok:
		return nil, fmt.Errorf("it is not one simple command")
	case st.Negated || st.Background || st.Coprocess || st.Disown:
		return nil, fmt.Errorf("it negates the command or puts it in the background")
	case len(st.Redirs) > 0:
		return nil, fmt.Errorf("it redirects")
	case len(call.Assigns) > 0:
		return nil, fmt.Errorf("it sets variables")
	}
	var out []pattern
	for _, w := range call.Args {
		if len(w.Parts) == 1 {
			if lit, ok := w.Parts[0].(*syntax.Lit); ok && lit.Value == "*" {
				out = append(out, pattern{any: true})
				continue
			}
		}
		s, ok := literal(w)
		if !ok {
			return nil, fmt.Errorf("word %d is neither literal nor a star by itself", len(out)+1)
		}
		out = append(out, pattern{word: s})
	}
	return out, nil
}

// httpRule reads the URL prefixes of "http METHOD URL-PREFIX…". They are split
// at blanks and not read as shell words: URLs are full of a shell's characters.
func httpRule(text, method string, urls []string) (Rule, error) {
	r := Rule{text: text, method: method}
	if !slices.Contains(methods, method) {
		return Rule{}, ruleError(text, "the method "+method+" is not known", "use one of "+strings.Join(methods, ", "))
	}
	if len(urls) == 0 {
		return Rule{}, ruleError(text, "it names no URL", "add the URL that requests must begin with")
	}
	for _, s := range urls {
		u, err := cleanURL(s)
		if err == nil && u.RawQuery != "" {
			err = fmt.Errorf("it holds a query")
		}
		if err != nil {
			return Rule{}, ruleError(text, err.Error(), "give scheme, host, port and path, as in: http POST https://example.com/tickets")
		}
		r.prefixes = append(r.prefixes, u)
	}
	return r, nil
}

func isMethod(s string) bool {
	return s != "" && strings.IndexFunc(s, func(c rune) bool { return c < 'A' || c > 'Z' }) < 0
}

// cleanURL parses a URL whose path can be compared segment by segment: no
// user, no dot segments, no doubled or escaped slashes. Host and port are
// normalised.
func cleanURL(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	if err != nil {
		return nil, fmt.Errorf("it is no URL")
	}
	u.Scheme = strings.ToLower(u.Scheme)
	port := u.Port()
	switch {
	case u.Scheme == "http" && port == "":
		port = "80"
	case u.Scheme == "https" && port == "":
		port = "443"
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("it does not begin with http:// or https://")
	}
	host := strings.ToLower(u.Hostname())
	switch {
	case host == "":
		return nil, fmt.Errorf("it names no host")
	case u.User != nil:
		return nil, fmt.Errorf("it holds a user name")
	case u.Fragment != "" || u.Opaque != "":
		return nil, fmt.Errorf("it holds more than scheme, host, path and query")
	}
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	u.Host = host + ":" + port
	lower := strings.ToLower(u.EscapedPath())
	for _, bad := range []string{"%2f", "%5c", "%2e", "\\", "//", ";"} {
		if strings.Contains(lower, bad) {
			return nil, fmt.Errorf("its path is written in a way that servers read differently")
		}
	}
	for _, seg := range strings.Split(u.Path, "/") {
		if seg == "." || seg == ".." {
			return nil, fmt.Errorf("its path holds dot segments")
		}
	}
	if u.Path == "" {
		u.Path = "/"
	}
	return u, nil
}

// Covers reports whether the rule lets an action go. Whether a rule may be
// used at all for this action (Subject.Like) is decided before.
func (r Rule) Covers(s Subject) bool {
	if len(s.OutsideWrite) > 0 && s.Recipe == "" {
		return false // a line that a rule names says nothing about other places
	}
	if firstOutside(s.Writes) != "" || firstOutside(s.Reads) != "" {
		return false
	}
	if r.method != "" {
		return r.coversRequest(s)
	}
	return r.coversLine(s)
}

func (r Rule) coversLine(s Subject) bool {
	if s.Commands == nil || !s.Commands.Whole || len(s.Commands.Simple) == 0 || s.URL != "" {
		return false
	}
	words := s.Commands.Simple[0].Words
	if len(words) != len(r.words) {
		return false
	}
	for i, p := range r.words {
		if p.any {
			if strings.HasPrefix(words[i], "-") {
				return false
			}
			continue
		}
		if p.word != words[i] {
			return false
		}
	}
	return true
}

func (r Rule) coversRequest(s Subject) bool {
	if s.URL == "" || s.Commands != nil || s.Method != r.method {
		return false
	}
	u, err := cleanURL(s.URL)
	if err != nil {
		return false
	}
	for _, p := range r.prefixes {
		if p.Scheme == u.Scheme && p.Host == u.Host && below(u.Path, p.Path) {
			return true
		}
	}
	return false
}

// below reports whether path is prefix or lies under it, on segment borders.
func below(path, prefix string) bool {
	if path == prefix {
		return true
	}
	return strings.HasPrefix(path, strings.TrimSuffix(prefix, "/")+"/")
}

// Offer is the narrowest rule that covers the action, "" if there is none or
// if what the rule would let go could change behind its words: a program in
// the workspace, or one that runs others.
func Offer(s Subject) string {
	if s.Like || s.Declared || s.Internal {
		return ""
	}
	var text string
	switch {
	case s.URL != "" && s.Commands == nil:
		u, err := cleanURL(s.URL)
		if err != nil {
			return ""
		}
		u.RawQuery = ""
		text = "http " + s.Method + " " + u.String()
	case s.Commands != nil && s.Commands.Whole && len(s.Commands.Simple) > 0:
		words := s.Commands.Simple[0].Words
		if strings.Contains(words[0], "/") && !strings.HasPrefix(words[0], "/") || IsWrapper(base(words[0])) {
			return ""
		}
		text = Join(words)
	default:
		return ""
	}
	r, err := ParseRule(text)
	if err != nil || !r.Covers(s) {
		return ""
	}
	return text
}

func base(word string) string { return word[strings.LastIndexByte(word, '/')+1:] }
