package workspace

import (
	"os/exec"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// runBound runs cmd so that it ends with us, if bound: a git that goes on after a crash would write while the next
// process repairs.
func runBound(cmd *exec.Cmd, bound bool) error {
	if bound {
		// The signal is tied to the thread that starts the process, which must therefore stay until its end.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	} else {
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	}
	return cmd.Run()
}

// syncAll makes everything durable that was written to the file system of dir.
func syncAll(dir string) error {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Syncfs(fd)
}
