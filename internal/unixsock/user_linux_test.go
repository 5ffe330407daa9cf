package unixsock

import (
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// asAnother runs f as an unprivileged user. It reports false if it cannot, because
// only root can switch users.
func asAnother(f func()) bool {
	done := make(chan bool)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with its user
		if _, _, errno := syscall.RawSyscall(syscall.SYS_SETRESUID, ^uintptr(0), 65534, ^uintptr(0)); errno != 0 {
			done <- false
			return
		}
		f()
		done <- true
	}()
	return <-done
}

// connect connects to a socket and disconnects.
func connect(path string) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Connect(fd, &unix.SockaddrUnix{Name: path})
}
