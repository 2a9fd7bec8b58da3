package policy

import "pawl/engine/machine"

// Access is one path that an action reads or writes.
type Access struct {
	Path string
	// Inside: the real target, through symbolic links, lies in the workspace
	// and is not part of its git state.
	Inside bool
	// Rel is the path relative to the workspace, "" outside it.
	Rel string
}

// Subject is what has to be judged about one action. Tools fill it in by
// reading only; a field left zero never makes the answer more lenient, but for
// Network and OutsideWrite, which a tool must set where they apply.
type Subject struct {
	Tool     string
	Args     []byte    // canonical JSON arguments
	Line     string    // the shell line as it will run, "" if there is none
	Commands *Commands // the parsed line, nil if there is none

	Reads  []Access
	Writes []Access

	Network bool
	Method  string // of an HTTP request
	Host    string // host:port of an HTTP request, for people
	URL     string // whole URL of an HTTP request; without it no rule covers the request

	// Sealed: it will run sealed and without network, or is Pawl's own edit
	// inside the workspace.
	Sealed bool
	// Declared: the operator's own check or setup command.
	Declared bool
	// Recipe is the name of the contract that the line matched, e.g. "git-push".
	Recipe string
	// OutsideWrite lists paths outside the workspace that will be made writable.
	OutsideWrite []string
	Class        machine.Class
	// Internal: it touches the ledger and nothing else.
	Internal bool
	// Secrets names the configured secrets that it is given.
	Secrets []string
	// Level is the measured confinement that commands of the run have: "sealed",
	// "guarded", "partial" or "none".
	Level string
	// Spent is what the run has cost so far, with what lost calls may have, micro-USD.
	Spent int64
	// Like: it resembles an effect whose outcome is unknown. No rule covers it.
	Like bool
}
