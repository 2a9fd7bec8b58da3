//go:build linux

package confine

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func TestEachLevelHoldsWhatItPromises(t *testing.T) {
	for _, l := range levels(t) {
		out, notes, err := tryLevel(context.Background(), l)
		must(t, err)
		if b := out.broken(l); len(b) != 0 {
			t.Errorf("%s: %v", l, b)
		}
		if len(notes) != 0 {
			t.Logf("%s: %v", l, notes)
		}
	}
}

// Without the control, a probe whose attempts always fail would prove every box sealed.
func TestAttemptsSucceedWithoutABox(t *testing.T) {
	out, _, err := tryLevel(context.Background(), LevelNone)
	must(t, err)
	// What this machine or user may lack, box or not.
	optional := map[string]bool{
		"write to a disk": true, "set the kernel's core pattern": true, "change a kernel setting in /sys": true,
		"press the system request key": true, "raw socket": true, "packet socket": true, "vsock socket": true,
		"kernel crypto socket": true, "mptcp connect": true, "tcp fast open": true, "trace the supervisor": true,
		"write the supervisor's memory": true, "read the supervisor's memory": true, "take a descriptor of the supervisor": true,
		"bpf": true, "userfaultfd": true, "perf events": true, "add to a keyring": true, "mount": true, "remount writable": true,
		"unmount a mask": true, "new root directory": true, "enter the first process's network": true, "io_uring": true,
		"new user namespace": true, "new user namespace by clone3": true, "set an attribute outside": true,
		"attach the supervisor's shared memory": true, "write through the supervisor's root": true,
		"write through the supervisor's descriptor": true, "read the supervisor's environment": true,
		"hard link to a file outside": true, "hard link into the outside": true,
		"write to an inherited descriptor": true, // closed at every level
	}
	count := 0
	for _, a := range escapes {
		if out[a.name] == allowed {
			count++
		} else if !optional[a.name] {
			t.Errorf("%s failed without a box: %s", a.name, out[a.name])
		}
	}
	t.Logf("%d of %d attempts succeed here without a box", count, len(escapes))
	if os.Getuid() == 0 && count < 40 {
		t.Errorf("as root only %d attempts succeed: the probe proves little", count)
	}
}

func TestMeasureAsAnOrdinaryUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root to become somebody else")
	}
	r := measureAs(t, func(c *exec.Cmd) { asUser(c, 1500) })
	if want := Measure(context.Background(), LevelSealed).Level; r.Level != want {
		t.Errorf("uid 1500 gets %s, root %s: %v", r.Level, want, r.Missing)
	}
	if !strings.Contains(r.Key, "uid=1500") {
		t.Errorf("key %q", r.Key)
	}
}

func TestMeasureWithoutUserNamespaces(t *testing.T) {
	needLevel(t, LevelGuarded)
	r := measureAs(t, func(c *exec.Cmd) {
		c.Env = append(c.Env, "CONFINE_TEST_NO_USERNS=1")
		// An ordinary user inside a namespace that allows no further ones.
		id := os.Getuid()
		inner := id
		if inner == 0 {
			inner = 1500
		}
		c.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWUSER,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: inner, HostID: id, Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: inner, HostID: os.Getgid(), Size: 1}},
			AmbientCaps: []uintptr{unix.CAP_SYS_RESOURCE},
		}
	})
	if r.Level != LevelGuarded || len(r.Missing) == 0 || !strings.Contains(r.Missing[0], "user namespaces") {
		t.Errorf("got %s, missing %v", r.Level, r.Missing)
	}
}

func measureAs(t *testing.T, change func(*exec.Cmd)) Report {
	t.Helper()
	tmp, err := os.MkdirTemp("", "pawl-measure-")
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(tmp) })
	must(t, os.Chmod(tmp, 0o777))
	c := exec.Command("/proc/self/exe")
	c.Dir = "/"
	c.Stderr = os.Stderr
	c.Env = []string{roleEnv + "=measure", "PATH=" + os.Getenv("PATH"), "TMPDIR=" + tmp}
	change(c)
	b, err := c.Output()
	must(t, err)
	var r Report
	must(t, json.Unmarshal(b, &r))
	return r
}

func TestMeasureForcedDown(t *testing.T) {
	for env, want := range map[string]Level{"": LevelSealed, "none": LevelNone, "Partial": LevelPartial, "guarded": LevelGuarded, "sealed": LevelSealed, "bogus": LevelNone} {
		t.Setenv(MaxEnv, env)
		if got := MaxFromEnv(); got != want {
			t.Errorf("%q: %s, want %s", env, got, want)
		}
	}
	r := Measure(context.Background(), LevelNone)
	if r.Level != LevelNone || len(r.Missing) == 0 {
		t.Errorf("got %+v", r)
	}
	high := Measure(context.Background(), LevelSealed)
	if high.Level == LevelSealed && len(high.Missing) != 0 {
		t.Errorf("sealed, yet missing %v", high.Missing)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if r := measure(ctx, LevelSealed); r.Level != LevelNone {
		t.Errorf("a cancelled measurement claims %s", r.Level)
	}
}

func TestRootWorksAsTheOwnerOfTheFiles(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root")
	}
	for _, l := range levels(t) {
		if l == LevelNone {
			continue
		}
		s := shSpec(t, l, "id -u; cat private && echo new >made")
		must(t, os.Chmod(filepath.Dir(filepath.Dir(s.Dir)), 0o755))
		must(t, os.Chmod(filepath.Dir(s.Dir), 0o755))
		must(t, os.WriteFile(filepath.Join(s.Dir, "private"), []byte("theirs\n"), 0o600))
		must(t, os.Chown(filepath.Join(s.Dir, "private"), 1500, 1500))
		must(t, os.Chown(s.Dir, 1500, 1500))
		e, out := run(t, s)
		if e.Code != 0 || out != "1500\ntheirs\n" {
			t.Errorf("%s: %+v %q", l, e, out)
		}
		var st unix.Stat_t
		must(t, unix.Stat(filepath.Join(s.Dir, "made"), &st))
		if st.Uid != 1500 {
			t.Errorf("%s: the new file belongs to %d", l, st.Uid)
		}
	}
}

// Everything once more as somebody who is not root: rights differ in more places than the measurement.
func TestAllAsAnOrdinaryUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("this is the ordinary user")
	}
	tmp, err := os.MkdirTemp("", "pawl-user-")
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(tmp) })
	must(t, os.Chmod(tmp, 0o777))
	c := exec.Command("/proc/self/exe", "-test.count=1", "-test.run=Cache|Hidden|Exits|Background|TimeOut|Supervisor|Promises", "-test.v")
	c.Dir = "/"
	c.Env = []string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + tmp, "HOME=" + tmp}
	asUser(c, 1500)
	if b, err := c.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, b)
	}
}

func TestSitesOfKilledProcessesAreSweptUp(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	c := exec.Command("sleep", "987000")
	must(t, c.Start())
	id, err := identify(c.Process.Pid)
	must(t, err)
	name := func(boot, ns string) string {
		return filepath.Join(os.TempDir(), siteName+boot+"-"+ns+"-"+itoa(id.PID)+"-"+itoa(int(id.Start))+"-1")
	}
	ns := strings.Trim(id.PIDNS, "pid:[]")
	mine, older, elsewhere, other := name(id.Boot[:8], ns), name("00000000", ns), name(id.Boot[:8], "1"), filepath.Join(os.TempDir(), siteName+"else")
	for _, d := range []string{mine, older, elsewhere, other} {
		must(t, os.Mkdir(d, 0o700))
	}
	there := func(want ...string) {
		t.Helper()
		got, err := filepath.Glob(os.TempDir() + "/*")
		must(t, err)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("there are %v, not %v", got, want)
		}
	}
	sweepSites(os.TempDir())
	there(mine, elsewhere, other)
	must(t, c.Process.Kill())
	_ = c.Wait() // killed
	sweepSites(os.TempDir())
	there(elsewhere, other)
	if _, _, err := tryLevel(context.Background(), LevelNone); err != nil {
		t.Error(err)
	}
	there(elsewhere, other)
}
