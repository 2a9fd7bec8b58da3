package themes

import (
	"strings"

	"charm.land/lipgloss/v2"
)

// Style is a token made ready to draw: its control sequences are computed
// once, because a frame consists of thousands of small pieces.
type Style struct {
	lip     lipgloss.Style
	on, off string
}

// Paint returns s in this style. s must be sanitised and without styles of its own.
func (s Style) Paint(text string) string {
	if s.on == "" || text == "" {
		return text
	}
	return s.on + text + s.off
}

// On and Off are the sequences around a painted text.
func (s Style) On() string { return s.on }

// Off ends what On began.
func (s Style) Off() string { return s.off }

// Lipgloss is the style for what lipgloss lays out.
func (s Style) Lipgloss() lipgloss.Style { return s.lip }

// Invert is the style with its colours changed over: for the part of a changed
// line that really changed. It contrasts as the style itself does.
func (s Style) Invert() Style { return style(s.lip.Reverse(true)) }

// Styles holds a style for every token of Inks.
type Styles struct {
	Name string
	Dark bool
	// Ground is the background to paint, empty to keep the terminal's own.
	Ground string

	Text, Dim, Strong, Accent, Good, Bad, Warn, Live, Key Style
	Border, Focus, Header, Alert, Select, Shade           Style
	Mark, Toast, Error, Input, Cursor                     Style
}

// Styles makes the theme ready to draw.
func (t Theme) Styles() *Styles {
	i := t.Ink
	s := &Styles{
		Name: t.Name, Dark: t.Dark,
		Text: ink(i.Text), Dim: ink(i.Dim), Strong: ink(i.Strong), Accent: ink(i.Accent),
		Good: ink(i.Good), Bad: ink(i.Bad), Warn: ink(i.Warn), Live: ink(i.Live), Key: ink(i.Key),
		Border: ink(i.Border), Focus: ink(i.Focus), Header: ink(i.Header), Alert: ink(i.Alert),
		Select: ink(i.Select), Shade: ink(i.Shade), Mark: ink(i.Mark), Toast: ink(i.Toast),
		Error: ink(i.Error), Input: ink(i.Input), Cursor: ink(i.Cursor),
	}
	if t.Paint {
		s.Ground = t.Grounds[0]
	}
	return s
}

// Plain is drawing without colour, for NO_COLOR: weight, slant and reversal
// only. No state is told by colour alone, so nothing is lost.
func Plain() *Styles {
	n := lipgloss.NewStyle
	bold, rev := style(n().Bold(true)), style(n().Reverse(true))
	return &Styles{
		Name: "nocolor", Dark: true,
		Text: style(n()), Dim: style(n().Faint(true)), Strong: bold, Accent: style(n().Underline(true)),
		Good: style(n()), Bad: bold, Warn: bold, Live: style(n().Italic(true)), Key: bold,
		Border: style(n().Faint(true)), Focus: bold, Header: rev, Alert: style(n().Reverse(true).Bold(true)),
		Select: rev, Shade: style(n().Underline(true)), Mark: rev, Toast: rev,
		Error: style(n().Reverse(true).Bold(true)), Input: style(n()), Cursor: rev,
	}
}

func ink(i Ink) Style {
	s := lipgloss.NewStyle().Foreground(lipgloss.Color(i.FG)).Bold(i.Bold).Italic(i.Italic)
	if i.BG != "" {
		s = s.Background(lipgloss.Color(i.BG))
	}
	return style(s)
}

func style(s lipgloss.Style) Style {
	on, off, ok := strings.Cut(s.Render("x"), "x")
	if !ok {
		return Style{lip: s}
	}
	return Style{lip: s, on: on, off: off}
}
