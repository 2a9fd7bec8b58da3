package tool

import (
	"crypto/sha256"
	"io"
	"path"
	"slices"
	"strings"

	"pawl/engine/machine"
	"pawl/engine/policy"
)

// namedFiles finds the files of the workspace whose contents decide what a
// command line does: programs and scripts it names, the Makefile of make, the
// package.json of npm. A grant is bound to their contents, so that a harmless
// script that was agreed to cannot be swapped for another.
//
// It reads literal words only. Where a line changes directory, names are looked
// up in both places: a file too many costs nothing but a second question.
func namedFiles(env Env, cmds policy.Commands) []machine.File {
	f := finder{env: env, dirs: []string{"."}}
	for _, s := range cmds.Simple {
		if len(f.files) >= maxFiles {
			break
		}
		f.simple(s)
	}
	slices.SortFunc(f.files, func(a, b machine.File) int { return strings.Compare(a.Path, b.Path) })
	return f.files
}

type finder struct {
	env   Env
	dirs  []string // where relative names may point
	files []machine.File
}

func (f *finder) simple(s policy.Simple) {
	words := literalWords(s)
	if len(words) == 0 || words[0] == "" {
		return
	}
	prog, args := words[0], words[1:]
	if strings.Contains(prog, "/") {
		f.add(prog)
	}
	switch name := path.Base(prog); name {
	case "cd", "pushd":
		if len(args) > 0 && !slices.Contains(f.dirs, args[0]) {
			for _, d := range slices.Clone(f.dirs) {
				f.dirs = append(f.dirs, join(d, args[0]))
			}
		}
	case ".", "source":
		if len(args) > 0 {
			f.add(args[0])
		}
	case "make", "gmake":
		f.make(args)
	case "just":
		f.addAny("justfile", "Justfile", ".justfile")
	case "npm", "yarn", "pnpm", "npx", "bun":
		f.addAny("package.json")
		f.script(args)
	case "go":
		if len(args) > 0 && args[0] == "run" {
			f.script(args[1:])
		}
	default:
		if interpreter(name) {
			f.script(args)
		}
	}
	for _, r := range s.Redirects {
		if r.Op == "<" && r.Literal && interpreter(path.Base(prog)) {
			f.add(r.Target)
		}
	}
}

// literalWords returns a command's words up to the first that only the run
// time knows.
func literalWords(s policy.Simple) []string {
	if len(s.Opaque) > 0 {
		return s.Words[:s.Opaque[0]]
	}
	return s.Words
}

func interpreter(name string) bool {
	name = strings.TrimRight(name, "0123456789.")
	switch name {
	case "sh", "bash", "dash", "zsh", "ksh", "fish", "python", "pypy", "node", "deno", "ruby", "perl", "php", "lua",
		"Rscript", "tclsh", "osascript", "pwsh":
		return true
	}
	return false
}

// script adds the first few arguments that name files; which of them is the
// script depends on options that only the interpreter knows.
func (f *finder) script(args []string) {
	for i, a := range args {
		if i == 8 {
			break
		}
		if a != "" && !strings.HasPrefix(a, "-") {
			f.add(a)
		}
	}
}

// make adds the Makefile that make would read.
func (f *finder) make(args []string) {
	given := false
	for i, a := range args {
		var v string
		switch {
		case (a == "-f" || a == "-C" || a == "--file" || a == "--makefile" || a == "--directory") && i+1 < len(args):
			v = args[i+1]
		case strings.HasPrefix(a, "-f") && len(a) > 2, strings.HasPrefix(a, "-C") && len(a) > 2:
			v = a[2:]
		case strings.HasPrefix(a, "--file="), strings.HasPrefix(a, "--makefile="), strings.HasPrefix(a, "--directory="):
			_, v, _ = strings.Cut(a, "=")
		default:
			continue
		}
		if strings.HasPrefix(a, "-C") || strings.HasPrefix(a, "--directory") {
			f.dirs = append(f.dirs, v)
			continue
		}
		given = true
		f.add(v)
	}
	if !given {
		f.addAny("GNUmakefile", "makefile", "Makefile")
	}
}

func (f *finder) addAny(names ...string) {
	for _, n := range names {
		f.add(n)
	}
}

// add puts a name on the list if it is a regular file of the workspace.
func (f *finder) add(name string) {
	dirs := f.dirs
	if path.IsAbs(name) {
		dirs = []string{"."}
	}
	for _, d := range dirs {
		if len(f.files) >= maxFiles {
			return
		}
		pl, err := locate(f.env, join(d, name))
		if err != nil || !pl.inside {
			continue
		}
		if slices.ContainsFunc(f.files, func(o machine.File) bool { return o.Path == pl.rel }) {
			continue
		}
		if d, ok := hashFile(pl); ok {
			f.files = append(f.files, machine.File{Path: pl.rel, Digest: d})
		}
	}
}

// hashFile reads a regular file of any size without holding it.
func hashFile(pl place) (machine.Digest, bool) {
	f, st, err := pl.open()
	if err != nil {
		return machine.Digest{}, false
	}
	defer func() { _ = f.Close() }()
	if !st.Mode().IsRegular() {
		return machine.Digest{}, false
	}
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return machine.Digest{}, false
	}
	return machine.Digest(h.Sum(nil)), true
}

func join(dir, name string) string {
	if path.IsAbs(name) {
		return name
	}
	return path.Join(dir, name)
}
