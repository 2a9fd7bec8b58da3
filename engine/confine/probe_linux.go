package confine

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// probeSite is what the self-probe finds outside of its box, made by the measuring process.
type probeSite struct {
	WS       string // writable
	Out      string // readable, not writable, owned by the same user
	TCP, UDP int    // ports that listen on the host's loopback
	Abstract string // name of an abstract socket that listens
	FD       int    // descriptor left open on a file in Out, as if inherited
	Sup      int    // the measuring process
	Shm      int    // its System V shared memory
}

// attempt is one way out of the box, or one thing that must go on working inside.
type attempt struct {
	name string
	from Level // lowest level that promises to block it; for needs: the lowest from which on it works at every level
	try  func(p probeSite) error
}

// outcome of attempts as the probe reports them: name → "allowed" or the reason for its failure.
type outcome map[string]string

const allowed = "allowed"

func probeMain() {
	runtime.LockOSThread() // tracing is a matter of threads
	var p probeSite
	if len(os.Args) < 2 || json.Unmarshal([]byte(os.Args[1]), &p) != nil {
		syscall.Exit(2)
	}
	out := outcome{}
	for _, list := range [][]attempt{escapes, needs} {
		for _, a := range list {
			out[a.name] = allowed
			if err := a.try(p); err != nil {
				out[a.name] = err.Error()
			}
		}
	}
	if json.NewEncoder(os.Stdout).Encode(out) != nil {
		syscall.Exit(2)
	}
	syscall.Exit(0)
}

func (p probeSite) out(name string) string { return filepath.Join(p.Out, name) }
func (p probeSite) ws(name string) string  { return filepath.Join(p.WS, name) }
func (p probeSite) proc(name string) string {
	return "/proc/" + strconv.Itoa(p.Sup) + "/" + name
}

func openClose(path string, flags int) error {
	fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0o644)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

// writable opens for writing without changing anything.
func writable(path string) error { return openClose(path, unix.O_WRONLY|unix.O_APPEND) }

func raw(nr uintptr, a ...uintptr) error {
	var x [6]uintptr
	copy(x[:], a)
	if _, _, e := unix.Syscall6(nr, x[0], x[1], x[2], x[3], x[4], x[5]); e != 0 {
		return e
	}
	return nil
}

// passing makes a file and removes it.
func passing(path string) error {
	err := openClose(path, unix.O_CREAT|unix.O_EXCL|unix.O_RDWR)
	if err == nil {
		err = unix.Unlink(path)
	}
	return err
}

// granted turns an error that can only come after the permission check into success. Attempts on the machine as a
// whole are made with arguments that cannot take effect: a probe must do no harm where nothing stops it.
func granted(err error, after ...error) error {
	for _, a := range after {
		if errors.Is(err, a) {
			return nil
		}
	}
	return err
}

// escapes are the ways out. Those of files come first, then sockets, processes and the kernel. Run without a box, as
// root, they change nothing outside of the site that was made for them.
var escapes = []attempt{
	{"write to a file outside", LevelGuarded, func(p probeSite) error { return writable(p.out("f")) }},
	{"open with truncation outside", LevelGuarded, func(p probeSite) error { return openClose(p.out("f"), unix.O_WRONLY|unix.O_TRUNC) }},
	{"truncate outside", LevelGuarded, func(p probeSite) error { return unix.Truncate(p.out("f"), 1) }},
	{"create a file outside", LevelGuarded, func(p probeSite) error { return openClose(p.out("new"), unix.O_CREAT|unix.O_RDWR) }},
	{"create a directory outside", LevelGuarded, func(p probeSite) error { return unix.Mkdir(p.out("newdir"), 0o755) }},
	{"create a symlink outside", LevelGuarded, func(p probeSite) error { return unix.Symlink("f", p.out("newlink")) }},
	{"create a fifo outside", LevelGuarded, func(p probeSite) error { return unix.Mkfifo(p.out("newfifo"), 0o644) }},
	{"remove a file outside", LevelGuarded, func(p probeSite) error { return unix.Unlink(p.out("del")) }},
	{"remove a directory outside", LevelGuarded, func(p probeSite) error { return unix.Rmdir(p.out("deldir")) }},
	{"rename within outside", LevelGuarded, func(p probeSite) error { return unix.Rename(p.out("mv1"), p.out("moved")) }},
	{"rename out of the workspace", LevelGuarded, func(p probeSite) error { return unix.Rename(p.ws("give1"), p.out("given")) }},
	{"rename into the workspace", LevelGuarded, func(p probeSite) error { return unix.Rename(p.out("mv2"), p.ws("taken")) }},
	{"hard link to a file outside", LevelGuarded, func(p probeSite) error { return unix.Link(p.out("f"), p.ws("hardlink")) }},
	{"hard link into the outside", LevelGuarded, func(p probeSite) error { return unix.Link(p.ws("give2"), p.out("hardlink")) }},
	{"write through a symlink", LevelGuarded, func(p probeSite) error {
		_ = unix.Symlink(p.out("f"), p.ws("symlink"))
		return writable(p.ws("symlink"))
	}},
	{"write through /proc/self/root", LevelGuarded, func(p probeSite) error { return writable("/proc/self/root" + p.out("f")) }},
	{"write through the supervisor's root", LevelGuarded, func(p probeSite) error { return writable(p.proc("root" + p.out("f"))) }},
	{"write through the supervisor's descriptor", LevelGuarded, func(p probeSite) error { return writable(p.proc("fd/" + strconv.Itoa(p.FD))) }},
	{"write to an inherited descriptor", LevelNone, func(p probeSite) error { _, err := unix.Write(p.FD, []byte("x")); return err }},
	{"write to a disk", LevelGuarded, func(probeSite) error { return writeDisk() }},
	{"set the kernel's core pattern", LevelGuarded, func(probeSite) error { return openClose("/proc/sys/kernel/core_pattern", unix.O_WRONLY) }},
	{"change a kernel setting in /sys", LevelGuarded, func(probeSite) error { return openClose("/sys/kernel/profiling", unix.O_WRONLY) }},
	{"press the system request key", LevelGuarded, func(probeSite) error { return openClose("/proc/sysrq-trigger", unix.O_WRONLY) }},
	{"change a mode outside", LevelSealed, func(p probeSite) error { return unix.Chmod(p.out("f"), 0o600) }},
	{"change times outside", LevelSealed, func(p probeSite) error { return unix.Utimes(p.out("f"), make([]unix.Timeval, 2)) }},
	{"change an owner outside", LevelSealed, func(p probeSite) error { return unix.Chown(p.out("f"), os.Getuid(), os.Getgid()) }},
	{"set an attribute outside", LevelSealed, func(p probeSite) error { return unix.Setxattr(p.out("f"), "user.pawl", []byte("x"), 0) }},
	{"read a hidden file", LevelSealed, func(p probeSite) error { return readSecret(p.out("secret")) }},
	{"list a hidden directory", LevelSealed, func(p probeSite) error { return openClose(p.out("hidden/f"), unix.O_RDONLY) }},
	{"write to a protected file", LevelSealed, func(p probeSite) error { return writable(p.ws("locked/f")) }},
	{"replace a protected directory", LevelSealed, func(p probeSite) error { return unix.Rename(p.ws("locked"), p.ws("unlocked")) }},

	{"tcp connect", LevelGuarded, func(p probeSite) error { return inet(unix.SOCK_STREAM, 0, p.TCP, unix.Connect) }},
	{"mptcp connect", LevelGuarded, func(p probeSite) error { return inet(unix.SOCK_STREAM, unix.IPPROTO_MPTCP, p.TCP, unix.Connect) }},
	{"tcp fast open", LevelGuarded, func(p probeSite) error {
		return inet(unix.SOCK_STREAM, 0, p.TCP, func(fd int, sa unix.Sockaddr) error {
			return unix.Sendto(fd, []byte("x"), unix.MSG_FASTOPEN, sa)
		})
	}},
	{"udp round trip", LevelGuarded, func(p probeSite) error { return inet(unix.SOCK_DGRAM, 0, p.UDP, askUDP) }},
	{"raw socket", LevelGuarded, func(probeSite) error { return socket(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP) }},
	{"packet socket", LevelGuarded, func(probeSite) error { return socket(unix.AF_PACKET, unix.SOCK_RAW, 0) }},
	{"vsock socket", LevelGuarded, func(probeSite) error { return socket(unix.AF_VSOCK, unix.SOCK_STREAM, 0) }},
	{"kernel crypto socket", LevelGuarded, func(probeSite) error { return socket(unix.AF_ALG, unix.SOCK_SEQPACKET, 0) }},
	{"unix stream socket outside", LevelGuarded, func(p probeSite) error { return unixConnect(unix.SOCK_STREAM, p.out("stream.sock")) }},
	{"unix datagram socket outside", LevelGuarded, func(p probeSite) error { return unixConnect(unix.SOCK_DGRAM, p.out("dgram.sock")) }},
	{"datagram pair turned outside", LevelGuarded, func(p probeSite) error {
		fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fds[0])
		defer unix.Close(fds[1])
		return unix.Connect(fds[0], &unix.SockaddrUnix{Name: p.out("dgram.sock")})
	}},
	{"abstract unix socket", LevelGuarded, func(p probeSite) error { return unixConnect(unix.SOCK_STREAM, "@"+p.Abstract) }},
	{"bind a unix socket outside", LevelGuarded, func(p probeSite) error { return unixBind(p.out("bind.sock")) }},

	{"signal the supervisor", LevelGuarded, func(p probeSite) error { return unix.Kill(p.Sup, 0) }},
	{"trace the supervisor", LevelGuarded, func(p probeSite) error { return trace(p.Sup) }},
	{"write the supervisor's memory", LevelGuarded, func(p probeSite) error { return openClose(p.proc("mem"), unix.O_RDWR) }},
	{"read the supervisor's memory", LevelGuarded, func(p probeSite) error { return peek(p.Sup) }},
	{"take a descriptor of the supervisor", LevelGuarded, func(p probeSite) error { return takeFD(p.Sup) }},
	{"read the supervisor's environment", LevelSealed, func(p probeSite) error { return readSecret(p.proc("environ")) }},
	{"see the supervisor's process", LevelSealed, func(p probeSite) error { return openClose(p.proc("stat"), unix.O_RDONLY) }},
	{"attach the supervisor's shared memory", LevelSealed, func(p probeSite) error {
		_, err := unix.SysvShmAttach(p.Shm, 0, 0)
		return err
	}},

	{"io_uring", LevelGuarded, func(probeSite) error {
		var params [120]byte
		return raw(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&params[0])))
	}},
	{"bpf", LevelGuarded, func(probeSite) error {
		attr := [16]uint32{1, 4, 4, 1} // an array map with one entry
		return raw(unix.SYS_BPF, 0, uintptr(unsafe.Pointer(&attr[0])), unsafe.Sizeof(attr))
	}},
	{"userfaultfd", LevelGuarded, func(probeSite) error { return raw(unix.SYS_USERFAULTFD, unix.O_CLOEXEC|1) }},
	{"perf events", LevelGuarded, func(probeSite) error {
		attr := unix.PerfEventAttr{Type: unix.PERF_TYPE_SOFTWARE, Size: uint32(unsafe.Sizeof(unix.PerfEventAttr{}))}
		_, err := unix.PerfEventOpen(&attr, 0, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
		return err
	}},
	{"add to a keyring", LevelGuarded, func(probeSite) error {
		_, err := unix.AddKey("user", "pawl", []byte("x"), unix.KEY_SPEC_PROCESS_KEYRING)
		return err
	}},
	{"mount", LevelGuarded, func(p probeSite) error {
		return granted(unix.Mount("none", p.ws("mnt"), "pawl-no-such-file-system", 0, ""), unix.ENODEV)
	}},
	{"remount writable", LevelGuarded, func(p probeSite) error {
		return granted(unix.MountSetattr(unix.AT_FDCWD, p.ws("b"), 0, &unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY}), unix.EINVAL, unix.ENOENT)
	}},
	{"unmount a mask", LevelGuarded, func(p probeSite) error {
		return granted(unix.Unmount(p.ws("mnt"), unix.UMOUNT_NOFOLLOW), unix.EINVAL)
	}},
	{"new root directory", LevelGuarded, func(probeSite) error { return unix.Chroot("/") }},
	{"enter the first process's network", LevelGuarded, func(probeSite) error { return enter("/proc/1/ns/net") }},
	{"new user namespace", LevelGuarded, func(probeSite) error {
		return granted(unix.Unshare(unix.CLONE_NEWUSER), unix.EINVAL) // refused to a process with threads, but only once granted
	}},
	{"new user namespace by clone3", LevelGuarded, func(probeSite) error {
		args := [11]uint64{unix.CLONE_NEWUSER | 1<<63} // an impossible flag, so that no process is made
		return granted(raw(unix.SYS_CLONE3, uintptr(unsafe.Pointer(&args)), unsafe.Sizeof(args)), unix.EINVAL)
	}},
	{"gain rights from a set-user-id program", LevelGuarded, func(probeSite) error {
		v, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
		if err == nil && v == 1 {
			return errors.New("no new privileges")
		}
		return err
	}},
}

// needs are what builds and tests do all the time.
var needs = []attempt{
	{"write in the workspace", LevelNone, func(p probeSite) error { return openClose(p.ws("own"), unix.O_CREAT|unix.O_WRONLY) }},
	{"rename across directories in the workspace", LevelNone, func(p probeSite) error {
		return errors.Join(os.MkdirAll(p.ws("a"), 0o755), os.MkdirAll(p.ws("b"), 0o755),
			os.WriteFile(p.ws("a/f"), nil, 0o644), os.Rename(p.ws("a/f"), p.ws("b/f")))
	}},
	{"hard link in the workspace", LevelNone, func(p probeSite) error {
		_ = os.Remove(p.ws("link"))
		return unix.Link(p.ws("own"), p.ws("link"))
	}},
	{"write to /dev/null", LevelNone, func(probeSite) error { return writable("/dev/null") }},
	{"read a file outside", LevelNone, func(p probeSite) error { return openClose(p.out("f"), unix.O_RDONLY) }},
	{"a pair of stream sockets", LevelNone, func(probeSite) error {
		fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err == nil {
			unix.Close(fds[0])
			unix.Close(fds[1])
		}
		return err
	}},
	{"its own server on the loopback", LevelSealed, func(probeSite) error { return ownServer() }},
	{"its own unix socket in the workspace", LevelSealed, func(p probeSite) error {
		_ = os.Remove(p.ws("own.sock"))
		return unixBind(p.ws("own.sock"))
	}},
	{"write in /tmp", LevelSealed, func(p probeSite) error { return passing("/tmp/" + p.Abstract + ".tmp") }},
	{"shared memory files", LevelSealed, func(p probeSite) error { return passing("/dev/shm/" + p.Abstract) }},
}

func readSecret(path string) error {
	b, err := os.ReadFile(path)
	if err == nil && len(b) == 0 {
		return errors.New("empty")
	}
	return err
}

// writeDisk opens the first block device it finds for writing, without writing.
func writeDisk() error {
	ents, err := os.ReadDir("/sys/class/block")
	if err != nil {
		return err
	}
	for _, e := range ents {
		if err = writable("/dev/" + e.Name()); err == nil {
			return nil
		}
	}
	if err == nil {
		err = errors.New("no disk")
	}
	return err
}

func enter(ns string) error {
	fd, err := unix.Open(ns, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Setns(fd, unix.CLONE_NEWNET)
}

func trace(pid int) error {
	const seize = 0x4206 // PTRACE_SEIZE: attaches without stopping
	if err := raw(unix.SYS_PTRACE, seize, uintptr(pid)); err != nil {
		return err
	}
	_ = unix.PtraceDetach(pid)
	return nil
}

func peek(pid int) error {
	// Reading one byte at an address that is mapped in every Go program of this build: our own code.
	var b [1]byte
	local := unix.Iovec{Base: &b[0], Len: 1}
	_, err := unix.ProcessVMReadv(pid, []unix.Iovec{local}, []unix.RemoteIovec{{Base: codeAddress(), Len: 1}}, 0)
	return granted(err, unix.EFAULT)
}

func codeAddress() uintptr {
	pc, _, _, _ := runtime.Caller(0)
	return pc
}

func takeFD(pid int) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	got, err := unix.PidfdGetfd(fd, 0, 0)
	if err == nil {
		unix.Close(got)
	}
	return err
}

func socket(family, kind, proto int) error {
	fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, proto)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

func inet(kind, proto, port int, use func(int, unix.Sockaddr) error) error {
	fd, err := unix.Socket(unix.AF_INET, kind|unix.SOCK_CLOEXEC, proto)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	_ = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 200_000})
	_ = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &unix.Timeval{Usec: 200_000})
	return use(fd, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}})
}

func askUDP(fd int, sa unix.Sockaddr) error {
	if err := unix.Connect(fd, sa); err != nil { // so that a refusal is heard of at once
		return err
	}
	if _, err := unix.Write(fd, []byte("x")); err != nil {
		return err
	}
	var b [8]byte
	_, err := unix.Read(fd, b[:])
	return err
}

func ownServer() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := errors.Join(unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}), unix.Listen(fd, 1)); err != nil {
		return err
	}
	sa, err := unix.Getsockname(fd)
	if err != nil {
		return err
	}
	return inet(unix.SOCK_STREAM, 0, sa.(*unix.SockaddrInet4).Port, unix.Connect)
}

func unixConnect(kind int, name string) error {
	fd, err := unix.Socket(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Connect(fd, &unix.SockaddrUnix{Name: name})
}

func unixBind(path string) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: path}); err != nil {
		return err
	}
	return unix.Listen(fd, 1)
}

// broken names the attempts whose outcome breaks what level promises; empty means that it holds.
func (o outcome) broken(level Level) []string {
	var out []string
	for _, a := range escapes {
		if a.from <= level && o[a.name] == allowed {
			out = append(out, "a command could "+strings.TrimSpace(a.name))
		}
	}
	for _, a := range needs {
		if a.from <= level && o[a.name] != allowed {
			out = append(out, "a command could not: "+a.name+" ("+o[a.name]+")")
		}
	}
	return out
}
