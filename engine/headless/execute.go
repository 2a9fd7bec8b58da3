package headless

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"charm.land/fang/v2"
	"charm.land/lipgloss/v2"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"pawl/engine"
	"pawl/engine/config"
	"pawl/engine/machine"
)

// Options are all that the command line takes from the process around it.
type Options struct {
	Args     []string // without the program's name
	In       io.Reader
	Out, Err io.Writer
	Getenv   func(string) string
	Now      func() time.Time
	// Terminal says that somebody sits there: input and output are a terminal.
	Terminal bool
	// Width of the output in cells; 0 if it is no terminal. Then output is
	// stable: exact times, nothing cut, no colours.
	Width int
	// Screen runs the TUI; nil where there is none.
	Screen func(ctx context.Context, e *engine.Engine, o ScreenOptions) error
	// Signals carries the interrupts of this process. The first one stops runs
	// at a safe point, the second one stops at once.
	Signals <-chan os.Signal
	// BusyTimeout is how long another process's lock on the ledger is waited for; 0 means the ledger's own 5 s.
	BusyTimeout time.Duration
	// Self is the command line that starts this program again, for workers; default: the running binary.
	Self []string
}

// ScreenOptions say where the screen begins.
type ScreenOptions struct {
	Run      machine.RunID // open this run; "" for the fleet
	Hint     string        // one line shown at the start
	StateDir string        // of the ledger
	Demo     []string      // command line that plays the demo
	Look     config.Screen // as configured
	Themes   fs.FS         // the operator's own palettes, nil: none
	// ThemesChanged is signalled when one of them may have changed; may be nil.
	ThemesChanged <-chan struct{}
	// Leave brings the runs of this process to a safe point before the screen
	// ends, and with background hands them to a process without a screen. Nil
	// if nothing can be driven here.
	Leave func(ctx context.Context, background bool) error
}

func (o Options) withDefaults() Options {
	if o.In == nil {
		o.In = strings.NewReader("")
	}
	if o.Out == nil {
		o.Out = io.Discard
	}
	if o.Err == nil {
		o.Err = io.Discard
	}
	if o.Getenv == nil {
		o.Getenv = os.Getenv
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if len(o.Self) == 0 {
		if self, err := os.Executable(); err == nil {
			o.Self = []string{self}
		}
	}
	return o
}

// Execute runs one command line and returns its exit code.
func Execute(ctx context.Context, o Options) int {
	a := &app{o: o.withDefaults(), interrupts: make(chan os.Signal)}
	root := a.rootCommand()
	a.root = root
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go a.listen(ctx, cancel)
	code := ExitDone
	err := fang.Execute(ctx, root, fang.WithErrorHandler(func(w io.Writer, _ fang.Styles, err error) {
		code = a.report(w, err)
	}))
	if err != nil && code == ExitDone {
		code = ExitError
	}
	return code
}

// listen hands interrupts to whoever drives runs; anything else is cancelled.
func (a *app) listen(ctx context.Context, cancel context.CancelFunc) {
	for {
		select {
		case sig := <-a.o.Signals:
			if a.screened.Load() {
				continue
			}
			if !a.driving.Load() {
				cancel()
				return
			}
			select {
			case a.interrupts <- sig:
			case <-ctx.Done():
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// report tells the operator about an error and returns the exit code.
func (a *app) report(w io.Writer, err error) int {
	var code codeError
	if errors.As(err, &code) {
		return int(code)
	}
	p := explain(err)
	if p.Code == 0 {
		p.Code = ExitError
	}
	if a.json || slices.Contains(a.o.Args, "--json") { // a line that does not parse has set no flag yet
		_ = object(a.o.Err, struct {
			Error string `json:"error"`
			Why   string `json:"why"`
			Next  string `json:"next"`
		}{p.What, p.Why, a.own(p.Next)})
		return p.Code
	}
	// w drops what the terminal cannot show, and all styles where it is none.
	fmt.Fprintln(w, lipgloss.NewStyle().Bold(true).Render("pawl: "+line(p.What, 0)))
	if p.Why != "" {
		fmt.Fprintln(w, "  why:  "+line(p.Why, 0))
	}
	if p.Next != "" {
		fmt.Fprintln(w, "  next: "+line(a.own(p.Next), 0))
	}
	return p.Code
}

// The groups of commands in the help text.
const (
	groupWork   = "work"
	groupDecide = "decide"
	groupLook   = "look"
	groupKeep   = "keep"
)

const rootLong = `Pawl supervises long-running agents. Their task goes on after a context window, a process or a machine has ended, because every step is in a ledger before it is taken.
Where the record cannot say what happened to the world, Pawl does not guess: it looks, and where looking cannot settle it, it asks you.
New here? "pawl demo" lets an agent repair a small project, kills it three times in the worst moment, and shows how the task still ends well.`

func (a *app) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "pawl",
		Short: "Supervise long-running agents that survive crashes",
		Long:  rootLong,
		Example: `# see it work, without a key and without a network
pawl demo
# give an agent a task in this repository
pawl run "fix the flaky retry test" --model openai/gpt-5 --check "go test ./..."
# what waits for me?
pawl inbox`,
		Args: func(_ *cobra.Command, args []string) error { return a.noSuchCommand(args) },
		RunE: func(cmd *cobra.Command, _ []string) error { return a.screen(cmd, ScreenOptions{}) },
	}
	root.SetArgs(a.o.Args)
	root.SetIn(a.o.In)
	root.SetOut(a.o.Out)
	root.SetErr(a.o.Err)
	root.PersistentFlags().StringVar(&a.path, "ledger", "", "the ledger's file (default: $PAWL_LEDGER, or one for all projects)")
	root.PersistentFlags().StringVar(&a.configPath, "config", "", "the configuration file (or PAWL_CONFIG; default $XDG_CONFIG_HOME/pawl/config.toml)")
	root.PersistentFlags().BoolVar(&a.json, "json", false, "print JSON: one object, or one a line")
	root.SetFlagErrorFunc(flagProblem)
	root.SuggestionsMinimumDistance = 2 // what cobra takes where it asks itself
	for _, g := range []struct{ id, title string }{
		{groupWork, "work"}, {groupDecide, "decide"}, {groupLook, "look"}, {groupKeep, "keep"},
	} {
		root.AddGroup(&cobra.Group{ID: g.id, Title: g.title})
	}
	for _, g := range a.commands() {
		for _, c := range g.commands {
			c.GroupID = g.id
			root.AddCommand(c)
		}
	}
	root.AddCommand(a.hiddenCommands()...)
	root.SetHelpCommandGroupID(groupKeep)
	root.SetCompletionCommandGroupID(groupKeep)
	return root
}

type commandGroup struct {
	id       string
	commands []*cobra.Command
}

func (a *app) commands() []commandGroup {
	return []commandGroup{
		{groupWork, []*cobra.Command{
			a.demoCommand(), a.runCommand(), a.resumeCommand(), a.tellCommand(), a.rememberCommand(), a.forgetCommand(), a.pauseCommand(), a.unpauseCommand(), a.cancelCommand(), a.landCommand(),
		}},
		{groupDecide, []*cobra.Command{
			a.inboxCommand(), a.approveCommand(), a.denyCommand(), a.answerCommand(), a.settleCommand(), a.grantsCommand(),
			a.reviewCommand(),
		}},
		{groupLook, []*cobra.Command{
			a.listCommand(), a.showCommand(), a.logCommand(), a.diffCommand(), a.policyCommand(), a.contextCommand(), a.toolsCommand(), a.recipesCommand(), a.modelsCommand(), a.memoriesCommand(),
			a.treeCommand(),
		}},
		{groupKeep, []*cobra.Command{a.drillCommand(), a.verifyCommand(), a.worktreesCommand(), a.cleanCommand(), a.backupCommand(), a.exportCommand(), a.importCommand(), a.doctorCommand(), a.configCommand(), a.themesCommand()}},
	}
}

func (a *app) noSuchCommand(args []string) error {
	if len(args) == 0 {
		return nil
	}
	next := "`pawl --help` lists the commands"
	if near := a.root.SuggestionsFor(args[0]); len(near) > 0 {
		next = "did you mean `pawl " + near[0] + "`? " + next
	} else if strings.ContainsRune(args[0], ' ') {
		next = "to start a run with this goal: `pawl run " + quote(args[0]) + "`"
	}
	return usage(fmt.Sprintf("there is no command %q", args[0]), "the first word after pawl names a command", next)
}

// flagProblem words what the flag parser found.
func flagProblem(cmd *cobra.Command, err error) error {
	next := fmt.Sprintf("`%s --help` lists its flags", cmd.CommandPath())
	var unknown *pflag.NotExistError
	var bare *pflag.ValueRequiredError
	var value *pflag.InvalidValueError
	switch {
	case errors.As(err, &unknown):
		name := unknown.GetSpecifiedName()
		if near := nearFlag(cmd, name); near != "" {
			next = "did you mean --" + near + "? " + next
		}
		return usage(fmt.Sprintf("%s has no flag %s", cmd.CommandPath(), dashed(name)), "nothing was done, because a flag that is not understood may have meant anything", next)
	case errors.As(err, &bare):
		return usage(fmt.Sprintf("--%s needs a value", bare.GetFlag().Name), "nothing follows it", next)
	case errors.As(err, &value):
		return usage(fmt.Sprintf("--%s cannot be %q", value.GetFlag().Name, value.GetValue()), "it wants a value of type "+value.GetFlag().Value.Type(), next)
	}
	return usage("the flags cannot be read", err.Error(), next)
}

func dashed(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

// nearFlag is the flag of a command that a mistyped name probably meant.
func nearFlag(cmd *cobra.Command, name string) string {
	best, at := "", 3 // more edits apart is another word
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if d := edits(f.Name, name); d < at && !f.Hidden {
			best, at = f.Name, d
		}
	})
	return best
}

// edits is the Levenshtein distance of two short names.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}

// exactly refuses any other number of arguments than there are names.
func exactly(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == len(names) {
			return nil
		}
		return argProblem(cmd, len(args), strings.Join(names, " "))
	}
}

// atLeast wants a first few arguments and takes more of the last.
func atLeast(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) >= len(names) {
			return nil
		}
		return argProblem(cmd, len(args), strings.Join(names, " ")+" …")
	}
}

// between wants a first few arguments; the rest may be left out.
func between(need int, names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) >= need && len(args) <= len(names) {
			return nil
		}
		return argProblem(cmd, len(args), strings.Join(names[:need], " ")+" ["+strings.Join(names[need:], " ")+"]")
	}
}

func argProblem(cmd *cobra.Command, have int, want string) error {
	takes := "nothing"
	if want != "" {
		takes = want
	}
	return usage(fmt.Sprintf("%s takes %s", cmd.CommandPath(), takes), fmt.Sprintf("%d arguments were given", have),
		fmt.Sprintf("`%s --help` shows how it is written", cmd.CommandPath()))
}
