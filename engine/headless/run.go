package headless

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"pawl/engine"
)

type runFlags struct {
	n        engine.NewRun
	vars     []string
	headless bool
}

func (a *app) runCommand() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run GOAL",
		Short: "Give an agent a task",
		Long: `Give an agent a task. It works in a git worktree of its own until the task is done, a limit is reached, or it needs you.
On a terminal the screen opens on the new run; with --headless its steps are printed line by line instead, and the exit code tells how it rests: 0 done, 3 it waits for you, 4 it failed or was cancelled.
With --check it is done only once that command succeeds; without, it ends as "done (unchecked)".`,
		Example: `pawl run "make the retry test pass every time" --model openai/gpt-5 --check "go test ./..."
pawl run "play a script" --script repair.toml --headless`,
		Args: exactly("GOAL"),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.n.Goal = args[0]
			return a.run(cmd, f)
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&f.n.Repo, "repo", "", "work on the repository or folder DIR (default: the current one)")
	fl.BoolVar(&f.n.InPlace, "in-place", false, "work in the checkout itself instead of a worktree")
	fl.BoolVar(&f.n.WithChanges, "with-changes", false, "bring uncommitted changes of the checkout along")
	fl.StringVar(&f.n.Model, "model", "", "the model, as PROVIDER/MODEL")
	fl.StringVar(&f.n.Script, "script", "", "play this script instead of asking a model: no key, no network")
	fl.StringVar(&f.n.Check, "check", "", "the command that must succeed before the run is done")
	fl.StringArrayVar(&f.n.Allow, "allow", nil, "let commands that match RULE go unasked, as in \"git push origin *\" (repeatable)")
	fl.Float64Var(&f.n.BudgetUSD, "budget-usd", 0, "stop and ask once this much was spent")
	fl.Int64Var(&f.n.MaxTokens, "budget-tokens", 0, "stop and ask once the model has read and written this many tokens")
	fl.DurationVar(&f.n.MaxWall, "max-wall", 0, "stop and ask once this TIME has passed since the start, as in 90m or 8h")
	fl.IntVar(&f.n.MaxTurns, "max-turns", 0, "stop and ask after this many turns")
	fl.IntVar(&f.n.Context, "context", 0, "let one request take at most this many tokens; a fuller conversation goes on in a new window (default: what the model takes)")
	fl.StringArrayVar(&f.vars, "var", nil, "set a variable of the script, as NAME=VALUE (repeatable)")
	fl.BoolVar(&f.headless, "headless", false, "no screen: print progress, end when the run rests")
	return cmd
}

// variables reads NAME=VALUE pairs.
func variables(pairs []string) (map[string]string, error) {
	vars := map[string]string{}
	for _, p := range pairs {
		name, value, ok := strings.Cut(p, "=")
		if !ok || name == "" {
			return nil, usage(fmt.Sprintf("--var %s sets nothing", quote(p)), "a variable is given as NAME=VALUE", "for example --var branch=main")
		}
		if _, twice := vars[name]; twice {
			return nil, usage(fmt.Sprintf("--var sets %s twice", name), "only one value can hold", "leave one away")
		}
		vars[name] = value
	}
	return vars, nil
}

func (a *app) run(cmd *cobra.Command, f runFlags) error {
	headless := f.headless || a.json
	if !headless && (!a.o.Terminal || a.o.Screen == nil) {
		return usage("there is no terminal for the screen", "input or output is not a terminal", "add --headless to run without a screen")
	}
	if f.n.InPlace && f.n.WithChanges {
		return usage("--in-place and --with-changes exclude each other", "in place the changes are there already", "leave one of them away")
	}
	if f.n.Script != "" && f.n.Model != "" && !strings.HasPrefix(f.n.Model, "script/") {
		return usage("--script and --model exclude each other", "a script is played instead of asking a model", "leave one of them away")
	}
	var err error
	if f.n.Vars, err = variables(f.vars); err != nil {
		return err
	}
	ctx := cmd.Context()
	s, err := a.open(ctx, cmd.Name(), making)
	if err != nil {
		return err
	}
	id, err := s.Create(ctx, f.n)
	if err != nil {
		return errors.Join(err, s.close())
	}
	a.nameChanges(ctx, s, f.n)
	if !headless {
		return a.onScreen(ctx, s, ScreenOptions{Run: id, Hint: "Run " + string(id) + " has started."})
	}
	d := a.newDriver(s, false, id)
	fmt.Fprintf(d.w, "run %s: %s\n", id, line(f.n.Goal, a.o.Width))
	return d.finish(ctx, d.drive(ctx))
}

// nameChanges tells of uncommitted changes in the checkout that the run will
// not see, or will see without knowing that they are unfinished.
func (a *app) nameChanges(ctx context.Context, s *session, n engine.NewRun) {
	repo := n.Repo
	if repo == "" {
		repo = "."
	}
	files, err := s.Space().Dirty(ctx, repo)
	if err != nil || len(files) == 0 {
		return // a folder without git has no checkout
	}
	const shown = 5
	names := files[:min(len(files), shown)]
	for i := range names {
		names[i] = line(names[i], 0)
	}
	list := strings.Join(names, ", ")
	if len(files) > shown {
		list += fmt.Sprintf(" and %d more", len(files)-shown)
	}
	how := "The run starts from the last commit and does not see them; --with-changes would bring them along."
	switch {
	case n.InPlace:
		how = "The run works among them, in place."
	case n.WithChanges:
		how = "They are brought along; your checkout stays as it is."
	}
	a.say("The checkout has %s: %s. %s", count(len(files), "uncommitted change"), list, how)
}
