package workspace

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

// Kind is how a run's files relate to the user's.
type Kind string

// The kinds of workspace.
const (
	KindWorktree Kind = "worktree" // a worktree of a private clone: nobody else works there
	KindInPlace  Kind = "in-place" // the user's own checkout, because they asked for it
	KindFolder   Kind = "folder"   // a folder without git
)

// Request asks for a run's workspace.
type Request struct {
	Run         string     // the run's id; part of paths and refs
	Repo        string     // a folder, usually in a git checkout
	Ref         string     // commit to start from; "" is the checkout's HEAD
	Title       string     // the run's goal, for messages
	InPlace     bool       // work in Repo itself
	From        *Workspace // of the run that delegates; then Ref is what Fork made of it
	WithChanges bool       // bring uncommitted and untracked files along
}

// Workspace is everything needed to work with a prepared workspace again, from any process. It is stored in the ledger.
type Workspace struct {
	Run       string   `json:"run"`
	Kind      Kind     `json:"kind"`
	Title     string   `json:"title,omitempty"`
	Path      string   `json:"path"`                 // where the files are
	Repo      string   `json:"repo"`                 // top of the user's checkout, or the folder
	RepoGit   string   `json:"repo_git,omitempty"`   // the user's repository (common directory)
	Onto      string   `json:"onto,omitempty"`       // the user's branch that the run started from, short; "" if HEAD was detached
	Branch    string   `json:"branch,omitempty"`     // the run's branch, short
	Base      string   `json:"base,omitempty"`       // commit that the run started from; "" without git or without commits
	GitDir    string   `json:"git_dir,omitempty"`    // of this worktree
	CommonDir string   `json:"common_dir,omitempty"` // of the private clone, or the user's repository
	Shadow    string   `json:"shadow"`               // repository of the snapshots
	Scratch   string   `json:"scratch"`              // private directory for commands
	Name      string   `json:"name,omitempty"`       // author of commits that Pawl makes for the run
	Email     string   `json:"email,omitempty"`
	Parent    string   `json:"parent,omitempty"` // the run that delegated
	Pin       string   `json:"pin,omitempty"`    // commit of the user's that all of a delegated run's rest on
	Notes     []string `json:"notes,omitempty"`  // what the run will miss here, in plain words
}

// Snapshot names the state of a workspace at one moment. Commit alone is enough to restore it.
type Snapshot struct {
	Commit  string   `json:"commit"`            // in the shadow repository
	Tree    string   `json:"tree"`              // of the files; equal trees are equal files
	Head    string   `json:"head,omitempty"`    // the worktree's HEAD commit
	Branch  string   `json:"branch,omitempty"`  // full name of the ref that HEAD is on; "" if detached
	Index   string   `json:"index,omitempty"`   // blob of the worktree's index
	Skipped []string `json:"skipped,omitempty"` // files that could not be read and are not in it
	Left    []string `json:"left,omitempty"`    // files and folders beyond the limits, with the reason, that are not in it
	Files   int64    `json:"files"`
	Bytes   int64    `json:"bytes"` // sum of the files' sizes
}

// Restored says what a restore did.
type Restored struct {
	Rescue  Snapshot `json:"rescue"`            // what was there before, kept
	Changed []string `json:"changed,omitempty"` // files that were put back, removed or made again
}

// FileChange is one difference between two snapshots.
type FileChange struct {
	Path    string `json:"path"`
	Status  byte   `json:"status"` // A added, D deleted, M modified, T type changed
	Added   int    `json:"added"`  // lines; -1 for a binary file
	Deleted int    `json:"deleted"`
}

// String is the change on one line. The path is not escaped.
func (c FileChange) String() string {
	switch {
	case c.Added < 0:
		return fmt.Sprintf("%c %s (binary)", c.Status, c.Path)
	default:
		return fmt.Sprintf("%c %s (+%d -%d)", c.Status, c.Path, c.Added, c.Deleted)
	}
}

// DriftError says that files were changed by somebody else while they were to be written or put back. Nothing of
// theirs was overwritten.
type DriftError struct {
	Path  string   // the file, or "" for the workspace as a whole
	Known [32]byte // SHA-256 of what was expected on disk; zero: no file
	Disk  [32]byte // of what is there; zero: no file
	Want  [32]byte // of what was to be written
	Why   string   // in plain words
}

func (e *DriftError) Error() string {
	if e.Path == "" {
		return "the workspace was changed while it was being restored: " + e.Why + "; what was there is kept as a snapshot: look at the difference and decide which to keep"
	}
	return fmt.Sprintf("%s was changed by somebody else (expected %s, found %s): %s; read it again before writing", e.Path, short(e.Known), short(e.Disk), e.Why)
}

func short(d [32]byte) string {
	if d == [32]byte{} {
		return "no file"
	}
	return hex.EncodeToString(d[:6])
}

// RefusedError says that something was not done, and that nothing was changed by trying.
type RefusedError struct {
	What string // what was refused
	Why  string
	Next string // what to do
}

func (e *RefusedError) Error() string {
	return e.What + ": " + e.Why + "; " + e.Next
}

func refuse(what, why, next string) error { return &RefusedError{What: what, Why: why, Next: next} }

// GitError is a failed git command.
type GitError struct {
	Args   []string
	Code   int // exit code, -1 if it was ended
	Stderr string
	Err    error
}

func (e *GitError) Error() string {
	verb := "git"
	for _, a := range e.Args {
		if !strings.HasPrefix(a, "-") && !strings.Contains(a, "=") {
			verb += " " + a
			break
		}
	}
	text := strings.TrimSpace(e.Stderr)
	if len(text) > 600 {
		text = text[:600] + " …"
	}
	if text == "" && e.Err != nil {
		text = e.Err.Error()
	}
	return verb + ": " + text
}

func (e *GitError) Unwrap() error { return e.Err }

func gitCode(err error) int {
	var g *GitError
	if errors.As(err, &g) {
		return g.Code
	}
	return -1
}
