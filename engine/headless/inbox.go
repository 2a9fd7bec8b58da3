package headless

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"pawl/engine"
)

func (a *app) inboxCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "inbox",
		Short: "List everything that waits for you",
		Long: `List everything that waits for you, the most pressing kind first: effects whose outcome nobody knows, approvals, questions, limits, finished work to land.
Each line ends with the command that decides it. Reading the inbox changes nothing.`,
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.looking(cmd, func() error { return nil }, a.inbox)
		},
	}
}

// waiting is an inbox item as --json tells it, one a line.
type waiting struct {
	ID      string `json:"id"`
	Kind    string `json:"kind"`
	Run     string `json:"run"`
	Summary string `json:"summary"`
	Since   string `json:"since"`
	Goal    string `json:"goal"`
	Reach   string `json:"reach"`
	Next    string `json:"next"`
}

func (a *app) inbox(ctx context.Context, s *session) error {
	items, err := s.Inbox(ctx)
	if err != nil {
		return err
	}
	if err := a.printInbox(a.nexts(items)); err != nil {
		return err
	}
	return a.hintInterrupted(ctx, s, items)
}

func (a *app) printInbox(items []engine.Item) error {
	if a.json {
		for _, i := range items {
			w := waiting{
				ID: i.ID, Kind: i.Kind, Run: string(i.Run), Summary: i.Summary, Since: i.Since.UTC().Format(timeFormat),
				Goal: i.Goal, Reach: i.Reach, Next: i.Next,
			}
			if err := object(a.out(), w); err != nil {
				return err
			}
		}
		return nil
	}
	if len(items) == 0 {
		a.say("Nothing waits for you.")
		return nil
	}
	t := table{head: []string{"ID", "KIND", "SINCE", "REACH", "SUMMARY"}}
	for _, i := range items {
		t.add(i.ID, i.Kind, a.stamp(i.Since), i.Reach, i.Summary)
	}
	if err := t.write(a.out(), a.o.Width); err != nil {
		return err
	}
	fmt.Fprintln(a.out())
	for _, i := range items {
		fmt.Fprintln(a.out(), line(i.Next, 0))
	}
	return nil
}

// hintInterrupted names runs that nobody drives: they do not wait for the
// operator, they wait for a process.
func (a *app) hintInterrupted(ctx context.Context, s *session, items []engine.Item) error {
	ids, err := s.Orphans(ctx)
	if err != nil {
		return err
	}
	waits := map[string]bool{}
	for _, i := range items {
		waits[string(i.Run)] = true
	}
	var idle []string
	for _, id := range ids {
		if !waits[string(id)] {
			idle = append(idle, string(id))
		}
	}
	const shown = 5
	switch n := len(idle); {
	case n == 0:
	case n <= shown:
		a.say("Interrupted, nobody drives: %s. `%s` goes on.", strings.Join(idle, ", "), a.command("resume", idle...))
	default:
		a.say("Interrupted, nobody drives: %d runs. `%s` goes on.", n, a.command("resume", "--all"))
	}
	return nil
}
