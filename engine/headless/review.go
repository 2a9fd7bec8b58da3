package headless

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"pawl/engine"
	"pawl/engine/machine"
	"pawl/views/safe"
)

func (a *app) reviewCommand() *cobra.Command {
	var v engine.Review
	cmd := &cobra.Command{
		Use:   "review RUN [accept|reject|discard]",
		Short: "Judge the work of a run that another run delegated to",
		Long: `Judge the work of a run that another run delegated to.
Without a verdict everything that a judgement needs is printed: what the run claims, what is on record, the claims for which there is no record, the difference, conflicts with the run above and, before they happen, with its siblings.
accept merges the work into the branch and files of the run above, once; with --files only those files. reject sends the run on with --feedback. discard takes nothing over; the work stays under a ref.
To take the work over by hand, work in its folder and accept it then: what is there counts.`,
		Example: `pawl review r7k2m9x
pawl review r7k2m9x accept
pawl review r7k2m9x accept --files src/a.go,src/b.go
pawl review r7k2m9x reject --feedback "keep the old endpoint"`,
		Args:              between(1, "RUN", "accept|reject|discard"),
		ValidArgsFunction: a.completeReview,
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := wantRun(args[0])
			if err != nil {
				return err
			}
			if len(args) == 1 {
				return a.with(cmd, viewing, func(ctx context.Context, s *session) error { return a.printReview(ctx, s, id) })
			}
			v.Verdict = machine.Verdiction(args[1])
			return a.with(cmd, deciding, func(ctx context.Context, s *session) error { return a.judge(ctx, s, id, v) })
		},
	}
	cmd.Flags().StringVar(&v.Feedback, "feedback", "", "what the run is to do next (reject), or a remark")
	cmd.Flags().StringSliceVar(&v.Files, "files", nil, "take over only these FILES or folders (accept)")
	return cmd
}

// completeReview offers runs, then verdicts.
func (a *app) completeReview(cmd *cobra.Command, args []string, start string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return a.completeInbox(engine.KindReview)(cmd, args, start)
	}
	return []cobra.Completion{"accept", "reject", "discard"}, cobra.ShellCompDirectiveNoFileComp
}

func (a *app) judge(ctx context.Context, s *session, id machine.RunID, v engine.Review) error {
	if err := s.Review(ctx, id, v); err != nil {
		return a.late("review", string(id), err)
	}
	card, err := s.Engine.ReviewCard(ctx, id)
	if err != nil {
		return err
	}
	sentence := map[machine.Verdiction]string{
		machine.ReviewAccept:  fmt.Sprintf("Accepted the work of %s.", id),
		machine.ReviewReject:  fmt.Sprintf("Sent %s on with your feedback.", id),
		machine.ReviewDiscard: fmt.Sprintf("Discarded the work of %s; it stays under refs/pawl/kept/%s in the private clone.", id, id),
	}[v.Verdict]
	run := card.Parent
	if v.Verdict == machine.ReviewReject {
		run = id
	}
	if card.Standing == machine.ChildAdopted || v.Verdict == machine.ReviewDiscard { // nothing is left to carry out
		if card.Standing == machine.ChildAdopted {
			sentence = fmt.Sprintf("The work of %s is in the branch of %s now.", id, card.Parent)
		}
		if a.json {
			return object(a.out(), decision{ID: string(id), Run: run, Decision: string(v.Verdict)})
		}
		fmt.Fprintln(a.out(), line(sentence, 0))
		return nil
	}
	return a.decided(ctx, s, run, string(id), string(v.Verdict), sentence)
}

func (a *app) printReview(ctx context.Context, s *session, id machine.RunID) error {
	c, err := s.Engine.ReviewCard(ctx, id)
	if err != nil {
		return err
	}
	if a.json {
		return object(a.out(), c)
	}
	w := a.out()
	fmt.Fprintf(w, "run %s, delegated by %s: %s\n", c.Child, c.Parent, c.Standing)
	fmt.Fprintf(w, "goal:   %s\n", line(c.Goal, 0))
	if c.Path != "" {
		fmt.Fprintf(w, "work:   %s (branch %s)\n", line(c.Path, 0), line(c.Branch, 0))
	}
	if c.Report == nil {
		fmt.Fprintf(w, "It is still at work: `%s` shows how far it is.\n", a.command("log", string(id)))
		return nil
	}
	claim, _ := safe.Block(c.Claim)
	fmt.Fprintf(w, "\nIt claims:\n%s\n", indented(claim, "  "))
	receipts, _ := safe.Block(c.Receipts)
	fmt.Fprintf(w, "\nOn record:\n%s", indented(receipts, "  "))
	if len(c.Conflicts) > 0 {
		fmt.Fprintf(w, "\nIt conflicts with %s now, in: %s\n", c.Parent, line(strings.Join(c.Conflicts, ", "), 0))
	}
	for _, f := range c.Forecast {
		fmt.Fprintf(w, "\nIf the work of %s is taken over first, this conflicts in: %s\n", f.With, line(strings.Join(f.Files, ", "), 0))
	}
	if c.Trouble != "" {
		fmt.Fprintf(w, "\nThe last try came to nothing: %s\n", line(c.Trouble, 0))
	}
	if c.Blocked != "" {
		fmt.Fprintf(w, "\nIt cannot be taken over now: %s\n", line(c.Blocked, 0))
	}
	diff, found := safe.Block(c.Diff)
	fmt.Fprintf(w, "\n%s", diff)
	if found.Any() {
		a.say("pawl: %s", found.Warning())
	}
	if !c.Settled() {
		fmt.Fprintf(w, "\ndecide: %s accept | reject --feedback TEXT | discard\n", a.command("review", string(id)))
	}
	return nil
}

func indented(s, by string) string {
	if strings.TrimSpace(s) == "" {
		return by + "nothing\n"
	}
	return by + strings.ReplaceAll(strings.TrimRight(s, "\n"), "\n", "\n"+by) + "\n"
}
