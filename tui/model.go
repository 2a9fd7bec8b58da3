// Package tui is the shell of the screen: program, routing, focus, dialogs and
// keys. What is drawn comes from pawl/views; what is known comes from the
// engine through Backend. The Update goroutine owns everything in Model, and
// never blocks: reading and deciding happen in commands, which hand data back.
package tui

import (
	"context"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"pawl/engine"
	"pawl/engine/machine"
	"pawl/views"
)

// panel is one of the three places that can have focus.
type panel int

const (
	panelNeeds panel = iota
	panelRuns
	panelMain
)

// Model is the root: it routes, and its parts act.
type Model struct {
	ctx  context.Context
	back Backend
	opt  Options
	keys Keymap
	pen  views.Pen

	w, h    int
	focus   panel
	dialogs []dialog // the last one is on top

	status  engine.Status
	read    bool // the first reading has arrived
	needs   needs
	runs    runs
	main    mainPanel
	live    map[machine.RunID]engine.LiveText
	output  outputs
	filter  *editor // being typed, for the panel with focus
	toast   toast
	log     []logEntry
	guard   guard
	clock   clock
	armed   armed
	blurred bool
	dark    bool

	loading, stale bool // a reading is under way; something changed since it began

	frame   tea.View
	changed bool // the frame must be composed again
	pace    pace
	ending  ending
	crashes chan crash
}

// ending is how the program ends, told on the terminal afterwards.
type ending struct {
	line  string // one line
	err   error
	leave Leave
	// signal is the name of the signal that ended it.
	signal string
	over   bool // the last frame is being drawn
}

func newModel(ctx context.Context, b Backend, o Options, keys Keymap, pen views.Pen) *Model {
	m := &Model{
		ctx: ctx, back: b, opt: o, keys: keys, pen: pen, dark: true, changed: true,
		live: map[machine.RunID]engine.LiveText{}, output: outputs{}, crashes: make(chan crash, 4),
	}
	m.runs.folded = map[machine.RunID]bool{}
	m.main.line.open = map[int64]bool{}
	if o.Hint != "" {
		m.say(o.Hint)
	}
	return m
}

// Init starts the first reading.
func (m *Model) Init() tea.Cmd {
	return tea.Batch(tea.RequestBackgroundColor, m.reload(), m.tick())
}

// Update routes a message to the part that it is for.
func (m *Model) Update(msg tea.Msg) (model tea.Model, cmd tea.Cmd) {
	defer m.rescue("Update", &cmd)
	model, m.changed = m, true // also if what follows panics
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.w, m.h = msg.Width, msg.Height
		cmd = m.main.fill(m)
	case tea.KeyPressMsg:
		cmd = m.key(msg)
	case tea.PasteMsg:
		cmd = m.paste(msg.Content)
	case tea.MouseClickMsg:
		cmd = m.click(msg.Mouse())
	case tea.MouseWheelMsg:
		cmd = m.wheel(msg.Mouse())
	case tea.FocusMsg:
		m.blurred = false
	case tea.BlurMsg:
		m.blurred = true
	case tea.BackgroundColorMsg:
		m.ground(msg.IsDark())
	case tea.ModeReportMsg:
		m.measure(msg)
	case pumpedMsg:
		cmd = m.pumped(msg)
	case loadedMsg:
		cmd = m.loaded(msg)
	case restedMsg:
		cmd = m.rested()
	case subjectLoadedMsg:
		cmd = m.main.loaded(m, msg)
	case pageLoadedMsg:
		cmd = m.main.line.loaded(m, msg)
	case runsLoadedMsg:
		cmd = m.runs.loaded(m, msg)
	case diffLoadedMsg:
		cmd = m.main.diffLoaded(m, msg)
	case themesChangedMsg:
		cmd = m.readTheme()
	case themeLoadedMsg:
		m.themed(msg)
	case externalMsg:
		cmd = m.returned(msg)
	case placedMsg:
		cmd = m.placed(msg)
	case sheetLoadedMsg:
		cmd = m.main.sheet.loaded(m, msg)
	case landLoadedMsg:
		m.landLoaded(msg)
	case decidedMsg:
		cmd = m.decided(msg)
	case armedMsg:
		cmd = m.fire(msg)
	case copiedMsg:
		m.copied(msg)
	case toastEndedMsg:
		m.toast.end(msg)
	case framedMsg:
		m.pace.due = true
	case tickedMsg:
		cmd = m.ticked(msg)
	case leftMsg:
		cmd = m.left(msg)
	case crash:
		cmd = m.crashed(msg)
	case signalledMsg:
		m.ending.signal = msg.name
		cmd = m.end()
	case unsuspendedMsg:
		m.say("There is no shell behind this screen to go to.")
	case tea.ResumeMsg:
		cmd = tea.ClearScreen
	default:
		m.changed = false
	}
	return m, tea.Batch(cmd, m.toast.start(m), m.pace.hold(m))
}

// ground follows the terminal's background, unless a theme was chosen.
func (m *Model) ground(dark bool) {
	if m.opt.Theme != "" || m.opt.noColor() || dark == m.dark {
		return
	}
	if s, err := m.opt.styles(dark); err == nil {
		m.dark, m.pen.Styles = dark, s
		m.main.forget()
	}
}

// readTheme reads the theme in force anew.
func (m *Model) readTheme() tea.Cmd {
	if m.opt.noColor() {
		return nil
	}
	o, dark := m.opt, m.dark
	return m.do(func(context.Context) tea.Msg {
		s, err := o.styles(dark)
		return themeLoadedMsg{s, err}
	})
}

// themed draws with a theme that was read anew, or says what is wrong with it.
func (m *Model) themed(msg themeLoadedMsg) {
	if msg.err != nil {
		m.complain("The colours stay as they were. " + msg.err.Error())
		return
	}
	m.pen.Styles = msg.styles
	m.main.forget()
}

// measure follows how the terminal says that it measures text.
func (m *Model) measure(msg tea.ModeReportMsg) {
	if msg.Mode != ansi.ModeUnicodeCore {
		return
	}
	if msg.Value == ansi.ModeReset || msg.Value == ansi.ModeSet || msg.Value == ansi.ModePermanentlySet {
		m.pen.Method = ansi.GraphemeWidth
		m.main.forget()
	}
}

// now is the time by the injected clock.
func (m *Model) now() time.Time { return m.opt.Now() }

// do makes a command of f that may block; a panic in it ends the program in order.
func (m *Model) do(f func(ctx context.Context) tea.Msg) tea.Cmd {
	return func() (msg tea.Msg) {
		defer func() {
			if r := recover(); r != nil {
				msg = caught("a command", r)
			}
		}()
		return f(m.ctx)
	}
}

// clock redraws ages: every second while something counts seconds, seldom else.
type clock struct {
	seq  int // of the tick that is awaited
	fast bool
}

func (m *Model) tick() tea.Cmd {
	m.clock.seq++
	m.clock.fast = m.countsSeconds()
	d := 10 * time.Second
	if m.clock.fast {
		d = time.Second
	}
	return m.opt.After(d, tickedMsg{m.clock.seq})
}

// ticked draws anew and waits for the next tick; one that was overtaken ends.
func (m *Model) ticked(msg tickedMsg) tea.Cmd {
	if msg.seq != m.clock.seq {
		m.changed = false
		return nil
	}
	return m.tick()
}

// hurry begins to count seconds as soon as there are some to count.
func (m *Model) hurry() tea.Cmd {
	if m.clock.fast || !m.countsSeconds() {
		return nil
	}
	return m.tick()
}

func (m *Model) countsSeconds() bool {
	now := m.now()
	for _, it := range m.needs.items {
		if now.Sub(it.Since) < time.Minute {
			return true
		}
	}
	return m.status.Runs[engine.Running] > 0 || m.main.quieting()
}
