package headless

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"pawl/engine"
	"pawl/engine/machine"
)

// demoPlace is the directory of one demo. Nothing outside it is written.
type demoPlace struct{ dir string }

func (p demoPlace) ledger() string  { return filepath.Join(p.dir, "pawl", "ledger.db") } // its directory holds workspaces and snapshots
func (p demoPlace) world() string   { return filepath.Join(p.dir, "world") }
func (p demoPlace) script() string  { return filepath.Join(p.dir, "repair.toml") }
func (p demoPlace) invoice() string { return filepath.Join(p.dir, "invoice.toml") }
func (p demoPlace) config() string  { return filepath.Join(p.dir, "config.toml") }
func (p demoPlace) note() string    { return filepath.Join(p.dir, "demo.json") }

// command is the command line that comes back to this demo. It is set in other
// quotes than the commands that act on the ledger of an invocation.
func (p demoPlace) command(flags ...string) string {
	return "“pawl demo --dir " + strings.Join(append([]string{quote(p.dir)}, flags...), " ") + "”"
}

// demoNote is what the demo itself has to remember between its processes.
// What became of the run is not in it: that is in the ledger.
type demoNote struct {
	Run    machine.RunID `json:"run"`
	Repo   string        `json:"repo"`
	Remote string        `json:"remote"`
	Base   string        `json:"base"`  // commit that the work started from
	World  string        `json:"world"` // base URL that the run was given
	Level  string        `json:"level"` // confinement of its commands
	Begun  time.Time     `json:"begun"`
	Kills  []demoKill    `json:"kills"`
	// Payments is the second act, nil until it is played.
	Payments *demoPayments `json:"payments,omitempty"`
}

// demoKill is one worker that died by its own SIGKILL, as this process, its
// parent, was told by the system.
type demoKill struct {
	Point   engine.Point     `json:"point"`
	Effect  machine.EffectID `json:"effect"`
	Tool    string           `json:"tool"`
	Summary string           `json:"summary"`
	PID     int              `json:"pid"`
	// Found is what the next look at the ledger showed, before anything was done about it.
	Found string `json:"found"`
	// World is what had really happened by then, from files, remote and the world's log.
	World string `json:"world"`
}

// claimDemo makes the directory of a new demo, or finds that one is there.
// made says that the directory did not exist before.
func claimDemo(dir string) (p demoPlace, exists, made bool, err error) {
	if dir == "" {
		dir, err = os.MkdirTemp("", "pawl-demo-")
		if err != nil {
			return p, false, false, &Problem{What: "no directory could be made for the demo", Why: err.Error(), Next: "name one with --dir", Err: err}
		}
		made = true
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return p, false, false, fmt.Errorf("find %s: %w", dir, err)
	}
	if abs, made, err = claimFolder(abs, made); err != nil {
		return p, false, false, err
	}
	p = demoPlace{dir: abs}
	if _, err := os.Lstat(p.note()); err == nil {
		return p, true, false, nil
	}
	names, err := os.ReadDir(abs)
	if err != nil {
		return p, false, false, &Problem{What: "the directory " + abs + " cannot be read", Why: err.Error(), Next: "name another one with --dir", Err: err}
	}
	if len(names) > 0 {
		return p, false, false, &Problem{
			What: "no demo was made in " + abs, Why: fmt.Sprintf("it holds %d other files or folders and no demo", len(names)),
			Next: "name a new or empty directory with --dir, or leave --dir away",
		}
	}
	return p, false, made, nil
}

// claimFolder makes the folder if it is missing and resolves links in its
// path, so that a path means the same inside and outside of a box.
func claimFolder(abs string, made bool) (string, bool, error) {
	st, err := os.Stat(abs)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := os.MkdirAll(abs, 0o700); err != nil {
			return "", false, &Problem{What: "the directory " + abs + " cannot be made", Why: err.Error(), Next: "name another one with --dir", Err: err}
		}
		made = true
	case err != nil:
		return "", false, &Problem{What: "the directory " + abs + " cannot be used", Why: err.Error(), Next: "name another one with --dir", Err: err}
	case !st.IsDir():
		return "", false, &Problem{What: "no demo was made in " + abs, Why: "it is a file", Next: "name a directory with --dir"}
	}
	real, err := filepath.EvalSymlinks(abs)
	if err != nil {
		return "", false, fmt.Errorf("find %s: %w", abs, err)
	}
	return real, made, nil
}

// save writes the note in one step: a reader never sees half of it.
func (n *demoNote) save(p demoPlace) error {
	b, err := json.MarshalIndent(n, "", "  ")
	if err != nil {
		return fmt.Errorf("write the demo's note: %w", err)
	}
	tmp := p.note() + ".new"
	if err := os.WriteFile(tmp, append(b, '\n'), 0o600); err != nil {
		return fmt.Errorf("write the demo's note: %w", err)
	}
	if err := os.Rename(tmp, p.note()); err != nil {
		return fmt.Errorf("write the demo's note: %w", err)
	}
	return nil
}

func loadDemo(p demoPlace) (*demoNote, error) {
	b, err := os.ReadFile(p.note())
	if err != nil {
		return nil, &Problem{What: "the demo in " + p.dir + " cannot be opened", Why: err.Error(), Next: "make a new one with “pawl demo”", Err: err}
	}
	var n demoNote
	if err := json.Unmarshal(b, &n); err != nil || n.Run == "" {
		return nil, &Problem{What: "the demo in " + p.dir + " cannot be opened", Why: "its note demo.json is damaged", Next: "make a new one with “pawl demo”", Err: err}
	}
	return &n, nil
}
