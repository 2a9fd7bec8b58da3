// Package window builds what a model is shown next, from a run's state alone.
//
// It is pure: no I/O beyond content-addressed blobs, no clock, no goroutine.
// The same ledger prefix gives the same bytes, on every machine and in every
// process. Whatever binds the run (its charter, the operator's words, effects
// whose outcome is not known) stands first and word for word. Every call has
// exactly one result, and a missing result is told as unknown: it is never
// called a failure, and never an invitation to try again.
package window
