package model

import (
	"math"

	"pawl/engine/machine"
	"pawl/engine/window"
)

// Limits are what is known about a model. The zero value knows nothing.
type Limits struct {
	Context   int // tokens of a request and its answer; 0: unknown
	MaxOutput int // tokens of an answer; 0: unknown
	// Prices in USD per million tokens, which is micro-USD per token.
	InPrice, OutPrice, CachedPrice float64
	// WritePrice is the price of a token that is written to the cache; 0: InPrice.
	WritePrice float64
	// Priced: the prices above are known; they may be 0 for a model that is free.
	Priced bool
}

// Cost returns what a usage costs in micro-USD, rounded up; 0 if no price is known.
func (l Limits) Cost(u machine.Usage) int64 {
	if !l.Priced {
		return 0
	}
	cached := min(max(u.Cached, 0), max(u.Input, 0))
	written := min(max(u.Written, 0), max(u.Input, 0)-cached)
	fresh := max(u.Input, 0) - cached - written
	write := l.WritePrice
	if write == 0 {
		write = l.InPrice
	}
	return int64(math.Ceil(float64(fresh)*l.InPrice + float64(written)*write + float64(cached)*l.CachedPrice + float64(max(u.Output, 0))*l.OutPrice))
}

// AtMost returns in micro-USD what a request of that many input tokens may cost
// if nothing more is heard of it: nothing cached, the longest answer allowed.
// maxOutput 0 stands for the model's own maximum. 0 if no price is known.
func (l Limits) AtMost(input, maxOutput int) int64 {
	if maxOutput <= 0 || (l.MaxOutput > 0 && maxOutput > l.MaxOutput) {
		maxOutput = l.MaxOutput
	}
	return l.Cost(machine.Usage{Input: int64(input), Output: int64(maxOutput)})
}

// Charge fills in a usage's cost, unless the provider told it, and marks it
// estimated where no price is known. Charging twice is charging once.
func (l Limits) Charge(u machine.Usage) machine.Usage {
	if u.Cost == 0 {
		u.Cost = l.Cost(u)
	}
	if !l.Priced {
		u.Estimated = true
	}
	return u
}

// Estimate guesses a usage from what was sent and received, for providers that
// tell none. It is marked as estimated.
func Estimate(req Request, text string, calls []RawCall) machine.Usage {
	out := window.Tokens(text)
	for _, c := range calls {
		out += window.Tokens(c.Name) + window.Tokens(c.Args)
	}
	return machine.Usage{Input: int64(RequestTokens(req)), Output: int64(out), Estimated: true, Guessed: true}
}

// RequestTokens guesses the size of a request in tokens.
func RequestTokens(req Request) int {
	n := window.Tokens(req.System)
	for _, t := range req.Tools {
		n += window.Tokens(t.Name) + window.Tokens(t.Description) + window.Tokens(string(t.Schema))
	}
	for i := range req.Messages {
		n += window.MessageTokens(&req.Messages[i])
	}
	return n
}
