package safe

import (
	"unicode"
	"unicode/utf8"
)

const (
	zeroWidthNonJoiner = 0x200c
	zeroWidthJoiner    = 0x200d
	textStyle          = 0xfe0e // variation selectors that ordinary emoji carry
	emojiStyle         = 0xfe0f
	blackFlag          = 0x1f3f4
	cancelTag          = 0xe007f
	keycap             = 0x20e3
)

// seen are format characters that do have a picture of their own.
var seen = &unicode.RangeTable{
	R16: []unicode.Range16{
		{0x0600, 0x0605, 1},
		{0x06dd, 0x06dd, 1},
		{0x070f, 0x070f, 1},
		{0x0890, 0x0891, 1},
		{0x08e2, 0x08e2, 1},
	},
	R32: []unicode.Range32{{0x110bd, 0x110bd, 1}, {0x110cd, 0x110cd, 1}},
}

// invisible reports whether a terminal would draw nothing for r, or would obey it.
func invisible(r rune) bool {
	if r < 0x300 {
		return r < 0x20 || r >= 0x7f && r < 0xa0 || r == 0xad
	}
	switch {
	case unicode.Is(seen, r):
		return false
	case unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp,
		unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point,
		unicode.Noncharacter_Code_Point):
		return true
	case r >= 0xe0000 && r <= 0xe0fff: // tags and the reserved ones around them
		return true
	case r >= 0x1d173 && r <= 0x1d17a:
		return true
	}
	return false
}

// joining are the scripts whose spelling needs the zero-width joiners.
var joining = []*unicode.RangeTable{
	unicode.Arabic, unicode.Syriac, unicode.Mongolian, unicode.Nko, unicode.Devanagari, unicode.Bengali,
	unicode.Gurmukhi, unicode.Gujarati, unicode.Oriya, unicode.Tamil, unicode.Telugu, unicode.Kannada,
	unicode.Malayalam, unicode.Sinhala, unicode.Khmer, unicode.Myanmar, unicode.Tibetan,
}

// joins reports whether the invisible r belongs to the character before it, as
// in a family emoji or a Persian word; rest is what follows r.
func (z *scanner) joins(r rune, rest string) bool {
	if z.spaces > 0 || z.blank > 0 || z.extra > 0 {
		return false
	}
	switch r {
	case zeroWidthJoiner:
		next, _ := utf8.DecodeRuneInString(rest)
		return pictured(z.prev) && pictured(next) || unicode.In(z.prev, joining...) && unicode.In(next, joining...) ||
			unicode.Is(unicode.Mn, z.prev) && z.marks > 0 && unicode.In(next, joining...)
	case zeroWidthNonJoiner:
		next, _ := utf8.DecodeRuneInString(rest)
		return (unicode.In(z.prev, joining...) || z.marks > 0) && unicode.In(next, joining...)
	case emojiStyle, textStyle:
		if z.prev >= '0' && z.prev <= '9' || z.prev == '#' || z.prev == '*' {
			next, _ := utf8.DecodeRuneInString(rest)
			return next == keycap
		}
		return z.prev == 0xa9 || z.prev == 0xae || z.prev >= 0x2000 && pictured(z.prev)
	}
	return false
}

// pictured reports whether r is a symbol that emoji sequences are made of.
func pictured(r rune) bool {
	return r >= 0x2000 && (unicode.In(r, unicode.So, unicode.Sk, unicode.Sm, unicode.Po, unicode.Pd) || r == emojiStyle)
}

// flagTags returns the length in bytes of the tag characters that make a black
// flag that of England, Scotland or Wales; of any others, 0: tags are
// invisible, and whole sentences fit into them.
func flagTags(s string) int {
	var name []byte
	n := 0
	for i, r := range s {
		if len(name) > 5 {
			return 0
		}
		if r == cancelTag {
			n = i + utf8.RuneLen(r)
			break
		}
		if r < 0xe0020 || r > 0xe007e {
			return 0
		}
		name = append(name, byte(r-0xe0000))
	}
	switch string(name) {
	case "gbeng", "gbsct", "gbwls":
		return n
	}
	return 0
}
