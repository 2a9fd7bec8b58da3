package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"pawl/engine/machine"
	"pawl/engine/policy"
)

const (
	defaultEvidence = 16 << 10 // bytes of one read_evidence
	maxEvidence     = 64 << 10
	minHandle       = 8 // hex characters of a handle
)

var readEvidenceSpec = Spec{
	Name:    "read_evidence",
	Version: 1,
	Description: "Read the whole of an output that was shortened, from its handle. offset is the first byte (from 0; a negative one counts from " +
		"the end) and limit the number of bytes (default 16384, at most 65536).",
	Schema: schema(`{
  "type": "object",
  "properties": {
    "handle": {"type": "string", "minLength": 8, "maxLength": 80, "description": "the handle as shown"},
    "offset": {"type": "integer", "description": "first byte; default 0"},
    "limit": {"type": "integer", "minimum": 1, "maximum": 65536, "description": "number of bytes; default 16384"}
  },
  "required": ["handle"],
  "additionalProperties": false
}`),
}

type readEvidence struct{}

type readEvidenceArgs struct {
	Handle string `json:"handle"`
	Offset int64  `json:"offset"`
	Limit  int64  `json:"limit"`
}

func (*readEvidence) Spec() Spec { return readEvidenceSpec }

// hex is the handle without what people put around it.
func (a readEvidenceArgs) hex() (string, error) {
	h := strings.ToLower(strings.TrimSpace(a.Handle))
	h = strings.TrimPrefix(strings.TrimPrefix(h, "sha256:"), "blob:")
	if len(h) < minHandle || len(h) > 64 || strings.Trim(h, "0123456789abcdef") != "" {
		return "", argErrorf("The handle %s is none: a handle is 8 to 64 hexadecimal digits, as shown with the shortened output.", quoteShort(a.Handle))
	}
	return h, nil
}

// Plan says which output will be read.
func (*readEvidence) Plan(_ context.Context, _ Env, args json.RawMessage) (Plan, error) {
	a, err := decode[readEvidenceArgs](args)
	if err != nil {
		return Plan{}, err
	}
	h, err := a.hex()
	if err != nil {
		return Plan{}, err
	}
	return Plan{
		Contract: readContract(readEvidenceSpec.Name, readEvidenceSpec.Version),
		Summary:  "read output " + clip(h, 12),
		Target:   h,
		Subject:  policy.Subject{Tool: readEvidenceSpec.Name, Class: machine.ClassRead, Internal: true},
		Args:     args,
	}, nil
}

// Measure has nothing to record for a look.
func (*readEvidence) Measure(context.Context, Env, machine.Contract, json.RawMessage) (Measured, error) {
	return Measured{}, nil
}

// Run reads a part of the output.
func (*readEvidence) Run(ctx context.Context, env Env, c Call) Outcome {
	a, err := decode[readEvidenceArgs](c.Args)
	if err != nil {
		return badArgs(err)
	}
	h, err := a.hex()
	if err != nil {
		return badArgs(err)
	}
	d, err := resolveHandle(env.State, h)
	if err != nil {
		return done(false, CodeNotFound, err.Error())
	}
	if env.Blob == nil {
		return done(false, CodeUnreadable, "Stored outputs cannot be read here.")
	}
	b, err := env.Blob(ctx, d)
	if err != nil {
		return done(false, CodeUnreadable, fmt.Sprintf("The output %s cannot be read: %v.", d.Short(), err))
	}
	return showPart(d, b, a)
}

// showPart renders a window of bytes at characters' borders.
func showPart(d machine.Digest, b []byte, a readEvidenceArgs) Outcome {
	if k := inspect(b); !k.text() {
		return done(true, "0", describeBytes("The output "+d.Short(), b, k)+"\n")
	}
	size := int64(len(b))
	from := a.Offset
	if from < 0 {
		from = max(0, size+from)
	}
	if from > size || (from == size && size > 0) {
		return done(false, CodeNotFound, fmt.Sprintf("The output %s has %s; there is no byte %d.", d.Short(), count(size, "byte"), a.Offset))
	}
	limit := a.Limit
	if limit == 0 {
		limit = defaultEvidence
	}
	to := min(size, from+min(limit, maxEvidence))
	for from > 0 && from < size && !utf8.RuneStart(b[from]) {
		from--
	}
	for to > from && to < size && !utf8.RuneStart(b[to]) {
		to--
	}
	if to == from && to < size { // a limit smaller than the character
		_, n := utf8.DecodeRune(b[from:])
		to = from + int64(n)
	}
	text := string(b[from:to])
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	text += fmt.Sprintf("[bytes %d to %d of %d", from, to, size)
	if to < size {
		text += fmt.Sprintf("; go on with offset %d", to)
	}
	return done(true, "0", text+"]\n")
}

// resolveHandle finds the one blob of the run whose hash begins so. Blobs of
// other runs are none of the model's business, even with a whole hash.
func resolveHandle(s *machine.State, prefix string) (machine.Digest, error) {
	if s == nil {
		return machine.Digest{}, argErrorf("There is no stored output in this run yet.")
	}
	found := map[machine.Digest]bool{}
	add := func(d machine.Digest) {
		if !d.IsZero() && strings.HasPrefix(d.String(), prefix) {
			found[d] = true
		}
	}
	for _, e := range s.Effects.All() {
		add(e.Args.Blob)
		add(e.Result.Output.Blob)
		for _, a := range e.Attempts {
			add(a.Partial.Blob)
		}
		for _, v := range e.Evidence {
			add(v.Blob)
		}
	}
	for _, t := range s.Turns.All() {
		add(t.Text.Blob)
		for _, c := range t.Calls {
			add(c.Args.Blob)
		}
	}
	switch len(found) {
	case 1:
		for d := range found {
			return d, nil
		}
	case 0:
		return machine.Digest{}, argErrorf("No output of this run has the handle %s.", quoteShort(prefix))
	}
	return machine.Digest{}, argErrorf("The handle %s fits %d outputs; give more of it.", quoteShort(prefix), len(found))
}
