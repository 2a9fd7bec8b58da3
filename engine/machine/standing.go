package machine

import (
	"fmt"
	"slices"
)

// DeskRun names the chain of what the operator lays down across runs: standing
// grants, files whose rules are trusted, policies that were in force. It is no
// run: it has no charter, no lease and no row in a list.
const DeskRun RunID = "desk"

// GrantScope says how far a standing grant reaches.
type GrantScope string

// The scopes of standing grants.
const (
	GrantRun     GrantScope = "run"
	GrantProject GrantScope = "project"
)

// The bodies of the desk's chain.
type (
	// GrantAdded lays down a rule that lets actions go from now on.
	GrantAdded struct {
		Grant    string     `json:"grant" cbor:"1,keyasint"` // "g1"; numbered in the ledger
		Rule     string     `json:"rule" cbor:"2,keyasint"`  // as --allow would take it
		Scope    GrantScope `json:"scope" cbor:"3,keyasint"`
		Run      RunID      `json:"run,omitempty" cbor:"4,keyasint,omitempty"`      // the run, or the one in which it was given
		Repo     string     `json:"repo,omitempty" cbor:"5,keyasint,omitempty"`     // of a project grant
		Approval ApprovalID `json:"approval,omitempty" cbor:"6,keyasint,omitempty"` // the question it was given with
	}
	// GrantRevoked ends a standing grant.
	GrantRevoked struct {
		Grant  string `json:"grant" cbor:"1,keyasint"`
		Reason string `json:"reason,omitempty" cbor:"2,keyasint,omitempty"`
	}
	// PolicyTrusted lets a project's file loosen, as long as it has this content.
	PolicyTrusted struct {
		Path   string `json:"path" cbor:"1,keyasint"`
		Digest Digest `json:"digest" cbor:"2,keyasint"`
	}
	// PolicyDistrusted takes that back.
	PolicyDistrusted struct {
		Path string `json:"path" cbor:"1,keyasint"`
	}
	// PolicyAdopted records the rules of a file that were read and hold from now
	// on, as a blob: what held when is on record, and a file that breaks later
	// leaves them in force, in another process too.
	PolicyAdopted struct {
		Path   string `json:"path" cbor:"1,keyasint"`
		Digest Digest `json:"digest,omitzero" cbor:"2,keyasint,omitzero"` // zero: there is no file
	}
)

// Grant is a standing grant.
type Grant struct {
	GrantAdded
	At      int64  `json:"at"` // Unix µs
	By      string `json:"by"`
	Revoked int64  `json:"revoked,omitempty"`
	Revoker string `json:"revoker,omitempty"`
}

// Standing is everything the desk's events say. It is a value.
type Standing struct {
	Tail    int64
	Grants  []Grant
	Trusted []PolicyTrusted // by path, the newest only
	Adopted []PolicyAdopted // by path, the newest only
}

// NextGrant is the id that the next grant will have.
func (s *Standing) NextGrant() string { return fmt.Sprintf("g%d", len(s.Grants)+1) }

// Grant returns a grant by id or nil.
func (s *Standing) Grant(id string) *Grant {
	i := slices.IndexFunc(s.Grants, func(g Grant) bool { return g.Grant == id })
	if i < 0 {
		return nil
	}
	return &s.Grants[i]
}

// Covers reports whether a grant holds for a run.
func (g *Grant) Covers(c *Charter) bool {
	if g.Revoked != 0 {
		return false
	}
	switch g.Scope {
	case GrantRun:
		return g.Run == c.ID
	case GrantProject:
		return g.Repo != "" && g.Repo == c.Repo
	}
	return false
}

// TrustedDigest is the content that the operator trusts a file to have.
func (s *Standing) TrustedDigest(path string) (Digest, bool) {
	for _, t := range s.Trusted {
		if t.Path == path {
			return t.Digest, true
		}
	}
	return Digest{}, false
}

// AdoptedDigest is the content of a file that was last in force.
func (s *Standing) AdoptedDigest(path string) (Digest, bool) {
	for _, t := range s.Adopted {
		if t.Path == path {
			return t.Digest, true
		}
	}
	return Digest{}, false
}

// FoldStanding applies one event of the desk's chain and leaves s as it was.
func FoldStanding(s Standing, e Event) (Standing, error) {
	if err := GuardNext.need(e.N == s.Tail+1, e.Body, string(DeskRun), "event %d does not follow %d", e.N, s.Tail); err != nil {
		return s, err
	}
	old := s
	switch b := e.Body.(type) {
	case GrantAdded:
		if err := GuardNext.need(b.Grant == s.NextGrant(), b, b.Grant, "the next grant is %s", s.NextGrant()); err != nil {
			return old, err
		}
		ok := b.Rule != "" && (b.Scope == GrantRun && b.Run != "" || b.Scope == GrantProject && b.Repo != "")
		if err := GuardApproval.need(ok, b, b.Grant, "it says not what it lets go, or where"); err != nil {
			return old, err
		}
		s.Grants = append(slices.Clip(s.Grants), Grant{GrantAdded: b, At: e.At, By: e.Actor})
	case GrantRevoked:
		g := s.Grant(b.Grant)
		if g == nil {
			return old, &GuardError{Guard: GuardGrantOnce, Event: b.Kind(), Ref: b.Grant, Why: "no such grant"}
		}
		if err := GuardGrantOnce.need(g.Revoked == 0, b, b.Grant, "it is revoked already"); err != nil {
			return old, err
		}
		s.Grants = slices.Clone(s.Grants)
		g = s.Grant(b.Grant)
		g.Revoked, g.Revoker = e.At, e.Actor
	case PolicyTrusted:
		s.Trusted = append(without(s.Trusted, b.Path, func(t PolicyTrusted) string { return t.Path }), b)
	case PolicyDistrusted:
		s.Trusted = without(s.Trusted, b.Path, func(t PolicyTrusted) string { return t.Path })
	case PolicyAdopted:
		s.Adopted = append(without(s.Adopted, b.Path, func(t PolicyAdopted) string { return t.Path }), b)
	default:
		return old, &GuardError{Guard: GuardFrom, Event: e.Body.Kind(), Ref: string(DeskRun), Why: "it belongs to a run"}
	}
	s.Tail = e.N
	return s, nil
}

// without returns a copy that lacks the entries for path.
func without[T any](list []T, path string, of func(T) string) []T {
	out := make([]T, 0, len(list)+1)
	for _, t := range list {
		if of(t) != path {
			out = append(out, t)
		}
	}
	return out
}

// Kind names the event.
func (GrantAdded) Kind() string { return "GrantAdded" }

// Kind names the event.
func (GrantRevoked) Kind() string { return "GrantRevoked" }

// Kind names the event.
func (PolicyTrusted) Kind() string { return "PolicyTrusted" }

// Kind names the event.
func (PolicyDistrusted) Kind() string { return "PolicyDistrusted" }

// Kind names the event.
func (PolicyAdopted) Kind() string { return "PolicyAdopted" }
