package views

import (
	"testing"

	"github.com/charmbracelet/x/ansi"
)

func TestOverlayCutsBetweenClusters(t *testing.T) {
	pen := plainPen()
	under := []string{"日本語日本語日本語", "abcdefghijklmnopqr", pen.Select.Paint("👨‍👩‍👧‍👦👨‍👩‍👧‍👦👨‍👩‍👧‍👦👨‍👩‍👧‍👦👨‍👩‍👧‍👦👨‍👩‍👧‍👦👨‍👩‍👧‍👦👨‍👩‍👧‍👦👨‍👩‍👧‍👦")}
	for x := range 14 {
		got := Overlay(pen, under, []string{"[##]", "[##]", "[##]"}, 18, x, 0)
		for i, r := range got {
			if w := ansi.StringWidth(r); w != 18 {
				t.Errorf("x=%d row %d is %d wide: %q", x, i, w, r)
			}
		}
		if s := ansi.Strip(got[1]); s[x:x+4] != "[##]" {
			t.Errorf("x=%d: %q", x, s)
		}
	}
	if ansi.Strip(under[1]) != "abcdefghijklmnopqr" {
		t.Error("the rows below were changed")
	}
}

func BenchmarkOverlay(b *testing.B) {
	pen := plainPen()
	under := Needs{Rows: needs, Selected: 1, Focus: true}.Draw(pen, 200, 58)
	box := effect.Card(pen, 84).Draw(pen, CardFrame{}, 84, 40)
	b.ReportAllocs()
	for b.Loop() {
		Overlay(pen, under, box, 200, 50, 8)
	}
}
