package ledger

import "fmt"

// check refuses rows that name another run than their part, and fills in what
// they left out.
func (r *Rows) check(run string) error {
	wrong := func(what, id, named string) error {
		return fmt.Errorf("%s %q belongs to run %q", what, id, named)
	}
	if r.Run != nil && r.Run.ID != run {
		return wrong("run row", r.Run.ID, r.Run.ID)
	}
	for i := range r.Effects {
		if e := &r.Effects[i]; e.Run != run {
			return wrong("effect", e.ID, e.Run)
		} else if e.ID == "" || e.Ord <= 0 {
			return fmt.Errorf("effect %q needs an id and a number from 1", e.ID)
		}
	}
	for i := range r.Approvals {
		if a := &r.Approvals[i]; a.Run != run {
			return wrong("approval", a.ID, a.Run)
		}
	}
	for i := range r.Inbox {
		if b := &r.Inbox[i]; b.Run != run {
			return wrong("inbox item", b.ID, b.Run)
		}
	}
	for i := range r.Windows {
		if w := &r.Windows[i]; w.Run != run {
			return wrong("window", fmt.Sprint(w.N), w.Run)
		}
	}
	return nil
}

// Each row is updated if it is there and inserted if not, rather than upserted:
// an update that leaves the indexed columns alone dirties one page, not four.
const (
	runSame = "UPDATE run SET goal = ?, model = ?, repo = ?, turn = ?, spend = ?, at_most = ?, budget = ?, open = ?, waiting = ?, updated = ?, last_operator = ?, note = ?, flags = ? " +
		"WHERE k = ? AND state = ? AND created = ? AND parent = ? AND root = ? RETURNING 1"
	runMoved = "UPDATE run SET goal = ?, model = ?, repo = ?, turn = ?, spend = ?, at_most = ?, budget = ?, open = ?, waiting = ?, updated = ?, last_operator = ?, note = ?, flags = ?, " +
		"state = ?, created = ?, parent = ?, root = ? WHERE k = ? RETURNING 1"
	runNew = "INSERT INTO run(goal, model, repo, turn, spend, at_most, budget, open, waiting, updated, last_operator, note, flags, state, created, parent, root, k, id) " +
		"VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
	effectSame = "UPDATE effect SET turn = ?, tool = ?, class = ?, state = ?, forced = ?, attempts = ?, digest = ?, summary = ?, updated = ? WHERE id = ? AND run = ? AND ord = ? RETURNING 1"
	effectNew  = "INSERT INTO effect(turn, tool, class, state, forced, attempts, digest, summary, updated, id, run, ord) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
	approvalUp = "INSERT INTO approval(id, run, effect, state, digest, updated) VALUES(?, ?, ?, ?, ?, ?) " +
		"ON CONFLICT(id) DO UPDATE SET effect = excluded.effect, state = excluded.state, digest = excluded.digest, updated = excluded.updated WHERE run = excluded.run"
	inboxUp = "INSERT INTO inbox(id, run, kind, ref, summary, rank, since, latent) VALUES(?, ?, ?, ?, ?, ?, ?, ?) " +
		"ON CONFLICT(id) DO UPDATE SET kind = excluded.kind, ref = excluded.ref, summary = excluded.summary, rank = excluded.rank, since = excluded.since, latent = excluded.latent WHERE run = excluded.run"
	inboxGone = "DELETE FROM inbox WHERE id = ? AND run = ?"
	windowUp  = "INSERT INTO context(run, n, opened, turns, tokens) VALUES(?, ?, ?, ?, ?) " +
		"ON CONFLICT(run, n) DO UPDATE SET opened = excluded.opened, turns = excluded.turns, tokens = excluded.tokens"
)

// putRows writes the projections of the run with key k.
func (w *writer) putRows(k int64, r *Rows) error {
	if r.Run != nil {
		if err := w.putRun(k, r.Run); err != nil {
			return err
		}
	}
	for i := range r.Effects {
		if err := w.putEffect(k, &r.Effects[i]); err != nil {
			return err
		}
	}
	for i := range r.Approvals {
		a := &r.Approvals[i]
		n, err := w.c.exec(approvalUp, a.ID, k, a.Effect, a.State, a.Digest[:], a.Updated)
		if err == nil && n == 0 {
			err = fmt.Errorf("approval %q belongs to another run", a.ID)
		}
		if err != nil {
			return err
		}
	}
	for _, id := range r.Gone {
		if _, err := w.c.exec(inboxGone, id, k); err != nil {
			return err
		}
	}
	for i := range r.Inbox {
		b := &r.Inbox[i]
		n, err := w.c.exec(inboxUp, b.ID, k, b.Kind, b.Ref, b.Summary, b.Rank, b.Since, b.Latent)
		if err == nil && n == 0 {
			err = fmt.Errorf("inbox item %q belongs to another run", b.ID)
		}
		if err != nil {
			return err
		}
	}
	for i := range r.Windows {
		x := &r.Windows[i]
		if _, err := w.c.exec(windowUp, k, x.N, x.Opened, x.Turns, x.Tokens); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) putRun(k int64, r *RunRow) error {
	args := make([]any, 0, 19)
	args = append(args, r.Goal, r.Model, r.Repo, r.Turn, r.SpendMicroUSD, r.AtMostMicroUSD, r.BudgetMicroUSD, r.Open, r.Waiting, r.Updated, r.LastOperator, r.Note, r.Flags)
	done, err := w.c.touch(runSame, append(args, k, r.State, r.Created, r.Parent, r.Root)...)
	if err != nil || done {
		return err
	}
	done, err = w.c.touch(runMoved, append(args, r.State, r.Created, r.Parent, r.Root, k)...)
	if err != nil || done {
		return err
	}
	return w.c.put(runNew, append(args, r.State, r.Created, r.Parent, r.Root, k, r.ID)...)
}

func (w *writer) putEffect(k int64, e *EffectRow) error {
	tool, err := w.word(e.Tool)
	if err != nil {
		return err
	}
	class, err := w.word(e.Class)
	if err != nil {
		return err
	}
	state, err := w.word(e.State)
	if err != nil {
		return err
	}
	forced := 0
	if e.Forced {
		forced = 1
	}
	args := []any{e.Turn, tool, class, state, forced, e.Attempts, e.Digest[:], e.Summary, e.Updated, e.ID, k, e.Ord}
	done, err := w.c.touch(effectSame, args...)
	if err != nil || done {
		return err
	}
	return w.c.put(effectNew, args...)
}
