package tui

import (
	"context"
	"fmt"
	"hash/fnv"
	"time"

	tea "charm.land/bubbletea/v2"

	"pawl/engine"
	"pawl/engine/machine"
	"pawl/themes"
	"pawl/views"

	"github.com/charmbracelet/x/ansi"
)

// what the main panel can show.
type showing int

const (
	showNothing showing = iota
	showRun
	showEffect
	showApproval
	showQuestion
	showRecovery
)

// subject is what the main panel is about.
type subject struct {
	kind showing
	run  machine.RunID
	id   string // of the effect, approval or question
}

// subjectOf is what an inbox item is about.
func subjectOf(it engine.Item) subject {
	switch it.Kind {
	case engine.KindAmbiguous, engine.KindContradicted:
		return subject{showEffect, it.Run, it.ID}
	case engine.KindApproval:
		return subject{showApproval, it.Run, it.ID}
	case engine.KindQuestion, engine.KindDrift, engine.KindConflict, engine.KindOverflow, engine.KindBudget, engine.KindLimit:
		return subject{showQuestion, it.Run, it.ID}
	}
	return subject{showRun, it.Run, ""}
}

// readSubject reads what the main panel shows.
func readSubject(ctx context.Context, b Backend, s subject) subjectLoadedMsg {
	msg := subjectLoadedMsg{subject: s}
	switch s.kind {
	case showRun:
		l, err := b.Run(ctx, s.run)
		msg.run, msg.err = &l, err
	case showEffect:
		c, err := b.EffectCard(ctx, machine.EffectID(s.id))
		msg.effect, msg.err = &c, err
	case showApproval:
		c, err := b.ApprovalCard(ctx, machine.ApprovalID(s.id))
		msg.approval, msg.err = &c, err
	case showQuestion:
		c, err := b.QuestionCard(ctx, machine.QuestionID(s.id))
		msg.question, msg.err = &c, err
	case showRecovery:
		r, err := b.Recovery(ctx, s.run)
		msg.recovery, msg.err = &r, err
	case showNothing:
	}
	return msg
}

// mainPanel is the large panel: a card, or a run with its tabs.
type mainPanel struct {
	subject subject
	before  *subject // the run whose timeline the card was opened from
	tab     int      // of a run

	effect   *engine.EffectCard
	approval *engine.ApprovalCard
	question *engine.QuestionCard
	recovery *engine.Recovery
	run      *engine.RunLine
	failed   string    // why it could not be read
	at       time.Time // when it was read

	offset int  // rows of the card scrolled away
	sent   bool // a decision is on its way
	note   string
	made   madeCard
	line   timeline
	diff   diff
	sheet  sheet
}

// madeCard is the card laid out, kept until its content or the panel changes.
type madeCard struct {
	card   views.Card
	w      int
	styles *themes.Styles
	method ansi.Method
	fresh  bool
}

// forget drops what was laid out for another width or theme.
func (p *mainPanel) forget() { p.made.fresh, p.line.laid.rows = false, nil }

// show turns the panel to another subject and reads it.
func (p *mainPanel) show(m *Model, s subject) tea.Cmd {
	if s == p.subject {
		return nil
	}
	line, tab, beside := p.line, p.tab, p.diff.beside
	*p = mainPanel{subject: s, tab: tab}
	p.diff.beside = beside
	p.line = timeline{open: map[int64]bool{}}
	if line.run == s.run {
		p.line = line // coming back to where one was
	}
	if s.kind == showNothing {
		return nil
	}
	cmds := []tea.Cmd{m.do(func(ctx context.Context) tea.Msg { return readSubject(ctx, m.back, s) })}
	if s.kind == showRun {
		if p.line.run != s.run {
			cmds = append(cmds, p.line.jump(m, s.run, true))
		}
		cmds = append(cmds, p.readTab(m))
	}
	return tea.Batch(cmds...)
}

// loaded takes what was read of the subject.
func (p *mainPanel) loaded(m *Model, msg subjectLoadedMsg) tea.Cmd {
	if msg.subject != p.subject {
		return nil
	}
	p.failed = ""
	if msg.err != nil {
		p.failed = msg.err.Error()
		return nil
	}
	was, old := p.print(), p.run
	p.at = m.now()
	p.effect, p.approval, p.question, p.run, p.recovery = msg.effect, msg.approval, msg.question, msg.run, msg.recovery
	p.made.fresh = false
	if old != nil && p.run != nil && old.Updated != p.run.Updated {
		return p.readTab(m)
	}
	if was != "" && was != p.print() {
		p.note = ""
		if p.pending() && !p.sent {
			p.note = "This card has changed just now."
		}
	}
	return nil
}

// print names what could be decided here, with its content: a key counts for
// exactly this. It is empty where nothing can be decided. What only shows how
// time passes is left out.
func (p *mainPanel) print() string {
	h := fnv.New64a()
	switch {
	case p.effect != nil:
		c := *p.effect
		_, _ = fmt.Fprint(h, c.State, c.Forced, c.Meant, c.Choices) // a hash does not fail
	case p.approval != nil:
		c := *p.approval
		_, _ = fmt.Fprint(h, c.State, c.Digest, c.Text, c.Dir, c.Target, c.Env, c.Files, c.Network, c.Level, c.Drift, c.Like)
	case p.question != nil:
		c := *p.question
		_, _ = fmt.Fprint(h, c.Text, c.Choices, c.Fields)
	case p.recovery != nil:
		_, _ = fmt.Fprint(h, p.recovery.Open, p.recovery.Held, p.recovery.Next)
	case p.run != nil:
		return "run " + string(p.run.ID)
	default:
		return ""
	}
	return fmt.Sprintf("%d %s %x", p.subject.kind, p.subject.id, h.Sum64())
}

// pending reports whether the card still waits for an answer.
func (p *mainPanel) pending() bool {
	switch {
	case p.effect != nil:
		return len(p.effect.Choices) > 0
	case p.approval != nil:
		return p.approval.State == machine.ApprovalPending
	case p.question != nil:
		return true
	case p.recovery != nil:
		return p.recovery.Held && p.recovery.Open == 0
	}
	return false
}

// quieting reports whether a gauge on the card is filling up.
func (p *mainPanel) quieting() bool {
	return p.effect != nil && !p.effect.State.Settled() && p.effect.Quiet.Proven && p.effect.Quiet.Passed < p.effect.Quiet.Needed
}

// fill reads what a larger window needs.
func (p *mainPanel) fill(m *Model) tea.Cmd {
	p.forget()
	if p.subject.kind == showRun {
		return tea.Batch(p.line.ensure(m), p.sheet.list.ensure(m), p.diff.list.ensure(m))
	}
	return nil
}

// scope is where the keys of the main panel have their meaning.
func (p *mainPanel) scope() Scope {
	switch p.subject.kind {
	case showEffect:
		return ScopeEffect
	case showApproval:
		return ScopeApproval
	case showQuestion:
		return ScopeQuestion
	case showRecovery:
		return ScopeRecovery
	case showRun, showNothing:
		return ScopeRun
	}
	return ScopeRun
}

// follow turns the main panel to what is selected in the list with focus. While
// the main panel itself has focus it stays as it is.
func (m *Model) follow() tea.Cmd {
	if m.focus == panelMain {
		return nil
	}
	if it, ok := m.needs.current(); ok && m.focus == panelNeeds {
		return m.main.show(m, subjectOf(it))
	}
	if r, ok := m.runs.current(); ok {
		return m.main.show(m, subject{kind: showRun, run: r.ID})
	}
	return m.main.show(m, subject{})
}
