package ledger

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
)

func copyEvents(es []Event) []Event {
	out := slices.Clone(es)
	for i := range out {
		out[i].Payload = bytes.Clone(out[i].Payload)
	}
	return out
}

// between returns the events of es numbered above after, at most limit of them.
func between(es []Event, after, limit int64) []Event {
	n := int64(len(es))
	after = min(max(0, after), n)
	return copyEvents(es[after:min(n, after+limit)])
}

func (t *memTables) eventsOf(run string) []Event {
	if c := t.chains[run]; c != nil {
		return c.events
	}
	return nil
}

// Events is Store's.
func (h *MemHandle) Events(ctx context.Context, run string, after int64, limit int) ([]Event, error) {
	t, err := h.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer h.m.mu.Unlock()
	return between(t.eventsOf(run), after, int64(clampLimit(limit))), nil
}

// EventsSince is Store's.
func (h *MemHandle) EventsSince(ctx context.Context, seq int64, limit int) ([]Event, error) {
	t, err := h.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer h.m.mu.Unlock()
	return between(t.log, seq, int64(clampLimit(limit))), nil
}

// EventsPage is Store's.
func (h *MemHandle) EventsPage(ctx context.Context, run string, p Page) ([]Event, error) {
	t, err := h.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer h.m.mu.Unlock()
	es := t.eventsOf(run)
	limit := int64(pageLimit(p))
	if !p.Back {
		return between(es, p.After, limit), nil
	}
	before := p.After
	if before <= 0 || before > int64(len(es)) {
		before = int64(len(es)) + 1
	}
	after := max(0, before-1-limit)
	return between(es, after, before-1-after), nil
}

// Tail is Store's.
func (h *MemHandle) Tail(ctx context.Context, run string) (int64, error) {
	t, err := h.lock(ctx)
	if err != nil {
		return 0, err
	}
	defer h.m.mu.Unlock()
	return int64(len(t.eventsOf(run))), nil
}

// Head is Store's.
func (h *MemHandle) Head(ctx context.Context) (Head, error) {
	t, err := h.lock(ctx)
	if err != nil {
		return Head{}, err
	}
	defer h.m.mu.Unlock()
	if n := len(t.log); n > 0 {
		return Head{Seq: int64(n), Hash: t.log[n-1].Hash}, nil
	}
	return Head{}, nil
}

func memByID[T any](h *MemHandle, ctx context.Context, what, id string, m func(*memTables) map[string]T) (T, error) {
	var none T
	t, err := h.lock(ctx)
	if err != nil {
		return none, err
	}
	defer h.m.mu.Unlock()
	if r, ok := m(t)[id]; ok {
		return r, nil
	}
	return none, &NotFoundError{What: what, ID: id}
}

func memList[T any](h *MemHandle, ctx context.Context, m func(*memTables) map[string]T, keep func(*T) bool, order func(a, b T) int) ([]T, error) {
	t, err := h.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer h.m.mu.Unlock()
	var out []T
	for r := range maps.Values(m(t)) {
		if keep(&r) {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, order)
	return out, nil
}

func runsOf(t *memTables) map[string]RunRow           { return t.runs }
func effectsOf(t *memTables) map[string]EffectRow     { return t.effects }
func approvalsOf(t *memTables) map[string]ApprovalRow { return t.approvals }
func inboxOf(t *memTables) map[string]InboxRow        { return t.inbox }

// Run is Store's.
func (h *MemHandle) Run(ctx context.Context, id string) (RunRow, error) {
	return memByID(h, ctx, "run", id, runsOf)
}

func newestFirst(a, b RunRow) int {
	return cmp.Or(cmp.Compare(b.Created, a.Created), cmp.Compare(b.ID, a.ID))
}

// Runs is Store's.
func (h *MemHandle) Runs(ctx context.Context, f RunFilter) ([]RunRow, error) {
	var before RunRow
	if f.Before != "" {
		var err error
		if before, err = h.Run(ctx, f.Before); err != nil {
			return nil, err
		}
	}
	search := strings.ToLower(f.Search)
	out, err := memList(h, ctx, runsOf, func(r *RunRow) bool {
		return (len(f.States) == 0 || slices.Contains(f.States, r.State)) &&
			(f.Parent == nil || *f.Parent == r.Parent) &&
			(f.Before == "" || newestFirst(*r, before) > 0) &&
			(search == "" || strings.Contains(strings.ToLower(r.Goal), search) || strings.Contains(strings.ToLower(r.ID), search))
	}, newestFirst)
	limit := f.Limit
	if limit <= 0 {
		limit = 100
	}
	return out[:min(len(out), limit)], err
}

// CountRuns is Store's.
func (h *MemHandle) CountRuns(ctx context.Context) (map[string]int64, error) {
	t, err := h.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer h.m.mu.Unlock()
	out := map[string]int64{}
	for _, r := range t.runs {
		out[r.State]++
	}
	return out, nil
}

// Effects is Store's.
func (h *MemHandle) Effects(ctx context.Context, run string, p Page) ([]EffectRow, error) {
	out, err := memList(h, ctx, effectsOf, func(e *EffectRow) bool {
		return e.Run == run && (p.Back && (p.After <= 0 || e.Ord < p.After) || !p.Back && e.Ord > p.After)
	}, func(a, b EffectRow) int { return cmp.Compare(a.Ord, b.Ord) })
	limit := min(len(out), pageLimit(p))
	if p.Back {
		return out[len(out)-limit:], err
	}
	return out[:limit], err
}

// Effect is Store's.
func (h *MemHandle) Effect(ctx context.Context, id string) (EffectRow, error) {
	return memByID(h, ctx, "effect", id, effectsOf)
}

// Approvals is Store's.
func (h *MemHandle) Approvals(ctx context.Context, run string) ([]ApprovalRow, error) {
	return memList(h, ctx, approvalsOf, func(a *ApprovalRow) bool { return a.Run == run },
		func(a, b ApprovalRow) int { return cmp.Or(cmp.Compare(a.Updated, b.Updated), cmp.Compare(a.ID, b.ID)) })
}

// Approval is Store's.
func (h *MemHandle) Approval(ctx context.Context, id string) (ApprovalRow, error) {
	return memByID(h, ctx, "approval", id, approvalsOf)
}

// Inbox is Store's.
func (h *MemHandle) Inbox(ctx context.Context, run string) ([]InboxRow, error) {
	return memList(h, ctx, inboxOf, func(b *InboxRow) bool { return run == "" || b.Run == run },
		func(a, b InboxRow) int {
			return cmp.Or(cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Since, b.Since), cmp.Compare(a.ID, b.ID))
		})
}

// InboxItem is Store's.
func (h *MemHandle) InboxItem(ctx context.Context, id string) (InboxRow, error) {
	return memByID(h, ctx, "inbox item", id, inboxOf)
}

// Windows is Store's.
func (h *MemHandle) Windows(ctx context.Context, run string) ([]WindowRow, error) {
	t, err := h.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer h.m.mu.Unlock()
	return slices.SortedFunc(maps.Values(t.windows[run]), func(a, b WindowRow) int { return cmp.Compare(a.N, b.N) }), nil
}
