package logctl

import "syscall"

// threadID returns the ID of the operating system thread of the caller.
func threadID() int { return syscall.Gettid() }
