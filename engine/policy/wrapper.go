package policy

import (
	"slices"
	"strings"
)

// wrapper is a program that runs another one given in its own arguments.
type wrapper struct {
	flags    string   // short options without a value
	values   string   // short options with a value, attached or as the next word
	long     []string // long options without a value, or with one after "="
	longArgs []string // long options whose value may be the next word
	operands int      // words of its own between options and command
	assigns  bool     // NAME=VALUE words may stand before the command
	number   bool     // an option may be a number: nice -10
	shell    string   // short options after which the words are a shell's text
}

// wrappers are unwrapped; everything else is a program like any other. An
// option that is not listed leaves the wrapper unresolved.
var wrappers = map[string]wrapper{
	"env":     {flags: "i0v", values: "uC", long: []string{"ignore-environment", "null", "debug"}, longArgs: []string{"unset", "chdir"}, assigns: true},
	"xargs":   {flags: "0rtxop", values: "aIdELnPs", long: []string{"null", "no-run-if-empty", "verbose", "exit", "open-tty"}, longArgs: []string{"arg-file", "delimiter", "max-args", "max-procs", "max-chars", "max-lines", "replace"}},
	"sudo":    {flags: "AbEHnPkS", values: "ugCDhpRrtTU", long: []string{"preserve-env", "non-interactive", "background", "set-home", "stdin", "askpass"}, longArgs: []string{"user", "group", "chdir", "host", "prompt"}, assigns: true},
	"doas":    {flags: "n", values: "uC"},
	"timeout": {flags: "v", values: "ks", long: []string{"foreground", "preserve-status", "verbose"}, longArgs: []string{"kill-after", "signal"}, operands: 1},
	"nohup":   {},
	"setsid":  {flags: "cfw", long: []string{"ctty", "fork", "wait"}},
	"command": {flags: "p"},
	"builtin": {},
	"exec":    {flags: "cl", values: "a"},
	"time":    {flags: "apqv", values: "fo", long: []string{"append", "portability", "quiet", "verbose"}, longArgs: []string{"format", "output"}},
	"nice":    {values: "n", longArgs: []string{"adjustment"}, number: true},
	"ionice":  {flags: "t", values: "cn", long: []string{"ignore"}, longArgs: []string{"class", "classdata"}},
	"chrt":    {flags: "abdfior", long: []string{"batch", "fifo", "idle", "other", "rr"}, operands: 1},
	"taskset": {flags: "a", operands: 1},
	"stdbuf":  {values: "ieo", longArgs: []string{"input", "output", "error"}},
	"flock":   {flags: "enosuxF", values: "wE", long: []string{"exclusive", "shared", "nonblock", "unlock", "close", "no-fork"}, longArgs: []string{"timeout", "wait", "conflict-exit-code"}, operands: 1, shell: "c"},
	"chroot":  {longArgs: []string{"userspec", "groups"}, operands: 1},
	"unshare": {flags: "CTUcfimnpru", long: []string{"fork", "map-root-user", "mount", "net", "pid", "user", "uts", "ipc"}},
	"watch":   {flags: "bcdegtwx", long: []string{"beep", "color", "no-title", "errexit", "exec"}, values: "n", longArgs: []string{"interval"}},
	"busybox": {},
	"toybox":  {},
	"caffeinate": {
		flags: "dimsu", values: "tw",
	},
}

// shells read a program text from -c or from their input.
var shells = []string{"sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "fish", "csh", "tcsh"}

// IsWrapper reports whether a program, given by base name, runs others that
// its arguments or its input name.
func IsWrapper(program string) bool {
	if _, ok := wrappers[program]; ok || slices.Contains(shells, program) {
		return true
	}
	switch program {
	case "eval", "find", "trap", "su", "source", ".":
		return true
	}
	return false
}

// unwrap adds what s runs on behalf of its arguments.
func (w *walker) unwrap(s Simple, wrapped int) {
	name := s.Program()
	if name == "" || !IsWrapper(name) {
		return
	}
	if wrapped >= maxWrapped {
		w.unresolved("more than %d wrappers around one command", maxWrapped)
		return
	}
	inner := append(slices.Clip(s.Wrapper), name)
	switch {
	case slices.Contains(shells, name):
		w.shell(s, inner)
	case name == "find":
		w.find(s, inner, wrapped)
	case name == "eval":
		w.eval(s, inner)
	case name == "trap":
		if text, ok := s.Word(1); ok && len(s.Words) > 2 && !strings.HasPrefix(text, "-") && text != "" {
			w.text(text, inner)
		} else if len(s.Words) > 2 && !ok {
			w.unresolved("trap: what it runs is not literal")
		}
	case name == "su":
		w.su(s, inner)
	case name == "source" || name == ".":
		w.unresolved("%s: runs what a file holds", name)
	default:
		w.plainWrapper(name, wrappers[name], s, inner, wrapped)
	}
}

// plainWrapper skips a wrapper's own options and operands.
func (w *walker) plainWrapper(name string, def wrapper, s Simple, inner []string, wrapped int) {
	i := 1
	for i < len(s.Words) {
		word, ok := s.Word(i)
		if !ok {
			w.unresolved("%s: what it runs is not literal: %s", name, s.Words[i])
			return
		}
		if word == "--" {
			i++
			break
		}
		if len(word) < 2 || word[0] != '-' {
			break
		}
		if name == "command" && (word == "-v" || word == "-V") {
			return // only asks where a program is
		}
		next, text, ok := def.option(s, i)
		if !ok {
			w.unresolved("%s: the option %s is not known here", name, word)
			return
		}
		if text >= 0 { // flock FILE -c 'text'
			w.textWord(name, s, text, inner)
			return
		}
		i = next
	}
	var assign []string
	for def.assigns && i < len(s.Words) && isAssignment(s.Words[i]) {
		assign = append(assign, s.Words[i])
		i++
	}
	i += def.operands
	if def.shell != "" && i+1 < len(s.Words) && (s.Words[i] == "-"+def.shell || s.Words[i] == "--command") {
		w.textWord(name, s, i+1, inner)
		return
	}
	if name == "xargs" {
		w.vague("xargs: adds words that only its input knows")
	}
	if i >= len(s.Words) {
		switch name {
		case "sudo", "doas", "chroot", "unshare", "busybox", "toybox":
			w.unresolved("%s: no command is given, it may start a shell", name)
		}
		return
	}
	if name == "watch" {
		w.joined(s, i, inner)
		return
	}
	in := s.from(i, inner)
	in.Open = in.Open || name == "xargs"
	in.Assign = assign
	w.add(in, wrapped+1)
}

// option reads the option at i. next is the index after it; text is the index
// of a shell text, or -1; ok is false for an option that is not known.
func (d wrapper) option(s Simple, i int) (next, text int, ok bool) {
	word := s.Words[i]
	if strings.HasPrefix(word, "--") {
		name, _, has := strings.Cut(word[2:], "=")
		switch {
		case slices.Contains(d.longArgs, name):
			if has {
				return i + 1, -1, true
			}
			return i + 2, -1, true
		case slices.Contains(d.long, name):
			return i + 1, -1, true
		}
		return 0, -1, false
	}
	if d.number && strings.Trim(word[1:], "-+0123456789") == "" {
		return i + 1, -1, true
	}
	for j := 1; j < len(word); j++ {
		switch c := word[j]; {
		case strings.IndexByte(d.flags, c) >= 0:
		case strings.IndexByte(d.shell, c) >= 0:
			return i + 1, i + 1, j == len(word)-1
		case strings.IndexByte(d.values, c) >= 0:
			if j < len(word)-1 {
				return i + 1, -1, true
			}
			return i + 2, -1, true
		default:
			return 0, -1, false
		}
	}
	return i + 1, -1, true
}

// shell handles sh -c TEXT, and shells that read their input.
func (w *walker) shell(s Simple, inner []string) {
	name := inner[len(inner)-1]
	command := false
	i := 1
	for ; i < len(s.Words); i++ {
		word, ok := s.Word(i)
		if !ok {
			if command {
				break // textWord says so
			}
			w.unresolved("%s: its arguments are not literal", name)
			return
		}
		if word == "--" || word == "-" {
			i++
			break
		}
		if len(word) < 2 || word[0] != '-' && word[0] != '+' {
			break
		}
		if strings.HasPrefix(word, "--") {
			switch word {
			case "--rcfile", "--init-file":
				i++
			case "--norc", "--noprofile", "--posix", "--login":
			default:
				w.unresolved("%s: the option %s is not known here", name, word)
				return
			}
			continue
		}
		if word[0] == '-' && strings.Contains(word, "c") {
			command = true
		}
		if strings.HasSuffix(word, "o") || strings.HasSuffix(word, "O") {
			i++
		}
	}
	switch {
	case command && i < len(s.Words):
		w.textWord(name, s, i, inner)
	case command:
		w.unresolved("%s: -c without a text", name)
	case i < len(s.Words):
		w.unresolved("%s: runs what a file holds: %s", name, s.Words[i])
	default:
		for _, r := range s.Redirects {
			if r.Body != "" {
				w.text(r.Body, inner)
				return
			}
		}
		w.unresolved("%s: runs what it reads from its input", name)
	}
}

// find handles the four ways in which find runs programs.
func (w *walker) find(s Simple, inner []string, wrapped int) {
	for i := 1; i < len(s.Words); i++ {
		switch s.Words[i] {
		case "-exec", "-execdir", "-ok", "-okdir":
		default:
			continue
		}
		from := i + 1
		end := from
		for end < len(s.Words) && s.Words[end] != ";" && !(s.Words[end] == "+" && end > from && s.Words[end-1] == "{}") {
			end++
		}
		if from == end {
			w.unresolved("find: %s without a command", s.Words[i])
			return
		}
		cut := s
		cut.Words = s.Words[:end:end]
		cut.Opaque = nil
		for _, o := range s.Opaque {
			if o < end {
				cut.Opaque = append(cut.Opaque, o)
			}
		}
		in := cut.from(from, inner)
		for _, word := range in.Words {
			if strings.Contains(word, "{}") {
				in.Open = true
			}
		}
		if in.Open {
			w.vague("find: puts in names that only the run time knows")
		}
		w.add(in, wrapped+1)
		i = end
	}
}

// eval joins its words with spaces and reads them as a line.
func (w *walker) eval(s Simple, inner []string) {
	if !s.Literal() {
		w.unresolved("eval: what it runs is not literal")
		return
	}
	w.text(strings.Join(s.Words[1:], " "), inner)
}

func (w *walker) su(s Simple, inner []string) {
	for i := 1; i+1 < len(s.Words); i++ {
		if s.Words[i] == "-c" || s.Words[i] == "--command" {
			w.textWord("su", s, i+1, inner)
			return
		}
	}
	w.unresolved("su: starts a shell")
}

// joined reads the words from i on as one line, as watch does.
func (w *walker) joined(s Simple, i int, inner []string) {
	for j := i; j < len(s.Words); j++ {
		if _, ok := s.Word(j); !ok {
			w.unresolved("%s: what it runs is not literal", inner[len(inner)-1])
			return
		}
	}
	w.text(strings.Join(s.Words[i:], " "), inner)
}

// textWord parses word i of s as a shell text.
func (w *walker) textWord(name string, s Simple, i int, inner []string) {
	text, ok := s.Word(i)
	if !ok {
		w.unresolved("%s: the text that it runs is not literal", name)
		return
	}
	w.text(text, inner)
}

// text parses a line that a wrapper would hand to a shell.
func (w *walker) text(line string, inner []string) {
	if w.depth >= maxNested {
		w.unresolved("more than %d shells within each other", maxNested)
		return
	}
	if err := w.parse(line, inner, w.depth+1); err != nil {
		w.unresolved("%s: %s", inner[len(inner)-1], err)
	}
}

// from is the command that starts at word i, behind the given wrappers.
func (s Simple) from(i int, inner []string) Simple {
	out := Simple{Words: s.Words[i:], Wrapper: inner, Open: s.Open, Redirects: s.Redirects}
	for _, o := range s.Opaque {
		if o >= i {
			out.Opaque = append(out.Opaque, o-i)
		}
	}
	return out
}

// isAssignment reports whether a word has the form NAME=VALUE.
func isAssignment(s string) bool {
	name, _, ok := strings.Cut(s, "=")
	if !ok || name == "" || name[0] >= '0' && name[0] <= '9' {
		return false
	}
	return strings.IndexFunc(name, func(r rune) bool {
		return !(r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9')
	}) < 0
}
