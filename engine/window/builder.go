package window

import (
	"fmt"
	"slices"
	"strings"

	"pawl/engine/machine"
)

// Builder builds the packs of one run, one after the other, and renders again
// only what changed in between. It gives the very bytes that Build gives. The
// goroutine that drives the run owns it; the packs may be shared freely, their
// messages are never written to again.
type Builder struct {
	prev  *machine.State // as of the last build
	src   Source
	limit int
	list  int // bytes of the list of older turns

	// opening and everything that depends on it
	sections []Section
	older    []LeftOut // of turns before the window
	head     string

	msgs  []Message // the opening, then the turns in order
	turns []shown
	left  []LeftOut
	notes map[int][]machine.EffectID // turn → effects whose result changed after it was seen
	noted map[machine.EffectID]int

	notable []int // ordinals of effects that the opening names, ascending

	// rendered once, as long as they stay what they are
	fixed    fixed
	evidence *Section
}

// fixed is the part of every request that options and charter settle.
type fixed struct {
	system   string
	tools    []ToolSpec
	sections []Section
	digest   machine.Digest
}

// shown is one answered turn in msgs.
type shown struct {
	n      int // the turn's number
	from   int // its first message in msgs
	left   int // len(left) before it
	tokens int // of it and all before
	chain  machine.Digest
}

// Build builds the pack of the state's next request.
func (b *Builder) Build(s *machine.State, src Source, o Options) (Pack, error) {
	limit := o.OutputLimit
	if limit <= 0 {
		limit = OutputLimit
	}
	if s.Output > 0 {
		limit = min(limit, s.Output)
	}
	list := 0
	if n := len(s.Openings); n > 0 {
		list = listBytes(s.Openings[n-1].Budget)
	}
	if b.prev == nil || b.prev.Charter.ID != s.Charter.ID || s.Tail < b.prev.Tail || b.limit != limit ||
		b.prev.Window != s.Window || b.prev.Keep != s.Keep || b.list != list {
		*b = Builder{limit: limit, list: list, notes: map[int][]machine.EffectID{}, noted: map[machine.EffectID]int{}, msgs: make([]Message, 1, 64), prev: &machine.State{Window: s.Window, Keep: s.Keep}}
	}
	b.src = src
	p, err := b.build(s, o)
	if err != nil {
		b.prev = nil // begin anew next time: what is kept may be half made
	}
	return p, err
}

func (b *Builder) build(s *machine.State, o Options) (Pack, error) {
	system, err := Instructions(s.Charter.Prompt)
	if err != nil {
		return Pack{}, err
	}
	dirty, err := b.observe(s)
	if err != nil {
		return Pack{}, err
	}
	if err := b.renderTurns(s, dirty); err != nil {
		return Pack{}, err
	}
	if err := b.renderOpening(s); err != nil {
		return Pack{}, err
	}
	keep := *s
	b.prev = &keep
	return b.pack(s, system, o), nil
}

// observe finds the first turn whose rendering may have changed, and keeps the
// books on effects. It costs what changed since the last build.
func (b *Builder) observe(s *machine.State) (dirty int, err error) {
	dirty = s.Turns.Len() + 1
	touch := func(n int) {
		if n >= 1 {
			dirty = min(dirty, n)
		}
	}
	for i := range s.Turns.Changed(b.prev.Turns) {
		touch(i + 1)
		touch(b.lastAnswered(s, i)) // what was told between two turns stands with the first
	}
	if len(s.Told) != len(b.prev.Told) || len(s.Mail) != len(b.prev.Mail) {
		touch(b.lastAnswered(s, s.Turns.Len()))
	}
	for _, c := range s.Changes.Changed(b.prev.Changes) {
		touch(b.lastAnswered(s, c.Turn))
	}
	effect := func(e *machine.Effect) {
		touch(e.Turn)
		for hops := 0; e.Replaces != "" && hops < 64; hops++ {
			if e = s.Effect(e.Replaces); e == nil {
				return
			}
			touch(e.Turn)
		}
	}
	for i, e := range s.Effects.Changed(b.prev.Effects) {
		effect(e)
		if o := s.Effect(e.Compensates); o != nil {
			effect(o)
		}
		pos, found := slices.BinarySearch(b.notable, i)
		switch is := isNotable(e); {
		case is && !found:
			b.notable = slices.Insert(b.notable, pos, i)
		case !is && found:
			b.notable = slices.Delete(b.notable, pos, pos+1)
		}
		was, now := b.noted[e.ID], laterVerdict(s, e)
		if was != now {
			touch(was)
			touch(now)
			b.note(e.ID, was, now)
		} else if now > 0 {
			touch(now)
		}
	}
	for _, a := range s.Approvals.Changed(b.prev.Approvals) {
		if e := s.Effect(a.Effect); e != nil {
			effect(e)
		}
	}
	return dirty, nil
}

// note moves the remark about an effect from one turn to another; 0: none.
func (b *Builder) note(id machine.EffectID, was, now int) {
	if was > 0 {
		b.notes[was] = slices.DeleteFunc(b.notes[was], func(x machine.EffectID) bool { return x == id })
	}
	delete(b.noted, id)
	if now > 0 {
		b.noted[id] = now
		at, _ := slices.BinarySearchFunc(b.notes[now], id, func(x, y machine.EffectID) int { return x.Ord() - y.Ord() })
		b.notes[now] = slices.Insert(b.notes[now], at, id)
	}
}

// laterVerdict returns the last turn that had been answered when e got its
// verdict, if the model had seen another result of it by then; else 0.
func laterVerdict(s *machine.State, e *machine.Effect) int {
	if e.DecidedN == 0 || e.Turn < 1 || e.Call < 0 {
		return 0
	}
	lo, hi := e.Turn+1, s.Turns.Len() // the first turn answered after the verdict
	for lo <= hi {
		mid := (lo + hi) / 2
		if t := s.Turn(mid); t.State == machine.TurnAnswered && t.Tail < e.DecidedN {
			lo = mid + 1
		} else {
			hi = mid - 1
		}
	}
	if lo-1 <= e.Turn {
		return 0
	}
	return lo - 1
}

// lastAnswered is the newest answered turn up to n; 0 if there is none.
func (b *Builder) lastAnswered(s *machine.State, n int) int {
	for ; n >= 1; n-- {
		if s.Turn(n).State == machine.TurnAnswered {
			return n
		}
	}
	return 0
}

// renderTurns renders turns from dirty on, and keeps what comes out the same.
func (b *Builder) renderTurns(s *machine.State, dirty int) error {
	dirty = max(dirty, s.Keep) // older ones stand in a list
	k, _ := slices.BinarySearchFunc(b.turns, dirty, func(x shown, n int) int { return x.n - n })
	for n := dirty; n <= s.Turns.Len(); n++ {
		if s.Turn(n).State != machine.TurnAnswered {
			continue
		}
		v, err := viewTurn(s, n, b.notesAfter(s, n), b.src, b.limit)
		if err != nil {
			return fmt.Errorf("turn %d: %w", n, err)
		}
		if k < len(b.turns) && b.turns[k].n == n && b.same(k, v) {
			k++
			continue
		}
		b.cut(k)
		b.add(n, v)
		k++
	}
	b.cut(k)
	return nil
}

// same reports whether turn k is shown as v already.
func (b *Builder) same(k int, v turnView) bool {
	from, to := b.turns[k].from, len(b.msgs)
	l0, l1 := b.turns[k].left, len(b.left)
	if k+1 < len(b.turns) {
		to, l1 = b.turns[k+1].from, b.turns[k+1].left
	}
	return slices.EqualFunc(b.msgs[from:to], v.msgs, equalMessages) && slices.Equal(b.left[l0:l1], v.left)
}

func equalMessages(x, y Message) bool {
	return x.Role == y.Role && x.CallID == y.CallID && x.Text == y.Text &&
		slices.EqualFunc(x.Calls, y.Calls, func(c, d Call) bool { return c.ID == d.ID && c.Name == d.Name && string(c.Args) == string(d.Args) })
}

// cut drops turns from k on. Packs that were handed out keep theirs: what is
// appended next goes to new memory.
func (b *Builder) cut(k int) {
	if k >= len(b.turns) {
		return
	}
	b.msgs = slices.Clip(b.msgs[:b.turns[k].from])
	b.left = slices.Clip(b.left[:b.turns[k].left])
	b.turns = b.turns[:k]
	b.evidence = nil
}

func (b *Builder) add(n int, v turnView) {
	x := shown{n: n, from: len(b.msgs), left: len(b.left), tokens: v.tokens}
	var before machine.Digest
	if len(b.turns) > 0 {
		last := b.turns[len(b.turns)-1]
		before, x.tokens = last.chain, last.tokens+v.tokens
	}
	x.chain = chain(before, v.msgs)
	b.turns = append(b.turns, x)
	b.msgs = append(b.msgs, v.msgs...)
	b.left = append(b.left, v.left...)
	if len(v.left) > 0 {
		b.evidence = nil
	}
}

// notesAfter is what the operator and the world said between turn n and the next.
func (b *Builder) notesAfter(s *machine.State, n int) []string {
	var out []string
	for _, id := range b.notes[n] {
		if e := s.Effect(id); e != nil {
			text, err := effectText(s, e)
			if err == nil {
				out = append(out, fmt.Sprintf("The result of %s has changed since you saw it. It is now: %s", CallID(e.Turn, e.Call), text))
			}
		}
	}
	next := s.Turns.Len() + 1
	for m := n + 1; m <= s.Turns.Len(); m++ {
		if s.Turn(m).State == machine.TurnAnswered {
			next = m
			break
		}
	}
	for i := changesFrom(s, n); i < s.Changes.Len(); i++ {
		c := s.Changes.At(i)
		if c.Turn >= next {
			break
		}
		out = append(out, heading(changeText(c)))
	}
	to := len(s.Told)
	if next <= s.Turns.Len() {
		to = s.Turn(next).Told
	}
	for i := s.Turn(n).Told; i < to; i++ {
		out = append(out, "The operator says, and it binds you:\n"+clean(s.Told[i].Text))
	}
	to = len(s.Mail)
	if next <= s.Turns.Len() {
		to = s.Turn(next).Mail
	}
	for i := s.Turn(n).Mail; i < to; i++ {
		out = append(out, mailText(&s.Mail[i]))
	}
	return out
}

// changesFrom is the index of the first change after turn n was asked for.
func changesFrom(s *machine.State, n int) int {
	lo, hi := 0, s.Changes.Len()
	for lo < hi {
		mid := (lo + hi) / 2
		if s.Changes.At(mid).Turn < n {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// renderOpening renders the opening, and replaces it only if it changed.
func (b *Builder) renderOpening(s *machine.State) error {
	notable := make([]*machine.Effect, len(b.notable))
	for i, ord := range b.notable {
		notable[i] = s.Effects.At(ord)
	}
	sections, left, err := opening(s, notable, b.src, b.list)
	if err != nil {
		return err
	}
	b.older = left
	head := openingText(sections)
	b.sections = sections
	if head == b.head {
		return nil
	}
	b.head = head
	msgs := make([]Message, len(b.msgs), cap(b.msgs)+1)
	copy(msgs, b.msgs)
	msgs[0] = Message{Role: RoleUser, Text: head}
	b.msgs = msgs
	return nil
}

// renderFixed renders the instructions and the tools.
func (b *Builder) renderFixed(version int, system string, tools []ToolSpec) {
	same := slices.EqualFunc(b.fixed.tools, tools, func(x, y ToolSpec) bool {
		return x.Name == y.Name && x.Description == y.Description && string(x.Schema) == string(y.Schema)
	})
	if same && b.fixed.system == system {
		return
	}
	f := fixed{system: system, tools: slices.Clone(tools)}
	f.sections = []Section{{
		Name: SectionInstructions, Text: system, Tokens: Tokens(system),
		Provenance: []string{fmt.Sprintf("version %d", max(version, 1))},
	}}
	d := newDigester()
	d.str(system)
	var text strings.Builder
	for _, t := range tools {
		d.str(t.Name)
		d.str(t.Description)
		d.str(string(t.Schema))
		fmt.Fprintf(&text, "%s: %s\n%s\n", t.Name, t.Description, t.Schema)
	}
	if len(tools) > 0 {
		f.sections = append(f.sections, Section{Name: SectionTools, Text: strings.TrimRight(text.String(), "\n"), Tokens: Tokens(text.String())})
	}
	f.digest = d.sum()
	b.fixed = f
}

func (b *Builder) pack(s *machine.State, system string, o Options) Pack {
	b.renderFixed(s.Charter.Prompt, system, o.Tools)
	p := Pack{System: system, Messages: slices.Clip(b.msgs), Tools: o.Tools}
	if len(b.left)+len(b.older) > 0 {
		p.Left = slices.Concat(b.older, b.left)
	}
	d := newDigester()
	d.h.Write(b.fixed.digest[:])
	d.str(b.head)
	p.Sections = slices.Concat(b.fixed.sections, b.sections)
	if len(b.left) > 0 {
		if b.evidence == nil {
			x := evidenceSection(b.left)
			b.evidence = &x
		}
		p.Sections = append(p.Sections, *b.evidence)
	}
	if n := len(b.turns); n > 0 {
		last := &b.turns[n-1]
		d.h.Write(last.chain[:])
		p.Sections = append(p.Sections, Section{
			Name: SectionTurns, Tokens: last.tokens, Provenance: []string{fmt.Sprintf("turns %d-%d", b.turns[0].n, last.n)},
		})
	}
	p.Digest = d.sum()
	for i := range p.Sections {
		p.Guess += p.Sections[i].Tokens
	}
	p.Tokens, p.Window, p.Budget = calibrated(p.Guess, Scale(s)), s.Window, o.Budget
	p.Over = o.Budget > 0 && p.Tokens > o.Budget
	return p
}
