package headless

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"pawl/engine/config"
	"pawl/themes"
)

// setting is a value that is in force, and where it comes from.
type setting struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	From  string `json:"from"`
}

func (a *app) configCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "config",
		Short: "Print the configuration that is in force, and where each value comes from",
		Long: `Print the configuration that is in force, and where each value comes from: the configuration file, the environment, the command line, or the default.
What is wrong in the file is named with its line, and what counts instead. The file need not exist. The names under [screen.keys] stand in the help of the screen (?).`,
		Args: exactly(),
		RunE: func(*cobra.Command, []string) error { return a.showConfig() },
	}
}

func (a *app) showConfig() error {
	c := a.configured()
	file := c.Path
	from := func(set bool) string {
		if set {
			return file
		}
		return "default"
	}
	list := []setting{
		{"file", orNone(c.Path), a.configFrom()},
		{"recipes", orNone(under(c.Dir, "recipes")), "beside the file's usual place"},
		{"themes", orNone(under(c.Dir, "themes")), "beside the file's usual place"},
		{"screen.theme", orText(c.Screen.Theme, "dark or light, by the terminal"), from(c.Screen.Theme != "")},
		{"screen.silent", fmt.Sprint(c.Screen.Silent), from(c.Screen.Silent)},
	}
	if a.o.Getenv("NO_COLOR") != "" {
		list[3] = setting{"screen.theme", "no colour", "NO_COLOR"}
	}
	names := make([]string, 0, len(c.Screen.Keys))
	for n := range c.Screen.Keys {
		names = append(names, n)
	}
	slices.Sort(names)
	for _, n := range names {
		list = append(list, setting{"screen.keys." + n, strings.Join(c.Screen.Keys[n], " "), file})
	}
	for _, t := range c.Tools {
		list = append(list, setting{"tool", t.Name, file})
	}
	list = append(list, setting{"http", fmt.Sprintf("%d requests", len(c.Requests)), from(len(c.Requests) > 0)})
	secrets := make([]string, 0, len(c.Secrets))
	for n := range c.Secrets {
		secrets = append(secrets, n)
	}
	slices.Sort(secrets)
	for _, n := range secrets {
		list = append(list, setting{"secret", n + " (the value is not shown)", file})
	}
	var problems []string
	for _, p := range c.Problems {
		problems = append(problems, p.Error())
	}
	if a.json {
		return object(a.out(), struct {
			Settings []setting `json:"settings"`
			Problems []string  `json:"problems"`
		}{list, append([]string{}, problems...)})
	}
	w := a.out()
	width := 0
	for _, s := range list {
		width = max(width, len(s.Name))
	}
	for _, s := range list {
		fmt.Fprintf(w, "%-*s  %s  (%s)\n", width, s.Name, line(s.Value, 0), line(s.From, 0))
	}
	for _, p := range problems {
		fmt.Fprintf(w, "problem: %s\n", line(p, 0))
	}
	return nil
}

func (a *app) configFrom() string {
	switch {
	case a.configPath != "":
		return "--config"
	case a.o.Getenv(config.PathEnv) != "":
		return config.PathEnv
	}
	if _, err := os.Stat(a.configured().Path); err != nil {
		return "default; it does not exist, and need not"
	}
	return "default"
}

func under(dir, name string) string {
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, name)
}

func orNone(s string) string { return orText(s, "none: there is no home directory") }

func orText(s, none string) string {
	if s == "" {
		return none
	}
	return s
}

func (a *app) themesCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "themes",
		Short: "List the palettes of the screen, or print one to start from",
		Long: `List the palettes of the screen. With a NAME, print that palette as a file: save a changed copy below themes/ in the configuration directory, and name it in the configuration under [screen] as theme.
The screen draws a palette of yours anew as soon as you save it, and says what is wrong in it.`,
		Example: "  pawl themes dark > ~/.config/pawl/themes/mine.toml",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 1 {
				return a.printTheme(args[0])
			}
			return a.listThemes()
		},
	}
}

type themeLine struct {
	Name    string `json:"name"`
	About   string `json:"about"`
	Yours   bool   `json:"yours"`
	Chosen  bool   `json:"chosen"`
	Problem string `json:"problem,omitempty"`
}

func (a *app) listThemes() error {
	c := a.configured()
	names := themes.Names()
	own := map[string]bool{}
	if dir := under(c.Dir, "themes"); dir != "" {
		files, err := os.ReadDir(dir)
		if err != nil && !os.IsNotExist(err) {
			return fmt.Errorf("read the palettes in %s: %w", dir, err)
		}
		for _, f := range files {
			if n, ok := strings.CutSuffix(f.Name(), ".toml"); ok {
				own[n] = true
				if !slices.Contains(names, n) {
					names = append(names, n)
				}
			}
		}
	}
	var list []themeLine
	for _, n := range names {
		l := themeLine{Name: n, Yours: own[n], Chosen: n == c.Screen.Theme}
		t, err := themes.Load(n, c.Themes())
		if l.About = t.About; err != nil {
			l.Problem = err.Error()
		}
		list = append(list, l)
	}
	if a.json {
		return object(a.out(), list)
	}
	for _, l := range list {
		about := l.About
		if l.Yours {
			about += " (yours)"
		}
		if l.Problem != "" {
			about = "cannot be used: " + l.Problem
		}
		mark := " "
		if l.Chosen {
			mark = "*"
		}
		fmt.Fprintf(a.out(), "%s %-20s %s\n", mark, line(l.Name, 0), line(about, 0))
	}
	return nil
}

func (a *app) printTheme(name string) error {
	c := a.configured()
	text, err := themes.Source(name, c.Themes())
	if err != nil {
		return usage(err.Error(), "the palettes are files, one for each name", "`pawl themes` lists them")
	}
	_, err = io.WriteString(a.out(), text)
	return err
}
