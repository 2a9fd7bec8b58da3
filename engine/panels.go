package engine

import (
	"context"
	"fmt"
	"strings"
	"time"

	"pawl/engine/machine"
	"pawl/engine/window"
	"pawl/ledger"
)

// EffectLine is an effect in a list.
type EffectLine struct {
	ID       machine.EffectID `json:"id"`
	Turn     int              `json:"turn"`
	Tool     string           `json:"tool"`
	Class    string           `json:"class"`
	State    string           `json:"state"`
	Forced   bool             `json:"forced"` // an operator's word is in its history
	Attempts int              `json:"attempts"`
	Summary  string           `json:"summary"`
	Updated  time.Time        `json:"updated"`
}

// Effects lists a run's effects by their number: those after a number, or with
// back those before it (0: the newest).
func (e *Engine) Effects(ctx context.Context, id machine.RunID, after int64, back bool, limit int) ([]EffectLine, error) {
	rows, err := e.store.Effects(ctx, string(id), ledger.Page{After: after, Back: back, Limit: limit})
	if err != nil {
		return nil, err
	}
	out := make([]EffectLine, 0, len(rows))
	for _, r := range rows {
		out = append(out, EffectLine{
			ID: machine.EffectID(r.ID), Turn: int(r.Turn), Tool: r.Tool, Class: r.Class, State: r.State, Forced: r.Forced,
			Attempts: int(r.Attempts), Summary: r.Summary, Updated: wall(r.Updated),
		})
	}
	return out, nil
}

// Children lists the runs that a run has spawned, newest first.
func (e *Engine) Children(ctx context.Context, id machine.RunID) ([]RunLine, error) {
	parent := string(id)
	rows, err := e.store.Runs(ctx, ledger.RunFilter{Parent: &parent, Limit: 1000})
	if err != nil {
		return nil, err
	}
	return e.lines(ctx, rows)
}

// ContextView is what the model of a run would be shown, for people.
type ContextView struct {
	Run      machine.RunID    `json:"run"`
	Window   int              `json:"window"`
	Windows  int              `json:"windows"` // there are so far
	Tokens   int              `json:"tokens"`
	Budget   int              `json:"budget,omitempty"` // tokens of one request; 0: unknown
	Digest   machine.Digest   `json:"digest"`
	Sections []ContextSection `json:"sections"`
	Left     []window.LeftOut `json:"left_out,omitempty"`
}

// ContextSection is a part of it.
type ContextSection struct {
	Name   string   `json:"name"`
	Tokens int      `json:"tokens"`
	From   []string `json:"from,omitempty"` // events and blobs that it is made of
	Text   string   `json:"text"`
}

// Context builds what the model of a run would be shown next, or with n what it
// was shown in window n.
func (e *Engine) Context(ctx context.Context, id machine.RunID, n int) (ContextView, error) {
	s, err := e.state(ctx, id)
	if err != nil {
		return ContextView{}, err
	}
	var p window.Pack
	if n == 0 {
		n = s.Window
		p, err = e.build(ctx, &s)
	} else {
		p, err = e.PackAt(ctx, id, n)
	}
	if err != nil {
		return ContextView{}, err
	}
	v := ContextView{Run: id, Window: n, Windows: s.Window, Tokens: p.Tokens, Digest: p.Digest, Left: p.Left}
	if _, _, limits, err := e.o.Models.Resolve(ctx, s.Charter.Model, nil); err == nil {
		v.Budget = requestBudget(&s, limits)
	}
	for _, x := range p.Sections {
		text := x.Text
		if text == "" && x.Name == window.SectionTurns {
			text = p.Transcript()
		}
		v.Sections = append(v.Sections, ContextSection{Name: x.Name, Tokens: x.Tokens, From: x.Provenance, Text: text})
	}
	return v, nil
}

// StateKind is one kind of a run's state: what there is of it, where it lives,
// and how it comes back after everything was lost but the ledger.
type StateKind struct {
	Kind  string   `json:"kind"`
	Now   string   `json:"now"`
	More  []string `json:"more,omitempty"`
	Lives string   `json:"lives_in"`
	Back  string   `json:"comes_back_by"`
}

// StateTable is what would survive if the plug were pulled now.
type StateTable struct {
	Run   machine.RunID `json:"run"`
	Tail  int64         `json:"tail"` // events in the ledger
	Plug  string        `json:"plug"` // what pulling the plug now would mean, in a sentence or two
	Kinds []StateKind   `json:"kinds"`
}

// StateTable fills the table of kinds of state in for a run.
func (e *Engine) StateTable(ctx context.Context, id machine.RunID) (StateTable, error) {
	s, err := e.state(ctx, id)
	if err != nil {
		return StateTable{}, err
	}
	return StateTable{Run: id, Tail: s.Tail, Plug: plugged(&s), Kinds: []StateKind{
		taskKind(&s), executionKind(&s), evidenceKind(&s), authorityKind(&s), workspaceKind(&s),
		{Kind: "context", Now: fmt.Sprintf("window %d", s.Window), Lives: "nowhere: it is derived", Back: "rebuilt from the ledger, byte for byte"},
		{Kind: "memory", Now: "what you and the project want remembered", Lives: "ledger, across runs", Back: "read; recovery never needs it"},
	}}, nil
}

func plugged(s *machine.State) string {
	text := fmt.Sprintf("All %d events are in the ledger.", s.Tail)
	if s.Phase.Ended() {
		text += " The run has ended: nothing is under way that could be lost."
	}
	var flying []string
	for _, f := range s.Open() {
		if f.State == machine.StateDispatched {
			flying = append(flying, f.ID.Short()+" ("+f.Contract.Class.String()+", "+f.Summary+")")
		}
	}
	if len(flying) > 0 {
		text += " In flight, and without a result on record if it ended now: " + strings.Join(flying, ", ") + "."
	} else if !s.Phase.Ended() {
		text += " No effect is in flight."
	}
	if t := s.LastTurn(); t != nil && t.State == machine.TurnAsked {
		text += fmt.Sprintf(" The answer to turn %d is awaited: it would be asked for again, and the lost one booked as “at most”.", t.N)
	}
	return text
}

func taskKind(s *machine.State) StateKind {
	done := 0
	k := StateKind{Kind: "task", Lives: "ledger", Back: "folding its events"}
	k.More = append(k.More, "goal: "+s.Charter.Goal)
	if s.Charter.Check != "" {
		k.More = append(k.More, "check: "+s.Charter.Check)
	}
	for _, p := range s.Plan {
		if p.State == "done" {
			done++
		}
		k.More = append(k.More, "plan, "+p.State+": "+p.Text)
	}
	for _, d := range s.Decisions {
		k.More = append(k.More, "decision: "+d.Text)
	}
	for _, t := range s.Told {
		k.More = append(k.More, "you said: "+t.Text)
	}
	open := 0
	for _, q := range s.Questions.All() {
		if !q.Answered {
			open++
			k.More = append(k.More, "open question: "+q.Text)
		}
	}
	k.Now = fmt.Sprintf("plan %d of %d done · %s · %s · %s", done, len(s.Plan), amount(len(s.Decisions), "decision"),
		amount(len(s.Told), "instruction"), amount(open, "open question"))
	return k
}

func executionKind(s *machine.State) StateKind {
	const usd = 1e6
	k := StateKind{
		Kind: "execution", Lives: "ledger", Back: "folding its events, then asking what is next",
		Now: fmt.Sprintf("%s · %s, %d not settled · epoch %d · $%.2f", amount(s.Turns.Len(), "turn"), amount(s.Effects.Len(), "effect"), len(s.Open()), s.Epoch, float64(s.Spent)/usd),
	}
	k.More = append(k.More, "phase: "+string(s.Phase), "owner: "+s.Owner, "model: "+s.Charter.Model)
	if s.Budget > 0 {
		k.More = append(k.More, fmt.Sprintf("budget: $%.2f, spent $%.4f, lost calls at most $%.4f more", float64(s.Budget)/usd, float64(s.Spent)/usd, float64(s.AtMost)/usd))
	}
	for _, f := range s.Open() {
		k.More = append(k.More, fmt.Sprintf("%s %s: %s", f.ID.Short(), strings.ReplaceAll(f.State.String(), "_", " "), f.Summary))
	}
	return k
}

func evidenceKind(s *machine.State) StateKind {
	k := StateKind{Kind: "evidence", Lives: "blobs, found by their content's hash", Back: "their hash"}
	looks, outputs := 0, 0
	for _, f := range s.Effects.All() {
		looks += len(f.Evidence)
		if !f.Result.Output.Blob.IsZero() {
			outputs++
		}
		for _, v := range f.Evidence {
			k.More = append(k.More, fmt.Sprintf("%s, %s: %s. %s", f.ID.Short(), v.Authority, strings.ReplaceAll(v.Verdict.String(), "_", " "), v.Text))
		}
	}
	k.Now = fmt.Sprintf("%s · %s", amount(outputs, "long output"), amount(looks, "look"))
	return k
}

func authorityKind(s *machine.State) StateKind {
	k := StateKind{Kind: "authority", Lives: "ledger", Back: "folding its events; never from text that a model saw"}
	var pending, granted, used int
	for _, a := range s.Approvals.All() {
		switch a.State {
		case machine.ApprovalPending:
			pending++
		case machine.ApprovalGrantedS:
			granted++
		case machine.ApprovalConsumed:
			used++
		default: // over
		}
		line := fmt.Sprintf("%s for %s: %s", a.ID, a.Effect.Short(), a.State)
		if a.By != "" {
			line += ", " + who(a.By)
		}
		k.More = append(k.More, line)
	}
	for _, r := range s.Charter.Allow {
		k.More = append(k.More, "rule of this run: "+r)
	}
	k.Now = fmt.Sprintf("%d pending, %d granted, %d used · %s", pending, granted, used, amount(len(s.Charter.Allow), "rule"))
	return k
}

func workspaceKind(s *machine.State) StateKind {
	k := StateKind{Kind: "workspace", Lives: "its own worktree, and snapshots in a shadow repository", Back: "restoring a snapshot that the ledger names"}
	if !s.Space.Ready {
		k.Now = "not made yet"
		return k
	}
	k.Now = "confinement " + s.Space.Level
	if s.Space.Known.Tree != "" {
		k.Now = "snapshot " + s.Space.Known.Tree[:min(10, len(s.Space.Known.Tree))] + " · " + k.Now
	}
	if s.Landed != nil {
		k.Now += " · landed on " + s.Landed.Onto
	}
	k.More = append(k.More, "path: "+s.Space.Path, "branch: "+s.Space.Branch, "base: "+s.Space.Base)
	for _, c := range s.Changes.All() {
		k.More = append(k.More, fmt.Sprintf("changed by someone else at event %d: %s", c.N, strings.Join(c.Files, ", ")))
	}
	return k
}

func amount(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Workplace is the folder that a run works in.
func (e *Engine) Workplace(ctx context.Context, id machine.RunID) (string, error) {
	s, err := e.state(ctx, id)
	if err != nil {
		return "", err
	}
	if !s.Space.Ready {
		return "", fmt.Errorf("run %s has no workspace yet: it is made when the run starts", id)
	}
	return s.Space.Path, nil
}
