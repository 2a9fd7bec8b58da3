package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sort"
	"strings"

	"pawl/engine/machine"
	"pawl/engine/policy"
	"pawl/engine/tool/glob"
)

const (
	maxEntries = 1000 // lines of one listing
	maxDepth   = 5
)

var listDirSpec = Spec{
	Name:    "list_dir",
	Version: 1,
	Description: "List a directory of the workspace: one entry a line, directories with a slash, files with their size, links with " +
		"their target. depth (1 to 5, default 1) also lists the directories below; ignored ones and .git are named but not entered.",
	Schema: schema(`{
  "type": "object",
  "properties": {
    "path": {"type": "string", "maxLength": 4096, "description": "directory, relative to the workspace; default: the workspace itself"},
    "depth": {"type": "integer", "minimum": 1, "maximum": 5, "description": "levels to list; default 1"}
  },
  "additionalProperties": false
}`),
}

type listDir struct{}

type listDirArgs struct {
	Path  string `json:"path"`
	Depth int    `json:"depth"`
}

func (*listDir) Spec() Spec { return listDirSpec }

// Plan says which directory will be read.
func (*listDir) Plan(_ context.Context, env Env, args json.RawMessage) (Plan, error) {
	a, err := decode[listDirArgs](args)
	if err != nil {
		return Plan{}, err
	}
	return planRead(env, listDirSpec, a.Path, "list ", args)
}

// planRead is the plan of every tool that reads one place.
func planRead(env Env, s Spec, p, verb string, args json.RawMessage) (Plan, error) {
	pl, err := locate(env, p)
	if err != nil {
		return Plan{}, err
	}
	c := readContract(s.Name, s.Version)
	c.Params = map[string]string{paramPath: pl.abs}
	return Plan{
		Contract: c,
		Summary:  verb + pl.show(),
		Target:   pl.target(),
		Text:     pl.abs,
		Subject: policy.Subject{
			Tool: s.Name, Class: machine.ClassRead, Reads: []policy.Access{pl.access()},
		},
		Args: args,
	}, nil
}

// Measure has nothing to record for a look.
func (*listDir) Measure(context.Context, Env, machine.Contract, json.RawMessage) (Measured, error) {
	return Measured{}, nil
}

// Run lists the directory.
func (*listDir) Run(ctx context.Context, env Env, c Call) Outcome {
	a, err := decode[listDirArgs](c.Args)
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
	if !st.IsDir() {
		return done(false, CodeUnreadable, fmt.Sprintf("%s is a file; read_file shows it.", pl.show()))
	}
	w, err := newWalk(pl)
	if err != nil {
		return readFault(pl, nil, err)
	}
	defer w.close()
	l := lister{walk: w, depth: max(1, min(a.Depth, maxDepth))}
	if err := l.dir(ctx, ".", w.rules, 1); err != nil {
		if ctx.Err() != nil {
			return interrupted()
		}
		return readFault(pl, nil, err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n", pl.show(), count(l.total, "entry"))
	for _, line := range l.lines {
		b.WriteString(line)
		b.WriteByte('\n')
	}
	if left := l.total - len(l.lines); left > 0 {
		fmt.Fprintf(&b, "[%s left out; list a directory below, or use search]\n", count(left, "entry"))
	}
	return done(true, "0", b.String())
}

type lister struct {
	*walk
	depth int
	lines []string
	total int
}

// dir lists one directory and those below it, names sorted.
func (l *lister) dir(ctx context.Context, rel string, rules glob.Rules, level int) error {
	entries, err := l.read(rel)
	if err != nil {
		if level > 1 { // one unreadable directory does not spoil the list
			l.add(level, quoteName(path.Base(rel))+"/: "+plain(err))
			return nil
		}
		return err
	}
	rules = l.enter(rel, rules)
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		child := path.Join(rel, e.Name())
		l.add(level, l.line(child, e, rules, level))
		if e.IsDir() && level < l.depth && e.Name() != ".git" && !l.ignored(rules, child, true) {
			if err := l.dir(ctx, child, rules, level+1); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *lister) add(level int, text string) {
	l.total++
	if len(l.lines) < maxEntries {
		l.lines = append(l.lines, strings.Repeat("  ", level-1)+text)
	}
}

func (l *lister) line(rel string, e fs.DirEntry, rules glob.Rules, level int) string {
	name := quoteName(e.Name())
	switch {
	case e.IsDir():
		name += "/"
		if level < l.depth && l.ignored(rules, rel, true) {
			name += "  (ignored, not entered)"
		}
	case e.Type()&fs.ModeSymlink != 0:
		target, err := l.root.Readlink(filepath.FromSlash(rel))
		if err != nil {
			target = "?"
		}
		name += " -> " + quoteName(target)
	case e.Type().IsRegular():
		if st, err := e.Info(); err == nil {
			name += fmt.Sprintf("  %s", count(st.Size(), "byte"))
			if st.Mode()&0o111 != 0 {
				name += ", executable"
			}
		}
	default:
		name += "  (" + modeWord(e.Type()) + ")"
	}
	return name
}

// walk reads directories below one place without ever leaving it, whatever is
// renamed or linked meanwhile.
type walk struct {
	root  *os.Root
	base  string // of the place, from the workspace; rules speak of paths from there
	rules glob.Rules
}

// newWalk opens a place and the ignore rules of the directories above it.
func newWalk(p place) (*walk, error) {
	root, err := os.OpenRoot(p.abs)
	if err != nil {
		return nil, err
	}
	w := &walk{root: root}
	if p.inside {
		w.base = strings.TrimPrefix(p.rel, ".")
		w.rules = rulesAbove(p)
	}
	return w, nil
}

func (w *walk) close() { _ = w.root.Close() }

// read lists a directory, names sorted by byte.
func (w *walk) read(rel string) ([]fs.DirEntry, error) {
	f, err := w.root.Open(filepath.FromSlash(rel))
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	entries, err := f.ReadDir(-1)
	sort.Slice(entries, func(i, j int) bool { return entries[i].Name() < entries[j].Name() })
	return entries, err
}

// enter adds the ignore file of a directory to the rules.
func (w *walk) enter(rel string, rules glob.Rules) glob.Rules {
	b, err := readSmall(w.root, filepath.Join(filepath.FromSlash(rel), ".gitignore"))
	if err != nil {
		return rules
	}
	return rules.With(strings.TrimPrefix(path.Join(w.base, rel), "."), b)
}

// ignored asks the rules about a path below the place.
func (w *walk) ignored(rules glob.Rules, rel string, dir bool) bool {
	return rules.Ignored(path.Join(w.base, rel), dir)
}

// rulesAbove reads the ignore files from the workspace down to a place, that of
// the place itself left out.
func rulesAbove(p place) glob.Rules {
	var rules glob.Rules
	root, err := os.OpenRoot(p.root)
	if err != nil {
		return rules
	}
	defer func() { _ = root.Close() }()
	dir := ""
	for part := range strings.SplitSeq(p.rel, "/") {
		if part == "." {
			break
		}
		if b, err := readSmall(root, filepath.Join(filepath.FromSlash(dir), ".gitignore")); err == nil {
			rules = rules.With(dir, b)
		}
		dir = path.Join(dir, part)
	}
	return rules
}
