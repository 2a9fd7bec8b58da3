package headless

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"pawl/engine/config"
	"pawl/engine/effect"
	"pawl/engine/secret"
	"pawl/engine/tool"
)

// configured reads the configuration once. What is wrong with it is told once,
// too, by whoever asks first.
func (a *app) configured() config.Config {
	a.configOnce.Do(func() {
		a.config = config.Load(config.Options{Path: a.configPath, Getenv: a.o.Getenv, Reserved: tool.BuiltInNames()})
	})
	return a.config
}

// tools are the tools and recipes that the configuration leads to.
func (a *app) tools() *tool.Set {
	c := a.configured()
	return tool.All(tool.Options{Recipes: c.Book, Declared: c.Tools, Requests: c.Requests, Secrets: secret.New(c.Secrets, a.o.Getenv)})
}

// complain tells what is wrong with the configuration; nothing stops for it.
func (a *app) complain() {
	a.complained.Do(func() {
		for _, p := range a.configured().Problems {
			a.say("pawl: warning: %s", line(p.Error(), 0))
		}
	})
}

// configHint is one line for the screen, "" if all is well.
func (a *app) configHint() string {
	switch p := a.configured().Problems; len(p) {
	case 0:
		return ""
	case 1:
		return line(p[0].Error(), 0)
	default:
		return line(fmt.Sprintf("%s (and %d more: `pawl tools` lists them)", p[0].Error(), len(p)-1), 0)
	}
}

func (a *app) recipesCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "recipes",
		Short: "List the command lines that have a contract",
		Long: `List the recipes: well-known command lines whose contract Pawl knows, so that a lost answer can be looked up. A line matches only if it is exactly one simple command, with no option that the recipe does not list.
A recipe whose probe was not tested against the real thing may prove that something happened, never that it did not.
Your own recipes are files below recipes/ in the configuration directory; one with the name of a built-in recipe takes its place.`,
		Args: exactly(),
		RunE: func(*cobra.Command, []string) error { return a.recipes() },
	}
}

func (a *app) recipes() error {
	list := a.configured().Book.List()
	a.complain()
	if a.json {
		for _, l := range list {
			if err := object(a.out(), l); err != nil {
				return err
			}
		}
		return nil
	}
	t := table{head: []string{"RECIPE", "CLASS", "IN FLIGHT", "LOOK PROVES", "UNDO", "SOURCE", "MATCH"}}
	for _, l := range list {
		for i, m := range l.Match {
			if i > 0 {
				t.add("", "", "", "", "", "", m)
				continue
			}
			t.add(l.Name, l.Class, l.InFlight, proves(l), yes(l.Compensate != ""), l.Source, m)
		}
	}
	if err := t.write(a.out(), a.o.Width); err != nil {
		return err
	}
	if a.o.Width > 0 {
		a.say("What a look proves: both ways only where the probe was tested against the real thing. `pawl recipes --json` shows the probes.")
	}
	return nil
}

// proves says in a word what a recipe's probe may settle.
func proves(l effect.Listing) string {
	switch {
	case l.Probe == "":
		return "-"
	case l.ProvesNot:
		return "both ways"
	case l.Tested:
		return "happened"
	}
	return "happened (not tested)"
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "-"
}

// oneOf joins words for a sentence.
func oneOf(words []string) string { return strings.Join(words, ", ") }
