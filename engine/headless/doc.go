// Package headless is every command of Pawl that needs no screen, and the
// wiring that the screen shares with them: which ledger, opened how, driven by
// whom, ended with which exit code.
//
// It owns the command line: flags, plain output, JSON, errors as what, why and
// what next. It decides nothing about runs, which is the engine's part, and
// draws no screen: whoever calls Execute hands that in as a function.
package headless
