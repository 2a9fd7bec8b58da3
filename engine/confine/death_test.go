//go:build linux

package confine

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

func TestSupervisorKilledAtTheGateRunsNothing(t *testing.T) {
	for _, l := range levels(t) {
		s := shSpec(t, l, "touch ran")
		v, id := startSupervisor(t, s)
		if got := Probe(id); got != LiveAlive {
			t.Fatalf("%s: %v before the end", l, got)
		}
		must(t, v.Process.Kill())
		until(t, "the keeper is gone", func() bool { return Probe(id) == LiveGone })
		if _, err := os.Stat(filepath.Join(s.Dir, "ran")); err == nil {
			t.Errorf("%s: it ran", l)
		}
	}
}

func TestSupervisorKilledLeavesNobody(t *testing.T) {
	for i, l := range levels(t) {
		t.Run(l.String(), func(t *testing.T) {
			n := 984000 + i
			v, id := startSupervisor(t, shSpec(t, l, nest(n)))
			if (id.Inner != "") != (l == LevelSealed) {
				t.Fatalf("identity %+v", id)
			}
			_, err := v.in.Write([]byte("\n"))
			must(t, err)
			until(t, "the tree is up", func() bool { return sleepers(n) == 5 })
			must(t, v.Process.Kill())
			if l == LevelSealed {
				// The proof is exact: once the init is gone, nobody is there to be waited for.
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				defer cancel()
				if got, err := Reap(ctx, id); got != LiveGone || err != nil {
					t.Fatalf("%v %v", got, err)
				}
			} else {
				until(t, "the keeper is gone", func() bool { return Probe(id) == LiveGone })
			}
			if left := sleepers(n); left != 0 {
				t.Errorf("%d left", left)
			}
		})
	}
}

func TestReapEndsALivingTree(t *testing.T) {
	for i, l := range levels(t) {
		n := 985000 + i
		p, err := Start(context.Background(), shSpec(t, l, nest(n)))
		must(t, err)
		must(t, p.Open())
		until(t, "the tree is up", func() bool { return sleepers(n) == 5 })
		got, err := Reap(context.Background(), p.Identity())
		if got != LiveGone || err != nil || sleepers(n) != 0 {
			t.Errorf("%s: %v %v, %d left", l, got, err, sleepers(n))
		}
		if got := Probe(p.Identity()); got != LiveGone {
			t.Errorf("%s: probed %v", l, got)
		}
		if e, err := p.Wait(context.Background()); err == nil && e.Code == 0 {
			t.Errorf("%s: an end by force was reported as success: %+v", l, e)
		}
	}
}

func TestAnotherProcessWithTheSamePidIsLeftAlone(t *testing.T) {
	c := exec.Command("sleep", "986000")
	must(t, c.Start())
	defer func() { _ = c.Process.Kill(); _ = c.Wait() }()
	id, err := identify(c.Process.Pid)
	must(t, err)
	if Probe(id) != LiveAlive {
		t.Fatal("a living process was not recognised")
	}
	older := id
	older.Start--
	if l, err := Reap(context.Background(), older); l != LiveGone || err != nil {
		t.Errorf("an older owner of the pid: %v %v", l, err)
	}
	boot := id
	boot.Boot = "another"
	if l, err := Reap(context.Background(), boot); l != LiveGone || err != nil {
		t.Errorf("another boot: %v %v", l, err)
	}
	elsewhere := id
	elsewhere.PIDNS = "pid:[1]"
	if l, err := Reap(context.Background(), elsewhere); l != LiveUnknown || err == nil {
		t.Errorf("another namespace: %v %v", l, err)
	}
	if l := Probe(Identity{}); l != LiveUnknown {
		t.Errorf("an empty identity: %v", l)
	}
	if err := c.Process.Signal(syscall.Signal(0)); err != nil || Probe(id) != LiveAlive {
		t.Errorf("the innocent process was harmed: %v", err)
	}
}

func TestAThreadIsNoProcess(t *testing.T) {
	ents, err := os.ReadDir("/proc/self/task")
	must(t, err)
	for _, e := range ents {
		if e.Name() != itoa(os.Getpid()) {
			var tid int
			for _, r := range e.Name() {
				tid = tid*10 + int(r-'0')
			}
			if l := Probe(Identity{Boot: BootID(), PIDNS: ownPIDNS(), PID: tid, Start: 1}); l != LiveGone {
				t.Errorf("thread %d: %v", tid, l)
			}
			return
		}
	}
	t.Skip("one thread only")
}
