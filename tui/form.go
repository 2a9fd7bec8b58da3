package tui

import (
	"fmt"

	tea "charm.land/bubbletea/v2"

	"pawl/views"
)

// form is a dialog in which something is typed, or confirmed, and sent. Only
// its sending key sends it; Enter is a newline, and a paste is text.
type form struct {
	seq    int // names it, so that an answer finds its way back
	title  string
	intro  func(m *Model, w int) []string // what is to be read first
	fields []*field
	at     int    // field with the cursor
	sends  string // what the sending key does: "confirm"
	// check says why it cannot be sent yet; empty if it can.
	check func(f *form) string
	send  func(m *Model, f *form) tea.Cmd

	note    string
	sending bool
	offset  int // rows of the intro scrolled away
	hidden  int // rows of the intro that do not show
}

// field is one text of a form.
type field struct {
	label, holder string
	text          *editor
	height        int
}

func oneLine(label, holder, value string) *field {
	f := &field{label: label, holder: holder, text: newEditor(true), height: 1}
	f.text.Set(value)
	return f
}

func manyLines(label, holder, value string, h int) *field {
	f := &field{label: label, holder: holder, text: newEditor(false), height: h}
	f.text.Set(value)
	return f
}

// newForm numbers a form.
func (m *Model) newForm(f form) *form {
	m.opt.seq++
	f.seq = m.opt.seq
	return &f
}

// formOf finds an open form by its number.
func (m *Model) formOf(seq int) *form {
	for _, d := range m.dialogs {
		if f, ok := d.(*form); ok && f.seq == seq {
			return f
		}
	}
	return nil
}

func (f *form) id() string { return fmt.Sprintf("form %d", f.seq) }

func (f *form) value(i int) string { return f.fields[i].text.Value() }

func (f *form) key(m *Model, k tea.KeyPressMsg) tea.Cmd {
	b, _ := m.keys.find(ScopeForm, k.String())
	switch b.Intent {
	case Back:
		m.closeDialog(f)
		return nil
	case Send:
		return f.trySend(m)
	case NextField, PrevField:
		if n := len(f.fields); n > 0 {
			d := 1
			if b.Intent == PrevField {
				d = n - 1
			}
			f.at = (f.at + d) % n
		}
		return nil
	case EditText:
		return f.editText(m)
	case PageUp:
		f.scroll(m, -3)
		return nil
	case PageDown:
		f.scroll(m, 3)
		return nil
	default: // it is typed
	}
	if f.sending {
		return nil
	}
	if len(f.fields) == 0 { // only to read and confirm: movement scrolls
		switch m.motion(k) {
		case Up:
			f.scroll(m, -1)
		case Down:
			f.scroll(m, 1)
		default: // nothing else moves a text
		}
		return nil
	}
	if f.fields[f.at].text.Key(k) {
		f.note = ""
	}
	return nil
}

// motion is what a key means for moving, wherever that is bound.
func (m *Model) motion(k tea.KeyPressMsg) Intent {
	b, _ := m.keys.find(ScopePager, k.String())
	return b.Intent
}

// trySend sends the form, if the guard and its own check let it.
func (f *form) trySend(m *Model) tea.Cmd {
	if f.sending {
		return nil
	}
	if !m.guard.open(f.id(), breath, m.now()) {
		f.note = tooSoon
		return nil
	}
	if f.check != nil {
		if why := f.check(f); why != "" {
			f.note = why
			return nil
		}
	}
	f.note = ""
	return m.arm(func() tea.Cmd {
		if m.top() != dialog(f) {
			return nil
		}
		f.sending = true
		return f.send(m, f)
	})
}

func (f *form) paste(_ *Model, text string) tea.Cmd {
	if len(f.fields) == 0 || f.sending {
		return nil
	}
	f.note = ""
	if !f.fields[f.at].text.Insert(text) {
		f.note = fmt.Sprintf("The end of what was pasted was left out: a text here holds %d MB.", maxText>>20)
	}
	return nil
}

func (f *form) scroll(_ *Model, by int) {
	f.offset = max(min(f.offset+by, f.offset+f.hidden), 0)
}

func (f *form) draw(m *Model, w, h int) []string {
	d := views.Dialog{Title: f.title, Note: f.note, Tone: views.ToneWarn}
	iw := views.DialogInner(w)
	for _, b := range m.keys[ScopeForm] {
		hint := b.hint()
		switch b.Intent {
		case Send:
			hint.Does = f.sends
		case NextField:
			if len(f.fields) < 2 {
				continue
			}
		case Back:
		default:
			continue
		}
		d.Keys = append(d.Keys, hint)
	}
	if f.sending {
		d.Note, d.Tone = "On its way…", views.ToneDim
	}
	room := d.Room(m.pen, w, h) - 1
	var inputs []string
	for i, fd := range f.fields {
		high := fd.height
		if room < 12 {
			high = min(high, 2)
		}
		in := fd.text.Layout(m.pen, fd.label, fd.holder, i == f.at && !f.sending, iw-4, high)
		inputs = append(inputs, in.Draw(m.pen, iw)...)
	}
	var intro []string
	if f.intro != nil {
		intro = f.intro(m, iw)
	}
	space := max(room-len(inputs), 1)
	if len(intro) > 0 && len(inputs) > 0 && space > len(intro) {
		intro = append(intro, views.Prose(m.pen, views.TonePlain, " ", iw)...)
	}
	f.offset = max(min(f.offset, len(intro)-space), 0)
	end := min(f.offset+space, len(intro))
	f.hidden = len(intro) - end
	if f.hidden > 0 || f.offset > 0 {
		d.Foot = fmt.Sprintf("%d lines hidden: %s", f.hidden+f.offset, m.keys.of(ScopeForm, PageDown).hint().Key)
	}
	d.Rows = append(append(d.Rows, intro[f.offset:end]...), inputs...)
	return d.Draw(m.pen, w, h)
}
