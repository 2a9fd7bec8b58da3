package confine

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// box builds the command's view of the file system in the keeper's new mount namespace. The order matters: what stays
// reachable is taken out as detached copies first, then everything is made read-only, then masks are laid over it, and
// then the copies are put back, parents before children.
type box struct {
	o      *order
	copies map[string]int // path → detached mount
	blank  int            // detached mount of an empty file
	tmpfs  []string       // directories that are ours to make mount points in
	notes  map[string]string
}

const tmpfsSize = "size=50%"

func buildBox(o *order) (map[string]string, error) {
	b := &box{o: o, copies: map[string]int{}, notes: map[string]string{}}
	if o.OwnNet {
		if err := loopbackUp(); err != nil {
			return nil, fmt.Errorf("bringing the box's own loopback up: %w", err)
		}
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return nil, fmt.Errorf("detaching the mounts from the host's: %w", err)
	}
	for _, step := range []func() error{b.take, b.readOnly, b.devices, b.lay, b.sockets, b.seal, b.proc} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	for _, fd := range b.copies {
		unix.Close(fd)
	}
	unix.Close(b.blank)
	// The old working directory belongs to the mount below: enter again through the new one.
	if err := os.Chdir(o.Dir); err != nil {
		return nil, fmt.Errorf("entering the working directory: %w", err)
	}
	return b.notes, nil
}

// take makes detached copies of all that is put back later.
func (b *box) take() error {
	for _, m := range b.o.Mounts {
		var fd int
		var err error
		switch m.Kind {
		case mountRW:
			fd, err = detach(m.Path, 0)
		case mountRO:
			fd, err = detach(m.Path, unix.MOUNT_ATTR_RDONLY)
		case mountCache:
			fd, err = b.layered(m)
		case mountEmpty, mountBlank, mountTmp:
			continue
		}
		if err != nil {
			return fmt.Errorf("taking %s into the box: %w", m.Path, err)
		}
		b.copies[m.Path] = fd
	}
	return nil
}

// detach copies the mounts at and below path; attr is added to what they have.
func detach(path string, attr uint64) (int, error) {
	fd, err := unix.OpenTree(unix.AT_FDCWD, path, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE|unix.AT_SYMLINK_NOFOLLOW)
	if err != nil {
		return -1, err
	}
	err = unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: attr | unix.MOUNT_ATTR_NOSUID})
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// layered mounts the private layer of a cache over the user's. Where the kernel or the file system refuses, the
// private layer alone takes its place: slower, never less private.
func (b *box) layered(m mount) (int, error) {
	fd, err := overlay(m.Path, filepath.Join(m.Layer, "upper"), filepath.Join(m.Layer, "work"))
	if err == nil {
		return fd, nil
	}
	b.notes["cache "+m.Path] = "starts empty: " + err.Error()
	return detach(filepath.Join(m.Layer, "upper"), 0)
}

func overlay(lower, upper, work string) (int, error) {
	fs, err := unix.Fsopen("overlay", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, err
	}
	defer unix.Close(fs)
	for _, kv := range [][2]string{{"lowerdir", lower}, {"upperdir", upper}, {"workdir", work}} {
		// Named by descriptor: paths may be longer than an option, and may hold the separators of options.
		d, err := unix.Open(kv[1], unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return -1, err
		}
		defer unix.Close(d)
		if err := unix.FsconfigSetString(fs, kv[0], "/proc/self/fd/"+strconv.Itoa(d)); err != nil {
			return -1, err
		}
	}
	if err := unix.FsconfigSetFlag(fs, "userxattr"); err != nil {
		return -1, err
	}
	if err := unix.FsconfigCreate(fs); err != nil {
		return -1, err
	}
	return unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV)
}

func (b *box) readOnly() error {
	err := unix.MountSetattr(unix.AT_FDCWD, "/", unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID})
	if err != nil {
		return fmt.Errorf("making everything read-only: %w", err)
	}
	return nil
}

// devices replaces /dev by the few harmless ones, a terminal multiplexer and shared memory of its own: a read-only
// mount does not stop a write to a disk's device node.
func (b *box) devices() error {
	nodes := map[string]int{}
	for _, n := range []string{"null", "zero", "full", "random", "urandom", "tty"} {
		if fd, err := detach("/dev/"+n, 0); err == nil {
			nodes[n] = fd
		}
	}
	if _, ok := nodes["null"]; !ok {
		return fmt.Errorf("the machine has no usable /dev/null")
	}
	if err := b.tmp("/dev", "mode=755,size=64k"); err != nil {
		return err
	}
	for n, fd := range nodes {
		if err := b.mount(fd, "/dev/"+n, false); err != nil {
			return fmt.Errorf("device %s: %w", n, err)
		}
		unix.Close(fd)
	}
	for n, t := range map[string]string{"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2", "ptmx": "pts/ptmx"} {
		if err := os.Symlink(t, "/dev/"+n); err != nil {
			return err
		}
	}
	if err := os.WriteFile("/dev/.blank", nil, 0o444); err != nil {
		return err
	}
	for _, d := range []string{"/dev/pts", "/dev/shm"} {
		if err := os.Mkdir(d, 0o755); err != nil {
			return err
		}
	}
	if err := unix.Mount("devpts", "/dev/pts", "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=620"); err != nil {
		b.notes["pseudo terminals"] = err.Error()
	}
	if err := b.tmp("/dev/shm", "mode=1777,"+tmpfsSize); err != nil {
		return err
	}
	var err error
	b.blank, err = detach("/dev/.blank", unix.MOUNT_ATTR_RDONLY)
	if err != nil {
		return fmt.Errorf("an empty file to hide others with: %w", err)
	}
	return nil
}

func (b *box) tmp(path, opts string) error {
	if err := unix.Mount("tmpfs", path, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, opts); err != nil {
		return fmt.Errorf("masking %s: %w", path, err)
	}
	b.tmpfs = append(b.tmpfs, path)
	return nil
}

// lay puts masks and copies in place, in the order of the plan.
func (b *box) lay() error {
	for _, m := range b.o.Mounts {
		var err error
		switch m.Kind {
		case mountEmpty, mountBlank:
			if withinAny(m.Path, b.tmpfs) {
				err = b.mountPoint(m.Path, m.Kind == mountEmpty)
			} else if unix.Access(filepath.Dir(m.Path), unix.X_OK) != nil {
				continue // the command, which is the same user, cannot get there either
			}
			if err != nil {
				break
			}
			if m.Kind == mountBlank {
				err = b.cover(m.Path)
			} else {
				err = b.tmp(m.Path, "mode=755,size=1m")
			}
		case mountTmp:
			err = b.tmp(m.Path, "mode=1777,"+tmpfsSize)
		case mountRW, mountRO, mountCache:
			var st unix.Stat_t
			fd := b.copies[m.Path]
			if err = unix.Fstat(fd, &st); err == nil {
				err = b.mount(fd, m.Path, st.Mode&unix.S_IFMT == unix.S_IFDIR)
			}
		}
		if err != nil {
			return fmt.Errorf("placing %s: %w", m.Path, err)
		}
	}
	for p, t := range b.o.Links {
		if _, err := os.Lstat(p); err != nil {
			_ = os.Symlink(t, p) // a convenience: a missing link fails visibly in the command
		}
	}
	return nil
}

// mount attaches a detached copy at path, making the mount point where the directory is one of our own.
func (b *box) mount(fd int, path string, dir bool) error {
	if withinAny(path, b.tmpfs) {
		if err := b.mountPoint(path, dir); err != nil {
			return err
		}
	}
	return unix.MoveMount(fd, "", unix.AT_FDCWD, path, unix.MOVE_MOUNT_F_EMPTY_PATH)
}

func (b *box) mountPoint(path string, dir bool) error {
	if _, err := os.Lstat(path); err == nil {
		return nil
	}
	if dir {
		return os.MkdirAll(path, 0o755)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, nil, 0o444)
}

func (b *box) cover(path string) error {
	fd, err := unix.OpenTree(b.blank, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.MoveMount(fd, "", unix.AT_FDCWD, path, unix.MOVE_MOUNT_F_EMPTY_PATH)
}

func (b *box) sockets() error {
	for _, p := range b.o.Masked {
		if _, err := os.Lstat(p); err != nil {
			continue // gone, or out of the command's reach
		}
		if err := b.cover(p); err != nil && !os.IsNotExist(err) {
			return fmt.Errorf("covering the socket %s: %w", p, err)
		}
	}
	return nil
}

// seal closes the masks, which were writable for as long as mount points had to be made in them.
func (b *box) seal() error {
	for _, p := range b.tmpfs {
		if p == "/dev/shm" || p == "/tmp" {
			continue
		}
		if err := unix.MountSetattr(unix.AT_FDCWD, p, 0, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}); err != nil {
			return fmt.Errorf("closing %s: %w", p, err)
		}
	}
	return nil
}

// proc shows only the box's own processes. It is read-only: for root, /proc/sys would reach the host's kernel. Where
// a fresh one is refused (in some containers) the old one stays, read-only as well.
func (b *box) proc() error {
	const flags = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC | unix.MS_RDONLY
	if err := unix.Mount("proc", "/proc", "proc", flags, ""); err != nil {
		b.notes["process list"] = "the host's: a fresh /proc was refused: " + err.Error()
	}
	return nil
}

func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var req [40]byte // struct ifreq: name, then flags
	copy(req[:], "lo")
	*(*uint16)(unsafe.Pointer(&req[unix.IFNAMSIZ])) = unix.IFF_UP | unix.IFF_RUNNING
	if _, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCSIFFLAGS, uintptr(unsafe.Pointer(&req[0]))); e != 0 {
		return e
	}
	return nil
}
