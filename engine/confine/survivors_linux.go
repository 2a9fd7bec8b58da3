package confine

import (
	"bytes"
	"cmp"
	"context"
	"os"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// FindMarked lists the processes whose environment carries MarkerEnv=marker. It finds what left the process tree
// (setsid, double fork) but not what cleared its environment or belongs to another user, so an empty list is no proof.
func FindMarked(marker string) []Identity {
	if marker == "" {
		return nil
	}
	found := map[Identity]bool{}
	for {
		// A process that forks while we read may show neither itself nor its child: look until nothing new turns up.
		before := len(found)
		for _, id := range scanMarked(marker) {
			found[id] = true
		}
		if len(found) == before {
			break
		}
	}
	var out []Identity
	for id := range found {
		if Probe(id) != LiveGone {
			out = append(out, id)
		}
	}
	slices.SortFunc(out, func(a, b Identity) int { return cmp.Compare(a.PID, b.PID) })
	return out
}

func scanMarked(marker string) []Identity {
	want := []byte("\x00" + MarkerEnv + "=" + marker + "\x00")
	var out []Identity
	for _, pid := range pids() {
		if pid == os.Getpid() {
			continue
		}
		b, err := readEnviron(pid)
		if err != nil || !bytes.Contains(append([]byte{0}, b...), want) {
			continue
		}
		if st, err := readStat(pid); err == nil && st.state != 'Z' && st.state != 'X' {
			out = append(out, Identity{Boot: BootID(), PIDNS: ownPIDNS(), PID: pid, Start: st.start})
		}
	}
	return out
}

// readEnviron reads a process's environment. In the middle of starting a program it is empty for a moment, so an empty
// one is read again; it is left at that after a few milliseconds, since an environment may be empty for good.
func readEnviron(pid int) ([]byte, error) {
	for try := 0; ; try++ {
		b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
		if err != nil || len(b) > 0 || try == 3 || isKernelThread(pid) {
			return b, err
		}
		time.Sleep(time.Millisecond)
	}
}

// isKernelThread says whether pid has no program at all; a zombie has none either.
func isKernelThread(pid int) bool {
	_, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/exe")
	return err != nil
}

func pids() []int {
	d, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer d.Close()
	names, _ := d.Readdirnames(-1)
	out := make([]int, 0, len(names))
	for _, n := range names {
		if p, err := strconv.Atoi(n); err == nil {
			out = append(out, p)
		}
	}
	return out
}

// below lists the living descendants of root with their start times, root excluded.
func below(root int) map[int]uint64 {
	kids := map[int][]int{}
	starts := map[int]uint64{}
	for _, p := range pids() {
		if st, err := readStat(p); err == nil {
			kids[st.ppid] = append(kids[st.ppid], p)
			if st.state != 'Z' && st.state != 'X' {
				starts[p] = st.start
			}
		}
	}
	out := map[int]uint64{}
	for todo := kids[root]; len(todo) > 0; {
		p := todo[0]
		todo = append(todo[1:], kids[p]...)
		if s, ok := starts[p]; ok {
			out[p] = s
		}
	}
	return out
}

// killBelow ends the descendants of root until none is left, none can be ended, or ctx is done. Each round stops them
// all before it kills any, so that a tree that keeps forking cannot outrun it. It returns those it could not end.
func killBelow(ctx context.Context, root int) []Identity {
	for {
		var left []Identity
		var fds []int
		for p, s := range below(root) {
			id := Identity{Boot: BootID(), PIDNS: ownPIDNS(), PID: p, Start: s}
			l, fd := pin(id)
			if l != LiveAlive {
				continue
			}
			if unix.PidfdSendSignal(fd, unix.SIGSTOP, nil, 0) != nil {
				left = append(left, id)
				unix.Close(fd)
				continue
			}
			fds = append(fds, fd)
		}
		for _, fd := range fds {
			_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) // gone already, or dies now
		}
		for _, fd := range fds {
			ended(fd, 1000)
			unix.Close(fd)
		}
		if len(fds) == 0 || ctx.Err() != nil {
			return left
		}
	}
}
