package workspace

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// entry is one file in a shadow's index. The shadows are configured for version 2 of its format.
type entry struct {
	path string
	stat [40]byte // times, device, inode, mode, owner and size as git saw them; equal stats are equal files
	mode uint32   // 100644, 100755, 120000 or 160000
	size uint32   // modulo 4 GiB
}

// readIndex reads an index file. A missing one is empty.
func readIndex(path string) ([]entry, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if len(b) < 32 || string(b[:4]) != "DIRC" || binary.BigEndian.Uint32(b[4:]) > 3 {
		return nil, fmt.Errorf("%s is not an index that can be read", path)
	}
	n := binary.BigEndian.Uint32(b[8:])
	out := make([]entry, 0, min(n, uint32(len(b)/62)))
	const fixed = 62 // stat 40, object id 20, flags 2
	for pos := 12; n > 0; n-- {
		if pos+fixed >= len(b) {
			return nil, fmt.Errorf("%s ends in the middle", path)
		}
		var e entry
		copy(e.stat[:], b[pos:])
		e.mode = binary.BigEndian.Uint32(b[pos+24:])
		e.size = binary.BigEndian.Uint32(b[pos+36:])
		name := pos + fixed
		if b[pos+60]&0x40 != 0 {
			name += 2
		}
		end := bytes.IndexByte(b[name:], 0)
		if end < 0 {
			return nil, fmt.Errorf("%s ends in the middle", path)
		}
		e.path = string(b[name : name+end])
		out = append(out, e)
		pos += (name + end - pos + 8) &^ 7
	}
	return out, nil
}
