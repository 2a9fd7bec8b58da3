package headless

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"pawl/engine/machine"
)

func (a *app) rememberCommand() *cobra.Command {
	var repo string
	cmd := &cobra.Command{
		Use:   "remember TEXT",
		Short: "Keep a lasting preference that every new run is told",
		Long: `Keep a lasting preference, in at most 500 bytes, that every run is told which begins from now on; with --repo only runs on that folder. It is a preference: the goal, the constraints and what you tell a run go before it, and it gives no permission.
Runs that have begun are not told; ` + "`pawl tell`" + ` reaches them. A project speaks for itself by a file AGENTS.md, which runs read when they begin.`,
		Example: `pawl remember "Commit messages are in English and say why."
pawl remember "Integration tests need make up first." --repo ~/src/thing`,
		Args: exactly("TEXT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.with(cmd, making, func(ctx context.Context, s *session) error {
				id, err := s.Remember(ctx, args[0], repo)
				if err != nil {
					return err
				}
				return a.noted(id, "remembered", fmt.Sprintf("%s is remembered; `%s` takes it back.", id, a.command("forget", id)))
			})
		},
	}
	cmd.Flags().StringVar(&repo, "repo", "", "only for runs on the folder DIR")
	return cmd
}

func (a *app) forgetCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "forget ID",
		Short: "Take a lasting preference back",
		Long:  `Take a lasting preference back, by its id from ` + "`pawl memories`" + `. Runs that were told it keep it; the ledger keeps that it once held.`,
		Args:  exactly("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.with(cmd, deciding, func(ctx context.Context, s *session) error {
				if err := s.Forget(ctx, args[0]); err != nil {
					return err
				}
				return a.noted(args[0], "forgotten", args[0]+" is forgotten.")
			})
		},
	}
}

func (a *app) memoriesCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "memories",
		Short: "List your lasting preferences",
		Long:  `List the lasting preferences that new runs are told. What a run was told stands in its context: ` + "`pawl context RUN --section memory`" + `.`,
		Args:  exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.with(cmd, viewing, func(ctx context.Context, s *session) error {
				m, err := s.Memories(ctx)
				if err != nil {
					return err
				}
				return a.tellMemories(m)
			})
		},
	}
}

// noted tells what was done to an entry.
func (a *app) noted(id, word, sentence string) error {
	if a.json {
		return object(a.out(), map[string]string{"id": id, "decision": word})
	}
	fmt.Fprintln(a.out(), line(sentence, 0))
	return nil
}

func (a *app) tellMemories(m machine.Memory) error {
	if a.json {
		for _, x := range m.Entries {
			if err := object(a.out(), x); err != nil {
				return err
			}
		}
		return nil
	}
	if len(m.Entries) == 0 {
		a.say("Nothing is remembered yet: `pawl remember TEXT` keeps a preference for every new run.")
		return nil
	}
	t := table{head: []string{"ID", "FOR", "TEXT"}}
	for _, x := range m.Entries {
		where := x.Repo
		if where == "" {
			where = "all"
		}
		t.add(x.ID, where, x.Text)
	}
	return t.write(a.out(), a.o.Width)
}
