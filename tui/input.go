package tui

import (
	"context"

	tea "charm.land/bubbletea/v2"

	"pawl/views"
)

// key routes a key: a dialog has it first, then a filter being typed, then the
// panel with focus, then everywhere.
func (m *Model) key(k tea.KeyPressMsg) tea.Cmd {
	m.disarm()
	defer m.guard.touched(m.now())
	if m.tooSmall() {
		if b, ok := m.keys.find(ScopeGlobal, k.String()); ok && (b.Intent == Quit || b.Intent == Suspend) && m.top() == nil {
			return m.act(b.Intent)
		}
		if m.top() == nil {
			return nil
		}
	}
	if d := m.top(); d != nil {
		return d.key(m, k)
	}
	if m.filter != nil {
		return m.filterKey(k)
	}
	key := k.String()
	for _, s := range []Scope{m.scope(), ScopeGlobal} {
		if b, ok := m.keys.find(s, key); ok {
			if b.Decides {
				return m.decide(b, key)
			}
			if b.Intent == OpenStep {
				return m.openStep(key)
			}
			return m.act(b.Intent)
		}
	}
	return nil
}

// scope is where keys have their meaning first.
func (m *Model) scope() Scope {
	switch m.focus {
	case panelNeeds:
		return ScopeNeeds
	case panelRuns:
		return ScopeRuns
	case panelMain:
		return m.main.scope()
	}
	return ScopeGlobal
}

// paste goes into a text field, and nowhere else.
func (m *Model) paste(text string) tea.Cmd {
	m.disarm()
	m.guard.touched(m.now())
	switch {
	case m.top() != nil:
		return m.top().paste(m, text)
	case m.filter != nil:
		m.filter.Insert(text)
		return m.narrow(m.filter.Value())
	}
	m.say("What was pasted went nowhere: no text field is open.")
	return nil
}

// act carries out an intent that decides nothing.
func (m *Model) act(i Intent) tea.Cmd {
	switch i {
	case Help:
		m.open(m.helpPager())
	case Palette:
		m.open(m.palette())
	case Log:
		m.open(m.logPager())
	case Quit:
		return m.quit()
	case New:
		if m.status.ReadOnly {
			m.complain("A run cannot be started here: the ledger is open for viewing only. " + m.status.Why)
			return nil
		}
		m.open(m.newRunForm())
	case Filter:
		m.startFilter()
	case Next:
		return m.setFocus((m.focus + 1) % 3)
	case Prev:
		return m.setFocus((m.focus + 2) % 3)
	case ToNeeds:
		return m.setFocus(panelNeeds)
	case ToRuns:
		return m.setFocus(panelRuns)
	case ToMain:
		return m.setFocus(panelMain)
	case FirstNeed:
		m.needs.move(0)
		return m.setFocus(panelNeeds)
	case Demo:
		return m.demo()
	case Pager:
		return m.pagerOf()
	case EditFile:
		return m.editFile()
	case Recover:
		return m.recovery()
	case Redraw:
		return tea.Batch(tea.ClearScreen, m.reload())
	case Suspend:
		return m.do(func(context.Context) tea.Msg {
			stopSelf()
			return nil
		})
	case Copy:
		return m.copyShown()
	case LandRun:
		return m.land()
	case TellRun:
		if r, ok := m.selectedRun(); ok {
			m.open(m.tellForm(r))
		}
	case CancelRun:
		if r, ok := m.selectedRun(); ok {
			m.open(m.cancelForm(r))
		}
	default:
		return m.move(i)
	}
	return nil
}

// move carries out an intent of the panel with focus.
func (m *Model) move(i Intent) tea.Cmd {
	if i == Back && m.focus != panelMain {
		return m.narrow("")
	}
	switch m.focus {
	case panelNeeds:
		if i == Open {
			if len(m.needs.shown) == 0 {
				return nil
			}
			return m.setFocus(panelMain)
		}
		m.needs.move(moved(i, m.needs.selected, len(m.needs.shown), m.half(panelNeeds)))
		return m.follow()
	case panelRuns:
		switch i {
		case Open:
			return m.setFocus(panelMain)
		case Fold, Unfold:
			m.runs.fold(i == Fold)
			return m.follow()
		default: // it moves the selection
		}
		cmd := m.runs.move(m, moved(i, m.runs.selected, len(m.runs.flat), m.half(panelRuns)))
		return tea.Batch(cmd, m.follow())
	case panelMain:
		return m.moveMain(i)
	}
	return nil
}

// moved is where an intent takes a selection in a list of n.
func moved(i Intent, at, n, half int) int {
	switch i {
	case Up:
		return at - 1
	case Down:
		return at + 1
	case PageUp:
		return at - half
	case PageDown:
		return at + half
	case Top:
		return 0
	case Bottom:
		return n - 1
	default:
		return at
	}
}

func (m *Model) half(p panel) int { return max((m.layout().of(p).h-2)/2, 1) }

func (m *Model) moveMain(i Intent) tea.Cmd {
	p := &m.main
	if i == Back {
		if p.before != nil {
			return p.show(m, *p.before)
		}
		return m.setFocus(m.from())
	}
	if p.subject.kind != showRun {
		c, ok := m.card(m.layout().main.w)
		if !ok {
			return nil
		}
		p.note = ""
		p.offset = max(min(moved(i, p.offset, len(c.Rows), m.half(panelMain)), len(c.Rows)), 0)
		return nil
	}
	switch i {
	case TabNext, TabPrev:
		return m.turnTab(map[Intent]int{TabNext: 1, TabPrev: -1}[i])
	case Sides:
		if p.tab != tabDiff {
			m.say("Two columns are for the Diff tab.")
			return nil
		}
		return p.diff.turn(m)
	case WindowNext, WindowPrev:
		return m.turnWindow(map[Intent]int{WindowNext: 1, WindowPrev: -1}[i])
	case Behind:
		return m.openEffect()
	default: // it moves within the tab
	}
	l := p.list()
	switch i {
	case Open:
		if cmd, ok := m.openRow(); ok {
			return cmd
		}
		return l.toggle(m)
	case Up:
		return l.step(m, -1)
	case Down:
		return l.step(m, 1)
	case PageUp, PageDown:
		l.scroll(m, moved(i, 0, 1, m.half(panelMain)))
		l.selected = max(min(moved(i, l.selected, len(l.rows), m.half(panelMain)), len(l.rows)-1), 0)
		return l.ensure(m)
	case Top:
		if l.first {
			l.selected = 0
			return l.ensure(m)
		}
		return l.jump(m, p.subject.run, false)
	case Bottom:
		if l.last {
			l.selected = len(l.rows)
			return l.ensure(m)
		}
		return l.jump(m, p.subject.run, true)
	default:
		return nil
	}
}

// from is the list that the main panel's subject belongs to.
func (m *Model) from() panel {
	if it, ok := m.needs.current(); ok && subjectOf(it) == m.main.subject {
		return panelNeeds
	}
	return panelRuns
}

// openEffect opens the card of the effect behind the selected row.
func (m *Model) openEffect() tea.Cmd {
	r, ok := m.main.list().current()
	if !ok || r.Effect == "" {
		m.say("No effect stands behind this row.")
		return nil
	}
	back := m.main.subject
	cmd := m.main.show(m, subject{showEffect, back.run, string(r.Effect)})
	m.main.before = &back
	return cmd
}

// setFocus gives a panel the focus. Only the operator's own key or click does.
func (m *Model) setFocus(p panel) tea.Cmd {
	m.focus = p
	m.main.note = ""
	return m.follow()
}

// startFilter opens the filter of the list with focus.
func (m *Model) startFilter() {
	if m.focus == panelMain {
		m.focus = m.from()
	}
	m.filter = newEditor(true)
	if m.focus == panelNeeds {
		m.filter.Set(m.needs.filter)
	} else {
		m.filter.Set(m.runs.search)
	}
}

func (m *Model) filterKey(k tea.KeyPressMsg) tea.Cmd {
	b, _ := m.keys.find(ScopeFilter, k.String())
	switch b.Intent {
	case Open:
		m.filter = nil
		return nil
	case Back:
		m.filter = nil
		return m.narrow("")
	default: // it is typed
	}
	if !m.filter.Key(k) {
		return nil
	}
	return m.narrow(m.filter.Value())
}

func (m *Model) narrow(text string) tea.Cmd {
	if m.focus == panelNeeds {
		m.needs.narrow(text)
		return m.follow()
	}
	return m.runs.narrow(m, text)
}

// typing is a panel's filter and whether it is being typed.
func (m *Model) typing(p panel, filter string) (string, bool) {
	if m.filter != nil && m.focus == p {
		return m.filter.Value(), true
	}
	return filter, false
}

// click selects; it never decides.
func (m *Model) click(at tea.Mouse) tea.Cmd {
	if at.Button != tea.MouseLeft || m.top() != nil || m.tooSmall() {
		return nil
	}
	m.disarm()
	m.guard.touched(m.now())
	l := m.layout()
	p, y, ok := l.at(at.X, at.Y)
	if !ok {
		return nil
	}
	m.filter = nil
	row := y - 1 // below the frame
	switch p {
	case panelNeeds:
		if n := m.needs.offset + row; row >= 0 && n < len(m.needs.shown) {
			m.needs.selected = n
		}
	case panelRuns:
		if n := m.runs.offset + row; row >= 0 && n < len(m.runs.flat) {
			m.runs.selected = n
		}
	case panelMain:
		if m.main.subject.kind == showRun {
			m.main.list().click(m, row)
		}
	}
	return m.setFocus(p)
}

// click selects the row at a line of the window.
func (t *timeline) click(m *Model, line int) {
	line += t.skip
	for i := t.top; i < len(t.rows) && line >= 0; i++ {
		h := t.height(m, i)
		if line < h {
			t.selected = i
			return
		}
		line -= h
	}
}

// wheel scrolls what is under the pointer.
func (m *Model) wheel(at tea.Mouse) tea.Cmd {
	d := 0
	switch at.Button {
	case tea.MouseWheelUp:
		d = -3
	case tea.MouseWheelDown:
		d = 3
	default:
		return nil
	}
	if t := m.top(); t != nil {
		t.scroll(m, d)
		return nil
	}
	p, _, ok := m.layout().at(at.X, at.Y)
	if !ok {
		return nil
	}
	switch p {
	case panelNeeds:
		m.needs.move(m.needs.selected + d)
		return m.follow()
	case panelRuns:
		return tea.Batch(m.runs.move(m, m.runs.selected+d), m.follow())
	case panelMain:
		switch {
		case m.main.subject.kind != showRun:
			m.main.offset = max(m.main.offset+d, 0)
		default:
			l := m.main.list()
			l.scroll(m, d)
			_, ih := views.Inner(l.w, l.h)
			l.selected = max(min(l.selected, l.top+ih-1, len(l.rows)-1), 0)
			return l.ensure(m)
		}
	}
	return nil
}
