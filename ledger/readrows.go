package ledger

import (
	"context"
	"database/sql/driver"
	"slices"
	"strings"
)

const (
	runCols = "SELECT r.id, r.parent, r.root, r.goal, r.state, r.model, r.repo, r.turn, r.spend, r.at_most, r.budget, r.open, r.waiting, r.created, r.updated, r.last_operator, r.note, r.flags FROM run r "

	effectCols = "SELECT e.id, c.id, e.ord, e.turn, t.text, l.text, s.text, e.forced, e.attempts, e.digest, e.summary, e.updated FROM effect e " +
		"JOIN chain c ON c.k = e.run JOIN word t ON t.id = e.tool JOIN word l ON l.id = e.class JOIN word s ON s.id = e.state "
	effectsAfter  = effectCols + "WHERE e.run = (SELECT k FROM chain WHERE id = ?) AND e.ord > ? ORDER BY e.ord LIMIT ?"
	effectsBefore = effectCols + "WHERE e.run = (SELECT k FROM chain WHERE id = ?) AND e.ord < ? ORDER BY e.ord DESC LIMIT ?"
	effectByID    = effectCols + "WHERE e.id = ?"

	approvalCols   = "SELECT a.id, c.id, a.effect, a.state, a.digest, a.updated FROM approval a JOIN chain c ON c.k = a.run "
	approvalsOfRun = approvalCols + "WHERE a.run = (SELECT k FROM chain WHERE id = ?) ORDER BY a.updated, a.id"
	approvalByID   = approvalCols + "WHERE a.id = ?"

	inboxCols  = "SELECT b.id, c.id, b.kind, b.ref, b.summary, b.rank, b.since, b.latent FROM inbox b JOIN chain c ON c.k = b.run "
	inboxAll   = inboxCols + "WHERE b.rank >= ? ORDER BY b.rank, b.since, b.id"
	inboxOfRun = inboxCols + "WHERE b.run = (SELECT k FROM chain WHERE id = ?) ORDER BY b.rank, b.since, b.id"
	inboxByID  = inboxCols + "WHERE b.id = ?"

	windowsOfRun = "SELECT n, opened, turns, tokens FROM context WHERE run = (SELECT k FROM chain WHERE id = ?) ORDER BY n"
	countRuns    = "SELECT state, count(*) FROM run GROUP BY state"
)

const (
	minInt = -1 << 63
	maxInt = 1<<63 - 1
)

func readRun(v []driver.Value) RunRow {
	return RunRow{
		ID: text(v[0]), Parent: text(v[1]), Root: text(v[2]), Goal: text(v[3]), State: text(v[4]), Model: text(v[5]), Repo: text(v[6]),
		Turn: num(v[7]), SpendMicroUSD: num(v[8]), AtMostMicroUSD: num(v[9]), BudgetMicroUSD: num(v[10]), Open: num(v[11]), Waiting: num(v[12]),
		Created: num(v[13]), Updated: num(v[14]), LastOperator: num(v[15]), Note: text(v[16]), Flags: num(v[17]),
	}
}

func readEffect(v []driver.Value) EffectRow {
	return EffectRow{
		ID: text(v[0]), Run: text(v[1]), Ord: num(v[2]), Turn: num(v[3]), Tool: text(v[4]), Class: text(v[5]), State: text(v[6]),
		Forced: num(v[7]) != 0, Attempts: num(v[8]), Digest: hashOf(v[9]), Summary: text(v[10]), Updated: num(v[11]),
	}
}

func readApproval(v []driver.Value) ApprovalRow {
	return ApprovalRow{ID: text(v[0]), Run: text(v[1]), Effect: text(v[2]), State: text(v[3]), Digest: hashOf(v[4]), Updated: num(v[5])}
}

func readInbox(v []driver.Value) InboxRow {
	return InboxRow{ID: text(v[0]), Run: text(v[1]), Kind: text(v[2]), Ref: text(v[3]), Summary: text(v[4]), Rank: num(v[5]), Since: num(v[6]), Latent: num(v[7]) != 0}
}

// list reads all rows of q.
func list[T any](ctx context.Context, d *DB, op, q string, args []any, read func(v []driver.Value) T) ([]T, error) {
	var out []T
	err := d.readWith(ctx, op, func(c *conn) error {
		return c.query(ctx, q, args, func(v []driver.Value) error {
			out = append(out, read(v))
			return nil
		})
	})
	return out, err
}

// byID reads the one row of q, or returns *NotFoundError.
func byID[T any](ctx context.Context, d *DB, what, q, id string, read func(v []driver.Value) T) (T, error) {
	all, err := list(ctx, d, "read "+what, q, []any{id}, read)
	if err != nil || len(all) == 0 {
		var none T
		if err == nil {
			err = &NotFoundError{What: what, ID: id}
		}
		return none, err
	}
	return all[0], nil
}

// Run returns the row of one run.
func (d *DB) Run(ctx context.Context, id string) (RunRow, error) {
	return byID(ctx, d, "run", runCols+"WHERE r.id = ?", id, readRun)
}

// Runs returns the runs that f selects, newest first.
func (d *DB) Runs(ctx context.Context, f RunFilter) ([]RunRow, error) {
	created := int64(maxInt)
	if f.Before != "" {
		b, err := d.Run(ctx, f.Before)
		if err != nil {
			return nil, err
		}
		created = b.Created
	}
	q, args := runsQuery(f, created)
	return list(ctx, d, "list runs", q, args, readRun)
}

// runsQuery builds the query for f; created is that of the run f.Before names.
func runsQuery(f RunFilter, created int64) (string, []any) {
	var where []string
	var args []any
	and := func(s string, a ...any) { where, args = append(where, s), append(args, a...) }
	if f.Parent != nil {
		and("r.parent = ?", *f.Parent)
	}
	if n := len(f.States); n > 0 {
		and("r.state IN (?" + strings.Repeat(", ?", n-1) + ")")
		for _, s := range f.States {
			args = append(args, s)
		}
	}
	if f.Before != "" {
		and("(r.created, r.id) < (?, ?)", created, f.Before)
	} else {
		and("r.created <= ?", created)
	}
	if f.Search != "" {
		and("(instr(lower(r.goal), lower(?)) OR instr(lower(r.id), lower(?)))", f.Search, f.Search)
	}
	limit := f.Limit
	if limit <= 0 {
		limit = 100
	}
	return runCols + "WHERE " + strings.Join(where, " AND ") + " ORDER BY r.created DESC, r.id DESC LIMIT ?", append(args, limit)
}

// CountRuns counts the runs by state.
func (d *DB) CountRuns(ctx context.Context) (map[string]int64, error) {
	out := map[string]int64{}
	_, err := list(ctx, d, "count runs", countRuns, nil, func(v []driver.Value) struct{} {
		out[text(v[0])] = num(v[1])
		return struct{}{}
	})
	return out, err
}

// Effects returns a page of run's effects by Ord, ascending.
func (d *DB) Effects(ctx context.Context, run string, p Page) ([]EffectRow, error) {
	limit := pageLimit(p)
	if !p.Back {
		return list(ctx, d, "list effects", effectsAfter, []any{run, p.After, limit}, readEffect)
	}
	before := p.After
	if before <= 0 {
		before = maxInt
	}
	out, err := list(ctx, d, "list effects", effectsBefore, []any{run, before, limit}, readEffect)
	slices.Reverse(out)
	return out, err
}

// Effect returns the row of one effect.
func (d *DB) Effect(ctx context.Context, id string) (EffectRow, error) {
	return byID(ctx, d, "effect", effectByID, id, readEffect)
}

// Approvals returns run's approvals, the one changed longest ago first.
func (d *DB) Approvals(ctx context.Context, run string) ([]ApprovalRow, error) {
	return list(ctx, d, "list approvals", approvalsOfRun, []any{run}, readApproval)
}

// Approval returns one approval.
func (d *DB) Approval(ctx context.Context, id string) (ApprovalRow, error) {
	return byID(ctx, d, "approval", approvalByID, id, readApproval)
}

// Inbox returns what waits for the operator, of one run or ("") of all.
func (d *DB) Inbox(ctx context.Context, run string) ([]InboxRow, error) {
	if run == "" {
		return list(ctx, d, "read inbox", inboxAll, []any{int64(minInt)}, readInbox)
	}
	return list(ctx, d, "read inbox", inboxOfRun, []any{run}, readInbox)
}

// InboxItem returns one inbox item.
func (d *DB) InboxItem(ctx context.Context, id string) (InboxRow, error) {
	return byID(ctx, d, "inbox item", inboxByID, id, readInbox)
}

// Windows returns the context windows of run in order.
func (d *DB) Windows(ctx context.Context, run string) ([]WindowRow, error) {
	return list(ctx, d, "list windows", windowsOfRun, []any{run}, func(v []driver.Value) WindowRow {
		return WindowRow{Run: run, N: num(v[0]), Opened: num(v[1]), Turns: num(v[2]), Tokens: num(v[3])}
	})
}
