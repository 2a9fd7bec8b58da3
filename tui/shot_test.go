package tui

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"pawl/engine"
	"pawl/views/shot"
)

var shots = flag.String("shots", "", "write pictures of whole screens into this folder")

// picture writes what is drawn as an SVG, if asked to.
func (s *stage) picture(name string) {
	s.t.Helper()
	if *shots == "" {
		return
	}
	svg := shot.SVG(strings.Split(s.m.View().Content, "\n"), s.m.w, "#16181d", "#d5d9e0")
	if err := os.WriteFile(filepath.Join(*shots, name+".svg"), []byte(svg), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// TestWholeScreens walks through the screens at several sizes: each frame fills
// the terminal exactly, and every picture can be written with -shots DIR.
func TestWholeScreens(t *testing.T) {
	for _, size := range []struct {
		name string
		w, h int
	}{{"120x40", 120, 40}, {"80x24", 80, 24}, {"40x12", 40, 12}, {"200x60", 200, 60}} {
		t.Run(size.name, func(t *testing.T) {
			s := newStage(t, demo(), size.w, size.h)
			look := func(name string) {
				t.Helper()
				s.exact(size.w, size.h)
				s.picture(name + "-" + size.name)
			}
			look("1-start")
			s.slowly("enter")
			look("2-effect")
			s.slowly("h")
			look("3-forced")
			s.slowly("esc", "esc", "1", "j", "enter")
			look("4-approval")
			s.slowly("d")
			look("5-deny")
			s.slowly("esc", "esc", "2", "enter")
			s.send(pumpedMsg{live: []engine.LiveText{{Run: "r1", Turn: 15, Text: "I will read the retry loop first, then the test that fails now and then."}}})
			look("6-timeline")
			s.slowly("k", "enter")
			look("7-unfolded")
			s.slowly("]")
			look("8-diff")
			s.slowly("?")
			look("9-help")
			s.slowly("esc", ":")
			s.write("pan")
			look("10-palette")
			s.slowly("esc", "n")
			s.send(tea.PasteMsg{Content: "Fix the flaky test\nand explain 日本語 👨‍👩‍👧‍👦 why"})
			look("11-new")
			s.slowly("esc", "2", "G", "l")
			look("12-land")
			s.slowly("esc", "@")
			look("13-log")
			s.slowly("esc", "/")
			s.write("lexer")
			look("14-filter")
			s.m.status.Owned = 2
			s.slowly("esc", "q")
			look("15-quit")
		})
	}
	s := newStage(t, newFake(), 120, 40)
	s.exact(120, 40)
	s.picture("16-empty")
	s.sees("No run yet", "pawl demo", "Nothing needs you")
}
