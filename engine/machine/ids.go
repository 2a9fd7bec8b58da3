// Package machine is the pure core: it folds a run's events into a State and
// names the one next action. Recovery is not a mode of it: a restarted process
// folds the same events and asks the same Next.
//
// It does no I/O, reads no clock, starts no goroutine, and knows no SQL.
package machine

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// RunID names a run, for ever and everywhere: "r" and base-32 characters.
type RunID string

// EffectID names an effect: its run, a dot, "e" and its number in the run.
type EffectID string

// ApprovalID names one question "may exactly this effect run?": RUN.aN.
type ApprovalID string

// QuestionID names a question to the operator: RUN.qN.
type QuestionID string

// EffectIDOf makes the id of a run's ord-th effect, from 1.
func EffectIDOf(r RunID, ord int) EffectID { return EffectID(fmt.Sprintf("%s.e%d", r, ord)) }

// ApprovalIDOf makes the id of a run's ord-th approval, from 1.
func ApprovalIDOf(r RunID, ord int) ApprovalID { return ApprovalID(fmt.Sprintf("%s.a%d", r, ord)) }

// QuestionIDOf makes the id of a run's ord-th question, from 1.
func QuestionIDOf(r RunID, ord int) QuestionID { return QuestionID(fmt.Sprintf("%s.q%d", r, ord)) }

// Run returns the run an effect belongs to.
func (e EffectID) Run() RunID { return runOf(string(e)) }

// Short is the part a person types to confirm a forced verdict: "e7".
func (e EffectID) Short() string { return shortOf(string(e)) }

// Ord is the effect's number in its run, 0 if the id is malformed.
func (e EffectID) Ord() int { return ordOf(string(e), 'e') }

// Run returns the run an approval belongs to.
func (a ApprovalID) Run() RunID { return runOf(string(a)) }

// Ord is the approval's number in its run, 0 if the id is malformed.
func (a ApprovalID) Ord() int { return ordOf(string(a), 'a') }

// Run returns the run a question belongs to.
func (q QuestionID) Run() RunID { return runOf(string(q)) }

// Ord is the question's number in its run, 0 if the id is malformed.
func (q QuestionID) Ord() int { return ordOf(string(q), 'q') }

func runOf(id string) RunID {
	r, _, _ := strings.Cut(id, ".")
	return RunID(r)
}

func shortOf(id string) string {
	_, s, ok := strings.Cut(id, ".")
	if !ok {
		return id
	}
	return s
}

func ordOf(id string, letter byte) int {
	s := shortOf(id)
	if len(s) < 2 || s[0] != letter {
		return 0
	}
	n, err := strconv.Atoi(s[1:])
	if err != nil || n < 1 {
		return 0
	}
	return n
}

// Digest is a SHA-256 over canonical bytes.
type Digest [32]byte

// DigestOf hashes bytes.
func DigestOf(b []byte) Digest { return sha256.Sum256(b) }

// IsZero reports whether d names nothing.
func (d Digest) IsZero() bool { return d == Digest{} }

// String returns lower-case hex.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// Short returns the first twelve hex characters, for people.
func (d Digest) Short() string { return d.String()[:12] }

// MarshalText writes lower-case hex, so that JSON output is readable.
func (d Digest) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (d *Digest) UnmarshalText(b []byte) error {
	if hex.DecodedLen(len(b)) != len(d) {
		return fmt.Errorf("digest: want %d hex characters, have %d", 2*len(d), len(b))
	}
	_, err := hex.Decode(d[:], b)
	return err
}

// MarshalBinary writes the 32 bytes, which is how CBOR stores a digest.
func (d Digest) MarshalBinary() ([]byte, error) {
	if d.IsZero() {
		return nil, nil
	}
	return d[:], nil
}

// UnmarshalBinary reads what MarshalBinary wrote.
func (d *Digest) UnmarshalBinary(b []byte) error {
	switch len(b) {
	case 0:
		*d = Digest{}
	case len(d):
		copy(d[:], b)
	default:
		return fmt.Errorf("digest: want %d bytes, have %d", len(d), len(b))
	}
	return nil
}

// Text is content from outside: short content inline, the rest by hash.
type Text struct {
	Inline string `json:"inline,omitempty" cbor:"1,keyasint,omitempty"` // whole if Blob is zero, else a preview
	Blob   Digest `json:"blob,omitzero" cbor:"2,keyasint,omitzero"`
	Size   int64  `json:"size,omitempty" cbor:"3,keyasint,omitempty"` // bytes of the whole, given with Blob
}

// IsZero reports whether there is no content.
func (t Text) IsZero() bool { return t.Inline == "" && t.Blob.IsZero() }

// MaxInline is the size in bytes up to which content stays in an event.
const MaxInline = 2048

// Instant is a reading of the boot's monotonic clock. Two instants compare
// only if their boot is the same.
type Instant struct {
	Boot string `json:"boot,omitempty" cbor:"1,keyasint,omitempty"`
	Mono int64  `json:"mono,omitempty" cbor:"2,keyasint,omitempty"` // µs since boot, suspend included
}

// IsZero reports whether the instant names no time.
func (i Instant) IsZero() bool { return i == Instant{} }

// Since returns i-j in µs; ok is false if they are of different boots.
func (i Instant) Since(j Instant) (us int64, ok bool) {
	if i.Boot == "" || i.Boot != j.Boot {
		return 0, false
	}
	return i.Mono - j.Mono, true
}
