package views

import (
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"pgregory.net/rapid"

	"pawl/themes"
)

// nasty draws texts of pieces that are hard to measure, to cut or to trust.
var nasty = rapid.Custom(func(t *rapid.T) string {
	pieces := rapid.SliceOfN(rapid.SampledFrom([]string{
		"plain", " ", "word ", "日本語", "हिन्दी क्षत्रिय", "العربية", "שלום", "👨‍👩‍👧‍👦", "🇩🇪", "❤️", "👍🏽", "e\u0301\u0323", "한국어",
		"\t", "\n", "\r\n", "\x1b[31m", "\x1b]0;t\x07", "\u009b", "\x00", "\xff", "\u202e", "\u200b", "\ufeff", "\U000e0041",
		"a/very/long/path/without/any/space/in/it/that/goes/on/and/on.go", strings.Repeat(" ", 90), strings.Repeat("x", 300), "ﷺ", "\u3000", "ｗｉｄｅ",
	}), 0, 8).Draw(t, "pieces")
	return strings.Join(pieces, "")
})

// TestEveryViewFillsItsRectangle draws every view with texts from hell at every
// size: it must return exactly the rows and cells that it was given, and no
// control sequence but those of styles.
func TestEveryViewFillsItsRectangle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pen := Pen{themes.Plain(), rapid.SampledFrom([]ansi.Method{ansi.GraphemeWidth, ansi.WcWidth}).Draw(t, "method")}
		// A screen of less than 40×12 shows the notice instead.
		w, h := rapid.IntRange(20, 130).Draw(t, "w"), rapid.IntRange(4, 45).Draw(t, "h")
		s := func(name string) string { return nasty.Draw(t, name) }
		f := []Field{{s("label"), s("value")}, {s("label2"), s("value2")}}
		ev := Event{Clock: "10:00:00", Sign: s("sign"), Title: s("title"), Detail: []string{s("detail"), s("more")}, Tone: TonePlain, Open: true}
		ev.Layout(pen, w)
		ef := Effect{
			Short: s("short"), Summary: s("summary"), Sentence: s("sentence"), Look: s("look"), LookHow: "run", CopyKey: "y", Meant: f, Known: f, Looked: f,
			Quiet:   Quiet{Proven: true, Proof: s("proof"), Full: 0.5, Passed: "3s", Needed: "9s"},
			Choices: []Choice{{Key: "h", Title: s("choice"), Cost: s("cost"), ModelText: s("text"), Forced: true}, {Title: s("closed"), Why: s("why")}},
		}
		ap := Approval{Summary: s("summary"), Text: s("code"), Dir: s("dir"), Target: s("target"), Env: f, Files: []File{{s("file"), "abc"}}, Why: s("why"), Drift: s("drift"), Like: []string{s("like")}, Rule: s("rule"), Pending: true}
		qu := Question{Text: s("question"), Choices: []string{s("a"), s("b")}, Fields: f, Goal: s("goal")}
		frame := CardFrame{Offset: rapid.IntRange(0, 50).Draw(t, "offset"), Focus: true, Keys: []KeyHint{{"a", "approve once"}, {"d", "deny"}}, Note: s("note")}
		iw, _ := Inner(w, h)
		for name, rows := range map[string][]string{
			"needs":    Needs{Rows: []Need{{s("sign"), s("kind"), s("summary"), s("reach"), "3m", ToneWarn}}, Focus: true, Filter: s("filter")}.Draw(pen, w, h),
			"runs":     Runs{Rows: []RunRow{{Tree: "├ ", Fold: "▼", Goal: s("goal"), Sign: s("sign"), State: s("state"), Spend: "$1.00", Age: "3m"}}}.Draw(pen, w, h),
			"timeline": Timeline{Title: s("title"), Tabs: []string{"A", "B"}, Events: []Event{ev, ev}, Foot: "x"}.Draw(pen, w, h),
			"effect":   ef.Card(pen, w).Draw(pen, frame, w, h),
			"approval": ap.Card(pen, w).Draw(pen, frame, w, h),
			"question": qu.Card(pen, w).Draw(pen, frame, w, h),
			"diff":     Text{Title: s("title"), Rows: diffRows(pen, s("diff")+"\n@@ -1 +1 @@\n-"+s("removed")+"\n+"+s("added"), w)}.Draw(pen, w, h),
			"panel":    Panel{Title: s("x")[:0], Body: Landing{Branch: s("branch"), Onto: s("onto"), Files: []string{s("file")}, Conflicts: []string{s("c")}}.Rows(pen, iw)}.Draw(pen, w, h),
			"notice":   Notice(pen, w, h, 3, 40, 12),
			"header":   append(blank(w, h-1), Header{Needs: 2, Ledger: s("ledger"), Spend: 1, Budget: 2, Runs: 3}.Draw(pen, w)),
			"help":     append(blank(w, h-1), HelpLine{Hints: frame.Keys, Right: s("right")}.Draw(pen, w)),
		} {
			if len(rows) != h {
				t.Fatalf("%s: %d rows, want %d", name, len(rows), h)
			}
			for i, r := range rows {
				if got := pen.Method.StringWidth(r); got != w {
					t.Fatalf("%s: row %d is %d wide, want %d: %q", name, i, got, w, r)
				}
				for _, c := range ansi.Strip(r) {
					if c < 0x20 || c >= 0x7f && c < 0xa0 || c == 0x202e {
						t.Fatalf("%s: row %d holds %U: %q", name, i, c, r)
					}
				}
				if strings.Contains(r, "\x1b]") || strings.Contains(r, "\x1b[31m") {
					t.Fatalf("%s: row %d holds a sequence from outside: %q", name, i, r)
				}
			}
		}
	})
}

func TestAnApprovalHidesNoByte(t *testing.T) {
	// All of the text can be read off the card's rows, in order.
	rapid.Check(t, func(t *rapid.T) {
		pen := plainPen()
		words := rapid.SliceOfN(rapid.StringMatching(`[a-z;|&$()"'/.-]{1,60}`), 1, 60).Draw(t, "words")
		sep := rapid.SampledFrom([]string{" ", "\n", "  "}).Draw(t, "sep")
		text := strings.Join(words, sep)
		w := rapid.IntRange(30, 120).Draw(t, "w")
		rows := Approval{Text: text, Pending: true, Summary: "s"}.Card(pen, w).Rows
		var got strings.Builder
		for _, r := range rows {
			if _, code, ok := strings.Cut(ansi.Strip(r), "│ "); ok {
				got.WriteString(strings.TrimRight(code, " "))
			}
		}
		want := strings.NewReplacer(" ", "", "\n", "").Replace(text)
		if have := strings.ReplaceAll(got.String(), " ", ""); have != want {
			t.Fatalf("the card shows\n%q\nof\n%q", have, want)
		}
	})
}
