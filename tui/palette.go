package tui

import (
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"pawl/views"
)

// palette finds a command by some of its letters. Deciding ones are not in it:
// Enter never decides.
type palette struct {
	text *editor
	all  []paletteRow
	hits []paletteRow
	pick views.Pick
}

type paletteRow struct {
	intent Intent
	name   string
	key    string
}

func (m *Model) palette() *palette {
	p := &palette{text: newEditor(true)}
	for _, s := range []Scope{m.scope(), ScopeGlobal} {
		for _, b := range m.keys[s] {
			if b.Decides || b.Intent == Palette {
				continue
			}
			p.all = append(p.all, paletteRow{b.Intent, b.Help, b.hint().Key})
		}
	}
	p.narrow()
	return p
}

func (p *palette) narrow() {
	type scored struct {
		row   paletteRow
		score int
	}
	var list []scored
	for _, r := range p.all {
		if s, ok := fuzzy(r.name+" "+string(r.intent), p.text.Value()); ok {
			list = append(list, scored{r, s})
		}
	}
	slices.SortStableFunc(list, func(a, b scored) int { return b.score - a.score })
	p.hits = p.hits[:0]
	p.pick = views.Pick{}
	for _, s := range list {
		p.hits = append(p.hits, s.row)
		p.pick.Rows = append(p.pick.Rows, views.PickRow{Left: s.row.name, Right: s.row.key})
	}
}

// fuzzy reports whether the letters of want occur in text in their order, and
// how well: starts of words and runs of letters count more.
func fuzzy(text, want string) (score int, ok bool) {
	t, w := []rune(strings.ToLower(text)), []rune(strings.ToLower(strings.ReplaceAll(want, " ", "")))
	i, run := 0, 0
	for j, r := range t {
		if i == len(w) {
			break
		}
		if r != w[i] {
			run = 0
			continue
		}
		run++
		score += run
		if j == 0 || t[j-1] == ' ' || t[j-1] == '-' {
			score += 3
		}
		i++
	}
	return score, i == len(w)
}

func (p *palette) id() string { return "" }

func (p *palette) key(m *Model, k tea.KeyPressMsg) tea.Cmd {
	b, _ := m.keys.find(ScopePick, k.String())
	switch b.Intent {
	case Back:
		m.closeDialog(p)
	case Up, Down:
		p.scroll(m, map[Intent]int{Up: -1, Down: 1}[b.Intent])
	case Open:
		if p.pick.Selected < len(p.hits) {
			m.closeDialog(p)
			return m.act(p.hits[p.pick.Selected].intent)
		}
	default:
		if p.text.Key(k) {
			p.narrow()
		}
	}
	return nil
}

func (p *palette) paste(_ *Model, text string) tea.Cmd {
	p.text.Insert(text)
	p.narrow()
	return nil
}

func (p *palette) scroll(_ *Model, by int) {
	p.pick.Selected = max(min(p.pick.Selected+by, len(p.hits)-1), 0)
}

func (p *palette) draw(m *Model, w, h int) []string {
	iw := views.DialogInner(w)
	d := views.Dialog{Title: "Palette", Keys: m.keys.brief(ScopePick)}
	in := p.text.Layout(m.pen, "", "type some letters of a command", true, iw-4, 1).Draw(m.pen, iw)
	room := max(min(d.Room(m.pen, w, h)-1-len(in), 14), 1)
	p.pick.Offset = views.Window(len(p.hits), room, p.pick.Selected, p.pick.Offset)
	d.Rows = append(in, p.pick.Draw(m.pen, iw, room)...)
	if len(p.hits) == 0 {
		d.Rows = append(d.Rows, views.Prose(m.pen, views.ToneDim, "No command has these letters.", iw)...)
	}
	return d.Draw(m.pen, w, h)
}
