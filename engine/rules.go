package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"pawl/engine/machine"
	"pawl/engine/policy"
	"pawl/ledger"
)

// ProjectPolicy is where a repository keeps rules of its own.
const ProjectPolicy = ".pawl/policy.toml"

// maxPolicy bounds a policy file, in bytes.
const maxPolicy = 1 << 20

// rulebook holds the policy files as they were last read. A file is looked at
// before every decision: an edit takes effect at once, without a restart, and
// what is running already is not touched.
type rulebook struct {
	mu    sync.Mutex
	files map[string]*policyFile
	kept  map[machine.Digest][]policy.Entry // rules of a content, under the scope they were read for
}

// policyFile is one file at its newest reading.
type policyFile struct {
	mod     time.Time
	size    int64
	fresh   bool // the content cannot have changed since without its time or size telling
	digest  machine.Digest
	entries []policy.Entry
	broken  error // of the newest content; entries are then those from before
	none    bool  // broken, and there is no before
	adopted bool  // the ledger knows this content
}

// racy is the time within which two writes may bear the same time stamp.
const racy = 50 * time.Millisecond

func projectPath(repo string) string {
	if repo == "" {
		return ""
	}
	return filepath.Join(repo, filepath.FromSlash(ProjectPolicy))
}

// readPolicy reads a policy file; nil if there is none.
func readPolicy(path string) ([]byte, error) {
	st, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR):
		return nil, nil
	case err != nil:
		return nil, err
	case !st.Mode().IsRegular():
		return nil, fmt.Errorf("%s is no regular file", path)
	case st.Size() > maxPolicy:
		return nil, fmt.Errorf("%s is larger than %d bytes", path, maxPolicy)
	}
	b, err := os.ReadFile(path)
	if b == nil && err == nil {
		b = []byte{}
	}
	return b, err
}

// projectPolicy is the blob of a repository's policy file, nil if there is
// none. A run does not start under a file that cannot be read.
func projectPolicy(repo string) (*ledger.Blob, error) {
	path := projectPath(repo)
	text, err := readPolicy(path)
	if err != nil {
		return nil, fmt.Errorf("the project's policy cannot be read: %w; mend or remove %s", err, path)
	}
	if text == nil {
		return nil, nil
	}
	if _, err := policy.ParseFile(path, text, policy.ScopeProject); err != nil {
		return nil, err
	}
	b := ledger.NewBlob(text)
	return &b, nil
}

// policyAt returns the rules of a file that hold now. A file that is broken
// leaves those in force that held before: of this process, or else as the
// ledger last knew them.
func (e *Engine) policyAt(ctx context.Context, st *machine.Standing, path string, scope policy.Scope) *policyFile {
	if path == "" {
		return &policyFile{}
	}
	e.rulebook.mu.Lock()
	defer e.rulebook.mu.Unlock()
	f := e.rulebook.files[path]
	info, err := os.Stat(path)
	if f != nil && f.fresh && err == nil && info.ModTime().Equal(f.mod) && info.Size() == f.size {
		return e.adopt(ctx, st, path, f, nil)
	}
	if f != nil && f.digest.IsZero() && f.broken == nil && errors.Is(err, fs.ErrNotExist) {
		return f // still no file
	}
	text, rerr := readPolicy(path)
	next := &policyFile{}
	if err == nil {
		next.mod, next.size = info.ModTime(), info.Size()
		next.fresh = e.o.Now().Sub(info.ModTime()) > racy
	}
	if text != nil {
		next.digest = machine.Digest(ledger.NewBlob(text).Hash)
	}
	if f != nil && f.digest == next.digest && rerr == nil {
		f.mod, f.size, f.fresh = next.mod, next.size, next.fresh
		return e.adopt(ctx, st, path, f, text)
	}
	entries, perr := []policy.Entry(nil), rerr
	if rerr == nil && text != nil {
		entries, perr = policy.ParseFile(path, text, scope)
	}
	if perr != nil {
		next.broken = perr
		next.entries, next.none = e.before(ctx, st, path, scope, f)
		how := "the rules from before stay in force"
		if next.none {
			how = "no earlier version is known, so everything asks"
		}
		e.o.Log("the policy file is broken, and %s: %v", how, perr)
	} else {
		next.entries = entries
	}
	if e.rulebook.files == nil {
		e.rulebook.files = map[string]*policyFile{}
	}
	e.rulebook.files[path] = next
	return e.adopt(ctx, st, path, next, text)
}

// before finds the rules that held before a file broke.
func (e *Engine) before(ctx context.Context, st *machine.Standing, path string, scope policy.Scope, f *policyFile) ([]policy.Entry, bool) {
	if f != nil {
		return f.entries, f.none
	}
	d, ok := st.AdoptedDigest(path)
	if !ok {
		return nil, true
	}
	entries, err := e.policyOf(ctx, d, path, scope)
	return entries, err != nil
}

// policyOf reads the rules of a content that the ledger holds.
func (e *Engine) policyOf(ctx context.Context, d machine.Digest, path string, scope policy.Scope) ([]policy.Entry, error) {
	if d.IsZero() {
		return nil, nil
	}
	text, err := e.store.Blob(ctx, ledger.Hash(d))
	if err != nil {
		return nil, err
	}
	return policy.ParseFile(path, text, scope)
}

// adopt records in the ledger what holds from now on, in processes that drive.
func (e *Engine) adopt(ctx context.Context, st *machine.Standing, path string, f *policyFile, text []byte) *policyFile {
	if f.adopted || f.broken != nil || e.o.Holder == "" {
		return f
	}
	known, ok := st.AdoptedDigest(path)
	if known == f.digest && (ok || f.digest.IsZero()) {
		f.adopted = true
		return f
	}
	b := batch{actor: machine.ActorEngine, bodies: []machine.Body{machine.PolicyAdopted{Path: path, Digest: f.digest}}}
	if text == nil && !f.digest.IsZero() {
		return f // at the next reading
	}
	if text != nil {
		b.blobs = []ledger.Blob{ledger.NewBlob(text)}
	}
	err := e.lay(ctx, func(s *machine.Standing) (batch, error) {
		if d, ok := s.AdoptedDigest(path); ok && d == f.digest {
			return batch{}, nil
		}
		return b, nil
	})
	if err != nil {
		e.o.Log("the policy %s holds, but could not be recorded: %v", path, err)
		return f
	}
	f.adopted = true
	return f
}

// rulesFor gathers the rules that hold for a run now.
func (e *Engine) rulesFor(ctx context.Context, c *machine.Charter) (policy.Set, error) {
	set := policy.Set{Allow: c.Allow}
	st, err := e.Standing(ctx)
	if err != nil {
		return set, err
	}
	user := e.policyAt(ctx, &st, e.o.PolicyFile, policy.ScopeUser)
	set.Entries = append(set.Entries, user.entries...)
	path := projectPath(c.Repo)
	project := e.policyAt(ctx, &st, path, policy.ScopeProject)
	if d, ok := st.TrustedDigest(path); ok && d == project.digest && project.broken == nil {
		set.Entries = append(set.Entries, project.entries...)
	} else {
		set.Entries = append(set.Entries, policy.Tightest(project.entries)...)
	}
	if !c.Policy.IsZero() && c.Policy != project.digest {
		first, err := e.firstPolicy(ctx, c, path)
		if err != nil {
			return set, err
		}
		set.Entries = append(set.Entries, first...)
	}
	if user.none || project.none {
		set.Broken = "a policy file is broken and no earlier version of it is known"
	}
	for i := range st.Grants {
		g := &st.Grants[i]
		if !g.Covers(c) {
			continue
		}
		r, err := policy.ParseRule(g.Rule)
		if err != nil {
			continue // covers nothing
		}
		scope := policy.ScopeRun
		if g.Scope == machine.GrantProject {
			scope = policy.ScopeProject
		}
		set.Entries = append(set.Entries, policy.Entry{Scope: scope, From: "grant " + g.Grant, Decision: policy.Allow, Pattern: &r, Reason: "a standing grant of " + who(g.By) + " allows it"})
	}
	return set, nil
}

// firstPolicy is what the project's file forbade or asked about when the run
// was made: a run cannot free itself of it by editing the file.
func (e *Engine) firstPolicy(ctx context.Context, c *machine.Charter, path string) ([]policy.Entry, error) {
	e.rulebook.mu.Lock()
	entries, ok := e.rulebook.kept[c.Policy]
	e.rulebook.mu.Unlock()
	if ok {
		return entries, nil
	}
	entries, err := e.policyOf(ctx, c.Policy, path+" at the start of the run", policy.ScopeProject)
	if err != nil {
		return nil, fmt.Errorf("read the policy under which run %s was made: %w", c.ID, err)
	}
	entries = policy.Tightest(entries)
	e.rulebook.mu.Lock()
	defer e.rulebook.mu.Unlock()
	if e.rulebook.kept == nil {
		e.rulebook.kept = map[machine.Digest][]policy.Entry{}
	}
	e.rulebook.kept[c.Policy] = entries
	return entries, nil
}

// expiry is when a question that a rule bounds lapses, in Unix µs; 0: never.
func (e *Engine) expiry(d policy.Decision) int64 {
	if d.Expires == 0 {
		return 0
	}
	return e.now() + d.Expires
}
