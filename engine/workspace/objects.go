package workspace

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1" // the shadows' object format; nothing of ours rests on it being secure
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// store writes objects into a shadow repository. It writes what git would, without starting one for each.
type store struct{ dir string }

func (s store) put(kind string, data []byte) (string, error) {
	h := sha1.New()
	head := fmt.Sprintf("%s %d\x00", kind, len(data))
	h.Write([]byte(head))
	h.Write(data)
	oid := hex.EncodeToString(h.Sum(nil))
	path := filepath.Join(s.dir, "objects", oid[:2], oid[2:])
	if _, err := os.Stat(path); err == nil {
		return oid, nil
	}
	var b bytes.Buffer
	z, err := zlib.NewWriterLevel(&b, zlib.BestSpeed)
	if err != nil {
		return "", err
	}
	_, err1 := z.Write([]byte(head))
	_, err2 := z.Write(data)
	if err := errors.Join(err1, err2, z.Close()); err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", err
	}
	tmp, err := os.CreateTemp(filepath.Join(s.dir, "objects"), ".new-*")
	if err != nil {
		return "", err
	}
	_, err = tmp.Write(b.Bytes())
	if err = errors.Join(err, tmp.Chmod(0o444), tmp.Close()); err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		os.Remove(tmp.Name()) // of no use to anybody
		return "", err
	}
	return oid, nil
}

type treeEntry struct {
	name, oid string
	dir       bool
}

func (s store) tree(es []treeEntry) (string, error) {
	key := func(e treeEntry) string {
		if e.dir {
			return e.name + "/"
		}
		return e.name
	}
	slices.SortFunc(es, func(a, b treeEntry) int { return strings.Compare(key(a), key(b)) })
	var b bytes.Buffer
	for _, e := range es {
		mode := "100644"
		if e.dir {
			mode = "40000"
		}
		raw, err := hex.DecodeString(e.oid)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "%s %s\x00", mode, e.name)
		b.Write(raw)
	}
	return s.put("tree", b.Bytes())
}

func (s store) commit(tree, parent, message string, at time.Time) (string, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "tree %s\n", tree)
	if parent != "" {
		fmt.Fprintf(&b, "parent %s\n", parent)
	}
	who := fmt.Sprintf("Pawl <pawl@localhost> %d +0000", at.Unix())
	fmt.Fprintf(&b, "author %s\ncommitter %s\n\n%s\n", who, who, message)
	return s.put("commit", b.Bytes())
}

const lastRef = "refs/pawl/last"

// last returns the newest snapshot's commit, "" if there is none.
func (s store) last() (string, error) {
	b, err := os.ReadFile(filepath.Join(s.dir, filepath.FromSlash(lastRef)))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return strings.TrimSpace(string(b)), err
}

// setLast moves the one ref of a shadow, through which every snapshot is reachable. The run's lock must be held.
func (s store) setLast(oid string) error {
	path := filepath.Join(s.dir, filepath.FromSlash(lastRef))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	tmp := path + ".lock"
	if err := os.WriteFile(tmp, []byte(oid+"\n"), 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, path)
}

// blobKey tells whether a file is the one that was stored before.
type blobKey struct {
	size, mtime, ino int64
	oid              string
}

// file stores one small file of a git directory, unless it is known to be there already.
func (m *Manager) file(s store, path string) (string, error) {
	st, err := os.Lstat(path)
	if err != nil {
		return "", err
	}
	key := blobKey{size: st.Size(), mtime: st.ModTime().UnixNano(), ino: inode(st)}
	m.mu.Lock()
	known, ok := m.blobs[path]
	m.mu.Unlock()
	if ok && known.size == key.size && known.mtime == key.mtime && known.ino == key.ino && m.clock().Sub(st.ModTime()) > time.Second {
		return known.oid, nil
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	if key.oid, err = s.put("blob", b); err != nil {
		return "", err
	}
	m.mu.Lock()
	if m.blobs == nil {
		m.blobs = map[string]blobKey{}
	}
	m.blobs[path] = key
	m.mu.Unlock()
	return key.oid, nil
}
