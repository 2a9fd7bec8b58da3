package tui

import (
	"time"

	tea "charm.land/bubbletea/v2"
)

// toast is a passing message. One that tells of a fault stays longer.
type toast struct {
	text    string
	bad     bool
	seq     int
	started bool
}

// say shows a message for a while.
func (m *Model) say(text string) {
	if text != "" {
		m.toast = toast{text: text, seq: m.toast.seq + 1}
	}
}

// complain shows that something went wrong: what, why and what next.
func (m *Model) complain(text string) {
	m.toast = toast{text: text, bad: true, seq: m.toast.seq + 1}
}

// start returns the command that ends a new message in time.
func (t *toast) start(m *Model) tea.Cmd {
	if t.text == "" || t.started {
		return nil
	}
	t.started = true
	d := 6 * time.Second
	if t.bad {
		d = 20 * time.Second
	}
	return m.opt.After(d, toastEndedMsg{t.seq})
}

func (t *toast) end(msg toastEndedMsg) {
	if msg.seq == t.seq {
		t.clear()
	}
}

func (t *toast) clear() { t.text = "" }
