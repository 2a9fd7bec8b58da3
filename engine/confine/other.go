//go:build !unix

package confine

import (
	"context"
	"errors"
	"os"
)

var errSystem = errors.New("commands cannot be started safely on this system; use Linux, macOS or a BSD")

// Measure reports LevelNone.
func Measure(_ context.Context, _ Level) Report {
	return Report{Level: LevelNone, Missing: []string{"none: " + errSystem.Error()}, Detail: map[string]string{}}
}

// BootID is unknown here.
func BootID() string { return "" }

// Probe knows nothing here.
func Probe(Identity) Liveness { return LiveUnknown }

// Reap can do nothing here.
func Reap(context.Context, Identity) (Liveness, error) { return LiveUnknown, errSystem }

// FindMarked finds nothing here.
func FindMarked(string) []Identity { return nil }

func keeperMain() { os.Exit(2) }
func probeMain()  { os.Exit(2) }

// Proc is never made here.
type Proc struct{}

// Start refuses.
func Start(context.Context, Spec) (*Proc, error) {
	return nil, &NotRunError{What: "preparing it", Err: errSystem}
}

// Identity is empty.
func (*Proc) Identity() Identity { return Identity{} }

// Notes is empty.
func (*Proc) Notes() map[string]string { return nil }

// Open refuses.
func (*Proc) Open() error { return errSystem }

// Kill has nothing to end.
func (*Proc) Kill() {}

// Wait has nothing to wait for.
func (*Proc) Wait(context.Context) (Exit, error) { return Exit{Code: -1}, errSystem }
