package ledger

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// The head anchor, PATH.head, remembers outside SQLite how far the ledger had
// come. SQLite cannot tell a write-ahead file that was removed or cut from one
// that never was: it opens what is left without a word. The anchor is written
// lazily and only for events that were synced, so it is never ahead of what a
// power cut leaves; a ledger behind its anchor has lost something.

// readAnchor returns the last known head; ok is false if there is none, or
// none that is whole.
func readAnchor(path string) (h Head, ok bool, err error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return h, false, nil
	}
	if err != nil {
		return h, false, err
	}
	i := bytes.LastIndex(b, []byte("sum "))
	if i < 0 {
		return h, false, nil
	}
	var hash, sum string
	if _, err := fmt.Sscanf(string(b), "pawl-head 1\nseq %d\nhash %64s\nsum %64s\n", &h.Seq, &hash, &sum); err != nil {
		return Head{}, false, nil
	}
	want := sha256.Sum256(b[:i])
	raw, err := hex.DecodeString(hash)
	if err != nil || len(raw) != 32 || sum != hex.EncodeToString(want[:]) {
		return Head{}, false, nil
	}
	copy(h.Hash[:], raw)
	return h, true, nil
}

// writeAnchor replaces the anchor. tmp names this process's own scratch file.
func writeAnchor(path, tmp string, h Head) error {
	b := fmt.Appendf(nil, "pawl-head 1\nseq %d\nhash %s\n", h.Seq, h.Hash)
	sum := sha256.Sum256(b)
	b = fmt.Appendf(b, "sum %s\n", hex.EncodeToString(sum[:]))
	f, err := os.OpenFile(tmp, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(tmp, path)
	}
	if err != nil {
		os.Remove(tmp)
		return err
	}
	return syncDir(filepath.Dir(path))
}

// sweepAnchors removes what processes left that died while they wrote an anchor.
func sweepAnchors(o *Options) {
	sweep(o.anchor()+".", func(id string) bool { return !procAlive(o.procs(), id) })
}
