package effect

import (
	"strings"
	"testing"
	"time"

	"pawl/engine/machine"
)

func TestQuiet(t *testing.T) {
	const second = int64(time.Second / time.Microsecond)
	proof := func(covers int) *machine.Quiescence {
		return &machine.Quiescence{Covers: covers, Proof: "pid-namespace", At: machine.Instant{Boot: "b", Mono: 10 * second}}
	}
	for _, tt := range []struct {
		name     string
		attempts int
		q        *machine.Quiescence
		inFlight int64
		now      machine.Instant
		proven   bool
		left     time.Duration
		missing  string
	}{
		{"never sent", 0, nil, 5 * second, machine.Instant{}, true, 0, ""},
		{"no proof", 1, nil, 5 * second, machine.Instant{Boot: "b", Mono: 99 * second}, false, 5 * time.Second, "proven dead"},
		{"proof of an earlier attempt", 2, proof(1), 5 * second, machine.Instant{Boot: "b", Mono: 99 * second}, false, 5 * time.Second, "earlier attempt"},
		{"just proven", 1, proof(1), 5 * second, machine.Instant{Boot: "b", Mono: 10 * second}, true, 5 * time.Second, ""},
		{"half way", 1, proof(1), 5 * second, machine.Instant{Boot: "b", Mono: 12 * second}, true, 3 * time.Second, ""},
		{"over", 2, proof(2), 5 * second, machine.Instant{Boot: "b", Mono: 15 * second}, true, 0, ""},
		{"long over", 1, proof(1), 5 * second, machine.Instant{Boot: "b", Mono: 99 * second}, true, 0, ""},
		{"another boot", 1, proof(1), 5 * second, machine.Instant{Boot: "c", Mono: 99 * second}, false, 5 * time.Second, "restarted"},
		{"no clock", 1, proof(1), 5 * second, machine.Instant{}, false, 5 * time.Second, "restarted"},
		{"another boot, nothing to wait for", 1, proof(1), 0, machine.Instant{Boot: "c"}, true, 0, ""},
	} {
		e := &machine.Effect{
			Contract: machine.Contract{Sender: machine.SenderCommand, InFlight: tt.inFlight},
			Attempts: make([]machine.Attempt, tt.attempts), Quiescence: tt.q,
		}
		proven, left, missing := Quiet(e, tt.now)
		if proven != tt.proven || left != tt.left || (missing == "") != (tt.missing == "") || !strings.Contains(missing, tt.missing) {
			t.Errorf("%s: %v %v %q", tt.name, proven, left, missing)
		}
	}
	for _, s := range []machine.Sender{machine.SenderUnknown, machine.SenderPawl, machine.SenderCommand, machine.SenderLocal} {
		if _, _, missing := Quiet(&machine.Effect{Contract: machine.Contract{Sender: s}, Attempts: make([]machine.Attempt, 1)}, machine.Instant{}); missing == "" {
			t.Errorf("sender %d: nothing is missing", s)
		}
	}
}
