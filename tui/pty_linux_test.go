package tui

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/charmbracelet/x/vt"
	"golang.org/x/sys/unix"
)

// shell is a session leader with one foreground job, as a shell with job
// control is: when the job stops, it takes the terminal, says so, and waits for
// a line before it lets the job go on.
func shell() error {
	signal.Ignore(syscall.SIGTTOU) // to take the terminal from the background
	job := exec.Command(os.Args[0])
	job.Env = append(os.Environ(), "PAWL_TEST_SCREEN=plain")
	job.Stdin, job.Stdout, job.Stderr = os.Stdin, os.Stdout, os.Stderr
	job.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Foreground: true, Ctty: 0}
	if err := job.Start(); err != nil {
		return err
	}
	pid := job.Process.Pid
	for {
		var ws syscall.WaitStatus
		if _, err := syscall.Wait4(pid, &ws, syscall.WUNTRACED, nil); err != nil {
			return err
		}
		if !ws.Stopped() {
			return nil
		}
		if err := unix.IoctlSetPointerInt(0, unix.TIOCSPGRP, unix.Getpgrp()); err != nil {
			return err
		}
		fmt.Println("the job has stopped")
		if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
			return err
		}
		if err := unix.IoctlSetPointerInt(0, unix.TIOCSPGRP, pid); err != nil {
			return err
		}
		if err := syscall.Kill(-pid, syscall.SIGCONT); err != nil {
			return err
		}
	}
}

// TestMain lets the test binary be the program under a real terminal.
func TestMain(m *testing.M) {
	if how := os.Getenv("PAWL_TEST_SCREEN"); how != "" {
		os.Exit(underTerminal(how))
	}
	os.Exit(m.Run())
}

// underTerminal runs the screen on the terminal that it was given, fails as it
// was told to, and prints the error as the command line does.
func underTerminal(how string) int {
	f := demo()
	died := make(chan error, 1)
	o := Options{Crash: died, Theme: "dark"}
	switch how {
	case "engine":
		go func() {
			for f.readings() == 0 {
				time.Sleep(time.Millisecond) // the helper process has no test to synchronise with
			}
			died <- fmt.Errorf("the driver burst")
		}()
	case "command":
		go func() {
			for f.readings() == 0 {
				time.Sleep(time.Millisecond)
			}
			f.mu.Lock()
			f.panics = true
			f.mu.Unlock()
			f.signal()
		}()
	}
	if strings.HasPrefix(how, "fleet") {
		f = fleet(how == "fleet-streaming")
	}
	run := func() error { return Run(context.Background(), f, o) }
	if how == "shell" {
		run = shell
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		return 1
	}
	return 0
}

func (f *fake) readings() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.reads
}

// console is a real terminal device with an emulator behind it.
type console struct {
	t      *testing.T
	master *os.File
	em     *glass
	wrote  chan struct{}
	cmd    *exec.Cmd
	ended  chan error
	before unix.Termios
	mu     sync.Mutex
	raw    bytes.Buffer
}

func startConsole(t *testing.T, how string) *console {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo-terminals here: %v", err)
	}
	fd := int(master.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 30, Col: 110}); err != nil {
		t.Fatal(err)
	}
	before, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	c := &console{t: t, master: master, em: &glass{em: vt.NewEmulator(110, 30)}, wrote: make(chan struct{}, 1), ended: make(chan error, 1), before: *before}
	c.cmd = exec.Command(os.Args[0])
	c.cmd.Env = append(os.Environ(), "PAWL_TEST_SCREEN="+how, "TERM=xterm-256color")
	c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = slave, slave, slave
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { c.ended <- c.cmd.Wait() }()
	go c.copyOut()
	go func() { // the emulator's answers to questions; closing it would race with its reader
		buf := make([]byte, 4096)
		for {
			n, err := c.em.Read(buf)
			if err != nil {
				return
			}
			if _, err := master.Write(buf[:n]); err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		_ = c.cmd.Process.Kill()
		_ = slave.Close()
		_ = master.Close()
	})
	return c
}

func (c *console) copyOut() {
	buf := make([]byte, 4096)
	for {
		n, err := c.master.Read(buf)
		c.mu.Lock()
		c.raw.Write(buf[:n])
		c.mu.Unlock()
		_, _ = c.em.Write(buf[:n])
		select {
		case c.wrote <- struct{}{}:
		default:
		}
		if err != nil {
			return
		}
	}
}

func (c *console) text() string { return c.em.text() }

func (c *console) shows(want string) {
	c.t.Helper()
	deadline := time.After(20 * time.Second)
	for !strings.Contains(squash(c.text()), squash(want)) {
		select {
		case <-c.wrote:
		case <-deadline:
			c.t.Fatalf("never showed %q:\n%s", want, c.text())
		}
	}
}

// whole waits until the terminal is as it was before the program, and fails if
// it never is: what was written last may still be on its way.
func (c *console) whole() {
	c.t.Helper()
	deadline := time.After(5 * time.Second)
	for {
		faults := c.faults()
		if len(faults) == 0 {
			return
		}
		select {
		case <-c.wrote:
		case <-deadline:
			c.t.Errorf("the terminal is not whole: %s", strings.Join(faults, "; "))
			return
		}
	}
}

// faults lists how the terminal differs from before.
func (c *console) faults() (out []string) {
	now, err := unix.IoctlGetTermios(int(c.master.Fd()), unix.TCGETS)
	if err != nil {
		return []string{err.Error()}
	}
	if *now != c.before {
		out = append(out, fmt.Sprintf("modes were %+v, are %+v", c.before, *now))
	}
	if c.em.altScreen() {
		out = append(out, "the alternate screen stays")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	raw := c.raw.String()
	if strings.LastIndex(raw, "\x1b[?25l") > strings.LastIndex(raw, "\x1b[?25h") {
		out = append(out, "the cursor stays hidden")
	}
	for _, mode := range []string{"1002", "1006", "1004", "2004"} {
		if on, off := strings.LastIndex(raw, "\x1b[?"+mode+"h"), strings.LastIndex(raw, "\x1b[?"+mode+"l"); on > off {
			out = append(out, "mode "+mode+" stays on")
		}
	}
	return out
}

func (c *console) end() {
	c.t.Helper()
	select {
	case <-c.ended:
	case <-time.After(20 * time.Second):
		c.t.Fatalf("does not end:\n%s", c.text())
	}
}

func TestTheTerminalIsWholeAfterwards(t *testing.T) {
	for _, c := range []struct {
		name, how string
		do        func(c *console)
		want      string
	}{
		{"quit", "plain", func(c *console) { _, _ = c.master.WriteString("q") }, "1 run goes on in other processes"},
		{"SIGTERM", "plain", func(c *console) { _ = c.cmd.Process.Signal(syscall.SIGTERM) }, "error: pawl ended by SIGTERM."},
		{"SIGHUP", "plain", func(c *console) { _ = c.cmd.Process.Signal(syscall.SIGHUP) }, "error: pawl ended by SIGHUP"},
		{"engine", "engine", func(*console) {}, "the engine failed: the driver burst"},
		{"command", "command", func(*console) {}, "a command failed: the inbox burst"},
	} {
		t.Run(c.name, func(t *testing.T) {
			con := startConsole(t, c.how)
			if c.how == "plain" {
				con.shows("4 need you")
			}
			c.do(con)
			con.end()
			con.shows(c.want)
			con.whole()
		})
	}
}

func TestStoppedWithoutAShellGoesOn(t *testing.T) {
	// A session leader cannot be stopped by the keyboard: nobody could wake it.
	con := startConsole(t, "plain")
	con.shows("4 need you")
	if _, err := con.master.WriteString("\x1a"); err != nil {
		t.Fatal(err)
	}
	con.shows("There is no shell behind this screen")
	if _, err := con.master.WriteString("j"); err != nil {
		t.Fatal(err)
	}
	con.shows("May exactly this run?")
	if _, err := con.master.WriteString("q"); err != nil {
		t.Fatal(err)
	}
	con.end()
	con.whole()
}

func TestStopAndContinueDrawsTheWholePicture(t *testing.T) {
	con := startConsole(t, "plain")
	con.shows("4 need you")
	// Stopped by what cannot be caught; meanwhile a shell resets the terminal.
	if err := con.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetTermios(int(con.master.Fd()), unix.TCSETS, &con.before); err != nil {
		t.Fatal(err)
	}
	_, _ = con.em.Write([]byte("\x1b[?1049l\x1b[2J\x1b[H$ fg\r\n"))
	if err := con.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	con.shows("The push may have reached origin")
	if _, err := con.master.WriteString("j"); err != nil { // raw again: no Enter needed
		t.Fatal(err)
	}
	con.shows("May exactly this run?")
	if _, err := con.master.WriteString("q"); err != nil {
		t.Fatal(err)
	}
	con.end()
	con.whole()
}

func TestToTheShellAndBack(t *testing.T) {
	con := startConsole(t, "shell")
	con.shows("4 need you")
	if _, err := con.master.WriteString("\x1a"); err != nil {
		t.Fatal(err)
	}
	con.shows("the job has stopped")
	con.whole() // while the shell has the terminal
	if _, err := con.master.WriteString("fg\n"); err != nil {
		t.Fatal(err)
	}
	con.shows("The push may have reached origin")
	if _, err := con.master.WriteString("j"); err != nil {
		t.Fatal(err)
	}
	con.shows("May exactly this run?")
	if _, err := con.master.WriteString("q"); err != nil {
		t.Fatal(err)
	}
	con.end()
	con.whole()
}
