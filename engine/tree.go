package engine

import (
	"context"

	"pawl/engine/machine"
	"pawl/ledger"
)

// TreeLine is a run in its tree.
type TreeLine struct {
	RunLine
	Depth    int                   `json:"depth"`
	Standing machine.ChildStanding `json:"standing,omitempty"` // as the run above sees it; "" for the first
	Unknown  int                   `json:"unknown"`            // effects whose outcome is not known
	Flags    int                   `json:"flags"`              // claims without a receipt
	InAll    float64               `json:"spend_in_all_usd"`   // of it and all below it
}

// Tree lists a run and all runs below it, each before those it delegated to.
func (e *Engine) Tree(ctx context.Context, id machine.RunID) ([]TreeLine, error) {
	s, err := e.view(ctx, id)
	if err != nil {
		return nil, err
	}
	return e.treeLines(ctx, &s, 0, nil)
}

func (e *Engine) treeLines(ctx context.Context, s *machine.State, depth int, as *machine.Child) ([]TreeLine, error) {
	row, err := e.store.Run(ctx, string(s.Charter.ID))
	if err != nil {
		return nil, err
	}
	lines, err := e.lines(ctx, []ledger.RunRow{row})
	if err != nil {
		return nil, err
	}
	l := TreeLine{RunLine: lines[0], Depth: depth, Unknown: unknowns(s), InAll: lines[0].Spend}
	if as != nil {
		l.Standing = as.Standing()
		if as.Report != nil {
			l.Flags = len(as.Report.Flags)
		}
	}
	out := []TreeLine{l}
	for _, c := range s.Children.All() {
		k, err := e.view(ctx, c.ID)
		if err != nil {
			return nil, err
		}
		below, err := e.treeLines(ctx, &k, depth+1, c)
		if err != nil {
			return nil, err
		}
		out[0].InAll += below[0].InAll
		out[0].Needs += below[0].Needs
		out = append(out, below...)
	}
	return out, nil
}

// RootOf is the first run of a run's tree.
func (e *Engine) RootOf(ctx context.Context, id machine.RunID) (machine.RunID, error) {
	row, err := e.store.Run(ctx, string(id))
	if err != nil {
		return "", err
	}
	if row.Root == "" {
		return id, nil
	}
	return machine.RunID(row.Root), nil
}

// bubble adds what waits below a run to its count, within the rows at hand: runs
// below are newer than the run above, so that a list has them before it.
func bubble(lines []RunLine) {
	at := make(map[machine.RunID]int, len(lines))
	own := make([]int, len(lines))
	nested := false
	for i := range lines {
		at[lines[i].ID], own[i] = i, lines[i].Needs
		nested = nested || lines[i].Parent != ""
	}
	if !nested {
		return
	}
	for i := range lines {
		if own[i] == 0 {
			continue
		}
		for up, hops := lines[i].Parent, 0; up != "" && hops < 64; hops++ {
			j, ok := at[up]
			if !ok {
				break
			}
			lines[j].Needs += own[i]
			up = lines[j].Parent
		}
	}
}

// kidsAtRest reports whether no run below moves in this process or another, and
// what those that rest wait for.
func (r *run) kidsAtRest(ctx context.Context) (bool, []machine.Wait) {
	var waits []machine.Wait
	var away []string
	for _, c := range r.state.Children.All() {
		if c.Report != nil {
			continue
		}
		r.e.mu.Lock()
		k := r.e.runs[c.ID]
		r.e.mu.Unlock()
		if k == nil {
			away = append(away, string(c.ID))
			continue
		}
		rest := k.rest.Load()
		if rest != nil && rest.Err != nil && closed(k.done) {
			waits = append(waits, machine.Wait{Kind: "stopped", Ref: string(c.ID), Summary: rest.Err.Error()})
			continue
		}
		if rest == nil || rest.Ended {
			return false, nil // it moves, or its report is on its way
		}
		waits = append(waits, rest.Waits...)
		if rest.Phase == machine.PhasePaused {
			waits = append(waits, machine.Wait{Kind: "paused", Ref: string(c.ID), Summary: "it is paused"})
		}
	}
	if len(away) > 0 {
		leases, err := r.e.store.Leases(ctx, away...)
		if err != nil {
			return false, nil
		}
		for _, l := range leases {
			if l.Live {
				return false, nil
			}
		}
	}
	return true, waits
}
