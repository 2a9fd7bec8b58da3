package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"pawl/engine/confine"
	"pawl/engine/effect"
	"pawl/engine/machine"
	"pawl/engine/policy"
	"pawl/ledger"
)

// Explanation says what policy would decide about a command line, and which
// rule decides.
type Explanation struct {
	Decision   string   `json:"decision"`
	Rule       string   `json:"rule"`
	Commands   []string `json:"commands"`             // every simple command that the line would start
	Why        string   `json:"why"`                  // one sentence
	Scope      string   `json:"scope"`                // whose the rule is
	Unresolved []string `json:"unresolved,omitempty"` // what the line hides
	Recipe     string   `json:"recipe,omitempty"`
	Level      string   `json:"level"` // confinement that it would run at
	Problem    string   `json:"problem,omitempty"`
}

// PolicyQuestion is a command line that policy is asked about without running it.
type PolicyQuestion struct {
	Line    string
	Repo    string        // project whose rules count; "" for none
	Run     machine.RunID // run whose rules and grants count too; then Repo is its own
	Allow   []string      // more rules in the form of --allow
	Network bool          // the command asks for the network
}

// Explain judges a command line as a run would, by reading only.
func (e *Engine) Explain(ctx context.Context, q PolicyQuestion) (Explanation, error) {
	for _, r := range q.Allow {
		if _, err := policy.ParseRule(r); err != nil {
			return Explanation{}, err
		}
	}
	s := machine.State{Charter: machine.Charter{Repo: q.Repo, Allow: q.Allow}}
	if q.Run != "" {
		var err error
		if s, err = e.view(ctx, q.Run); err != nil {
			return Explanation{}, err
		}
		s.Charter.Allow = append(append([]string(nil), s.Charter.Allow...), q.Allow...)
	}
	level := e.level().Level
	cmds, perr := policy.Parse(q.Line)
	sub := policy.Subject{Tool: "shell", Line: q.Line, Commands: &cmds, Network: q.Network, Class: machine.ClassIrreversible}
	if r, ok := effect.Match(&cmds); ok {
		sub.Recipe, sub.Class, sub.Network = r.Name, machine.ClassIrreversible, true
	} else if level == confine.LevelSealed && !q.Network {
		sub.Class, sub.Sealed = machine.ClassWorkspace, true
	}
	if s.Space.Level == "" {
		s.Space.Level = level.String()
	}
	args, err := json.Marshal(map[string]any{"command": q.Line, "network": q.Network})
	if err != nil {
		return Explanation{}, err
	}
	d := e.judge(ctx, &s, args, sub)
	x := Explanation{
		Decision: d.Verdict.String(), Rule: d.Rule, Why: d.Why, Scope: string(d.Scope), Commands: []string{},
		Unresolved: cmds.Unresolved, Recipe: sub.Recipe, Level: level.String(),
	}
	for _, c := range cmds.Simple {
		x.Commands = append(x.Commands, commandText(c))
	}
	if perr != nil {
		x.Problem = perr.Error()
	}
	return x, nil
}

// commandText is a simple command on one line, with what stands around it.
func commandText(c policy.Simple) string {
	var parts []string
	if len(c.Wrapper) > 0 {
		parts = append(parts, "("+strings.Join(c.Wrapper, " → ")+")")
	}
	parts = append(parts, c.Assign...)
	for i, w := range c.Words {
		if _, ok := c.Word(i); ok {
			w = policy.Quote(w)
		}
		parts = append(parts, w)
	}
	if c.Open {
		parts = append(parts, "…")
	}
	for _, r := range c.Redirects {
		parts = append(parts, r.N+r.Op+r.Target)
	}
	return strings.Join(parts, " ")
}

// PolicyFile is a policy file as it stands.
type PolicyFile struct {
	Path    string         `json:"path"`
	Scope   string         `json:"scope"`
	Exists  bool           `json:"exists"`
	Trusted bool           `json:"trusted"` // may loosen too
	Rules   int            `json:"rules"`
	Broken  string         `json:"broken,omitempty"`
	Digest  machine.Digest `json:"digest,omitzero"`
}

// Policy is everything that decides in a project now.
type Policy struct {
	Files []PolicyFile `json:"files"`
	Rules []PolicyRule `json:"rules"`
}

// PolicyRule is one rule in force.
type PolicyRule struct {
	Scope    string `json:"scope"`
	From     string `json:"from"`
	Decision string `json:"decision"`
	Matches  string `json:"matches"`
	Reason   string `json:"reason,omitempty"`
	Idle     bool   `json:"idle,omitempty"` // an allow rule of a file that is not trusted
}

// PolicyOf lists the rules that hold in a project, and the files they come from.
func (e *Engine) PolicyOf(ctx context.Context, repo string) (Policy, error) {
	p := Policy{Files: []PolicyFile{}, Rules: []PolicyRule{}}
	st, err := e.Standing(ctx)
	if err != nil {
		return p, err
	}
	add := func(x policy.Entry, idle bool) {
		p.Rules = append(p.Rules, PolicyRule{Scope: string(x.Scope), From: x.From, Decision: x.Decision.String(), Matches: x.Condition(), Reason: x.Reason, Idle: idle})
	}
	for _, f := range []struct {
		path  string
		scope policy.Scope
	}{{e.o.PolicyFile, policy.ScopeUser}, {projectPath(repo), policy.ScopeProject}} {
		if f.path == "" {
			continue
		}
		got := e.policyAt(ctx, &st, f.path, f.scope)
		view := PolicyFile{Path: f.path, Scope: string(f.scope), Exists: !got.digest.IsZero(), Rules: len(got.entries), Digest: got.digest, Trusted: f.scope == policy.ScopeUser}
		if d, ok := st.TrustedDigest(f.path); ok && f.scope == policy.ScopeProject {
			view.Trusted = d == got.digest && got.broken == nil
		}
		if got.broken != nil {
			view.Broken = got.broken.Error()
		}
		p.Files = append(p.Files, view)
		for _, x := range got.entries {
			add(x, x.Decision == policy.Allow && !view.Trusted)
		}
	}
	for i := range st.Grants {
		g := &st.Grants[i]
		if g.Revoked == 0 && g.Scope == machine.GrantProject && g.Repo == repo {
			p.Rules = append(p.Rules, PolicyRule{Scope: string(policy.ScopeProject), From: "grant " + g.Grant, Decision: policy.Allow.String(), Matches: g.Rule})
		}
	}
	return p, nil
}

// TrustPolicy lets a project's policy file loosen as long as it has the content
// that it has now. It returns the absolute path, and what the file allows.
func (e *Engine) TrustPolicy(ctx context.Context, file string) (path string, allows []PolicyRule, err error) {
	path, err = filepath.Abs(file)
	if err != nil {
		return "", nil, err
	}
	if st, err := os.Stat(path); err == nil && st.IsDir() {
		path = projectPath(path)
	}
	text, err := readPolicy(path)
	if err != nil {
		return path, nil, err
	}
	if text == nil {
		return path, nil, fmt.Errorf("there is no policy file %s: %w", path, fs.ErrNotExist)
	}
	if !strings.HasSuffix(filepath.ToSlash(path), "/"+ProjectPolicy) {
		return path, nil, fmt.Errorf("%s is not where a project keeps its policy: it is read from %s of the repository", path, ProjectPolicy)
	}
	entries, err := policy.ParseFile(path, text, policy.ScopeProject)
	if err != nil {
		return path, nil, err
	}
	blob := ledger.NewBlob(text)
	d := machine.Digest(blob.Hash)
	for _, x := range entries {
		if x.Decision == policy.Allow {
			allows = append(allows, PolicyRule{Scope: string(x.Scope), From: x.From, Decision: "allow", Matches: x.Condition(), Reason: x.Reason})
		}
	}
	err = e.lay(ctx, func(s *machine.Standing) (batch, error) {
		if old, ok := s.TrustedDigest(path); ok && old == d {
			return batch{}, nil
		}
		return batch{bodies: []machine.Body{machine.PolicyTrusted{Path: path, Digest: d}}, blobs: []ledger.Blob{blob}}, nil
	})
	return path, allows, err
}

// DistrustPolicy takes the trust in a project's policy file back.
func (e *Engine) DistrustPolicy(ctx context.Context, file string) (string, error) {
	path, err := filepath.Abs(file)
	if err != nil {
		return "", err
	}
	if st, err := os.Stat(path); err == nil && st.IsDir() {
		path = projectPath(path)
	}
	return path, e.lay(ctx, func(s *machine.Standing) (batch, error) {
		if _, ok := s.TrustedDigest(path); !ok {
			return batch{}, errors.New(path + " is not trusted, so there is nothing to take back")
		}
		return batch{bodies: []machine.Body{machine.PolicyDistrusted{Path: path}}}, nil
	})
}
