package main

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// paceCollector makes the garbage collector run when the heap has grown by a
// sixteenth, and by at least minGrowth, instead of by all of it. Free memory beyond
// that goes back to the system. Settings of the environment take precedence.
//
// Most of a large heap here is tables without pointers, which a collection does not
// read, and lines of known series allocate nothing. So collections are cheap and
// rare, and the memory need not be twice as large as its contents.
func paceCollector(getenv func(string) string) {
	if getenv("GOGC") != "" || getenv(memoryVariable) != "" {
		return
	}
	p := &pacer{limit: debug.SetMemoryLimit(-1)}
	p.adjust()
	p.watch()
}

// startPercent lets the heap grow to 8 MiB before the first collection. A start needs
// more than the 4 MiB of the default, and keeps most of it.
const startPercent = 200

// minGrowth is the least growth of the heap between two collections.
const minGrowth = 8 << 20

// pacer adjusts the collector after each collection.
type pacer struct {
	limit int64 // of the memory of the process

	percent int // as last set
	soft    int64
}

// watch adjusts p after the next collection, and then again and again.
func (p *pacer) watch() {
	// Objects of less than 16 bytes can share memory with others that live on.
	runtime.AddCleanup(new([16]byte), func(p *pacer) {
		p.adjust()
		p.watch()
	}, p)
}

// adjust sets the growth of the heap until the next collection, and the amount of
// memory from which on the runtime returns free memory at once.
func (p *pacer) adjust() {
	s := []metrics.Sample{
		{Name: "/gc/heap/live:bytes"},
		{Name: "/memory/classes/total:bytes"},
		{Name: "/memory/classes/heap/free:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/heap/released:bytes"},
	}
	metrics.Read(s)
	value := func(i int) int64 { return int64(s[i].Value.Uint64()) }
	other := value(1) - value(2) - value(3) - value(4) // stacks, the runtime's own, unused parts of spans
	percent, soft := pace(value(0), other)
	soft = min(soft, p.limit)
	if percent != p.percent {
		debug.SetGCPercent(percent)
	}
	if soft != p.soft {
		debug.SetMemoryLimit(soft)
	}
	p.percent, p.soft = percent, soft
}

// pace returns the growth of a heap, in percent of its live bytes, and the memory
// that the process needs with other bytes.
func pace(live, other int64) (percent int, memory int64) {
	growth := max(live/16, minGrowth)
	need := live + growth + other
	memory = need + need/64 + minGrowth/2
	if live == 0 { // before the first collection, which follows the start
		return startPercent, memory
	}
	return int(min(100, growth*100/live+1)), memory
}
