package headless_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"pawl/engine"
	"pawl/engine/headless"
	"pawl/fixtures/scripts"
	"pawl/fixtures/world"
)

// demoEnd is the object that the demo ends with.
type demoEnd struct {
	OK         bool     `json:"ok"`
	Kills      int      `json:"kills"`
	Replayed   int      `json:"replayed"`
	Probed     int      `json:"probed"`
	Decisions  int      `json:"operator_decisions"`
	Duplicates int      `json:"duplicates"`
	Lost       int      `json:"lost"`
	Unexpected int      `json:"unexpected"`
	Findings   []string `json:"findings"`
	Level      string   `json:"confinement"`
	State      string   `json:"state"`
	Landed     bool     `json:"landed"`
	Run        string   `json:"run"`
	Acts       []struct {
		Name         string   `json:"name"`
		Run          string   `json:"run"`
		State        string   `json:"state"`
		Kills        int      `json:"kills"`
		Replayed     int      `json:"replayed"`
		Probed       int      `json:"probed"`
		Decisions    int      `json:"operator_decisions"`
		Contradicted []string `json:"contradicted"`
		Compensated  []string `json:"compensated"`
	} `json:"acts"`
	Steps []struct {
		Point string `json:"point"`
		By    string `json:"by"`
	} `json:"steps"`
}

// pawlDemo runs the demo; it has a ledger of its own.
func pawlDemo(t *testing.T, env []string, args ...string) ended {
	t.Helper()
	for _, program := range []string{"git", "go", "awk"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("needs %s", program)
		}
	}
	cmd := exec.CommandContext(t.Context(), builtPawl(t), append([]string{"demo"}, args...)...)
	cmd.Env = append((&stand{}).clean(), env...)
	var out, err bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &err
	_ = cmd.Run() // how it ended is in ProcessState
	return ended{args: "demo " + strings.Join(args, " "), code: cmd.ProcessState.ExitCode(), out: out.String(), err: err.String()}
}

func demoObject(t *testing.T, e ended) demoEnd {
	t.Helper()
	var end demoEnd
	if err := json.Unmarshal([]byte(e.out), &end); err != nil {
		t.Fatalf("%v: %s", err, e)
	}
	return end
}

func TestDemoShowsBothActsAndLosesNothing(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "demo")
	e := pawlDemo(t, nil, "--headless", "--json", "--dir", dir)
	if e.code != 0 {
		t.Fatal(e)
	}
	end := demoObject(t, e)
	if !end.OK || end.Kills != 4 || end.Duplicates != 0 || end.Lost != 0 || end.Unexpected != 0 || end.State != "done" || !end.Landed {
		t.Errorf("%+v", end)
	}
	if len(end.Acts) != 2 {
		t.Fatalf("%+v", end)
	}
	repair, payment := end.Acts[0], end.Acts[1]
	if repair.Kills != 3 || repair.Replayed+repair.Probed+repair.Decisions != repair.Kills || len(repair.Contradicted)+len(repair.Compensated) != 0 {
		t.Errorf("the repair: %+v", repair)
	}
	if end.Level == "sealed" && (repair.Replayed != 1 || repair.Probed != 1 || repair.Decisions != 1) {
		t.Errorf("sealed: %+v", repair)
	}
	if payment.Kills != 1 || payment.Replayed != 1 || payment.Decisions != 2 || len(payment.Contradicted) != 1 || len(payment.Compensated) != 1 || payment.State != "done" {
		t.Errorf("the payment: %+v", payment)
	}
	if !strings.Contains(e.err, "A missing result is not a failed action") {
		t.Errorf("it does not tell its idea:\n%s", e.err)
	}

	// The judge of this test reads what the demo's own judge read.
	entries, err := world.ReadLog(filepath.Join(dir, "world"))
	if err != nil {
		t.Fatal(err)
	}
	v := world.Judge(entries, append(scripts.RepairWant(), scripts.InvoiceWant()...))
	if !v.OK() {
		t.Errorf("the world's log: %s", v)
	}
	if len(v.Suppressed) != 1 || v.Suppressed[0].Kind != world.PaymentSuppressed || v.Suppressed[0].Times != 1 {
		t.Errorf("the payment was not sent twice under one key: %+v", v.Suppressed)
	}
	late := slices.IndexFunc(v.Actions, func(c world.Count) bool { return c.Identity == scripts.InvoiceTicket })
	if late < 0 || v.Actions[late].Late != 1 {
		t.Errorf("the ticket did not land late: %+v", v.Actions)
	}
	test := exec.Command("go", "test", "./...")
	test.Dir = filepath.Join(dir, "retry")
	test.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off")
	if out, err := test.CombinedOutput(); err != nil {
		t.Errorf("the checkout that it landed in: %v\n%s", err, out)
	}

	// A demo that is finished says so again, and does nothing again.
	again := pawlDemo(t, nil, "--headless", "--json", "--dir", dir)
	if again.code != 0 {
		t.Fatal(again)
	}
	if second := demoObject(t, again); !second.OK || second.Kills != 4 || len(second.Acts) != 2 || second.Acts[1].Run != payment.Run || second.Run != end.Run || second.Duplicates != 0 {
		t.Errorf("a second sitting: %+v", second)
	}
}

func TestDemoWithoutConfinementAsksAboutTheEdit(t *testing.T) {
	t.Parallel()
	e := pawlDemo(t, []string{"PAWL_CONFINE_MAX=none"}, "--headless", "--act", "1", "--dir", filepath.Join(t.TempDir(), "demo"))
	if e.code != 0 {
		t.Fatal(e)
	}
	for _, want := range []string{"waits for a person", "duplicates 0, lost 0", "replayed 0", "decided by a person 2"} {
		if !strings.Contains(e.out, want) {
			t.Errorf("it does not say %q:\n%s", want, e.out)
		}
	}
}

// A worker that does not die as it was armed to is no kill, and no success.
func TestDemoIsNoSuccessIfAWorkerLives(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	deaf := filepath.Join(dir, "deaf")
	text := "#!/bin/sh\nunset PAWL_CRASH\nexec " + builtPawl(t) + " \"$@\"\n"
	if err := os.WriteFile(deaf, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	code := headless.Execute(t.Context(), headless.Options{
		Args: []string{"demo", "--headless", "--dir", filepath.Join(dir, "demo")}, Out: &out, Err: &errs, Self: []string{deaf},
	})
	if code != 1 {
		t.Errorf("code %d", code)
	}
	if !strings.Contains(errs.String(), "did not die") || strings.Contains(out.String(), "duplicates 0, lost 0") {
		t.Errorf("it does not tell that its worker lived:\n%s\n%s", out.String(), errs.String())
	}
}

func TestDemoRefusesWhatItCannotUse(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, full := filepath.Join(dir, "file"), filepath.Join(dir, "full")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(full, "somebody's"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		args []string
		code int
		says []string
	}{
		{"a file as directory", []string{"--headless", "--dir", file}, 1, []string{file, "it is a file", "--dir"}},
		{"somebody else's directory", []string{"--headless", "--dir", full}, 1, []string{full, "no demo", "empty"}},
		{"no terminal", nil, 2, []string{"no terminal", "--headless"}},
		{"a ledger of one's own", []string{"--headless", "--ledger", filepath.Join(dir, "l.db")}, 2, []string{"--ledger", "--dir"}},
		{"an act that is none", []string{"--headless", "--act", "3"}, 2, []string{"no act 3", "--act 2"}},
		{"an argument", []string{"--headless", "now"}, 2, []string{"demo"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := pawlDemo(t, []string{"TMPDIR=" + dir}, c.args...)
			if e.code != c.code {
				t.Errorf("code %d, want %d: %s", e.code, c.code, e)
			}
			for _, want := range c.says {
				if !strings.Contains(e.err, want) {
					t.Errorf("it does not say %q: %s", want, e)
				}
			}
		})
	}
	if left, err := os.ReadDir(full); err != nil || len(left) != 1 {
		t.Errorf("somebody's directory holds %v (%v)", left, err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "pawl-demo-*")); len(left) > 0 {
		t.Errorf("what was refused leaves %v behind", left)
	}
}

// An interrupted demo goes on where it was, in the same directory.
func TestInterruptedDemoGoesOn(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "demo")
	cmd := exec.CommandContext(t.Context(), builtPawl(t), "demo", "--headless", "--act", "1", "--dir", dir)
	cmd.Env = (&stand{}).clean()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s := &stand{t: t, bin: builtPawl(t), ledger: filepath.Join(dir, "pawl", "ledger.db")}
	until(t, "the first worker has died", func() bool {
		b, err := os.ReadFile(filepath.Join(dir, "demo.json"))
		return err == nil && strings.Contains(string(b), string(engine.PointWhileRunning))
	})
	// As a terminal does it: everything in the process group is interrupted.
	if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() != 1 || !strings.Contains(errs.String(), "--dir") {
		t.Fatalf("interrupted, it ends with %v and says\n%s", err, errs.String())
	}
	s.must(0, "verify")
	e := pawlDemo(t, nil, "--headless", "--json", "--dir", dir)
	if e.code != 0 {
		t.Fatal(e)
	}
	if end := demoObject(t, e); !end.OK || end.Duplicates != 0 || end.Lost != 0 || end.State != "done" {
		t.Errorf("%+v", end)
	}
}

// A demo that is killed itself, in whichever act, leaves no worker, no command
// and no world behind, and goes on where it was.
func TestKilledDemoLeavesNoProcess(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, noted string }{
		{"when there is a run", `"run"`},
		{"when the second act has begun", `"payments"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "demo")
			cmd := exec.CommandContext(t.Context(), builtPawl(t), "demo", "--headless", "--dir", dir)
			cmd.Env = (&stand{}).clean()
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			until(t, c.name, func() bool {
				b, err := os.ReadFile(filepath.Join(dir, "demo.json"))
				return err == nil && strings.Contains(string(b), c.noted)
			})
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait() // it says "killed", which was the intent
			until(t, "nothing of the demo is alive", func() bool { return len(alive(dir)) == 0 })
			e := pawlDemo(t, nil, "--headless", "--json", "--dir", dir)
			if e.code != 0 {
				t.Fatal(e)
			}
			if end := demoObject(t, e); !end.OK || end.Duplicates != 0 || end.Lost != 0 || len(end.Acts) != 2 {
				t.Errorf("%+v", end)
			}
		})
	}
}
