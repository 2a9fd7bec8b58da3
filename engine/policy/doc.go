// Package policy judges what an action would do before it may run.
//
// It parses shell lines, matches them against the rules of a run, and decides:
// go, ask the operator, or refuse. It is pure: it reads no file, no clock and
// no environment, so that the same action under the same rules always gets the
// same answer. What it cannot read for certain, it does not guess: it asks.
package policy
