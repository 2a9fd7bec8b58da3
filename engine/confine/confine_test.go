//go:build linux

package confine

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestExitsAreReportedAsTheyWere(t *testing.T) {
	for _, l := range levels(t) {
		t.Run(l.String(), func(t *testing.T) {
			e, out := run(t, shSpec(t, l, "echo out; echo err >&2; exit 7"))
			if e.Code != 7 || e.Signal != "" || !e.TreeDead || e.TimedOut || out != "out\nerr\n" || e.Duration <= 0 {
				t.Errorf("got %+v and output %q", e, out)
			}
			e, _ = run(t, shSpec(t, l, "kill -USR1 $$"))
			if e.Code != -1 || e.Signal != "SIGUSR1" || !e.TreeDead {
				t.Errorf("death by signal: got %+v", e)
			}
		})
	}
}

func TestOnlyTheGivenEnvironmentIsSeen(t *testing.T) {
	t.Setenv("PAWL_TEST_SECRET", "hunter2")
	for _, l := range levels(t) {
		s := shSpec(t, l, "")
		s.Argv = []string{"env"}
		s.Env = []string{"PATH=" + os.Getenv("PATH"), "A=b=c"}
		_, out := run(t, s)
		if out != "PATH="+os.Getenv("PATH")+"\nA=b=c\n" {
			t.Errorf("%s: got %q", l, out)
		}
	}
}

func TestWhatCannotStartSaysWhyAndRunsNothing(t *testing.T) {
	for _, l := range levels(t) {
		for name, change := range map[string]func(*Spec){
			"no such program":  func(s *Spec) { s.Argv = []string{"pawl-no-such-program"} },
			"no such folder":   func(s *Spec) { s.Dir += "/missing" },
			"no such writable": func(s *Spec) { s.Writable = append(s.Writable, s.Dir+"/missing") },
			"relative path":    func(s *Spec) { s.Writable = []string{"x"} },
			"no level":         func(s *Spec) { s.Level = LevelUnknown },
			"no command":       func(s *Spec) { s.Argv = nil },
			"no output":        func(s *Spec) { s.Output = "" },
			"output is a link": func(s *Spec) { must(t, os.Symlink("elsewhere", s.Output)) },
		} {
			if name == "no such writable" && l != LevelSealed {
				continue // outside of a box, nothing is bound
			}
			s := shSpec(t, l, "touch ran")
			ran := filepath.Join(s.Dir, "ran")
			change(&s)
			p, err := Start(context.Background(), s)
			var n *NotRunError
			if !errors.As(err, &n) || p != nil {
				t.Errorf("%s, %s: got %v", l, name, err)
			}
			if _, err := os.Stat(ran); err == nil {
				t.Errorf("%s, %s: it ran", l, name)
			}
		}
	}
}

func TestTenMegabytesOfOutput(t *testing.T) {
	for _, l := range levels(t) {
		s := shSpec(t, l, "head -c 5242880 /dev/zero; head -c 5242880 /dev/zero >&2")
		must(t, os.WriteFile(s.Output, []byte("before"), 0o600))
		e, out := run(t, s)
		if e.Code != 0 || len(out) != 10<<20+6 {
			t.Errorf("%s: %+v, %d bytes", l, e, len(out))
		}
	}
	s := shSpec(t, LevelNone, "true")
	run(t, s)
	if st, err := os.Stat(s.Output); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("output file: %v %v", st.Mode(), err)
	}
}

func TestBackgroundWritersEndWithTheCommand(t *testing.T) {
	// The shell ends at once; its grandchild holds the output and would go on for ever.
	for i, l := range levels(t) {
		n := 981000 + i
		s := shSpec(t, l, "(setsid sh -c 'trap \"\" TERM; while :; do echo x; sleep 0.01; done' &); sleep "+itoa(n)+" & exit 3")
		e, _ := run(t, s)
		if e.Code != 3 || !e.TreeDead || e.Duration > 20*time.Second || sleepers(n) != 0 {
			t.Errorf("%s: %+v, %d left", l, e, sleepers(n))
		}
		if left := FindMarked(markerOf(s.Env)); len(left) != 0 {
			t.Errorf("%s: still there: %v", l, left)
		}
	}
}

func TestTimeOutEndsTheWholeTree(t *testing.T) {
	for i, l := range levels(t) {
		t.Run(l.String(), func(t *testing.T) {
			n := 982000 + i
			s := shSpec(t, l, nest(n))
			p, err := Start(context.Background(), s)
			must(t, err)
			must(t, p.Open())
			until(t, "the tree is up", func() bool { return sleepers(n) == 5 })
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			e, err := p.Wait(ctx)
			must(t, err)
			if !e.TimedOut || e.Code != -1 || !e.TreeDead || len(e.Survivors) != 0 || sleepers(n) != 0 {
				t.Errorf("%+v, %d left", e, sleepers(n))
			}
			again, err := p.Wait(context.Background())
			must(t, err)
			if again.Code != -1 || !again.TreeDead {
				t.Errorf("asked again: %+v", again)
			}
		})
	}
}

func TestKilledBeforeTheGateOpensRunsNothing(t *testing.T) {
	for _, l := range levels(t) {
		s := shSpec(t, l, "touch ran")
		p, err := Start(context.Background(), s)
		must(t, err)
		p.Kill()
		_, err = p.Wait(context.Background())
		var n *NotRunError
		if !errors.As(err, &n) {
			t.Errorf("%s: got %v", l, err)
		}
		if err := p.Open(); !errors.As(err, &n) {
			t.Errorf("%s: opened after the end: %v", l, err)
		}
		if _, err := os.Stat(filepath.Join(s.Dir, "ran")); err == nil {
			t.Errorf("%s: it ran", l)
		}
	}
}

func TestKeeperKilledByItsOwnCommandIsUnobserved(t *testing.T) {
	// Unconfined, a command can kill what keeps it: then nothing is claimed, and what is left is listed.
	const n = 983000
	s := shSpec(t, LevelNone, "mkfifo up; setsid sh -c 'echo >up; exec sleep "+itoa(n)+"' & read x <up; kill -KILL $PPID; wait")
	p, err := Start(context.Background(), s)
	must(t, err)
	must(t, p.Open())
	e, err := p.Wait(context.Background())
	if !errors.Is(err, ErrUnobserved) || e.TreeDead || e.Code != -1 {
		t.Fatalf("got %+v, %v", e, err)
	}
	if len(e.Survivors) == 0 {
		t.Fatal("the survivor is not listed")
	}
	for _, id := range e.Survivors {
		if l, err := Reap(context.Background(), id); l != LiveGone {
			t.Errorf("ending %+v: %v %v", id, l, err)
		}
	}
	until(t, "the survivors are gone", func() bool { return sleepers(n) == 0 })
}

func TestHiddenReadableProtected(t *testing.T) {
	needLevel(t, LevelSealed)
	s := shSpec(t, LevelSealed, `for f in ../state/ledger ../key link hid/f ../state/work/f; do cat $f; done
for f in ../state/work/f ../state/new locked/f locked/open/f; do (echo x >$f) && echo wrote $f; done; ls ../state`)
	base := filepath.Dir(s.Dir)
	for _, d := range []string{"state/work", "ws/locked/open", "ws/hid"} {
		must(t, os.MkdirAll(filepath.Join(base, d), 0o755))
	}
	for _, f := range []string{"state/ledger", "state/work/f", "key", "ws/locked/f", "ws/hid/f"} {
		must(t, os.WriteFile(filepath.Join(base, f), []byte("<"+f+">\n"), 0o644))
	}
	must(t, os.Symlink("../key", filepath.Join(s.Dir, "link"))) // hidden by its link: the file at its end is meant
	s.Hidden = []string{base + "/state", s.Dir + "/link", s.Dir + "/hid", base + "/nothing"}
	s.Readable = []string{base + "/state/work"}
	s.Protected = []string{s.Dir + "/locked"}
	s.Writable = append(s.Writable, s.Dir+"/locked/open")
	_, out := run(t, s)
	if strings.Count(out, "<") != 1 || !strings.Contains(out, "<state/work/f>\n") {
		t.Errorf("only the readable file is to be seen:\n%s", out)
	}
	if strings.Count(out, "wrote") != 1 || !strings.Contains(out, "wrote locked/open/f\n") || !strings.HasSuffix(out, "\nwork\n") {
		t.Errorf("only the open part of the protected directory is to be written to:\n%s", out)
	}
	for f, want := range map[string]string{"state/work/f": "<state/work/f>\n", "ws/locked/f": "<ws/locked/f>\n", "ws/locked/open/f": "x\n", "key": "<key>\n"} {
		if b, _ := os.ReadFile(filepath.Join(base, f)); string(b) != want {
			t.Errorf("%s is %q", f, b)
		}
	}
}

func TestHiddenAndWritableAtOnceIsRefused(t *testing.T) {
	needLevel(t, LevelSealed)
	s := shSpec(t, LevelSealed, "true")
	s.Hidden = s.Writable
	if _, err := Start(context.Background(), s); err == nil || !strings.Contains(err.Error(), "both hidden and visible") {
		t.Errorf("got %v", err)
	}
}

func TestCachesAreReadThroughAndWrittenAside(t *testing.T) {
	needLevel(t, LevelSealed)
	s := shSpec(t, LevelSealed, "cat $C/theirs $C/ours; echo ours >$C/ours; rm $C/theirs; ls $C")
	base := filepath.Dir(s.Dir)
	// Characters that would end a mount option.
	theirs, layer := filepath.Join(base, `c,a:c\he`), filepath.Join(base, "layer:,")
	must(t, os.Mkdir(theirs, 0o755))
	must(t, os.WriteFile(filepath.Join(theirs, "theirs"), []byte("theirs\n"), 0o644))
	s.Caches = []Cache{{Path: theirs, Layer: layer}, {Path: filepath.Join(base, "missing"), Layer: filepath.Join(base, "l2")}}
	s.Env = append(s.Env, "C="+theirs)
	_, out := run(t, s)
	if !strings.Contains(out, "theirs\n") || !strings.HasSuffix(out, "\nours\n") {
		t.Fatalf("first command:\n%s", out)
	}
	s.Output += "2"
	_, out = run(t, s)
	if !strings.Contains(out, "ours\n") || strings.Contains(out, "theirs\n") {
		t.Errorf("second command does not see the first's writes:\n%s", out)
	}
	ents, err := os.ReadDir(theirs)
	if err != nil || len(ents) != 1 || ents[0].Name() != "theirs" {
		t.Errorf("the user's cache was changed: %v %v", ents, err)
	}
}

func TestNetworkAndSocketsOnlyWhenAsked(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("python3 makes the connections")
	}
	needLevel(t, LevelSealed)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	s := shSpec(t, LevelSealed, "")
	sock := filepath.Join(filepath.Dir(s.Dir), "agent.sock")
	u, err := net.Listen("unix", sock)
	must(t, err)
	defer u.Close()
	s.Argv = []string{"python3", "-c", `
import socket,sys
def t(n,f,a):
    s=socket.socket(f)
    try: s.connect(a); print(n,"yes")
    except OSError as e: print(n,"no")
t("tcp",socket.AF_INET,("127.0.0.1",int(sys.argv[1]))); t("unix",socket.AF_UNIX,sys.argv[2])`, l.Addr().String()[len("127.0.0.1:"):], sock}
	if home, err := os.UserHomeDir(); err == nil {
		s.Env = append(s.Env, "HOME="+home)
	}
	if _, out := run(t, s); out != "tcp no\nunix no\n" {
		t.Errorf("closed box: %q", out)
	}
	s.Output += "2"
	s.Network, s.Sockets = true, []string{sock}
	if _, out := run(t, s); out != "tcp yes\nunix yes\n" {
		t.Errorf("opened box: %q", out)
	}
	s.Output += "3"
	s.Sockets = nil
	p, err := Start(context.Background(), s)
	must(t, err)
	if p.Identity().Inner == "" {
		t.Error("a networked command has no pid namespace of its own")
	}
	must(t, p.Open())
	e, err := p.Wait(context.Background())
	if out := output(t, s); err != nil || out != "tcp yes\nunix no\n" || !e.TreeDead {
		t.Errorf("network alone: %q %+v %v", out, e, err)
	}
}

func itoa(n int) string { return strconv.Itoa(n) }
