package headless

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// What an operator can get wrong about a new run is refused in three parts, and
// leaves no run behind.
func TestBadRuns(t *testing.T) {
	t.Parallel()
	p := newPawl(t)
	good := p.write("good.toml", finishes)
	for name, c := range map[string]struct {
		args  []string
		names []string
	}{
		"no repository":      {[]string{"x", "--script", good, "--repo", filepath.Join(p.dir, "nowhere")}, []string{"nowhere", "--repo"}},
		"a file for one":     {[]string{"x", "--script", good, "--repo", good}, []string{"good.toml"}},
		"no script":          {[]string{"x", "--script", filepath.Join(p.dir, "none.toml")}, []string{"none.toml"}},
		"script is no TOML":  {[]string{"x", "--script", p.write("bad.toml", "[[step\n")}, []string{"bad.toml"}},
		"script without end": {[]string{"x", "--script", p.write("empty.toml", "name = \"x\"\n")}, []string{"empty.toml"}},
		"no model":           {[]string{"x"}, []string{"--model", "--script"}},
		"no such provider":   {[]string{"x", "--model", "nobody/m"}, []string{"nobody"}},
		"model without a /":  {[]string{"x", "--model", "gpt"}, []string{"PROVIDER/MODEL"}},
		"no goal":            {[]string{"  ", "--script", good}, []string{"goal"}},
		"a rule for all":     {[]string{"x", "--script", good, "--allow", "* *"}, []string{"* *"}},
		"less than nothing":  {[]string{"x", "--script", good, "--max-turns", "-1"}, []string{"negative"}},
	} {
		args := append([]string{"run", "--headless"}, c.args...)
		if !strings.Contains(strings.Join(args, " "), "--repo") {
			args = append(args, "--repo", p.repo())
		}
		s := p.do(args...)
		if s.code != ExitError {
			t.Errorf("%s: code %d\n%s%s", name, s.code, s.out, s.err)
			continue
		}
		s.has(c.names...).has("pawl: ", "next: ")
	}
	if runs := p.do("list", "--json").want(ExitDone).objects(); len(runs) > 0 {
		t.Errorf("runs were made: %v", runs)
	}
}

// A file that is no ledger is left as it is.
func TestLedgerIsATextFile(t *testing.T) {
	t.Parallel()
	p := newPawl(t)
	const text = "Dear diary, today I wrote a file where a ledger could be. It is longer than a page header, so that nothing is a matter of size.\n"
	p.ledger = p.write("state/diary.txt", strings.Repeat(text, 9))
	for _, args := range [][]string{{"list"}, {"run", "x", "--script", p.write("s.toml", finishes), "--repo", p.repo(), "--headless"}, {"verify"}, {"resume"}} {
		p.do(args...).want(ExitError).threeParts().has("diary.txt is not a ledger", "--ledger")
	}
	p.do("doctor").want(ExitError).has("is not a ledger")
	if b, err := os.ReadFile(p.ledger); err != nil || string(b) != strings.Repeat(text, 9) {
		t.Errorf("the file was changed: %v", err)
	}
	if beside, _ := filepath.Glob(p.ledger + "?*"); len(beside) > 0 {
		t.Errorf("files were made beside it: %v", beside)
	}
}

// A stopped process that holds the write lock is named, with what to do;
// looking works meanwhile.
func TestLedgerLockedByAStoppedProcess(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("takes SQLite's lock by its place in the file")
	}
	p := newPawl(t)
	id, _ := p.start(ExitWaits, asks)
	keep := p.process(nil, "resume", id, "--wait") // keeps the shared-memory file in place
	kept, err := keep.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := keep.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(kept)
	readUntil(t, lines, "as soon as you have decided")
	go func() {
		for lines.Scan() { //nolint:revive // so that it never blocks
		}
	}()
	holder := exec.CommandContext(t.Context(), os.Args[0])
	holder.Env = append(os.Environ(), helperJob+"=lock", "PAWL_TEST_LEDGER="+p.ledger)
	out, err := holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	readUntil(t, bufio.NewScanner(out), "locked")
	var ws syscall.WaitStatus
	if _, err := syscall.Wait4(holder.Process.Pid, &ws, syscall.WUNTRACED, nil); err != nil || !ws.Stopped() {
		t.Fatalf("the holder did not stop: %v, %v", ws, err)
	}
	p.do("list", "--json").want(ExitDone)
	p.do("inbox").want(ExitDone).has(id + ".q1")
	p.doWith(Options{BusyTimeout: 200 * time.Millisecond}, "answer", id+".q1", "left").want(ExitError).threeParts().has("is locked", "was not done")
	if err := holder.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = holder.Wait()
	p.do("answer", id+".q1", "left").want(ExitDone)
	_ = keep.Wait()
}

// On a full disk nothing is half done: what was there before is there after.
func TestLedgerOnAFullDisk(t *testing.T) {
	t.Parallel()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("needs bash to limit the size of files")
	}
	p := newPawl(t)
	id, _ := p.start(ExitWaits, asks)
	limited := func(args ...string) said {
		words := []string{"-c", `ulimit -f 0; exec "$0" "$@"`, os.Args[0], "--ledger", p.ledger}
		cmd := exec.CommandContext(t.Context(), bash, append(words, args...)...)
		cmd.Env = append(os.Environ(), bePawl+"=1")
		var out, errs bytes.Buffer
		outPipe, errPipe := &out, &errs
		cmd.Stdout, cmd.Stderr = outPipe, errPipe
		_ = cmd.Run()
		return said{t, strings.Join(args, " "), cmd.ProcessState.ExitCode(), out.String(), errs.String()}
	}
	limited("answer", id+".q1", "left").want(ExitError).threeParts()
	p.do("verify").want(ExitDone)
	p.do("inbox").want(ExitDone).has(id + ".q1") // still open: it was not done
	p.do("answer", id+".q1", "left").want(ExitDone)
}

// A ledger that cannot be written can be looked at, and says why no more.
func TestLedgerInAReadOnlyFolder(t *testing.T) {
	t.Parallel()
	p := newPawl(t)
	id, _ := p.start(ExitWaits, asks)
	state := filepath.Dir(p.ledger)
	for _, file := range beside(t, p.ledger) {
		if err := os.Chmod(file, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(state, 0o555); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(state, 0o755) })
	as := p.asNobody()
	as("inbox").want(ExitDone).has(id + ".q1")
	as("list", "--json").want(ExitDone).has(id)
	as("show", id).want(ExitDone)
	as("answer", id+".q1", "left").want(ExitError).threeParts().has("viewing only")
	as("resume", id).want(ExitError).has("viewing only")
	as("run", "x", "--repo", p.repo(), "--script", p.write("s.toml", finishes), "--headless").want(ExitError).has("viewing only")
	as("verify").want(ExitDone)
}

// beside lists the files of a ledger.
func beside(t *testing.T, ledger string) []string {
	t.Helper()
	files, err := filepath.Glob(ledger + "*")
	if err != nil {
		t.Fatal(err)
	}
	var plain []string
	for _, f := range files {
		if st, err := os.Stat(f); err == nil && st.Mode().IsRegular() {
			plain = append(plain, f)
		}
	}
	return plain
}

// asNobody runs command lines without the right to write anywhere. Root may
// always write, so as root they run as another user.
func (p *pawlCmd) asNobody() func(args ...string) said {
	p.t.Helper()
	if os.Geteuid() != 0 {
		return func(args ...string) said { return p.spawn(nil, args...) }
	}
	const nobody = 65534
	for dir := filepath.Dir(p.ledger); len(dir) >= len(os.TempDir()); dir = filepath.Dir(dir) {
		if st, err := os.Stat(dir); err == nil && st.Mode().Perm()&0o005 != 0o005 {
			if err := os.Chmod(dir, st.Mode().Perm()|0o055); err != nil {
				p.t.Skipf("%s cannot be opened to another user: %v", dir, err)
			}
		}
	}
	self := filepath.Join(p.t.TempDir(), "pawl")
	b, err := os.ReadFile(os.Args[0])
	if err == nil {
		err = os.WriteFile(self, b, 0o755)
	}
	if err == nil {
		err = os.Chmod(filepath.Dir(self), 0o755)
	}
	if err != nil {
		p.t.Fatal(err)
	}
	return func(args ...string) said {
		p.t.Helper()
		var out, errs bytes.Buffer
		cmd := exec.CommandContext(p.t.Context(), self, append([]string{"--ledger", p.ledger}, args...)...)
		cmd.Env = append(os.Environ(), bePawl+"=1", "HOME=/")
		cmd.Dir = "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		cmd.Stdout, cmd.Stderr = &out, &errs
		_ = cmd.Run()
		return said{p.t, strings.Join(args, " "), cmd.ProcessState.ExitCode(), out.String(), errs.String()}
	}
}

// A ledger whose newest events are gone is named as such, and nothing runs on
// it before the loss is acknowledged.
func TestLostTail(t *testing.T) {
	t.Parallel()
	p := newPawl(t)
	id, _ := p.start(ExitWaits, asks)
	old := map[string][]byte{}
	for _, file := range []string{p.ledger, p.ledger + "-wal"} {
		b, err := os.ReadFile(file)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		old[file] = b
	}
	p.do("answer", id+".q1", "left").want(ExitDone)
	p.do("resume", id).want(ExitDone)
	if err := os.Remove(p.ledger + "-shm"); err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for file, b := range old {
		if err := os.WriteFile(file, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p.do("resume", id).want(ExitError).threeParts().has("lost events", "verify --accept-loss")
	p.do("list").want(ExitDone).has("warning", id)
	v := p.do("verify", "--json").want(ExitDamaged).object()
	if v["ok"] != false || v["lost"].(float64) < 1 {
		t.Errorf("verify: %v", v)
	}
	p.do("verify", "--accept-loss").want(ExitDone).has("acknowledged", "whole")
	p.do("verify").want(ExitDone)
	p.do("answer", id+".q1", "left").want(ExitDone)
	p.do("resume", id).want(ExitDone)
}
