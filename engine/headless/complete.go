package headless

import (
	"context"
	"slices"

	"github.com/spf13/cobra"
)

// completer offers arguments to the shell.
type completer = func(cmd *cobra.Command, args []string, start string) ([]string, cobra.ShellCompDirective)

// completeRuns offers the ids of runs, the newest first.
func (a *app) completeRuns(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	var found []string
	if len(args) > 0 && cmd.Name() != "resume" {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	a.offer(cmd, func(ctx context.Context, s *session) {
		lines, err := allRuns(ctx, s, "")
		if err != nil {
			return
		}
		for _, l := range lines {
			found = append(found, string(l.ID)+"\t"+line(string(l.State)+": "+l.Goal, 60))
		}
	})
	return found, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

// completeInbox offers the ids of inbox items of some kinds.
func (a *app) completeInbox(kinds ...string) completer {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		var found []string
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		a.offer(cmd, func(ctx context.Context, s *session) {
			items, err := s.Inbox(ctx)
			if err != nil {
				return
			}
			for _, i := range items {
				if slices.Contains(kinds, i.Kind) {
					found = append(found, i.ID+"\t"+line(i.Summary, 60))
				}
			}
		})
		return found, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	}
}

// offer looks at the ledger for a completion. A shell in the middle of a line
// is no place for errors: what cannot be read offers nothing.
func (a *app) offer(cmd *cobra.Command, f func(ctx context.Context, s *session)) {
	ctx := cmd.Context()
	if ctx == nil {
		ctx = context.Background()
	}
	s, err := a.open(ctx, cmd.Name(), viewing)
	if err != nil {
		return
	}
	f(ctx, s)
	_ = s.close()
}
