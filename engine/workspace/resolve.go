package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Resolve follows a path to what it really names, links included, whether or not that exists. A relative path starts
// at the workspace's top. inside says whether the end lies in the workspace; a path that goes out and comes back in
// is inside. Nothing is opened, so the answer may be old by the time it is used: [Manager.Write] and
// [Manager.ReadFile] check again while they walk.
func (m *Manager) Resolve(ws Workspace, path string) (abs string, inside bool, err error) {
	root, err := filepath.EvalSymlinks(ws.Path)
	if err != nil {
		return "", false, fmt.Errorf("the workspace: %w", err)
	}
	if strings.ContainsRune(path, 0) {
		return "", false, fmt.Errorf("%q: no file has such a name", path)
	}
	if !filepath.IsAbs(path) {
		path = root + string(filepath.Separator) + path // not joined: that would take ".." for the text before it
	}
	abs, err = follow(path)
	if err != nil {
		return "", false, err
	}
	return abs, within(abs, root), nil
}

// maxLinks is how many links a path may lead through; the kernel's own bound.
const maxLinks = 40

// follow resolves a path one name at a time, as the kernel does.
func follow(path string) (string, error) {
	sep := string(filepath.Separator)
	done := filepath.VolumeName(path) + sep
	todo := strings.Split(path[len(filepath.VolumeName(path)):], sep)
	links := 0
	for len(todo) > 0 {
		name := todo[0]
		todo = todo[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			done = filepath.Dir(done)
			continue
		}
		next := filepath.Join(done, name)
		st, err := os.Lstat(next)
		if errors.Is(err, fs.ErrNotExist) {
			if slices.Contains(todo, "..") {
				return "", fmt.Errorf("%s does not exist, so nothing can be reached through it", next)
			}
			return filepath.Join(append([]string{next}, todo...)...), nil
		}
		if err != nil {
			return "", err
		}
		if st.Mode()&fs.ModeSymlink == 0 {
			done = next
			continue
		}
		if links++; links > maxLinks {
			return "", fmt.Errorf("%s: too many links", path)
		}
		to, err := os.Readlink(next)
		if err != nil {
			return "", err
		}
		if filepath.IsAbs(to) {
			done = filepath.VolumeName(to) + sep
			to = to[len(filepath.VolumeName(to)):]
		}
		todo = append(strings.Split(to, sep), todo...)
	}
	return done, nil
}

// gitOwn says whether a path within the workspace lies in a git directory, in whatever letter case: some file systems
// do not tell them apart.
func gitOwn(rel string) bool {
	return slices.ContainsFunc(strings.Split(filepath.ToSlash(rel), "/"), func(n string) bool {
		n = strings.TrimRight(n, ". ")
		return strings.EqualFold(n, ".git") || strings.EqualFold(n, "git~1")
	})
}
