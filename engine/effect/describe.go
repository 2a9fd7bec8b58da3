package effect

import (
	"encoding/json"

	"pawl/engine/machine"
	"pawl/engine/policy"
)

// ProbeText shows on one line how a probe looks.
func ProbeText(p *machine.Probe) string {
	switch p.Kind {
	case ProbeCommand:
		return policy.Join(p.Command)
	case ProbeHTTP:
		return "GET " + HideCredentials(p.URL)
	case ProbeGitRef:
		return "git ls-remote"
	}
	return p.Kind
}

// CompensationText shows on one line what a compensation would do.
func CompensationText(c *machine.Compensation) string {
	var a struct {
		Command string `json:"command"`
		Method  string `json:"method"`
		URL     string `json:"url"`
	}
	if err := json.Unmarshal([]byte(c.Args), &a); err != nil || a.Command == "" && a.URL == "" {
		return c.Tool + " " + clipText(c.Args, 120)
	}
	if a.Command != "" {
		return a.Command
	}
	return a.Method + " " + HideCredentials(a.URL)
}
