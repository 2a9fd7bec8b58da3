package tui

import (
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"pawl/engine"
	"pawl/engine/machine"
)

var figures = flag.Bool("figures", false, "measure the screen through a pseudo-terminal and print what was measured")

// fleet is a backend with ten thousand runs, fifty of which stream, and a
// timeline of ten thousand events. It lives in memory: what is measured here is
// the screen, not the ledger.
func fleet(stream bool) *fake {
	f := demo()
	for i := range 10_000 {
		f.runs = append(f.runs, engine.RunLine{ID: machine.RunID(fmt.Sprintf("x%05d", i)), Goal: fmt.Sprintf("task %05d of the fleet", i), State: engine.Running, Updated: epoch})
	}
	for i := range 10_000 {
		f.rows["r1"] = append(f.rows["r1"], engine.TimelineRow{N: int64(31 + i), At: epoch, Sign: "✓", Title: fmt.Sprintf("go test ./... number %d", i), Detail: []string{"ok"}, Tone: "good"})
	}
	if !stream {
		return f
	}
	go func() { // fifty runs that each bring twenty pieces of text a second, and commit once
		tick := time.NewTicker(time.Millisecond)
		for n := 0; ; n++ {
			<-tick.C
			select {
			case f.live <- engine.LiveText{Run: machine.RunID(fmt.Sprintf("x%05d", n%50)), Turn: 1, Text: strings.Repeat("words ", n%100)}:
			default:
			}
			if n%20 == 0 {
				f.signal()
			}
		}
	}()
	return f
}

// TestFigures measures from a key to the bytes on the wire, the first frame,
// and what an idle screen costs. make bench-tui runs it.
func TestFigures(t *testing.T) {
	if !*figures {
		t.Skip("make bench-tui measures")
	}
	for _, how := range []string{"fleet", "fleet-streaming"} {
		t.Run(how, func(t *testing.T) { measure(t, how) })
	}
}

func measure(t *testing.T, how string) {
	master, slave := openPair(t, 200, 60)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "PAWL_TEST_SCREEN="+how, "TERM=xterm-256color")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = slave.Close() // the child has its own
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()

	type chunk struct {
		at   time.Time
		text string
	}
	wire := make(chan chunk, 4096)
	go func() {
		defer close(wire)
		buf := make([]byte, 64<<10)
		for {
			n, err := master.Read(buf)
			if n > 0 {
				wire <- chunk{time.Now(), string(buf[:n])}
			}
			if err != nil {
				return // the child has gone
			}
		}
	}()
	// until reads what the screen writes until it contains want; what comes after
	// that is for the next call.
	seen, at := "", time.Time{}
	until := func(want string) time.Time {
		t.Helper()
		for deadline := time.After(30 * time.Second); ; {
			if i := strings.Index(seen, want); i >= 0 {
				seen = seen[i+len(want):]
				return at
			}
			select {
			case c, ok := <-wire:
				if !ok {
					t.Fatalf("the screen ended before it showed %q", want)
				}
				seen, at = seen[max(len(seen)-200, 0):]+c.text, c.at
			case <-deadline:
				t.Fatalf("%q did not show within 30 s", want)
			}
		}
	}
	send := func(keys string) time.Time {
		t.Helper()
		at := time.Now()
		if _, err := io.WriteString(master, keys); err != nil {
			t.Fatal(err)
		}
		return at
	}
	first := until("Needs you").Sub(began)
	until("task 00000")
	// A form echoes what is typed: whatever else changes meanwhile, a letter that
	// stands nowhere else on the wire is that key's own frame.
	send("n")
	until("new run")
	const letters = "ΩΨΞΛΔΣΦΠΓΘ"
	var took []time.Duration
	for i := range 400 {
		r := []rune(letters)[i%10]
		at := send(string(r))
		took = append(took, until(string(r)).Sub(at))
		if i%40 == 39 {
			send("\x15") // clears the line
			until("what is to be done")
		}
	}
	slices.Sort(took)
	p := func(q float64) time.Duration { return took[int(q*float64(len(took)-1))].Round(10 * time.Microsecond) }
	ticks := processTicks(t, cmd.Process.Pid)
	const rest = 3 * time.Second
	time.Sleep(rest)
	load := float64(processTicks(t, cmd.Process.Pid)-ticks) / 100 / rest.Seconds()
	t.Logf("%-16s first frame %v · key to wire p50 %v p95 %v p99 %v max %v · resident %d MB · processor %.1f %%\n",
		how, first.Round(time.Millisecond), p(.5), p(.95), p(.99), took[len(took)-1].Round(10*time.Microsecond), residentMB(t, cmd.Process.Pid), 100*load)
	if err := cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	<-ended
	_ = master.Close() // what it had to say was read
}

// processTicks is the processor time of a process in hundredths of a second.
func processTicks(t *testing.T, pid int) int {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	f := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	user, err1 := strconv.Atoi(f[11])
	system, err2 := strconv.Atoi(f[12])
	if err1 != nil || err2 != nil {
		t.Fatalf("a line of another shape: %s", b)
	}
	return user + system
}

func residentMB(t *testing.T, pid int) int {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		t.Fatal(err)
	}
	pages, err := strconv.Atoi(strings.Fields(string(b))[1])
	if err != nil {
		t.Fatal(err)
	}
	return pages * os.Getpagesize() >> 20
}

// openPair opens a pseudo-terminal of w×h.
func openPair(t *testing.T, w, h uint16) (master, slave *os.File) {
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
	slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: h, Col: w}); err != nil {
		t.Fatal(err)
	}
	return master, slave
}
