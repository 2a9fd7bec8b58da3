package ledger

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The tests of this file's kind start this test binary again as other processes
// on the same ledger: roleEnv says what such a process does.
const roleEnv = "PAWL_LEDGER_TEST_ROLE"

var roles = map[string]func(path string, args []string) error{
	"append": roleAppend, "own": roleOwn, "view": roleView, "lock": roleLock, "migrate": roleMigrate, "once": roleOnce, "fill": roleFill,
}

func TestMain(m *testing.M) {
	if role := os.Getenv(roleEnv); role != "" {
		if err := roles[role](os.Args[1], os.Args[2:]); err != nil {
			fmt.Println("ERROR", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// process is another process on the ledger, spoken to by lines.
type process struct {
	t     *testing.T
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines chan string
	once  sync.Once
}

func start(t *testing.T, role, path string, args ...string) *process {
	t.Helper()
	return startAs(t, nil, role, path, args...)
}

func startAs(t *testing.T, cred *syscall.Credential, role, path string, args ...string) *process {
	t.Helper()
	p := &process{t: t, cmd: exec.Command(os.Args[0], append([]string{path}, args...)...), lines: make(chan string, 100_000)}
	p.cmd.Env = append(os.Environ(), roleEnv+"="+role)
	p.cmd.Stderr = os.Stderr
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Credential: cred}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		for s := bufio.NewScanner(out); s.Scan(); {
			p.lines <- s.Text()
		}
		close(p.lines)
	}()
	t.Cleanup(p.kill)
	return p
}

// line is the next line the process says; it fails the test if there is none.
func (p *process) line() string {
	p.t.Helper()
	select {
	case s, ok := <-p.lines:
		if !ok {
			p.t.Fatalf("process %d ended without a word", p.cmd.Process.Pid)
		}
		return s
	case <-time.After(60 * time.Second):
		p.t.Fatalf("process %d says nothing", p.cmd.Process.Pid)
	}
	return ""
}

func (p *process) expect(prefix string) string {
	p.t.Helper()
	s := p.line()
	if !strings.HasPrefix(s, prefix) {
		p.t.Fatalf("process said %q, want %q", s, prefix)
	}
	return strings.TrimSpace(strings.TrimPrefix(s, prefix))
}

func (p *process) say(s string) { fmt.Fprintln(p.in, s) }

func (p *process) signal(s syscall.Signal) {
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// kill is kill -9; it returns when the process is gone and its lines are read.
func (p *process) kill() {
	p.once.Do(func() {
		p.cmd.Process.Kill()
		p.cmd.Wait()
	})
}

// stopped waits until a SIGSTOP has taken effect.
func (p *process) stop() {
	p.t.Helper()
	p.signal(syscall.SIGSTOP)
	for {
		if _, halted := describe(p.cmd.Process.Pid); halted {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// finish closes its input and waits for a clean end.
func (p *process) finish() {
	p.t.Helper()
	p.in.Close()
	for range p.lines {
	}
	p.once.Do(func() {
		if err := p.cmd.Wait(); err != nil {
			p.t.Errorf("process: %v", err)
		}
	})
}

var bg = context.Background()

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// is asserts that err is of type E, and says something in one or two sentences.
func is[E error](t testing.TB, err error) E {
	t.Helper()
	var e E
	if !errors.As(err, &e) {
		t.Fatalf("got error %v (%T), want a %T", err, err, e)
	}
	if s := err.Error(); len(s) < 40 || strings.Contains(s, "%!") {
		t.Errorf("not helpful: %q", s)
	}
	return e
}

func dbPath(t testing.TB) string { return filepath.Join(t.TempDir(), "ledger.db") }

func openAt(t testing.TB, path string) *DB {
	t.Helper()
	return openWith(t, Options{Path: path})
}

func openWith(t testing.TB, o Options) *DB {
	t.Helper()
	d, err := Open(bg, o)
	must(t, err)
	t.Cleanup(func() { d.Close() })
	return d
}

func ev(kind string) []NewEvent {
	return []NewEvent{{Kind: kind, At: 1, Actor: "engine", Payload: []byte("payload of " + kind)}}
}

// add appends one event to run, by an operator.
func add(d Store, dur Durability, run string, tail int64) error {
	_, err := d.Commit(bg, dur, Part{Run: run, Cmd: newCmd(), Tail: tail, Events: ev("Added")})
	return err
}

func whole(t testing.TB, d *DB) Verified {
	t.Helper()
	v, err := d.VerifyChain(bg, nil)
	must(t, err)
	for _, p := range v.Problems {
		t.Errorf("verify: %v", p)
	}
	return v
}

// roleAppend appends to run args[0] for ever, telling what it tries and what
// was acknowledged.
func roleAppend(path string, args []string) error {
	d, err := Open(bg, Options{Path: path, BusyTimeout: 30 * time.Second})
	if err != nil {
		return err
	}
	run := args[0]
	tail, err := d.Tail(bg, run)
	if err != nil {
		return err
	}
	for i := 0; ; i++ {
		dur := Durability(i % 2)
		p := Part{Run: run, Tail: tail, Rows: Rows{Run: &RunRow{ID: run, Turn: tail, Note: "appending"}}}
		copy(p.Cmd[:], fmt.Sprintf("%-8s%08d", run, tail))
		for range 1 + i%3 {
			p.Events = append(p.Events, ev("Step")...)
		}
		fmt.Println("TRY", len(p.Events))
		out, err := d.Commit(bg, dur, p)
		if err != nil {
			return err
		}
		tail = out[0].Tail
		fmt.Println("ACK", tail)
	}
}

// roleOwn claims a run when told "claim EPOCH TAIL", writes when told "write
// EPOCH TAIL", and says how it went.
func roleOwn(path string, args []string) error {
	d, err := Open(bg, Options{Path: path, Owner: "pid " + strconv.Itoa(os.Getpid())})
	if err != nil {
		return err
	}
	fmt.Println("READY", d.Process())
	for s := bufio.NewScanner(os.Stdin); s.Scan(); {
		var verb string
		var epoch, tail int64
		fmt.Sscan(s.Text(), &verb, &epoch, &tail)
		_, err := d.Commit(bg, Full, Part{Run: args[0], Cmd: newCmdOf(os.Getpid()), Epoch: epoch, Tail: tail, Claim: verb == "claim", Events: ev(verb)})
		var held *HeldError
		var fenced *FencedError
		switch {
		case err == nil:
			fmt.Println("OK")
		case errors.As(err, &held):
			fmt.Println("HELD", held.Owner)
		case errors.As(err, &fenced):
			fmt.Println("FENCED", fenced.Owner)
		default:
			fmt.Println("FAILED", err)
		}
	}
	return d.Close()
}

func newCmdOf(pid int) CommandID {
	c := newCmd()
	c[0], c[1], c[2] = byte(pid), byte(pid>>8), byte(pid>>16)
	return c
}

// roleView reads for ever, as a screen does.
func roleView(path string, _ []string) error {
	d, err := Open(bg, Options{Path: path, ViewOnly: true})
	if err != nil {
		return err
	}
	for i := 0; ; i++ {
		h, err := d.Head(bg)
		if err != nil {
			return err
		}
		if _, err := d.EventsSince(bg, max(0, h.Seq-50), 50); err != nil {
			return err
		}
		if _, err := d.Runs(bg, RunFilter{}); err != nil {
			return err
		}
		if i == 0 {
			fmt.Println("VIEWING")
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// roleLock takes SQLite's write lock, as a stranger's shell would, until its
// input ends.
func roleLock(path string, args []string) error {
	c, err := dial(path, modeMigrate, 5000)
	if err != nil {
		return err
	}
	q := "BEGIN IMMEDIATE"
	if len(args) > 0 && args[0] == "read" {
		q = "BEGIN; SELECT count(*) FROM event"
	}
	if err := c.do(q); err != nil {
		return err
	}
	fmt.Println("LOCKED")
	io.Copy(io.Discard, os.Stdin)
	if err := c.do("COMMIT"); err != nil {
		return err
	}
	return c.close()
}

// roleOnce opens and closes the ledger.
func roleOnce(path string, args []string) error {
	d, err := Open(bg, Options{Path: path, ViewOnly: len(args) > 0 && args[0] == "view"})
	if err != nil {
		return err
	}
	ro, why := d.ReadOnly()
	h, err := d.Head(bg)
	if err != nil {
		return err
	}
	fmt.Println("HEAD", h.Seq, ro, why)
	err = add(d, Full, "from-role-once", 0)
	fmt.Println("WRITE", err)
	return d.Close()
}

// roleFill appends under a file size limit until it is told that there is no
// space left, then lifts the limit and goes on.
func roleFill(path string, args []string) error {
	limit, err := strconv.ParseUint(args[0], 10, 64)
	if err != nil {
		return err
	}
	d, err := Open(bg, Options{Path: path})
	if err != nil {
		return err
	}
	signalIgnore()
	var old unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &old); err != nil {
		return err
	}
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: limit, Max: old.Max}); err != nil {
		return err
	}
	tail := int64(0)
	for {
		_, err := d.Commit(bg, Full, Part{Run: "r", Cmd: newCmd(), Tail: tail, Events: []NewEvent{{Kind: "Fill", Actor: "engine", Payload: make([]byte, 8000)}}})
		if err != nil {
			var full *FullError
			if !errors.As(err, &full) {
				return err
			}
			fmt.Println("FULL", tail, err)
			break
		}
		tail++
	}
	if n, err := d.Tail(bg, "r"); err != nil || n != tail {
		return fmt.Errorf("tail %d, acknowledged %d, %v", n, tail, err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &old); err != nil {
		return err
	}
	if err := add(d, Full, "r", tail); err != nil {
		return err
	}
	fmt.Println("RESUMED", tail+1)
	return d.Close()
}
