package ledger

import (
	"context"
	"crypto/sha256"
	"database/sql/driver"
	"errors"
	"fmt"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// A blob is kept as a row of zstd frames, each of at most frameSize plain bytes
// and decodable alone: a range of a large output is read without the rest, and
// no more than one frame need be in memory twice.
const (
	frameSize = 1 << 20
	MaxBlob   = 1 << 30 // largest blob, in plain bytes
	// batch is how many compressed bytes one transaction of a large blob may
	// write, so that neither the write lock nor the -wal is hogged.
	batch = 4 << 20
)

var encoder = sync.OnceValue(func() *zstd.Encoder {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(2), zstd.WithWindowSize(frameSize))
	if err != nil {
		panic(err) // only wrong options can do that
	}
	return e
})

// decoder refuses frames that would grow beyond a frame's size: a few
// kilobytes can be made to claim gigabytes.
var decoder = sync.OnceValue(func() *zstd.Decoder {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(2), zstd.WithDecoderMaxMemory(frameSize), zstd.WithDecoderMaxWindow(frameSize))
	if err != nil {
		panic(err)
	}
	return d
})

// NewBlob makes plain ready to be stored. It may be called anywhere, it does
// not touch the ledger, and plain is not kept.
func NewBlob(plain []byte) Blob {
	b := Blob{Hash: sha256.Sum256(plain), Size: int64(len(plain))}
	for off := 0; off == 0 || off < len(plain); off += frameSize {
		b.Data = encoder().EncodeAll(plain[off:min(off+frameSize, len(plain))], b.Data)
		b.cuts = append(b.cuts, len(b.Data))
	}
	return b
}

// Plain decodes b and checks it against its hash.
func (b Blob) Plain() ([]byte, error) {
	if b.Size > MaxBlob || b.Size < 0 {
		return nil, fmt.Errorf("blob %s: %d bytes, the limit is %d", b.Hash, b.Size, int64(MaxBlob))
	}
	cuts := b.cuts
	if cuts == nil {
		var err error
		if cuts, err = findFrames(b.Data); err != nil {
			return nil, fmt.Errorf("blob %s: %w", b.Hash, err)
		}
	}
	out := make([]byte, 0, min(b.Size, int64(len(b.Data))*64))
	from := 0
	for _, to := range cuts {
		f, err := unpack(b.Data[from:to])
		if err != nil {
			return nil, fmt.Errorf("blob %s: %w", b.Hash, err)
		}
		out = append(out, f...)
		if int64(len(out)) > b.Size {
			break
		}
		from = to
	}
	if int64(len(out)) != b.Size || sha256.Sum256(out) != b.Hash {
		return nil, fmt.Errorf("blob %s: its content has another hash", b.Hash)
	}
	return out, nil
}

// findFrames returns where each frame of data ends, for blobs that came from elsewhere.
func findFrames(data []byte) ([]int, error) {
	var cuts []int
	for pos := 0; pos < len(data); {
		n, err := frameLen(data[pos:])
		if err != nil {
			return nil, err
		}
		pos += n
		cuts = append(cuts, pos)
	}
	if cuts == nil {
		return nil, errors.New("no data")
	}
	return cuts, nil
}

// frameLen walks the blocks of the first frame in b (RFC 8878, section 3.1.1).
func frameLen(b []byte) (int, error) {
	var h zstd.Header
	if err := h.Decode(b); err != nil {
		return 0, err
	}
	if h.Skippable {
		return 0, errors.New("a skippable frame")
	}
	pos := h.HeaderSize
	for {
		if pos+3 > len(b) {
			return 0, errors.New("a frame is cut off")
		}
		bh := uint32(b[pos]) | uint32(b[pos+1])<<8 | uint32(b[pos+2])<<16
		size := int(bh >> 3)
		if bh>>1&3 == 1 { // one byte, repeated
			size = 1
		}
		pos += 3 + size
		if bh&1 == 1 {
			break
		}
	}
	if h.HasCheckSum {
		pos += 4
	}
	if pos > len(b) {
		return 0, errors.New("a frame is cut off")
	}
	return pos, nil
}

func unpack(frame []byte) ([]byte, error) { return decoder().DecodeAll(frame, nil) }

// whole makes a blob that NewBlob did not make like one that it did, or refuses it.
func (b Blob) whole() (Blob, error) {
	if b.cuts != nil {
		return b, nil
	}
	p, err := b.Plain()
	if err != nil {
		return b, err
	}
	return NewBlob(p), nil
}

// frame returns the i-th frame and the offset of its plain bytes.
func (b *Blob) frame(i int) (data []byte, off int64) {
	from := 0
	if i > 0 {
		from = b.cuts[i-1]
	}
	return b.Data[from:b.cuts[i]], int64(i) * frameSize
}

// putBlob writes what is not yet there of b; its frame at offset 0 comes last.
func putBlob(c *conn, b *Blob) error {
	there, err := c.one("SELECT 1 FROM blob WHERE hash = ? AND off = 0", b.Hash[:])
	if err != nil || there != nil {
		return err
	}
	for i := len(b.cuts) - 1; i >= 0; i-- {
		if err := putFrame(c, b, i); err != nil {
			return err
		}
	}
	return nil
}

func putFrame(c *conn, b *Blob, i int) error {
	data, off := b.frame(i)
	if i < len(b.cuts)-1 || i > 0 {
		there, err := c.one("SELECT 1 FROM blob WHERE hash = ? AND off = ?", b.Hash[:], off)
		if err != nil || there != nil {
			return err
		}
	}
	_, err := c.exec("INSERT INTO blob(hash, off, size, data) VALUES(?, ?, ?, ?)", b.Hash[:], off, b.Size, data)
	return err
}

// stage readies blobs for a transaction: all but the first frame of a large one
// are written ahead of it, in transactions of their own.
func (d *DB) stage(ctx context.Context, bs []Blob) ([]Blob, error) {
	if len(bs) == 0 {
		return nil, nil
	}
	out := make([]Blob, len(bs))
	for i, b := range bs {
		var err error
		if out[i], err = b.whole(); err != nil {
			return nil, err
		}
		if len(b.Data) > batch {
			if err := d.writeAhead(ctx, &out[i]); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

func (d *DB) writeAhead(ctx context.Context, b *Blob) error {
	there, err := d.hasBlob(ctx, b.Hash)
	if err != nil || there {
		return err
	}
	for last := len(b.cuts) - 1; last > 0; {
		first, size := last, 0
		for ; first > 0 && size < batch; first-- {
			data, _ := b.frame(first)
			size += len(data)
		}
		from, to := first+1, last
		err := d.w.submit(ctx, &request{do: func(c *conn) error {
			for i := to; i >= from; i-- {
				if err := putFrame(c, b, i); err != nil {
					return err
				}
			}
			return nil
		}})
		if err != nil {
			return err
		}
		last = first
	}
	return nil
}

// PutBlob stores content that no event names yet. It is durable like a lazy commit.
func (d *DB) PutBlob(ctx context.Context, bs ...Blob) error {
	if d.w == nil {
		return &ReadOnlyError{Path: d.o.Path, Reason: d.roReason}
	}
	bs, err := d.stage(ctx, bs)
	if err != nil || len(bs) == 0 {
		return err
	}
	return d.w.submit(ctx, &request{do: func(c *conn) error {
		for i := range bs {
			if err := putBlob(c, &bs[i]); err != nil {
				return err
			}
		}
		return nil
	}})
}

func (d *DB) hasBlob(ctx context.Context, h Hash) (found bool, err error) {
	err = d.readWith(ctx, "read blob", func(c *conn) error {
		return c.query(ctx, "SELECT 1 FROM blob WHERE hash = ? AND off = 0", []any{h[:]}, func([]driver.Value) error {
			found = true
			return nil
		})
	})
	return found, err
}

// Blob returns the plain bytes of h, checked against it.
func (d *DB) Blob(ctx context.Context, h Hash) ([]byte, error) {
	var out []byte
	size := int64(-1)
	err := d.frames(ctx, h, 0, MaxBlob, func(total, _ int64, plain []byte) {
		if size < 0 {
			size = total
			out = make([]byte, 0, total)
		}
		out = append(out, plain...)
	})
	if err != nil {
		return nil, err
	}
	if int64(len(out)) != size || sha256.Sum256(out) != h {
		return nil, &CorruptError{Path: d.o.Path, What: "the content of blob " + h.String() + " has another hash"}
	}
	return out, nil
}

// BlobRange returns up to n plain bytes from off on, and the size of the whole.
// Each frame has a checksum; the hash of the whole is not checked.
func (d *DB) BlobRange(ctx context.Context, h Hash, off int64, n int) ([]byte, int64, error) {
	off, n = max(0, off), max(0, n)
	out := []byte{}
	var size int64
	err := d.frames(ctx, h, off, off+int64(n), func(total, at int64, plain []byte) {
		size = total
		from, to := max(0, off-at), min(int64(len(plain)), off+int64(n)-at)
		if from < to {
			out = append(out, plain[from:to]...)
		}
	})
	return out, size, err
}

// frames calls f with the frame at offset 0's size and with each frame that
// overlaps [from, to), or with the first one if none does. One frame is
// unpacked at a time, outside any read of the ledger.
func (d *DB) frames(ctx context.Context, h Hash, from, to int64, f func(total, at int64, plain []byte)) error {
	read := func(off int64) (size int64, data []byte, err error) {
		err = d.readWith(ctx, "read blob", func(c *conn) error {
			return c.query(ctx, "SELECT size, data FROM blob WHERE hash = ? AND off = ?", []any{h[:], off}, func(v []driver.Value) error {
				size, data = num(v[0]), bytesOf(v[1])
				return nil
			})
		})
		return size, data, err
	}
	bad := func(what string, err error) error {
		return &CorruptError{Path: d.o.Path, What: what + " of blob " + h.String(), Err: err}
	}
	size, first, err := read(0)
	if err != nil {
		return err
	}
	if first == nil {
		return &NotFoundError{What: "blob", ID: h.String()}
	}
	if from >= size || to <= from {
		f(size, 0, nil)
		return nil
	}
	for at := from / frameSize * frameSize; at < min(to, size); at += frameSize {
		data := first
		if at > 0 {
			if _, data, err = read(at); err != nil {
				return err
			}
			if data == nil {
				return bad("a part is missing", nil)
			}
		}
		plain, err := unpack(data)
		if err != nil {
			return bad("a part cannot be unpacked", err)
		}
		f(size, at, plain)
	}
	return nil
}
