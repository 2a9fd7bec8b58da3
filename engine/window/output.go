package window

import (
	"fmt"

	"pawl/engine/machine"
	"pawl/views/safe/mask"
)

// Source gives the bytes behind a digest. It is content-addressed, so that
// reading from it leaves Build a function of its arguments.
type Source interface {
	Blob(d machine.Digest) ([]byte, error)
}

// LeftOut is something that a pack does not show whole, and why.
type LeftOut struct {
	What   string // "output of c12_1"
	Why    string
	Bytes  int64  // left out
	Handle string // for read_evidence; "" if it cannot be read
}

// whole loads a text.
func whole(t machine.Text, src Source) ([]byte, error) {
	if t.Blob.IsZero() {
		return []byte(t.Inline), nil
	}
	if src == nil {
		return nil, fmt.Errorf("window: no source for blob %s", t.Blob.Short())
	}
	b, err := src.Blob(t.Blob)
	if err != nil {
		return nil, fmt.Errorf("window: read blob %s: %w", t.Blob.Short(), err)
	}
	return b, nil
}

// legibleText loads a text that a model or a person wrote. It is never shrunk.
func legibleText(t machine.Text, src Source) (string, error) {
	if t.Blob.IsZero() {
		return clean(t.Inline), nil
	}
	b, err := whole(t, src)
	return clean(string(b)), err
}

// showOutput renders an output for the model, bounded by limit.
func showOutput(t machine.Text, src Source, limit int) (string, *LeftOut, error) {
	if t.IsZero() {
		return "(no output)", nil, nil
	}
	b, err := whole(t, src)
	if err != nil {
		return "", nil, err
	}
	handle := ""
	if !t.Blob.IsZero() {
		handle = t.Blob.Short()
	}
	text, stray, ok := Legible(b)
	if !ok {
		how := ""
		if handle != "" {
			how = ", handle " + handle
		}
		return fmt.Sprintf("(%d bytes that are no text, sha256 %s%s)", len(b), machine.DigestOf(b), how),
			&LeftOut{Why: "no text", Bytes: int64(len(b)), Handle: handle}, nil
	}
	text, gone := Shrink(text, limit, handle)
	if masked, n := mask.Text(text); n > 0 {
		text = fmt.Sprintf("(%d keys in it are masked here as %s; the files hold them whole)\n%s", n, mask.Sign, masked)
	}
	if stray > 0 {
		text = fmt.Sprintf("(%d bytes of it are not UTF-8 and stand here as ?)\n%s", stray, text)
	}
	if gone > 0 {
		return text, &LeftOut{Why: fmt.Sprintf("longer than %d bytes", limit), Bytes: int64(gone), Handle: handle}, nil
	}
	return text, nil, nil
}
