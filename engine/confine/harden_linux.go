package confine

import (
	"fmt"
	"slices"
	"unsafe"

	seccomp "github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
	"github.com/landlock-lsm/go-landlock/landlock"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// harden gives up, for the calling thread and what is forked from it, everything the command must not have. The other
// threads of the keeper keep their rights, so it makes itself unreadable to the command as well. It returns what could
// not be done; whether that matters is for the self-probe to find out.
func harden(o *order) (map[string]string, error) {
	notes := map[string]string{}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("giving up new privileges: %w", err)
	}
	if err := dropCapabilities(); err != nil {
		return nil, fmt.Errorf("dropping capabilities: %w", err)
	}
	if err := restrictFiles(o, notes); err != nil {
		return nil, fmt.Errorf("landlock: %w", err)
	}
	if err := restrictCalls(o); err != nil {
		if o.Level != LevelPartial {
			return nil, fmt.Errorf("seccomp: %w", err)
		}
		notes["seccomp"] = err.Error()
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("closing the keeper to inspection: %w", err)
	}
	return notes, nil
}

func dropCapabilities() error {
	_ = unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
	for c := uintptr(0); c <= 63; c++ {
		// Fails for numbers the kernel does not know, and for a user who has none to drop.
		_ = unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0)
	}
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	return unix.Capset(&hdr, &none[0])
}

// restrictFiles applies landlock in one ruleset: two stacked ones would refuse every rename across directories.
func restrictFiles(o *order, notes map[string]string) error {
	rights := slices.Clone(o.Rights)
	if o.Box {
		rights = append(rights, "/tmp", "/dev/shm")
	}
	rules := []landlock.Rule{
		landlock.RODirs("/"),
		landlock.RWFiles("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty").WithIoctlDev().IgnoreIfMissing(),
	}
	if o.Box {
		rules = append(rules, landlock.RWDirs("/dev/pts").WithIoctlDev().IgnoreIfMissing())
	}
	for _, p := range rights {
		rules = append(rules, landlock.RWDirs(p).WithRefer().WithIoctlDev().WithResolveUnix().IgnoreIfMissing())
	}
	for _, p := range o.Reach {
		rules = append(rules, landlock.ROFiles(p).WithResolveUnix().IgnoreIfMissing())
	}
	cfg := landlock.V11
	if o.Box || o.Network {
		cfg.HandledAccessNet = 0 // the namespace does it, and leaves the box its own loopback
	}
	fd, flags, err := cfg.BestEffort().NewRulesetFD(rules...)
	if err != nil {
		return err
	}
	if fd < 0 {
		notes["landlock"] = "the kernel does not offer it"
		return nil
	}
	defer unix.Close(fd)
	if _, _, e := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(fd), uintptr(flags), 0); e != 0 {
		return e
	}
	return nil
}

// refused are calls that no build or test needs and that reach past the box or widen the kernel's attack surface.
var refused = []string{
	"io_uring_setup", "io_uring_enter", "io_uring_register", // opens and connects unseen by the filter
	"bpf", "perf_event_open", "userfaultfd", "kexec_load", "init_module", "finit_module", "delete_module",
	"mount", "umount2", "pivot_root", "move_mount", "fsopen", "fsconfig", "fsmount", "fspick", "open_tree", "mount_setattr",
	"setns", "unshare", "chroot", "open_by_handle_at", "fanotify_init",
	"keyctl", "add_key", "request_key", // keyrings are not namespaced
	"reboot", "swapon", "swapoff", "settimeofday", "clock_settime", "adjtimex", "clock_adjtime", "quotactl", "acct", "syslog",
}

const nsFlags = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET

// restrictCalls loads the call filter for this thread.
func restrictCalls(o *order) error {
	info, err := arch.GetInfo("")
	if err != nil {
		return err
	}
	known := func(names []string) []string {
		return slices.DeleteFunc(slices.Clone(names), func(n string) bool { _, ok := info.SyscallNames[n]; return !ok })
	}
	names := known(refused)
	var family []seccomp.NameWithConditions
	if o.Box || o.Network {
		only := seccomp.ArgumentConditions{}
		for _, f := range []uint64{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK} {
			only = append(only, seccomp.Condition{Argument: 0, Operation: seccomp.NotEqual, Value: f})
		}
		family = append(family, seccomp.NameWithConditions{Name: "socket", Conditions: only})
	} else {
		names = append(names, "socket")
		family = append(family,
			// A pair of datagram sockets can be connected to somebody else afterwards.
			seccomp.NameWithConditions{Name: "socketpair", Conditions: seccomp.ArgumentConditions{{Argument: 1, Operation: seccomp.BitsSet, Value: unix.SOCK_DGRAM}}})
	}
	for f := uint64(1); f != 0 && f <= nsFlags; f <<= 1 {
		if f&nsFlags != 0 {
			family = append(family, seccomp.NameWithConditions{Name: "clone", Conditions: seccomp.ArgumentConditions{{Argument: 0, Operation: seccomp.BitsSet, Value: f}}})
		}
	}
	policy := seccomp.Policy{DefaultAction: seccomp.ActionAllow, Syscalls: []seccomp.SyscallGroup{
		{Action: seccomp.ActionErrno, Names: names, NamesWithCondtions: family},
	}}
	prog, err := policy.Assemble()
	if err != nil {
		return err
	}
	return loadFilter(prepend(prog, info))
}

// prepend refuses, before the policy proper, calls made in another machine's convention (which the policy would let
// through unread) and clone3, whose flags lie in memory where no filter can see them; libraries fall back to clone.
func prepend(prog []bpf.Instruction, info *arch.Info) []bpf.Instruction {
	const archOffset, nrOffset = 4, 0
	enosys := bpf.RetConstant{Val: 0x00050000 | uint32(unix.ENOSYS)} // SECCOMP_RET_ERRNO
	head := []bpf.Instruction{
		bpf.LoadAbsolute{Off: archOffset, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(info.ID), SkipTrue: 1},
		enosys,
	}
	if nr, ok := info.SyscallNames["clone3"]; ok {
		head = append(head,
			bpf.LoadAbsolute{Off: nrOffset, Size: 4},
			bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: uint32(nr), SkipTrue: 1},
			enosys)
	}
	return append(head, prog...)
}

func loadFilter(prog []bpf.Instruction) error {
	raw, err := bpf.Assemble(prog)
	if err != nil {
		return err
	}
	f := make([]unix.SockFilter, len(raw))
	for i, r := range raw {
		f[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	// For the calling thread only: the keeper's others still have processes to end.
	p := unix.SockFprog{Len: uint16(len(f)), Filter: &f[0]}
	if _, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&p))); e != 0 {
		return e
	}
	return nil
}
