package headless

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"pawl/engine"
	"pawl/engine/machine"
)

// decision is what a deciding command has recorded.
type decision struct {
	ID       string        `json:"id"`
	Run      machine.RunID `json:"run"`
	Decision string        `json:"decision"`
	Owner    string        `json:"owner"`          // who carries it out; "" if nobody drives the run
	Next     string        `json:"next,omitempty"` // then this command does
}

// decided tells what was recorded, and who carries it out.
func (a *app) decided(ctx context.Context, s *session, run machine.RunID, id, word, sentence string) error {
	owner, next := a.carriedOut(ctx, s, run)
	if a.json {
		return object(a.out(), decision{ID: id, Run: run, Decision: word, Owner: owner, Next: next})
	}
	fmt.Fprintln(a.out(), line(sentence, 0))
	if next != "" {
		fmt.Fprintf(a.out(), "Nobody drives run %s now: `%s` carries it out.\n", run, next)
	}
	return nil
}

func (a *app) approveCommand() *cobra.Command {
	var digest string
	cmd := &cobra.Command{
		Use:   "approve APPROVAL",
		Short: "Let exactly one proposed action run",
		Long: `Let exactly the action run that an approval asks about. The grant is bound to a digest of what was shown: the command, its directory, its scripts. Should any of it change before it runs, you are asked again.
"pawl show APPROVAL" prints what will run.`,
		Args:              exactly("APPROVAL"),
		ValidArgsFunction: a.completeInbox(engine.KindApproval),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := want(idApproval, args[0]); err != nil {
				return err
			}
			id := machine.ApprovalID(args[0])
			var shown machine.Digest
			if digest != "" {
				if err := shown.UnmarshalText([]byte(digest)); err != nil {
					return usage("--digest does not name a digest", err.Error(), "`pawl show "+args[0]+" --json` prints it")
				}
			}
			return a.with(cmd, deciding, func(ctx context.Context, s *session) error {
				card, err := s.ApprovalCard(ctx, id)
				if err != nil {
					return a.late(cmd.Name(), args[0], pendingProblem(args[0], err))
				}
				if err := s.Approve(ctx, id, shown); err != nil {
					return a.late(cmd.Name(), args[0], err)
				}
				return a.decided(ctx, s, id.Run(), args[0], "approved", fmt.Sprintf("Approved %s: %s", id, card.Summary))
			})
		},
	}
	cmd.Flags().StringVar(&digest, "digest", "", "only if what would run has this DIGEST")
	return cmd
}

// pendingProblem words the absence of an approval as what the command found:
// something that nobody can decide.
func pendingProblem(id string, err error) error {
	p := explain(err)
	if strings.HasPrefix(p.What, "there is no ") {
		return &Problem{What: id + " is not pending, so nothing was changed", Why: p.What + " in this ledger", Next: p.Next, Err: err, late: true}
	}
	return err
}

func (a *app) denyCommand() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:               "deny APPROVAL",
		Short:             "Refuse a proposed action, with a word to the model",
		Args:              exactly("APPROVAL"),
		ValidArgsFunction: a.completeInbox(engine.KindApproval),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := want(idApproval, args[0]); err != nil {
				return err
			}
			id := machine.ApprovalID(args[0])
			return a.with(cmd, deciding, func(ctx context.Context, s *session) error {
				if err := s.Deny(ctx, id, reason); err != nil {
					return a.late(cmd.Name(), args[0], pendingProblem(args[0], err))
				}
				return a.decided(ctx, s, id.Run(), args[0], "denied", fmt.Sprintf("Denied %s. It was not run; other approvals are untouched.", id))
			})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "what the model is told")
	return cmd
}

func (a *app) answerCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "answer QUESTION TEXT...",
		Short: "Answer a question, or say how a limit is to be treated",
		Example: `pawl answer r7k2m9x.q1 use the old endpoint
pawl answer r7k2m9x.q2 extend 5
pawl answer r7k2m9x.q2 stop`,
		Args:              atLeast("QUESTION", "TEXT"),
		ValidArgsFunction: a.completeInbox(engine.KindQuestion, engine.KindBudget, engine.KindLimit, engine.KindDrift, engine.KindConflict, engine.KindOverflow),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := want(idQuestion, args[0]); err != nil {
				return err
			}
			id, text := machine.QuestionID(args[0]), strings.Join(args[1:], " ")
			return a.with(cmd, deciding, func(ctx context.Context, s *session) error {
				if err := s.Answer(ctx, id, text); err != nil {
					return a.late(cmd.Name(), args[0], pendingProblem(args[0], err))
				}
				return a.decided(ctx, s, id.Run(), args[0], text, fmt.Sprintf("Answered %s.", id))
			})
		},
	}
}
