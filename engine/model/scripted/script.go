// Package scripted is a model that answers from a script. It is a model like
// any other: it sees what a model would be shown and calls the same tools on
// the same files, without a key and without a network.
//
// It keeps no state. Where a script stands follows from the run's last answer
// (its request id) or, where that is not known, from the conversation shown; so
// a restarted process with the same ledger gets the same answer, and a turn
// that is asked for twice gets it twice.
package scripted

import (
	"fmt"
	"time"

	"pawl/engine/machine"
)

// Script is a parsed script. It is immutable and safe for concurrent use.
type Script struct {
	Name   string
	file   string
	steps  []step
	labels map[string]int
}

// Len is the number of steps.
func (s *Script) Len() int { return len(s.steps) }

// String names the script for messages.
func (s *Script) String() string {
	if s.file == "" || s.file == s.Name {
		return fmt.Sprintf("script %q", s.Name)
	}
	return fmt.Sprintf("script %q (%s)", s.Name, s.file)
}

// step is one model turn of the script.
type step struct {
	line     int // of its header, for messages
	label    string
	expect   []string
	reject   []string
	own      answer
	branches []branch
	repeat   int // how often it is played; at least 1
	until    []string
}

// branch is another answer of a step, for when what was shown fits.
type branch struct {
	match []string
	answer
}

// answer is what the model says in one turn.
type answer struct {
	say        string
	calls      []call
	stop       machine.StopReason
	fail       machine.FailClass
	failAt     FailAt
	failTimes  int // attempts of a turn that fail; -1: all
	retryAfter time.Duration
	delay      time.Duration
	cost       int64 // micro-USD
	next       int   // step that follows, -1: the next in order
}

// call is one tool call, before templates are filled in.
type call struct {
	tool string
	id   string
	args map[string]any
	raw  string
	rawd bool // raw was given, even if empty
}

// FailAt says how far an answer gets before it fails.
type FailAt string

// The places where an answer can fail.
const (
	FailAtStart FailAt = "start" // before the first byte of the answer
	FailAtText  FailAt = "text"  // in the middle of the text
	FailAtArgs  FailAt = "args"  // in the middle of the first call's arguments
	FailAtCalls FailAt = "calls" // after whole calls, before the stop reason
)
