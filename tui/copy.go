package tui

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	tea "charm.land/bubbletea/v2"
)

// mostClip is the number of bytes that terminals surely take by OSC 52.
const mostClip = 74 << 10

// shown is the text that copying is about.
func (m *Model) shown() (what, text string) {
	p := &m.main
	switch m.focus {
	case panelNeeds:
		if it, ok := m.needs.current(); ok {
			return "the command that decides it", it.Next
		}
	case panelRuns:
		if r, ok := m.runs.current(); ok {
			return "the run's id", string(r.ID)
		}
	case panelMain:
		switch {
		case p.effect != nil && p.effect.Look != "":
			return "the line to look with", p.effect.Look
		case p.effect != nil:
			return "the effect's id", string(p.effect.ID)
		case p.approval != nil:
			return "the command", p.approval.Text
		case p.question != nil:
			return "the question", p.question.Text
		case p.tab == tabDiff:
			return "the diff", p.diff.text
		}
		if r, ok := p.list().current(); ok {
			text := r.Title
			for _, d := range r.Detail {
				text += "\n" + d
			}
			return "the row", text
		}
	}
	return "", ""
}

// copyShown puts the text into the clipboard by way of the terminal. Terminals
// do not say whether they did, so it also goes into a file that is named.
func (m *Model) copyShown() tea.Cmd {
	what, text := m.shown()
	if text == "" {
		m.say("There is nothing here to copy.")
		return nil
	}
	m.say("Copied " + what + ".")
	dir := m.opt.StateDir
	save := m.do(func(context.Context) tea.Msg {
		path, err := saveCopy(dir, text)
		return copiedMsg{path, err}
	})
	if len(text) > mostClip {
		return save
	}
	return tea.Batch(tea.SetClipboard(text), save)
}

func saveCopy(dir, text string) (string, error) {
	if dir == "" {
		return "", fmt.Errorf("no folder of its own is set")
	}
	path := filepath.Join(dir, "copied.txt")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	return path, os.WriteFile(path, []byte(text), 0o600)
}

func (m *Model) copied(msg copiedMsg) {
	what, text := m.shown()
	switch {
	case msg.err == nil && len(text) > mostClip:
		m.say(fmt.Sprintf("Too long for the clipboard (%s of %d kB): it is in %s.", what, len(text)>>10, msg.path))
	case msg.err == nil:
		m.say("Copied " + what + ". If your terminal takes no clipboard text: it is in " + msg.path + " as well.")
	case len(text) > mostClip:
		m.complain("Not copied: the text is too long for the clipboard and could not be saved: " + msg.err.Error())
	}
}
