package tool

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"time"

	"pawl/engine/config"
	"pawl/engine/effect"
	"pawl/engine/machine"
	"pawl/engine/secret"
)

// The limits of a command's time.
const (
	DefaultTimeout = 2 * time.Minute
	MaxTimeout     = time.Hour
)

// Options are what the tools need beside what one run may touch. The zero
// value is right for a program; tests set what they inject.
type Options struct {
	// CheckTimeout bounds the run's acceptance command. Default 30 min.
	CheckTimeout time.Duration
	// MaxOutput is how many bytes one command may print before it is stopped,
	// so that a runaway loop cannot fill the disk. Default 256 MiB.
	MaxOutput int64
	// MaxBody is how much of an HTTP answer is kept: its head and its tail.
	// Default 4 MiB.
	MaxBody int
	// Poll is how often a running command's output file is looked at. Default 25 ms.
	Poll time.Duration
	// Home is the user's home directory. Default os.UserHomeDir.
	Home string
	// Environ is this process's environment, of which recipes hand on parts.
	// Default os.Environ.
	Environ []string
	// More are tools beside the built-in ones: after them, and never in their place.
	More []Tool
	// Recipes are the contracts of well-known command lines. Default effect.BuiltIn.
	Recipes *effect.Book
	// Declared are the operator's own tools, after More, and Requests what the
	// operator says about HTTP requests. Their names are free and they hold no
	// fault: whoever read them has seen to that.
	Declared []config.Tool
	Requests []config.Request
	// Secrets are filled in where a call asks for them by name. Default none.
	Secrets *secret.Set
	// Proxy chooses the proxy of an HTTP request. Default http.ProxyFromEnvironment.
	Proxy func(*http.Request) (*url.URL, error)
	// UserAgent is what HTTP requests call themselves. Default "pawl".
	UserAgent string
}

func (o Options) withDefaults() Options {
	if o.CheckTimeout <= 0 {
		o.CheckTimeout = 30 * time.Minute
	}
	if o.MaxOutput <= 0 {
		o.MaxOutput = 256 << 20
	}
	if o.MaxBody <= 0 {
		o.MaxBody = 4 << 20
	}
	if o.Poll <= 0 {
		o.Poll = 25 * time.Millisecond
	}
	if o.Home == "" {
		if home, err := os.UserHomeDir(); err == nil {
			o.Home = home
		}
	}
	if o.Environ == nil {
		o.Environ = os.Environ()
	}
	if o.Recipes == nil {
		o.Recipes = effect.BuiltIn()
	}
	if o.Proxy == nil {
		o.Proxy = http.ProxyFromEnvironment
	}
	if o.UserAgent == "" {
		o.UserAgent = "pawl"
	}
	return o
}

// openContent opens a file or the bytes.
func openContent(c Content) (io.ReadCloser, error) {
	if c.Path != "" {
		return os.Open(c.Path)
	}
	return io.NopCloser(bytes.NewReader(c.Bytes)), nil
}

// Codes of tools. A command's code is its exit code, an HTTP request's its
// status; these words are the others.
const (
	// CodeNotStarted: nothing of it ran or was sent. Contracts list it as before-effect.
	CodeNotStarted = "not_started"
	// CodeDrift: the file on disk is not what was measured; nothing was written.
	CodeDrift = "drift"
	// CodeNotFound: there is no such file, text or handle.
	CodeNotFound = "not_found"
	// CodeNoMatch: the text to be replaced does not occur, or occurs too often.
	CodeNoMatch = "no_match"
	// CodeMoved: the path leads elsewhere than when the call was judged.
	CodeMoved = "moved"
	// CodeUnreadable: it exists and cannot be shown (a device, a permission, a size).
	CodeUnreadable = "unreadable"
	// CodeTimeout: stopped by Pawl when its time was over.
	CodeTimeout = "timeout"
	// CodeTooMuch: stopped by Pawl because it printed more than is kept.
	CodeTooMuch = "too_much_output"
	// CodeNoAnswer: a request that only looks got no answer.
	CodeNoAnswer = "no_answer"
	// CodeUnchecked: the run has no check, so there was nothing to run.
	CodeUnchecked = "unchecked"
)

// argErrorf makes a refusal for the model.
func argErrorf(format string, a ...any) error { return &ArgError{Text: fmt.Sprintf(format, a...)} }

// done is an observed end.
func done(ok bool, code, text string) Outcome {
	return Outcome{
		End:    EndCompleted,
		Result: machine.Result{OK: ok, Code: code},
		Output: Content{Bytes: []byte(text)},
	}
}

// notStarted is the proof that nothing of an attempt touched the world.
func notStarted(text string) Outcome {
	o := done(false, CodeNotStarted, text)
	o.End, o.Code = EndRejected, CodeNotStarted
	return o
}

// interrupted is a look that Pawl itself broke off; it is made again later.
func interrupted() Outcome { return Outcome{Cause: "Pawl was told to stop meanwhile"} }

// readContract is what a tool promises that only looks.
func readContract(name string, version int) machine.Contract {
	return machine.Contract{Name: name, Version: version, Class: machine.ClassRead, Sender: machine.SenderLocal}
}
