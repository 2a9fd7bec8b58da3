package safe

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// harmless fails if s could do anything to a terminal but print.
func harmless(t *testing.T, what, s string, newlines bool) {
	t.Helper()
	if !utf8.ValidString(s) {
		t.Fatalf("%s: not UTF-8: %q", what, s)
	}
	for _, r := range s {
		if r == '\n' && newlines {
			continue
		}
		if r < 0x20 || r >= 0x7f && r < 0xa0 {
			t.Fatalf("%s: control %U in %q", what, r, s)
		}
		switch {
		case r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069, r == 0x200e, r == 0x200f, r == 0x61c:
			t.Fatalf("%s: reordering %U in %q", what, r, s)
		case r == 0x200b, r == 0xfeff, r == 0x2028, r == 0x2029:
			t.Fatalf("%s: hidden %U in %q", what, r, s)
		}
	}
}

func TestOrdinaryWritingIsUntouched(t *testing.T) {
	for _, s := range []string{
		"plain words, with punctuation: {a} [b] <c> \\x1b",
		"العربية: السلام عليكم",
		"می\u200cخواهم",    // Persian, with the joiner its spelling needs
		"עברית: שלום",      // Hebrew
		"שָׁלוֹם",          // with points
		"हिन्दी क्\u200dष", // Hindi, with an explicit half form
		"日本語　中文 한국어",       // with an ideographic space
		"Tiếng Việt, e\u0301te\u0301",
		"👨‍👩‍👧‍👦 ❤️ ❤️‍🔥 🏳️‍🌈 👍🏽 🇩🇪 1️⃣ ©️ ☎︎",
		"🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
		"├─╴└ ✓ ● ▼",
	} {
		if got := Line(s); got != s {
			t.Errorf("Line(%q) = %q", s, got)
		}
		if got, found := Block(s); got != s || found.Any() {
			t.Errorf("Block(%q) = %q, %+v", s, got, found)
		}
		if got := Output(s); got != s {
			t.Errorf("Output(%q) = %q", s, got)
		}
		if got := Title(s); got != s {
			t.Errorf("Title(%q) = %q", s, got)
		}
	}
}

func TestWhatHidesBecomesVisible(t *testing.T) {
	for _, c := range []struct {
		name, in, want string
		found          Found
	}{
		{"erase the middle", "rm -rf /\x1b[2K\rls", `rm -rf /\x1b[2K\rls`, Found{Controls: 2}},
		{"title and clipboard", "\x1b]0;x\x07\x1b]52;c;aGk=\x1b\\", `\x1b]0;x\x07\x1b]52;c;aGk=\x1b\`, Found{Controls: 4}},
		{"eight-bit CSI", "a\u009b31mb", `a\u009b31mb`, Found{Controls: 1}},
		{"raw eight-bit CSI", "a\x9b31mb", `a\x9b31mb`, Found{Invalid: 1}},
		{"backspaces", "evil\b\b\b\bgood", `evil\x08\x08\x08\x08good`, Found{Controls: 4}},
		{"delete and nul", "\x00\x7f", `\x00\x7f`, Found{Controls: 2}},
		{"reorder", "a\u202eb\u2066c\u200fd", `a\u202eb\u2066c\u200fd`, Found{Bidi: 3}},
		{"zero width", "a\u200bb\ufeffc\u2060d\u00ade", `a\u200bb\ufeffc\u2060d\u00ade`, Found{Hidden: 4}},
		{"joiner between Latin letters", "a\u200db\u200cc", `a\u200db\u200cc`, Found{Hidden: 2}},
		{"joiners in a row", "👨\u200d\u200d👩", `👨\u200d\u200d👩`, Found{Hidden: 2}},
		{"tags", "x\U000e0041\U000e007f", `x\U000e0041\U000e007f`, Found{Hidden: 2}},
		{"tags behind a flag", "🏴\U000e0061\U000e0062\U000e007f", `🏴\U000e0061\U000e0062\U000e007f`, Found{Hidden: 3}},
		{"variation selectors as a channel", "a\ufe00\U000e0100b", `a\ufe00\U000e0100b`, Found{Hidden: 2}},
		{"fillers", "a\u3164b\u115fc", `a\u3164b\u115fc`, Found{Hidden: 2}},
		{"line separator", "a\u2028b", `a\u2028b`, Found{Controls: 1}},
		{"not text", "a\xff\xc3(", `a\xff\xc3(`, Found{Invalid: 2}},
		{"surrogate", "\xed\xa0\x80", `\xed\xa0\x80`, Found{Invalid: 3}},
		{"pushed out of sight", "ls" + strings.Repeat(" ", 200) + "; rm x", "ls[200 spaces]; rm x", Found{Padding: 1}},
		{"piled-up marks", "e" + strings.Repeat("\u0301", 30) + "x", "e" + strings.Repeat("\u0301", 8) + "[+22 marks]x", Found{Hidden: 22}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, found := Block(c.in)
			if got != c.want || found != c.found {
				t.Errorf("Block = %q %+v\n want  %q %+v", got, found, c.want, c.found)
			}
			harmless(t, "Block", got, true)
			if !strings.Contains(c.in, "\n") {
				if got := Line(c.in); got != c.want {
					t.Errorf("Line = %q, want %q", got, c.want)
				}
			}
		})
	}
}

func TestBlockKeepsLinesAndExpandsTabs(t *testing.T) {
	got, found := Block("a\tb\n\tc\nlong\td\n日\te")
	want := "a   b\n    c\nlong    d\n日  e"
	if got != want || found.Any() {
		t.Errorf("got %q %+v, want %q", got, found, want)
	}
	got, found = Block("top" + strings.Repeat("\n", 100) + "rm -rf /")
	if want := "top\n[99 empty lines]\nrm -rf /"; got != want || found.Padding != 1 {
		t.Errorf("got %q %+v, want %q", got, found, want)
	}
}

func TestLineShowsBreaksAndTitleFoldsThem(t *testing.T) {
	in := "a name\nwith\ta break\r\n"
	if got, want := Line(in), `a name\nwith\ta break\r\n`; got != want {
		t.Errorf("Line = %q, want %q", got, want)
	}
	if got, want := Title(in), "a name with a break"; got != want {
		t.Errorf("Title = %q, want %q", got, want)
	}
}

func TestSpansTellTypedFromMade(t *testing.T) {
	spans, found := LineSpans("typed \\x1b, real \x1b.")
	want := []Span{{`typed \x1b, real `, false}, {`\x1b`, true}, {".", false}}
	if len(spans) != len(want) || found.Controls != 1 {
		t.Fatalf("got %+v %+v", spans, found)
	}
	for i := range want {
		if spans[i] != want[i] {
			t.Errorf("span %d: got %+v, want %+v", i, spans[i], want[i])
		}
	}
	lines, _ := BlockSpans("one\x1b\n\ntwo")
	if len(lines) != 3 || len(lines[0]) != 2 || lines[1] != nil || lines[2][0].Text != "two" {
		t.Errorf("BlockSpans = %+v", lines)
	}
}

func TestOutputShowsTheLastStateWithoutCodes(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"colours", "\x1b[1;31mFAIL\x1b[0m x\x1b[m", "FAIL x"},
		{"progress", "10%\r50%\r100%\ndone\n", "100%\ndone\n"},
		{"progress with erase", "\r\x1b[K10%\r\x1b[K99%\r\n", "99%\n"},
		{"DOS line ends", "a\r\nb\r\n", "a\nb\n"},
		{"titles and links", "\x1b]8;;http://x\x1b\\link\x1b]8;;\x07!", "link!"},
		{"a string that never ends", "\x1b]0;title\nnext", "\nnext"},
		{"device control", "\x1bPq#0;2;0;0;0\x1b\\after", "after"},
		{"eight-bit", "\u009b2Jtext\u009d0;t\u009cmore", "textmore"},
		{"line drawing and modes", "\x1b(0lqk\x1b(B\x1b[?1049h\x1b[?1000h\x1b=x", "lqkx"},
		{"overstrike", "b\bbold", "bold"},
		{"bell", "ding\a", "ding"},
		{"cut off", "x\x1b[", "x"},
		{"lone escape", "x\x1b", "x"},
		{"nul and bytes", "a\x00b\xff", `a\x00b\xff`},
		{"nested", "\x1b\x1b[31mred", "red"},
	} {
		got := Output(c.in)
		if got != c.want {
			t.Errorf("%s: Output(%q) = %q, want %q", c.name, c.in, got, c.want)
		}
		harmless(t, c.name, got, true)
	}
}

func TestHeadCutsBetweenCharacters(t *testing.T) {
	if got := Head("aé日", 4); got != "aé" {
		t.Errorf("got %q", got)
	}
	if got := Head("abc", 10); got != "abc" {
		t.Errorf("got %q", got)
	}
}

func TestWarningNamesWhatWasFound(t *testing.T) {
	if w := (Found{}).Warning(); w != "" {
		t.Errorf("nothing found, yet %q", w)
	}
	got := Found{Controls: 2, Bidi: 1, Hidden: 3}.Warning()
	want := "Contains 2 control codes, 1 reordering character and 3 hidden characters, shown here as marked text."
	if got != want {
		t.Errorf("got %q", got)
	}
}

func FuzzNothingReachesTheTerminal(f *testing.F) {
	for _, s := range []string{
		"", "plain", "\x1b[31m", "\u009b\u009d", "a\r\nb", "\xff\xfe", "👨\u200d👩\u200d👧\u200d👦", "می\u200cخواهم", "\U000e0041", "e\u0301",
		strings.Repeat(" ", 100), strings.Repeat("\n", 100), "\x1b]0;t", "🏴\U000e0067\U000e0062",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		block, found := Block(s)
		harmless(t, "Block", block, true)
		harmless(t, "Line", Line(s), false)
		harmless(t, "Title", Title(s), false)
		harmless(t, "Output", Output(s), true)
		if again, f2 := Block(block); again != block && !found.Any() {
			t.Errorf("not stable: %q, then %q %+v", block, again, f2)
		}
		lines, f3 := BlockSpans(s)
		var b strings.Builder
		for i, l := range lines {
			if i > 0 {
				b.WriteByte('\n')
			}
			for _, sp := range l {
				b.WriteString(sp.Text)
			}
		}
		if b.String() != block || f3 != found {
			t.Errorf("spans of %q say %q, block says %q", s, b.String(), block)
		}
	})
}

func BenchmarkPlainLine(b *testing.B) {
	s := "an ordinary row of a list, as most of them are"
	b.ReportAllocs()
	for b.Loop() {
		Line(s)
	}
}

// Keys are hidden wherever text is drawn, and a card says so.
func TestKeysAreMaskedOnScreen(t *testing.T) {
	secret := strings.Repeat("Zz9", 12)
	s := "export K=ghp_" + secret + "\n\x1b[31mx"
	block, found := Block(s)
	spans, f2 := BlockSpans(s)
	var b strings.Builder
	for _, l := range spans {
		for _, sp := range l {
			b.WriteString(sp.Text)
		}
	}
	_, f3 := LineSpans("ghp_" + secret)
	for name, got := range map[string]string{"Block": block, "BlockSpans": b.String(), "Line": Line(s), "Title": Title(s), "Output": Output(s), "plain Line": Line("ghp_" + secret), "plain Output": Output("ghp_" + secret)} {
		if strings.Contains(got, secret) || !strings.Contains(got, "ghp_") {
			t.Errorf("%s: %q", name, got)
		}
	}
	if found.Masked != 1 || f2.Masked != 1 || f3.Masked != 1 {
		t.Errorf("masked: %+v %+v %+v", found, f2, f3)
	}
	if w := found.Warning(); !strings.Contains(w, "1 control code and 1 masked key") || !strings.Contains(w, "what runs is not masked") {
		t.Errorf("the warning is %q", w)
	}
}

func TestLookAlikeHostsAreMarked(t *testing.T) {
	for s, want := range map[string]string{
		"curl https://gіthub.com/x":      `curl https://g\u0456thub.com/x`,             // Cyrillic і
		"git@gitlаb.com:a/b":             `git@gitl\u0430b.com:a/b`,                    // Cyrillic а
		"https://раура.com":              `https://\u0440\u0430\u0443\u0440\u0430.com`, // all Cyrillic, an address
		"https://user@ехо.example":       `https://user@\u0435\u0445\u043e.example`,
		"www.аѕ.com":                     `www.\u0430\u0455.com`,
		"registry.npmjѕ.org and a.com":   `registry.npmj\u0455.org and a.com`,
		"https://gοοgle.com":             `https://g\u03bf\u03bfgle.com`, // Greek ο
		"see https://пример.рф/страница": "see https://пример.рф/страница",
		"https://bücher.example":         "https://bücher.example",
		"https://日本語.jp":                 "https://日本語.jp",
		"рое.txt":                        "рое.txt", // a file, for all one knows
		"отчет.pdf, файл.go":             "отчет.pdf, файл.go",
		"Москва. Сосна. A.B.":            "Москва. Сосна. A.B.",
		"смесь latin и кириллицы":        "смесь latin и кириллицы",
		"αβγ.example":                    "αβγ.example",
	} {
		got, found := Block(s)
		if got != want {
			t.Errorf("%q is shown as %q, want %q", s, got, want)
		}
		if (found.LookAlike > 0) != (s != want) || s != want && !strings.Contains(found.Warning(), "of a host") && !strings.Contains(found.Warning(), "of hosts") {
			t.Errorf("%q: %+v, %q", s, found, found.Warning())
		}
	}
}
