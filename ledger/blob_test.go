package ledger

import (
	"bytes"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// A small frame that claims to be huge is refused before memory is spent on it.
func TestABombIsRefused(t *testing.T) {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBestCompression))
	must(t, err)
	bomb := e.EncodeAll(make([]byte, 64<<20), nil)
	if len(bomb) > 100_000 {
		t.Fatalf("%d bytes are no bomb", len(bomb))
	}
	if _, err := unpack(bomb); err == nil {
		t.Error("unpacked")
	}
	d := openAt(t, dbPath(t))
	if err := d.PutBlob(bg, Blob{Hash: Hash{1}, Size: 64 << 20, Data: bomb}); err == nil {
		t.Error("stored")
	}
}

// Frames are found without decoding them, and anything cut or strange is refused.
func FuzzFramesOfForeignBlobs(f *testing.F) {
	b := NewBlob(bytes.Repeat([]byte("0123456789abcdef"), 1<<17))
	f.Add(b.Data)
	f.Add(NewBlob(nil).Data)
	f.Add(b.Data[:len(b.Data)-2])
	f.Add([]byte{0x50, 0x2a, 0x4d, 0x18, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		cuts, err := findFrames(data)
		if err != nil {
			return
		}
		if cuts[len(cuts)-1] != len(data) {
			t.Fatal("bytes are left over")
		}
		for i := 1; i < len(cuts); i++ {
			if cuts[i] <= cuts[i-1] {
				t.Fatal("frames overlap")
			}
		}
	})
}

func TestFramesAreFoundWhereTheyEnd(t *testing.T) {
	b := NewBlob(bytes.Repeat([]byte("0123456789abcdef"), 1<<18))
	cuts, err := findFrames(b.Data)
	must(t, err)
	if len(cuts) != 4 || len(b.cuts) != 4 {
		t.Fatalf("%v %v", cuts, b.cuts)
	}
	for i := range cuts {
		if cuts[i] != b.cuts[i] {
			t.Errorf("%v %v", cuts, b.cuts)
		}
	}
	for n := range 40 {
		if _, err := findFrames(b.Data[:len(b.Data)-1-n]); err == nil {
			t.Errorf("cut by %d: accepted", n+1)
		}
	}
}

// A large blob that was written in part (its writer died) is not there, and
// storing it again completes it.
func TestAHalfWrittenBlobIsNotThere(t *testing.T) {
	d := openAt(t, dbPath(t))
	b := NewBlob(bytes.Repeat([]byte("0123456789abcdef"), 1<<18))
	must(t, d.w.submit(bg, &request{do: func(c *conn) error { return putFrame(c, &b, 2) }}))
	_, err := d.Blob(bg, b.Hash)
	is[*NotFoundError](t, err)
	must(t, d.PutBlob(bg, b))
	p, err := d.Blob(bg, b.Hash)
	must(t, err)
	if len(p) != 1<<22 {
		t.Error(len(p))
	}
	if v := whole(t, d); v.Blobs != 1 {
		t.Errorf("%+v", v)
	}
}
