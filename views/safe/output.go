package safe

import (
	"strings"
	"unicode/utf8"

	"pawl/views/safe/mask"
)

// Output returns what a command printed as lines that can be drawn: escape
// sequences are dropped with all that they carry, a line that was overwritten
// by carriage returns shows its last state, backspaces take back what they
// took back, and what is invisible otherwise becomes visible as in Block.
func Output(s string) string {
	if plain(s) {
		s, _ = mask.Text(s)
		return s
	}
	s = strip(s)
	if strings.ContainsAny(s, "\r\b") {
		lines := strings.Split(s, "\n")
		for i, l := range lines {
			lines[i] = lastState(l)
		}
		s = strings.Join(lines, "\n")
	}
	out, _ := Block(s)
	return out
}

// lastState is a line after its carriage returns and backspaces.
func lastState(l string) string {
	l = strings.TrimRight(l, "\r")
	if i := strings.LastIndexByte(l, '\r'); i >= 0 {
		l = l[i+1:]
	}
	if !strings.ContainsRune(l, '\b') {
		return l
	}
	var b []byte
	for i := 0; i < len(l); i++ {
		if l[i] != '\b' {
			b = append(b, l[i])
			continue
		}
		if len(b) > 0 {
			_, n := utf8.DecodeLastRune(b)
			b = b[:len(b)-n]
		}
	}
	return string(b)
}

// strip drops escape sequences, whole or cut off, in their seven-bit and their
// eight-bit form, and the bell.
func strip(s string) string {
	var b strings.Builder
	b.Grow(len(s))
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case c == 0x07:
			i++
		case c == 0x1b:
			i += escapeLen(s[i:])
		case c == 0xc2 && i+1 < len(s) && isIntroducer(s[i+1]):
			i += 2 + bodyLen(s[i+1], s[i+2:])
		default:
			b.WriteByte(c)
			i++
		}
	}
	return b.String()
}

// isIntroducer reports whether the C1 control opens a sequence: DCS, SOS, CSI, OSC, PM, APC.
func isIntroducer(c byte) bool {
	switch c {
	case 0x90, 0x98, 0x9b, 0x9d, 0x9e, 0x9f:
		return true
	}
	return false
}

// escapeLen is the length of the sequence that s begins with; s[0] is ESC.
func escapeLen(s string) int {
	if len(s) < 2 {
		return 1
	}
	switch c := s[1]; {
	case c == '[' || c == ']' || c == 'P' || c == 'X' || c == '^' || c == '_':
		return 2 + bodyLen(c+0x40, s[2:])
	case c >= 0x20 && c <= 0x2f: // intermediates, then one final byte
		i := 1
		for i < len(s) && s[i] >= 0x20 && s[i] <= 0x2f {
			i++
		}
		if i < len(s) && s[i] >= 0x30 && s[i] <= 0x7e {
			i++
		}
		return i
	case c >= 0x30 && c <= 0x7e:
		return 2
	}
	return 1
}

// bodyLen is the length of what follows the introducer. CSI ends with its final
// byte; strings end with BEL or ST, and with a new line or their 4096th byte at
// the latest, so that one that was cut off does not swallow the rest.
func bodyLen(intro byte, s string) int {
	if intro == 0x9b {
		for i := 0; i < len(s); i++ {
			switch c := s[i]; {
			case c >= 0x40 && c <= 0x7e:
				return i + 1
			case c < 0x20 || c > 0x3f:
				return i
			}
		}
		return len(s)
	}
	for i := 0; i < len(s) && i < 4096; i++ {
		switch {
		case s[i] == 0x07:
			return i + 1
		case s[i] == 0x1b && i+1 < len(s) && s[i+1] == '\\':
			return i + 2
		case s[i] == 0xc2 && i+1 < len(s) && s[i+1] == 0x9c:
			return i + 2
		case s[i] == '\n' || s[i] == 0x1b:
			return i
		}
	}
	return min(len(s), 4096)
}
