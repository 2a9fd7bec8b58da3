package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"pawl/engine/machine"
	"pawl/engine/workspace"
	"pawl/ledger"
)

// Clash is a conflict that is to come if a sibling's work is taken over first.
type Clash struct {
	With  machine.RunID `json:"with"`
	Goal  string        `json:"goal"`
	Files []string      `json:"files"`
}

// ReviewCard is a delegated run's claim, what is on record, and what taking its
// work over would do.
type ReviewCard struct {
	Child     machine.RunID         `json:"child"`
	Parent    machine.RunID         `json:"parent"`
	Goal      string                `json:"goal"`
	Check     string                `json:"check,omitempty"`
	Standing  machine.ChildStanding `json:"standing"`
	Claim     string                `json:"claim"`
	Report    *machine.Report       `json:"report,omitempty"` // nil while it is at work
	Flags     []string              `json:"flags,omitempty"`  // claims without a receipt
	Receipts  string                `json:"receipts"`         // the record, one thing a line
	Diff      string                `json:"diff"`             // against where it started
	Files     []string              `json:"files,omitempty"`  // that would change in the parent's work tree
	Conflicts []string              `json:"conflicts,omitempty"`
	Forecast  []Clash               `json:"forecast,omitempty"`
	Blocked   string                `json:"blocked,omitempty"` // why it cannot be taken over now
	Trouble   string                `json:"trouble,omitempty"` // what became of the last try
	Path      string                `json:"path,omitempty"`    // of its work tree: to look for oneself
	Branch    string                `json:"branch,omitempty"`
	Spent     float64               `json:"spend_usd"`
	AtMost    float64               `json:"at_most_usd,omitempty"`
	Since     int64                 `json:"since"` // Unix µs
	Tail      int64                 `json:"tail"`  // of the parent when the card was made
}

// pair is a delegated run and the run above it.
type pair struct {
	child, parent machine.State
	entry         *machine.Child
}

func (e *Engine) pair(ctx context.Context, id machine.RunID) (pair, error) {
	var p pair
	var err error
	if p.child, err = e.state(ctx, id); err != nil {
		return p, err
	}
	if p.child.Charter.Parent == "" {
		return p, fmt.Errorf("run %s was not delegated by another run, so there is nothing to review: `pawl land %s` brings its work onto your branch", id, id)
	}
	if p.parent, err = e.state(ctx, p.child.Charter.Parent); err != nil {
		return p, err
	}
	if p.entry = p.parent.Child(id); p.entry == nil {
		return p, fmt.Errorf("run %s does not know run %s, which names it as its parent: `pawl verify` tells more", p.parent.Charter.ID, id)
	}
	return p, nil
}

// ReviewCard gathers what a review needs. It changes nothing.
func (e *Engine) ReviewCard(ctx context.Context, id machine.RunID) (ReviewCard, error) {
	p, err := e.pair(ctx, id)
	if err != nil {
		return ReviewCard{}, err
	}
	c := ReviewCard{
		Child: id, Parent: p.parent.Charter.ID, Goal: p.child.Charter.Goal, Check: p.child.Charter.Check, Standing: p.entry.Standing(),
		Report: p.entry.Report, Trouble: p.entry.Trouble, Path: p.child.Space.Path, Branch: p.child.Space.Branch, Since: p.entry.Since, Tail: p.parent.Tail,
	}
	spent, atMost := p.child.SpentInAll()
	c.Spent, c.AtMost = float64(spent)/1e6, float64(atMost)/1e6
	if r := p.entry.Report; r != nil {
		claim, err := e.bytes(ctx, r.Claim)
		if err != nil {
			return c, err
		}
		c.Claim, c.Flags, c.Receipts = string(claim), r.Flags, receiptText(r, "")
	}
	if !p.child.Space.Ready {
		c.Blocked = "it has no work tree yet"
		return c, nil
	}
	if c.Diff, err = e.Diff(ctx, id); err != nil {
		c.Blocked = err.Error()
		return c, nil
	}
	if p.entry.Adopted {
		return c, nil
	}
	plan, err := e.previewAdopt(ctx, &p, nil)
	if err != nil {
		c.Blocked = err.Error()
		return c, nil
	}
	c.Files, c.Conflicts, c.Blocked = plan.Files, plan.Conflicts, plan.Blocked
	c.Forecast, err = e.forecast(ctx, &p)
	if err != nil {
		c.Blocked = err.Error()
	}
	return c, nil
}

func (e *Engine) previewAdopt(ctx context.Context, p *pair, only []string) (workspace.AdoptPlan, error) {
	fk, ok := e.space.(forks)
	if !ok {
		return workspace.AdoptPlan{}, errors.New("this process cannot read work trees: it was opened without a state directory")
	}
	parent, err := spaceOf(&p.parent)
	if err != nil {
		return workspace.AdoptPlan{}, err
	}
	child, err := spaceOf(&p.child)
	if err != nil {
		return workspace.AdoptPlan{}, err
	}
	return fk.PreviewAdopt(ctx, parent, child, only)
}

// forecast tells which siblings' work, if taken over first, would conflict with
// that of a child.
func (e *Engine) forecast(ctx context.Context, p *pair) ([]Clash, error) {
	fk, ok := e.space.(forks)
	if !ok {
		return nil, nil
	}
	parent, err := spaceOf(&p.parent)
	if err != nil {
		return nil, err
	}
	mine, err := spaceOf(&p.child)
	if err != nil {
		return nil, err
	}
	var out []Clash
	for _, c := range p.parent.Children.All() {
		if c.ID == p.entry.ID || c.Standing() != machine.ChildReview && c.Standing() != machine.ChildAdopting {
			continue
		}
		if p.entry.Report != nil && !overlap(c.Report, p.entry.Report) {
			continue // they touch no common file
		}
		s, err := e.state(ctx, c.ID)
		if err != nil {
			return nil, err
		}
		theirs, err := spaceOf(&s)
		if err != nil {
			continue
		}
		files, err := fk.Clash(ctx, parent, theirs, mine)
		if err != nil {
			return nil, err
		}
		if len(files) > 0 {
			out = append(out, Clash{With: c.ID, Goal: c.Goal, Files: files})
		}
	}
	return out, nil
}

func overlap(a, b *machine.Report) bool {
	if a.More > 0 || b.More > 0 {
		return true
	}
	for _, f := range a.Files {
		for _, g := range b.Files {
			if f == g || strings.HasPrefix(f, g+"/") || strings.HasPrefix(g, f+"/") {
				return true
			}
		}
	}
	return false
}

// Review is the operator's judgement on a delegated run's work.
type Review struct {
	Verdict  machine.Verdiction
	Feedback string   // of a rejection: it goes on with that; else a remark
	Files    []string // of an acceptance: only these; none: all
	Tail     int64    // of the parent when it was looked at; 0: whatever it is now
}

// Review records a judgement. An accepted work is taken over by whoever drives
// the run above, once; if that run has ended or is paused and nobody drives it,
// it is taken over here.
func (e *Engine) Review(ctx context.Context, id machine.RunID, v Review) error {
	switch v.Verdict {
	case machine.ReviewAccept:
	case machine.ReviewReject:
		if strings.TrimSpace(v.Feedback) == "" {
			return errors.New("say what is to be done with --feedback: the run goes on with that; to end it for good, discard it")
		}
		return e.sendBack(ctx, id, v)
	case machine.ReviewDiscard:
	default:
		return fmt.Errorf("%q is no verdict: accept, reject, discard", v.Verdict)
	}
	p, err := e.pair(ctx, id)
	if err != nil {
		return err
	}
	if err := reviewable(&p); err != nil {
		return err
	}
	if v.Verdict == machine.ReviewDiscard {
		fk, ok := e.space.(forks)
		ws, werr := spaceOf(&p.child)
		if ok && werr == nil {
			ref, err := fk.Keep(ctx, ws)
			if err != nil {
				return fmt.Errorf("its work is not discarded before it is kept under a ref: %w", err)
			}
			v.Feedback = strings.TrimSpace(v.Feedback + " (kept as " + ref + ")")
		}
	} else {
		plan, err := e.previewAdopt(ctx, &p, v.Files)
		switch {
		case err != nil:
			return err
		case plan.Blocked != "":
			return errors.New(plan.Blocked)
		case len(plan.Conflicts) > 0:
			return fmt.Errorf("the work of %s does not merge into %s by itself: it conflicts in %s; send it back with `pawl review %s reject --feedback TEXT`, take a part of it with --files, or merge by hand in %s",
				id, p.parent.Charter.ID, few(plan.Conflicts, 10), id, p.parent.Space.Path)
		}
	}
	err = e.act(ctx, p.parent.Charter.ID, func(s *machine.State) ([]machine.Body, error) {
		q := pair{child: p.child, parent: *s, entry: s.Child(id)}
		if err := reviewable(&q); err != nil {
			return nil, err
		}
		if v.Tail > 0 && q.entry.Since != p.entry.Since {
			return nil, &NotPendingError{ID: string(id), Why: "it has changed since you looked at it", Next: "look again with `pawl review " + string(id) + "`"}
		}
		return []machine.Body{machine.ChildReviewed{Child: id, Verdict: v.Verdict, Feedback: v.Feedback, Files: v.Files}}, nil
	})
	if err != nil || v.Verdict != machine.ReviewAccept {
		return err
	}
	return e.carryOut(ctx, p.parent.Charter.ID, id)
}

// reviewable says why a child's work cannot be judged now.
func reviewable(p *pair) error {
	c := p.entry
	if c.Report == nil {
		return &NotPendingError{ID: string(c.ID), Why: "it is still at work", Next: "`pawl pause " + string(c.ID) + "` holds it, `pawl diff " + string(c.ID) + "` shows what it has so far"}
	}
	switch st := c.Standing(); st {
	case machine.ChildAdopted, machine.ChildAdopting:
		return &NotPendingError{ID: string(c.ID), Why: "its work is accepted, by " + who(c.By), Next: "it is taken over once"}
	case machine.ChildDiscarded:
		return &NotPendingError{ID: string(c.ID), Why: "its work was discarded by " + who(c.By) + c.Feedback}
	case machine.ChildWorking, machine.ChildReview, machine.ChildConflict, machine.ChildNothing, machine.ChildEmpty, machine.ChildFailed, machine.ChildCancelled:
	}
	return nil
}

// sendBack rejects a child's work and lets it go on with the feedback, in one transaction.
func (e *Engine) sendBack(ctx context.Context, id machine.RunID, v Review) error {
	for {
		p, err := e.pair(ctx, id)
		if err != nil {
			return err
		}
		if err := reviewable(&p); err != nil {
			return err
		}
		if p.child.Phase == machine.PhaseCancelled {
			return fmt.Errorf("run %s is cancelled and does not go on: accept what there is, or discard it", id)
		}
		up := batch{actor: e.operator, bodies: []machine.Body{
			machine.ChildReviewed{Child: id, Verdict: machine.ReviewReject, Feedback: v.Feedback},
			machine.ChildResumed{Child: id, Reserve: p.child.Budget},
		}}
		down := batch{actor: e.operator, bodies: []machine.Body{machine.Told{Text: v.Feedback}}}
		states, err := e.commitLegs(ctx, ledger.Full, leg{p.parent, up}, leg{p.child, down})
		var moved *ledger.TailError
		if errors.As(err, &moved) {
			continue
		}
		if err != nil {
			return err
		}
		e.tellKin(states)
		e.broadcast()
		return nil
	}
}

// carryOut takes accepted work over if nobody else will, and says how it went.
func (e *Engine) carryOut(ctx context.Context, parent, child machine.RunID) error {
	s, err := e.state(ctx, parent)
	if err != nil {
		return err
	}
	if s.Phase == machine.PhaseRunning && !e.driving(parent) {
		return nil // whoever resumes the run does it
	}
	if e.o.Holder == "" {
		return nil
	}
	var held *ledger.HeldError
	if err := e.drive(ctx, parent); errors.As(err, &held) {
		return nil // its owner does it
	} else if err != nil {
		return err
	}
	if s.Phase == machine.PhaseRunning {
		return nil // it is at work here and gets to it between two steps
	}
	return e.untilAdopted(ctx, parent, child)
}

// untilAdopted waits for the end of an adoption that this process carries out.
func (e *Engine) untilAdopted(ctx context.Context, parent, child machine.RunID) error {
	changes, drop := e.subscribe()
	defer drop()
	for {
		s, err := e.state(ctx, parent)
		if err != nil {
			return err
		}
		c := s.Child(child)
		switch {
		case c == nil:
			return nil
		case c.Trouble != "":
			return fmt.Errorf("the work of %s was not taken over: %s", child, c.Trouble)
		case c.Standing() != machine.ChildAdopting:
			return nil
		case c.Adopt != "" && s.Effect(c.Adopt) != nil && s.Effect(c.Adopt).State == machine.StateAmbiguous && !e.driving(parent):
			return fmt.Errorf("whether the work of %s was taken over is not known yet: see `pawl show %s`", child, c.Adopt)
		case !e.driving(parent):
			return fmt.Errorf("the work of %s is accepted, and nobody takes it over: `pawl resume %s` does", child, parent)
		}
		select {
		case <-changes:
		case <-e.gone(parent):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// gone is closed once this process drives a run no longer; nil if it never did.
func (e *Engine) gone(id machine.RunID) <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	if r := e.runs[id]; r != nil {
		return r.done
	}
	return nil
}

// driving reports whether this process drives a run now.
func (e *Engine) driving(id machine.RunID) bool {
	e.mu.Lock()
	r := e.runs[id]
	e.mu.Unlock()
	return r != nil && !closed(r.done)
}

// AdoptGreen is the rule under which the engine itself accepts the work of a
// delegated run: its check passed, every claim has its receipt, nothing is
// unknown, and it conflicts neither with the run above nor with a sibling.
const AdoptGreen = "adopt green"

// green accepts, for a run with that rule, what may be accepted without asking.
// It reports whether it has.
func (r *run) green(ctx context.Context) (bool, error) {
	if !slices.Contains(r.state.Charter.Allow, AdoptGreen) {
		return false, nil
	}
	for _, c := range r.state.Children.All() {
		if c.Standing() != machine.ChildReview || !c.Report.Checked || len(c.Report.Flags) > 0 || r.judged[c.ID] == c.Since {
			continue
		}
		if r.judged == nil {
			r.judged = map[machine.RunID]int64{}
		}
		r.judged[c.ID] = c.Since
		p, err := r.e.pair(ctx, c.ID)
		if err != nil {
			return false, err
		}
		plan, err := r.e.previewAdopt(ctx, &p, nil)
		if err != nil || plan.Blocked != "" || len(plan.Conflicts) > 0 {
			continue
		}
		if clash, err := r.e.forecast(ctx, &p); err != nil || len(clash) > 0 {
			continue
		}
		b := machine.ChildReviewed{Child: c.ID, Verdict: machine.ReviewAccept, Rule: AdoptGreen}
		return true, r.decide(ctx, ledger.Full, batch{bodies: []machine.Body{b}})
	}
	return false, nil
}

// Settled reports whether there is nothing left to judge.
func (c *ReviewCard) Settled() bool {
	switch c.Standing {
	case machine.ChildAdopted, machine.ChildAdopting, machine.ChildDiscarded, machine.ChildWorking:
		return true
	case machine.ChildReview, machine.ChildConflict, machine.ChildNothing, machine.ChildEmpty, machine.ChildFailed, machine.ChildCancelled:
	}
	return false
}
