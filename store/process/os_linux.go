package process

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
)

// ticksPerSecond is the unit of times in /proc on all architectures that Go
// supports.
const ticksPerSecond = 100

func readOS() (o osValues) {
	var usage syscall.Rusage
	var limit syscall.Rlimit
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) != nil || syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return o
	}
	stat, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return o
	}
	// The name of the program, in parentheses, can contain anything.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	const startTime, virtual, resident = 22 - 3, 23 - 3, 24 - 3 // numbered from 1; 3 follows the name
	if len(fields) <= resident {
		return o
	}
	number := func(i int) float64 {
		n, err := strconv.ParseFloat(string(fields[i]), 64)
		if err != nil {
			return 0
		}
		return n
	}
	o.known = true
	o.cpuSeconds = seconds(usage.Utime) + seconds(usage.Stime)
	o.maxFDs = float64(limit.Cur)
	o.virtual, o.resident = number(virtual), number(resident)*float64(os.Getpagesize())
	o.startSeconds, o.knownStartTime = bootTime()
	o.startSeconds += number(startTime) / ticksPerSecond
	if dir, err := os.Open("/proc/self/fd"); err == nil {
		names, err := dir.Readdirnames(-1)
		o.fds, o.knownFDs = float64(len(names)-1), err == nil // without dir itself
		_ = dir.Close()                                       // was only read
	}
	return o
}

func seconds(t syscall.Timeval) float64 { return float64(t.Sec) + float64(t.Usec)/1e6 }

// bootTime returns the time of the system's start in seconds since the Unix
// epoch.
func bootTime() (float64, bool) {
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, false
	}
	_, rest, ok := bytes.Cut(stat, []byte("\nbtime "))
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	t, err := strconv.ParseFloat(string(line), 64)
	return t, ok && err == nil
}
