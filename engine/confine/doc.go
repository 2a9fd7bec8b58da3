// Package confine runs one command inside a box and proves when everything the command started is dead.
//
// It owns the levels of confinement and their measurement, the box itself (namespaces, mounts, landlock, seccomp),
// the gate that holds a command back until its identity is on record, and the identity by which a later process finds,
// ends or declares dead what an earlier one started. It never decides whether a command may run, never writes a
// ledger, and never lowers a level by itself: a box that cannot be built as asked for is an error.
//
// The box is built by re-executing the running binary, so [Main] must be the first call of main() and of TestMain in
// every package whose tests start boxes.
package confine
