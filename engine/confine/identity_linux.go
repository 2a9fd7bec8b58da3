package confine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// BootID identifies this start of the kernel. A process recorded under another one is dead.
var BootID = sync.OnceValue(func() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
})

var ownPIDNS = sync.OnceValue(func() string {
	s, _ := os.Readlink("/proc/self/ns/pid")
	return s
})

// stat is the part of /proc/<pid>/stat that identifies a process and its place in the tree.
type stat struct {
	ppid  int
	start uint64 // clock ticks since boot
	state byte
}

func readStat(pid int) (stat, error) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return stat{}, err
	}
	i := bytes.LastIndexByte(b, ')') // the name may hold spaces and brackets
	f := bytes.Fields(b[i+1:])
	if i < 0 || len(f) < 20 {
		return stat{}, fmt.Errorf("process %d: unreadable stat line", pid)
	}
	ppid, err1 := strconv.Atoi(string(f[1]))
	start, err2 := strconv.ParseUint(string(f[19]), 10, 64)
	return stat{ppid: ppid, start: start, state: f[0][0]}, errors.Join(err1, err2)
}

// identify names the process that pid has now. The caller must know that it is the one it means: its own child that
// has not been waited for.
func identify(pid int) (Identity, error) {
	st, err := readStat(pid)
	if err != nil {
		return Identity{}, err
	}
	return Identity{Boot: BootID(), PIDNS: ownPIDNS(), PID: pid, Start: st.start}, nil
}

// pin opens a handle that stays on exactly the process that id names. The handle is taken first and the start time
// compared after, so a pid that was reused in between is never touched. fd is -1 unless the process is alive.
func pin(id Identity) (Liveness, int) {
	if id.PID <= 0 || id.Boot == "" || BootID() == "" {
		return LiveUnknown, -1
	}
	if id.Boot != BootID() {
		return LiveGone, -1
	}
	if id.PIDNS != ownPIDNS() {
		return LiveUnknown, -1 // counted in another namespace: this pid means nothing here
	}
	fd, err := unix.PidfdOpen(id.PID, 0)
	switch {
	case errors.Is(err, unix.ESRCH), errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOENT):
		return LiveGone, -1 // EINVAL: the number now belongs to a thread
	case err != nil:
		return LiveUnknown, -1
	}
	st, err := readStat(id.PID)
	if err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, unix.ESRCH) {
		unix.Close(fd)
		return LiveUnknown, -1
	}
	if err != nil || st.start != id.Start {
		unix.Close(fd)
		return LiveGone, -1
	}
	// A zombie leader may still have threads that are ending the namespace, so the state letter proves nothing;
	// the handle becomes readable only when the last thread is gone.
	if ended(fd, 0) {
		unix.Close(fd)
		return LiveGone, -1
	}
	return LiveAlive, fd
}

// ended waits up to ms milliseconds for the pinned process to end.
func ended(fd, ms int) bool {
	p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	n, err := unix.Poll(p, ms)
	return err == nil && n == 1
}

// Probe says whether the process that id names is alive. LiveGone about an identity with an Inner namespace, or from
// another boot, is proof that everything the process started is dead as well; about any other identity it says
// nothing about the descendants.
func Probe(id Identity) Liveness {
	l, fd := pin(id)
	if fd >= 0 {
		unix.Close(fd)
	}
	return l
}

// Reap ends what id names, if it is alive, and waits until it is gone or ctx ends. With an Inner namespace every
// process in it dies too, and LiveGone proves it. Without one, the descendants that can be found are ended first, but
// LiveGone is then no proof of the death of those that had left the tree before.
func Reap(ctx context.Context, id Identity) (Liveness, error) {
	l, fd := pin(id)
	if l != LiveAlive {
		if l == LiveUnknown {
			return l, fmt.Errorf("process %d cannot be judged from here: it was counted in %s of boot %s, this is %s of boot %s",
				id.PID, id.PIDNS, id.Boot, ownPIDNS(), BootID())
		}
		return l, nil
	}
	defer unix.Close(fd)
	if id.Inner == "" {
		killBelow(ctx, id.PID)
	}
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return LiveAlive, fmt.Errorf("ending process %d: %w", id.PID, err)
	}
	for !ended(fd, 20) {
		if err := ctx.Err(); err != nil {
			return LiveAlive, fmt.Errorf("process %d was killed but has not ended: %w", id.PID, err)
		}
	}
	return LiveGone, nil
}
