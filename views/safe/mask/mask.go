// Package mask hides keys of well-known shapes in text that people or models
// are shown. What runs, and what the ledger holds, is never touched: a mask is
// for the eye.
//
// A shape counts only where it stands by itself and is long enough to be a key,
// so that ordinary words, hashes and file names pass. It is a function of its
// input, does no I/O, and stands on nothing of ours.
package mask

import (
	"regexp"
	"strings"
)

// shape is one kind of key. hint is a text that every match contains: looking
// for it is what most texts cost.
type shape struct {
	hint string
	re   *regexp.Regexp // the first group stays readable, the second is masked
}

var shapes = []shape{
	{"sk-", regexp.MustCompile(`\b(sk-(?:ant-|proj-|or-)?)([A-Za-z0-9_-]*[0-9][A-Za-z0-9_-]*)`)},
	{"_live_", regexp.MustCompile(`\b([sr]k_live_)([A-Za-z0-9]{16,})`)},
	{"gh", regexp.MustCompile(`\b(gh[pousr]_)([A-Za-z0-9]{30,})`)},
	{"github_pat_", regexp.MustCompile(`\b(github_pat_)([A-Za-z0-9_]{22,})`)},
	{"glpat-", regexp.MustCompile(`\b(glpat-)([A-Za-z0-9_-]{20,})`)},
	{"AKIA", regexp.MustCompile(`\b(AKIA)([0-9A-Z]{16})\b`)},
	{"ASIA", regexp.MustCompile(`\b(ASIA)([0-9A-Z]{16})\b`)},
	{"AIza", regexp.MustCompile(`\b(AIza)([0-9A-Za-z_-]{35})`)},
	{"xox", regexp.MustCompile(`\b(xox[abeprs]-)([0-9A-Za-z-]{10,})`)},
	{"npm_", regexp.MustCompile(`\b(npm_)([A-Za-z0-9]{36})\b`)},
	{"pypi-", regexp.MustCompile(`\b(pypi-)([A-Za-z0-9_-]{50,})`)},
	{"hf_", regexp.MustCompile(`\b(hf_)([A-Za-z0-9]{30,})\b`)},
	{"eyJ", regexp.MustCompile(`\b(eyJ)([A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,})`)},
	{"PRIVATE KEY-----", regexp.MustCompile(`(?s)(-----BEGIN [A-Z ]*PRIVATE KEY-----)(.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\z))`)},
	{"://", regexp.MustCompile(`\b([a-z][a-z0-9+.-]*://[^/\s:@"'<>]*:)([^/\s@"'<>]{3,})@`)},
	{"earer ", regexp.MustCompile(`\b([Bb]earer )([A-Za-z0-9._~+/=-]{20,})`)},
}

// Sign is what stands for the masked part.
const Sign = "…[masked]"

// Text masks the keys in a text and says how many there were. Masking twice is
// masking once.
func Text(s string) (string, int) {
	n := 0
	for i := range shapes {
		p := &shapes[i]
		if strings.Contains(s, p.hint) {
			var k int
			s, k = p.mask(s)
			n += k
		}
	}
	return s, n
}

// minSK is the least length of what follows "sk-": shorter ones are words.
const minSK = 20

func (p *shape) mask(s string) (string, int) {
	at := p.re.FindAllStringSubmatchIndex(s, -1)
	if len(at) == 0 {
		return s, 0
	}
	var b strings.Builder
	last, n := 0, 0
	for _, m := range at {
		from, to := m[4], m[5]
		secret := s[from:to]
		if secret == "" || secret == Sign || p.hint == "sk-" && len(secret) < minSK || strings.HasPrefix(secret, "${") {
			continue
		}
		if m[0] > 0 && s[m[0]-1] == '-' && p.hint == "sk-" {
			continue // the end of a longer word
		}
		b.WriteString(s[last:from])
		b.WriteString(Sign)
		last = to
		n++
	}
	b.WriteString(s[last:])
	return b.String(), n
}
