package headless

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"pawl/engine"
	"pawl/engine/machine"
)

func (a *app) showCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "show ID",
		Short: "Show all that is known of a run, effect, approval or question",
		Long: `Show all that is known of a run, an effect, an approval or a question, by its id.
For an effect whose outcome is unknown: what was meant, the last fact on record, what was looked at, and each way out with its cost if you are wrong and the exact text the model will get. For an approval: exactly what will run. Reading changes nothing.`,
		Args:              exactly("ID"),
		ValidArgsFunction: a.completeRuns,
		RunE: func(cmd *cobra.Command, args []string) error {
			id := args[0]
			kind := kindOf(id)
			if kind == idNone {
				return &Problem{
					What: fmt.Sprintf("%q is no id", id), Why: "ids look like r7k2m9x, r7k2m9x.e3, r7k2m9x.a1 or r7k2m9x.q1",
					Next: "`pawl list` and `pawl inbox` show the ids there are",
				}
			}
			return a.with(cmd, viewing, func(ctx context.Context, s *session) error {
				switch kind {
				case idEffect:
					return a.showEffect(ctx, s, machine.EffectID(id))
				case idApproval:
					return a.showApproval(ctx, s, machine.ApprovalID(id))
				case idQuestion:
					return a.showQuestion(ctx, s, machine.QuestionID(id))
				case idRun, idNone:
				}
				return a.showRun(ctx, s, machine.RunID(id))
			})
		},
	}
}

func (a *app) showRun(ctx context.Context, s *session, id machine.RunID) error {
	l, err := s.Run(ctx, id)
	if err != nil {
		return err
	}
	st, err := s.State(ctx, id)
	if err != nil {
		return err
	}
	if a.json {
		return object(a.out(), runView(l, &st))
	}
	w := a.out()
	fmt.Fprintf(w, "run %s: %s\n", l.ID, line(st.Charter.Goal, 0))
	a.facts(w, "", a.runFacts(l, &st))
	if st.Effects.Len() > 0 {
		fmt.Fprintln(w)
		if err := effectTable(&st).write(w, a.o.Width); err != nil {
			return err
		}
	}
	items, err := s.Inbox(ctx)
	if err != nil {
		return err
	}
	var mine []engine.Item
	for _, i := range items {
		if i.Run == id {
			mine = append(mine, i)
		}
	}
	if len(mine) > 0 {
		fmt.Fprintln(w, "\nwaits for you:")
		a.tellItems(w, mine)
	}
	if l.State == engine.Interrupted {
		fmt.Fprintf(w, "\nNobody drives it: `%s` goes on.\n", a.command("resume", string(id)))
	}
	return nil
}

func (a *app) runFacts(l engine.RunLine, st *machine.State) []engine.Field {
	state := described(l, l.State)
	if l.Owner != "" {
		state += ", driven by " + l.Owner
	}
	c := &st.Charter
	spent := money(l.Spend)
	if l.Budget > 0 {
		spent += " of " + money(l.Budget)
	}
	if l.AtMost > 0 {
		spent += fmt.Sprintf(", lost calls at most %s more", money(l.AtMost))
	}
	facts := []engine.Field{
		{Label: "state", Value: state},
		{Label: "turns", Value: fmt.Sprint(l.Turns)},
		{Label: "spent", Value: spent},
		{Label: "model", Value: l.Model},
		{Label: "check", Value: c.Check},
		{Label: "rules", Value: strings.Join(c.Allow, "; ")},
		{Label: "repo", Value: c.Repo},
		{Label: "works in", Value: st.Space.Path},
		{Label: "branch", Value: st.Space.Branch},
		{Label: "confined", Value: st.Space.Level},
		{Label: "created", Value: a.stamp(l.Created)},
		{Label: "updated", Value: a.stamp(l.Updated)},
		{Label: "summary", Value: strings.TrimSpace(st.Summary.Inline)},
	}
	if st.Landed != nil {
		facts = append(facts, engine.Field{Label: "landed", Value: fmt.Sprintf("on %s as %s", st.Landed.Onto, st.Landed.Commit)})
	}
	for _, t := range st.Told {
		facts = append(facts, engine.Field{Label: "told", Value: t.Text})
	}
	return facts
}

// facts prints labelled lines; empty ones are left out.
func (a *app) facts(w io.Writer, indent string, fields []engine.Field) {
	wide := 0
	for _, f := range fields {
		wide = max(wide, len(f.Label))
	}
	for _, f := range fields {
		if f.Value == "" {
			continue
		}
		label := fmt.Sprintf("%s%-*s  ", indent, wide, line(f.Label, 0))
		if !strings.Contains(strings.TrimSpace(f.Value), "\n") {
			fmt.Fprintln(w, label+line(strings.TrimSpace(f.Value), 0))
			continue
		}
		fmt.Fprint(w, strings.TrimRight(label, " ")+"\n"+block(f.Value, indent+"    "))
	}
}

func effectTable(st *machine.State) *table {
	t := &table{head: []string{"EFFECT", "TOOL", "CLASS", "STATE", "TRIES", "SUMMARY"}}
	for _, e := range st.Effects.All() {
		state := strings.ReplaceAll(e.State.String(), "_", " ")
		t.add(e.ID.Short(), e.Tool, e.Contract.Class.String(), state, fmt.Sprint(len(e.Attempts)), e.Summary)
	}
	return t
}

func (a *app) showEffect(ctx context.Context, s *session, id machine.EffectID) error {
	c, err := s.EffectCard(ctx, id)
	if err != nil {
		return err
	}
	st, err := s.State(ctx, id.Run())
	if err != nil {
		return err
	}
	if a.json {
		return object(a.out(), effectCardView{effectView(st.Effect(id)), c})
	}
	w := a.out()
	fmt.Fprintf(w, "effect %s of “%s”\n%s", c.ID, line(c.Goal, 0), block(c.Sentence, ""))
	if c.Look != "" {
		fmt.Fprintf(w, "\nsee for yourself (%s): %s\n", c.LookHow, line(c.Look, 0))
	}
	for _, part := range []struct {
		title  string
		fields []engine.Field
	}{{"what was meant", c.Meant}, {"what is known", c.Known}, {"what was looked at", c.Looked}} {
		if len(part.fields) > 0 {
			fmt.Fprintf(w, "\n%s\n", part.title)
			a.facts(w, "  ", part.fields)
		}
	}
	if c.State == machine.StateAmbiguous {
		quiet := "not proven yet"
		if c.Quiet.Proven {
			quiet = fmt.Sprintf("its senders are dead; %s of %s have passed in which it could still arrive", c.Quiet.Passed, c.Quiet.Needed)
		}
		fmt.Fprintf(w, "\ncan it still arrive?\n  %s\n", line(strings.TrimRight(quiet+": "+c.Quiet.Proof, ": "), 0))
	}
	a.tellChoices(w, c)
	return nil
}

func (a *app) tellChoices(w io.Writer, c engine.EffectCard) {
	if !slices.ContainsFunc(c.Choices, func(ch engine.ChoiceView) bool { return ch.Open }) {
		return
	}
	fmt.Fprintln(w, "\nways out")
	for _, ch := range c.Choices {
		fmt.Fprintf(w, "  %-10s %s\n", ch.Choice, line(ch.Title, 0))
		if !ch.Open {
			fmt.Fprintf(w, "    not now: %s\n", line(ch.Why, 0))
			continue
		}
		fmt.Fprintf(w, "    cost if wrong: %s\n", line(ch.Cost, 0))
		if ch.ModelText != "" {
			fmt.Fprint(w, "    the model gets:\n"+block(ch.ModelText, "      "))
		}
		words := []string{string(c.ID), string(ch.Choice)}
		if ch.Forced {
			words = append(words, "--reason", "TEXT", "--confirm", c.ID.Short())
		}
		fmt.Fprintf(w, "    %s\n", a.command("settle", words...))
	}
}

func (a *app) showApproval(ctx context.Context, s *session, id machine.ApprovalID) error {
	c, err := s.ApprovalCard(ctx, id)
	if err != nil {
		return err
	}
	if a.json {
		return object(a.out(), c)
	}
	w := a.out()
	fmt.Fprintf(w, "approval %s of “%s”: %s\n\nexactly this will run\n%s\n", c.ID, line(c.Goal, 0), c.State, block(c.Text, "  "))
	network := "no"
	if c.Network {
		network = "yes"
	}
	fields := []engine.Field{
		{Label: "tool", Value: c.Tool},
		{Label: "class", Value: c.Class.String()},
		{Label: "in", Value: c.Dir},
		{Label: "acts on", Value: c.Target},
		{Label: "network", Value: network},
		{Label: "confined", Value: c.Level},
		{Label: "asks because", Value: c.Why},
		{Label: "rule", Value: c.Rule},
		{Label: "changed", Value: c.Drift},
		{Label: "resembles", Value: strings.Join(c.Like, "; ")},
	}
	for _, e := range c.Env {
		fields = append(fields, engine.Field{Label: "environment", Value: e.Label + "=" + e.Value})
	}
	for _, f := range c.Files {
		fields = append(fields, engine.Field{Label: "file", Value: fmt.Sprintf("%s  %s", f.Path, f.Digest.Short())})
	}
	fields = append(fields, engine.Field{Label: "digest", Value: c.Digest.String()}, engine.Field{Label: "asked", Value: a.stamp(c.Asked)})
	if !c.Expires.IsZero() {
		fields = append(fields, engine.Field{Label: "expires", Value: c.Expires.UTC().Format(timeFormat)})
	}
	if c.Standing != "" {
		fields = append(fields, engine.Field{Label: "and from then on", Value: "as grant " + c.Standing + "; `pawl grants` lists it"})
	}
	a.facts(w, "", fields)
	if c.State == machine.ApprovalPending {
		fmt.Fprintf(w, "\n%s\n%s --reason TEXT\n", a.command("approve", string(id)), a.command("deny", string(id)))
	}
	if c.OffersRule != "" {
		fmt.Fprintf(w, "--for run, or --for project, would add the rule: allow %s\n", line(c.OffersRule, 0))
	}
	return nil
}

func (a *app) showQuestion(ctx context.Context, s *session, id machine.QuestionID) error {
	c, err := s.QuestionCard(ctx, id)
	if err != nil {
		return err
	}
	if a.json {
		return object(a.out(), c)
	}
	w := a.out()
	fmt.Fprintf(w, "%s %s of “%s”, %s\n%s\n", c.Sort, c.ID, line(c.Goal, 0), a.stamp(c.Asked), block(c.Text, "  "))
	a.facts(w, "", c.Fields)
	if c.Answer != "" {
		fmt.Fprintf(w, "answered by %s, %s: %s\n", line(c.By, 0), a.stamp(c.Answered), line(c.Answer, 0))
		return nil
	}
	answer := "TEXT"
	if len(c.Choices) > 0 {
		answer = line(strings.Join(c.Choices, " | "), 0)
	}
	fmt.Fprintf(w, "%s\n", a.command("answer", string(id), answer))
	return nil
}
