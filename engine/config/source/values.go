package source

import (
	"fmt"
	"strconv"
	"time"
)

// Duration is a time span written as in "90s" or "2m30s".
type Duration time.Duration

// UnmarshalText reads a span that is not negative.
func (d *Duration) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	switch {
	case err != nil:
		return fmt.Errorf("%q is no time span; write it as in 90s or 2m", b)
	case v < 0:
		return fmt.Errorf("the time span %q is negative", b)
	}
	*d = Duration(v)
	return nil
}

// Microseconds is the span as contracts store it.
func (d Duration) Microseconds() int64 { return time.Duration(d).Microseconds() }

// Codes are exit codes or HTTP statuses, written as numbers or words.
type Codes []string

// UnmarshalTOML reads a list of numbers and words.
func (c *Codes) UnmarshalTOML(v any) error {
	list, ok := v.([]any)
	if !ok {
		return fmt.Errorf("a list of codes is wanted, as in [0, 1]")
	}
	out := make(Codes, 0, len(list))
	for _, x := range list {
		switch x := x.(type) {
		case int64:
			out = append(out, strconv.FormatInt(x, 10))
		case string:
			out = append(out, x)
		default:
			return fmt.Errorf("%v is neither a number nor a word", x)
		}
	}
	*c = out
	return nil
}
