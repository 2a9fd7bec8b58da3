package policy

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// Bounds of what is parsed. The parser recurses, and a stack that outgrows its
// limit cannot be caught, so a line beyond them is not parsed at all: it counts
// as unresolved and asks.
const (
	maxLine    = 64 << 10 // bytes
	maxOpeners = 4096     // opening brackets and backquotes, quoted or not
	maxNested  = 8        // shells within shells: sh -c 'sh -c …'
	maxWrapped = 16       // wrappers around one command: env nice env …
	maxSimple  = 8192     // simple commands kept of one line
	maxReasons = 32       // reasons kept in Unresolved
)

// Commands is what a shell line would run, as far as the line itself can tell.
type Commands struct {
	// Simple holds every simple command in the order of the text: in pipes,
	// lists, substitutions, functions, here-documents, and behind wrappers. A
	// wrapper stands before what it wraps.
	Simple []Simple
	// Whole: the line is exactly one simple command of literal words, without
	// redirections or assignments, and bash and POSIX shells agree on its words.
	Whole bool
	// Unresolved says why the line cannot be resolved, one sentence a reason.
	// Empty means that Simple is everything the shell itself would start.
	Unresolved []string
	// Hidden: commands may be started that Simple does not show. Words that are
	// not literal alone do not hide a command whose program is.
	Hidden bool
}

// Simple is one simple command.
type Simple struct {
	// Words are the program and its arguments with quotes removed. A word that
	// is not literal is kept as its source text and listed in Opaque.
	Words  []string
	Opaque []int // indices into Words, ascending
	Assign []string
	// Redirects of the command, or of the compound command if there are no Words.
	Redirects []Redirect
	// Wrapper are the programs it was unwrapped from, outermost first: "sudo", "sh".
	Wrapper []string
	// Open: more words follow that only the run time knows (xargs, find -exec).
	Open bool
}

// Redirect is one redirection.
type Redirect struct {
	Op      string // ">", ">>", "<", "<<", "2>" is N "2" and Op ">"
	N       string // file descriptor as written, "" if none
	Target  string // file, descriptor, or the here-document's delimiter
	Literal bool   // Target is what it will be
	Body    string // of a here-document or here-string that is literal
}

// Writes reports whether the redirection may change a file.
func (r Redirect) Writes() bool {
	switch r.Op {
	case ">", ">>", ">|", "&>", "&>>", "<>":
		return true
	case ">&":
		return !isDescriptor(r.Target)
	}
	return false
}

func isDescriptor(s string) bool {
	if s == "-" {
		return true
	}
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// Literal reports whether all words are literal.
func (s Simple) Literal() bool { return len(s.Words) > 0 && len(s.Opaque) == 0 }

// Word returns word i if there is one and it is literal.
func (s Simple) Word(i int) (string, bool) {
	if i < 0 || i >= len(s.Words) {
		return "", false
	}
	for _, o := range s.Opaque {
		if o == i {
			return "", false
		}
	}
	return s.Words[i], true
}

// Program is the base name of the program, "" if it is not literal.
func (s Simple) Program() string {
	w, ok := s.Word(0)
	if !ok {
		return ""
	}
	return w[strings.LastIndexByte(w, '/')+1:]
}

// Parse reads a shell line. The Commands it returns are usable with an error
// too: they say that the line is unresolved, and why. It never panics.
func Parse(line string) (Commands, error) {
	c := collector{}
	err := c.parse(line, nil, 0)
	if err != nil {
		c.unresolved("%s", err)
	}
	whole := err == nil && len(c.out.Simple) > 0 && c.whole && len(c.out.Simple[0].Words) > 0 && agrees(line, c.out.Simple[0].Words)
	c.out.Whole = whole
	return c.out, err
}

// collector gathers simple commands from syntax trees.
type collector struct {
	out   Commands
	whole bool // set by the outermost parse only
}

func (c *collector) unresolved(format string, args ...any) {
	c.out.Hidden = true
	c.vague(format, args...)
}

// vague keeps a reason that hides no command.
func (c *collector) vague(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if len(text) > 200 {
		text = strings.ToValidUTF8(text[:200], "") + "…"
	}
	for _, u := range c.out.Unresolved {
		if u == text {
			return
		}
	}
	switch n := len(c.out.Unresolved); {
	case n < maxReasons:
		c.out.Unresolved = append(c.out.Unresolved, text)
	case n == maxReasons:
		c.out.Unresolved = append(c.out.Unresolved, "and more")
	}
}

// parse adds the commands of one line, found behind the given wrappers.
func (c *collector) parse(line string, wrapper []string, depth int) error {
	if err := readable(line); err != nil {
		return err
	}
	file, err := parseFile(line, syntax.LangBash)
	if err != nil {
		return err
	}
	if depth == 0 {
		c.whole = isWhole(file)
	}
	w := walker{collector: c, line: line, wrapper: wrapper, depth: depth}
	w.file(file)
	return nil
}

// readable refuses what is not parsed at all.
func readable(line string) error {
	if len(line) > maxLine {
		return fmt.Errorf("the line is longer than %d KiB", maxLine>>10)
	}
	if !utf8.ValidString(line) {
		return fmt.Errorf("the line is not valid UTF-8")
	}
	openers := 0
	for i := 0; i < len(line); i++ {
		switch b := line[i]; {
		case b == '(' || b == '{' || b == '[' || b == '`':
			openers++
		case b == '\t' || b == '\n':
		case b < 0x20 || b == 0x7f:
			return fmt.Errorf("the line holds the control character 0x%02x", b)
		}
	}
	if openers > maxOpeners {
		return fmt.Errorf("the line nests too deeply to be read: more than %d opening brackets", maxOpeners)
	}
	return nil
}

// parseFile parses one line and turns a panic of the parser into an error.
func parseFile(line string, lang syntax.LangVariant) (file *syntax.File, err error) {
	defer func() {
		if r := recover(); r != nil {
			file, err = nil, fmt.Errorf("the line cannot be read as shell: the parser gave up")
		}
	}()
	file, err = syntax.NewParser(syntax.Variant(lang)).Parse(strings.NewReader(line), "")
	if err != nil {
		return nil, fmt.Errorf("the line cannot be read as shell: %w", err)
	}
	return file, nil
}

// isWhole reports whether a file is exactly one plain simple command of literal words.
func isWhole(f *syntax.File) bool {
	_, ok := plain(f)
	return ok
}

// plain returns the words of a file that is one simple command and nothing else.
func plain(f *syntax.File) ([]string, bool) {
	if len(f.Stmts) != 1 {
		return nil, false
	}
	st := f.Stmts[0]
	call, ok := st.Cmd.(*syntax.CallExpr)
	if !ok || st.Negated || st.Background || st.Coprocess || st.Disown || len(st.Redirs) > 0 || len(call.Assigns) > 0 {
		return nil, false
	}
	words := make([]string, len(call.Args))
	for i, a := range call.Args {
		if words[i], ok = literal(a); !ok {
			return nil, false
		}
	}
	return words, len(words) > 0
}

// agrees reports whether a plain POSIX shell reads the same words. Where bash
// and sh differ on a line, no rule may stand on either reading.
func agrees(line string, words []string) bool {
	f, err := parseFile(line, syntax.LangPOSIX)
	if err != nil {
		return false
	}
	other, ok := plain(f)
	if !ok || len(other) != len(words) {
		return false
	}
	for i := range words {
		if words[i] != other[i] {
			return false
		}
	}
	return true
}
