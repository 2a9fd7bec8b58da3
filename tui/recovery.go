package tui

import (
	"context"
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"pawl/engine"
	"pawl/engine/machine"
	"pawl/views"
)

// heldFor is the reason with which a run is paused while its recovery is stepped through.
const heldFor = "recovery: held until you have seen what comes next"

// recovery opens the steps of the selected run's newest interruption.
func (m *Model) recovery() tea.Cmd {
	run := m.main.subject.run
	if m.focus == panelRuns {
		if r, ok := m.runs.current(); ok {
			run = r.ID
		}
	}
	if m.focus == panelNeeds {
		if it, ok := m.needs.current(); ok {
			run = it.Run
		}
	}
	if run == "" {
		m.say("Select a run to step through its recovery.")
		return nil
	}
	if m.main.subject.kind == showRecovery {
		return nil
	}
	back := subject{kind: showRun, run: run}
	cmd := m.main.show(m, subject{kind: showRecovery, run: run})
	m.main.before = &back
	m.focus = panelMain
	return cmd
}

// openStep opens the card of the effect behind a step.
func (m *Model) openStep(key string) tea.Cmd {
	p := &m.main
	if p.recovery == nil {
		return nil
	}
	b := m.keys.of(ScopeRecovery, OpenStep)
	n := slices.Index(b.Keys, key)
	if n < 0 || n >= len(p.recovery.Steps) || p.recovery.Steps[n].Effect == "" {
		m.say("There is nothing to open behind this step.")
		return nil
	}
	back := p.subject
	cmd := p.show(m, subject{showEffect, back.run, string(p.recovery.Steps[n].Effect)})
	p.before = &back
	return cmd
}

// goOn lets a held run go on.
func (m *Model) goOn() tea.Cmd {
	r := m.main.recovery
	switch {
	case r == nil:
		return nil
	case r.Open > 0:
		m.main.note = fmt.Sprintf("%d of %d steps are not settled yet.", r.Open, len(r.Steps))
		return nil
	case !r.Held:
		m.main.note = "The run is not held: it goes on by itself."
		return nil
	}
	m.main.sent = true
	return m.command(0, "unpause "+string(r.Run), "It goes on: "+r.Goal, r.Run, func(ctx context.Context) error {
		return m.back.Unpause(ctx, r.Run)
	})
}

// stepping reports whether the card was opened from a recovery: then the run is
// held before a verdict lets it move.
func (p *mainPanel) stepping() bool { return p.before != nil && p.before.kind == showRecovery }

// held wraps a decision so that the run is paused before it, if it is not already.
func (m *Model) held(run machine.RunID, decide func(ctx context.Context) error) func(ctx context.Context) error {
	if !m.main.stepping() {
		return decide
	}
	return func(ctx context.Context) error {
		l, err := m.back.Run(ctx, run)
		if err != nil {
			return err
		}
		if l.State == engine.Waiting || l.State == engine.Running || l.State == engine.Interrupted {
			if err := m.back.Pause(ctx, run, heldFor); err != nil {
				return err
			}
		}
		return decide(ctx)
	}
}

func (m *Model) recoveryView(r *engine.Recovery) views.Recovery {
	v := views.Recovery{
		Goal: r.Goal, Never: r.Since.IsZero(), Closed: len(r.Steps) - r.Open, Held: r.Held, Next: r.Next,
		GoKey: m.keys.of(ScopeRecovery, GoOn).hint().Key, When: views.Age(m.now().Sub(r.Since)) + " ago",
	}
	keys := m.keys.of(ScopeRecovery, OpenStep).Keys
	for i, s := range r.Steps {
		st := views.Step{Title: s.Title, How: s.How, More: s.More}
		if s.Effect != "" && i < len(keys) {
			st.Key = keys[i]
		}
		switch s.Sort {
		case engine.StepProven:
			st.Sign, st.State, st.Tone = "✓", "proven", views.ToneGood
		case engine.StepReplayed:
			st.Sign, st.State, st.Tone = "↺", "run again", views.ToneGood
		case engine.StepDecided:
			st.Sign, st.State, st.Tone = "◆", "decided", views.ToneGood
		case engine.StepYours:
			st.Sign, st.State, st.Tone = "?", "yours", views.ToneWarn
		default:
			st.Sign, st.State, st.Tone = "→", "under way", views.TonePlain
		}
		v.Steps = append(v.Steps, st)
	}
	return v
}

// greet says at the start what an interruption has left, without taking the focus.
func (m *Model) greet() {
	n := 0
	for _, p := range m.runs.pages {
		for _, l := range p.lines {
			if l.State == engine.Interrupted {
				n++
			}
		}
	}
	if n == 0 {
		return
	}
	what := "1 run was interrupted and goes on."
	if n > 1 {
		what = fmt.Sprintf("%d runs were interrupted and go on.", n)
	}
	m.say(strings.TrimSpace(what + " " + m.keys.of(ScopeGlobal, Recover).hint().Key + " shows what became of what was under way, step by step."))
}
