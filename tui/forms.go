package tui

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"pawl/engine"
	"pawl/engine/machine"
	"pawl/views"
	"pawl/views/safe"
)

func prose(t views.Tone, text string) func(*Model, int) []string {
	return func(m *Model, w int) []string { return views.Prose(m.pen, t, text, w) }
}

// wayForm is the last step of a way out of an ambiguous effect: what it costs
// if wrong, and the exact words. A forced verdict asks for a reason and for the
// effect's short id, typed.
func (m *Model) wayForm(c *engine.EffectCard, v engine.ChoiceView) *form {
	f := form{
		title: safe.Title(v.Title) + " · " + c.ID.Short(), sends: "confirm",
		intro: func(m *Model, w int) []string { return m.choiceView(v).Confirm(m.pen, w) },
	}
	if v.Forced {
		short := c.ID.Short()
		f.fields = []*field{
			oneLine("Why do you know?", "what you saw, and where", ""),
			oneLine("Type "+short+" to confirm", "", ""),
		}
		f.check = func(f *form) string {
			switch {
			case strings.TrimSpace(f.value(0)) == "":
				return "A verdict of yours needs a reason: it stays in the record beside the effect."
			case strings.TrimSpace(f.value(1)) != short:
				return "Type " + short + " in the second field, so that it is surely this effect that you mean."
			}
			return ""
		}
	}
	id, choice := c.ID, v.Choice
	f.send = func(m *Model, f *form) tea.Cmd {
		var words engine.SettleWords
		if v.Forced {
			words = engine.SettleWords{Reason: strings.TrimSpace(f.value(0)), Confirm: strings.TrimSpace(f.value(1))}
		}
		return m.command(f.seq, "settle "+id.Short()+" "+string(choice), "Recorded: "+v.Title+" ("+id.Short()+").", c.Run,
			m.held(c.Run, func(ctx context.Context) error { return m.back.Settle(ctx, id, choice, words) }))
	}
	return m.newForm(f)
}

func (m *Model) denyForm(c *engine.ApprovalCard) *form {
	id := c.ID
	return m.newForm(form{
		title: "deny " + views.Short(string(id)), sends: "deny",
		intro:  prose(views.TonePlain, "It will not run: "+c.Summary+"\nNothing else is denied with it. What you write here goes to the model."),
		fields: []*field{manyLines("Feedback (may stay empty)", "what to do instead", "", 5)},
		send: func(m *Model, f *form) tea.Cmd {
			text := f.value(0)
			return m.command(f.seq, "deny "+views.Short(string(id)), "Denied: "+c.Summary, c.Run,
				func(ctx context.Context) error { return m.back.Deny(ctx, id, text) })
		},
	})
}

// standingForm shows the rule that would be laid down before it is.
func (m *Model) standingForm(c *engine.ApprovalCard, project bool) *form {
	scope, where := machine.GrantRun, "in this run"
	if project {
		scope, where = machine.GrantProject, "in every run on this project"
	}
	id, digest := c.ID, c.Digest
	return m.newForm(form{
		title: "approve, and do not ask again", sends: "approve and lay the rule down",
		intro: prose(views.TonePlain, "This runs now: "+c.Summary+"\n\nFrom now on, "+where+", what this rule covers runs without asking:\n\n    "+c.OffersRule+
			"\n\nIt never covers what resembles an action whose outcome is unknown. “pawl grants” lists it and takes it back."),
		send: func(m *Model, f *form) tea.Cmd {
			return m.command(f.seq, "approve "+views.Short(string(id))+" for "+string(scope), "Approved, with a rule: "+c.OffersRule, c.Run,
				func(ctx context.Context) error {
					_, err := m.back.ApproveFor(ctx, id, digest, scope)
					return err
				})
		},
	})
}

// editForm lets another action run in place of the proposed one.
func (m *Model) editForm(c *engine.ApprovalCard) *form {
	id, digest, args := c.ID, c.Digest, c.Args
	var pretty bytes.Buffer
	if json.Indent(&pretty, []byte(args), "", "  ") == nil {
		args = pretty.String()
	}
	return m.newForm(form{
		title: "edit and approve", sends: "approve what stands here",
		intro:  prose(views.TonePlain, "What stands below runs in place of what was proposed, once. The model is told of the edit. These are the arguments of "+c.Tool+", whole."),
		fields: []*field{manyLines("Arguments", "", args, 10)},
		check: func(f *form) string {
			if !json.Valid([]byte(f.value(0))) {
				return "This is no valid JSON yet: look for a missing quote, comma or brace."
			}
			return ""
		},
		send: func(m *Model, f *form) tea.Cmd {
			text := f.value(0)
			return m.command(f.seq, "edit "+views.Short(string(id)), "Edited and approved.", c.Run,
				func(ctx context.Context) error {
					_, err := m.back.Edit(ctx, id, digest, text)
					return err
				})
		},
	})
}

func (m *Model) answerForm(c *engine.QuestionCard, text string) *form {
	id := c.ID
	var list strings.Builder
	list.WriteString(c.Text)
	for i, ch := range c.Choices {
		fmt.Fprintf(&list, "\n%d. %s", i+1, ch)
	}
	return m.newForm(form{
		title: "answer " + views.Short(string(id)), sends: "send",
		intro:  prose(views.TonePlain, list.String()),
		fields: []*field{manyLines("Your answer", "", text, 6)},
		check: func(f *form) string {
			if strings.TrimSpace(f.value(0)) == "" {
				return "There is no answer yet: write one, or go back with esc."
			}
			return ""
		},
		send: func(m *Model, f *form) tea.Cmd {
			text := f.value(0)
			return m.command(f.seq, "answer "+views.Short(string(id)), "Answered.", c.Run,
				func(ctx context.Context) error { return m.back.Answer(ctx, id, text) })
		},
	})
}

func (m *Model) tellForm(r engine.RunLine) *form {
	id := r.ID
	return m.newForm(form{
		title: "tell the run", sends: "send",
		intro:  prose(views.ToneDim, "A binding instruction for “"+safe.Title(r.Goal)+"”. It stands word for word in everything that the model sees from now on. A finished run goes on with it."),
		fields: []*field{manyLines("Instruction", "", "", 6)},
		check: func(f *form) string {
			if strings.TrimSpace(f.value(0)) == "" {
				return "There is nothing to tell yet."
			}
			return ""
		},
		send: func(m *Model, f *form) tea.Cmd {
			text := f.value(0)
			return m.command(f.seq, "tell "+string(id), "Told.", id,
				func(ctx context.Context) error { return m.back.Tell(ctx, id, text) })
		},
	})
}

func (m *Model) cancelForm(r engine.RunLine) *form {
	id := r.ID
	return m.newForm(form{
		title: "cancel the run", sends: "cancel the run",
		intro:  prose(views.ToneWarn, "“"+safe.Title(r.Goal)+"” ends for good, and its children with it. What it has done stays: its files, its record, its branch. What is unresolved still waits for you. To stop it for a while, pause it instead."),
		fields: []*field{oneLine("Reason (may stay empty)", "", "")},
		send: func(m *Model, f *form) tea.Cmd {
			why := f.value(0)
			return m.command(f.seq, "cancel "+string(id), "Cancelled: "+r.Goal, id,
				func(ctx context.Context) error { return m.back.Cancel(ctx, id, why) })
		},
	})
}

func (m *Model) newRunForm() *form {
	o := m.opt
	return m.newForm(form{
		title: "new run", sends: "start",
		fields: []*field{
			manyLines("Goal", "what is to be done, and how you will know that it is", "", 4),
			oneLine("Repository", "a folder", o.Repo),
			oneLine("Check", "a command that must pass, such as: go test ./...", o.Check),
			oneLine("Model", "PROVIDER/MODEL", o.Model),
		},
		check: func(f *form) string {
			if strings.TrimSpace(f.value(0)) == "" {
				return "A run needs a goal."
			}
			return ""
		},
		send: func(m *Model, f *form) tea.Cmd {
			n := engine.NewRun{
				Goal: strings.TrimSpace(f.value(0)), Repo: strings.TrimSpace(f.value(1)),
				Check: strings.TrimSpace(f.value(2)), Model: strings.TrimSpace(f.value(3)),
			}
			seq := f.seq
			return m.do(func(ctx context.Context) tea.Msg {
				id, err := m.back.Create(ctx, n)
				return m.driven(ctx, decidedMsg{seq: seq, what: "run " + string(id), done: "Started: " + n.Goal, run: id, err: err})
			})
		},
	})
}

// land reads how a run would land and shows it before anything happens.
func (m *Model) land() tea.Cmd {
	r, ok := m.selectedRun()
	if !ok {
		m.say("Select a run to land it.")
		return nil
	}
	id := r.ID
	m.say("Looking at how it would land…")
	return m.do(func(ctx context.Context) tea.Msg {
		v, err := m.back.LandPreview(ctx, id, "")
		return landLoadedMsg{run: id, view: v, err: err}
	})
}

// landLoaded opens the preview. It was asked for by a key; if another dialog
// was opened meanwhile, it stays closed rather than take the keys.
func (m *Model) landLoaded(msg landLoadedMsg) {
	m.toast.clear()
	if msg.err != nil {
		m.complain(msg.err.Error())
		return
	}
	if len(m.dialogs) > 0 || m.filter != nil {
		m.say("The landing is ready to be looked at: ask for it again.")
		return
	}
	v, id := msg.view, msg.run
	f := form{
		title: "land", sends: "land it",
		intro: func(m *Model, w int) []string {
			return views.Landing{
				Branch: v.Branch, Onto: v.Onto, Commit: v.Commit, How: v.How, Files: v.Files,
				Leftovers: v.Leftovers, Conflicts: v.Conflicts, Blocked: v.Blocked, Done: v.Done,
			}.Rows(m.pen, w)
		},
		check: func(*form) string {
			switch {
			case v.Done:
				return "It has landed already."
			case v.Blocked != "":
				return v.Blocked
			}
			return ""
		},
		send: func(m *Model, f *form) tea.Cmd {
			seq := f.seq
			return m.do(func(ctx context.Context) tea.Msg {
				got, err := m.back.Land(ctx, id, "")
				done := "Landed on " + got.Onto + " (" + got.How + ")."
				switch {
				case err == nil && got.Blocked != "":
					err = fmt.Errorf("not landed: %s", got.Blocked)
				case !got.Done && len(got.Conflicts) > 0:
					done = fmt.Sprintf("Not landed: %d files conflict. They wait under Needs you.", len(got.Conflicts))
				}
				return m.driven(ctx, decidedMsg{seq: seq, what: "land " + string(id), done: done, run: id, err: err})
			})
		},
	}
	m.open(m.newForm(f))
}
