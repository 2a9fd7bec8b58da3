//go:build !cgo

package ledger

// Without cgo the SQLite driver still compiles, as a stub whose first query
// fails. The undefined name below turns that into a build error that says so.
var _ = this_program_needs_CGO_ENABLED_1_and_a_C_compiler_because_its_ledger_is_SQLite
