package tool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxArgs bounds the arguments of one call, in bytes: more is a broken model,
// not a file worth writing in one piece.
const maxArgs = 8 << 20

// maxNesting bounds how deep arguments may nest.
const maxNesting = 32

// Canonical returns the one spelling of a JSON object: sorted keys, no
// insignificant space, whole numbers without point or exponent, no escapes
// that are not needed. Two spellings of the same arguments have one digest.
//
// A text that would not survive the trip unchanged is an error, never mended in
// silence, since the canonical bytes are what runs: invalid UTF-8, half a
// surrogate pair, a key given twice, text behind the object.
func Canonical(raw string) (json.RawMessage, error) {
	v, err := decodeObject(raw)
	if err != nil {
		return nil, err
	}
	return encodeCanonical(v)
}

// decodeObject reads one JSON object with numbers kept as they are written.
func decodeObject(raw string) (map[string]any, error) {
	if strings.TrimSpace(raw) == "" {
		raw = "{}" // what several models send for "no arguments"
	}
	if len(raw) > maxArgs {
		return nil, fmt.Errorf("they are %d bytes long; the limit is %d", len(raw), maxArgs)
	}
	if !utf8.ValidString(raw) {
		return nil, errors.New("they are not valid UTF-8")
	}
	if at := loneSurrogate(raw); at >= 0 {
		return nil, fmt.Errorf("the escape %s at byte %d is half a surrogate pair", raw[at:at+6], at)
	}
	d := json.NewDecoder(strings.NewReader(raw))
	d.UseNumber()
	v, err := decodeValue(d, 0)
	if err != nil {
		return nil, describeSyntax(err, raw)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is text behind the closing brace")
	}
	m, ok := v.(map[string]any)
	if !ok {
		return nil, errors.New("they are not a JSON object")
	}
	return m, nil
}

// describeSyntax words a decoding error for the model.
func describeSyntax(err error, raw string) error {
	var syn *json.SyntaxError
	switch {
	case errors.As(err, &syn):
		return fmt.Errorf("they are not valid JSON: %s (byte %d of %d)", syn.Error(), syn.Offset, len(raw))
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("they are not valid JSON: the text ends too early, after %d bytes", len(raw))
	}
	return err
}

func decodeValue(d *json.Decoder, depth int) (any, error) {
	if depth > maxNesting {
		return nil, fmt.Errorf("they nest deeper than %d levels", maxNesting)
	}
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	delim, ok := t.(json.Delim)
	if !ok {
		return t, nil // string, json.Number, bool or nil
	}
	if delim == '[' {
		list := []any{}
		for d.More() {
			v, err := decodeValue(d, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err := d.Token()
		return list, err
	}
	m := map[string]any{}
	for d.More() {
		k, err := d.Token()
		if err != nil {
			return nil, err
		}
		name, ok := k.(string)
		if !ok {
			return nil, errors.New("an object's key is not a string")
		}
		if _, twice := m[name]; twice {
			return nil, fmt.Errorf("the key %q is given twice", name)
		}
		if m[name], err = decodeValue(d, depth+1); err != nil {
			return nil, err
		}
	}
	_, err = d.Token()
	return m, err
}

// loneSurrogate finds an escape that is half a surrogate pair: a decoder would
// put a replacement character there. It returns its offset or -1.
func loneSurrogate(raw string) int {
	for i := 0; i+1 < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		if raw[i+1] != 'u' {
			i++
			continue
		}
		hi, ok := hex4(raw, i+2)
		switch {
		case !ok: // the decoder reports it
			i++
		case hi >= 0xDC00 && hi <= 0xDFFF:
			return i
		case hi >= 0xD800 && hi <= 0xDBFF:
			lo, ok := hex4(raw, i+8)
			if !ok || raw[i+6] != '\\' || raw[i+7] != 'u' || lo < 0xDC00 || lo > 0xDFFF {
				return i
			}
			i += 11
		default:
			i += 5
		}
	}
	return -1
}

func hex4(s string, at int) (uint64, bool) {
	if at+4 > len(s) {
		return 0, false
	}
	n, err := strconv.ParseUint(s[at:at+4], 16, 16)
	return n, err == nil
}

func encodeCanonical(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	if err := writeCanonical(&b, v); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func writeCanonical(b *bytes.Buffer, v any) error {
	switch v := v.(type) {
	case map[string]any:
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		sort.Strings(keys)
		b.WriteByte('{')
		for i, k := range keys {
			if i > 0 {
				b.WriteByte(',')
			}
			if err := writeString(b, k); err != nil {
				return err
			}
			b.WriteByte(':')
			if err := writeCanonical(b, v[k]); err != nil {
				return err
			}
		}
		b.WriteByte('}')
	case []any:
		b.WriteByte('[')
		for i, e := range v {
			if i > 0 {
				b.WriteByte(',')
			}
			if err := writeCanonical(b, e); err != nil {
				return err
			}
		}
		b.WriteByte(']')
	case json.Number:
		n, err := canonicalNumber(v.String())
		if err != nil {
			return err
		}
		b.WriteString(n)
	case string:
		return writeString(b, v)
	case bool:
		b.WriteString(strconv.FormatBool(v))
	case nil:
		b.WriteString("null")
	default:
		return fmt.Errorf("canonical JSON: no spelling for %T", v)
	}
	return nil
}

func writeString(b *bytes.Buffer, s string) error {
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		return err
	}
	b.Truncate(b.Len() - 1) // the encoder ends with a new line
	return nil
}

// canonicalNumber spells a number: whole ones exactly, others as the shortest
// decimal of their float64.
func canonicalNumber(s string) (string, error) {
	if len(s) > 64 {
		return "", fmt.Errorf("the number %s… has too many digits", s[:20])
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return "", fmt.Errorf("the number %s is out of range", s)
	}
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		if e, err := strconv.Atoi(s[i+1:]); err != nil || e > 30 || e < -30 {
			return strconv.FormatFloat(f, 'g', -1, 64), nil
		}
	}
	if r, ok := new(big.Rat).SetString(s); ok && r.IsInt() {
		return r.Num().String(), nil
	}
	return strconv.FormatFloat(f, 'g', -1, 64), nil
}
