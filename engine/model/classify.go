package model

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"pawl/engine/machine"
)

// Fault is what a provider said about a failure, before or within the stream.
type Fault struct {
	Status     int // HTTP status, 0 within a stream
	Code, Type string
	Text       string
	RetryAfter time.Duration
}

// Classify names the class of a failure. The same words mean the same class,
// whether they come as a status before the stream or as an event within it.
func Classify(f Fault) machine.FailClass {
	word := func(ss ...string) bool {
		for _, s := range ss {
			if strings.EqualFold(f.Code, s) || strings.EqualFold(f.Type, s) {
				return true
			}
		}
		return false
	}
	text := strings.ToLower(f.Text)
	says := func(ss ...string) bool {
		for _, s := range ss {
			if strings.Contains(text, s) {
				return true
			}
		}
		return false
	}
	status := f.Status
	if status < 300 {
		status = 0 // an answer that says in its text what went wrong
	}
	if status == 0 { // some gateways put the status they got into the event
		if n, err := strconv.Atoi(f.Code); err == nil && n >= 400 && n < 600 {
			status = n
		}
	}

	switch {
	case word("context_length_exceeded", "request_too_large", "string_above_max_length", "exceed_context_size_error"),
		status == http.StatusRequestEntityTooLarge:
		return machine.FailContext
	case (status == 0 || status == 400 || status == 422 || status == 500) &&
		says("maximum context length", "context window", "context length", "context size", "prompt is too long", "input is too long", "too many input tokens"):
		return machine.FailContext
	case word("insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "credit_limit_exceeded", "billing_error"),
		status == http.StatusPaymentRequired,
		says("insufficient credit", "credit balance is too low", "insufficient balance"):
		return machine.FailQuota
	case f.RetryAfter == 0 && says("exceeded your current quota", "daily limit", "monthly limit"):
		return machine.FailQuota
	case word("overloaded_error", "server_overloaded", "engine_overloaded", "service_unavailable", "unavailable"),
		status == 529, status == http.StatusServiceUnavailable,
		status >= 500 && says("overloaded"), status == 0 && says("overloaded"):
		return machine.FailOverload
	case word("rate_limit_exceeded", "rate_limit_error", "rate_limited", "too_many_requests", "resource_exhausted"),
		status == http.StatusTooManyRequests:
		return machine.FailRate
	case word("invalid_api_key", "authentication_error", "permission_error", "permission_denied", "unauthenticated", "account_deactivated"),
		status == http.StatusUnauthorized, status == http.StatusForbidden:
		return machine.FailAuth
	case word("model_not_found", "not_found_error", "not_found"), status == http.StatusNotFound:
		return machine.FailNotFound
	case status == http.StatusRequestTimeout, word("timeout", "timeout_error", "request_timeout"):
		return machine.FailNetwork
	case status == http.StatusConflict, status == http.StatusTooEarly:
		return machine.FailServer
	case word("server_error", "api_error", "internal_server_error", "internal_error", "internal"), status >= 500:
		return machine.FailServer
	case word("invalid_request_error", "bad_request", "invalid_argument"), status >= 300:
		return machine.FailBadRequest
	}
	return machine.FailServer
}

// RetryAfter reads how long a response asks us to wait. It is not capped: five
// hours are five hours, and the engine shows them.
func RetryAfter(h http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(strings.TrimSpace(h.Get("Retry-After-Ms")), 64); err == nil && ms > 0 {
		return bounded(ms / 1000)
	}
	v := strings.TrimSpace(h.Get("Retry-After"))
	if v == "" {
		return 0
	}
	if s, err := strconv.ParseFloat(v, 64); err == nil {
		if s <= 0 {
			return 0
		}
		return bounded(s)
	}
	if t, err := http.ParseTime(v); err == nil {
		return max(t.Sub(now), 0)
	}
	return 0
}

// bounded turns seconds into a duration without overflow; NaN is 0.
func bounded(seconds float64) time.Duration {
	const year = 365 * 24 * time.Hour
	if !(seconds > 0) {
		return 0
	}
	if seconds > year.Seconds() {
		return year
	}
	return time.Duration(seconds * float64(time.Second))
}

// Advice is the "what next" of a failure class, for messages.
func Advice(c machine.FailClass) string {
	switch c {
	case machine.FailLost:
		return "It is asked for again; what the lost answer may have cost is booked."
	case machine.FailCut, machine.FailServer, machine.FailOverload, machine.FailNetwork, machine.FailEmpty:
		return "It is asked for again after a pause."
	case machine.FailRate:
		return "It is asked for again when the limit allows."
	case machine.FailQuota:
		return "Trying again does not help: add credit or use another key or model, then resume the run."
	case machine.FailAuth:
		return "Check the key and what it may use, then resume the run."
	case machine.FailNotFound:
		return "Check the model's name and the base URL (`pawl models` lists what is known), then resume the run."
	case machine.FailBadRequest:
		return "Trying again does not help: check the model and the base URL, then resume the run."
	case machine.FailContext:
		return "The request must become smaller before it is sent again."
	case machine.FailScript:
		return "Mend the script, or start a run that it fits."
	}
	return ""
}
