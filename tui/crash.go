package tui

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"

	tea "charm.land/bubbletea/v2"
)

// crash is a panic that was caught, wherever it happened: in Update, in View,
// in a command, or in the engine. The program ends in order, so that the
// terminal is whole again, and one line says why.
type crash struct {
	where string
	what  string
	stack []byte
}

func caught(where string, r any) crash {
	return crash{where: where, what: fmt.Sprint(r), stack: debug.Stack()}
}

// rescue turns a panic of Update into an orderly end.
func (m *Model) rescue(where string, cmd *tea.Cmd) {
	if r := recover(); r != nil {
		*cmd = m.crashed(caught(where, r))
	}
}

// rescueView does the same for View, which can return no command: the pump
// carries the news.
func (m *Model) rescueView(v *tea.View) {
	r := recover()
	if r == nil {
		return
	}
	*v = tea.NewView("")
	v.AltScreen = true
	select {
	case m.crashes <- caught("the screen", r):
	default: // one is on its way already
	}
}

// crashed ends the program.
func (m *Model) crashed(c crash) tea.Cmd {
	if m.ending.err != nil {
		return tea.Quit
	}
	m.ending.err = fmt.Errorf("pawl stopped: %s failed: %s. What was committed is safe; “pawl” goes on with it%s",
		c.where, oneLineSafe(c.what), m.report(c))
	m.ending.over = true
	return tea.Quit
}

// report keeps what a developer needs, and says where.
func (m *Model) report(c crash) string {
	if len(c.stack) == 0 || m.opt.StateDir == "" {
		return ""
	}
	path := filepath.Join(m.opt.StateDir, "crash-"+m.now().UTC().Format("20060102T150405")+".txt")
	text := fmt.Sprintf("%s: %s\n\n%s", c.where, c.what, c.stack)
	if os.MkdirAll(m.opt.StateDir, 0o700) != nil || os.WriteFile(path, []byte(text), 0o600) != nil {
		return ""
	}
	return ". Details are in " + path
}
