package ledger

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"
)

// Acknowledged commits survive kill -9 at random moments, whether full or
// lazy; a commit in flight is there whole or not at all; chains stay whole.
func TestKilledWritersLoseNothingAcknowledged(t *testing.T) {
	path := dbPath(t)
	rnd := rand.New(rand.NewPCG(7, 7))
	runs := []string{"r0", "r1"}
	acked := map[string]int64{}
	total := 0
	for round := range 10 {
		var ps []*process
		for _, r := range runs {
			ps = append(ps, start(t, "append", path, r))
		}
		var first []string
		for _, p := range ps {
			first = append(first, p.expect("TRY"), p.expect("ACK"))
		}
		_ = first
		time.Sleep(time.Duration(rnd.IntN(25_000)) * time.Microsecond) // the moment is what varies, nothing waits for it
		for _, p := range ps {
			p.kill()
		}
		inFlight := map[string]int64{}
		for i, p := range ps {
			n := int64(0)
			fmt.Sscan(first[2*i+1], &n)
			acked[runs[i]] = n
			for s := range p.lines {
				if strings.HasPrefix(s, "ERROR") {
					t.Fatal(s)
				}
				var k int64
				if _, err := fmt.Sscanf(s, "TRY %d", &k); err == nil {
					inFlight[runs[i]] = k
				}
				if _, err := fmt.Sscanf(s, "ACK %d", &k); err == nil {
					acked[runs[i]], inFlight[runs[i]] = k, 0
					total++
				}
			}
		}
		d := openAt(t, path)
		for _, r := range runs {
			n, err := d.Tail(bg, r)
			must(t, err)
			if n != acked[r] && n != acked[r]+inFlight[r] {
				t.Fatalf("round %d: run %s has %d events; %d were acknowledged, %d in flight", round, r, n, acked[r], inFlight[r])
			}
			row, err := d.Run(bg, r)
			must(t, err)
			es, err := d.Events(bg, r, n-1, 1)
			must(t, err)
			if first := es[0].Cmd; strings.TrimSpace(string(first[8:])) != fmt.Sprintf("%08d", row.Turn) {
				t.Fatalf("round %d: the row of %s is not of its last event", round, r)
			}
		}
		whole(t, d)
		must(t, d.Close())
	}
	if total < 50 {
		t.Errorf("only %d commits were acknowledged in all: too few to show anything", total)
	}
}

// B47: an owner that was stopped wakes up after another took over: it cannot write.
func TestAStoppedOwnerIsFencedWhenItWakesUp(t *testing.T) {
	path := dbPath(t)
	d := openWith(t, Options{Path: path, Owner: "the second"})
	must(t, add(d, Full, "r", 0))
	p := start(t, "own", path, "r")
	p.expect("READY")
	p.say("claim 1 1")
	p.expect("OK")
	p.stop()
	// Its lock is held and its lease has time left: it is alive as far as anyone can tell.
	_, err := d.Commit(bg, Full, Part{Run: "r", Cmd: newCmd(), Epoch: 2, Tail: 2, Claim: true, Events: ev("Claimed")})
	held := is[*HeldError](t, err)
	// With the clock beyond the lease it may be claimed.
	late := openWith(t, Options{Path: path, Owner: "the second", Mono: func() time.Duration { return monotonic() + held.Left + time.Second }})
	_, err = late.Commit(bg, Full, Part{Run: "r", Cmd: newCmd(), Epoch: 2, Tail: 2, Claim: true, Events: ev("Claimed")})
	must(t, err)
	p.say("write 1 3")
	p.signal(sigCont)
	if owner := p.expect("FENCED"); owner != "the second" {
		t.Errorf("it was told that %q owns the run", owner)
	}
	if n, _ := d.Tail(bg, "r"); n != 3 {
		t.Errorf("%d events: the zombie wrote", n)
	}
}

// B47: two processes that start at once on one run: exactly one owns it, and the
// other is told who does.
func TestTwoWhoClaimAtOnceHaveOneOwner(t *testing.T) {
	path := dbPath(t)
	d := openAt(t, path)
	must(t, add(d, Full, "r", 0))
	tail, epoch := int64(1), int64(1)
	for range 5 {
		a, b := start(t, "own", path, "r"), start(t, "own", path, "r")
		ids := []string{a.expect("READY"), b.expect("READY")}
		cmd := fmt.Sprintf("claim %d %d", epoch, tail)
		a.say(cmd)
		b.say(cmd)
		got := []string{a.line(), b.line()}
		owner := 0
		if got[0] != "OK" {
			owner = 1
		}
		if got[owner] != "OK" || !strings.HasPrefix(got[1-owner], "HELD pid ") {
			t.Fatalf("they were told %q", got)
		}
		ls, err := d.Leases(bg, "r")
		must(t, err)
		if ls[0].Holder != ids[owner] || !ls[0].Live {
			t.Fatalf("lease %+v, owner should be %s", ls[0], ids[owner])
		}
		// Killed, it is taken over at once although its lease has time left.
		[]*process{a, b}[owner].kill()
		other := []*process{a, b}[1-owner]
		other.say(fmt.Sprintf("claim %d %d", epoch+1, tail+1))
		other.expect("OK")
		other.kill()
		tail, epoch = tail+2, epoch+2
	}
	whole(t, d)
}

// B47: the lock file of a dead owner proves nothing by being there, whatever
// runs under its pid now; and files of the dead do not pile up.
func TestAFileLeftBehindDoesNotKeepARun(t *testing.T) {
	path := dbPath(t)
	d := openAt(t, path)
	must(t, add(d, Full, "r", 0))
	p := start(t, "own", path, "r")
	id := p.expect("READY")
	p.say("claim 1 1")
	p.expect("OK")
	if !procAlive(d.o.procs(), id) {
		t.Fatal("a living owner is taken for dead")
	}
	p.kill()
	if _, err := os.Stat(d.o.procs() + "/" + id); err != nil {
		t.Fatalf("its file should be left: %v", err)
	}
	if procAlive(d.o.procs(), id) {
		t.Fatal("a dead owner is taken for alive")
	}
	_, err := d.Commit(bg, Full, Part{Run: "r", Cmd: newCmd(), Epoch: 2, Tail: 2, Claim: true, Events: ev("Claimed")})
	must(t, err)
	openAt(t, path)
	if _, err := os.Stat(d.o.procs() + "/" + id); err == nil {
		t.Error("the next start did not clear it away")
	}
	if !procAlive(d.o.procs(), d.id) {
		t.Error("... but took ours")
	}
}

// A lease of another boot of the machine is void: the process cannot live.
func TestALeaseOfAnotherBootIsFree(t *testing.T) {
	path := dbPath(t)
	a := openWith(t, Options{Path: path, Boot: "monday"})
	must(t, add(a, Full, "r", 0))
	_, err := a.Commit(bg, Full, Part{Run: "r", Cmd: newCmd(), Epoch: 1, Tail: 1, Claim: true})
	must(t, err)
	b := openWith(t, Options{Path: path, Boot: "tuesday"})
	_, err = b.Commit(bg, Full, Part{Run: "r", Cmd: newCmd(), Epoch: 2, Tail: 1, Claim: true})
	must(t, err)
}
