package headless

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"pawl/engine"
	"pawl/engine/machine"
)

func (a *app) treeCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "tree [RUN]",
		Short: "Show a run and the runs it delegated to",
		Long: `Show a run and, below it, the runs that it delegated to, with what each of them spends, waits for and came to.
Without RUN every tree is shown that holds more than one run.`,
		Args:              between(0, "RUN"),
		ValidArgsFunction: a.completeRuns,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.looking(cmd, func() error { return nil }, func(ctx context.Context, s *session) error {
				var ids []machine.RunID
				if len(args) == 1 {
					id, err := wantRun(args[0])
					if err != nil {
						return err
					}
					ids = append(ids, id)
				} else {
					runs, err := allRuns(ctx, s, "")
					if err != nil {
						return err
					}
					ids = rootsOf(runs)
				}
				return a.printTrees(ctx, s, ids)
			})
		},
	}
}

// rootsOf lists the first runs of trees that hold more than one, newest first.
func rootsOf(runs []engine.RunLine) []machine.RunID {
	kids := map[machine.RunID]bool{}
	for _, l := range runs {
		if l.Parent != "" {
			kids[l.Parent] = true
		}
	}
	var out []machine.RunID
	for _, l := range runs {
		if l.Parent == "" && kids[l.ID] {
			out = append(out, l.ID)
		}
	}
	return out
}

func (a *app) printTrees(ctx context.Context, s *session, ids []machine.RunID) error {
	t := table{head: []string{"RUN", "STATE", "REVIEW", "TURNS", "SPENT", "NEEDS", "UNKNOWN", "NOTE", "GOAL"}}
	for _, id := range ids {
		lines, err := s.Tree(ctx, id)
		if err != nil {
			return err
		}
		for _, l := range lines {
			if a.json {
				if err := object(a.out(), l); err != nil {
					return err
				}
				continue
			}
			review := string(l.Standing)
			if l.Flags > 0 {
				review += fmt.Sprintf(", %d !", l.Flags)
			}
			t.add(strings.Repeat("  ", l.Depth)+string(l.ID), string(l.State), review, fmt.Sprint(l.Turns), money(l.InAll), fmt.Sprint(l.Needs), fmt.Sprint(l.Unknown),
				line(l.Note, a.noteWidth()), l.Goal)
		}
	}
	if a.json {
		return nil
	}
	if len(t.rows) == 0 {
		a.say("No run has delegated anything. A model does so with the tool delegate; `pawl list` shows all runs.")
		return nil
	}
	return t.write(a.out(), a.o.Width)
}
