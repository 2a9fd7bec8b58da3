package headless

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"pawl/engine"
	"pawl/engine/machine"
	"pawl/ledger"
)

// policyPath is the operator's own policy file.
func (a *app) policyPath() string {
	if p := a.o.Getenv("PAWL_POLICY"); p != "" {
		if abs, err := filepath.Abs(p); err == nil {
			return abs
		}
		return p
	}
	dir := a.o.Getenv("XDG_CONFIG_HOME")
	if !filepath.IsAbs(dir) {
		home := a.o.Getenv("HOME")
		if home == "" {
			return ""
		}
		dir = filepath.Join(home, ".config")
	}
	return filepath.Join(dir, "pawl", "policy.toml")
}

// project is the absolute folder of --repo, the current one by default.
func project(repo string) (string, error) {
	if repo == "" {
		repo = "."
	}
	abs, err := filepath.Abs(repo)
	if err != nil {
		return "", fmt.Errorf("find %s: %w", repo, err)
	}
	return abs, nil
}

func (a *app) policyCommand() *cobra.Command {
	var repo string
	cmd := &cobra.Command{
		Use:   "policy",
		Short: "Show which rules decide what an agent may do",
		Long: `Show which rules decide what an agent may do, and the files they come from: yours, and the project's own.
Deny wins, then ask, whoever's the rule is. A project's file may forbid and ask; what it allows counts only once you trust exactly this content of it.`,
		Example: `pawl policy
pawl policy explain "git push origin main"
pawl policy trust .pawl/policy.toml`,
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := project(repo)
			if err != nil {
				return err
			}
			return a.withRules(cmd, func(ctx context.Context, e *engine.Engine) error {
				p, err := e.PolicyOf(ctx, dir)
				if err != nil {
					return err
				}
				return a.printPolicy(p)
			})
		},
	}
	cmd.Flags().StringVar(&repo, "repo", "", "the project whose rules count, as DIR (default: the current folder)")
	cmd.AddCommand(a.explainCommand(), a.trustCommand(), a.distrustCommand())
	return cmd
}

func (a *app) printPolicy(p engine.Policy) error {
	if a.json {
		return object(a.out(), p)
	}
	for _, f := range p.Files {
		state := count(f.Rules, "rule")
		switch {
		case f.Broken != "":
			state = "broken, so its rules from before hold: " + f.Broken
		case !f.Exists:
			state = "no such file"
		case f.Trusted && f.Scope == "project":
			state += ", trusted with this content"
		case f.Scope == "project":
			state += ", may tighten only"
		}
		fmt.Fprintf(a.out(), "%-8s %s: %s\n", f.Scope, line(f.Path, 0), line(state, 0))
	}
	fmt.Fprintln(a.out())
	if len(p.Rules) == 0 {
		fmt.Fprintln(a.out(), "No rules of your own: the built-in table decides. Reading, edits inside the workspace and sealed commands go; what reaches outside asks.")
		return nil
	}
	t := table{head: []string{"DECISION", "SCOPE", "FROM", "MATCHES"}}
	for _, r := range p.Rules {
		decision := r.Decision
		if r.Idle {
			decision += " (not trusted)"
		}
		from := r.From
		if dir, name := filepath.Split(from); dir != "" {
			from = name
		}
		t.add(decision, r.Scope, from, r.Matches)
	}
	return t.write(a.out(), a.o.Width)
}

func (a *app) explainCommand() *cobra.Command {
	var q engine.PolicyQuestion
	var run string
	cmd := &cobra.Command{
		Use:   "explain COMMAND",
		Short: "Say which rule decides about a command line, and why",
		Long: `Say what would be decided about a command line that an agent proposes, which rule decides, and why. Nothing is run.
The line is read by a shell's grammar: every command in pipes, lists, substitutions and behind wrappers counts.`,
		Example: `pawl policy explain "git push origin main"
pawl policy explain --run r7k2m9x "make deploy"
pawl policy explain --allow "git push origin *" "git push origin main; rm -rf ~"`,
		Args: exactly("COMMAND"),
		RunE: func(cmd *cobra.Command, args []string) error {
			q.Line, q.Run = args[0], machine.RunID(run)
			if run != "" {
				if _, err := wantRun(run); err != nil {
					return err
				}
			}
			var err error
			if q.Repo, err = project(q.Repo); err != nil {
				return err
			}
			return a.withRules(cmd, func(ctx context.Context, e *engine.Engine) error {
				x, err := e.Explain(ctx, q)
				if err != nil {
					return err
				}
				return a.printExplanation(x)
			})
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&q.Repo, "repo", "", "the project whose rules count, as DIR (default: the current folder)")
	fl.StringVar(&run, "run", "", "the run whose rules and grants count too, as RUN")
	fl.StringArrayVar(&q.Allow, "allow", nil, "as if the run had been given this RULE (repeatable)")
	fl.BoolVar(&q.Network, "network", false, "as if the agent asked for the network")
	return cmd
}

func (a *app) printExplanation(x engine.Explanation) error {
	if a.json {
		return object(a.out(), x)
	}
	fmt.Fprintf(a.out(), "%s: %s\n", strings.ToUpper(x.Decision), line(x.Why, 0))
	fmt.Fprintf(a.out(), "  rule      %s\n", line(x.Rule, 0))
	if x.Recipe != "" {
		fmt.Fprintf(a.out(), "  recipe    %s\n", x.Recipe)
	}
	fmt.Fprintf(a.out(), "  level     %s\n", x.Level)
	for i, c := range x.Commands {
		label := ""
		if i == 0 {
			label = "commands"
		}
		fmt.Fprintf(a.out(), "  %-9s %s\n", label, line(c, 0))
	}
	for i, u := range x.Unresolved {
		label := ""
		if i == 0 {
			label = "hidden"
		}
		fmt.Fprintf(a.out(), "  %-9s %s\n", label, line(u, 0))
	}
	return nil
}

func (a *app) trustCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "trust FILE",
		Short: "Let a project's policy file allow things, as long as it stays as it is",
		Long: `Let a project's policy file allow things, not only forbid them and ask. The trust is in exactly its present content: after any change it may only tighten again, until you trust it anew.
FILE is .pawl/policy.toml of a repository, or the repository's folder.`,
		Args: exactly("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.with(cmd, making, func(ctx context.Context, s *session) error {
				path, allows, err := s.TrustPolicy(ctx, args[0])
				if err != nil {
					return err
				}
				if a.json {
					return object(a.out(), map[string]any{"path": path, "trusted": true, "allows": allows})
				}
				fmt.Fprintf(a.out(), "Trusted %s with its present content. It allows:\n", line(path, 0))
				if len(allows) == 0 {
					fmt.Fprintln(a.out(), "  nothing: it only forbids and asks, which needs no trust")
				}
				for _, r := range allows {
					fmt.Fprintf(a.out(), "  %s\n", line(r.Matches, 0))
				}
				return nil
			})
		},
	}
}

func (a *app) distrustCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "distrust FILE",
		Short: "Let a project's policy file tighten only, again",
		Args:  exactly("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.with(cmd, deciding, func(ctx context.Context, s *session) error {
				path, err := s.DistrustPolicy(ctx, args[0])
				if err != nil {
					return err
				}
				if a.json {
					return object(a.out(), map[string]any{"path": path, "trusted": false})
				}
				fmt.Fprintf(a.out(), "%s may tighten only. What runs already goes on.\n", line(path, 0))
				return nil
			})
		},
	}
}

// withRules runs f on an engine over the ledger, or where none was made yet over
// an empty one in memory: rules can be asked about before anything else exists.
func (a *app) withRules(cmd *cobra.Command, f func(ctx context.Context, e *engine.Engine) error) error {
	missing := false
	err := a.with(cmd, viewing, func(ctx context.Context, s *session) error { return f(ctx, s.Engine) })
	var gone *ledger.NotFoundError
	if _, named, perr := a.ledgerPath(); perr == nil && !named && errors.As(err, &gone) && gone.What == "ledger" {
		missing = true
	}
	if !missing {
		return err
	}
	mem, err := ledger.NewMem(ledger.Options{})
	if err != nil {
		return err
	}
	store, err := mem.Open("explain")
	if err != nil {
		return err
	}
	e, err := engine.New(engine.Options{Store: store, Now: a.o.Now, Log: a.logger(), PolicyFile: a.policyPath()})
	if err != nil {
		return errors.Join(err, store.Close())
	}
	ctx := cmd.Context()
	return errors.Join(f(ctx, e), e.Close(ctx), store.Close())
}
