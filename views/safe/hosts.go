package safe

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// twins are letters of other scripts that cannot be told from Latin ones.
const twins = "аеорсухіјѕӏԁԛԝһпАВЕКМНОРСТХУІЈЅԌ" + // Cyrillic
	"οναικρυΑΒΕΖΗΙΚΜΝΟΡΤΥΧ" + // Greek
	"օոսցհ" + // Armenian
	"ıɑɡⅼｏ" // other Latin

// lookAlikes finds letters in host names that pose as Latin ones, by byte
// offset: where a label mixes them with Latin letters, or consists of nothing
// else in what is an address for certain. Ordinary words and names of other
// scripts are left alone, and so is everything that is not a host.
func lookAlikes(s string) map[int]bool {
	if !hasHigh(s) || !strings.ContainsRune(s, '.') || !strings.ContainsAny(s, twins) {
		return nil
	}
	var out map[int]bool
	for at := 0; at < len(s); {
		r, n := utf8.DecodeRuneInString(s[at:])
		if !hostRune(r) {
			at += n
			continue
		}
		end := at
		for end < len(s) {
			r, n := utf8.DecodeRuneInString(s[end:])
			if !hostRune(r) {
				break
			}
			end += n
		}
		token := s[at:end]
		sure := strings.HasSuffix(s[:at], "://") || strings.HasSuffix(s[:at], "@") || strings.HasPrefix(token, "www.")
		if strings.Contains(strings.Trim(token, "."), ".") {
			from := at
			for label := range strings.SplitSeq(token, ".") {
				if suspicious(label, sure) {
					if out == nil {
						out = map[int]bool{}
					}
					for i, r := range label {
						if r > 0x7f && strings.ContainsRune(twins, r) {
							out[from+i] = true
						}
					}
				}
				from += len(label) + 1
			}
		}
		at = end
	}
	return out
}

func hasHigh(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] >= 0x80 {
			return true
		}
	}
	return false
}

func hostRune(r rune) bool {
	return r == '.' || r == '-' || r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r))
}

// suspicious reports whether a label of a host poses as a Latin one.
func suspicious(label string, sure bool) bool {
	latin, twin, other := 0, 0, 0
	for _, r := range label {
		switch {
		case r < 0x80:
			if unicode.IsLetter(r) {
				latin++
			}
		case strings.ContainsRune(twins, r):
			twin++
		default:
			other++
		}
	}
	return twin > 0 && other == 0 && (latin > 0 || sure)
}
