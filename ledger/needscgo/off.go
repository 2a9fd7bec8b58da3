//go:build !cgo

package needscgo

// The name does not exist: it is the message.
var _ = this_program_needs_CGO_ENABLED_1_and_a_C_compiler_because_its_ledger_is_SQLite
