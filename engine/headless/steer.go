package headless

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"pawl/engine"
	"pawl/engine/machine"
)

func (a *app) tellCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "tell RUN TEXT...",
		Short: "Give a run an instruction that binds it from now on",
		Long: `Give a running or finished run an instruction. It binds: it stands, word for word, in everything the model is shown from now on.
A finished run is taken up again.`,
		Args:              atLeast("RUN", "TEXT"),
		ValidArgsFunction: a.completeRuns,
		RunE: func(cmd *cobra.Command, args []string) error {
			text := strings.Join(args[1:], " ")
			return a.steer(cmd, args[0], "told", func(ctx context.Context, s *session, id machine.RunID) (string, error) {
				return fmt.Sprintf("Told %s. It reads this before its next step.", id), s.Tell(ctx, id, text)
			})
		},
	}
}

func (a *app) pauseCommand() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:               "pause RUN",
		Short:             "Hold every action that a run's model proposes",
		Args:              exactly("RUN"),
		ValidArgsFunction: a.completeRuns,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.steer(cmd, args[0], "paused", func(ctx context.Context, s *session, id machine.RunID) (string, error) {
				return fmt.Sprintf("Paused %s: nothing its model proposes is sent from now on. Nothing is lost; `%s` lifts the pause.", id, a.command("unpause", string(id))),
					s.Pause(ctx, id, reason)
			})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why; it is kept beside your name")
	return cmd
}

func (a *app) unpauseCommand() *cobra.Command {
	return &cobra.Command{
		Use:               "unpause RUN",
		Short:             "Let a paused run go on",
		Args:              exactly("RUN"),
		ValidArgsFunction: a.completeRuns,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.steer(cmd, args[0], "unpaused", func(ctx context.Context, s *session, id machine.RunID) (string, error) {
				return fmt.Sprintf("Lifted the pause of %s.", id), s.Unpause(ctx, id)
			})
		},
	}
}

func (a *app) cancelCommand() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "cancel RUN",
		Short: "Stop a run for good",
		Long: `Stop a run for good. What it did stays as it is, its branch and files too. What is in flight is not undone, and not assumed to have failed: it stays on record as unknown until its end is known.
To stop a run for a while, use "pawl pause".`,
		Args:              exactly("RUN"),
		ValidArgsFunction: a.completeRuns,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.steer(cmd, args[0], "cancelled", func(ctx context.Context, s *session, id machine.RunID) (string, error) {
				if err := s.Cancel(ctx, id, reason); err != nil {
					return "", err
				}
				lines, err := s.Tree(ctx, id)
				if err != nil {
					return "", err
				}
				if len(lines) == 1 {
					return fmt.Sprintf("Run %s is %s.", id, lines[0].Note), nil
				}
				unknown := 0
				for _, l := range lines {
					unknown += l.Unknown
				}
				return fmt.Sprintf("Run %s and the %d below it: cancelled, %d unknown.", id, len(lines)-1, unknown), nil
			})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why; it is kept beside your name")
	return cmd
}

// steer records a word about a whole run.
func (a *app) steer(cmd *cobra.Command, arg, word string, f func(ctx context.Context, s *session, id machine.RunID) (string, error)) error {
	id, err := wantRun(arg)
	if err != nil {
		return err
	}
	return a.with(cmd, deciding, func(ctx context.Context, s *session) error {
		sentence, err := f(ctx, s, id)
		if err != nil {
			return a.notSteered(ctx, s, id, err)
		}
		l, err := s.Run(ctx, id)
		if err != nil {
			return err
		}
		if (l.State == engine.Paused || l.State == engine.Cancelled) && l.Needs == 0 { // nothing is left to carry out
			if a.json {
				return object(a.out(), decision{ID: arg, Run: id, Decision: word, Owner: l.Owner})
			}
			fmt.Fprintln(a.out(), line(sentence, 0))
			return nil
		}
		return a.decided(ctx, s, id, arg, word, sentence)
	})
}

// notSteered adds what can be done to a refusal that has only a cause.
func (a *app) notSteered(ctx context.Context, s *session, id machine.RunID, err error) error {
	p := explain(err)
	l, rerr := s.Run(ctx, id)
	if rerr != nil || p.Err == nil || p.Why != "" {
		return err
	}
	next := fmt.Sprintf("`pawl show %s` tells more", id)
	if l.State == engine.Done || l.State == engine.Failed {
		next = fmt.Sprintf("`pawl tell %s TEXT` takes it up again, `pawl run GOAL` starts another", id)
	}
	return &Problem{What: p.What, Why: "nothing was changed; its state is " + string(l.State), Next: next, Err: err}
}
