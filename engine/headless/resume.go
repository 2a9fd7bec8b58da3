package headless

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"pawl/engine"
	"pawl/engine/machine"
)

func (a *app) resumeCommand() *cobra.Command {
	var all, wait bool
	cmd := &cobra.Command{
		Use:   "resume [RUN...]",
		Short: "Go on with runs that were interrupted or waited",
		Long: `Go on, without a screen, with runs that nobody drives: they were interrupted, or you have decided what they waited for. It makes no difference how they ended: the same record is read and the same question asked, what comes next?
It ends when every run rests: 0 all are done, 3 one waits for you, 4 one failed. With --wait it stays for your decisions, taken on the screen or by commands elsewhere, until every run has ended.`,
		Example: `pawl resume
pawl resume r7k2m9x
pawl resume --all --wait`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if all && len(args) > 0 {
				return usage("--all and run ids exclude each other", "--all means every run that nobody drives", "leave one of them away")
			}
			return a.resume(cmd, args, all, wait)
		},
		ValidArgsFunction: a.completeRuns,
	}
	cmd.Flags().BoolVar(&all, "all", false, "every run that nobody drives")
	cmd.Flags().BoolVar(&wait, "wait", false, "stay for decisions instead of ending with 3")
	return cmd
}

func (a *app) resume(cmd *cobra.Command, args []string, all, wait bool) error {
	ctx := cmd.Context()
	for _, id := range args {
		if err := want(idRun, id); err != nil {
			return err
		}
	}
	s, err := a.open(ctx, cmd.Name(), deciding)
	if err != nil {
		return err
	}
	lines, err := a.chosen(ctx, s, args, all)
	if err != nil {
		return errors.Join(err, s.close())
	}
	if len(lines) == 0 {
		a.say("Nothing to resume: no run is without an owner.")
		return s.close()
	}
	ids := make([]machine.RunID, len(lines))
	for i, l := range lines {
		ids[i] = l.ID
	}
	d := a.newDriver(s, wait, ids...)
	for _, l := range lines {
		if err := a.introduce(ctx, d, l); err != nil {
			return errors.Join(err, s.close())
		}
	}
	return d.finish(ctx, d.drive(ctx))
}

// chosen are the runs to resume. Without a word of the operator it is the one
// that nobody drives; of several it would have to guess, so it asks.
func (a *app) chosen(ctx context.Context, s *session, args []string, all bool) ([]engine.RunLine, error) {
	ids := make([]machine.RunID, 0, len(args))
	for _, arg := range args {
		if !slices.Contains(ids, machine.RunID(arg)) {
			ids = append(ids, machine.RunID(arg))
		}
	}
	if len(args) == 0 {
		var err error
		if ids, err = s.Orphans(ctx); err != nil {
			return nil, err
		}
	}
	lines := make([]engine.RunLine, 0, len(ids))
	for _, id := range ids {
		l, err := s.Run(ctx, id)
		if err != nil {
			return nil, err
		}
		lines = append(lines, l)
	}
	if len(args) > 0 {
		return lines, nil
	}
	slices.SortStableFunc(lines, func(x, y engine.RunLine) int { return y.Operator.Compare(x.Operator) })
	if all || len(lines) < 2 {
		return lines, nil
	}
	return nil, a.whichOne(lines)
}

func (a *app) whichOne(lines []engine.RunLine) error {
	const shown = 8
	var names []string
	for _, l := range lines[:min(len(lines), shown)] {
		names = append(names, fmt.Sprintf("%s (%s, %s: %s)", l.ID, l.State, a.stamp(l.Operator), line(l.Goal, 40)))
	}
	if len(lines) > shown {
		names = append(names, fmt.Sprintf("and %d more", len(lines)-shown))
	}
	return usage(fmt.Sprintf("%d runs could be resumed", len(lines)), "newest word of yours first: "+strings.Join(names, "; "),
		fmt.Sprintf("name one, as in `pawl resume %s`, or give --all", lines[0].ID))
}

// introduce names a run and its last line before anything of it moves.
func (a *app) introduce(ctx context.Context, d *driver, l engine.RunLine) error {
	fmt.Fprintf(d.w, "run %s: %s\n", l.ID, line(l.Goal, a.o.Width))
	rows, err := d.s.Timeline(ctx, l.ID, 0, true, lastRows)
	if err != nil {
		return err
	}
	for _, r := range slices.Backward(rows) {
		d.seen[l.ID] = max(d.seen[l.ID], r.N)
	}
	for _, r := range slices.Backward(rows) {
		if r.Tone != "dim" {
			fmt.Fprintf(d.w, "  last: %s, %s\n", line(r.Title, a.o.Width), a.stamp(r.At))
			break
		}
	}
	return nil
}

// lastRows is how far back the last telling line of a run is looked for.
const lastRows = 50
