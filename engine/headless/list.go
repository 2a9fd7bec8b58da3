package headless

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"pawl/engine"
)

func (a *app) listCommand() *cobra.Command {
	var search string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List runs, newest first",
		Args:  exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.looking(cmd, func() error { return nil }, func(ctx context.Context, s *session) error {
				lines, err := allRuns(ctx, s, search)
				if err != nil {
					return err
				}
				return a.printRuns(lines, search)
			})
		},
	}
	cmd.Flags().StringVar(&search, "search", "", "only runs whose goal or id contains TEXT")
	return cmd
}

// allRuns reads every page of the list.
func allRuns(ctx context.Context, s *session, search string) ([]engine.RunLine, error) {
	const page = 500
	var all []engine.RunLine
	q := engine.RunsQuery{Search: search, Limit: page}
	for {
		lines, err := s.Runs(ctx, q)
		if err != nil {
			return nil, err
		}
		all = append(all, lines...)
		if len(lines) < page {
			return all, nil
		}
		q.Before = lines[len(lines)-1].ID
	}
}

func (a *app) printRuns(lines []engine.RunLine, search string) error {
	if a.json {
		for _, l := range lines {
			if err := object(a.out(), l); err != nil {
				return err
			}
		}
		return nil
	}
	if len(lines) == 0 && search != "" {
		a.say("No run has %s in its goal or id.", quote(search))
		return nil
	}
	if len(lines) == 0 {
		a.say("No runs. `pawl run GOAL` starts one, `pawl demo` shows one.")
		return nil
	}
	t := table{head: []string{"RUN", "STATE", "TURNS", "SPENT", "UPDATED", "GOAL", "NOTE"}}
	for _, l := range lines {
		t.add(string(l.ID), string(l.State), fmt.Sprint(l.Turns), money(l.Spend), a.stamp(l.Updated), line(l.Goal, a.noteWidth()), line(l.Note, a.noteWidth()))
	}
	return t.write(a.out(), a.o.Width)
}

// noteWidth bounds a note in a table, so that the goal beside it is seen.
func (a *app) noteWidth() int {
	if a.o.Width == 0 {
		return 0
	}
	return max(a.o.Width/4, 10)
}
