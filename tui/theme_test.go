package tui

import (
	"testing"
	"testing/fstest"

	"pawl/themes"
)

// TestThemeIsReadAnew draws with a palette as soon as it is saved, and keeps
// the colours when what was saved cannot be used.
func TestThemeIsReadAnew(t *testing.T) {
	text, err := themes.Source("light", nil)
	if err != nil {
		t.Fatal(err)
	}
	own := fstest.MapFS{"mine.toml": {Data: []byte(text)}}
	s := newStage(t, demo(), 120, 40, func(o *Options) { o.Theme, o.Themes = "mine", own })
	s.send(themesChangedMsg{})
	before := s.m.View().Content
	if s.m.pen.Dark {
		t.Error("the palette that was chosen is not drawn with")
	}
	own["mine.toml"] = &fstest.MapFile{Data: []byte("name = \"mine\"\nnonsense = 1\n")}
	s.send(themesChangedMsg{})
	s.sees("The colours stay as they were", "nonsense")
	s.wait(20e9)
	if got := s.m.View().Content; len(got) == 0 || s.m.pen.Dark {
		t.Errorf("the colours changed: %d, %d bytes", len(before), len(got))
	}
}
