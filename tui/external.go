package tui

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"pawl/views"
	"pawl/views/safe"
)

// externalMsg says that a program which had the terminal has ended.
type externalMsg struct {
	what string // "the pager"
	seq  int    // form whose text was edited, 0: none
	path string // of the text
	err  error
}

// program is the operator's own choice of a program, by the first variable that
// is set; a shell reads it, since people put options there.
func (o *Options) program(fallback string, names ...string) string {
	for _, n := range names {
		if v := strings.TrimSpace(o.getenv(n)); v != "" {
			return v
		}
	}
	return fallback
}

// run gives the terminal to a program until it ends. args are handed over as
// they are: nothing of them is read by a shell.
func (m *Model) hand(msg externalMsg, dir, program string, args ...string) tea.Cmd {
	cmd := exec.Command("sh", append([]string{"-c", program + ` "$@"`, "sh"}, args...)...)
	cmd.Dir, cmd.Env = dir, m.opt.Environ
	return tea.ExecProcess(cmd, func(err error) tea.Msg {
		msg.err = err
		return msg
	})
}

// demo gives the terminal to the demo, which has a ledger of its own, until it ends.
func (m *Model) demo() tea.Cmd {
	if len(m.opt.Demo) == 0 {
		m.say("“pawl demo” plays the demo.")
		return nil
	}
	cmd := exec.Command(m.opt.Demo[0], m.opt.Demo[1:]...)
	cmd.Env = m.opt.Environ
	return tea.ExecProcess(cmd, func(err error) tea.Msg { return externalMsg{what: "the demo", err: err} })
}

// pagerOf shows the whole of what the panel with focus shows in the operator's pager.
func (m *Model) pagerOf() tea.Cmd {
	text := m.whole()
	if text == "" {
		m.say("There is nothing here to read in a pager.")
		return nil
	}
	path, err := m.scratch("shown.txt", text)
	if err != nil {
		m.complain("The text could not be written for the pager: " + err.Error())
		return nil
	}
	return m.hand(externalMsg{what: "the pager"}, "", m.opt.program("less", "PAWL_PAGER", "PAGER"), path)
}

// whole is all that the main panel stands for, as plain text made safe to print.
func (m *Model) whole() string {
	p := &m.main
	if p.subject.kind != showRun {
		c, ok := m.card(100)
		if !ok {
			return ""
		}
		return ansi.Strip(c.Title + "\n\n" + strings.Join(c.Rows, "\n") + "\n")
	}
	if p.tab == tabDiff {
		return plainLines(p.diff.text)
	}
	var b strings.Builder
	l := p.list()
	for i := range l.rows {
		r := &l.rows[i]
		lead := r.At.Local().Format("15:04:05")
		if l.labels != nil {
			lead = l.labels[r.N]
		}
		fmt.Fprintf(&b, "%-10s %s %s\n", lead, r.Sign, r.Title)
		for _, d := range r.Detail {
			b.WriteString("             " + strings.ReplaceAll(strings.TrimRight(d, "\n"), "\n", "\n             ") + "\n")
		}
	}
	return plainLines(b.String())
}

// plainLines makes text from outside safe for a pager: what would be a control
// sequence is shown.
func plainLines(s string) string {
	lines, _ := safe.BlockSpans(s)
	var b strings.Builder
	for _, l := range lines {
		for _, sp := range l {
			b.WriteString(sp.Text)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// scratch writes a text where only the operator can read it.
func (m *Model) scratch(name, text string) (string, error) {
	if m.opt.StateDir == "" {
		return "", errors.New("no folder of its own is set")
	}
	path := filepath.Join(m.opt.StateDir, name)
	return path, os.WriteFile(path, []byte(text), 0o600)
}

// editFile opens the selected file of the diff in the operator's editor, at its
// first change, in the run's own workspace.
func (m *Model) editFile() tea.Cmd {
	name, line, ok := m.main.diff.file()
	if m.main.tab != tabDiff || m.main.subject.kind != showRun || !ok {
		m.say("Select a changed file on the Diff tab to edit it.")
		return nil
	}
	run := m.main.subject.run
	return m.do(func(ctx context.Context) tea.Msg {
		dir, err := m.back.Workplace(ctx, run)
		return placedMsg{dir: dir, name: name, line: line, err: err}
	})
}

// placedMsg says where a run works.
type placedMsg struct {
	dir, name string
	line      int
	err       error
}

func (m *Model) placed(msg placedMsg) tea.Cmd {
	if msg.err != nil {
		m.complain(msg.err.Error())
		return nil
	}
	editor := m.opt.program("vi", "VISUAL", "EDITOR")
	if !filepath.IsLocal(msg.name) {
		m.complain("That path leads out of the workspace; it is not opened.")
		return nil
	}
	var args []string
	if takesLine(editor) {
		args = append(args, fmt.Sprintf("+%d", msg.line))
	}
	return m.hand(externalMsg{what: "the editor"}, msg.dir, editor, append(args, "./"+filepath.ToSlash(msg.name))...)
}

// takesLine reports whether an editor is known to take +LINE.
func takesLine(editor string) bool {
	first, _, _ := strings.Cut(editor, " ")
	switch filepath.Base(first) {
	case "vi", "vim", "nvim", "nano", "emacs", "emacsclient", "micro", "kak", "joe", "ne", "mg", "ex":
		return true
	}
	return false
}

// editText opens a field's text in the operator's editor.
func (f *form) editText(m *Model) tea.Cmd {
	if len(f.fields) == 0 || f.sending {
		return nil
	}
	path, err := m.scratch(fmt.Sprintf("text-%d.txt", f.seq), f.value(f.at))
	if err != nil {
		f.note = "The text could not be written for the editor: " + err.Error()
		return nil
	}
	return m.hand(externalMsg{what: "the editor", seq: f.seq, path: path}, "", m.opt.program("vi", "VISUAL", "EDITOR"), path)
}

// returned takes the terminal back. The text of a form comes back only if the
// editor ended well, and it is still only a text: it sends nothing.
func (m *Model) returned(msg externalMsg) tea.Cmd {
	m.guard.touched(m.now())
	if msg.err != nil {
		var status *exec.ExitError
		if !errors.As(msg.err, &status) || msg.seq > 0 {
			m.complain(fmt.Sprintf("%s did not end well (%v): nothing was taken over. $VISUAL, $EDITOR and $PAGER name the programs.", strings.ToUpper(msg.what[:1])+msg.what[1:], msg.err))
		}
	}
	if msg.seq == 0 {
		return m.reload()
	}
	text, err := os.ReadFile(msg.path)
	if rerr := os.Remove(msg.path); rerr != nil && !errors.Is(rerr, fs.ErrNotExist) {
		m.complain("The editor's file could not be removed: " + rerr.Error())
	}
	f := m.formOf(msg.seq)
	switch {
	case msg.err != nil || f == nil:
	case err != nil:
		f.note = "What was edited could not be read: " + err.Error()
	case len(text) > maxText:
		f.note = fmt.Sprintf("What was edited is longer than a text may be (%s): it was not taken over.", views.Count(maxText>>20, "MB", "MB"))
	default:
		f.fields[f.at].text.Set(strings.TrimRight(string(text), "\n"))
		f.note = ""
	}
	return nil
}
