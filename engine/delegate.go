package engine

import (
	"cmp"
	"context"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"

	"pawl/engine/machine"
	"pawl/engine/tool"
	"pawl/ledger"
)

// TreeLimits bound what may come of one run by delegation.
type TreeLimits struct {
	Depth    int // levels below the first run
	Children int // of one run, ended ones included
	Tree     int // runs of one tree, ended ones included
	Working  int // model calls and commands of one tree at the same time
}

// defaultTree is what holds if nothing else is set.
var defaultTree = TreeLimits{Depth: 3, Children: 16, Tree: 64, Working: 8}

func (l TreeLimits) orDefault() TreeLimits {
	return TreeLimits{
		Depth: cmp.Or(l.Depth, defaultTree.Depth), Children: cmp.Or(l.Children, defaultTree.Children),
		Tree: cmp.Or(l.Tree, defaultTree.Tree), Working: cmp.Or(l.Working, defaultTree.Working),
	}
}

// childID derives a delegated run's id from what makes it: the same delegation
// makes the same run, however often it is tried.
func childID(effect machine.EffectID, salt int) machine.RunID {
	const alphabet = "0123456789abcdefghjkmnpqrstvwxyz"
	d := machine.DigestOf([]byte(fmt.Sprintf("child\x00%s\x00%d", effect, salt)))
	return machine.RunID("r" + base32.NewEncoding(alphabet).WithPadding(base32.NoPadding).EncodeToString(d[:5])[:6])
}

// family carries out the tools that act on other runs of the tree. It reports
// whether the effect was one of them.
func (r *run) family(ctx context.Context, f *machine.Effect, args json.RawMessage) (bool, error) {
	switch f.Tool {
	case machine.ToolDelegate:
		return true, r.spawn(ctx, f, args)
	case machine.ToolCollect:
		return true, r.collect(ctx, f)
	case "tell_child", "tell_parent":
		return true, r.tell(ctx, f, args)
	}
	return false, nil
}

// answer ends an effect that touched the ledger alone.
func (r *run) answer(ctx context.Context, f *machine.Effect, ok bool, code, text string) error {
	out, blobs := r.e.text([]byte(text))
	n := len(f.Attempts) + 1
	return r.decide(ctx, ledger.Full, batch{blobs: blobs, bodies: []machine.Body{
		machine.EffectDispatched{Effect: f.ID, Attempt: n},
		machine.EffectCompleted{Effect: f.ID, Attempt: n, Result: machine.Result{OK: ok, Code: code, Output: out}},
	}})
}

// spawn creates the delegated run in the commit that dispatches the delegation.
func (r *run) spawn(ctx context.Context, f *machine.Effect, args json.RawMessage) error {
	d, err := tool.ParseDelegate(args)
	if err != nil {
		return r.answer(ctx, f, false, "refused", refusal(err))
	}
	r.e.spawning.Lock() // the size of the tree is counted and changed in one go
	defer r.e.spawning.Unlock()
	if why, err := r.maySpawn(ctx); err != nil {
		return err
	} else if why != "" {
		return r.answer(ctx, f, false, "refused", why)
	}
	reserve, why := share(&r.state, int64(d.BudgetUSD*1e6))
	if why != "" {
		return r.answer(ctx, f, false, "refused", why)
	}
	fk, ok := r.e.space.(forks)
	if !ok || r.space == nil {
		return r.answer(ctx, f, false, "refused", "There is no work tree to delegate from.")
	}
	for salt := 0; ; salt++ {
		id := childID(f.ID, salt)
		base, err := fk.Fork(ctx, *r.space, string(id))
		if err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return r.answer(ctx, f, false, "refused", "No work tree can be made for it: "+err.Error())
		}
		r.e.o.Crash.Pass(PointBeforeDispatch, line(f))
		err = r.create(ctx, f, r.charterFor(id, f.ID, base, reserve, d))
		var moved *ledger.TailError
		if errors.As(err, &moved) && moved.Run == string(id) && salt < 16 {
			continue // another run bears this id
		}
		if errors.As(err, &moved) {
			return errMoved
		}
		if err != nil {
			return err
		}
		r.e.o.Crash.Pass(PointAfterAck, line(f))
		r.raise(ctx, id)
		return nil
	}
}

// charterFor is what a delegated run is given: nothing that its parent has not.
func (r *run) charterFor(id machine.RunID, by machine.EffectID, base string, reserve int64, d tool.Delegate) machine.Charter {
	p := &r.state.Charter
	c := machine.Charter{
		ID: id, Parent: p.ID, Root: cmp.Or(p.Root, p.ID), Spawn: by, Depth: p.Depth + 1, Goal: d.Goal, Check: d.Check, Repo: p.Repo,
		Model: p.Model, Script: p.Script, Vars: p.Vars, Allow: p.Allow, Budget: reserve, MaxTurns: r.state.MaxTurns, Context: p.Context,
		Prompt: p.Prompt, Policy: p.Policy, Constraint: p.Constraint, Start: base, Paths: d.Paths,
	}
	c.CheckProposed = d.Check != "" && (d.Check != p.Check || p.CheckProposed)
	if len(c.Paths) == 0 {
		c.Paths = p.Paths
	}
	if d.MaxTurns > 0 {
		c.MaxTurns = min(c.MaxTurns, d.MaxTurns)
	}
	if m := r.state.MaxTokens; m > 0 {
		c.MaxTokens = max(1, m-r.state.TokensIn-r.state.TokensOut-r.state.TokensMay)
	}
	if m := r.state.MaxWall; m > 0 {
		c.MaxWall = max(1, m-(r.e.now()-r.state.Created))
	}
	return c
}

// create commits the two ends of a spawn.
func (r *run) create(ctx context.Context, f *machine.Effect, c machine.Charter) error {
	n := len(f.Attempts) + 1
	out, blobs := r.e.text([]byte(fmt.Sprintf("Run %s works on it, in a work tree of its own. collect waits for it.", c.ID)))
	mine := batch{epoch: r.epoch, blobs: blobs, bodies: []machine.Body{
		machine.EffectDispatched{Effect: f.ID, Attempt: n},
		machine.ChildSpawned{Child: c.ID, Effect: f.ID, Goal: c.Goal, Reserve: c.Budget},
		machine.EffectCompleted{Effect: f.ID, Attempt: n, Result: machine.Result{OK: true, Code: "spawned", Output: out}},
	}}
	states, err := r.e.commitLegs(ctx, ledger.Full, leg{r.state, mine}, leg{machine.State{}, batch{actor: machine.ActorEngine, bodies: []machine.Body{machine.RunCreated{Charter: c}}}})
	if err != nil {
		return err
	}
	r.state = states[0]
	r.e.remember(states[0])
	r.e.remember(states[1])
	r.e.broadcast()
	return nil
}

// maySpawn says why this run may not delegate now, "" if it may.
func (r *run) maySpawn(ctx context.Context) (string, error) {
	l := r.e.tree
	s := &r.state
	if s.Charter.Depth >= l.Depth {
		return fmt.Sprintf("This run is itself %d levels below the first one, and %d is the most: do it yourself.", s.Charter.Depth, l.Depth), nil
	}
	if n := s.Children.Len(); n >= l.Children {
		return fmt.Sprintf("This run has delegated %d times, and %d is the most: do the rest yourself.", n, l.Children), nil
	}
	root := *s
	if up := s.Charter.Root; up != "" && up != s.Charter.ID {
		var err error
		if root, err = r.e.state(ctx, up); err != nil {
			return "", err
		}
	}
	n, err := r.e.size(ctx, &root, l.Tree)
	if err != nil {
		return "", err
	}
	if n >= l.Tree {
		return fmt.Sprintf("The whole tree of runs holds %d, and %d is the most: do it yourself.", n, l.Tree), nil
	}
	return "", nil
}

// size counts the runs of a tree, up to most.
func (e *Engine) size(ctx context.Context, s *machine.State, most int) (int, error) {
	n := 1 + s.Children.Len()
	for _, c := range s.Children.All() {
		if n >= most {
			break
		}
		if s.Charter.Depth+1 >= e.tree.Depth {
			break // those have no children
		}
		k, err := e.state(ctx, c.ID)
		if err != nil {
			return n, err
		}
		below, err := e.size(ctx, &k, most-n)
		if err != nil {
			return n, err
		}
		n += below - 1
	}
	return n, nil
}

// share is what is set aside of a run's budget for a child, in micro-USD: what
// it asks for, or half of what is free. Without a budget there is nothing to share.
func share(s *machine.State, want int64) (int64, string) {
	if s.Budget == 0 {
		return want, ""
	}
	free := s.Budget - s.Used()
	if want == 0 {
		want = free / 2
	}
	if want <= 0 || want > free {
		return 0, fmt.Sprintf("$%.4f of the budget is free, so $%.4f cannot be set aside for another run.", float64(max(free, 0))/1e6, float64(want)/1e6)
	}
	return want, ""
}

// raise drives a delegated run in this process, if nobody else does.
func (r *run) raise(ctx context.Context, id machine.RunID) {
	if r.halting.Load() || r.e.driving(id) {
		return
	}
	var held *ledger.HeldError
	if err := r.e.drive(ctx, id); err != nil && !errors.As(err, &held) && ctx.Err() == nil {
		r.e.o.Log("run %s is not driven yet: %v", id, err)
	}
}

// raiseAll drives every delegated run that is at work and not driven.
func (r *run) raiseAll(ctx context.Context) {
	for _, c := range r.state.Children.All() {
		if c.Report == nil && !r.e.stuck(c.ID) {
			r.raise(ctx, c.ID)
		}
	}
}

// stuck reports whether a run that this process drove ended with an error: it
// is not tried again by itself.
func (e *Engine) stuck(id machine.RunID) bool {
	e.mu.Lock()
	r := e.runs[id]
	e.mu.Unlock()
	if r == nil || !closed(r.done) {
		return false
	}
	rest := r.rest.Load()
	return rest != nil && rest.Err != nil
}

// collect ends the wait for the delegated runs with their reports.
func (r *run) collect(ctx context.Context, f *machine.Effect) error {
	return r.answer(ctx, f, true, "", reportText(&r.state))
}

// tell puts a word into another run's chain and the sending into this one, in
// one transaction: it arrives once.
func (r *run) tell(ctx context.Context, f *machine.Effect, args json.RawMessage) error {
	w, err := tool.ParseWord(args)
	if err != nil {
		return r.answer(ctx, f, false, "refused", refusal(err))
	}
	to, sender := machine.RunID(w.Child), "parent"
	if f.Tool == "tell_parent" {
		to, sender = r.state.Charter.Parent, "child"
		if to == "" {
			return r.answer(ctx, f, false, "refused", "Nobody delegated this task to you: ask_operator reaches the operator.")
		}
	} else if r.state.Child(to) == nil {
		return r.answer(ctx, f, false, "refused", fmt.Sprintf("You have not delegated to a run %s.", preview(w.Child, 40)))
	}
	n := len(f.Attempts) + 1
	for {
		other, err := r.e.state(ctx, to)
		if err != nil {
			return err
		}
		if other.Phase.Ended() {
			return r.answer(ctx, f, false, "ended", fmt.Sprintf("Run %s is %s and reads nothing any more.", to, other.Phase))
		}
		mine := batch{epoch: r.epoch, bodies: []machine.Body{
			machine.EffectDispatched{Effect: f.ID, Attempt: n},
			machine.EffectCompleted{Effect: f.ID, Attempt: n, Result: machine.Result{OK: true, Output: machine.Text{Inline: "It is in the record of run " + string(to) + "."}}},
		}}
		theirs := batch{actor: machine.ActorChild + string(r.id), bodies: []machine.Body{
			machine.MessageReceived{From: r.id, Sender: sender, Text: w.Text, Effect: f.ID},
		}}
		states, err := r.e.commitLegs(ctx, ledger.Full, leg{r.state, mine}, leg{other, theirs})
		var moved *ledger.TailError
		switch {
		case errors.As(err, &moved) && moved.Run == string(r.id):
			return errMoved
		case errors.As(err, &moved):
			continue
		case err != nil:
			return err
		}
		r.state = states[0]
		r.e.remember(states[0])
		r.e.tellKin(states[1:])
		r.e.broadcast()
		return nil
	}
}

// place waits for one of the places that the runs of a tree share. It is held
// while something is under way, never while waiting for somebody.
func (r *run) place(ctx context.Context) (func(), error) {
	return r.e.slots.take(ctx, "tree "+string(r.root), r.e.tree.Working)
}
