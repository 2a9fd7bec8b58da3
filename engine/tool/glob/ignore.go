package glob

import (
	"path"
	"strings"
)

// Rules are the ignore rules that hold in one directory: those of the
// directories above it first, its own last. The zero value ignores nothing.
// Rules is a value: With returns new ones and leaves the old as they were.
type Rules struct{ list []rule }

type rule struct {
	base    string // directory of the file it stands in, "" for the top
	segs    segments
	negated bool
	dirOnly bool
}

// With adds the lines of an ignore file that stands in dir ("" is the top).
// Lines that are no pattern are passed over, as git does.
func (r Rules) With(dir string, file []byte) Rules {
	list := r.list[:len(r.list):len(r.list)]
	for line := range strings.SplitSeq(string(file), "\n") {
		if ru, ok := parseRule(strings.TrimSuffix(line, "\r")); ok {
			ru.base = dir
			list = append(list, ru)
		}
	}
	return Rules{list: list}
}

// Ignored reports whether a path is ignored by its own name. Whoever walks a
// tree does not enter ignored directories, so that what lies in them needs no
// answer: nothing in there can be taken back in.
func (r Rules) Ignored(rel string, isDir bool) bool {
	for i := len(r.list) - 1; i >= 0; i-- {
		ru := &r.list[i]
		if ru.dirOnly && !isDir {
			continue
		}
		below := rel
		if ru.base != "" {
			var ok bool
			if below, ok = strings.CutPrefix(rel, ru.base+"/"); !ok {
				continue
			}
		}
		if ru.fits(below) {
			return !ru.negated
		}
	}
	return false
}

// fits matches a rule to a path below its base. The two commonest shapes, one
// name at any depth and one name at the top, need no cutting of the path.
func (ru *rule) fits(below string) bool {
	switch {
	case len(ru.segs) == 2 && ru.segs[0] == "**" && ru.segs[1] != "**":
		ok, err := path.Match(ru.segs[1], below[strings.LastIndexByte(below, '/')+1:])
		return ok && err == nil
	case len(ru.segs) == 1 && ru.segs[0] != "**":
		if strings.IndexByte(below, '/') >= 0 {
			return false
		}
		ok, err := path.Match(ru.segs[0], below)
		return ok && err == nil
	}
	return ru.segs.match(strings.Split(below, "/"))
}

func parseRule(line string) (rule, bool) {
	line = trimSpaces(line)
	if line == "" || line[0] == '#' {
		return rule{}, false
	}
	var r rule
	if line[0] == '!' {
		r.negated = true
		line = line[1:]
	}
	if strings.HasSuffix(line, "/") {
		r.dirOnly = true
		line = strings.TrimSuffix(line, "/")
	}
	if line == "" {
		return rule{}, false
	}
	segs, err := split(line)
	if err != nil {
		return rule{}, false
	}
	r.segs = segs
	return r, true
}

// trimSpaces takes off trailing spaces that no backslash keeps.
func trimSpaces(s string) string {
	for strings.HasSuffix(s, " ") && !strings.HasSuffix(s, `\ `) {
		s = s[:len(s)-1]
	}
	return s
}
