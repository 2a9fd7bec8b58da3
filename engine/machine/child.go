package machine

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Child is what a run knows of a run that it delegated to: only what stands in
// its own chain, so that it can be judged without reading the other.
type Child struct {
	ID      RunID    `json:"id"`
	Effect  EffectID `json:"effect"` // the delegation
	Goal    string   `json:"goal"`
	Reserve int64    `json:"reserve,omitempty"` // micro-USD set aside for it until it reports
	At      int64    `json:"at"`
	// Report is nil while it is at work.
	Report  *Report `json:"report,omitempty"`
	Reports int     `json:"reports,omitempty"`
	// Verdict of the newest review, "" before it.
	Verdict  Verdiction `json:"verdict,omitempty"`
	By       string     `json:"by,omitempty"`
	Feedback string     `json:"feedback,omitempty"`
	Files    []string   `json:"files,omitempty"` // accepted ones; none: all
	Reviewed int64      `json:"reviewed,omitempty"`
	Adopt    EffectID   `json:"adopt,omitempty"` // the newest adoption
	Adopted  bool       `json:"adopted,omitempty"`
	Trouble  string     `json:"trouble,omitempty"` // why the newest adoption came to nothing
	Since    int64      `json:"since"`             // of its present standing
}

// Verdiction is what a review decided about a child's work.
type Verdiction string

// The outcomes of a review.
const (
	ReviewAccept  Verdiction = "accept"
	ReviewReject  Verdiction = "reject"  // it goes on, with feedback
	ReviewDiscard Verdiction = "discard" // its branch stays, nothing is taken over
)

// Receipt is one command of a child, as its own chain has it.
type Receipt struct {
	Line  string `json:"line" cbor:"1,keyasint"`
	Code  string `json:"code" cbor:"2,keyasint"`
	OK    bool   `json:"ok" cbor:"3,keyasint"`
	Fresh bool   `json:"fresh,omitempty" cbor:"4,keyasint,omitempty"` // nothing was changed after it
}

// Report is a child's claim and, beside it, what the record says.
type Report struct {
	Phase    Phase     `json:"phase" cbor:"1,keyasint"`
	Checked  bool      `json:"checked,omitempty" cbor:"2,keyasint,omitempty"`
	Claim    Text      `json:"claim,omitzero" cbor:"3,keyasint,omitzero"`
	Reason   string    `json:"reason,omitempty" cbor:"4,keyasint,omitempty"` // of a failure or cancellation
	Files    []string  `json:"files,omitempty" cbor:"5,keyasint,omitempty"`  // that differ from where it started
	More     int       `json:"more,omitempty" cbor:"6,keyasint,omitempty"`   // files beyond those
	Tree     string    `json:"tree,omitempty" cbor:"7,keyasint,omitempty"`   // of its files at the report
	Commands []Receipt `json:"commands,omitempty" cbor:"8,keyasint,omitempty"`
	Ran      int       `json:"ran,omitempty" cbor:"9,keyasint,omitempty"` // commands in all
	Done     int       `json:"done,omitempty" cbor:"10,keyasint,omitempty"`
	Failed   int       `json:"failed,omitempty" cbor:"11,keyasint,omitempty"`
	Outside  int       `json:"outside,omitempty" cbor:"12,keyasint,omitempty"` // effects beyond its workspace that happened
	Unknown  int       `json:"unknown,omitempty" cbor:"13,keyasint,omitempty"` // effects whose outcome is not proven
	Spent    int64     `json:"spent,omitempty" cbor:"14,keyasint,omitempty"`   // micro-USD, its own children included
	AtMost   int64     `json:"at_most,omitempty" cbor:"15,keyasint,omitempty"`
	Turns    int       `json:"turns,omitempty" cbor:"16,keyasint,omitempty"`
	Flags    []string  `json:"flags,omitempty" cbor:"17,keyasint,omitempty"`  // claims without a receipt, each a sentence
	Unread   bool      `json:"unread,omitempty" cbor:"18,keyasint,omitempty"` // its files could not be read: Files says nothing
}

// Empty reports whether the child came back with nothing: no claim, no change.
func (r *Report) Empty() bool {
	return r.Phase == PhaseDone && !r.Unread && strings.TrimSpace(r.Claim.Inline) == "" && r.Claim.Blob.IsZero() && len(r.Files) == 0
}

// ChildStanding is where a child stands as its parent sees it.
type ChildStanding string

// The standings of a child.
const (
	ChildWorking   ChildStanding = "working"
	ChildReview    ChildStanding = "review"    // done with changes, nobody has judged them
	ChildAdopting  ChildStanding = "adopting"  // accepted, not yet in the parent's branch
	ChildConflict  ChildStanding = "conflict"  // accepted, and could not be taken over
	ChildAdopted   ChildStanding = "adopted"   //
	ChildDiscarded ChildStanding = "discarded" //
	ChildNothing   ChildStanding = "nothing"   // done, and no file differs
	ChildEmpty     ChildStanding = "empty"     // done, without a change and without a word
	ChildFailed    ChildStanding = "failed"
	ChildCancelled ChildStanding = "cancelled"
)

// Standing says where the child stands.
func (c *Child) Standing() ChildStanding {
	switch {
	case c.Report == nil:
		return ChildWorking
	case c.Adopted:
		return ChildAdopted
	case c.Trouble != "":
		return ChildConflict
	case c.Verdict == ReviewAccept:
		return ChildAdopting
	case c.Verdict == ReviewDiscard:
		return ChildDiscarded
	case c.Report.Phase == PhaseFailed:
		return ChildFailed
	case c.Report.Phase == PhaseCancelled:
		return ChildCancelled
	case c.Report.Empty():
		return ChildEmpty
	case len(c.Report.Files) == 0 && !c.Report.Unread:
		return ChildNothing
	}
	return ChildReview
}

// Settled reports whether a parent need not wait for the child any longer.
func (c *Child) Settled() bool {
	switch c.Standing() {
	case ChildWorking, ChildReview, ChildAdopting, ChildConflict:
		return false
	case ChildAdopted, ChildDiscarded, ChildNothing, ChildEmpty, ChildFailed, ChildCancelled:
		return true
	}
	return true
}

// Mail is what a run is told by the runs above and below it; it binds to nothing.
type Mail struct {
	From RunID  `json:"from"`
	Kind string `json:"kind"` // parent, child, report, review
	Text string `json:"text"`
	At   int64  `json:"at"`
	N    int64  `json:"n"`
}

// The events of delegation. ChildSpawned, ChildReported, ChildReviewed,
// ChildResumed and ChildFunded stand in the parent's chain.
type (
	// ChildSpawned stands in the commit that creates the child's chain.
	ChildSpawned struct {
		Child   RunID    `json:"child" cbor:"1,keyasint"`
		Effect  EffectID `json:"effect" cbor:"2,keyasint"`
		Goal    string   `json:"goal" cbor:"3,keyasint"`
		Reserve int64    `json:"reserve,omitempty" cbor:"4,keyasint,omitempty"` // micro-USD
	}
	// ChildReported stands in the commit that ends the child.
	ChildReported struct {
		Child  RunID  `json:"child" cbor:"1,keyasint"`
		Report Report `json:"report" cbor:"2,keyasint"`
	}
	// ChildReviewed is the judgement on a child's work.
	ChildReviewed struct {
		Child    RunID      `json:"child" cbor:"1,keyasint"`
		Verdict  Verdiction `json:"verdict" cbor:"2,keyasint"`
		Feedback string     `json:"feedback,omitempty" cbor:"3,keyasint,omitempty"`
		Files    []string   `json:"files,omitempty" cbor:"4,keyasint,omitempty"`
		Rule     string     `json:"rule,omitempty" cbor:"5,keyasint,omitempty"` // of the engine's own acceptance
	}
	// ChildResumed says that a child that had reported works again.
	ChildResumed struct {
		Child   RunID `json:"child" cbor:"1,keyasint"`
		Reserve int64 `json:"reserve,omitempty" cbor:"2,keyasint,omitempty"`
	}
	// ChildFunded adds the operator's money to a child and so to its parent.
	ChildFunded struct {
		Child RunID `json:"child" cbor:"1,keyasint"`
		By    int64 `json:"by" cbor:"2,keyasint"` // micro-USD
	}
	// MessageReceived is a word of the run above or below. It is a claim, not an order of the operator.
	MessageReceived struct {
		From   RunID    `json:"from" cbor:"1,keyasint"`
		Sender string   `json:"sender" cbor:"2,keyasint"` // parent or child
		Text   string   `json:"text" cbor:"3,keyasint"`
		Effect EffectID `json:"effect" cbor:"4,keyasint"` // that sent it
	}
)

// ActorChild prefixes the run whose end was noted in its parent's chain.
const ActorChild = "child:"

// Tools of delegation that the machine itself knows.
const (
	ToolDelegate = "delegate"
	ToolCollect  = "collect"
	ToolAdopt    = "adopt"
)

// Child returns a child by id or nil. It must not be written to.
func (s *State) Child(id RunID) *Child {
	for _, c := range s.Children.All() {
		if c.ID == id {
			return c
		}
	}
	return nil
}

// ChildrenSettled reports whether no child is at work or waits for a judgement.
func (s *State) ChildrenSettled() bool {
	for _, c := range s.Children.All() {
		if !c.Settled() {
			return false
		}
	}
	return true
}

// Used is what the run has spent and set aside, in micro-USD: its own calls,
// what children reported, and what is reserved for those at work.
func (s *State) Used() int64 {
	n := s.Spent + s.AtMost
	for _, c := range s.Children.All() {
		n += c.cost()
	}
	return n
}

// cost is what a child takes of its parent's budget.
func (c *Child) cost() int64 {
	if c.Report == nil {
		return c.Reserve
	}
	return c.Report.Spent + c.Report.AtMost
}

// SpentInAll is what the run and the children that reported have spent, known and possible.
func (s *State) SpentInAll() (spent, atMost int64) {
	spent, atMost = s.Spent, s.AtMost
	for _, c := range s.Children.All() {
		if c.Report != nil {
			spent += c.Report.Spent
			atMost += c.Report.AtMost
		}
	}
	return spent, atMost
}

func foldChild(s State, e Event) (State, error) {
	id := string(s.Charter.ID)
	switch b := e.Body.(type) {
	case ChildSpawned:
		if err := s.current(e); err != nil {
			return s, err
		}
		f := s.Effect(b.Effect)
		ok := f != nil && f.Tool == ToolDelegate && f.State == StateDispatched
		if err := GuardSpawn.need(ok, b, id, "%s is no delegation under way", b.Effect); err != nil {
			return s, err
		}
		for _, c := range s.Children.All() {
			if err := GuardSpawn.need(c.ID != b.Child && c.Effect != b.Effect, b, id, "%s has its child already", b.Effect); err != nil {
				return s, err
			}
		}
		if err := GuardBudget.need(s.Budget == 0 || s.Used()+b.Reserve <= s.Budget, b, id, "$%.4f is more than is free", dollars(b.Reserve)); err != nil {
			return s, err
		}
		s.Children = s.Children.push(Child{ID: b.Child, Effect: b.Effect, Goal: b.Goal, Reserve: b.Reserve, At: e.At, Since: e.At})
	case ChildReported:
		return s.changeChild(e, b.Child, func(c *Child) error {
			if err := GuardFrom.need(c.Report == nil, b, string(b.Child), "it has reported"); err != nil {
				return err
			}
			r := b.Report
			c.Report, c.Reports = &r, c.Reports+1
			c.Verdict, c.Trouble, c.Adopt, c.Feedback, c.Files = "", "", "", "", nil
			return nil
		})
	case ChildReviewed:
		if err := s.authored(e); err != nil {
			return s, err
		}
		return s.changeChild(e, b.Child, func(c *Child) error {
			if err := GuardFrom.need(c.Report != nil, b, string(b.Child), "it is at work"); err != nil {
				return err
			}
			open := !c.Adopted && (c.Adopt == "" || c.Trouble != "") && (c.Verdict != ReviewAccept || c.Trouble != "")
			if err := GuardAdopt.need(open, b, string(b.Child), "its work is %s", c.Standing()); err != nil {
				return err
			}
			c.Verdict, c.Feedback, c.Files, c.By, c.Reviewed, c.Adopt, c.Trouble = b.Verdict, b.Feedback, b.Files, e.Actor, e.At, "", ""
			return nil
		})
	case ChildResumed:
		return s.changeChild(e, b.Child, func(c *Child) error {
			if err := GuardAdopt.need(c.Report != nil && !c.Adopted && (c.Verdict != ReviewAccept || c.Trouble != ""), b, string(b.Child), "its work is %s", c.Standing()); err != nil {
				return err
			}
			c.Report, c.Adopt, c.Trouble, c.Reserve = nil, "", "", b.Reserve
			return nil
		})
	case ChildFunded:
		if s.Budget > 0 {
			s.Budget += b.By
		}
		return s.changeChild(e, b.Child, func(c *Child) error { c.Reserve += b.By; return nil })
	case MessageReceived:
		s.mail(e, b.From, b.Sender, b.Text)
	}
	return s, nil
}

// changeChild applies a change to a child that there is, and tells the model.
func (s State) changeChild(e Event, id RunID, f func(*Child) error) (State, error) {
	for i, c := range s.Children.All() {
		if c.ID != id {
			continue
		}
		n := *c
		if err := f(&n); err != nil {
			return s, err
		}
		n.Since = e.At
		s.Children = s.Children.set(i, n)
		if text := newsOf(e.Body, &n); text != "" {
			kind := "report"
			if _, ok := e.Body.(ChildReported); !ok {
				kind = "review"
			}
			s.mail(e, id, kind, text)
		}
		return s, nil
	}
	return s, &GuardError{Guard: GuardFrom, Event: e.Body.Kind(), Ref: string(id), Why: "no such child of this run"}
}

func (s *State) mail(e Event, from RunID, kind, text string) {
	s.Mail = append(slices.Clip(s.Mail), Mail{From: from, Kind: kind, Text: text, At: e.At, N: e.N})
}

// newsOf words for the model what happened to a child.
func newsOf(b Body, c *Child) string {
	switch b := b.(type) {
	case ChildReported:
		return "It ended: " + string(c.Standing()) + ". collect shows its report."
	case ChildReviewed:
		switch b.Verdict {
		case ReviewAccept:
			return "Its work is accepted and will be merged into your branch."
		case ReviewDiscard:
			return "Its work is not taken over. " + b.Feedback
		case ReviewReject:
			return "Its work is sent back, and it goes on. " + b.Feedback
		}
	}
	return ""
}

// noteAdoption takes over how an adoption ended.
func (s *State) noteAdoption(f *Effect, at int64) {
	if f.Tool != ToolAdopt {
		return
	}
	for i, c := range s.Children.All() {
		if c.Adopt != f.ID {
			continue
		}
		n := *c
		switch {
		case f.State == StateCompleted && f.Result.OK, f.State == StateHappened, f.State == StateForcedHappened:
			n.Adopted, n.Trouble = true, ""
			s.Landed = nil // there is more to land now
		case f.State == StateCompleted || f.State == StateRejected:
			n.Trouble = cmp.Or(f.Result.Note, f.Result.Code, "it was refused")
		case f.State == StateCancelled || f.State == StateAbandoned:
			n.Trouble = cmp.Or(f.Reason, f.State.String())
		default:
			return
		}
		n.Since = at
		s.Children = s.Children.set(i, n)
		return
	}
}

// toAdopt returns an accepted child whose adoption is not intended yet, or nil.
func (s *State) toAdopt() *Child {
	for _, c := range s.Children.All() {
		if c.Standing() == ChildAdopting && c.Adopt == "" {
			return c
		}
	}
	return nil
}

// intendAdoption notes which effect takes a child's work over.
func (s *State) intendAdoption(b EffectIntended, at int64) error {
	for i, c := range s.Children.All() {
		if string(c.ID) != b.Target {
			continue
		}
		if err := GuardAdopt.need(c.Standing() == ChildAdopting && c.Adopt == "", b, string(c.ID), "its work is %s", c.Standing()); err != nil {
			return err
		}
		n := *c
		n.Adopt, n.Since = b.Effect, at
		s.Children = s.Children.set(i, n)
		return nil
	}
	return &GuardError{Guard: GuardAdopt, Event: b.Kind(), Ref: b.Target, Why: "no such child of this run"}
}

// waitsOfChildren lists what of the children waits for the operator.
func waitsOfChildren(s *State, add func(kind, ref, summary string, since int64)) {
	for _, c := range s.Children.All() {
		switch c.Standing() {
		case ChildReview:
			what := "done (unchecked)"
			if c.Report.Checked {
				what = "done, checked"
			}
			if n := len(c.Report.Flags); n > 0 {
				what += fmt.Sprintf(", %d claims without a receipt", n)
			}
			add(WaitReview, string(c.ID), fmt.Sprintf("%s, %d files changed: %s", what, len(c.Report.Files)+c.Report.More, c.Goal), c.Since)
		case ChildConflict:
			add(WaitConflict, string(c.ID), "the work of "+string(c.ID)+" could not be taken over: "+c.Trouble, c.Since)
		case ChildWorking, ChildAdopting, ChildAdopted, ChildDiscarded, ChildNothing, ChildEmpty, ChildFailed, ChildCancelled:
		}
	}
}

// Kind names the event.
func (ChildSpawned) Kind() string { return "ChildSpawned" }

// Kind names the event.
func (ChildReported) Kind() string { return "ChildReported" }

// Kind names the event.
func (ChildReviewed) Kind() string { return "ChildReviewed" }

// Kind names the event.
func (ChildResumed) Kind() string { return "ChildResumed" }

// Kind names the event.
func (ChildFunded) Kind() string { return "ChildFunded" }

// Kind names the event.
func (MessageReceived) Kind() string { return "MessageReceived" }
