package model

import (
	"errors"
	"time"

	"pawl/engine/machine"
)

// Error is the error of an attempt that gave no response.
type Error struct {
	Class   machine.FailClass
	Message string // what, why, what next; fit for a person to read
	// RetryAfter is how long the provider asked us to wait; 0 if it did not.
	RetryAfter time.Duration
	Status     int    // HTTP status, 0 if none was received
	Partial    string // text that arrived before the end; for people, never for the model
	// Sent: the request, or a part of it, left this machine, so that it may have cost money.
	Sent  bool
	Usage machine.Usage // as far as the provider told
	Err   error         // the cause, if there is one to look at
}

func (e *Error) Error() string { return e.Message }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// AsError returns the *Error in err's chain, or nil.
func AsError(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return nil
}
