package headless

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"pawl/engine"
	"pawl/engine/machine"
)

func (a *app) worktreesCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "worktrees",
		Short: "List the runs' workspaces, and what is in them alone",
		Long: `List the workspaces below the state directory: of which run each is, what in it exists nowhere else (changes that are not committed, commits that are in no branch of yours), and folders that belong to no run. It changes nothing.
"pawl clean" removes those that hold nothing of the kind.`,
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.looking(cmd, func() error { return nil }, a.worktrees)
		},
	}
}

func (a *app) worktrees(ctx context.Context, s *session) error {
	all, strangers, err := s.Worktrees(ctx)
	if err != nil {
		return err
	}
	if a.json {
		for _, w := range all {
			if err := object(a.out(), w); err != nil {
				return err
			}
		}
		for _, p := range strangers {
			if err := object(a.out(), map[string]any{"path": p, "keep": []string{"no run has it"}}); err != nil {
				return err
			}
		}
		return nil
	}
	if len(all)+len(strangers) == 0 {
		fmt.Fprintln(a.out(), "No run has a workspace.")
	}
	for _, w := range all {
		state := w.State
		if state == "" {
			state = "not in this ledger"
		}
		fmt.Fprintf(a.out(), "%s  %s  %s\n", w.Run, state, line(w.Workspace.Path, 0))
		switch {
		case w.Gone != "":
			fmt.Fprintf(a.out(), "    %s; it is made again when the run goes on\n", line(w.Gone, 0))
		case len(w.Keep) == 0:
			fmt.Fprintln(a.out(), "    nothing in it exists here alone")
		default:
			for _, k := range w.Keep {
				fmt.Fprintf(a.out(), "    %s\n", line(k, 0))
			}
		}
	}
	for _, p := range strangers {
		fmt.Fprintf(a.out(), "?  %s\n    no run has it, and pawl leaves it alone\n", line(p, 0))
	}
	return nil
}

func (a *app) cleanCommand() *cobra.Command {
	var save, try bool
	cmd := &cobra.Command{
		Use:   "clean [RUN...]",
		Short: "Remove workspaces that hold nothing of their own",
		Long: `Remove the folders of runs that have ended, all of them if none is named. What is not committed, commits that have not landed, a rebase that is under way and what cannot be told are reasons to leave a folder alone, and are named.
--save puts such work under refs/pawl/saved/RUN/ in your repository first; "git log refs/pawl/saved/RUN/files" shows it. Snapshots stay: a folder that was removed is made again if its run goes on.`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: a.completeRuns,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.with(cmd, deciding, func(ctx context.Context, s *session) error { return a.clean(ctx, s, args, save, try) })
		},
	}
	cmd.Flags().BoolVar(&save, "save", false, "put what exists nowhere else under refs in your repository first")
	cmd.Flags().BoolVar(&try, "dry-run", false, "only say what would be kept, and why")
	return cmd
}

func (a *app) clean(ctx context.Context, s *session, args []string, save, try bool) error {
	var ids []machine.RunID
	for _, arg := range args {
		if err := want(idRun, arg); err != nil {
			return err
		}
		ids = append(ids, machine.RunID(arg))
	}
	if len(ids) == 0 {
		all, _, err := s.Worktrees(ctx)
		if err != nil {
			return err
		}
		for _, w := range all {
			if w.Gone == "" && w.State != "" {
				ids = append(ids, w.Run)
			}
		}
	}
	kept := 0
	for _, id := range ids {
		c, err := s.Clean(ctx, id, save, try)
		if err != nil {
			return err
		}
		if !c.Removed && len(c.Keep) > 0 {
			kept++
		}
		if a.json {
			err = object(a.out(), c)
		} else {
			a.tellCleaned(c, try)
		}
		if err != nil {
			return err
		}
	}
	if len(ids) == 0 && !a.json {
		fmt.Fprintln(a.out(), "There is no workspace to remove.")
	}
	if kept > 0 && len(args) > 0 && !try {
		return &Problem{
			What: count(kept, "workspace") + " kept", Why: "they hold what exists nowhere else, or their runs go on",
			Next: "land the work with `pawl land`, or put it under a ref with --save",
		}
	}
	return nil
}

func (a *app) tellCleaned(c engine.Cleaned, try bool) {
	switch {
	case c.Removed:
		fmt.Fprintf(a.out(), "%s  removed %s\n", c.Run, line(c.Path, 0))
	case len(c.Keep) == 0 && try:
		fmt.Fprintf(a.out(), "%s  would be removed\n", c.Run)
	default:
		fmt.Fprintf(a.out(), "%s  kept: %s\n", c.Run, line(strings.Join(c.Keep, "; "), 0))
	}
	for _, ref := range c.Saved {
		fmt.Fprintf(a.out(), "    saved as %s\n", line(ref, 0))
	}
}
