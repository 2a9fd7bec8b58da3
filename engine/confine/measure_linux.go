package confine

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

var measured struct {
	sync.Mutex
	by map[Level]Report
}

// Measure finds the highest level up to max whose promises hold on this machine, by running a program that tries to
// break them inside each. What it reports is what was seen. The result is kept for the life of the process; a
// measurement that was cut short by ctx is not, and reports LevelNone.
func Measure(ctx context.Context, max Level) Report {
	measured.Lock()
	defer measured.Unlock()
	if r, ok := measured.by[max]; ok {
		return r
	}
	r := measure(ctx, max)
	if ctx.Err() == nil {
		if measured.by == nil {
			measured.by = map[Level]Report{}
		}
		measured.by[max] = r
	}
	return r
}

func measure(ctx context.Context, max Level) Report {
	r := Report{Level: LevelNone, Detail: map[string]string{}, Key: measureKey()}
	if max < LevelSealed {
		r.Detail["bound"] = "no more than " + max.String() + " was asked for"
	}
	for l := max; l > LevelNone; l-- {
		out, notes, err := tryLevel(ctx, l)
		for k, v := range notes {
			r.Detail[k] = v
		}
		if err != nil {
			r.Missing = []string{l.String() + ": " + explain(err)}
			continue
		}
		for k, v := range out {
			if _, seen := r.Detail[k]; !seen || l == max {
				r.Detail[k] = v
			}
		}
		broken := out.broken(l)
		if l == LevelPartial && out["write to a file outside"] == allowed && out["tcp connect"] == allowed {
			broken = append(broken, "neither files nor the network could be kept from a command")
		}
		if len(broken) == 0 {
			for k, v := range out {
				r.Detail[k] = v
			}
			r.Level = l
			return r
		}
		r.Missing = nil
		for _, b := range broken {
			r.Missing = append(r.Missing, l.String()+": "+b)
		}
	}
	if max <= LevelNone && len(r.Missing) == 0 {
		r.Missing = []string{"partial: not measured, since " + MaxEnv + " or the caller allows no more than none"}
	}
	return r
}

// explain adds what a person can do about the usual refusals.
func explain(err error) string {
	s := err.Error()
	switch {
	case strings.Contains(s, "namespaces"):
		return s + " (user namespaces are switched off or used up: see /proc/sys/user/max_user_namespaces, " +
			"kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns, or the container's profile)"
	default:
		return s
	}
}

func measureKey() string {
	var u unix.Utsname
	_ = unix.Uname(&u)
	key := unix.ByteSliceToString(u.Release[:]) + " uid=" + strconv.Itoa(os.Geteuid())
	if st, err := os.Stat("/proc/self/exe"); err == nil {
		key += fmt.Sprintf(" binary=%d@%d", st.Size(), st.ModTime().UnixNano())
	}
	return key
}

// tryLevel runs the probe once inside level.
func tryLevel(ctx context.Context, level Level) (outcome, map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	dir := os.TempDir()
	if len(dir) > 32 {
		dir = "/tmp" // the address of a socket has room for a hundred bytes
	}
	sweepSites(dir)
	base, err := os.MkdirTemp(dir, sitePrefix()+"*")
	if err != nil {
		return nil, nil, fmt.Errorf("a place for the self-probe: %w", err)
	}
	defer os.RemoveAll(base)
	if base, err = filepath.EvalSymlinks(base); err != nil {
		return nil, nil, err
	}
	site, closeSite, err := makeSite(base)
	if err != nil {
		return nil, nil, fmt.Errorf("a place for the self-probe: %w", err)
	}
	defer closeSite()
	arg, err := json.Marshal(site)
	if err != nil {
		return nil, nil, err
	}
	output := filepath.Join(base, "report")
	p, err := Start(ctx, Spec{
		Argv: []string{string(arg)}, Dir: site.WS, Output: output, Level: level, probe: true,
		Writable: []string{site.WS}, Readable: []string{site.Out}, Protected: []string{site.ws("locked")},
		Hidden: []string{site.out("secret"), site.out("hidden")},
	})
	if err != nil {
		return nil, nil, err
	}
	if err := p.Open(); err != nil {
		return nil, p.Notes(), err
	}
	exit, err := p.Wait(ctx)
	if err != nil {
		return nil, p.Notes(), err
	}
	b, err := os.ReadFile(output)
	if err != nil {
		return nil, p.Notes(), err
	}
	var out outcome
	if err := json.Unmarshal(b, &out); err != nil || exit.Code != 0 {
		return nil, p.Notes(), fmt.Errorf("the self-probe ended with %d %s: %s", exit.Code, exit.Signal, bytes.TrimSpace(b[:min(len(b), 400)]))
	}
	for _, list := range [][]attempt{escapes, needs} {
		for _, a := range list {
			if out[a.name] == "" {
				return nil, p.Notes(), fmt.Errorf("the self-probe did not report %q", a.name)
			}
		}
	}
	return out, p.Notes(), nil
}

const siteName = "pawl-probe-"

// sitePrefix names the measuring process in its site's name, so that the site of one that was killed can be told.
func sitePrefix() string {
	id, err := Self()
	if err != nil || len(id.Boot) < 8 {
		return siteName + "x-"
	}
	return fmt.Sprintf("%s%s-%s-%d-%d-", siteName, id.Boot[:8], strings.Trim(id.PIDNS, "pid:[]"), id.PID, id.Start)
}

// sweepSites removes the sites of measuring processes that are dead.
func sweepSites(dir string) {
	found, _ := filepath.Glob(filepath.Join(dir, siteName+"*")) // the pattern is well formed
	for _, p := range found {
		f := strings.Split(strings.TrimPrefix(filepath.Base(p), siteName), "-")
		if len(f) != 5 || len(BootID()) < 8 {
			continue
		}
		id := Identity{Boot: f[0], PIDNS: "pid:[" + f[1] + "]"}
		if f[0] == BootID()[:8] {
			id.Boot = BootID()
		}
		var err1, err2 error
		id.PID, err1 = strconv.Atoi(f[2])
		id.Start, err2 = strconv.ParseUint(f[3], 10, 64)
		if err1 == nil && err2 == nil && Probe(id) == LiveGone {
			_ = os.RemoveAll(p) // somebody else's, if it fails; they will see to it
		}
	}
}

// makeSite builds what the probe tries to reach: files, servers and a descriptor left open.
func makeSite(base string) (probeSite, func(), error) {
	s := probeSite{WS: filepath.Join(base, "ws"), Out: filepath.Join(base, "out"), Sup: os.Getpid(), Shm: -1}
	var closers []io.Closer
	shut := func() {
		for _, c := range closers {
			c.Close()
		}
		if s.Shm >= 0 {
			_, _ = unix.SysvShmCtl(s.Shm, unix.IPC_RMID, nil)
		}
	}
	for _, d := range []string{s.ws("locked"), s.ws("mnt"), s.out("deldir"), s.out("hidden")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return s, shut, err
		}
	}
	for _, f := range []string{s.ws("give1"), s.ws("give2"), s.ws("locked/f"), s.out("f"), s.out("fd"), s.out("del"), s.out("mv1"), s.out("mv2"), s.out("secret"), s.out("hidden/f")} {
		if err := os.WriteFile(f, []byte("kept"), 0o644); err != nil {
			return s, shut, err
		}
	}
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return s, shut, err
	}
	closers = append(closers, tcp)
	s.TCP = tcp.Addr().(*net.TCPAddr).Port
	udp, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return s, shut, err
	}
	closers = append(closers, udp)
	s.UDP = udp.LocalAddr().(*net.UDPAddr).Port
	go echo(udp)
	s.Abstract = filepath.Base(base)
	for _, a := range []string{s.out("stream.sock"), "@" + s.Abstract} {
		l, err := net.Listen("unix", a)
		if err != nil {
			return s, shut, err
		}
		closers = append(closers, l)
	}
	dg, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: s.out("dgram.sock"), Net: "unixgram"})
	if err != nil {
		return s, shut, err
	}
	closers = append(closers, dg)
	if s.FD, err = unix.Open(s.out("fd"), unix.O_RDWR|unix.O_CLOEXEC, 0); err != nil {
		return s, shut, err
	}
	f := os.NewFile(uintptr(s.FD), "inherited")
	closers = append(closers, f)
	// As if a careless parent had left it open for every program we start.
	if _, err := unix.FcntlInt(uintptr(s.FD), unix.F_SETFD, 0); err != nil {
		return s, shut, err
	}
	s.Shm, err = unix.SysvShmGet(unix.IPC_PRIVATE, 4096, unix.IPC_CREAT|0o600)
	if err != nil {
		s.Shm = -1 // no such memory on this kernel: nothing to attach
	}
	return s, shut, nil
}

func echo(c *net.UDPConn) {
	b := make([]byte, 64)
	for {
		n, a, err := c.ReadFromUDP(b)
		if err != nil {
			return
		}
		_, _ = c.WriteToUDP(b[:n], a)
	}
}
