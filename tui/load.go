package tui

import (
	"context"
	"errors"
	"time"

	tea "charm.land/bubbletea/v2"

	"pawl/engine"
)

const (
	pageRuns = 200 // runs read at once
	pageRows = 200 // timeline rows read at once
)

// reload reads again what is on screen. At most one reading is under way; what
// changes meanwhile is read by one more afterwards.
func (m *Model) reload() tea.Cmd {
	if m.loading {
		m.stale = true
		return nil
	}
	m.loading, m.stale = true, false
	began := m.now()
	search := m.runs.search
	subj := m.main.subject
	tail, wantTail := m.main.line.tailQuery()
	return m.do(func(ctx context.Context) tea.Msg {
		msg := loadedMsg{began: began}
		var errs [5]error
		msg.status, errs[0] = m.back.Status(ctx)
		msg.items, errs[1] = m.back.Inbox(ctx)
		msg.page = runsLoadedMsg{search: search}
		msg.page.lines, errs[2] = m.back.Runs(ctx, engine.RunsQuery{Search: search, Limit: pageRuns})
		if subj.kind != showNothing {
			s := readSubject(ctx, m.back, subj)
			msg.subject = &s
		}
		if wantTail {
			tail.rows, errs[3] = m.back.Timeline(ctx, tail.run, tail.after, tail.back, pageRows)
			msg.tail = &tail
		}
		msg.err = errors.Join(errs[:]...)
		return msg
	})
}

// breather is the shortest time between two readings.
const breather = 50 * time.Millisecond

// rested begins the reading that was asked for meanwhile.
func (m *Model) rested() tea.Cmd {
	m.loading, m.changed = false, false
	if m.stale {
		return m.reload()
	}
	return nil
}

// loaded takes a reading.
func (m *Model) loaded(msg loadedMsg) tea.Cmd {
	// A fleet that commits all the time leaves most of the processor alone: the
	// next reading waits for four times as long as this one took.
	rest := max(breather, 4*m.now().Sub(msg.began))
	cmds := []tea.Cmd{m.opt.After(rest, restedMsg{})}
	if msg.err != nil {
		m.complain("The ledger could not be read: " + msg.err.Error())
		return tea.Batch(cmds...)
	}
	first := !m.read
	m.read = true
	m.status = msg.status
	cmds = append(cmds, m.notify(m.needs.take(msg.items), first))
	cmds = append(cmds, m.runs.loaded(m, msg.page))
	if msg.subject != nil {
		cmds = append(cmds, m.main.loaded(m, *msg.subject))
	}
	if msg.tail != nil {
		cmds = append(cmds, m.main.line.loaded(m, *msg.tail))
	}
	if first {
		if len(m.needs.items) == 0 {
			m.focus = panelRuns
		}
		m.greet()
	}
	cmds = append(cmds, m.follow(), m.hurry())
	return tea.Batch(cmds...)
}
