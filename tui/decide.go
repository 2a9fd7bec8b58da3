package tui

import (
	"context"
	"fmt"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"

	"pawl/engine"
	"pawl/engine/machine"
	"pawl/views"
)

// armed is a decision that is held back for a breath: another key takes it back.
type armed struct {
	seq int
	run func() tea.Cmd
}

const tooSoon = "That key came too soon after another one, or before this could be read, so nothing was decided. Press it again."

// arm holds a decision back.
func (m *Model) arm(run func() tea.Cmd) tea.Cmd {
	m.armed.seq++
	m.armed.run = run
	return m.opt.After(settle, armedMsg{m.armed.seq})
}

// disarm takes a held decision back; it is called for every key and paste.
func (m *Model) disarm() {
	if m.armed.run == nil {
		return
	}
	m.armed.run = nil
	m.say("Nothing was decided: more keys came at once.")
}

// fire carries a decision out that was held back and not taken back.
func (m *Model) fire(msg armedMsg) tea.Cmd {
	if m.armed.run == nil || msg.seq != m.armed.seq {
		return nil
	}
	run := m.armed.run
	m.armed.run = nil
	return run()
}

// decidable names what a deciding key would be about now.
func (m *Model) decidable() string {
	if d := m.top(); d != nil {
		return d.id()
	}
	switch m.focus {
	case panelRuns:
		if r, ok := m.runs.current(); ok {
			return "run " + string(r.ID)
		}
	case panelMain:
		return m.main.print()
	case panelNeeds:
	}
	return ""
}

// drawn names what stands on the screen that could be decided. A card counts as
// drawn while a list has focus, too: it can be read then.
func (m *Model) drawn() string {
	switch {
	case m.tooSmall():
		return ""
	case len(m.dialogs) > 0:
		return m.top().id()
	case m.focus == panelRuns:
		return m.decidable()
	case m.layout().main.h == 0: // on a narrow screen a list hides the card
		return ""
	}
	return m.main.print()
}

// decide acts on a deciding key of a panel, if the guard lets it.
func (m *Model) decide(b Binding, key string) tea.Cmd {
	quiet := grace
	if b.Intent == PauseRun {
		quiet = breath // it can be taken back
	}
	if !m.guard.open(m.decidable(), quiet, m.now()) {
		m.main.note = ""
		if m.focus == panelMain && m.main.subject.kind != showRun {
			m.main.note = tooSoon
		} else {
			m.say(tooSoon)
		}
		return nil
	}
	m.main.note = ""
	p := &m.main
	switch {
	case b.Intent == PauseRun:
		return m.arm(m.pauseRun)
	case p.sent:
		return nil
	case b.Intent == GoOn:
		return m.arm(m.goOn)
	case !p.pending():
		return nil
	case p.effect != nil:
		return m.chooseWay(b.Intent)
	case p.approval != nil && b.Intent == Approve:
		card := p.approval
		return m.arm(func() tea.Cmd {
			if p.approval == nil || p.approval.ID != card.ID || p.approval.Digest != card.Digest {
				m.say("Nothing was decided: the card has changed.")
				return nil
			}
			p.sent = true
			what := "approve " + views.Short(string(card.ID))
			return m.command(0, what, "Approved: "+card.Summary, card.Run, func(ctx context.Context) error {
				return m.back.Approve(ctx, card.ID, card.Digest)
			})
		})
	case p.approval != nil && (b.Intent == ApproveRun || b.Intent == ApproveAll):
		if p.approval.OffersRule == "" {
			p.note = "No rule covers exactly this: it runs other programs, could change behind its words, or resembles what is unresolved. Approve it once."
			return nil
		}
		m.open(m.standingForm(p.approval, b.Intent == ApproveAll))
	case p.approval != nil && b.Intent == EditIt:
		m.open(m.editForm(p.approval))
	case p.approval != nil && b.Intent == Deny:
		m.open(m.denyForm(p.approval))
	case p.question != nil:
		text := ""
		if b.Intent == Choose {
			n := slices.Index(b.Keys, key)
			if n < 0 || n >= len(p.question.Choices) {
				return nil
			}
			text = p.question.Choices[n]
		}
		m.open(m.answerForm(p.question, text))
	}
	return nil
}

// chooseWay opens the last step of a way out of an ambiguous effect.
func (m *Model) chooseWay(i Intent) tea.Cmd {
	c := m.main.effect
	v, ok := choiceFor(c, i)
	if !ok {
		return nil
	}
	if !v.Open {
		m.main.note = v.Title + " is not possible now: " + closedWhy(v)
		return nil
	}
	m.open(m.wayForm(c, v))
	return nil
}

// command gives the engine a command and reports how it went.
func (m *Model) command(seq int, what, done string, run machine.RunID, f func(context.Context) error) tea.Cmd {
	return m.do(func(ctx context.Context) tea.Msg {
		return m.driven(ctx, decidedMsg{seq: seq, what: what, done: done, run: run, err: f(ctx)})
	})
}

// driven sees to it that a run moves after a decision. Where another process
// owns it, that one sees the decision and carries it out.
func (m *Model) driven(ctx context.Context, msg decidedMsg) decidedMsg {
	if msg.err == nil && msg.run != "" {
		msg.idle = m.back.Drive(ctx, msg.run)
	}
	return msg
}

// decided takes the outcome of a command.
func (m *Model) decided(msg decidedMsg) tea.Cmd {
	m.note(msg.what, msg.err)
	if msg.idle != nil {
		m.note("drive "+string(msg.run)+" here", msg.idle)
	}
	m.main.sent = false
	form := m.formOf(msg.seq)
	if msg.err != nil {
		if form != nil { // what was typed stays
			form.sending, form.note = false, msg.err.Error()
		} else {
			m.complain(msg.err.Error())
		}
		return m.reload()
	}
	if form != nil {
		m.closeDialog(form)
	}
	m.say(msg.done)
	if m.focus == panelMain && m.main.subject.kind == showRecovery {
		return m.reload()
	}
	if m.focus == panelMain && m.main.subject.kind != showRun && len(m.dialogs) == 0 {
		// What waits next is shown, but does not take the focus.
		m.focus = panelNeeds
		if m.main.before != nil {
			m.focus = panelMain
			return tea.Batch(m.main.show(m, *m.main.before), m.reload())
		}
	}
	return tea.Batch(m.reload(), m.follow())
}

// selectedRun is the run that a run's keys are about.
func (m *Model) selectedRun() (engine.RunLine, bool) {
	if m.focus == panelMain || m.focus == panelNeeds {
		if m.main.run != nil {
			return *m.main.run, true
		}
		return engine.RunLine{}, false
	}
	return m.runs.current()
}

func (m *Model) pauseRun() tea.Cmd {
	r, ok := m.selectedRun()
	if !ok {
		return nil
	}
	switch r.State {
	case engine.Paused:
		return m.command(0, "unpause "+string(r.ID), "It goes on: "+r.Goal, r.ID, func(ctx context.Context) error {
			return m.back.Unpause(ctx, r.ID)
		})
	case engine.Running, engine.Waiting, engine.Interrupted:
		return m.command(0, "pause "+string(r.ID), "Paused at the next safe point; nothing is lost: "+r.Goal, r.ID, func(ctx context.Context) error {
			return m.back.Pause(ctx, r.ID, "")
		})
	case engine.Done, engine.Failed, engine.Cancelled:
		m.say(fmt.Sprintf("This run has ended (%s): there is nothing to pause.", r.State))
	}
	return nil
}

// logEntry is one command given.
type logEntry struct {
	at   time.Time
	what string
	err  string
}

func (m *Model) note(what string, err error) {
	e := logEntry{at: m.now(), what: what}
	if err != nil {
		e.err = err.Error()
	}
	m.log = append(m.log, e)
	if len(m.log) > 1000 {
		m.log = m.log[len(m.log)-1000:]
	}
}
