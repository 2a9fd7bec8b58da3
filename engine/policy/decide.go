package policy

import (
	"fmt"
	"strings"

	"pawl/engine/machine"
)

// Verdict is what policy says about an action.
type Verdict uint8

// The verdicts. The zero value is none of them and must be treated as Ask.
const (
	VerdictUnknown Verdict = iota
	Allow
	Ask
	Deny
)

// String returns the verdict in lower case.
func (v Verdict) String() string {
	switch v {
	case Allow:
		return "allow"
	case Ask:
		return "ask"
	case Deny:
		return "deny"
	case VerdictUnknown:
		return "unknown"
	}
	return fmt.Sprintf("invalid(%d)", uint8(v))
}

// Decision is a verdict with its ground.
type Decision struct {
	Verdict Verdict
	// Rule names what decided: "built-in: …", "allow: " and the run's rule, or the
	// scope and source of a rule and what it says.
	Rule string
	// Why is one sentence for the approval card and the log.
	Why   string
	Scope Scope
	// Expires bounds the answer to a question, in µs from the asking; 0: it does not expire.
	Expires int64
}

// Decide judges one action under the short rules of its run alone.
func Decide(allow []string, s Subject) Decision { return Set{Allow: allow}.Decide(s) }

// builtIn is the table of what goes without a question.
func builtIn(s Subject) (Decision, bool) {
	local := len(s.Secrets) == 0 && !s.Network && s.Recipe == "" && len(s.OutsideWrite) == 0
	switch {
	case s.Declared:
		return Decision{Verdict: Allow, Rule: "built-in: operator's command", Why: "the operator gave this command with the run", Scope: ScopeBuiltIn}, true
	case s.Internal && local && len(s.Reads) == 0 && len(s.Writes) == 0:
		return Decision{Verdict: Allow, Rule: "built-in: ledger only", Why: "it touches nothing but Pawl's own record", Scope: ScopeBuiltIn}, true
	case s.Class == machine.ClassRead && local && len(s.Writes) == 0 && s.Commands == nil && s.Line == "" && inside(s.Reads):
		return Decision{Verdict: Allow, Rule: "built-in: read", Why: "it only reads inside the workspace", Scope: ScopeBuiltIn}, true
	case s.Class == machine.ClassWorkspace && s.Sealed && local && inside(s.Reads) && inside(s.Writes):
		return Decision{Verdict: Allow, Rule: "built-in: sealed", Why: "it can change nothing but the workspace, which has a snapshot", Scope: ScopeBuiltIn}, true
	}
	return Decision{}, false
}

// whyAsk names the first ground that applies, the weightiest first.
func whyAsk(s Subject) string {
	switch {
	case len(s.Secrets) > 0:
		return "it is given the secret " + strings.Join(s.Secrets, ", ")
	case s.Recipe != "":
		why := "it reaches outside: " + s.Recipe
		if len(s.OutsideWrite) > 0 {
			why += ", writing to " + strings.Join(s.OutsideWrite, ", ")
		}
		return why
	case len(s.OutsideWrite) > 0:
		return "it writes outside the workspace: " + strings.Join(s.OutsideWrite, ", ")
	case firstOutside(s.Writes) != "":
		return "it writes outside the workspace: " + firstOutside(s.Writes)
	case s.Network && s.Host != "":
		return strings.TrimSpace(fmt.Sprintf("it uses the network: %s %s", s.Method, s.Host))
	case s.Network:
		return "it uses the network"
	case firstOutside(s.Reads) != "":
		return "it reads outside the workspace: " + firstOutside(s.Reads)
	case s.Commands != nil && len(s.Commands.Unresolved) > 0 && !s.Sealed:
		return "what it runs cannot be told from the line: " + s.Commands.Unresolved[0]
	case s.Commands != nil && !s.Sealed:
		return "the command would run unsealed, so it could change more than the workspace"
	default:
		return "nothing declares it harmless"
	}
}

func inside(as []Access) bool { return firstOutside(as) == "" }

func firstOutside(as []Access) string {
	for _, a := range as {
		if !a.Inside {
			if a.Path == "" {
				return "a path that is not known"
			}
			return a.Path
		}
	}
	return ""
}
