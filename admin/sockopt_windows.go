package admin

import (
	"errors"
	"syscall"
)

func setOption(fd uintptr, o SocketOption) error {
	if o.Bytes != nil {
		return errors.New("only options with a number as value can be set on this system")
	}
	return syscall.SetsockoptInt(syscall.Handle(fd), o.Level, o.Name, o.Int)
}
