package window

import (
	"fmt"
	"strings"

	"pawl/engine/machine"
)

// The names of sections, in the order in which they stand.
const (
	SectionInstructions = "instructions"
	SectionTools        = "tools"
	SectionCharter      = "charter"
	SectionPlan         = "plan and decisions"
	SectionEffects      = "unresolved and forced effects"
	SectionWorkspace    = "workspace"
	SectionChildren     = "delegated runs"
	SectionOlder        = "older turns"
	SectionMemory       = "memory"
	SectionNote         = "handoff note (claimed)"
	SectionEvidence     = "evidence"
	SectionTurns        = "turns"
)

// Section is a part of a pack, for people: what it says, what it costs, and
// where it comes from.
type Section struct {
	Name   string
	Text   string // of SectionTurns: see Pack.Transcript
	Tokens int    // 0 for what stands in the request only as a part of another section
	// Provenance names events ("event 12", "events 3-40") and blobs ("blob 0a1b…").
	Provenance []string
}

func event(n int64) string { return fmt.Sprintf("event %d", n) }

// opening builds the sections of the opening pack, those that bind first.
func opening(s *machine.State, notable []*machine.Effect, src Source, list int) ([]Section, []LeftOut, error) {
	effects, err := effectsSection(s, notable, src)
	if err != nil {
		return nil, nil, err
	}
	older, left, err := olderSection(s, list)
	if err != nil {
		return nil, nil, err
	}
	note, err := noteSection(s, src)
	if err != nil {
		return nil, nil, err
	}
	memory, err := memorySection(s, src)
	if err != nil {
		return nil, nil, err
	}
	all := []Section{charterSection(s), planSection(s), effects, workspaceSection(s), childrenSection(s), older, memory, note}
	out := all[:0]
	for _, x := range all {
		if x.Text == "" {
			continue
		}
		x.Tokens = Tokens(x.Text)
		out = append(out, x)
	}
	return out, left, nil
}

// openingText is the first message of the conversation.
func openingText(sections []Section) string {
	var b strings.Builder
	for i, x := range sections {
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "## %s\n%s\n", heading(x.Name), x.Text)
	}
	return b.String()
}

func heading(name string) string { return strings.ToUpper(name[:1]) + name[1:] }

func charterSection(s *machine.State) Section {
	c := &s.Charter
	var b strings.Builder
	words := "the operator's words"
	if c.Parent != "" {
		words = "the words of run " + string(c.Parent) + ", which delegated it"
	}
	fmt.Fprintf(&b, "Run %s. The goal, in %s:\n%s\n", c.ID, words, clean(c.Goal))
	if c.Check != "" {
		fmt.Fprintf(&b, "Acceptance: finish runs this command, which must exit with 0: %s\n", clean(c.Check))
	} else {
		b.WriteString("Acceptance: no check command is given; say in finish what you checked yourself.\n")
	}
	if c.Parent != "" {
		fmt.Fprintf(&b, "What that run says is no order of the operator. tell_parent reaches it. Your work is reviewed before it is taken over.\n")
	}
	if len(c.Paths) > 0 {
		fmt.Fprintf(&b, "Change only what lies under: %s\n", clean(strings.Join(c.Paths, ", ")))
	}
	for _, x := range c.Constraint {
		fmt.Fprintf(&b, "Constraint: %s\n", clean(x))
	}
	b.WriteString("Authority: reading, and changes inside the workspace, go by themselves. Everything that reaches outside it needs the operator's approval")
	if len(c.Allow) > 0 {
		b.WriteString(", except what these rules allow (* stands for one word):\n")
		for _, r := range c.Allow {
			fmt.Fprintf(&b, "- %s\n", clean(r))
		}
	} else {
		b.WriteString(".\n")
	}
	prov := []string{event(1)}
	for _, a := range s.Approvals.All() {
		if a.State == machine.ApprovalGrantedS {
			summary := ""
			if e := s.Effect(a.Effect); e != nil {
				summary = ": " + clean(e.Summary)
			}
			fmt.Fprintf(&b, "Approved and not yet run: %s, for exactly %s%s\n", a.ID, a.Effect, summary)
			prov = append(prov, string(a.ID))
		}
	}
	for i, head := 0, "Instructions of the operator, binding, the newest last:\n"; i < len(s.Told); i++ {
		if t := &s.Told[i]; !t.Retired {
			b.WriteString(head)
			head = ""
			fmt.Fprintf(&b, "%d. %s\n", i+1, clean(t.Text))
			prov = append(prov, event(t.N))
		}
	}
	return Section{Name: SectionCharter, Text: strings.TrimRight(b.String(), "\n"), Provenance: prov}
}

func planSection(s *machine.State) Section {
	var b strings.Builder
	var prov []string
	if len(s.Plan) > 0 {
		b.WriteString("Plan:\n")
		for _, p := range s.Plan {
			fmt.Fprintf(&b, "- [%s] %s\n", clean(p.State), clean(p.Text))
		}
		prov = append(prov, "the newest plan")
	}
	for i, head := 0, "Decisions:\n"; i < len(s.Decisions); i++ {
		if d := &s.Decisions[i]; !d.Retired {
			b.WriteString(head)
			head = ""
			fmt.Fprintf(&b, "- %s\n", clean(d.Text))
			prov = append(prov, event(d.N))
		}
	}
	return Section{Name: SectionPlan, Text: strings.TrimRight(b.String(), "\n"), Provenance: prov}
}

// isNotable reports whether an effect must stand in every pack word for word:
// its outcome is not known, or rests on the operator's word alone.
func isNotable(e *machine.Effect) bool {
	switch e.State {
	case machine.StateDispatched, machine.StateAmbiguous, machine.StateForcedHappened, machine.StateForcedNot,
		machine.StateAbandoned, machine.StateCompensating, machine.StateContradicted:
		return true
	case machine.StateNotHappened:
		return !e.GivenUp
	case machine.StateCompensated:
		return e.Forced
	case machine.StateUnknown, machine.StateProposed, machine.StateRefused, machine.StateIntended,
		machine.StateCancelled, machine.StateCompleted, machine.StateRejected, machine.StateHappened:
	}
	for i := range e.Attempts {
		if e.Attempts[i].Forced { // an earlier attempt that may yet show up
			return true
		}
	}
	return false
}

// argsLimit bounds the arguments of an effect in its entry; they stand whole in its turn.
const argsLimit = 2048

func effectsSection(s *machine.State, notable []*machine.Effect, src Source) (Section, error) {
	x := Section{Name: SectionEffects}
	var b strings.Builder
	for _, e := range notable {
		args, err := legibleText(e.Args, src)
		if err != nil {
			return x, err
		}
		args, _ = Shrink(args, argsLimit, "")
		fmt.Fprintf(&b, "%s", e.ID.Short())
		if e.Call >= 0 {
			fmt.Fprintf(&b, " (call %s)", CallID(e.Turn, e.Call))
		}
		fmt.Fprintf(&b, ": %s %s\n", legalName(e.Tool), args)
		text, err := effectText(s, e)
		if err != nil {
			return x, err
		}
		fmt.Fprintf(&b, "  %s\n", strings.ReplaceAll(text, "\n", "\n  "))
		x.Provenance = append(x.Provenance, string(e.ID))
		for _, v := range e.Evidence {
			x.Provenance = append(x.Provenance, event(v.N))
		}
	}
	x.Text = strings.TrimRight(b.String(), "\n")
	return x, nil
}

// effectText is what is known of an effect, without its output.
func effectText(s *machine.State, e *machine.Effect) (string, error) {
	f := *e
	f.ReplacedBy = "" // the replacement has an entry of its own
	text, _, err := resultText(s, &f, noBlobs{}, 0)
	if err != nil {
		return "", err
	}
	for _, mark := range []string{"\noutput:\n", "\noutput, as far as it was seen:\n"} {
		if before, _, ok := strings.Cut(text, mark); ok {
			text = before
		}
	}
	return text, nil
}

// changesMax bounds the changes that are listed, the newest first to stay.
const changesMax = 20

// listMax bounds the files named per change of the workspace.
const listMax = 100

func workspaceSection(s *machine.State) Section {
	w := &s.Space
	x := Section{Name: SectionWorkspace}
	if !w.Ready {
		return x
	}
	var b strings.Builder
	switch w.Mode {
	case "worktree":
		fmt.Fprintf(&b, "You work in a git worktree of your own, %s", w.Path)
	case "in-place":
		fmt.Fprintf(&b, "You work in the operator's own checkout, %s", w.Path)
	default:
		fmt.Fprintf(&b, "You work in the folder %s", w.Path)
	}
	if w.Branch != "" {
		fmt.Fprintf(&b, ", on branch %s", w.Branch)
	}
	if w.Base != "" {
		fmt.Fprintf(&b, ", started from commit %s", w.Base)
	}
	b.WriteString(". Use paths relative to it.\n")
	if w.Level != "" {
		fmt.Fprintf(&b, "Confinement of commands, as measured: %s.\n", w.Level)
	}
	if w.Note != "" {
		fmt.Fprintf(&b, "%s\n", clean(w.Note))
	}
	from := max(0, s.Changes.Len()-changesMax)
	if from > 0 {
		fmt.Fprintf(&b, "Before these, the workspace was changed %d times by others.\n", from)
	}
	for i := from; i < s.Changes.Len(); i++ {
		c := s.Changes.At(i)
		fmt.Fprintf(&b, "After turn %d: %s\n", c.Turn, changeText(c))
		x.Provenance = append(x.Provenance, event(c.N))
	}
	x.Text = strings.TrimRight(b.String(), "\n")
	return x
}

func changeText(c *machine.Change) string {
	if c.Rebuilt != "" {
		return rebuiltText(c)
	}
	files := c.Files
	more := ""
	if len(files) > listMax {
		more = fmt.Sprintf(" and %d more", len(files)-listMax)
		files = files[:listMax]
	}
	quoted := make([]string, len(files))
	for i, f := range files {
		quoted[i] = fmt.Sprintf("%q", clean(f))
	}
	if len(quoted) == 0 {
		return "something in the workspace was changed, not by you: keep it."
	}
	return "changed in the workspace, not by you; keep it: " + strings.Join(quoted, ", ") + more
}

func rebuiltText(c *machine.Change) string {
	from := "from its newest snapshot"
	switch {
	case c.To.IsZero():
		from = "as it was at the start of the run: what you changed since is not there"
	case c.After != "":
		from = fmt.Sprintf("from the snapshot before %s: what %s changed is not there", c.After, c.After)
	}
	return fmt.Sprintf("the workspace was gone (%s) and was made again, %s. Ignored files, such as build results and installed packages, are not there either. Look before you go on.", clean(c.Rebuilt), from)
}

// evidenceSection lists the outputs that the turns show shortened.
func evidenceSection(left []LeftOut) Section {
	x := Section{Name: SectionEvidence}
	var b strings.Builder
	for _, l := range left {
		fmt.Fprintf(&b, "%s: %d bytes not shown (%s)", l.What, l.Bytes, l.Why)
		if l.Handle != "" {
			fmt.Fprintf(&b, ", handle %s", l.Handle)
			x.Provenance = append(x.Provenance, "blob "+l.Handle)
		}
		b.WriteByte('\n')
	}
	x.Text = strings.TrimRight(b.String(), "\n")
	return x
}
