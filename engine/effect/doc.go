// Package effect knows what actions on the world promise, and how to find out
// afterwards what became of them.
//
// It recognises well-known command lines (recipes), reads what has to be on
// record before the first byte leaves (Measure), and looks at the world when a
// result is missing (Probe). It reads the world and never changes it, decides
// nothing, and writes to no ledger: a finding becomes evidence elsewhere.
package effect
