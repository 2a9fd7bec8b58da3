// Package drill breaks the engine on purpose, and compares what its recovery
// costs with what other strategies cost.
//
// The explorer runs the real engine over a simulated world: virtual time, one
// goroutine at a time, every decision drawn from a seed, so that a failing
// seed can be replayed. The world keeps a log of its own, which the ledger
// never sees; the auditor holds the ledger's events against that log and
// against the rules, which it states a second time, independently of the
// machine.
//
// It owns no truth: nothing outside a drill reads what it makes. It never
// touches a real network, repository or clock; the drill with real processes
// is the command's (package headless).
package drill
