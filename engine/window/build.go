package window

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"strings"

	"pawl/engine/machine"
)

// Options bound and complete a pack. They are the same for a whole window.
type Options struct {
	// Budget in tokens; 0: none. Build never leaves anything out because of it:
	// a pack that is over its budget says so, and Turn finds the window to open
	// instead.
	Budget int
	Tools  []ToolSpec
	// OutputLimit in bytes per output; 0: the constant OutputLimit.
	OutputLimit int
}

// Pack is what the model sees next.
type Pack struct {
	System   string
	Messages []Message
	Tools    []ToolSpec
	Sections []Section
	Left     []LeftOut
	Guess    int // tokens of the whole request, by its bytes
	Tokens   int // the same, calibrated by what the provider counted so far
	Window   int
	Budget   int // of Options
	Over     bool
	// Digest covers every byte above that is sent.
	Digest machine.Digest
}

// Build builds the pack of a run's next request. It is a function of its
// arguments: the same events, options and blobs give the same bytes. It never
// writes to s. The error names a blob that cannot be read, or standing
// instructions of a newer version.
func Build(s *machine.State, src Source, o Options) (Pack, error) {
	return new(Builder).Build(s, src, o)
}

// Transcript is the text of the turns, as a person reads them.
func (p *Pack) Transcript() string {
	var b strings.Builder
	for i := range p.Messages {
		m := &p.Messages[i]
		if i == 0 {
			continue // the opening; its sections have their own text
		}
		switch m.Role {
		case RoleAssistant:
			b.WriteString("── model ──\n")
		case RoleTool:
			b.WriteString("── result of " + m.CallID + " ──\n")
		case RoleUser:
			b.WriteString("── pawl ──\n")
		}
		if m.Text != "" {
			b.WriteString(strings.TrimRight(m.Text, "\n") + "\n")
		}
		for _, c := range m.Calls {
			b.WriteString("call " + c.ID + ": " + c.Name + " " + string(c.Args) + "\n")
		}
	}
	return b.String()
}

// digester hashes fields with their lengths, so that no two packs that differ
// have the same stream of bytes.
type digester struct{ h hash.Hash }

func newDigester() digester { return digester{sha256.New()} }

func (d digester) str(s string) {
	var n [8]byte
	binary.BigEndian.PutUint64(n[:], uint64(len(s)))
	d.h.Write(n[:])
	d.h.Write([]byte(s))
}

func (d digester) message(m *Message) {
	d.str(string(m.Role))
	d.str(m.Text)
	d.str(m.CallID)
	for i := range m.Calls {
		d.str(m.Calls[i].ID)
		d.str(m.Calls[i].Name)
		d.str(string(m.Calls[i].Args))
	}
}

func (d digester) sum() (out machine.Digest) {
	d.h.Sum(out[:0])
	return out
}

// chain is the digest of a conversation up to and with one more turn.
func chain(before machine.Digest, msgs []Message) machine.Digest {
	d := newDigester()
	d.h.Write(before[:])
	for i := range msgs {
		d.message(&msgs[i])
	}
	return d.sum()
}
