package confine

import (
	"fmt"
	"os"
	"strings"
)

// Level says how much a command is kept from touching. It is measured by [Measure], never assumed, and is stored with
// each effect: only what ran sealed can be replayed from a snapshot without asking.
type Level uint8

// The levels, weakest first. Each includes what the ones before it promise.
const (
	// LevelUnknown is the zero value: nothing was measured. [Start] refuses it.
	LevelUnknown Level = iota
	// LevelNone runs the command as the user would: gated and identified, but free to touch anything.
	LevelNone
	// LevelPartial applies what the kernel offers, although some of what LevelGuarded promises was seen to fail.
	LevelPartial
	// LevelGuarded blocks writes outside, and all sockets, by landlock and seccomp. File metadata outside (mode,
	// owner, times) stays changeable, and the death of the whole process tree cannot be proven after a crash.
	LevelGuarded
	// LevelSealed blocks everything that the self-probe tries, and ties all processes to one namespace, whose end
	// proves them dead.
	LevelSealed
)

var levelNames = [...]string{"unknown", "none", "partial", "guarded", "sealed"}

// String returns the level's name as the user sees it.
func (l Level) String() string {
	if int(l) < len(levelNames) {
		return levelNames[l]
	}
	return fmt.Sprintf("level(%d)", uint8(l))
}

// ParseLevel reads a level's name; case does not matter.
func ParseLevel(s string) (Level, error) {
	for i, n := range levelNames {
		if strings.EqualFold(s, n) {
			return Level(i), nil
		}
	}
	return LevelUnknown, fmt.Errorf("%q is no confinement level: use none, partial, guarded or sealed", s)
}

// MarshalText writes the level's name.
func (l Level) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// UnmarshalText reads a level's name.
func (l *Level) UnmarshalText(b []byte) error {
	v, err := ParseLevel(string(b))
	*l = v
	return err
}

// MaxEnv names the variable that forces a lower level, never a higher one.
const MaxEnv = "PAWL_CONFINE_MAX"

// MaxFromEnv reads [MaxEnv]. Unset means no bound ([LevelSealed]); a word that is no level means [LevelNone], the
// safest reading of a wish to be confined less.
func MaxFromEnv() Level {
	s := os.Getenv(MaxEnv)
	if s == "" {
		return LevelSealed
	}
	l, err := ParseLevel(s)
	if err != nil || l == LevelUnknown {
		return LevelNone
	}
	return l
}

// Report is the outcome of the self-probe.
type Report struct {
	Level   Level             `json:"level"`
	Missing []string          `json:"missing,omitempty"` // what the next higher level lacks, in plain words
	Detail  map[string]string `json:"detail,omitempty"`  // attempt → "blocked", "allowed", "works" or an explanation
	Key     string            `json:"key"`               // kernel, user and binary that the result holds for
}
