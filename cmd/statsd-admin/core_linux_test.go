package main

import (
	"runtime"
	"runtime/debug"
	"syscall"
	"testing"
)

// TestCoreDumpsAreAllowed expects the largest core that the process may ask for.
func TestCoreDumpsAreAllowed(t *testing.T) {
	const getDumpable, setDumpable = 3, 4 // of prctl
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_CORE, &before); err != nil {
		t.Fatal(err)
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	defer debug.SetTraceback("single")
	defer syscall.Setrlimit(syscall.RLIMIT_CORE, &before)
	defer syscall.RawSyscall(syscall.SYS_PRCTL, setDumpable, 1, 0)
	for _, enable := range []bool{false, true} {
		none := syscall.Rlimit{Max: before.Max}
		if err := syscall.Setrlimit(syscall.RLIMIT_CORE, &none); err != nil {
			t.Fatal(err)
		}
		if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, setDumpable, 0, 0); errno != 0 {
			t.Fatal(errno)
		}
		o := new(Options)
		o.EnableCoreDump = enable
		if w := prepare(o); w != "" {
			t.Error(w)
		}
		want, wantSize := uintptr(0), uint64(0)
		if enable {
			want, wantSize = 1, before.Max
		}
		dumpable, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, getDumpable, 0, 0)
		var size syscall.Rlimit
		if err := syscall.Getrlimit(syscall.RLIMIT_CORE, &size); err != nil || errno != 0 {
			t.Fatal(err, errno)
		}
		if dumpable != want || size.Cur != wantSize || size.Max != before.Max {
			t.Errorf("enabled %t: dumpable %d, size %+v", enable, dumpable, size)
		}
	}
}
