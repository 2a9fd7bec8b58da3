package effect

import (
	"crypto/md5" // what object stores name a file's contents by; nothing is secured with it
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/BurntSushi/toml"
)

// maxFactFile bounds the files that facts are read from, and maxHashed those
// that are hashed.
const (
	maxFactFile = 4 << 20
	maxHashed   = 4 << 30
)

// paramFile names the parameter that holds a file's hash.
const paramFile = "sha256 "

// FileParam names the parameter that holds the SHA-256 of a file of the working
// directory. A look is worth nothing once such a file has changed.
func FileParam(name string) string { return paramFile + name }

// inside opens a regular file of the working directory. Nothing is waited for,
// and no link leads out.
func (p Place) inside(name string) (*os.File, error) {
	if filepath.IsAbs(name) {
		rel, err := filepath.Rel(p.Dir, name)
		if err != nil {
			return nil, err
		}
		name = rel
	}
	root, err := os.OpenRoot(p.Dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	f, err := root.OpenFile(filepath.Clean(name), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		_ = f.Close()
		return nil, errors.New("it is no regular file")
	}
	return f, nil
}

// read finds the fact's value.
func (f fact) read(at Place, v Vars) (string, error) {
	file := v.text(f.JSON + f.TOML + f.MD5)
	if f.MD5 != "" {
		return at.hash(file, md5.New())
	}
	r, err := at.inside(file)
	if err != nil {
		return "", fmt.Errorf("%s cannot be read: %s", file, plainFS(err))
	}
	defer func() { _ = r.Close() }()
	b, err := io.ReadAll(io.LimitReader(r, maxFactFile))
	if err != nil {
		return "", fmt.Errorf("%s cannot be read: %s", file, plainFS(err))
	}
	doc := map[string]any{}
	if f.JSON != "" {
		err = json.Unmarshal(b, &doc)
	} else {
		err = toml.Unmarshal(b, &doc)
	}
	if err != nil {
		return "", fmt.Errorf("%s cannot be read: %w", file, err)
	}
	var at2 any = doc
	for step := range strings.SplitSeq(f.At, ".") {
		m, _ := at2.(map[string]any)
		at2 = m[step]
	}
	switch x := at2.(type) {
	case string:
		if x != "" {
			return x, nil
		}
	case bool, float64, int64:
		return fmt.Sprint(x), nil
	}
	return "", fmt.Errorf("%s says nothing at %s", file, f.At)
}

func (p Place) hash(file string, h hash.Hash) (string, error) {
	f, err := p.inside(file)
	if err != nil {
		return "", fmt.Errorf("%s cannot be read: %s", file, plainFS(err))
	}
	defer func() { _ = f.Close() }()
	n, err := io.Copy(h, io.LimitReader(f, maxHashed+1))
	if err == nil && n > maxHashed {
		err = errors.New("it is too large")
	}
	if err != nil {
		return "", fmt.Errorf("%s cannot be read: %s", file, plainFS(err))
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// changed says which of the files on record has other contents now, "" if none.
func (p Place) changed(params map[string]string) string {
	for _, k := range keysOf(params) {
		name, ok := strings.CutPrefix(k, paramFile)
		if !ok {
			continue
		}
		if now, err := p.hash(name, sha256.New()); err != nil || now != params[k] {
			return fmt.Sprintf("%s is not what it was when this was planned, so a look would ask about something else", name)
		}
	}
	return ""
}

func plainFS(err error) string {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	if errors.Is(err, fs.ErrNotExist) {
		return "it is not there"
	}
	return err.Error()
}
