package themes

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/lucasb-eyer/go-colorful"
)

func luminance(t *testing.T, hex string) float64 {
	t.Helper()
	c, err := colorful.Hex(hex)
	if err != nil {
		t.Fatal(err)
	}
	r, g, b := c.LinearRgb()
	return 0.2126*r + 0.7152*g + 0.0722*b
}

func contrast(t *testing.T, a, b string) float64 {
	t.Helper()
	x, y := luminance(t, a), luminance(t, b)
	if x < y {
		x, y = y, x
	}
	return (x + 0.05) / (y + 0.05)
}

func each(t *testing.T, f func(t *testing.T, th Theme)) {
	names := Names()
	if len(names) < 4 {
		t.Fatalf("only %v", names)
	}
	for _, n := range names {
		t.Run(n, func(t *testing.T) {
			th, err := Load(n, nil)
			if err != nil {
				t.Fatal(err)
			}
			if th.Name != n {
				t.Errorf("file %s is named %s", n, th.Name)
			}
			f(t, th)
		})
	}
}

func TestEveryInkIsReadableOnEveryGround(t *testing.T) {
	each(t, func(t *testing.T, th Theme) {
		want := 4.5
		if th.Name == "high-contrast" {
			want = 7
		}
		for token, ink := range th.Ink.All() {
			need := want
			if token == "border" || token == "focus" { // lines, not text
				need = 3
			}
			grounds := th.Grounds
			if ink.BG != "" {
				grounds = []string{ink.BG}
			}
			for _, g := range grounds {
				if c := contrast(t, ink.FG, g); c < need {
					t.Errorf("%s: %s on %s has contrast %.2f, needs %.1f", token, ink.FG, g, c, need)
				}
			}
		}
	})
}

// TestColourBlindSafe looks at the state colours as someone without red or
// green receptors does (Viénot, Brettel and Mollon 1999) and asks for a
// difference that is easily seen.
func TestColourBlindSafe(t *testing.T) {
	th, err := Load("colour-blind-safe", nil)
	if err != nil {
		t.Fatal(err)
	}
	see := func(hex string, m [9]float64) colorful.Color {
		c, err := colorful.Hex(hex)
		if err != nil {
			t.Fatal(err)
		}
		r, g, b := c.LinearRgb()
		return colorful.LinearRgb(m[0]*r+m[1]*g+m[2]*b, m[3]*r+m[4]*g+m[5]*b, m[6]*r+m[7]*g+m[8]*b).Clamped()
	}
	for name, m := range map[string][9]float64{
		"protanope":   {0.11238, 0.88762, 0, 0.11238, 0.88762, 0, 0.00401, -0.00401, 1},
		"deuteranope": {0.29275, 0.70725, 0, 0.29275, 0.70725, 0, -0.02234, 0.02234, 1},
	} {
		states := map[string]string{"good": th.Ink.Good.FG, "bad": th.Ink.Bad.FG, "warn": th.Ink.Warn.FG}
		for a, x := range states {
			for b, y := range states {
				if d := see(x, m).DistanceLab(see(y, m)); a < b && d < 0.25 {
					t.Errorf("a %s sees %s and %s only %.2f apart", name, a, b, d)
				}
			}
		}
	}
}

func TestAnOwnThemeWinsAndIsChecked(t *testing.T) {
	good, err := builtin.ReadFile("dark.toml")
	if err != nil {
		t.Fatal(err)
	}
	mine := strings.Replace(string(good), `name = "dark"`, `name = "mine"`, 1)
	for _, c := range []struct{ name, file, want string }{
		{"fine", mine, ""},
		{"misspelt token", mine + "txet = { fg = \"#ffffff\" }\n", "unknown key"},
		{"no colour", strings.Replace(mine, `fg = "#d5d9e0"`, `fg = "grey"`, 1), "a colour is written"},
		{"missing token", strings.Replace(mine, "cursor = ", "# ", 1), "does not set ink.cursor.fg"},
		{"not TOML", "name =", "does not parse"},
		{"no grounds", strings.Replace(mine, "grounds =", "# ", 1), "grounds"},
	} {
		th, err := Load("mine", fstest.MapFS{"mine.toml": {Data: []byte(c.file)}})
		switch {
		case c.want == "" && (err != nil || th.Name != "mine"):
			t.Errorf("%s: %v %q", c.name, err, th.Name)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: error %v, want %q", c.name, err, c.want)
		}
	}
	if _, err := Load("nosuch", nil); err == nil || !strings.Contains(err.Error(), "high-contrast") {
		t.Errorf("an unknown name should list those there are: %v", err)
	}
}

func TestPlainUsesNoColour(t *testing.T) {
	p := Plain()
	for name, s := range map[string]Style{"text": p.Text, "select": p.Select, "warn": p.Warn, "mark": p.Mark, "dim": p.Dim} {
		if strings.Contains(s.On(), "38;") || strings.Contains(s.On(), "48;") {
			t.Errorf("%s has a colour: %q", name, s.On())
		}
		if got := s.Paint("x"); !strings.Contains(got, "x") {
			t.Errorf("%s lost its text: %q", name, got)
		}
	}
	if p.Select.On() == "" || p.Mark.On() == "" {
		t.Error("selection and marks must show without colour")
	}
}
