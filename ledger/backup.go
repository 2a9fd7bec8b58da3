package ledger

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Backup writes a verified copy of the ledger, as it is now, to path, which
// must not exist. Writers are not blocked. The copy is one file that needs no
// -wal; it gets its name only when it is whole and synced.
func (d *DB) Backup(ctx context.Context, path string) error {
	return d.readWith(ctx, "backup", func(c *conn) error { return backupConn(ctx, c, &d.o, path) })
}

func backupConn(ctx context.Context, src *conn, o *Options, path string) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	if _, err := os.Lstat(path); err == nil {
		return fmt.Errorf("the backup was not made: %s exists already; choose another name", path)
	}
	id := make([]byte, 8)
	if _, err := io.ReadFull(o.Rand, id); err != nil {
		return err
	}
	tmp := path + ".part-" + hex.EncodeToString(id)
	f, err := os.OpenFile(tmp, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return plain(path, "backup", err)
	}
	f.Close()
	defer removeDB(tmp)
	if err := copyDB(ctx, src, tmp, o); err != nil {
		return plain(path, "backup", err)
	}
	if err := syncFile(tmp); err != nil {
		return plain(path, "backup", err)
	}
	// Link refuses to replace what appeared there meanwhile.
	if err := os.Link(tmp, path); err != nil {
		if _, there := os.Lstat(path); there == nil {
			return fmt.Errorf("the backup was not made: %s exists already; choose another name", path)
		}
		if err := os.Rename(tmp, path); err != nil { // a file system without hard links
			return plain(path, "backup", err)
		}
	}
	return plain(path, "backup", syncDir(filepath.Dir(path)))
}

// copyDB copies in one step: the copy is one snapshot, and a busy writer cannot
// make it start over for ever, as it can between smaller steps.
func copyDB(ctx context.Context, src *conn, tmp string, o *Options) error {
	dst, err := dial(tmp, modeMigrate, 0)
	if err != nil {
		return err
	}
	defer dst.close()
	b, err := dst.c.Backup("main", src.c, "main")
	if err != nil {
		return err
	}
	done, err := b.Step(-1)
	if ferr := b.Finish(); err == nil {
		err = ferr
	}
	if err == nil && !done {
		err = busyError(o, o.BusyTimeout)
	}
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	// The copy says WAL in its header; as DELETE it is whole in one file.
	if err := dst.do("PRAGMA journal_mode=DELETE"); err != nil {
		return err
	}
	v, err := dst.one("PRAGMA quick_check(1)")
	if err != nil {
		return err
	}
	if text(v) != "ok" {
		return &CorruptError{Path: o.Path, What: "its copy fails the integrity check: " + text(v)}
	}
	return nil
}
