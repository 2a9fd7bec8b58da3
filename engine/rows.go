package engine

import (
	"fmt"
	"slices"
	"strings"

	"pawl/engine/machine"
	"pawl/ledger"
)

// project derives the rows that differ between two states of a run. It is the
// only place where rows come from; `pawl verify` calls it with an empty old
// state and compares.
func project(old, s *machine.State) ledger.Rows {
	rows := ledger.Rows{Run: runRow(s)}
	for _, e := range s.Effects.Changed(old.Effects) {
		rows.Effects = append(rows.Effects, effectRow(e))
	}
	for _, a := range s.Approvals.Changed(old.Approvals) {
		rows.Approvals = append(rows.Approvals, ledger.ApprovalRow{
			ID: string(a.ID), Run: string(s.Charter.ID), Effect: string(a.Effect), State: string(a.State),
			Digest: ledger.Hash(a.Digest), Updated: max(a.Asked, a.Answered),
		})
	}
	was := map[string]ledger.InboxRow{}
	for _, r := range inboxRows(old) {
		was[r.ID] = r
	}
	for _, r := range inboxRows(s) {
		if was[r.ID] != r {
			rows.Inbox = append(rows.Inbox, r)
		}
		delete(was, r.ID)
	}
	for id := range was {
		rows.Gone = append(rows.Gone, id)
	}
	return rows
}

func runRow(s *machine.State) *ledger.RunRow {
	r := &ledger.RunRow{
		ID: string(s.Charter.ID), Parent: string(s.Charter.Parent), Root: string(s.Charter.Root), Goal: preview(s.Charter.Goal, 400),
		State: string(s.Phase), Model: s.Charter.Model, Repo: s.Charter.Repo, Turn: int64(s.Turns.Len()),
		SpendMicroUSD: s.Spent, AtMostMicroUSD: s.AtMost, BudgetMicroUSD: s.Budget,
		Created: s.Created, Updated: s.Updated, LastOperator: s.LastOp, Note: note(s), Flags: flags(s),
	}
	for _, e := range s.Open() {
		if e.State == machine.StateDispatched || e.State == machine.StateAmbiguous || e.State == machine.StateContradicted {
			r.Open++
		}
	}
	r.Waiting = int64(len(machine.Waits(s)))
	return r
}

// Flags of a run row.
const (
	flagChecked int64 = 1 << iota
	flagLanded
)

func flags(s *machine.State) int64 {
	var f int64
	if s.Checked {
		f |= flagChecked
	}
	if s.Landed != nil {
		f |= flagLanded
	}
	return f
}

func effectRow(e *machine.Effect) ledger.EffectRow {
	return ledger.EffectRow{
		ID: string(e.ID), Run: string(e.ID.Run()), Ord: int64(e.Ord), Turn: int64(e.Turn), Tool: e.Tool,
		Class: e.Contract.Class.String(), State: e.State.String(), Forced: e.Forced, Attempts: int64(len(e.Attempts)),
		Digest: ledger.Hash(e.Digest), Summary: preview(e.Summary, 200), Updated: e.Updated,
	}
}

// inboxRows are what waits for the operator, and what would if the run's owner
// turned out to be gone: a reader who knows the lease sees either without
// folding the run.
func inboxRows(s *machine.State) []ledger.InboxRow {
	var rows []ledger.InboxRow
	for _, w := range machine.Waits(s) {
		rows = append(rows, inboxRow(s, w))
	}
	inFlight := false
	for _, f := range s.Open() {
		inFlight = inFlight || f.State == machine.StateDispatched && !machine.Resendable(s, f)
	}
	if !inFlight {
		return rows
	}
	gone, err := orphaned(*s)
	if err != nil {
		return rows // the claim itself would be refused: nothing is known to wait
	}
	known := len(rows)
	for _, w := range machine.Waits(&gone) {
		r := inboxRow(&gone, w)
		r.Latent = true
		if !slices.ContainsFunc(rows[:known], func(k ledger.InboxRow) bool { return k.ID == r.ID }) {
			rows = append(rows, r)
		}
	}
	return rows
}

func inboxRow(s *machine.State, w machine.Wait) ledger.InboxRow {
	return ledger.InboxRow{
		ID: w.Ref, Run: string(s.Charter.ID), Kind: w.Kind, Ref: w.Ref, Summary: preview(w.Summary, 300),
		Rank: int64(w.Rank), Since: w.Since,
	}
}

// note says in one line what a run is doing or why it ended.
func note(s *machine.State) string {
	switch s.Phase {
	case machine.PhaseDone:
		if s.Landed != nil {
			return "landed on " + s.Landed.Onto
		}
		if s.Checked {
			return "done, checked"
		}
		return "done (unchecked)"
	case machine.PhaseFailed, machine.PhaseCancelled:
		n := string(s.Phase)
		if k := unknowns(s); k > 0 {
			n += fmt.Sprintf(", %d unknown", k)
		}
		if s.Reason != "" {
			n += ": " + s.Reason
		}
		return preview(n, 200)
	case machine.PhasePaused:
		return "paused"
	case machine.PhaseRunning, machine.PhaseNone:
	}
	if n := collecting(s); n > 0 {
		return fmt.Sprintf("waits for %d delegated runs", n)
	}
	if w := machine.Waits(s); len(w) > 0 {
		return "waits: " + w[0].Kind
	}
	for _, e := range s.Open() {
		if e.State == machine.StateDispatched {
			return preview("runs "+e.Summary, 200)
		}
		if e.State != machine.StateIntended {
			return preview(e.State.String()+": "+e.Summary, 200)
		}
	}
	if !s.Space.Ready {
		return "prepares its workspace"
	}
	if h := s.Hold; h != nil {
		return preview("waits until "+clock(h.Until)+": "+h.Why, 200)
	}
	if t := s.LastTurn(); t != nil && t.State == machine.TurnBroken && t.RetryAt > 0 {
		return preview("asks again at "+clock(t.RetryAt)+": "+t.Message, 200)
	}
	if t := s.LastTurn(); t != nil && t.State == machine.TurnBroken {
		return preview("asks again: "+t.Message, 200)
	}
	return "asks the model"
}

// collecting counts the unsettled runs that a run waits for, 0 if it does not.
func collecting(s *machine.State) int {
	n := 0
	for _, e := range s.Open() {
		if e.Tool == machine.ToolCollect && e.State == machine.StateIntended {
			for _, c := range s.Children.All() {
				if c.Report == nil {
					n++
				}
			}
			break
		}
	}
	return n
}

// unknowns counts effects whose outcome is not known.
func unknowns(s *machine.State) int {
	n := 0
	for _, e := range s.Open() {
		switch e.State {
		case machine.StateDispatched, machine.StateAmbiguous, machine.StateContradicted:
			n++
		default:
		}
	}
	return n
}

// preview cuts text to at most n bytes on a character's border.
func preview(s string, n int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= n {
		return s
	}
	cut := n - len("…")
	for cut > 0 && s[cut]&0xC0 == 0x80 {
		cut--
	}
	return s[:cut] + "…"
}
