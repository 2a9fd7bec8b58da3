package headless

import (
	"fmt"

	"github.com/spf13/cobra"

	"pawl/engine/config"
	"pawl/engine/effect"
	"pawl/engine/machine"
)

// toolLine is one tool as `pawl tools --json` prints it.
type toolLine struct {
	Name       string `json:"name"`
	Class      string `json:"class"`
	Probe      string `json:"probe"`
	Compensate string `json:"compensate"`
	Source     string `json:"source"`
	About      string `json:"about"`
}

// builtInClasses says of which class the effects of the built-in tools are.
var builtInClasses = map[string]string{
	"list_dir": "READ", "read_file": "READ", "search": "READ", "read_evidence": "READ",
	"write_file": "WORKSPACE", "edit_file": "WORKSPACE",
	"shell":        "WORKSPACE if sealed, a recipe's, else IRREVERSIBLE",
	"http_request": "by method: READ, KEYED with a key, else IRREVERSIBLE",
	"finish":       "WORKSPACE if sealed, else re-runnable by declaration",
	"delegate":     "WORKSPACE", "collect": "READ", "tell_child": "READ", "tell_parent": "READ",
	"ask_operator": "READ", "update_plan": "READ", "handoff_note": "READ", "record_decision": "READ",
}

func (a *app) toolsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "tools",
		Short: "List the tools that a model can call, yours included",
		Long: `List the built-in tools and those that you declared in the configuration, with what their effects promise: the class, how a lost answer is looked up, and what undoes them.
` + "`pawl tools check NAME`" + ` rehearses the promises of a tool without doing anything.`,
		Args: exactly(),
		RunE: func(*cobra.Command, []string) error { return a.listTools() },
	}
	cmd.AddCommand(a.toolsCheckCommand())
	return cmd
}

func (a *app) listTools() error {
	c := a.configured()
	var lines []toolLine
	declared := map[string]*config.Tool{}
	for i := range c.Tools {
		declared[c.Tools[i].Name] = &c.Tools[i]
	}
	for _, s := range a.tools().Specs() {
		if d := declared[s.Name]; d != nil {
			lines = append(lines, lineOf(d, c.Path))
			continue
		}
		lines = append(lines, toolLine{Name: s.Name, Class: builtInClasses[s.Name], Source: "built in", About: firstSentence(s.Description)})
	}
	for i := range c.Requests {
		lines = append(lines, lineOfRequest(&c.Requests[i], c.Path))
	}
	a.complain()
	if a.json {
		for _, l := range lines {
			if err := object(a.out(), l); err != nil {
				return err
			}
		}
		return nil
	}
	t := table{head: []string{"TOOL", "CLASS", "LOOK", "UNDO", "SOURCE", "ABOUT"}}
	for _, l := range lines {
		t.add(l.Name, l.Class, yes(l.Probe != ""), yes(l.Compensate != ""), l.Source, l.About)
	}
	return t.write(a.out(), a.o.Width)
}

func lineOf(d *config.Tool, path string) toolLine {
	l := toolLine{Name: d.Name, Class: d.Contract().String(), Source: path, About: firstSentence(d.Description)}
	if d.Probe != nil {
		l.Probe = d.Probe.Usage()
	}
	if d.Compensate != nil {
		l.Compensate = d.Compensate.Usage()
	}
	return l
}

func lineOfRequest(r *config.Request, path string) toolLine {
	class := r.Contract().String()
	if r.Contract() == machine.ClassUnknown {
		class = effect.HTTP(r.Method, r.URL, r.KeyHeader).Class.String()
	}
	l := toolLine{Name: fmt.Sprintf("http_request %s %s", r.Method, r.URL), Class: class, Source: path, About: r.Name}
	if r.Probe != nil {
		l.Probe = r.Probe.Usage()
	}
	if r.Compensate != nil {
		l.Compensate = r.Compensate.Usage()
	}
	return l
}

// firstSentence is the beginning of a description, up to its first full stop.
func firstSentence(s string) string {
	for i := range len(s) - 1 {
		if s[i] == '.' && s[i+1] == ' ' {
			return s[:i]
		}
	}
	return s
}
