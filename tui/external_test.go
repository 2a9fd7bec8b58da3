package tui

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pawl/engine"
)

// TestWholeTextForThePager holds that the pager gets all of it, and nothing that
// could act on a terminal.
func TestWholeTextForThePager(t *testing.T) {
	f := demo()
	f.rows["r1"] = append(f.rows["r1"], engine.TimelineRow{N: 31, At: epoch, Sign: "·", Title: "evil \x1b]52;c;aGk=\a title", Detail: []string{"line one\nline two \x1b[2J"}})
	s := newStage(t, f, 80, 24)
	s.slowly("2", "enter")
	got := s.m.whole()
	for _, w := range []string{"turn 1 asked", "pack of 41 kB", "line one", "line two"} {
		if !strings.Contains(got, w) {
			t.Errorf("the pager does not get %q:\n%s", w, got)
		}
	}
	s.slowly("1", "enter")
	if got := s.m.whole(); !strings.Contains(got, "Ways out") || !strings.Contains(got, "abandon") {
		t.Errorf("the pager does not get the whole card:\n%s", got)
	}
	for _, text := range []string{got, s.m.whole()} {
		if strings.ContainsAny(text, "\x1b\a") {
			t.Errorf("control characters reach the pager: %q", text)
		}
	}
}

// TestTextFromTheEditor takes over what was written, and only if it was.
func TestTextFromTheEditor(t *testing.T) {
	s := newStage(t, demo(), 120, 40)
	s.slowly("n")
	form := s.m.top().(*form)
	path := filepath.Join(t.TempDir(), "text")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("mend the tests\nand say why\n")
	s.send(externalMsg{what: "the editor", seq: form.seq, path: path})
	if got := form.value(0); got != "mend the tests\nand say why" {
		t.Errorf("the field holds %q", got)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("the editor's file was left behind")
	}
	write("half a thought")
	s.send(externalMsg{what: "the editor", seq: form.seq, path: path, err: errors.New("it was killed")})
	if got := form.value(0); got != "mend the tests\nand say why" {
		t.Errorf("after an editor that failed the field holds %q", got)
	}
	s.sees("did not end well")
	s.decisions() // nothing was sent by any of it
}
