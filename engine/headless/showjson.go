package headless

import (
	"time"

	"pawl/engine"
	"pawl/engine/machine"
)

// timeFormat is how --json writes times.
const timeFormat = time.RFC3339Nano

// shownRun is a run as `pawl show --json` tells it.
type shownRun struct {
	ID        machine.RunID    `json:"id"`
	Goal      string           `json:"goal"`
	State     engine.Standing  `json:"state"`
	Turns     int              `json:"turns"`
	Spend     float64          `json:"spend_usd"`
	AtMost    float64          `json:"at_most_usd,omitempty"` // more that lost model calls may have cost
	Effects   []shownEffect    `json:"effects"`
	Note      string           `json:"note"`
	Owner     string           `json:"owner,omitempty"` // who drives it; none if nobody does
	Checked   bool             `json:"checked"`
	Summary   string           `json:"summary,omitempty"`
	Model     string           `json:"model"`
	Check     string           `json:"check,omitempty"`
	Allow     []string         `json:"allow,omitempty"`
	Repo      string           `json:"repo"`
	Workspace shownSpace       `json:"workspace"`
	Landed    *machine.Landing `json:"landed,omitempty"`
	Told      []string         `json:"told,omitempty"`
	Epoch     int64            `json:"epoch"`
	Events    int64            `json:"events"`
	Created   string           `json:"created"`
	Updated   string           `json:"updated"`
}

type shownSpace struct {
	Path   string `json:"path,omitempty"` // none yet: it is not prepared
	Mode   string `json:"mode,omitempty"` // worktree, in-place, folder
	Branch string `json:"branch,omitempty"`
	Base   string `json:"base,omitempty"`
	Level  string `json:"level,omitempty"` // of confinement, as measured
	Tree   string `json:"tree,omitempty"`  // of the newest snapshot
}

type shownEffect struct {
	ID       machine.EffectID    `json:"id"`
	Tool     string              `json:"tool"`
	Class    machine.Class       `json:"class"`
	State    machine.EffectState `json:"state"`
	Verdict  string              `json:"verdict"` // happened, not_happened, unknown, conflict; "" before anything was sent
	Forced   bool                `json:"forced"`  // an operator's word is in its history
	Attempts []shownAttempt      `json:"attempts"`
	Digest   machine.Digest      `json:"digest"`
	Evidence []shownEvidence     `json:"evidence"`
	Summary  string              `json:"summary"`
	Target   string              `json:"target,omitempty"`
	Approval machine.ApprovalID  `json:"approval,omitempty"`
	Reason   string              `json:"reason,omitempty"`
	By       string              `json:"by,omitempty"`
	Code     string              `json:"code,omitempty"` // of the result, where an end was observed
	OK       bool                `json:"ok"`             // that result was a good one
}

type shownAttempt struct {
	N       int                `json:"n"`
	At      string             `json:"at"`
	Epoch   int64              `json:"epoch"`
	Digest  machine.Digest     `json:"digest"`
	Level   string             `json:"level,omitempty"`
	Started bool               `json:"started"`
	PID     int                `json:"pid,omitempty"`
	End     machine.AttemptEnd `json:"end"` // "" while it is in flight
	Forced  bool               `json:"forced"`
	Code    string             `json:"code,omitempty"`
	Cause   string             `json:"cause,omitempty"`
	Ended   string             `json:"ended,omitempty"`
	Params  map[string]string  `json:"params,omitempty"`
}

type shownEvidence struct {
	N         int64             `json:"n"` // event number in the run
	Verdict   machine.Verdict   `json:"verdict"`
	Authority machine.Authority `json:"authority"`
	Covers    int               `json:"covers"` // attempts up to this one
	Text      string            `json:"text"`
	At        string            `json:"at"`
	Actor     string            `json:"actor"`
}

// effectCardView is an effect with its card: what it is, and what may be done.
type effectCardView struct {
	shownEffect
	Card engine.EffectCard `json:"card"`
}

func runView(l engine.RunLine, st *machine.State) shownRun {
	v := shownRun{
		ID: l.ID, Goal: st.Charter.Goal, State: l.State, Turns: l.Turns, Spend: l.Spend, AtMost: l.AtMost, Effects: []shownEffect{},
		Note: l.Note, Owner: l.Owner, Checked: l.Checked, Summary: st.Summary.Inline, Model: l.Model, Check: st.Charter.Check,
		Allow: st.Charter.Allow, Repo: st.Charter.Repo, Workspace: spaceView(st.Space), Landed: st.Landed, Epoch: st.Epoch, Events: st.Tail,
		Created: exact(st.Created), Updated: exact(st.Updated),
	}
	for _, t := range st.Told {
		v.Told = append(v.Told, t.Text)
	}
	for _, e := range st.Effects.All() {
		v.Effects = append(v.Effects, effectView(e))
	}
	return v
}

func spaceView(w machine.Workspace) shownSpace {
	return shownSpace{Path: w.Path, Mode: w.Mode, Branch: w.Branch, Base: w.Base, Level: w.Level, Tree: w.Known.Tree}
}

func effectView(e *machine.Effect) shownEffect {
	v := shownEffect{
		ID: e.ID, Tool: e.Tool, Class: e.Contract.Class, State: e.State, Verdict: verdictOf(e.State, e.Before), Forced: e.Forced,
		Attempts: []shownAttempt{}, Digest: e.Digest, Evidence: []shownEvidence{}, Summary: e.Summary, Target: e.Target,
		Approval: e.Approval, Reason: e.Reason, By: e.By, Code: e.Result.Code, OK: e.Result.OK,
	}
	for i := range e.Attempts {
		at := &e.Attempts[i]
		v.Attempts = append(v.Attempts, shownAttempt{
			N: at.N, At: exact(at.At), Epoch: at.Epoch, Digest: at.Digest, Level: at.Level, Started: at.Started, PID: at.Identity.PID,
			End: at.End, Forced: at.Forced, Code: at.Code, Cause: at.Cause, Ended: exact(at.Ended), Params: at.Params,
		})
	}
	for _, x := range e.Evidence {
		v.Evidence = append(v.Evidence, shownEvidence{
			N: x.N, Verdict: x.Verdict, Authority: x.Authority, Covers: x.Covers, Text: x.Text, At: exact(x.At), Actor: x.Actor,
		})
	}
	return v
}

// exact writes a time in Unix µs; "" for none.
func exact(us int64) string {
	if us == 0 {
		return ""
	}
	return time.UnixMicro(us).UTC().Format(timeFormat)
}

// verdictOf says what a state claims about the world. What has no result on
// record is unknown, never failed.
func verdictOf(s, before machine.EffectState) string {
	const unknown = "unknown"
	switch s {
	case machine.StateCompleted, machine.StateHappened, machine.StateForcedHappened:
		return machine.VerdictHappened.String()
	case machine.StateRejected, machine.StateNotHappened, machine.StateForcedNot, machine.StateRefused, machine.StateCancelled:
		return machine.VerdictNotHappened.String()
	case machine.StateContradicted:
		return machine.VerdictConflict.String()
	case machine.StateAmbiguous, machine.StateAbandoned, machine.StateDispatched:
		return unknown
	case machine.StateCompensating, machine.StateCompensated:
		if before == s || before == machine.StateUnknown {
			return unknown
		}
		return verdictOf(before, machine.StateUnknown)
	case machine.StateUnknown, machine.StateProposed, machine.StateIntended:
	}
	return ""
}
