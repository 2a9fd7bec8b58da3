package tui

import (
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"pgregory.net/rapid"

	"pawl/themes"
	"pawl/views"
)

var someText = rapid.Custom(func(t *rapid.T) string {
	return strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{
		"a", "word", " ", "日本", "👨‍👩‍👧‍👦", "e\u0301", "हि", "\n", "\t", "\x1b[31m", "\u202e", "🇩🇪", "\xff", "x\u200b",
	}), 0, 6).Draw(t, "parts"), "")
})

// TestEditorKeepsItsBooks checks, whatever is typed and wherever one moves, that
// the size is that of the text, that the cursor stands at a cluster's edge, and
// that what is drawn fits and holds the cursor.
func TestEditorKeepsItsBooks(t *testing.T) {
	pen := views.Pen{Styles: themes.Plain(), Method: ansi.GraphemeWidth}
	rapid.Check(t, func(t *rapid.T) {
		e := newEditor(rapid.Bool().Draw(t, "single"))
		keys := []string{
			"left", "right", "up", "down", "home", "end", "backspace", "delete", "ctrl+w", "ctrl+k", "ctrl+u",
			"alt+left", "alt+right", "enter", "space", "x",
		}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			if rapid.Bool().Draw(t, "type") {
				e.Insert(someText.Draw(t, "text"))
			} else {
				e.Key(keyOf(&testing.T{}, rapid.SampledFrom(keys).Draw(t, "key")))
			}
			if e.size != len(e.Value()) {
				t.Fatalf("size %d, text of %d: %q", e.size, len(e.Value()), e.Value())
			}
			if e.row < 0 || e.row >= len(e.lines) || e.col < 0 || e.col > len(e.lines[e.row]) {
				t.Fatalf("cursor %d,%d outside of %q", e.row, e.col, e.lines)
			}
			if e.single && len(e.lines) != 1 {
				t.Fatalf("%d lines in a field of one", len(e.lines))
			}
			w, h := rapid.IntRange(4, 40).Draw(t, "w"), rapid.IntRange(1, 8).Draw(t, "h")
			in := e.Layout(pen, "", "", true, w, h)
			if len(in.Rows) > h || in.CursorRow < 0 || in.CursorRow >= len(in.Rows) {
				t.Fatalf("%d rows of %d, cursor in row %d: %q", len(in.Rows), h, in.CursorRow, e.Value())
			}
			if in.CursorCol > pen.Width(in.Rows[in.CursorRow]) {
				t.Fatalf("cursor in column %d of %q", in.CursorCol, in.Rows[in.CursorRow])
			}
		}
	})
}

func TestEditorMovesByWhatIsSeen(t *testing.T) {
	e := newEditor(false)
	e.Insert("日👨‍👩‍👧‍👦e\u0301x")
	for _, want := range []string{"日👨‍👩‍👧‍👦e\u0301", "日👨‍👩‍👧‍👦", "日", ""} {
		e.Key(keyOf(t, "backspace"))
		if e.Value() != want {
			t.Fatalf("%q, want %q", e.Value(), want)
		}
	}
}

func TestCursorStandsRightAfterTheLastGlyph(t *testing.T) {
	pen := views.Pen{Styles: themes.Plain(), Method: ansi.GraphemeWidth}
	for text, col := range map[string]int{
		"abc": 3, "日本": 4, "👨‍👩‍👧‍👦": 2, "❤️": 2, "e\u0301": 1, "🇩🇪x": 3, "क्षि": pen.Width("क्षि"), "\x1b": 4,
	} {
		e := newEditor(true)
		e.Insert(text)
		if in := e.Layout(pen, "", "", true, 40, 1); in.CursorCol != col {
			t.Errorf("%q: cursor in column %d, want %d", text, in.CursorCol, col)
		}
	}
}

func TestPastesArriveWhole(t *testing.T) {
	for in, want := range map[string]string{
		"a\r\nb\rc\nd":       "a\nb\nc\nd",
		"x\x1b[201~y\x00z":   "x\x1b[201~y\x00z", // inert, and kept
		"tab\tand trailing ": "tab\tand trailing ",
	} {
		e := newEditor(false)
		e.Insert(in)
		if e.Value() != want {
			t.Errorf("%q became %q", in, e.Value())
		}
	}
	e := newEditor(true)
	e.Insert("two\nlines")
	if e.Value() != "two lines" {
		t.Errorf("%q", e.Value())
	}
	if e.Insert(strings.Repeat("x", maxText)) {
		t.Error("more than fits was taken without a word")
	}
	if e.size > maxText {
		t.Errorf("holds %d bytes", e.size)
	}
}

func BenchmarkKeyInFiveThousandLines(b *testing.B) {
	pen := views.Pen{Styles: themes.Plain(), Method: ansi.WcWidth}
	e := newEditor(false)
	e.Insert(strings.Repeat("some line of pasted text with words in it\n", 5000))
	b.ReportAllocs()
	for b.Loop() {
		e.Insert("x")
		e.Layout(pen, "", "", true, 70, 6)
	}
}
