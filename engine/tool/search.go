package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"unicode/utf8"

	"pawl/engine/machine"
	"pawl/engine/tool/glob"
)

const (
	maxMatches    = 200       // lines of one answer
	maxSearchFile = 8 << 20   // bytes of a file that is searched
	maxScanned    = 512 << 20 // bytes of one search
	matchContext  = 120       // bytes shown on each side of a match in a long line
)

var searchSpec = Spec{
	Name:    "search",
	Version: 1,
	Description: "Search the text files of the workspace for a regular expression (RE2 syntax, as in Go; (?i) ignores case) and list the " +
		"matching lines as path:line: text, at most 200. path narrows it to a directory or file, glob to names such as *.go or cmd/**/*.ts. " +
		"Ignored files, .git and binary files are passed over.",
	Schema: schema(`{
  "type": "object",
  "properties": {
    "pattern": {"type": "string", "minLength": 1, "maxLength": 1000, "description": "regular expression, matched line by line"},
    "path": {"type": "string", "maxLength": 4096, "description": "directory or file to search; default: the workspace"},
    "glob": {"type": "string", "minLength": 1, "maxLength": 1000, "description": "only files whose name fits"}
  },
  "required": ["pattern"],
  "additionalProperties": false
}`),
}

type searchTool struct{}

type searchArgs struct {
	Pattern string `json:"pattern"`
	Path    string `json:"path"`
	Glob    string `json:"glob"`
}

func (*searchTool) Spec() Spec { return searchSpec }

func (a searchArgs) compile() (*regexp.Regexp, *glob.Pattern, error) {
	re, err := regexp.Compile(a.Pattern)
	if err != nil {
		return nil, nil, argErrorf("The pattern of search is no regular expression: %v. It is RE2 syntax, as in Go.", err)
	}
	if a.Glob == "" {
		return re, nil, nil
	}
	g, err := glob.Compile(a.Glob)
	if err != nil {
		return nil, nil, argErrorf("The glob of search cannot be used: %v.", err)
	}
	return re, &g, nil
}

// Plan says what will be searched.
func (*searchTool) Plan(_ context.Context, env Env, args json.RawMessage) (Plan, error) {
	a, err := decode[searchArgs](args)
	if err != nil {
		return Plan{}, err
	}
	if _, _, err := a.compile(); err != nil {
		return Plan{}, err
	}
	p, err := planRead(env, searchSpec, a.Path, "search ", args)
	p.Summary = fmt.Sprintf("search %s in %s", quoteShort(a.Pattern), quoteName(p.Target))
	return p, err
}

// Measure has nothing to record for a look.
func (*searchTool) Measure(context.Context, Env, machine.Contract, json.RawMessage) (Measured, error) {
	return Measured{}, nil
}

// Run searches.
func (*searchTool) Run(ctx context.Context, env Env, c Call) Outcome {
	a, err := decode[searchArgs](c.Args)
	if err != nil {
		return badArgs(err)
	}
	re, g, err := a.compile()
	if err != nil {
		return badArgs(err)
	}
	pl, refused := still(env, a.Path, c.Contract)
	if refused != nil {
		return *refused
	}
	f, st, err := pl.open()
	if err != nil {
		return readFault(pl, nil, err)
	}
	_ = f.Close()
	s := searcher{re: re, glob: g}
	if st.IsDir() {
		w, err := newWalk(pl)
		if err != nil {
			return readFault(pl, nil, err)
		}
		defer w.close()
		s.walk = w
		err = s.dir(ctx, ".", w.rules)
		if ctx.Err() != nil {
			return interrupted()
		}
		if err != nil && !errors.Is(err, errEnough) {
			return readFault(pl, nil, err)
		}
	} else {
		b, st, err := pl.readAll(maxFile)
		if err != nil {
			return readFault(pl, st, err)
		}
		s.files++
		_ = s.text(pl.show(), b)
	}
	return done(true, "0", s.report())
}

type searcher struct {
	*walk
	re      *regexp.Regexp
	glob    *glob.Pattern
	out     strings.Builder
	matches int
	files   int   // searched
	binary  int   // passed over
	large   int   // passed over
	closed  int   // could not be read
	scanned int64 // bytes
	stopped string
}

// errEnough ends a walk that has found all it may tell.
var errEnough = errors.New("enough")

func (s *searcher) dir(ctx context.Context, rel string, rules glob.Rules) error {
	entries, err := s.read(rel)
	if err != nil {
		if rel == "." {
			return err
		}
		s.closed++
		return nil
	}
	rules = s.enter(rel, rules)
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		child := path.Join(rel, e.Name())
		switch {
		case e.Name() == ".git", s.ignored(rules, child, e.IsDir()):
		case e.IsDir():
			if err := s.dir(ctx, child, rules); err != nil {
				return err
			}
		case e.Type().IsRegular():
			if s.glob != nil && !s.glob.Match(child) && !s.glob.Match(path.Join(s.base, child)) {
				continue
			}
			if err := s.file(child, e); err != nil {
				return err
			}
		}
	}
	return nil
}

// file searches one file of the walk.
func (s *searcher) file(rel string, e fs.DirEntry) error {
	st, err := e.Info()
	if err != nil {
		s.closed++
		return nil
	}
	if st.Size() > maxSearchFile {
		s.large++
		return nil
	}
	f, err := s.root.OpenFile(filepath.FromSlash(rel), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		s.closed++
		return nil
	}
	defer func() { _ = f.Close() }()
	b, err := io.ReadAll(io.LimitReader(f, maxSearchFile))
	if err != nil {
		s.closed++
		return nil
	}
	s.scanned += int64(len(b))
	if s.scanned > maxScanned {
		s.stopped = fmt.Sprintf("stopped after %d MiB; narrow it with path or glob", maxScanned>>20)
		return errEnough
	}
	if bytes.IndexByte(b[:min(len(b), 8000)], 0) >= 0 {
		s.binary++
		return nil
	}
	s.files++
	return s.text(quoteName(path.Join(s.base, rel)), b)
}

// text searches one text and writes what it finds.
func (s *searcher) text(name string, b []byte) error {
	for n := 1; len(b) > 0; n++ {
		line, rest, _ := bytes.Cut(b, []byte("\n"))
		b = rest
		line = bytes.TrimSuffix(line, []byte("\r"))
		at := s.re.FindIndex(line)
		if at == nil {
			continue
		}
		if s.matches == maxMatches {
			s.stopped = fmt.Sprintf("stopped at %d matching lines; there are more, so narrow it with path, glob or a longer pattern", maxMatches)
			return errEnough
		}
		s.matches++
		fmt.Fprintf(&s.out, "%s:%d: %s\n", name, n, around(line, at))
	}
	return nil
}

// around shows a line, or the part of a long one that holds the match. Bytes
// that are no text are shown as escapes.
func around(line []byte, at []int) string {
	from, to := 0, len(line)
	if to > 3*matchContext {
		from = max(0, at[0]-matchContext)
		to = min(len(line), max(min(at[1], at[0]+matchContext), at[0])+matchContext)
		for from > 0 && !utf8.RuneStart(line[from]) {
			from--
		}
		for to < len(line) && !utf8.RuneStart(line[to]) {
			to++
		}
	}
	text := visible(line[from:to])
	if from > 0 {
		text = "…" + text
	}
	if to < len(line) {
		text += "…"
	}
	return text
}

// visible spells invalid UTF-8 and NUL as \xNN; other characters stay.
func visible(b []byte) string {
	if utf8.Valid(b) && bytes.IndexByte(b, 0) < 0 {
		return string(b)
	}
	var out strings.Builder
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		if r == 0 || r == utf8.RuneError && n <= 1 {
			fmt.Fprintf(&out, `\x%02x`, b[0])
		} else {
			out.Write(b[:n])
		}
		b = b[n:]
	}
	return out.String()
}

func (s *searcher) report() string {
	var notes []string
	for _, n := range []struct {
		n    int
		text string
	}{{s.binary, "binary"}, {s.large, "too large"}, {s.closed, "unreadable"}} {
		if n.n > 0 {
			notes = append(notes, fmt.Sprintf("%d %s", n.n, n.text))
		}
	}
	tail := count(s.matches, "matching line") + " in " + count(s.files, "searched file")
	if len(notes) > 0 {
		tail += "; passed over: " + strings.Join(notes, ", ")
	}
	if s.stopped != "" {
		tail += "; " + s.stopped
	}
	return s.out.String() + "[" + tail + "]\n"
}
