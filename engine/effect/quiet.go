package effect

import (
	"time"

	"pawl/engine/machine"
)

// Quiet says how far the proof is that nothing of an effect can still land.
// proven: there is a proof for every attempt, and none of its in-flight bound
// has to be waited for on another boot's clock. left is the part of the bound
// that has still to pass: the effect is quiet when proven holds and left is
// zero. missing names what a proof needs, "" if nothing.
func Quiet(e *machine.Effect, now machine.Instant) (proven bool, left time.Duration, missing string) {
	bound := time.Duration(e.Contract.InFlight) * time.Microsecond
	q := e.Quiescence
	switch {
	case len(e.Attempts) == 0:
		return true, 0, ""
	case q == nil:
		return false, bound, needs(e.Contract.Sender)
	case q.Covers < len(e.Attempts):
		return false, bound, "the proof covers an earlier attempt; " + needs(e.Contract.Sender)
	case bound <= 0:
		return true, 0, ""
	}
	us, ok := now.Since(q.At)
	if !ok {
		return false, bound, "the machine was restarted since the proof, so the time that has passed is not known; it has to be taken again"
	}
	return true, max(0, bound-time.Duration(us)*time.Microsecond), ""
}

func needs(s machine.Sender) string {
	switch s {
	case machine.SenderCommand:
		return "the command and all that it started have to be proven dead"
	case machine.SenderPawl:
		return "the Pawl process that sent it has to be gone, or its connection closed"
	case machine.SenderLocal:
		return "the Pawl process that wrote has to be gone"
	case machine.SenderUnknown:
	}
	return "who sent it is not on record"
}
