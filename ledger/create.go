package ledger

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// create makes a new ledger beside its place, whole and synced, and then gives
// it its name. Whatever fails or dies before leaves no ledger; two who create
// at once find one and the same.
func create(o *Options) error {
	open, err := gate(o)
	if err != nil {
		return err
	}
	defer open()
	if st, err := os.Stat(o.Path); err == nil && st.Size() > 0 {
		return nil // somebody else was first
	}
	sweep(o.Path+".new-", func(string) bool { return true }) // of who died in here: the gate is ours
	id := make([]byte, 8)
	if _, err := io.ReadFull(o.Rand, id); err != nil {
		return fmt.Errorf("create ledger: no randomness: %w", err)
	}
	tmp := o.Path + ".new-" + hex.EncodeToString(id)
	defer removeDB(tmp)
	if err := build(tmp, o); err != nil {
		return plain(o.Path, "create ledger", err)
	}
	if err := o.at("built"); err != nil {
		return err
	}
	// The gate is ours, so an empty file may be replaced; a full one was ruled out.
	if err := os.Rename(tmp, o.Path); err != nil {
		return plain(o.Path, "create ledger", err)
	}
	return plain(o.Path, "create ledger", syncDir(filepath.Dir(o.Path)))
}

func build(tmp string, o *Options) error {
	f, err := os.OpenFile(tmp, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	f.Chmod(0o600) // whatever the umask
	f.Close()
	c, err := dial(tmp, modeMigrate, 0)
	if err != nil {
		return err
	}
	defer c.close()
	for _, s := range o.steps {
		if err := c.apply(s, o); err != nil {
			return err
		}
	}
	if err := c.do("PRAGMA journal_mode=WAL"); err != nil {
		return err
	}
	if err := c.close(); err != nil {
		return err
	}
	return syncFile(tmp)
}

// removeDB removes a database that nobody has open, and what SQLite keeps beside it.
func removeDB(path string) {
	for _, s := range []string{"", "-journal", "-wal", "-shm"} {
		os.Remove(path + s)
	}
}

// sweep removes the files beside the ledger whose names go on after prefix with
// something that dead is true of.
func sweep(prefix string, dead func(rest string) bool) {
	es, err := os.ReadDir(filepath.Dir(prefix))
	if err != nil {
		return
	}
	for _, e := range es {
		if rest, ok := strings.CutPrefix(e.Name(), filepath.Base(prefix)); ok && dead(rest) {
			os.Remove(filepath.Join(filepath.Dir(prefix), e.Name()))
		}
	}
}

// syncFile must not be given a live ledger: closing any descriptor of a
// database file drops the locks that SQLite holds on it in this process.
func syncFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		if errors.Is(err, fs.ErrPermission) {
			return nil // a directory that may be written and not read
		}
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
