package machine

import "fmt"

// Guard names one condition of the transition tables. A build with the tag
// "mutate" can switch each off, to see whether the explorer misses it.
type Guard string

// The guards of the effect's life and of approvals.
const (
	GuardEpoch        Guard = "epoch"         // only the lease holder's current epoch writes
	GuardNext         Guard = "next"          // ids, turns and attempts count up by one
	GuardFrom         Guard = "from"          // the transition starts where the table says
	GuardBarrier      Guard = "barrier"       // no proposed dispatch after a pause, cancel or end
	GuardApproval     Guard = "approval"      // a gated effect consumes one grant of an equal digest
	GuardGrantOnce    Guard = "grant-once"    // an approval is answered once and consumed once
	GuardClass        Guard = "class"         // only READ, WORKSPACE, KEYED are re-sent while ambiguous
	GuardSnapshot     Guard = "snapshot"      // whatever may write starts from a snapshot
	GuardCap          Guard = "cap"           // automatic attempts are bounded
	GuardFreshProbe   Guard = "fresh-probe"   // a retry follows a look newer than the verdict
	GuardHold         Guard = "hold"          // no proposed dispatch while another effect is unresolved
	GuardEvidence     Guard = "evidence"      // a proven verdict rests on unweighed evidence
	GuardQuiescence   Guard = "quiescence"    // a negative verdict only after proof that nothing can land
	GuardBeforeEffect Guard = "before-effect" // REJECTED only by a listed code, with every earlier attempt proven
	GuardTyped        Guard = "typed"         // a forced verdict has a reason and the typed short id
	GuardNullSafe     Guard = "null-safe"     // compensation while ambiguous only if null-safe and quiet
	GuardStopReason   Guard = "stop-reason"   // no intent from a turn without its stop reason
	GuardIdentity     Guard = "identity"      // a command's end is observed only if its identity was recorded
	GuardHorizon      Guard = "horizon"       // a key is used only before its horizon
	GuardBudget       Guard = "budget"        // a model request's reservation fits into what is left
	GuardSpawn        Guard = "spawn"         // one delegation makes one child, once
	GuardAdopt        Guard = "adopt"         // accepted work is taken over once
	GuardExpiry       Guard = "expiry"        // an approval is answered and used before it expires, and expires not before
)

// Guards lists all of them, for the mutation check.
func Guards() []Guard {
	return []Guard{
		GuardEpoch, GuardNext, GuardFrom, GuardBarrier, GuardApproval, GuardGrantOnce, GuardClass, GuardSnapshot,
		GuardCap, GuardFreshProbe, GuardHold, GuardEvidence, GuardQuiescence, GuardBeforeEffect, GuardTyped,
		GuardNullSafe, GuardStopReason, GuardIdentity, GuardHorizon, GuardExpiry, GuardBudget,
	}
}

// TreeGuards are those of delegation. The random histories of one run do not
// delegate, so that they have a test of their own.
func TreeGuards() []Guard { return []Guard{GuardSpawn, GuardAdopt} }

// GuardError is a transition that must not happen. The engine folds before it
// commits, so one of these is a fault of the engine or a foreign ledger.
type GuardError struct {
	Guard Guard
	Event string
	Ref   string // effect, approval, question or run
	Why   string
}

func (e *GuardError) Error() string {
	return fmt.Sprintf("%s of %s is not allowed (%s): %s", e.Event, e.Ref, e.Guard, e.Why)
}

func (g Guard) need(ok bool, ev Body, ref, why string, a ...any) error {
	if ok || off(g) {
		return nil
	}
	return &GuardError{Guard: g, Event: ev.Kind(), Ref: ref, Why: fmt.Sprintf(why, a...)}
}
