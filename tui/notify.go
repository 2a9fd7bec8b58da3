package tui

import (
	"fmt"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"pawl/engine"
	"pawl/views"
)

// notify tells the operator who looks elsewhere that something new waits: once
// for all that came together, only while the terminal has no focus, and never
// for what waited already when the program started. The bell is for terminals
// that know no notifications.
func (m *Model) notify(fresh []engine.Item, first bool) tea.Cmd {
	if first || m.opt.Silent || !m.blurred || len(fresh) == 0 {
		return nil
	}
	text := views.NeedYou(len(m.needs.items))
	if len(fresh) == 1 {
		text = fmt.Sprintf("%s: %s", oneLineSafe(fresh[0].Kind), oneLineSafe(fresh[0].Summary))
	}
	return tea.Raw(ansi.Notify("pawl: "+text) + "\a")
}
