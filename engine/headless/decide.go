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

// approval is how an action is agreed to.
type approval struct {
	digest, scope, edit string
}

func (a *app) approveCommand() *cobra.Command {
	var how approval
	cmd := &cobra.Command{
		Use:   "approve APPROVAL",
		Short: "Let exactly one proposed action run",
		Long: `Let exactly the action run that an approval asks about. The grant is bound to a digest of what was shown: the command, its directory, its scripts. Should any of it change before it runs, you are asked again.
"pawl show APPROVAL" prints what will run.
With --for the narrowest rule that covers the action is laid down too, for this run or this project, so that the same is not asked again; "pawl grants" lists such rules and takes them back.
With --edit another action runs in its place, and the model is told.`,
		Example: `pawl approve r7k2m9x.a1
pawl approve r7k2m9x.a1 --for run
pawl approve r7k2m9x.a1 --edit '{"command":"git push origin fix/retry"}'`,
		Args:              exactly("APPROVAL"),
		ValidArgsFunction: a.completeInbox(engine.KindApproval),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := want(idApproval, args[0]); err != nil {
				return err
			}
			shown, err := how.check(args[0])
			if err != nil {
				return err
			}
			return a.with(cmd, deciding, func(ctx context.Context, s *session) error {
				return a.approve(ctx, s, machine.ApprovalID(args[0]), shown, how)
			})
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&how.digest, "digest", "", "only if what would run has this DIGEST")
	fl.StringVar(&how.scope, "for", "", "do not ask for the same again: run or project")
	fl.StringVar(&how.edit, "edit", "", "let this run instead: the tool's arguments, whole, as a JSON object")
	return cmd
}

// check reads the flags of approve.
func (how approval) check(id string) (shown machine.Digest, err error) {
	if how.digest != "" {
		if err := shown.UnmarshalText([]byte(how.digest)); err != nil {
			return shown, usage("--digest does not name a digest", err.Error(), "`pawl show "+id+" --json` prints it")
		}
	}
	switch how.scope {
	case "", string(machine.GrantRun), string(machine.GrantProject):
	default:
		return shown, usage(fmt.Sprintf("--for cannot be %q", how.scope), "a grant holds for this run or for this project", "say --for run or --for project")
	}
	if how.scope != "" && how.edit != "" {
		return shown, usage("--for and --edit exclude each other", "what was edited is agreed to once", "approve the edit first; when it is proposed again, use --for")
	}
	return shown, nil
}

func (a *app) approve(ctx context.Context, s *session, id machine.ApprovalID, shown machine.Digest, how approval) error {
	card, err := s.ApprovalCard(ctx, id)
	if err != nil {
		return a.late("approve", string(id), pendingProblem(string(id), err))
	}
	said := fmt.Sprintf("Approved %s: %s", id, card.Summary)
	switch {
	case how.edit != "":
		next, err := s.Edit(ctx, id, shown, how.edit)
		if err != nil {
			return a.late("approve", string(id), err)
		}
		return a.decided(ctx, s, id.Run(), string(next), "edited", fmt.Sprintf("Edited %s: what you wrote is approved as %s and runs in its place. The model is told.", id, next))
	case how.scope != "":
		g, err := s.ApproveFor(ctx, id, shown, machine.GrantScope(how.scope))
		if err != nil {
			return a.late("approve", string(id), err)
		}
		said += fmt.Sprintf(". From now on in this %s, as grant %s: allow %s", g.Scope, g.Grant, g.Rule)
	default:
		if err := s.Approve(ctx, id, shown); err != nil {
			return a.late("approve", string(id), err)
		}
	}
	return a.decided(ctx, s, id.Run(), string(id), "approved", said)
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
