package tui

import (
	"fmt"

	tea "charm.land/bubbletea/v2"

	"pawl/views"
)

// dialog is a box over the screen that has all keys while it is on top. It is
// opened by the operator's key only.
type dialog interface {
	// id names it for the guard.
	id() string
	key(m *Model, k tea.KeyPressMsg) tea.Cmd
	paste(m *Model, text string) tea.Cmd
	scroll(m *Model, by int)
	draw(m *Model, w, h int) []string
}

// open puts a dialog on top.
func (m *Model) open(d dialog) { m.dialogs = append(m.dialogs, d) }

// top is the dialog that has the keys, nil if there is none.
func (m *Model) top() dialog {
	if n := len(m.dialogs); n > 0 {
		return m.dialogs[n-1]
	}
	return nil
}

// closeDialog takes a dialog away, wherever it is in the stack.
func (m *Model) closeDialog(d dialog) {
	for i := range m.dialogs {
		if m.dialogs[i] == d {
			m.dialogs = append(m.dialogs[:i:i], m.dialogs[i+1:]...)
			return
		}
	}
}

// pager shows text to read: help, the command log.
type pager struct {
	title  string
	rows   func(m *Model, w int) []string
	offset int
	tail   bool // begin at the end
	room   int
	all    int
}

func (p *pager) id() string { return "" } // nothing can be decided here

func (p *pager) key(m *Model, k tea.KeyPressMsg) tea.Cmd {
	b, _ := m.keys.find(ScopePager, k.String())
	if b.Intent == Back {
		m.closeDialog(p)
		return nil
	}
	p.tail = false
	p.offset = max(min(moved(b.Intent, p.offset, p.all, max(p.room/2, 1)), p.all-p.room), 0)
	return nil
}

func (p *pager) paste(*Model, string) tea.Cmd { return nil }

func (p *pager) scroll(_ *Model, by int) {
	p.tail = false
	p.offset = max(min(p.offset+by, p.all-p.room), 0)
}

func (p *pager) draw(m *Model, w, h int) []string {
	d := views.Dialog{Title: p.title, Keys: m.keys.brief(ScopePager)}
	rows := p.rows(m, views.DialogInner(w))
	p.room, p.all = max(d.Room(m.pen, w, h)-1, 1), len(rows)
	if p.tail {
		p.offset = p.all
	}
	p.offset = max(min(p.offset, p.all-p.room), 0)
	end := min(p.offset+p.room, p.all)
	d.Rows = rows[p.offset:end]
	if end < p.all || p.offset > 0 {
		d.Foot = fmt.Sprintf("%d of %d lines", end, p.all)
	}
	return d.Draw(m.pen, w, h)
}

// helpPager lists what every key does here, then everywhere, then elsewhere.
// It is made from the bindings, so it cannot be out of date.
func (m *Model) helpPager() *pager {
	here := m.scope()
	order := []Scope{here, ScopeGlobal}
	for _, s := range []Scope{ScopeNeeds, ScopeRuns, ScopeRun, ScopeEffect, ScopeApproval, ScopeQuestion, ScopeRecovery, ScopeForm} {
		if s != here {
			order = append(order, s)
		}
	}
	return &pager{title: "Keys", rows: func(m *Model, w int) []string {
		var rows []string
		for i, s := range order {
			if i > 0 {
				rows = append(rows, views.Prose(m.pen, views.TonePlain, " ", w)...)
			}
			head := "In: " + string(s)
			if i == 0 {
				head += " (here)"
			}
			rows = append(rows, views.Prose(m.pen, views.ToneWarn, head, w)...)
			var f []views.Field
			for _, b := range m.keys[s] {
				does := b.Help + "   [" + string(b.Intent) + "]"
				if b.Decides {
					does = b.Help + " (decides)   [" + string(b.Intent) + "]"
				}
				keys := b.allKeys()
				if len(b.Keys) > 4 {
					keys = b.Keys[0] + "…" + b.Keys[len(b.Keys)-1]
				}
				f = append(f, views.Field{Label: keys, Value: does})
			}
			rows = append(rows, views.FieldRows(m.pen, f, w)...)
		}
		rows = append(rows, views.Prose(m.pen, views.ToneDim, "\nKeys that decide count only when the card has been on screen for a moment and no other key came shortly before. Enter, clicks and pasted text never decide.", w)...)
		return rows
	}}
}

// logPager lists every command given from here, and how it went.
func (m *Model) logPager() *pager {
	return &pager{title: "Commands given here", tail: true, rows: func(m *Model, w int) []string {
		if len(m.log) == 0 {
			return views.Prose(m.pen, views.ToneDim, "None yet. What you decide is kept in the ledger for good; this is only what was done from this screen.", w)
		}
		var f []views.Field
		for _, e := range m.log {
			text := e.what + ": done"
			if e.err != "" {
				text = e.what + ": " + e.err
			}
			f = append(f, views.Field{Label: e.at.Local().Format("15:04:05"), Value: text})
		}
		return views.FieldRows(m.pen, f, w)
	}}
}
