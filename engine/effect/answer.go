package effect

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"pawl/engine/machine"
)

// judge finds the first answer that fits what was said. what names who was
// asked, for people.
func judge(answers []machine.Answer, what, code, said string) Finding {
	for _, a := range answers {
		if len(a.Codes) > 0 && !slices.Contains(a.Codes, code) {
			continue
		}
		if a.Match != "" {
			re, err := regexp.Compile(a.Match)
			if err != nil {
				return inconclusive(fmt.Sprintf("a pattern of the contract cannot be read: %v", err))
			}
			if !re.MatchString(said) {
				continue
			}
		}
		return Finding{Verdict: a.Verdict, Text: what + " " + answered(a.Verdict, code)}
	}
	text := fmt.Sprintf("%s answered with %s, which the contract gives no meaning", what, code)
	if wantsLogin(said) {
		text = what + " wants a password or a login that is not at hand here"
	}
	return inconclusive(text)
}

func answered(v machine.Verdict, code string) string {
	switch v {
	case machine.VerdictHappened:
		return "says that it is there (" + code + ")"
	case machine.VerdictNotHappened:
		return "says that it is not there (" + code + ")"
	case machine.VerdictConflict:
		return "shows something else than was to be done (" + code + ")"
	case machine.VerdictInconclusive, machine.VerdictUnknown:
	}
	return "cannot tell (" + code + ")"
}

var login = regexp.MustCompile(`(?i)password|passphrase|passcode|permission denied|unauthori[sz]ed|not logged in|log ?in (?:first|to|required)|auth(?:entication|orization) (?:failed|required)|need(?:s)? auth|credential|ENEEDAUTH|two-factor|one-time`)

// wantsLogin reports whether a failed look says that it lacks a login.
func wantsLogin(s string) bool { return login.MatchString(s) }

// detail is what was asked and seen, bounded.
func detail(asked, code, said string) string {
	const most = 16 << 10
	if len(said) > most {
		said = strings.ToValidUTF8(said[:most], "") + fmt.Sprintf("\n(%d bytes more)", len(said)-most)
	}
	return "asked " + asked + "\ncode " + code + "\n\n" + said
}
