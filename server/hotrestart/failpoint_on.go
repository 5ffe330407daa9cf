//go:build failpoint && linux

package hotrestart

import (
	"fmt"
	"os"
	"runtime"
	"syscall"
	"time"
)

// Failpoints exist in programs that are built with the tag failpoint, which only
// tests are. The variable STATSD_ADMIN_FAILPOINT names one place of the protocol
// and what happens there, such as "old.commit.asked=stop":
//
//	stop      the process stops itself by SIGSTOP, for a test to act
//	truncate  half of the message is sent (places that end in .sending)
//	repeat    the message is sent twice (as above)
//
// Time limits are short in such a program.
const defaultTimeout = 1500 * time.Millisecond

func name(k kind) string {
	return map[kind]string{
		askHello: "hello", askSockets: "sockets", askStats: "stats", askCommit: "commit", askDrain: "drain",
		askTerminate: "terminate", askUsage: "usage", askAlive: "alive", tellAck: "ack",
		answerRefused: "refused", answerHello: "welcome", answerSocket: "socket", answerConnection: "connection",
		answerStats: "stat", answerDone: "done", answerBye: "bye", answerParcels: "parcel",
	}[k]
}

func (l *link) at(k kind, step, action string) bool {
	return os.Getenv("STATSD_ADMIN_FAILPOINT") == fmt.Sprintf("%s.%s.%s=%s", l.side, name(k), step, action)
}

// point stops the process if the failpoint is here.
func (l *link) point(k kind, step string) {
	if l.at(k, step, "stop") {
		_ = os.Unsetenv("STATSD_ADMIN_FAILPOINT") // once
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		// A signal to the process could be left to another thread, and this one go on.
		_, _, _ = syscall.RawSyscall(syscall.SYS_TGKILL, uintptr(os.Getpid()), uintptr(syscall.Gettid()), uintptr(syscall.SIGSTOP))
	}
}

// copies returns the byte sequences that are written for the message b.
func (l *link) copies(k kind, b []byte) [][]byte {
	switch {
	case l.at(k, "sending", "truncate"):
		_ = os.Unsetenv("STATSD_ADMIN_FAILPOINT")
		return [][]byte{b[:len(b)/2]}
	case l.at(k, "sending", "repeat"):
		_ = os.Unsetenv("STATSD_ADMIN_FAILPOINT")
		return [][]byte{b, b}
	}
	return [][]byte{b}
}
