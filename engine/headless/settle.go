package headless

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"pawl/engine"
	"pawl/engine/machine"
)

// choices are the operator's ways out, in the order in which they are shown.
var choices = []machine.Choice{
	machine.ChooseHappened, machine.ChooseRetry, machine.ChooseCompensate, machine.ChooseAbandon, machine.ChooseWait, machine.ChooseProbe,
}

func (a *app) settleCommand() *cobra.Command {
	var words engine.SettleWords
	cmd := &cobra.Command{
		Use:   "settle EFFECT|RUN CHOICE",
		Short: "Say what became of an effect whose outcome is unknown",
		Long: `Say what became of an effect whose outcome nobody could find out, or what is to be done about it. CHOICE is one of
  happened    it is there: the run goes on with it
  retry       it is not there: do it again
  compensate  undo it by its compensation
  abandon     leave it unknown and go on
  wait        hold the run; it is still looked at
  probe       look at the world once more, now
"pawl show EFFECT" prints what is known, what each choice costs if you are wrong, and the exact text the model will get. "pawl settle RUN compensate" undoes a whole run that is not at work, its newest effect first. What is proven and has a compensation is undone by itself; at anything else it stops and asks, in the inbox.
happened and retry are your word against a missing record: they need --reason, and the effect's short id with --confirm.`,
		Example: `pawl show r7k2m9x.e7
pawl settle r7k2m9x.e7 happened --reason "ticket 12 is in the list" --confirm e7
pawl settle r7k2m9x compensate --reason "wrong customer"`,
		Args: exactly("EFFECT", "CHOICE"),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, start string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 1 {
				return choiceNames(), cobra.ShellCompDirectiveNoFileComp
			}
			return a.completeInbox(engine.KindAmbiguous, engine.KindContradicted)(cmd, args, start)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if want(idRun, args[0]) == nil && args[1] == string(machine.ChooseCompensate) {
				return a.with(cmd, deciding, func(ctx context.Context, s *session) error {
					return a.rollback(ctx, s, machine.RunID(args[0]), words.Reason)
				})
			}
			if err := want(idEffect, args[0]); err != nil {
				return err
			}
			id, choice := machine.EffectID(args[0]), machine.Choice(args[1])
			if !slices.Contains(choices, choice) {
				return usage(fmt.Sprintf("%q is no choice", args[1]), "an effect is settled by one of "+strings.Join(choiceNames(), ", "),
					"`pawl show "+args[0]+"` tells what each one means here")
			}
			return a.with(cmd, deciding, func(ctx context.Context, s *session) error { return a.settle(ctx, s, id, choice, words) })
		},
	}
	cmd.Flags().StringVar(&words.Reason, "reason", "", "why you say so; it is kept beside your name")
	cmd.Flags().StringVar(&words.Confirm, "confirm", "", "the effect's short id, typed out")
	return cmd
}

func choiceNames() []string {
	names := make([]string, len(choices))
	for i, c := range choices {
		names[i] = string(c)
	}
	return names
}

func (a *app) settle(ctx context.Context, s *session, id machine.EffectID, choice machine.Choice, words engine.SettleWords) error {
	if _, err := s.Run(ctx, id.Run()); err != nil {
		return a.late("settle", string(id), pendingProblem(string(id), err))
	}
	if err := s.Settle(ctx, id, choice, words); err != nil {
		return a.late("settle", string(id), pendingProblem(string(id), err))
	}
	card, err := s.EffectCard(ctx, id)
	if err != nil {
		return err
	}
	return a.decided(ctx, s, id.Run(), string(id), string(choice), fmt.Sprintf("Settled %s as “%s”: %s", id, choice, card.Summary))
}

// rollback asks for the undoing of a whole run.
func (a *app) rollback(ctx context.Context, s *session, id machine.RunID, reason string) error {
	if _, err := s.Run(ctx, id); err != nil {
		return a.late("settle", string(id), pendingProblem(string(id), err))
	}
	if err := s.Rollback(ctx, id, reason); err != nil {
		return a.late("settle", string(id), pendingProblem(string(id), err))
	}
	return a.decided(ctx, s, id, string(id), string(machine.ChooseCompensate), fmt.Sprintf("Run %s is being undone, its newest effect first", id))
}
