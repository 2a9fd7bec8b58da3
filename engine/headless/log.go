package headless

import (
	"context"
	"errors"
	"math"

	"github.com/spf13/cobra"

	"pawl/engine"
	"pawl/engine/machine"
)

func (a *app) logCommand() *cobra.Command {
	var follow bool
	var last int
	cmd := &cobra.Command{
		Use:               "log RUN",
		Short:             "Print what happened in a run, event by event",
		Long:              `Print what happened in a run, event by event, in the ledger's own order. With --follow it goes on as events come, whoever writes them, and ends when the run has ended.`,
		Args:              exactly("RUN"),
		ValidArgsFunction: a.completeRuns,
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := wantRun(args[0])
			if err != nil {
				return err
			}
			if last < 0 {
				return usage("--last counts events", "a negative number of them cannot be shown", "give 0 or more")
			}
			return a.with(cmd, viewing, func(ctx context.Context, s *session) error { return a.log(ctx, s, id, follow, last) })
		},
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on as events come, until the run has ended")
	cmd.Flags().IntVar(&last, "last", 0, "begin with the last N events (default: with the first)")
	return cmd
}

// logged is a timeline row as --json tells it, one a line.
type logged struct {
	Run machine.RunID `json:"run"`
	engine.TimelineRow
}

func (a *app) log(ctx context.Context, s *session, id machine.RunID, follow bool, last int) error {
	if _, err := s.Run(ctx, id); err != nil {
		return err
	}
	changes := s.Changes() // before the first look, so that nothing slips through between
	after, err := startOf(ctx, s, id, last)
	if err != nil {
		return err
	}
	for {
		if after, err = a.logFrom(ctx, s, id, after); err != nil || !follow {
			return stoppedFollowing(ctx, err)
		}
		l, err := s.Run(ctx, id)
		if err != nil {
			return stoppedFollowing(ctx, err)
		}
		switch l.State {
		case engine.Done, engine.Failed, engine.Cancelled:
			if l.Owner == "" {
				_, err = a.logFrom(ctx, s, id, after)
				return err
			}
		case engine.Running, engine.Waiting, engine.Interrupted, engine.Paused:
		}
		select {
		case <-changes:
		case <-ctx.Done():
			return nil
		}
	}
}

// stoppedFollowing: an interrupt is how following ends.
func stoppedFollowing(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// startOf is the number of the event before the last n; 0 to begin at the first.
func startOf(ctx context.Context, s *session, id machine.RunID, n int) (int64, error) {
	if n == 0 {
		return 0, nil
	}
	rows, err := s.Timeline(ctx, id, 0, true, n)
	if err != nil || len(rows) == 0 {
		return 0, err
	}
	first := int64(math.MaxInt64)
	for _, r := range rows {
		first = min(first, r.N)
	}
	return first - 1, nil
}

// logFrom prints the events after a number and returns the newest one's.
func (a *app) logFrom(ctx context.Context, s *session, id machine.RunID, after int64) (int64, error) {
	const page = 200
	for {
		rows, err := s.Timeline(ctx, id, after, false, page)
		if err != nil {
			return after, err
		}
		for _, r := range rows {
			after = r.N
			if a.json {
				if err := object(a.out(), logged{id, r}); err != nil {
					return after, err
				}
				continue
			}
			writeRow(a.out(), "", r, logDetail, a.o.Width)
		}
		if len(rows) < page {
			return after, nil
		}
	}
}

// logDetail is how many lines of detail the log shows; --json has them all.
const logDetail = 12
