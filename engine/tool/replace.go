package tool

import (
	"bytes"
	"fmt"
	"strings"
)

// replacement is one wish to replace a text in a file.
type replacement struct {
	old, new string
	all      bool
}

// noMatchError says why a replacement cannot be done; the text is for the model.
type noMatchError struct{ text string }

func (e *noMatchError) Error() string { return e.text }

// apply replaces old by new in a file's bytes and returns how often it did.
//
// A text whose lines end in LF also matches a file whose lines end in CRLF; the
// new text then takes the line ends of the lines it replaces, so that only
// lines that the edit means to change differ afterwards. An old text that
// spells carriage returns itself is matched, and replaced, byte for byte where
// it occurs so.
func (r replacement) apply(file []byte) ([]byte, int, error) {
	if strings.Contains(r.old, "\r") {
		if n := bytes.Count(file, []byte(r.old)); n > 0 {
			if n > 1 && !r.all {
				return nil, 0, r.tooOften(string(file), r.old)
			}
			return bytes.ReplaceAll(file, []byte(r.old), []byte(r.new)), n, nil
		}
	}
	flat, back := flatten(file)
	old, new := r.old, r.new
	if strings.Contains(old, "\r\n") { // the model thought of other line ends than the file has
		old, new = strings.ReplaceAll(old, "\r\n", "\n"), strings.ReplaceAll(new, "\r\n", "\n")
	}
	n := strings.Count(flat, old)
	switch {
	case n == 0:
		return nil, 0, r.notFound(flat)
	case n > 1 && !r.all:
		return nil, 0, r.tooOften(flat, old)
	}
	head, tail := common(old, new)
	var out bytes.Buffer
	kept, from := 0, 0 // original bytes written so far; place in flat
	for {
		i := strings.Index(flat[from:], old)
		if i < 0 {
			break
		}
		at := from + i
		from = at + len(old)
		start, end := back(at+head), back(at+len(old)-tail)
		out.Write(file[kept:start])
		out.WriteString(withLineEnds(new[head:len(new)-tail], file, start, end))
		kept = end
	}
	out.Write(file[kept:])
	return out.Bytes(), n, nil
}

// flatten turns CRLF into LF and returns how to get back: the original offset
// of an offset in the flat text. An offset before a line end leads to before
// its carriage return.
func flatten(file []byte) (string, func(int) int) {
	if !bytes.Contains(file, []byte("\r\n")) {
		return string(file), func(i int) int { return i }
	}
	var flat strings.Builder
	flat.Grow(len(file))
	var dropped []int // flat offsets of the line feeds that lost a carriage return, ascending
	for i := 0; i < len(file); i++ {
		if file[i] == '\r' && i+1 < len(file) && file[i+1] == '\n' {
			dropped = append(dropped, flat.Len())
			continue
		}
		flat.WriteByte(file[i])
	}
	return flat.String(), func(at int) int {
		lo, hi := 0, len(dropped) // how many of them lie before at
		for lo < hi {
			if mid := (lo + hi) / 2; dropped[mid] < at {
				lo = mid + 1
			} else {
				hi = mid
			}
		}
		return at + lo
	}
}

// common returns how many bytes of whole lines old and new share at their
// beginning and at their end: these are not touched.
func common(old, new string) (head, tail int) {
	for head < len(old) && head < len(new) {
		a := strings.IndexByte(old[head:], '\n')
		b := strings.IndexByte(new[head:], '\n')
		if a < 0 || a != b || old[head:head+a] != new[head:head+b] {
			break
		}
		head += a + 1
	}
	for {
		a := strings.LastIndexByte(old[head:len(old)-tail], '\n')
		b := strings.LastIndexByte(new[head:len(new)-tail], '\n')
		if a < 0 || b < 0 {
			break
		}
		lineA, lineB := old[head+a:len(old)-tail], new[head+b:len(new)-tail]
		if lineA != lineB {
			break
		}
		tail += len(lineA)
	}
	return head, tail
}

// withLineEnds gives the lines of a new text the ends of the lines that it
// replaces, file[start:end], one by one; further lines take the end that
// follows. Carriage returns in the text itself stay.
func withLineEnds(text string, file []byte, start, end int) string {
	if !strings.Contains(text, "\n") {
		return text
	}
	var out strings.Builder
	at := start
	for _, line := range lineSplit(text) {
		body, ok := strings.CutSuffix(line, "\n")
		out.WriteString(body)
		if !ok {
			break
		}
		crlf, next := lineEndFrom(file, at)
		if next <= end {
			at = next
		}
		if crlf && !strings.HasSuffix(body, "\r") {
			out.WriteByte('\r')
		}
		out.WriteByte('\n')
	}
	return out.String()
}

// lineEndFrom finds the next line end at or after an offset, else the last one
// before it. It reports whether that is CRLF, and where the next line begins.
func lineEndFrom(file []byte, at int) (crlf bool, next int) {
	i := bytes.IndexByte(file[at:], '\n')
	if i >= 0 {
		i += at
		return i > 0 && file[i-1] == '\r', i + 1
	}
	i = bytes.LastIndexByte(file[:at], '\n')
	return i > 0 && file[i-1] == '\r', at
}

func (r replacement) tooOften(flat, old string) error {
	var lines []string
	n := 0
	for from := 0; ; n++ {
		i := strings.Index(flat[from:], old)
		if i < 0 {
			break
		}
		if n < 10 {
			lines = append(lines, fmt.Sprint(1+strings.Count(flat[:from+i], "\n")))
		}
		from += i + len(old)
	}
	if n > len(lines) {
		lines = append(lines, "…")
	}
	return &noMatchError{fmt.Sprintf(
		"The old text occurs %d times (lines %s). Nothing was written. Give more of the lines around the one you mean, or set all to true to replace every one.",
		n, strings.Join(lines, ", "))}
}

// notFound says what comes nearest, so that the next try can be right.
func (r replacement) notFound(flat string) error {
	text := "The old text does not occur in the file. Nothing was written."
	want := ""
	for l := range strings.SplitSeq(r.old, "\n") {
		if want = strings.TrimSpace(l); want != "" {
			break
		}
	}
	var near []string
	if want != "" {
		n := 0
		for l := range strings.SplitSeq(flat, "\n") {
			n++
			if strings.Contains(l, want) {
				if near = append(near, fmt.Sprint(n)); len(near) == 5 {
					break
				}
			}
		}
	}
	if len(near) > 0 {
		text += fmt.Sprintf(" Its first line does, on line %s: compare the white space and the lines that follow.", strings.Join(near, ", "))
	} else {
		text += " Read the file again: it may differ from what you saw."
	}
	return &noMatchError{text}
}
