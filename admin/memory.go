package admin

import (
	"os"
	"runtime/metrics"
	"strconv"
	"strings"
)

// ProcessMemory returns the memory of this process without stopping it.
func ProcessMemory() Memory {
	samples := []metrics.Sample{
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/heap/unused:bytes"},
		{Name: "/memory/classes/heap/free:bytes"},
		{Name: "/memory/classes/heap/released:bytes"},
		{Name: "/memory/classes/metadata/mcache/inuse:bytes"},
		{Name: "/memory/classes/metadata/mcache/free:bytes"},
		{Name: "/memory/classes/total:bytes"},
	}
	metrics.Read(samples)
	value := func(i int) uint64 {
		if samples[i].Value.Kind() != metrics.KindUint64 {
			return 0
		}
		return samples[i].Value.Uint64()
	}
	objects, unused, free, released := value(0), value(1), value(2), value(3)
	return Memory{
		Allocated:          objects,
		HeapSize:           objects + unused + free + released,
		PageheapUnmapped:   released,
		PageheapFree:       free,
		TotalThreadCache:   value(4) + value(5),
		TotalPhysicalBytes: residentBytes(value(6) - released),
	}
}

// residentBytes returns the resident set size, or an estimate if the system does not
// report it.
func residentBytes(estimate uint64) uint64 {
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return estimate
	}
	fields := strings.Fields(string(b))
	if len(fields) < 2 {
		return estimate
	}
	pages, err := strconv.ParseUint(fields[1], 10, 64)
	if err != nil {
		return estimate
	}
	return pages * uint64(os.Getpagesize())
}
