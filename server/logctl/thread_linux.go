package logctl

import "syscall"

// threadID returns the number of the operating system's thread that runs the
// caller.
func threadID() int { return syscall.Gettid() }
