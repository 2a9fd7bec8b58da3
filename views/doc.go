package views

import (
	"fmt"
	"strings"

	"pawl/themes"
	"pawl/views/safe"
)

// Field is a labelled value of a card, not yet sanitised.
type Field struct{ Label, Value string }

// doc is a card's content under construction: rows of exactly w cells, as many
// as it needs. What was made visible on the way is counted.
type doc struct {
	pen   Pen
	w     int
	rows  []string
	found safe.Found
}

func (d *doc) blank() {
	if len(d.rows) > 0 {
		d.rows = append(d.rows, pad(d.w))
	}
}

// prose adds wrapped text.
func (d *doc) prose(s themes.Style, text string) { d.indented(s, 1, text) }

func (d *doc) indented(s themes.Style, indent int, text string) {
	lines, found := safe.BlockSpans(strings.TrimRight(text, "\n"))
	d.found = d.found.Add(found)
	for _, l := range lines {
		for _, part := range d.pen.wrap(l, d.w-indent-1, d.w-indent-1, true) {
			d.rows = append(d.rows, d.pen.row(d.w).gap(indent).spans(s, part).end())
		}
	}
}

// heading opens a section.
func (d *doc) heading(text string) {
	d.blank()
	d.rows = append(d.rows, d.pen.row(d.w).gap(1).put(d.pen.Strong, text).end())
}

// fields adds labelled values, labels in one column, values wrapped beside it.
func (d *doc) fields(fields []Field) {
	label := 0
	for _, f := range fields {
		label = max(label, d.pen.Width(tight(f.Label, 20)))
	}
	label = min(label, 18, d.w/3)
	for _, f := range fields {
		d.field(f.Label, f.Value, label, d.pen.Text)
	}
}

func (d *doc) field(label, value string, lw int, s themes.Style) {
	room := d.w - lw - 6
	if room < 8 { // no room for two columns
		d.indented(d.pen.Dim, 2, label)
		d.indented(s, 4, value)
		return
	}
	lines, found := safe.BlockSpans(strings.TrimRight(value, "\n"))
	d.found = d.found.Add(found)
	first := true
	for _, l := range lines {
		for _, part := range d.pen.wrap(l, room, room, true) {
			r := d.pen.row(d.w).gap(2)
			if first {
				r.column(d.pen.Dim, tight(label, 20), lw)
				first = false
			} else {
				r.gap(lw)
			}
			d.rows = append(d.rows, r.gap(2).spans(s, part).end())
		}
	}
}

// code adds text that must be read to the letter: every line with its number,
// nothing dropped, long ones folded.
func (d *doc) code(text string) {
	lines, found := safe.BlockSpans(strings.TrimSuffix(text, "\n"))
	d.found = d.found.Add(found)
	gutter := len(fmt.Sprint(len(lines)))
	room := d.w - gutter - 4
	for n, l := range lines {
		for i, part := range d.pen.wrap(l, room, room, false) {
			num := pad(gutter)
			if i == 0 {
				num = rightText(d.pen, fmt.Sprint(n+1), gutter)
			}
			r := d.pen.row(d.w).gap(1).put(d.pen.Dim, num+"│ ").spans(d.pen.Text, part)
			d.rows = append(d.rows, r.end())
		}
	}
}

// Card is a document in a frame, with the keys that decide below it. Its rows
// are made once per width, see the constructors; drawing it at an offset is cheap.
type Card struct {
	Title string
	Rows  []string // each exactly Width cells
	Width int
	Found safe.Found
}

// card closes a document.
func (d *doc) card(title string) Card {
	return Card{Title: title, Rows: d.rows, Width: d.w, Found: d.found}
}

// CardFrame is the part of a card that changes from frame to frame.
type CardFrame struct {
	Offset int
	Focus  bool
	Keys   []KeyHint // that decide; none if it is decided
	Note   string    // below: why keys rest, that it is decided …
	Tone   Tone
}

// Room is how many rows of the card show in h rows.
func (c Card) Room(pen Pen, f CardFrame, w, h int) int {
	iw, ih := Inner(w, h)
	return max(ih-len(c.foot(pen, f, iw, ih)), 1)
}

// foot are the pinned rows: a line, the warning, the note and the keys.
func (c Card) foot(pen Pen, f CardFrame, iw, ih int) []string {
	var rows []string
	if w := c.Found.Warning(); w != "" {
		rows = append(rows, Toast(pen, w, true, iw, 2)...)
	}
	if f.Note != "" {
		for _, l := range pen.wrap(titleSpans(f.Note), iw-2, iw-2, true) {
			rows = append(rows, pen.row(iw).gap(1).spans(pen.tone(f.Tone), l).end())
		}
	}
	rows = append(rows, hintRows(pen, f.Keys, iw)...)
	if len(rows) == 0 {
		return nil
	}
	rows = append([]string{pen.Border.Paint(strings.Repeat("─", iw))}, rows...)
	if most := max(ih-1, 0); len(rows) > most {
		rows = rows[len(rows)-most:]
	}
	return rows
}

// Draw returns h rows of w cells, the card scrolled to its offset. How much is
// hidden above and below stands in the frame.
func (c Card) Draw(pen Pen, f CardFrame, w, h int) []string {
	iw, ih := Inner(w, h)
	foot := c.foot(pen, f, iw, ih)
	room := max(ih-len(foot), 1)
	off := max(min(f.Offset, len(c.Rows)-room), 0)
	body := make([]string, 0, ih)
	for i := off; i < len(c.Rows) && len(body) < room; i++ {
		body = append(body, c.Rows[i])
	}
	for len(body) < room {
		body = append(body, pad(iw))
	}
	body = append(body, foot...)
	p := Panel{Title: c.Title, Focus: f.Focus, Body: body[:min(len(body), ih)]}
	if off > 0 {
		p.Note = fmt.Sprintf("%s above", count(off, "line", "lines"))
	}
	if below := len(c.Rows) - room - off; below > 0 {
		p.Foot = fmt.Sprintf("%s hidden below", count(below, "line", "lines"))
	}
	return p.Draw(pen, w, h)
}
