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

// readOS returns values from the operating system, by the names of their metrics.
func readOS() map[string]float64 {
	values := make(map[string]float64)
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) == nil {
		values["process.cpu_seconds_total"] = seconds(usage.Utime) + seconds(usage.Stime)
	}
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) == nil {
		values["process.max_fds"] = float64(limit.Cur)
	}
	stat, _ := os.ReadFile("/proc/self/stat") // without it, there are no fields
	// The name of the program, in parentheses, can contain anything.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	const startTime, virtual, resident = 22 - 3, 23 - 3, 24 - 3 // numbered from 1; 3 follows the name
	if len(fields) > resident {
		number := func(i int) float64 {
			n, _ := strconv.ParseFloat(string(fields[i]), 64) // digits
			return n
		}
		values["process.virtual_memory_bytes"] = number(virtual)
		values["process.resident_memory_bytes"] = number(resident) * float64(os.Getpagesize())
		if boot, ok := bootTime(); ok {
			values["process.start_time_seconds"] = boot + number(startTime)/ticksPerSecond
		}
	}
	if dir, err := os.Open("/proc/self/fd"); err == nil {
		if names, err := dir.Readdirnames(-1); err == nil {
			values["process.open_fds"] = float64(len(names) - 1) // without dir itself
		}
		_ = dir.Close() // was only read
	}
	return values
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
