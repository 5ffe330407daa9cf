//go:build unix

package admin

import "syscall"

func setOption(fd uintptr, o SocketOption) error {
	if o.Bytes != nil {
		return syscall.SetsockoptString(int(fd), o.Level, o.Name, string(o.Bytes))
	}
	return syscall.SetsockoptInt(int(fd), o.Level, o.Name, o.Int)
}
