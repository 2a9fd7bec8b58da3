package headless

import (
	"context"
	"fmt"
	"regexp"
	"time"

	"github.com/spf13/cobra"

	"pawl/engine/machine"
)

// standing is a standing grant as --json tells it, one a line.
type standing struct {
	ID      string `json:"id"`
	Rule    string `json:"rule"`
	Scope   string `json:"scope"`
	Run     string `json:"run,omitempty"`
	Repo    string `json:"repo,omitempty"`
	By      string `json:"by"`
	Since   string `json:"since"`
	Revoked string `json:"revoked,omitempty"`
}

func grantView(g machine.Grant) standing {
	v := standing{
		ID: g.Grant, Rule: g.Rule, Scope: string(g.Scope), Run: string(g.Run), Repo: g.Repo, By: g.By,
		Since: time.UnixMicro(g.At).UTC().Format(timeFormat),
	}
	if g.Revoked != 0 {
		v.Revoked = time.UnixMicro(g.Revoked).UTC().Format(timeFormat)
	}
	return v
}

func (a *app) grantsCommand() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "grants",
		Short: "List the standing grants, and take them back",
		Long: `List the standing grants: rules that "pawl approve ID --for run" or "--for project" laid down, so that the same is not asked again.
A grant lets exactly the commands or requests go that its rule covers; a rule that denies or asks is stronger.`,
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.looking(cmd, func() error { return nil }, func(ctx context.Context, s *session) error {
				gs, err := s.Grants(ctx, all)
				if err != nil {
					return err
				}
				return a.printGrants(gs)
			})
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "list revoked grants too")
	cmd.AddCommand(a.revokeCommand())
	return cmd
}

func (a *app) printGrants(gs []machine.Grant) error {
	if a.json {
		for _, g := range gs {
			if err := object(a.out(), grantView(g)); err != nil {
				return err
			}
		}
		return nil
	}
	if len(gs) == 0 {
		a.say("No standing grants.")
		return nil
	}
	t := table{head: []string{"ID", "FOR", "SINCE", "RULE"}}
	for _, g := range gs {
		where := "run " + string(g.Run)
		if g.Scope == machine.GrantProject {
			where = "project " + g.Repo
		}
		if g.Revoked != 0 {
			where += " (revoked)"
		}
		t.add(g.Grant, where, a.stamp(time.UnixMicro(g.At)), g.Rule)
	}
	return t.write(a.out(), a.o.Width)
}

var grantShape = regexp.MustCompile(`^g[1-9][0-9]*$`)

func (a *app) revokeCommand() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "revoke GRANT|APPROVAL",
		Short: "Take back a standing grant, or an approval that was not used yet",
		Long:  `Take back a standing grant (g1), or an approval (r7k2m9x.a1) that was given and not used yet. What was sent already is not undone; an approval that is taken back is asked again.`,
		Args:  exactly("GRANT|APPROVAL"),
		RunE: func(cmd *cobra.Command, args []string) error {
			id := args[0]
			if !grantShape.MatchString(id) && kindOf(id) != idApproval {
				return &Problem{What: fmt.Sprintf("there is no grant %q", id), Why: "the id of a grant looks like g1, that of an approval like r7k2m9x.a1", Next: "`pawl grants` lists the standing ones", Code: ExitUsage}
			}
			return a.with(cmd, deciding, func(ctx context.Context, s *session) error {
				if kindOf(id) == idApproval {
					if err := s.Revoke(ctx, machine.ApprovalID(id), reason); err != nil {
						return a.late(cmd.Name(), id, err)
					}
					return a.decided(ctx, s, machine.ApprovalID(id).Run(), id, "revoked", fmt.Sprintf("Took back %s. It was not used, and is asked again.", id))
				}
				g, err := s.RevokeGrant(ctx, id, reason)
				if err != nil {
					return a.late(cmd.Name(), id, err)
				}
				if a.json {
					return object(a.out(), map[string]string{"id": id, "decision": "revoked", "rule": g.Rule})
				}
				fmt.Fprintf(a.out(), "Took back %s: %s asks again.\n", id, line(g.Rule, 0))
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the record")
	return cmd
}
