package tui

import (
	"context"
	"fmt"

	tea "charm.land/bubbletea/v2"

	"pawl/engine"
	"pawl/views"
)

// Leave is what becomes of the runs that this process drives when it ends.
type Leave string

// The ways to leave.
const (
	LeavePaused     Leave = "paused"     // at their next safe point, until pawl is told to go on
	LeaveBackground Leave = "background" // driven on by a process without a screen
)

// quit ends at once if nothing is driven here, else asks what is to go on.
func (m *Model) quit() tea.Cmd {
	if m.status.Owned == 0 {
		if n := m.status.Runs[engine.Running]; n > 0 {
			m.ending.line = fmt.Sprintf("pawl: %s in other processes.", goOn(n))
		}
		return m.end()
	}
	m.open(&quitDialog{})
	return nil
}

func goOn(n int) string {
	if n == 1 {
		return "1 run goes on"
	}
	return fmt.Sprintf("%d runs go on", n)
}

// end ends the program.
func (m *Model) end() tea.Cmd {
	m.ending.over = true
	return tea.Quit
}

// quitDialog asks what becomes of the runs under way.
type quitDialog struct {
	note  string
	going bool
}

func (q *quitDialog) id() string { return "quit" }

func (q *quitDialog) key(m *Model, k tea.KeyPressMsg) tea.Cmd {
	b, _ := m.keys.find(ScopeQuit, k.String())
	var how Leave
	switch b.Intent {
	case Back:
		m.closeDialog(q)
		return nil
	case LeavePaus:
		how = LeavePaused
	case LeaveBack:
		if !m.opt.CanBackground {
			return nil
		}
		how = LeaveBackground
	default:
		return nil
	}
	if q.going {
		return nil
	}
	if !m.guard.open(q.id(), breath, m.now()) {
		q.note = tooSoon
		return nil
	}
	return m.arm(func() tea.Cmd {
		q.going, q.note = true, ""
		m.ending.leave = how
		return m.do(func(ctx context.Context) tea.Msg {
			if m.opt.Leave == nil {
				return leftMsg{}
			}
			return leftMsg{m.opt.Leave(ctx, how)}
		})
	})
}

func (q *quitDialog) paste(*Model, string) tea.Cmd { return nil }
func (q *quitDialog) scroll(*Model, int)           {}

func (q *quitDialog) draw(m *Model, w, h int) []string {
	iw := views.DialogInner(w)
	n := m.status.Owned
	text := fmt.Sprintf("%s driven from here.", map[bool]string{true: "1 run is", false: fmt.Sprintf("%d runs are", n)}[n == 1])
	text += "\n\nPaused, they stop at their next safe point. Nothing is lost: all that they need stands in the ledger, and they go on where they stopped, here or by “pawl resume”."
	if m.opt.CanBackground {
		text += "\n\nIn the background, a process without a screen drives them on and waits for your answers: “pawl” shows them again at any time."
	}
	if m.status.Need > 0 {
		text += "\n\n" + views.NeedYou(m.status.Need) + " and will still wait."
	}
	d := views.Dialog{Title: "quit", Rows: views.Prose(m.pen, views.TonePlain, text, iw), Note: q.note, Tone: views.ToneWarn}
	for _, b := range m.keys[ScopeQuit] {
		if b.Intent != LeaveBack || m.opt.CanBackground {
			d.Keys = append(d.Keys, b.hint())
		}
	}
	if q.going {
		d.Note, d.Tone, d.Keys = "Waiting for a safe point…", views.ToneDim, nil
	}
	return d.Draw(m.pen, w, h)
}

// left ends the program once the runs are taken care of.
func (m *Model) left(msg leftMsg) tea.Cmd {
	if msg.err != nil {
		m.note("quit", msg.err)
		for _, d := range m.dialogs {
			if q, ok := d.(*quitDialog); ok {
				q.going, q.note = false, msg.err.Error()
			}
		}
		return nil
	}
	switch m.ending.leave {
	case LeaveBackground:
		m.ending.line = "pawl: the runs go on in the background; “pawl” shows them."
	case LeavePaused:
		m.ending.line = "pawl: the runs are paused; “pawl” or “pawl resume --all” goes on with them."
	}
	return m.end()
}
