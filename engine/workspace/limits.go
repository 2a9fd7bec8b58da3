package workspace

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"
)

// Limits bound what one snapshot takes in, so that a forgotten dump or a data set in the workspace neither fills the
// disk nor keeps a run from starting. They are about files that git does not track: what is tracked has been taken in
// already, by the user.
type Limits struct {
	File  int64         // bytes of one file
	Files int           // new or changed files
	Total int64         // bytes of all of them
	Time  time.Duration // of a snapshot as a whole, tracked files too
}

// DefaultLimits are those of a Manager that is not told others.
var DefaultLimits = Limits{File: 50 << 20, Files: 50_000, Total: 2 << 30, Time: 2 * time.Minute}

// WithLimits bounds snapshots; a zero field keeps its default.
func WithLimits(l Limits) Option { return func(m *Manager) { m.limits = l } }

func (m *Manager) bounds() Limits {
	l, d := m.limits, DefaultLimits
	return Limits{File: cmp.Or(l.File, d.File), Files: cmp.Or(l.Files, d.Files), Total: cmp.Or(l.Total, d.Total), Time: cmp.Or(l.Time, d.Time)}
}

// leftOut is what a snapshot did not take in, a file or a folder of them, in a form that tells whether it was touched.
type leftOut struct {
	Path  string `json:"path"` // with a slash at its end, a folder
	Files int    `json:"files"`
	Bytes int64  `json:"bytes"`
	Stamp uint64 `json:"stamp"` // of names, sizes, times and inodes
	Why   string `json:"why"`
}

func (l leftOut) String() string {
	if strings.HasSuffix(l.Path, "/") {
		return fmt.Sprintf("%s (%d files, %s: %s)", l.Path, l.Files, size(l.Bytes), l.Why)
	}
	return fmt.Sprintf("%s (%s: %s)", l.Path, size(l.Bytes), l.Why)
}

func size(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MB", float64(n)/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%.1f KB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%d bytes", n)
}

// candidate is a file that a snapshot would take in.
type candidate struct {
	path  string
	size  int64
	stamp uint64
}

// admit divides candidates into what fits and what is left out. tracked, asked only if something does not fit, says
// which paths git knows. Left out are whole folders, the fullest first, so that a person can be told in a line.
func (l Limits) admit(all []candidate, tracked func() (map[string]bool, error)) (in []candidate, out []leftOut, err error) {
	var total int64
	big := false
	for _, c := range all {
		total += c.size
		big = big || c.size > l.File
	}
	if !big && len(all) <= l.Files && total <= l.Total {
		return all, nil, nil
	}
	known, err := tracked()
	if err != nil {
		return nil, nil, err
	}
	var loose []candidate
	total = 0
	for _, c := range all {
		switch {
		case known[c.path]:
			in = append(in, c)
		case c.size > l.File:
			out = append(out, leftOut{Path: c.path, Files: 1, Bytes: c.size, Stamp: c.stamp, Why: "larger than " + size(l.File)})
		default:
			loose = append(loose, c)
			total += c.size
		}
	}
	if len(loose) <= l.Files && total <= l.Total {
		return append(in, loose...), out, nil
	}
	groups := map[string]*leftOut{}
	top := folderOf(known)
	for _, c := range loose {
		d := top(c.path)
		g := groups[d]
		if g == nil {
			g = &leftOut{Path: d}
			groups[d] = g
		}
		g.Files++
		g.Bytes += c.size
		g.Stamp += c.stamp // in any order
	}
	files, dropped := len(loose), map[string]bool{}
	drop := func(why string, over func() bool, most func(a, b *leftOut) int) {
		order := slices.SortedFunc(maps.Values(groups), func(a, b *leftOut) int { return cmp.Or(-most(a, b), strings.Compare(a.Path, b.Path)) })
		for _, g := range order {
			if !over() {
				return
			}
			if dropped[g.Path] {
				continue
			}
			dropped[g.Path] = true
			files, total = files-g.Files, total-g.Bytes
			g.Why = why
			out = append(out, *g)
		}
	}
	drop(fmt.Sprintf("more than %d files that git does not track", l.Files), func() bool { return files > l.Files },
		func(a, b *leftOut) int { return cmp.Compare(a.Files, b.Files) })
	drop("more than "+size(l.Total)+" in files that git does not track", func() bool { return total > l.Total },
		func(a, b *leftOut) int { return cmp.Compare(a.Bytes, b.Bytes) })
	for _, c := range loose {
		if !dropped[top(c.path)] {
			in = append(in, c)
		}
	}
	return in, out, nil
}

// folderOf names the highest folder of a path that has no tracked file in it, or, where there is none, the folder that
// the file lies in.
func folderOf(tracked map[string]bool) func(string) string {
	dirs := map[string]bool{".": true}
	for p := range tracked {
		for d := path.Dir(p); !dirs[d]; d = path.Dir(d) {
			dirs[d] = true
		}
	}
	return func(p string) string {
		d := path.Dir(p)
		if dirs[d] {
			return strings.TrimPrefix(d+"/", "./") + "*/" // the loose files there, not the folder
		}
		for up := path.Dir(d); !dirs[up]; up = path.Dir(up) {
			d = up
		}
		return d + "/"
	}
}

// mostNamed bounds what a snapshot names one by one.
const mostNamed = 20

func described(out []leftOut) []string {
	var names []string
	for i, l := range out {
		if i == mostNamed {
			return append(names, fmt.Sprintf("and %d more", len(out)-i))
		}
		names = append(names, l.String())
	}
	return names
}

// sameLeft says whether what two snapshots left out is the same and untouched, and if not, where it differs.
func sameLeft(a, b []leftOut) (differs string) {
	at := map[string]leftOut{}
	for _, l := range a {
		at[l.Path] = l
	}
	for _, l := range b {
		was, ok := at[l.Path]
		if !ok || was.Files != l.Files || was.Bytes != l.Bytes || was.Stamp != l.Stamp {
			return l.String()
		}
		delete(at, l.Path)
	}
	for _, k := range sortedKeys(at) {
		return at[k].String()
	}
	return ""
}
