package tui

import (
	"fmt"
	"strings"

	"pawl/engine"
	"pawl/engine/machine"
	"pawl/views"
)

// ways ties each way out of an ambiguous effect to its intent.
var ways = []struct {
	choice machine.Choice
	intent Intent
}{
	{machine.ChooseWait, Wait},
	{machine.ChooseProbe, ProbeNow},
	{machine.ChooseHappened, Happened},
	{machine.ChooseRetry, Retry},
	{machine.ChooseCompensate, Compensate},
	{machine.ChooseAbandon, Abandon},
}

func intentOf(c machine.Choice) Intent {
	for _, w := range ways {
		if w.choice == c {
			return w.intent
		}
	}
	return ""
}

// choiceFor is the choice behind an intent, as the card shows it.
func choiceFor(c *engine.EffectCard, i Intent) (engine.ChoiceView, bool) {
	for _, v := range c.Choices {
		if intentOf(v.Choice) == i {
			return v, true
		}
	}
	return engine.ChoiceView{}, false
}

func fields(in []engine.Field) []views.Field {
	out := make([]views.Field, len(in))
	for i, f := range in {
		out[i] = views.Field(f)
	}
	return out
}

func (m *Model) choiceView(c engine.ChoiceView) views.Choice {
	return views.Choice{
		Key: m.keys.of(ScopeEffect, intentOf(c.Choice)).hint().Key, Title: c.Title, Cost: c.Cost,
		ModelText: c.ModelText, Why: closedWhy(c), Forced: c.Forced,
	}
}

func closedWhy(c engine.ChoiceView) string {
	switch {
	case c.Open:
		return ""
	case c.Why == "":
		return "not possible for this effect"
	}
	return c.Why
}

func (m *Model) effectView(c *engine.EffectCard) views.Effect {
	state := strings.ReplaceAll(c.State.String(), "_", " ")
	if c.Forced {
		state += " (forced)"
	}
	v := views.Effect{
		Short: c.ID.Short(), Summary: c.Summary, Sentence: c.Sentence, State: state, Class: c.Class.String(),
		Settled: c.State.Settled(), Look: c.Look, LookHow: c.LookHow,
		Meant: fields(c.Meant), Known: fields(c.Known), Looked: fields(c.Looked),
		Quiet: views.Quiet{Proven: c.Quiet.Proven, Proof: c.Quiet.Proof, Full: 1},
	}
	if c.Look != "" {
		v.CopyKey = m.keys.of(ScopeEffect, Copy).hint().Key
	}
	if c.Quiet.Needed > 0 {
		passed := c.Quiet.Passed
		if m.main.quieting() {
			passed = min(passed+m.now().Sub(m.main.at), c.Quiet.Needed)
		}
		v.Quiet.Full = float64(passed) / float64(c.Quiet.Needed)
		v.Quiet.Passed, v.Quiet.Needed = views.Age(passed), views.Age(c.Quiet.Needed)
	}
	for _, ch := range c.Choices {
		v.Choices = append(v.Choices, m.choiceView(ch))
	}
	return v
}

func approvalView(c *engine.ApprovalCard) views.Approval {
	v := views.Approval{
		Short: views.Short(string(c.ID)), Effect: c.Effect.Short(), Goal: c.Goal, State: string(c.State),
		Pending: c.State == machine.ApprovalPending, Tool: c.Tool, Class: c.Class.String(), Summary: c.Summary,
		Text: c.Text, Dir: c.Dir, Target: c.Target, Env: fields(c.Env), Network: c.Network, Level: c.Level,
		Why: c.Why, Drift: c.Drift, Like: c.Like, Rule: c.OffersRule, Digest: c.Digest.String(),
	}
	for _, f := range c.Files {
		v.Files = append(v.Files, views.File{Path: f.Path, Digest: f.Digest.Short()})
	}
	return v
}

func (m *Model) questionView(c *engine.QuestionCard) views.Question {
	v := views.Question{
		Short: views.Short(string(c.ID)), Goal: c.Goal, Sort: string(c.Sort), Text: c.Text,
		Choices: c.Choices, Fields: fields(c.Fields),
	}
	if !m.waits(string(c.ID)) {
		v.Closed = "It waits for no answer any more."
	}
	return v
}

// waits reports whether an id still stands in the inbox.
func (m *Model) waits(id string) bool {
	for _, it := range m.needs.items {
		if it.ID == id {
			return true
		}
	}
	return false
}

// card lays the panel's card out for a panel of w cells, if it has one.
func (m *Model) card(w int) (views.Card, bool) {
	p := &m.main
	if p.made.fresh && !p.quieting() && p.made.w == w && p.made.styles == m.pen.Styles && p.made.method == m.pen.Method {
		return p.made.card, true
	}
	var c views.Card
	switch {
	case p.effect != nil:
		c = m.effectView(p.effect).Card(m.pen, w)
	case p.approval != nil:
		c = approvalView(p.approval).Card(m.pen, w)
	case p.question != nil:
		c = m.questionView(p.question).Card(m.pen, w)
	case p.recovery != nil:
		c = m.recoveryView(p.recovery).Card(m.pen, w)
	default:
		return c, false
	}
	p.made = madeCard{card: c, w: w, styles: m.pen.Styles, method: m.pen.Method, fresh: true}
	return c, true
}

// cardFrame is what changes about the card from frame to frame.
func (m *Model) cardFrame() views.CardFrame {
	p := &m.main
	f := views.CardFrame{Offset: p.offset, Focus: m.focus == panelMain, Note: p.note, Tone: views.ToneWarn}
	scope := p.scope()
	switch {
	case p.sent:
		f.Note, f.Tone = "On its way…", views.ToneDim
		return f
	case !p.pending() || p.question != nil && !m.waits(string(p.question.ID)):
		return f
	}
	if !f.Focus {
		k := m.keys.of(ScopeNeeds, Open).hint()
		f.Keys = []views.KeyHint{{Key: k.Key, Does: "open, to decide"}}
		return f
	}
	for _, b := range m.keys[scope] {
		if !b.Decides {
			continue
		}
		if p.effect != nil {
			if c, ok := choiceFor(p.effect, b.Intent); !ok || !c.Open {
				continue
			}
		}
		if b.Intent == Choose {
			n := 0
			if p.question != nil {
				n = min(len(p.question.Choices), len(b.Keys))
			}
			if n == 0 {
				continue
			}
			b.Keys = b.Keys[:n]
			if n > 1 && n <= 4 {
				b.Keys = []string{fmt.Sprintf("%s…%s", b.Keys[0], b.Keys[n-1])}
			}
		}
		f.Keys = append(f.Keys, b.hint())
	}
	return f
}

// mainView draws the main panel.
func (m *Model) mainView(w, h int) []string {
	p := &m.main
	iw, _ := views.Inner(w, h)
	plain := func(title string, t views.Tone, text string) []string {
		return views.Panel{Title: title, Focus: m.focus == panelMain, Body: views.Prose(m.pen, t, text, iw)}.Draw(m.pen, w, h)
	}
	switch {
	case p.failed != "":
		return plain("", views.ToneBad, "This could not be read: "+p.failed)
	case p.subject.kind == showNothing:
		if !m.read {
			return plain("", views.ToneDim, "Reading the ledger…")
		}
		return plain("Pawl", views.ToneDim, "A run is one task given to an agent. It goes on after its window, its process or its machine has ended, and asks you where the record cannot say what happened.\n\nNothing is selected.")
	case p.subject.kind == showRun:
		title := string(p.subject.run)
		if p.run != nil {
			title = p.run.Goal
		}
		switch p.tab {
		case tabDiff:
			return p.diff.view(m, title, w, h)
		case tabTimeline:
			return p.line.view(m, title, tabTimeline, w, h)
		}
		return p.sheet.view(m, title, w, h)
	}
	c, ok := m.card(w)
	if !ok {
		return plain("", views.ToneDim, "Reading…")
	}
	f := m.cardFrame()
	room := c.Room(m.pen, f, w, h)
	p.offset = max(min(p.offset, len(c.Rows)-room), 0)
	f.Offset = p.offset
	return c.Draw(m.pen, f, w, h)
}
