package tui

import (
	"bytes"
	"context"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/vt"

	"pawl/engine"
)

// glass is an emulator that may be written to and looked at at the same time.
type glass struct {
	mu sync.Mutex
	em *vt.Emulator
}

func (g *glass) Write(b []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.em.Write(b)
}

// Read gives what the terminal sends to the program.
func (g *glass) Read(b []byte) (int, error) { return g.em.Read(b) }

func (g *glass) altScreen() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.em.IsAltScreen()
}

// text is what shows, one line per row.
func (g *glass) text() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	var b strings.Builder
	for y := range g.em.Height() {
		for x := range g.em.Width() {
			switch c := g.em.CellAt(x, y); {
			case c == nil || c.Content == "" && c.Width > 0:
				b.WriteByte(' ')
			default:
				b.WriteString(c.Content)
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// screen is a terminal in memory with a program on it. What it shows is waited
// for, never slept for.
type screen struct {
	t     *testing.T
	em    *glass
	wrote chan struct{}
	done  chan error
	stop  context.CancelFunc
}

// inbox is what the terminal sends to the program: keys, and its answers to
// questions. It never blocks the terminal, even when nobody reads any more.
type inbox struct {
	mu    sync.Mutex
	ready sync.Cond
	bytes []byte
	over  bool
}

func (in *inbox) fill(r io.Reader) {
	buf := make([]byte, 4096)
	for {
		n, err := r.Read(buf)
		in.mu.Lock()
		in.bytes = append(in.bytes, buf[:n]...)
		in.over = in.over || err != nil
		in.ready.Broadcast()
		in.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (in *inbox) Read(b []byte) (int, error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for len(in.bytes) == 0 {
		if in.over {
			return 0, io.EOF
		}
		in.ready.Wait()
	}
	n := copy(b, in.bytes)
	in.bytes = in.bytes[n:]
	return n, nil
}

// newScreen makes a terminal of w×h and plugs its keyboard in.
func newScreen(t *testing.T, w, h int) (*screen, *inbox) {
	s := &screen{t: t, em: &glass{em: vt.NewEmulator(w, h)}, wrote: make(chan struct{}, 1), done: make(chan error, 1)}
	in := &inbox{}
	in.ready.L = &in.mu
	go in.fill(s.em) // for as long as the tests run: closing an emulator races with its reader
	return s, in
}

// startScreen runs the whole program, its loop, renderer and pump included.
func startScreen(t *testing.T, f *fake, w, h int, tune ...func(*Options)) *screen {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	s, in := newScreen(t, w, h)
	s.stop = stop
	o := Options{Environ: []string{"TERM=xterm-256color", "COLORTERM=truecolor"}, StateDir: t.TempDir()}
	for _, f := range tune {
		f(&o)
	}
	o.in, o.out = in, s
	o.more = append(o.more, tea.WithWindowSize(w, h), tea.WithoutSignals())
	go func() { s.done <- Run(ctx, f, o) }()
	t.Cleanup(func() {
		stop()
		s.ended()
	})
	return s
}

// Write shows what the program writes. The line discipline of a terminal that
// is not in raw mode, which the renderer counts on here, turns newlines into
// carriage return and newline.
func (s *screen) Write(b []byte) (int, error) {
	_, err := s.em.Write(bytes.ReplaceAll(b, []byte("\n"), []byte("\r\n")))
	n := len(b)
	select {
	case s.wrote <- struct{}{}:
	default:
	}
	return n, err
}

func (s *screen) text() string { return s.em.text() }

// until waits for the screen to show something.
func (s *screen) until(what string, ok func(text string) bool) {
	s.t.Helper()
	deadline := time.After(20 * time.Second)
	for !ok(squash(s.text())) {
		select {
		case <-s.wrote:
		case err := <-s.done:
			s.done <- err
			s.t.Fatalf("ended (%v) before it showed %s:\n%s", err, what, s.text())
		case <-deadline:
			s.t.Fatalf("never showed %s:\n%s", what, s.text())
		}
	}
}

func (s *screen) shows(want string) {
	s.t.Helper()
	s.until(want, func(text string) bool { return strings.Contains(text, squash(want)) })
}

// keys sends keys as a terminal does, byte by byte.
func (s *screen) keys(text string) { s.em.em.SendText(text) }

func (s *screen) ended() error {
	s.t.Helper()
	select {
	case err := <-s.done:
		s.done <- err
		return err
	case <-time.After(20 * time.Second):
		s.t.Fatalf("does not end:\n%s", s.text())
		return nil
	}
}

var _ io.Writer = (*screen)(nil)

func TestFromTheTicketToTheEnd(t *testing.T) {
	f := demo()
	s := startScreen(t, f, 120, 40)
	s.shows("4 need you")
	s.shows("The push may have reached origin")
	if !s.em.altScreen() {
		t.Error("the alternate screen is not used")
	}
	s.keys("\r")
	s.shows("w wait p probe")
	// Deliberate keys: each after the guard's time has really passed.
	pause(grace)
	s.keys("h")
	s.shows("Type e7 to confirm")
	s.keys("seen on origin\te7")
	s.shows("┃ e7")
	pause(grace)
	s.keys("\x13") // ctrl+s
	s.shows("Recorded: confirm it happened (e7).")
	s.shows("3 need you")
	if got := f.decided(); len(got) != 1 || got[0] != `settle r1.e7 happened "seen on origin" "e7"` {
		t.Errorf("decided %q", got)
	}
	s.keys("q")
	if err := s.ended(); err != nil {
		t.Errorf("ended with %v", err)
	}
	if s.em.altScreen() {
		t.Error("the alternate screen stays after the end")
	}
}

// pause lets the guard's own time pass: here the real clock is what is tested.
func pause(d time.Duration) { <-time.After(d + 100*time.Millisecond) }

func TestAnotherProcessIsSeen(t *testing.T) {
	f := demo()
	s := startScreen(t, f, 120, 40)
	s.shows("4 need you")
	f.remove("r1.e7") // decided elsewhere
	f.signal()
	s.shows("3 need you")
	f.live <- engine.LiveText{Run: "r3", Turn: 2, Text: "live words"}
	s.keys("2jj")
	s.shows("lexer-fuzz")
	s.shows("live words")
}

func TestPastingFiveThousandLines(t *testing.T) {
	f := demo()
	f.items = nil
	s := startScreen(t, f, 100, 30)
	s.shows("nothing needs you")
	s.keys("n")
	s.shows("Goal")
	var b strings.Builder
	for range 5000 {
		b.WriteString("a line of pasted text, y a 1\n")
	}
	b.WriteString("the end")
	began := time.Now()
	go s.em.em.Paste(b.String())
	s.shows("line 5001 of 5001")
	t.Logf("on screen after %v", time.Since(began))
	s.keys("!")
	s.shows("the end!")
	pause(grace)
	s.keys("\x13")
	s.shows("Started:")
	got := f.decided()
	if len(got) != 1 || strings.Count(got[0], "a line of pasted text, y a 1") != 5000 {
		t.Errorf("%d decisions", len(got))
	}
}

func TestAPasteThatIsNotMarkedIsText(t *testing.T) {
	f := demo()
	s := startScreen(t, f, 100, 30)
	s.shows("4 need you")
	s.keys("n")
	s.shows("Goal")
	began := time.Now()
	go s.keys(strings.Repeat("yes a 1 p\r", 1000) + "the end")
	s.shows("line 1001 of 1001")
	s.shows("the end")
	t.Logf("on screen after %v", time.Since(began))
	if got := f.decided(); len(got) != 0 {
		t.Errorf("decided %q", got)
	}
}

func TestHostileTextDoesNotReachTheTerminal(t *testing.T) {
	f := demo()
	evil := "x\x1b]0;owned\x07\x1b[2J\x1b[?1049l\u009b31m\u202egnp.exe"
	f.items[0].Summary, f.items[1].Summary = evil, evil
	f.runs[0].Goal = evil
	c := f.effects["r1.e7"]
	c.Summary, c.Sentence, c.Look = evil, evil, evil
	c.Meant = []engine.Field{{Label: evil, Value: evil}}
	c.Choices[2].Title, c.Choices[2].ModelText, c.Choices[2].Cost = evil, evil, evil
	f.effects["r1.e7"] = c
	f.rows["r1"][29].Title, f.rows["r1"][29].Detail, f.rows["r1"][29].Sign = evil, []string{evil}, "\x1b"
	var mu sync.Mutex
	var raw strings.Builder
	s, in := newScreen(t, 120, 40)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	o := Options{Environ: []string{"TERM=xterm-256color"}, in: in, out: writerFunc(func(b []byte) (int, error) {
		mu.Lock()
		raw.Write(b)
		mu.Unlock()
		return s.Write(b)
	}), more: []tea.ProgramOption{tea.WithWindowSize(120, 40), tea.WithoutSignals()}}
	go func() { s.done <- Run(ctx, f, o) }()
	s.shows(`\x1b]0;owned\x07\x1b[2J`)
	s.keys("\r")
	s.shows("p probe")
	pause(grace)
	s.keys("h")
	s.shows("Type e7 to confirm")
	s.keys("\x1b")
	pause(100 * time.Millisecond) // a lone ESC is told from a sequence by time
	s.keys("2\r")
	s.shows("[Timeline]")
	s.keys("G\r")
	s.shows("▾")
	s.keys("q")
	if err := s.ended(); err != nil {
		t.Error(err)
	}
	mu.Lock()
	defer mu.Unlock()
	for _, bad := range []string{"\x1b]0;owned", "\u009b", "\u202e", "]0;owned\x07"} {
		if strings.Contains(raw.String(), bad) {
			t.Errorf("%q reached the terminal", bad)
		}
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

func TestPanicsEndInOrder(t *testing.T) {
	engineDied := make(chan error, 1)
	for name, c := range map[string]struct {
		tune func(*Options)
		do   func(*fake, *screen)
		want string
	}{
		"a command": {do: func(f *fake, _ *screen) {
			f.mu.Lock()
			f.panics = true
			f.mu.Unlock()
			f.signal()
		}, want: "a command failed: the inbox burst"},
		"the engine": {tune: func(o *Options) { o.Crash = engineDied }, do: func(*fake, *screen) {
			engineDied <- io.ErrUnexpectedEOF
		}, want: "the engine failed: unexpected EOF"},
		"Update": {tune: func(o *Options) {
			o.After = func(d time.Duration, msg tea.Msg) tea.Cmd {
				if d == settle {
					panic("the timer burst")
				}
				return func() tea.Msg {
					<-time.After(d)
					return msg
				}
			}
		}, do: func(_ *fake, s *screen) {
			s.keys("2")
			s.shows("[Timeline]")
			pause(grace)
			s.keys(" ")
		}, want: "Update failed: the timer burst"},
	} {
		t.Run(name, func(t *testing.T) {
			f := demo()
			tune := c.tune
			if tune == nil {
				tune = func(*Options) {}
			}
			s := startScreen(t, f, 120, 40, tune)
			s.shows("4 need you")
			c.do(f, s)
			err := s.ended()
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("ended with %v, want one line with %q", err, c.want)
			}
			if s.em.altScreen() {
				t.Error("the alternate screen stays")
			}
		})
	}
}

func TestNoTerminalIsRefusedWithAWayOut(t *testing.T) {
	for _, o := range []Options{
		{Environ: []string{"TERM=dumb"}},
		{Environ: []string{"TERM=xterm"}}, // a test's standard output is no terminal
	} {
		err := Run(t.Context(), newFake(), o)
		if err == nil || !strings.Contains(err.Error(), "pawl inbox") {
			t.Errorf("%v: %v", o.Environ, err)
		}
	}
}
