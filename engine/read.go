package engine

import (
	"context"
	"strings"

	"pawl/engine/machine"
	"pawl/ledger"
)

// view is the run as a reader should see it: if its owner is gone, what was in
// flight is shown as the claim would mark it. Nothing is written.
func (e *Engine) view(ctx context.Context, id machine.RunID) (machine.State, error) {
	s, err := e.state(ctx, id)
	if err != nil {
		return s, err
	}
	leases, err := e.store.Leases(ctx, string(id))
	if err != nil {
		return s, err
	}
	live := len(leases) > 0 && leases[0].Live
	if live {
		return s, nil
	}
	return orphaned(s)
}

// orphaned is a run as a claim by somebody else would leave it. Nothing of it
// depends on when or where it is asked.
func orphaned(s machine.State) (machine.State, error) {
	bodies := claimBodies(&s, "nobody", machine.Identity{}, s.Boot)
	if len(bodies) == 1 {
		return s, nil
	}
	b := batch{bodies: bodies, epoch: s.Epoch + 1}
	return b.ahead(s, s.Updated)
}

// State is the folded run as a reader should see it.
func (e *Engine) State(ctx context.Context, id machine.RunID) (machine.State, error) {
	return e.view(ctx, id)
}

// Inbox lists everything that waits for the operator, the most pressing kind first.
func (e *Engine) Inbox(ctx context.Context) ([]Item, error) {
	rows, err := e.store.Inbox(ctx, "")
	if err != nil {
		return nil, err
	}
	live, err := e.owned(ctx)
	if err != nil {
		return nil, err
	}
	goals := map[string]string{}
	out := make([]Item, 0, len(rows))
	for _, r := range rows {
		if r.Latent && live[r.Run] {
			continue // in flight, and its owner lives
		}
		goal, ok := goals[r.Run]
		if !ok {
			if row, err := e.store.Run(ctx, r.Run); err == nil {
				goal = row.Goal
			}
			goals[r.Run] = goal
		}
		out = append(out, item(r, goal))
	}
	return out, nil
}

// owned says which runs have a living owner.
func (e *Engine) owned(ctx context.Context) (map[string]bool, error) {
	leases, err := e.store.Leases(ctx)
	if err != nil {
		return nil, err
	}
	live := make(map[string]bool, len(leases))
	for _, l := range leases {
		live[l.Run] = l.Live
	}
	return live, nil
}

func item(r ledger.InboxRow, goal string) Item {
	i := Item{ID: r.ID, Kind: r.Kind, Run: machine.RunID(r.Run), Goal: goal, Summary: r.Summary, Since: wall(r.Since), Reach: "holds the run"}
	switch r.Kind {
	case KindAmbiguous, KindContradicted:
		i.Next = "pawl settle " + r.ID + " happened|retry|compensate|abandon|wait|probe"
	case KindApproval:
		i.Next = "pawl approve " + r.ID + "  or  pawl deny " + r.ID
	case KindFinished:
		i.Next, i.Reach = "pawl land "+r.Run, "nothing waits"
	case KindConflict:
		i.Next = "pawl answer " + r.ID + " …"
		if machine.EffectID(r.ID).Ord() > 0 { // a compensation that failed
			i.Next, i.Reach = "pawl settle "+r.ID+" compensate|abandon", "nothing waits"
		} else if !strings.Contains(r.ID, ".") { // the work of a delegated run that did not merge
			i.Next = "pawl review " + r.ID
		}
	case KindReview:
		i.Next = "pawl review " + r.ID
	default:
		i.Next = "pawl answer " + r.ID + " …"
	}
	return i
}

// orphans are the runs that have something in flight and whose owner is gone.
func (e *Engine) orphans(ctx context.Context) (map[machine.RunID]bool, error) {
	leases, err := e.store.Leases(ctx)
	if err != nil {
		return nil, err
	}
	out := map[machine.RunID]bool{}
	for _, l := range leases {
		if !l.Live {
			out[machine.RunID(l.Run)] = true
		}
	}
	return out, nil
}

// RunsQuery selects runs, newest first.
type RunsQuery struct {
	Search string
	Before machine.RunID // keyset: runs after this one in the list
	Limit  int           // 0: 100
}

// Runs lists runs with their standing.
func (e *Engine) Runs(ctx context.Context, q RunsQuery) ([]RunLine, error) {
	rows, err := e.store.Runs(ctx, ledger.RunFilter{Search: q.Search, Before: string(q.Before), Limit: q.Limit})
	if err != nil {
		return nil, err
	}
	return e.lines(ctx, rows)
}

// Run returns one run's line.
func (e *Engine) Run(ctx context.Context, id machine.RunID) (RunLine, error) {
	row, err := e.store.Run(ctx, string(id))
	if err != nil {
		return RunLine{}, err
	}
	lines, err := e.lines(ctx, []ledger.RunRow{row})
	if err != nil {
		return RunLine{}, err
	}
	return lines[0], nil
}

func (e *Engine) lines(ctx context.Context, rows []ledger.RunRow) ([]RunLine, error) {
	var ids []string
	for _, r := range rows {
		if p := machine.Phase(r.State); !p.Ended() || r.Open > 0 {
			ids = append(ids, r.ID)
		}
	}
	owners := map[string]ledger.Lease{}
	if len(ids) > 0 {
		leases, err := e.store.Leases(ctx, ids...)
		if err != nil {
			return nil, err
		}
		for _, l := range leases {
			owners[l.Run] = l
		}
	}
	out := make([]RunLine, 0, len(rows))
	for _, r := range rows {
		out = append(out, runLine(r, owners[r.ID]))
	}
	bubble(out)
	return out, nil
}

func runLine(r ledger.RunRow, l ledger.Lease) RunLine {
	const usd = 1e6
	line := RunLine{
		ID: machine.RunID(r.ID), Parent: machine.RunID(r.Parent), Goal: r.Goal, State: standing(r, l), Turns: int(r.Turn),
		Checked: r.Flags&flagChecked != 0, Landed: r.Flags&flagLanded != 0,
		Spend: float64(r.SpendMicroUSD) / usd, AtMost: float64(r.AtMostMicroUSD) / usd, Budget: float64(r.BudgetMicroUSD) / usd,
		Model: r.Model, Repo: r.Repo, Needs: int(r.Waiting), Note: r.Note, Created: wall(r.Created), Updated: wall(r.Updated),
		Operator: wall(r.LastOperator),
	}
	if l.Live {
		line.Owner = l.Owner
	}
	if line.State == Interrupted {
		line.Note = "nobody drives it; pawl resume goes on with: " + line.Note
	}
	return line
}

func standing(r ledger.RunRow, l ledger.Lease) Standing {
	switch machine.Phase(r.State) {
	case machine.PhaseDone:
		return Done
	case machine.PhaseFailed:
		return Failed
	case machine.PhaseCancelled:
		return Cancelled
	case machine.PhasePaused:
		return Paused
	case machine.PhaseRunning, machine.PhaseNone:
	}
	switch {
	case r.Waiting > 0:
		return Waiting
	case l.Live:
		return Running
	}
	return Interrupted
}

// Status is the head line of the screen.
type Status struct {
	Path     string           `json:"path"`
	ReadOnly bool             `json:"read_only"`
	Why      string           `json:"why,omitempty"`
	Runs     map[Standing]int `json:"runs"`
	Total    int              `json:"total"`
	Spend    float64          `json:"spend_usd"`
	Budget   float64          `json:"budget_usd"`
	Need     int              `json:"need"`
	Owned    int              `json:"owned"` // runs that this process drives
	Level    string           `json:"level"`
	WAL      int64            `json:"wal_bytes"`
}

// Status counts runs and what waits.
func (e *Engine) Status(ctx context.Context) (Status, error) {
	st := Status{Path: e.store.Path(), Runs: map[Standing]int{}, Owned: len(e.Driven()), WAL: e.store.Stats().WALBytes}
	st.ReadOnly, st.Why = e.store.ReadOnly()
	counts, err := e.store.CountRuns(ctx)
	if err != nil {
		return st, err
	}
	for state, n := range counts {
		st.Total += int(n)
		switch machine.Phase(state) {
		case machine.PhaseDone:
			st.Runs[Done] += int(n)
		case machine.PhaseFailed:
			st.Runs[Failed] += int(n)
		case machine.PhaseCancelled:
			st.Runs[Cancelled] += int(n)
		case machine.PhasePaused:
			st.Runs[Paused] += int(n)
		case machine.PhaseRunning, machine.PhaseNone:
		}
	}
	active, err := e.store.Runs(ctx, ledger.RunFilter{States: []string{string(machine.PhaseRunning)}, Limit: 1000})
	if err != nil {
		return st, err
	}
	lines, err := e.lines(ctx, active)
	if err != nil {
		return st, err
	}
	for _, l := range lines {
		st.Runs[l.State]++
		st.Spend += l.Spend
		st.Budget += l.Budget
	}
	items, err := e.Inbox(ctx)
	if err != nil {
		return st, err
	}
	st.Need = len(items)
	return st, nil
}

// Orphans lists runs that were running and that nobody drives.
func (e *Engine) Orphans(ctx context.Context) ([]machine.RunID, error) {
	rows, err := e.store.Runs(ctx, ledger.RunFilter{States: []string{string(machine.PhaseRunning)}, Limit: 10000})
	if err != nil {
		return nil, err
	}
	dead, err := e.orphans(ctx)
	if err != nil {
		return nil, err
	}
	leases, err := e.store.Leases(ctx)
	if err != nil {
		return nil, err
	}
	held := map[string]bool{}
	for _, l := range leases {
		held[l.Run] = l.Live
	}
	var out []machine.RunID
	for _, r := range rows {
		if !held[r.ID] {
			out = append(out, machine.RunID(r.ID))
		}
		delete(dead, machine.RunID(r.ID))
	}
	for id := range dead { // paused or ended, with something in flight
		out = append(out, id)
	}
	return out, nil
}

// Adopt claims and drives every run that was running and has no living owner.
// Paused runs stay paused. It returns the runs it took.
func (e *Engine) Adopt(ctx context.Context) ([]machine.RunID, error) {
	ids, err := e.Orphans(ctx)
	if err != nil {
		return nil, err
	}
	var took []machine.RunID
	for _, id := range ids {
		if err := e.drive(ctx, id); err != nil {
			e.o.Log("run %s is not taken over: %v", id, err)
			continue
		}
		took = append(took, id)
	}
	return took, nil
}
