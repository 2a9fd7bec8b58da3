package confine

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// order is what the supervisor tells the keeper over a file descriptor. It is complete: the keeper reads nothing else
// about the command, and its own environment holds none of the command's.
type order struct {
	Argv    []string
	Dir     string
	Env     []string
	Level   Level
	Network bool
	Probe   bool
	Box     bool // namespaces were made: build the mounts
	OwnNet  bool // the network namespace is new: bring its loopback up

	Mounts []mount
	Links  map[string]string // symlinks to make again in directories that are masked: path → target
	Masked []string          // unix sockets to cover
	Rights []string          // paths that landlock lets the command write to
	Reach  []string          // unix sockets that it may connect to outside of Rights
}

type mountKind uint8

const (
	mountRW    mountKind = iota + 1 // the same directory, writable
	mountRO                         // the same path, read-only
	mountEmpty                      // an empty read-only directory
	mountBlank                      // an empty read-only file
	mountTmp                        // an empty writable directory that ends with the box
	mountCache                      // the user's directory below, a private layer above
)

type mount struct {
	Kind  mountKind
	Path  string
	Layer string // of a mountCache
}

// within says whether path is dir or lies below it. Both are clean and absolute.
func within(path, dir string) bool {
	return path == dir || dir == "/" || strings.HasPrefix(path, dir+"/")
}

func withinAny(path string, dirs []string) bool {
	return slices.ContainsFunc(dirs, func(d string) bool { return within(path, d) })
}

// volatileDirs hold sockets that may appear after the box was built, so they are replaced whole.
var volatileDirs = []string{"/run", "/tmp", "/var/run"}

// runLinks are entries of /run that are part of some systems' program search path or name resolution, not state.
var runLinks = []string{"/run/current-system", "/run/booted-system", "/run/wrappers", "/run/opengl-driver"}

// planBox resolves the paths of s and puts the mounts in an order in which each finds its parent done. It reads the
// file system but changes nothing.
func planBox(s *Spec, o *order) error {
	byPath := map[string]mount{}
	put := func(m mount) error {
		old, ok := byPath[m.Path]
		if ok && (old.Kind == mountEmpty) != (m.Kind == mountEmpty) {
			return fmt.Errorf("%s is to be both hidden and visible", m.Path)
		}
		if !ok || m.Kind == mountRO {
			byPath[m.Path] = m
		}
		return nil
	}
	for _, p := range volatileDirs {
		if st, err := os.Lstat(p); err == nil && st.IsDir() {
			kind := mountEmpty
			if p == "/tmp" {
				kind = mountTmp
			}
			byPath[p] = mount{Kind: kind, Path: p}
		}
	}
	for _, h := range s.Hidden {
		for _, p := range bothEnds(h) {
			st, err := os.Lstat(p)
			if err != nil || st.Mode()&fs.ModeSymlink != 0 {
				continue // nothing there, or the link's end is hidden instead
			}
			kind := mountBlank
			if st.IsDir() {
				kind = mountEmpty
			}
			byPath[p] = mount{Kind: kind, Path: p}
		}
	}
	for _, w := range s.Writable {
		p, err := filepath.EvalSymlinks(w)
		if err != nil {
			return fmt.Errorf("the writable directory is not there: %w", err)
		}
		if err := put(mount{Kind: mountRW, Path: p}); err != nil {
			return err
		}
		o.Rights = append(o.Rights, p)
	}
	for _, c := range s.Caches {
		p, err := filepath.EvalSymlinks(c.Path)
		if err != nil {
			continue // the user has no such cache
		}
		byPath[p] = mount{Kind: mountCache, Path: p, Layer: c.Layer}
		o.Rights = append(o.Rights, p)
	}
	ro := append(slices.Clone(s.Readable), s.Sockets...)
	for _, p := range runLinks {
		if st, err := os.Lstat(p); err == nil && st.IsDir() {
			ro = append(ro, p)
		}
	}
	if s.Network {
		ro = append(ro, "/etc/resolv.conf")
	}
	ro = append(ro, s.Protected...)
	for _, r := range ro {
		p, err := filepath.EvalSymlinks(r)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if err := put(mount{Kind: mountRO, Path: p}); err != nil {
			return err
		}
	}
	o.Links = map[string]string{}
	if ents, err := os.ReadDir("/run"); err == nil {
		for _, e := range ents {
			if e.Type()&fs.ModeSymlink != 0 {
				if t, err := os.Readlink("/run/" + e.Name()); err == nil {
					o.Links["/run/"+e.Name()] = t
				}
			}
		}
	}
	for _, k := range sortedMounts(byPath) {
		if k.Kind == mountRO && !needed(k, byPath) {
			continue
		}
		o.Mounts = append(o.Mounts, k)
	}
	o.Reach = s.Sockets
	o.Masked = maskedSockets(s, byPath)
	return nil
}

// bothEnds returns a path and what it points to, where these differ.
func bothEnds(p string) []string {
	p = filepath.Clean(p)
	if real, err := filepath.EvalSymlinks(p); err == nil && real != p {
		return []string{p, real}
	}
	return []string{p}
}

func sortedMounts(m map[string]mount) []mount {
	out := make([]mount, 0, len(m))
	for _, v := range m {
		out = append(out, v)
	}
	slices.SortFunc(out, func(a, b mount) int { return cmp.Compare(a.Path+"/", b.Path+"/") })
	return out
}

// needed says whether a read-only mount changes anything: everything is read-only already but for what lies in
// something writable, and visible but for what lies in something masked.
func needed(ro mount, all map[string]mount) bool {
	for d := filepath.Dir(ro.Path); ; d = filepath.Dir(d) {
		if m, ok := all[d]; ok {
			return m.Kind != mountRO
		}
		if d == "/" || d == "." {
			return false
		}
	}
}

// maskedSockets lists the unix sockets with a path that exist now, that the command would see and is not to reach. A
// read-only mount does not stop a connection, so each is covered.
func maskedSockets(s *Spec, all map[string]mount) []string {
	b, err := os.ReadFile("/proc/net/unix")
	if err != nil {
		return nil
	}
	seen := map[string]bool{}
	var out []string
	for l := range strings.Lines(string(b)) {
		_, p, ok := strings.Cut(l, " /") // the path is the last column and the only one with a slash
		p = filepath.Clean("/" + strings.TrimSuffix(p, "\n"))
		if !ok || seen[p] {
			continue
		}
		seen[p] = true
		real, err := filepath.EvalSymlinks(p)
		if err != nil || slices.Contains(s.Sockets, p) || slices.Contains(s.Sockets, real) || !visible(real, all) {
			continue
		}
		out = append(out, real)
	}
	return out
}

// visible says whether a path outside of every writable directory can be seen in the box.
func visible(p string, all map[string]mount) bool {
	for d := p; ; d = filepath.Dir(d) {
		if m, ok := all[d]; ok {
			return m.Kind == mountRO
		}
		if d == "/" || d == "." {
			return true
		}
	}
}
