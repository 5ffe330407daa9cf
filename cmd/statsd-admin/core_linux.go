package main

import (
	"os"
	"syscall"
)

// allowCoreDumps lets the system dump this process as far as it may.
func allowCoreDumps() error {
	const setDumpable = 4 // PR_SET_DUMPABLE
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, setDumpable, 1, 0); errno != 0 {
		return os.NewSyscallError("prctl", errno)
	}
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_CORE, &limit); err != nil {
		return os.NewSyscallError("getrlimit", err)
	}
	limit.Cur = limit.Max
	return os.NewSyscallError("setrlimit", syscall.Setrlimit(syscall.RLIMIT_CORE, &limit))
}
