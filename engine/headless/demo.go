package headless

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"pawl/engine"
	"pawl/engine/confine"
	"pawl/engine/machine"
	"pawl/fixtures/sample"
	"pawl/fixtures/scripts"
	"pawl/fixtures/world"
)

const demoLong = `Makes a small project with bugs, a git remote for it, and a service that opens tickets, all in a directory of its own. An agent that plays a script repairs the project; no key and no network is needed. Its workers are killed three times with SIGKILL: while a command edits files, after a git push arrived, and after a ticket was opened.
What follows shows the idea: a missing result is not a failed action. The edit is restored and run again, the push is proven by a look at the remote, and the ticket waits for a person, because nobody else can know.
A second act pays an invoice under promises that the demo's own config.toml makes: the payment, whose worker is killed before the answer, is sent again under its key; a ticket that a person declared missing arrives late and reopens the verdict before it is opened twice; and the payment is taken back by its compensation.`

// demoCommand is `pawl demo`.
func (a *app) demoCommand() *cobra.Command {
	var dir string
	var headless bool
	var acts int
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Watch a real repair being interrupted and recovered",
		Long:  demoLong,
		Example: `# ends on the screen, where the last decisions are yours
pawl demo
# from begin to end without a screen
pawl demo --headless
# the second act, too, before the screen
pawl demo --act 2
# back to a demo that was made before
pawl demo --dir DIR`,
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			headless = headless || a.json
			switch {
			case !cmd.Flags().Changed("act"):
				acts = 1
				if headless {
					acts = 2
				}
			case acts < 1 || acts > 2:
				return usage(fmt.Sprintf("there is no act %d", acts), "the demo has two: 1 is the repair, 2 the payment", "give --act 1 or --act 2")
			}
			return a.demo(cmd, dir, headless, acts)
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "", "make the demo in `DIR`, or go on with the one that is there (default: a new temporary directory)")
	cmd.Flags().IntVar(&acts, "act", 0, "play as far as act `N`: 1 the repair, 2 the payment, too (default: 1 before the screen, 2 without one)")
	cmd.Flags().BoolVar(&headless, "headless", false, "no screen: decide everything as a person would, and judge the end")
	return cmd
}

// demo is one sitting at a demo.
type demo struct {
	a        *app
	place    demoPlace
	note     *demoNote // nil until there is a demo
	pawl     pawl
	world    *world.Process
	look     *session // reads the ledger beside the workers
	tell     *voice
	run      machine.RunID // the run that is driven and told now
	acts     int           // how many acts are played in this sitting
	late     bool          // a ticket was told to land later in this sitting
	sealed   bool          // commands run sealed
	headless bool
	begun    time.Time
}

func (a *app) demo(cmd *cobra.Command, dir string, headless bool, acts int) error {
	if !headless && (!a.o.Terminal || a.o.Screen == nil) {
		return usage("the demo ends on the screen, and this is no terminal", "", "give it with --headless")
	}
	if a.path != "" {
		return usage("the demo has a ledger of its own", "--ledger was given", "choose its directory with --dir instead")
	}
	ctx := cmd.Context() // an interrupt cancels it: workers then stop at a safe point
	place, exists, made, err := claimDemo(dir)
	if err != nil {
		return err
	}
	d := &demo{
		a: a, place: place, headless: headless, acts: acts, begun: a.o.Now(), tell: a.voice(headless),
		pawl: pawl{self: a.o.Self, ledger: place.ledger()},
	}
	a.path = place.ledger()
	err = d.sit(ctx, cmd, exists)
	if err != nil && d.note == nil && made {
		_ = os.RemoveAll(place.dir) // it was ours and nothing came of it
		return err
	}
	if ctx.Err() != nil && d.note != nil {
		return &Problem{
			What: "the demo was stopped", Why: "it was interrupted; nothing is lost",
			Next: "go on with " + place.command(), Err: err,
		}
	}
	return err
}

func (d *demo) sit(ctx context.Context, cmd *cobra.Command, exists bool) (err error) {
	defer func() {
		if d.look != nil {
			err = errors.Join(err, d.look.close())
		}
		if d.world != nil {
			err = errors.Join(err, d.world.Stop())
		}
	}()
	if exists {
		err = d.reopen(ctx)
	} else {
		err = d.make(ctx)
	}
	if err != nil {
		return err
	}
	if !exists || d.headless {
		if err := d.interrupt(ctx); err != nil {
			return err
		}
	}
	if d.headless {
		if err := d.finish(ctx); err != nil {
			return err
		}
	}
	if d.acts > 1 {
		if err := d.payments(ctx); err != nil {
			return err
		}
	}
	if d.headless {
		return d.verdict(ctx)
	}
	return d.screen(cmd)
}

// make builds the scene and the run. The note comes last: without it there is
// no demo.
func (d *demo) make(ctx context.Context) error {
	d.tell.title("pawl demo: a repair that is killed three times, each time in the worst moment")
	d.tell.idea("A missing result is not a failed action. What has no result on record may have happened,",
		"or not, or in part. Pawl looks; where looking cannot settle it, a person decides.")
	if err := needs("git", "go", "sh", "awk"); err != nil {
		return err
	}
	repo, err := sample.NewRepo(ctx, d.place.dir)
	if err != nil {
		return err
	}
	script, err := scripts.Read(scripts.Repair)
	if err != nil {
		return err
	}
	if err := os.WriteFile(d.place.script(), script, 0o600); err != nil {
		return fmt.Errorf("write the script: %w", err)
	}
	if err := d.startWorld(ctx); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(d.place.ledger()), 0o700); err != nil {
		return fmt.Errorf("make the demo's ledger: %w", err)
	}
	if d.look, err = d.a.open(ctx, "demo", making); err != nil {
		return err
	}
	level := d.look.Level()
	d.sealed = level.Level == confine.LevelSealed
	var rules []string // a sealed command needs none
	if !d.sealed {
		if rules, err = scriptRules(script); err != nil {
			return err
		}
	}
	run, err := d.look.Create(ctx, engine.NewRun{
		Goal: sample.Goal, Repo: repo.Path, Script: d.place.script(), Check: sample.Test, Allow: rules,
		Vars: map[string]string{"WORLD": d.world.URL},
	})
	if err != nil {
		return err
	}
	d.note = &demoNote{
		Run: run, Repo: repo.Path, Remote: repo.Remote, Base: repo.Base, World: d.world.URL,
		Level: level.Level.String(), Begun: d.a.o.Now().UTC(), Kills: []demoKill{},
	}
	if err := d.note.save(d.place); err != nil {
		return err
	}
	d.play(run)
	d.tell.facts("Everything is in "+d.place.dir+" and stays there.",
		"project", "retry/, a Go module; its own tests show three bugs",
		"git remote", "origin.git/",
		"the world", d.world.URL+", which keeps a log of what really happens to it",
		"confinement", d.confinement(level.Missing))
	return nil
}

// confinement says what the level of this machine means for the demo.
func (d *demo) confinement(missing []string) string {
	if d.sealed {
		return "sealed: a command can touch nothing but its workspace"
	}
	s := d.look.Level().Level.String() + ": commands cannot be sealed here"
	if len(missing) > 0 {
		s += " (" + missing[0] + ")"
	}
	return s + ", so they run under rules of this run, and an interrupted one is yours to settle"
}

// reopen brings the world of an earlier demo back.
func (d *demo) reopen(ctx context.Context) error {
	note, err := loadDemo(d.place)
	if err != nil {
		return err
	}
	d.play(note.Run)
	d.note, d.sealed = note, note.Level == confine.LevelSealed.String()
	if err := d.startWorld(ctx); err != nil {
		return err
	}
	if d.world.URL != note.World {
		return &Problem{
			What: "the demo in " + d.place.dir + " cannot go on",
			Why:  fmt.Sprintf("its run knows the world at %s, and another program has that address now", note.World),
			Next: "end that program, or make a new demo with “pawl demo”",
		}
	}
	if d.look, err = d.a.open(ctx, "demo", deciding); err != nil {
		return err
	}
	d.tell.title("pawl demo: back in " + d.place.dir)
	d.tell.facts("The world is up again at " + d.world.URL + ".")
	return nil
}

func (d *demo) startWorld(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	argv := append(append([]string{}, d.pawl.self...), "demo-world")
	var err error
	d.world, err = world.StartProcess(ctx, argv, d.place.world(), d.a.o.Err)
	return err
}

// screen opens the TUI on the demo's ledger, in this process, and says
// afterwards how to come back.
func (d *demo) screen(cmd *cobra.Command) error {
	st, err := d.state(cmd.Context())
	if err != nil {
		return err
	}
	hint := d.hint(&st)
	d.tell.step("The screen opens now. " + hint)
	err = d.look.close()
	d.look = nil
	if err != nil {
		return err
	}
	if err := d.a.screen(cmd, ScreenOptions{Hint: hint}); err != nil {
		return err
	}
	d.a.say("The demo stays there: %s brings its world back and opens the screen again.", d.place.command())
	return nil
}

// hint is the line with which the screen begins.
func (d *demo) hint(s *machine.State) string {
	ticket := find(s, stages()[2].text)
	switch {
	case s.Phase == machine.PhaseDone && s.Landed != nil:
		return "This demo is finished: the fix has landed. Look around."
	case s.Phase == machine.PhaseDone:
		return "The repair is done. Open the finished run and land it."
	case ticket != nil && ticket.State == machine.StateAmbiguous:
		return "Enter opens the ticket. Look at " + d.world.URL + "/tickets, then decide."
	}
	return "The run goes on here. What waits for you is under “Needs you”."
}

// needs names the programs that are missing.
func needs(programs ...string) error {
	var missing []string
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			missing = append(missing, p)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return &Problem{
		What: "the demo cannot be made", Why: strings.Join(missing, ", ") + " is not on PATH, and the project is repaired with it",
		Next: "install what is missing, then give the command again",
	}
}
