package headless

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"pawl/engine"
	"pawl/engine/machine"
	"pawl/views/safe"
)

func (a *app) diffCommand() *cobra.Command {
	var raw bool
	cmd := &cobra.Command{
		Use:   "diff RUN",
		Short: "Print what a run has changed so far",
		Long: `Print what a run has changed so far against the commit it started from, committed or not.
Control characters in it are shown as text, so that it is safe to look at; --raw prints the exact bytes, as "git apply" wants them.`,
		Args:              exactly("RUN"),
		ValidArgsFunction: a.completeRuns,
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := wantRun(args[0])
			if err != nil {
				return err
			}
			return a.with(cmd, viewing, func(ctx context.Context, s *session) error {
				text, err := s.Diff(ctx, id)
				if err != nil {
					return err
				}
				switch {
				case a.json:
					return object(a.out(), struct {
						Run  machine.RunID `json:"run"`
						Diff string        `json:"diff"`
					}{id, text})
				case raw:
					_, err = io.WriteString(a.out(), text)
				case text == "":
					a.say("Run %s has changed nothing so far.", id)
				default:
					shown, found := safe.Block(text)
					if _, err = io.WriteString(a.out(), shown); err == nil && found.Any() {
						a.say("pawl: %s", found.Warning())
					}
				}
				return err
			})
		},
	}
	cmd.Flags().BoolVar(&raw, "raw", false, "print the exact bytes")
	return cmd
}

func (a *app) landCommand() *cobra.Command {
	var onto string
	var dry bool
	cmd := &cobra.Command{
		Use:   "land RUN",
		Short: "Bring a run's work onto your branch",
		Long: `Bring a run's work onto your branch, once: by fast-forward or merge in your checkout if that branch is checked out and clean, by moving the ref if it is not checked out. Anything else is refused, with what to do.
What would happen is printed first; --dry-run ends there.`,
		Args:              exactly("RUN"),
		ValidArgsFunction: a.completeRuns,
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := wantRun(args[0])
			if err != nil {
				return err
			}
			how := deciding
			if dry {
				how = viewing
			}
			return a.with(cmd, how, func(ctx context.Context, s *session) error { return a.land(ctx, s, id, onto, dry) })
		},
	}
	cmd.Flags().StringVar(&onto, "onto", "", "the BRANCH to land on (default: the one the run started from)")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "only print what would happen")
	return cmd
}

func (a *app) land(ctx context.Context, s *session, id machine.RunID, onto string, dry bool) error {
	v, err := s.LandPreview(ctx, id, onto)
	if err != nil {
		return err
	}
	if !a.json {
		a.tellLanding(v)
	}
	if dry || v.Done {
		if a.json {
			return object(a.out(), v)
		}
		return nil
	}
	done, err := s.Land(ctx, id, onto)
	if err != nil {
		return err
	}
	if a.json {
		return object(a.out(), done)
	}
	fmt.Fprintf(a.out(), "Landed: %s is now at %s.\n", line(done.Onto, 0), line(done.Commit, 0))
	return nil
}

func (a *app) tellLanding(v engine.LandView) {
	w := a.out()
	if v.Done {
		fmt.Fprintf(w, "Run %s has landed on %s as %s.\n", v.Run, line(v.Onto, 0), line(v.Commit, 0))
		return
	}
	fmt.Fprintf(w, "Run %s, branch %s, onto %s: %s\n", v.Run, line(v.Branch, 0), line(v.Onto, 0), v.How)
	for _, part := range []struct {
		title string
		files []string
	}{{"changes", v.Files}, {"not committed yet, committed first", v.Leftovers}, {"conflicts", v.Conflicts}} {
		if len(part.files) == 0 {
			continue
		}
		fmt.Fprintf(w, "  %s:\n", part.title)
		for _, f := range part.files {
			fmt.Fprintf(w, "    %s\n", line(f, 0))
		}
	}
	if v.Blocked != "" {
		fmt.Fprintf(w, "  not now: %s\n", line(v.Blocked, 0))
	}
}
