package window

import (
	"fmt"
	"strings"

	"pawl/engine/machine"
)

// childrenSection lists the delegated runs that are not settled, so that a new
// window knows of them; what became of the others stands in the turns.
func childrenSection(s *machine.State) Section {
	x := Section{Name: SectionChildren}
	var b strings.Builder
	for _, c := range s.Children.All() {
		if c.Settled() {
			continue
		}
		fmt.Fprintf(&b, "- %s: %s: %s\n", c.ID, c.Standing(), clean(firstLine(c.Goal)))
		x.Provenance = append(x.Provenance, string(c.ID))
	}
	if b.Len() > 0 {
		x.Text = "These work on parts of the task, each in a work tree of its own. collect waits for them.\n" + strings.TrimRight(b.String(), "\n")
	}
	return x
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	return s
}

// mailText words what another run said. It is never the operator's word.
func mailText(m *machine.Mail) string {
	text := clean(m.Text)
	switch m.Kind {
	case "parent":
		return fmt.Sprintf("Run %s, which delegated this task, says (it is not the operator):\n%s", m.From, text)
	case "child":
		return fmt.Sprintf("Run %s, to which you delegated, says (a claim):\n%s", m.From, text)
	case "review":
		return fmt.Sprintf("Pawl, on run %s to which you delegated: %s", m.From, text)
	}
	return fmt.Sprintf("Pawl, on run %s to which you delegated: %s", m.From, text)
}

// MailText is how a model is shown a word of another run.
func MailText(m *machine.Mail) string { return mailText(m) }
