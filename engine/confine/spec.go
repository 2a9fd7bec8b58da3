package confine

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"
)

// Spec describes one command and what it may touch. Paths are absolute. Everything that is neither Writable nor
// Hidden can be read but not changed.
type Spec struct {
	Argv []string `json:"argv"` // Argv[0] is looked up in the PATH of Env when it holds no slash
	Dir  string   `json:"dir"`
	Env  []string `json:"env"` // the whole environment; nothing is inherited

	Writable  []string `json:"writable,omitempty"`  // directories bound read-write
	Protected []string `json:"protected,omitempty"` // paths below Writable that stay read-only (sealed only)
	Readable  []string `json:"readable,omitempty"`  // paths below Hidden, /tmp or /run that stay visible, read-only (sealed only)
	Hidden    []string `json:"hidden,omitempty"`    // directories and files replaced by empty ones (sealed only)
	Caches    []Cache  `json:"caches,omitempty"`    // directories seen in full but written to elsewhere (sealed only)
	Sockets   []string `json:"sockets,omitempty"`   // unix sockets outside that stay reachable
	Network   bool     `json:"network,omitempty"`   // keep the host's network; the other namespaces stay

	Output string `json:"output"` // file that receives stdout and stderr: created with mode 0600, appended to; never a pipe
	Level  Level  `json:"level"`  // the measured level to run at

	probe bool // run the self-probe of this binary instead of Argv[0]
}

// Cache is a directory of the user that a command sees with its contents while what it writes goes to a private
// layer. Where layers cannot be mounted, the private layer alone is seen.
type Cache struct {
	Path  string `json:"path"`  // the user's directory, and where the command sees it
	Layer string `json:"layer"` // a private directory that keeps what commands write, across commands
}

// MarkerEnv names the environment variable by which processes of an unsealed command are found again. The engine puts
// the effect's id into it.
const MarkerEnv = "PAWL_EFFECT"

func (s *Spec) check() error {
	if len(s.Argv) == 0 || s.Argv[0] == "" {
		return errors.New("no command was given")
	}
	switch s.Level {
	case LevelNone, LevelPartial, LevelGuarded, LevelSealed:
	default:
		return fmt.Errorf("the level %q cannot be run at: measure it first", s.Level)
	}
	if s.Output == "" {
		return errors.New("no output file was given")
	}
	paths := append([]string{s.Dir, s.Output}, s.Writable...)
	paths = append(append(append(append(paths, s.Protected...), s.Readable...), s.Hidden...), s.Sockets...)
	for _, c := range s.Caches {
		paths = append(paths, c.Path, c.Layer)
	}
	for _, p := range paths {
		if !filepath.IsAbs(p) {
			return fmt.Errorf("%q is not an absolute path", p)
		}
	}
	return nil
}

// Exit is how a command ended.
type Exit struct {
	Code      int           `json:"code"`                // exit code; -1 if a signal ended it or no end was observed
	Signal    string        `json:"signal,omitempty"`    // name of the signal that ended it
	TimedOut  bool          `json:"timed_out"`           // its context ended first and the tree was killed for that
	TreeDead  bool          `json:"tree_dead"`           // proven: no process that the command started is alive
	Survivors []Identity    `json:"survivors,omitempty"` // what was found alive and could not be ended
	Duration  time.Duration `json:"duration"`            // from the opening of the gate, in nanoseconds
}

// Identity names one process so that it cannot be mistaken for a later one with the same pid. It stays meaningful
// after its supervisor has died, as long as it is read on the same machine.
type Identity struct {
	Boot  string `json:"boot" cbor:"boot"`                       // boot id of the kernel
	PIDNS string `json:"pidns" cbor:"pidns"`                     // pid namespace in which PID is counted
	PID   int    `json:"pid" cbor:"pid"`                         //
	Start uint64 `json:"start" cbor:"start"`                     // start time in clock ticks since boot
	Inner string `json:"inner,omitempty" cbor:"inner,omitempty"` // pid namespace that the process is the init of; "" if it has none
}

// Liveness is what is known about a process now.
type Liveness uint8

// The states of knowledge; the zero value claims nothing.
const (
	LiveUnknown Liveness = iota
	LiveGone
	LiveAlive
)

// String returns the state in lower case.
func (l Liveness) String() string {
	switch l {
	case LiveGone:
		return "gone"
	case LiveAlive:
		return "alive"
	case LiveUnknown:
	}
	return "unknown"
}

// NotRunError says that the command was never started; nothing of it touched the world.
type NotRunError struct {
	What string // what was being prepared
	Err  error
}

func (e *NotRunError) Error() string {
	return "the command was not started: " + e.What + ": " + e.Err.Error()
}
func (e *NotRunError) Unwrap() error { return e.Err }

// ErrUnobserved is returned by [Proc.Wait] when the command ended without its end being seen (its keeper was killed).
// The [Exit] beside it still says whether the tree is proven dead.
var ErrUnobserved = errors.New("the command's end was not observed: the process that kept it was killed; look at its effects before running it again")
