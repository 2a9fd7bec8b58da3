//go:build linux

package confine

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// role makes the test binary act as another process: a supervisor to be killed, or a user to measure as.
const roleEnv = "CONFINE_TEST_ROLE"

func TestMain(m *testing.M) {
	Main()
	switch os.Getenv(roleEnv) {
	case "":
		os.Exit(m.Run())
	case "supervisor":
		superviseForTest()
	case "measure":
		measureForTest(os.Getenv("CONFINE_TEST_NO_USERNS") != "")
	}
	os.Exit(0)
}

// superviseForTest starts the Spec on standard input, prints its identity, opens the gate if told to by a line, and
// waits for ever.
func superviseForTest() {
	in := bufio.NewReader(os.Stdin)
	var s Spec
	line, err := in.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &s)
	}
	if err != nil {
		panic(err)
	}
	p, err := Start(context.Background(), s)
	if err != nil {
		panic(err)
	}
	if err := json.NewEncoder(os.Stdout).Encode(p.Identity()); err != nil {
		panic(err)
	}
	if _, err := in.ReadBytes('\n'); err == nil {
		if err := p.Open(); err != nil {
			panic(err)
		}
	}
	select {}
}

func measureForTest(noUserns bool) {
	if noUserns {
		if err := os.WriteFile("/proc/sys/user/max_user_namespaces", []byte("0"), 0); err != nil {
			panic(err)
		}
	}
	if err := json.NewEncoder(os.Stdout).Encode(Measure(context.Background(), LevelSealed)); err != nil {
		panic(err)
	}
}

// supervisor is a helper process that runs superviseForTest.
type supervisor struct {
	*exec.Cmd
	in  io.WriteCloser
	out *json.Decoder
}

func startSupervisor(t *testing.T, s Spec) (*supervisor, Identity) {
	t.Helper()
	c := exec.Command("/proc/self/exe")
	c.Env = append(os.Environ(), roleEnv+"=supervisor")
	c.Stderr = os.Stderr
	in, err := c.StdinPipe()
	must(t, err)
	out, err := c.StdoutPipe()
	must(t, err)
	must(t, c.Start())
	t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	v := &supervisor{c, in, json.NewDecoder(out)}
	must(t, json.NewEncoder(in).Encode(s))
	var id Identity
	must(t, v.out.Decode(&id))
	return v, id
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// levels lists what can be run at here, sealed first.
func levels(t testing.TB) []Level {
	t.Helper()
	var out []Level
	for l := Measure(context.Background(), LevelSealed).Level; l >= LevelNone; l-- {
		out = append(out, l)
	}
	return out
}

func needLevel(t testing.TB, l Level) {
	t.Helper()
	if r := Measure(context.Background(), l); r.Level < l {
		t.Skipf("this machine does not offer %s: %v", l, r.Missing)
	}
}

// shSpec runs a shell script in a fresh workspace.
func shSpec(t testing.TB, l Level, script string) Spec {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	ws := filepath.Join(dir, "ws")
	must(t, os.Mkdir(ws, 0o755))
	return Spec{
		Argv: []string{"sh", "-c", script}, Dir: ws, Writable: []string{ws}, Level: l,
		Env:    []string{"PATH=" + os.Getenv("PATH"), MarkerEnv + "=" + filepath.Base(dir) + strconv.Itoa(os.Getpid())},
		Output: filepath.Join(dir, "out"),
	}
}

func run(t testing.TB, s Spec) (Exit, string) {
	t.Helper()
	p, err := Start(context.Background(), s)
	must(t, err)
	must(t, p.Open())
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	e, err := p.Wait(ctx)
	must(t, err)
	return e, output(t, s)
}

func output(t testing.TB, s Spec) string {
	t.Helper()
	b, err := os.ReadFile(s.Output)
	must(t, err)
	return string(b)
}

// until polls for a cause that another process brings about; it fails the test when that never happens.
func until(t testing.TB, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !cond(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never happened: %s", what)
		}
	}
}

// sleepers counts processes "sleep n", whoever their parent is and whatever their environment: the ground truth about
// survivors.
func sleepers(n int) int {
	c := 0
	for _, p := range pids() {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p))
		f := strings.Split(string(b), "\x00")
		if err == nil && len(f) > 1 && filepath.Base(f[0]) == "sleep" && f[1] == strconv.Itoa(n) {
			c++
		}
	}
	return c
}

// nest starts five sleepers of which only one stays an ordinary descendant, says so, and waits.
func nest(n int) string {
	return fmt.Sprintf(`trap '' TERM; sleep %[1]d & (setsid sleep %[1]d &); (env -i %[2]s %[1]d &)
setsid sh -c 'exec </dev/null >/dev/null 2>&1; sleep %[1]d & exit 0'; echo up; sleep %[1]d`, n, mustLook("sleep"))
}

func mustLook(name string) string {
	p, err := exec.LookPath(name)
	if err != nil {
		panic(err)
	}
	return p
}

func asUser(c *exec.Cmd, uid int) {
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}}
}
