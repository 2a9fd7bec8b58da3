// Package model asks language models.
//
// A Provider makes exactly one HTTP attempt per Complete and never retries,
// waits or falls back to something else: retries, their budget and what a lost
// answer may have cost are the engine's, where they are visible and can be
// cancelled. No call leaves this package from a response whose stop reason did
// not arrive.
package model

import (
	"context"

	"pawl/engine/machine"
	"pawl/engine/window"
)

// The vocabulary of a conversation belongs to the package that builds it; a
// pack's messages are a request's messages, without a copy.
type (
	// Role says who speaks.
	Role = window.Role
	// Message is one entry of a conversation. Providers must not write to it.
	Message = window.Message
	// ToolCall is a call of an earlier turn, under our own id.
	ToolCall = window.Call
	// ToolSpec is a tool as the model sees it.
	ToolSpec = window.ToolSpec
)

// The roles.
const (
	RoleUser      = window.RoleUser
	RoleAssistant = window.RoleAssistant
	RoleTool      = window.RoleTool
)

// Provider makes exactly one attempt per Complete. The error of a Complete that
// gave no response is always an *Error.
//
// live, if not nil, is called from Complete's goroutine with each piece of text
// as it arrives. It is for the screen only: nothing may be concluded from it.
// A Provider may be used by many runs at once.
type Provider interface {
	Complete(ctx context.Context, req Request, live func(delta string)) (Response, error)
}

// Request is everything one attempt needs. It is read, never written to.
type Request struct {
	Model     string // the provider's own name of it, without the provider prefix
	System    string
	Messages  []Message
	Tools     []ToolSpec
	MaxOutput int // tokens; 0: the provider's default
	Tokens    int // size of the request as its builder counted it; 0: not counted

	Run     string // the run's id: for logs of the other side, never an idempotency key
	Turn    int    // from 1
	Attempt int    // from 1: how often this turn has been asked for; 0 counts as 1
	// Prior is the RequestID of the run's last response, "" before the first.
	// The scripted model keeps its place there, so that it needs no memory.
	Prior string
	Vars  map[string]string // {{env.NAME}} of the scripted model
}

// Response is a whole answer: its stop reason arrived.
type Response struct {
	Text      string
	Calls     []RawCall
	Stop      machine.StopReason
	Usage     machine.Usage
	RequestID string // the provider's, for its support and for Request.Prior
}

// RawCall is a tool call as received. Its name may name no tool and its
// arguments may be no JSON: the engine judges them.
type RawCall struct {
	ProviderID string // a label only; may be empty, repeated or absurd
	Name       string
	Args       string
}
