package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"pawl/engine/machine"
	"pawl/engine/model"
	"pawl/engine/window"
	"pawl/ledger"
)

// requestBudget is how many tokens a request of a run may take, so that its
// answer fits beside it: the least of what the operator allowed, what the model
// takes and what a refusal taught. 0: nothing is known.
func requestBudget(s *machine.State, l model.Limits) int {
	b := 0
	lower := func(n int) {
		if n > 0 && (b == 0 || n < b) {
			b = n
		}
	}
	if l.Context > 0 {
		answer := l.Context / 4
		if out := maxOutput(l); out > 0 {
			answer = min(answer, out)
		}
		lower(l.Context - answer - l.Context/20)
	}
	lower(s.Charter.Context)
	lower(s.Limit)
	return b
}

// page opens a new window if the next request would not fit. It reports
// whether something was committed, so that Next must be asked again.
func (r *run) page(ctx context.Context, a machine.Action, p *bound) (bool, error) {
	s := r.state
	o := r.e.windowOptions(requestBudget(&s, p.limits))
	pack, err := r.packs.Build(&s, source{ctx, r.e.store}, o)
	if err != nil {
		return false, fmt.Errorf("build the context of turn %d: %w", a.Turn, err)
	}
	why, learned := fmt.Sprintf("the next request would take about %d tokens, and %d are to be had", pack.Tokens, o.Budget), false
	switch {
	case pack.Over:
	case a.Kind == machine.ActPage:
		o.Budget, learned = pack.Tokens/2, true
		why = "the provider found the request too long: " + preview(a.Why, 200)
	default:
		return false, nil
	}
	next, err := window.Turn(&s, source{ctx, r.e.store}, o)
	if err != nil {
		return false, fmt.Errorf("turn the page before turn %d: %w", a.Turn, err)
	}
	if next.Overflow && learned && next.Binding*4/3 < pack.Tokens {
		// Half is less than what binds takes: as little as will do, then.
		o.Budget = next.Binding*4/3 + 4
		if next, err = window.Turn(&s, source{ctx, r.e.store}, o); err != nil {
			return false, fmt.Errorf("turn the page before turn %d: %w", a.Turn, err)
		}
	}
	if next.Overflow {
		q := overflowQuestion(&s, next, o.Budget)
		return true, r.decide(ctx, ledger.Lazy, batch{bodies: []machine.Body{q}})
	}
	body := machine.WindowOpened{
		Window: s.Window + 1, Turn: a.Turn, Keep: next.Keep, Output: next.Output, Budget: o.Budget,
		Before: next.Before, After: next.After, Why: why, Learned: learned,
	}
	if err := r.decide(ctx, ledger.Full, batch{bodies: []machine.Body{body}}); err != nil {
		return false, err
	}
	r.e.o.Crash.Pass(PointPageTurn, fmt.Sprintf("window %d", body.Window))
	return true, nil
}

// overflowQuestion asks which of what binds the run may be retired: nothing of
// it is ever dropped without a word of the operator.
func overflowQuestion(s *machine.State, p window.Page, budget int) machine.QuestionAsked {
	entries := s.Entries()
	slices.SortStableFunc(entries, func(x, y machine.Entry) int { return len(y.Text) - len(x.Text) })
	q := machine.QuestionAsked{Question: s.NextQuestion(), Sort: machine.SortOverflow, Data: []byte("window")}
	var b strings.Builder
	fmt.Fprintf(&b, "What binds this run takes about %d tokens; a request may take %d, and %d must be left to work in. Nothing of it is dropped without your word.", p.Binding, budget, p.Minimum)
	if len(entries) == 0 {
		b.WriteString(" There is no decision or instruction that could be retired: stop it, and start a run with a shorter goal or a model that takes more.")
		q.Text, q.Choices = b.String(), []string{machine.AnswerStop}
		return q
	}
	const listed = 12
	b.WriteString(" Retire what no longer binds, the longest first:")
	for i, e := range entries {
		if i == listed {
			fmt.Fprintf(&b, " and %d more;", len(entries)-listed)
			break
		}
		fmt.Fprintf(&b, " %s “%s” (%d bytes);", e.ID, preview(strings.Join(strings.Fields(e.Text), " "), 80), len(e.Text))
	}
	q.Text, q.Choices = strings.TrimSuffix(b.String(), ";")+".", []string{machine.AnswerRetire + " ENTRY…", machine.AnswerStop}
	return q
}

// readRetire checks the entries of an answer "retire d3 i2".
func readRetire(s *machine.State, text string) (string, error) {
	words := strings.Fields(text)[1:]
	known := s.Entries()
	names := make([]string, len(known))
	for i := range known {
		names[i] = known[i].ID
	}
	if len(words) == 0 {
		return "", fmt.Errorf("say what to retire, as in `retire %s`: there are %s", names[0], strings.Join(names, ", "))
	}
	for _, w := range words {
		if !slices.Contains(names, w) {
			return "", fmt.Errorf("nothing called %q can be retired: name one or more of %s", w, strings.Join(names, ", "))
		}
	}
	return machine.AnswerRetire + " " + strings.Join(words, " "), nil
}

// likelyFits reports whether the next request surely fits, judged by sizes
// alone: the last pack, and what was said and done since.
func (r *run) likelyFits(next *machine.State) bool {
	budget := requestBudget(next, r.model.limits)
	t := next.LastTurn()
	if budget == 0 || t == nil {
		return true
	}
	size := func(x machine.Text) int { return max(len(x.Inline), int(x.Size)) }
	more := size(t.Text)
	for i := range t.Calls {
		more += size(t.Calls[i].Args) + 512
		if e := next.Resolve(t.Calls[i].Effect); e != nil {
			more += min(size(e.Result.Output), window.OutputLimit) + len(e.Result.Note) + len(e.Reason)
		}
	}
	guess := t.Guess + more/3 + 1024
	return guess*window.Scale(next)/1000 < budget*9/10
}
