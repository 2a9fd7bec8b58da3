package tui

import (
	"fmt"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"pawl/engine"
	"pawl/engine/machine"
	"pawl/themes"
	"pawl/views"
)

// big is a model at 200×60 over ten thousand runs, as far as they are read.
func big(b *testing.B) *Model {
	b.Helper()
	th, err := themes.Load("dark", nil)
	if err != nil {
		b.Fatal(err)
	}
	f := demo()
	for i := range 10_000 {
		f.runs = append(f.runs, engine.RunLine{ID: machine.RunID(fmt.Sprintf("x%05d", i)), Goal: fmt.Sprintf("task %d with a goal of some length", i), State: engine.Done, Updated: epoch})
	}
	for i := range 1000 {
		f.rows["r1"] = append(f.rows["r1"], engine.TimelineRow{N: int64(31 + i), At: epoch, Sign: "→", Title: fmt.Sprintf("event %d: go test ./... ended with 0", i), Detail: []string{"ok"}, Tone: "good"})
	}
	o := Options{Now: func() time.Time { return epoch }, After: func(time.Duration, tea.Msg) tea.Cmd { return nil }, Environ: []string{}, frame: -1}
	o.defaults()
	m := newModel(b.Context(), f, o, DefaultKeys(), views.Pen{Styles: th.Styles(), Method: ansi.WcWidth})
	var run func(tea.Cmd)
	run = func(cmd tea.Cmd) {
		if cmd == nil {
			return
		}
		switch msg := cmd().(type) {
		case tea.BatchMsg:
			for _, c := range msg {
				run(c)
			}
		case loadedMsg, subjectLoadedMsg, pageLoadedMsg, runsLoadedMsg:
			_, c := m.Update(msg)
			run(c)
		}
	}
	m.Update(tea.WindowSizeMsg{Width: 200, Height: 60})
	run(m.Init())
	m.focus = panelRuns
	run(m.follow())
	for m.runs.more {
		run(m.runs.move(m, len(m.runs.flat)))
	}
	if len(m.runs.flat) < 10_000 {
		b.Fatalf("%d runs read", len(m.runs.flat))
	}
	m.runs.selected = 0
	run(m.follow())
	return m
}

func key(m *Model, names ...string) {
	for _, n := range names {
		k := tea.KeyPressMsg{Code: rune(n[0]), Text: n}
		m.Update(k)
		m.View()
	}
}

func BenchmarkKeyInTimeline(b *testing.B) {
	m := big(b)
	m.focus = panelMain
	b.ReportAllocs()
	for b.Loop() {
		key(m, "k", "j")
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(2*b.N), "µs/frame")
}

func BenchmarkKeyInTreeOfTenThousand(b *testing.B) {
	m := big(b)
	b.ReportAllocs()
	for b.Loop() {
		key(m, "j", "k")
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(2*b.N), "µs/frame")
}

func BenchmarkKeyInDialog(b *testing.B) {
	m := big(b)
	m.open(m.newRunForm())
	b.ReportAllocs()
	for b.Loop() {
		key(m, "x", "y")
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(2*b.N), "µs/frame")
}

func BenchmarkReading(b *testing.B) {
	m := big(b)
	b.ReportAllocs()
	for b.Loop() {
		m.loading, m.stale = false, false
		msg := m.reload()()
		m.Update(msg)
		m.View()
	}
}
