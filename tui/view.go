package tui

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"

	"pawl/engine"
	"pawl/views"
	"pawl/views/safe"
)

// View returns the frame. It is asked for after every message, and composed
// only if one has changed something.
func (m *Model) View() (v tea.View) {
	defer m.rescueView(&v)
	if m.changed && !m.pace.held {
		m.changed = false
		m.frame = m.compose()
		m.pace.last = m.now()
	}
	return m.frame
}

// pace holds frames back that follow another too closely, so that keys that come
// in a burst, such as a paste that is not marked as one, cost no frame each. The
// first change after a rest is always drawn at once.
type pace struct {
	last    time.Time // of the frame composed last
	held    bool
	waiting bool // a framedMsg is on its way
	due     bool // it has come
}

// hold decides at the end of an Update whether a frame may be composed.
func (p *pace) hold(m *Model) tea.Cmd {
	since := m.now().Sub(p.last)
	p.held = m.changed && !p.due && since >= 0 && since < m.opt.frame
	if p.due {
		p.due, p.waiting = false, false
	}
	if !p.held || p.waiting {
		return nil
	}
	p.waiting = true
	return m.opt.After(m.opt.frame, framedMsg{})
}

func (m *Model) compose() tea.View {
	v := tea.NewView(strings.Join(m.rows(), "\n"))
	v.AltScreen = true
	v.MouseMode = tea.MouseModeCellMotion
	v.ReportFocus = true
	v.WindowTitle = m.title()
	if g := m.pen.Ground; g != "" {
		v.BackgroundColor = lipgloss.Color(g)
	}
	m.progress(&v)
	m.guard.drew(m.drawn(), m.now())
	return v
}

// rows are the screen's m.h rows of m.w cells.
func (m *Model) rows() []string {
	if m.w <= 0 || m.h <= 0 {
		return nil
	}
	if m.tooSmall() {
		return views.Notice(m.pen, m.w, m.h, len(m.needs.items), minW, minH)
	}
	l := m.layout()
	body := m.body(l)
	if d := m.top(); d != nil {
		box := d.draw(m, m.w, len(body))
		x, y := views.Center(m.w, len(body), views.DialogWidth(m.w), len(box))
		body = views.Overlay(m.pen, body, box, m.w, x, y)
	}
	rows := append(make([]string, 0, m.h), m.header())
	rows = append(rows, body...)
	rows = append(rows, m.helpLine())
	if m.toast.text != "" { // over the help line, and as much above it as it needs
		t := views.Toast(m.pen, m.toast.text, m.toast.bad, m.w, max(len(body)/3, 1))
		copy(rows[len(rows)-len(t):], t)
	}
	return rows
}

func (m *Model) body(l layout) []string {
	var left []string
	if l.needs.h > 0 {
		left = append(left, m.needsView(l.needs.w, l.needs.h)...)
	}
	if l.runs.h > 0 {
		left = append(left, m.runsView(l.runs.w, l.runs.h)...)
	}
	if l.main.h == 0 {
		return left
	}
	main := m.mainView(l.main.w, l.main.h)
	if left == nil {
		return main
	}
	return views.Beside(left, main)
}

func (m *Model) header() string {
	s := m.status
	h := views.Header{
		Needs: len(m.needs.items), Running: s.Runs[engine.Running], Spend: s.Spend, Budget: s.Budget,
		Ledger: filepath.Base(s.Path), ReadOnly: s.ReadOnly, Loading: !m.read,
	}
	for _, n := range s.Runs {
		h.Runs += n
	}
	if s.Path == "" {
		h.Ledger = "ledger"
	}
	return h.Draw(m.pen, m.w)
}

func (m *Model) helpLine() string {
	var l views.HelpLine
	switch {
	case m.top() != nil: // a dialog shows its own
	case m.filter != nil:
		l.Hints = m.keys.brief(ScopeFilter)
	case m.focus == panelMain && m.main.subject.kind != showRun:
		b := m.keys.of(m.scope(), Back).hint()
		l.Hints = append([]views.KeyHint{b}, m.keys.brief(ScopeGlobal)...)
	default:
		l.Hints = m.keys.brief(m.scope(), ScopeGlobal)
	}
	if r := m.main.run; r != nil && m.main.subject.kind == showRun {
		l.Right = fmt.Sprintf("%s · turn %d", r.ID, r.Turns)
		if r.Note != "" {
			l.Right = r.Note + " · " + l.Right
		}
	} else if m.main.subject.run != "" {
		l.Right = string(m.main.subject.run)
	}
	return l.Draw(m.pen, m.w)
}

// title is the terminal window's.
func (m *Model) title() string {
	if n := len(m.needs.items); n > 0 {
		return "pawl: " + views.NeedYou(n)
	}
	if n := m.status.Runs[engine.Running]; n > 0 {
		return fmt.Sprintf("pawl: %d running", n)
	}
	return "pawl"
}

// progress tells the terminal itself how things stand.
func (m *Model) progress(v *tea.View) {
	status := &tea.ProgramStatus{State: tea.ProgramStateIdle}
	switch {
	case m.ending.over:
	case len(m.needs.items) > 0:
		v.ProgressBar = tea.NewProgressBar(tea.ProgressBarWarning, 100)
		status.State = tea.ProgramStateBlocked
		status.Kind = tea.ProgramStatusKindQuestion
		if m.needs.items[0].Kind == engine.KindApproval {
			status.Kind = tea.ProgramStatusKindPermission
		}
	case m.status.Runs[engine.Running] > 0:
		v.ProgressBar = tea.NewProgressBar(tea.ProgressBarIndeterminate, 0)
		status.State = tea.ProgramStateWorking
	}
	v.ProgramStatus = status
}

// oneLineSafe is a text for places outside the screen, such as a notification.
func oneLineSafe(s string) string { return safe.Title(safe.Head(s, 200)) }
