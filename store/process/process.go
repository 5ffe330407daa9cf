package process

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/metrics"

	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/store/tags"
)

// Segments returns the first segments of the names, for [naming.Rules].
//
// [naming.Rules]: https://pkg.go.dev/github.com/statsd-admin/statsd-admin/render/naming#Rules
func Segments() []string { return []string{"process", "go"} }

// row is a metric and how to read its value. read returns false if the system
// does not provide it.
type row struct {
	name, help, unit string
	counter          bool
	read             func(*reader) (float64, bool)
}

// reader holds the values of one read.
type reader struct {
	samples []metrics.Sample
	index   map[string]int
	os      osValues
}

// osValues are values from the operating system.
type osValues struct {
	cpuSeconds, startSeconds        float64
	resident, virtual, fds, maxFDs  float64
	known, knownFDs, knownStartTime bool
}

// sum returns a row's function for the sum of runtime metrics.
func sum(names ...string) func(*reader) (float64, bool) {
	return func(r *reader) (total float64, ok bool) {
		for _, name := range names {
			switch v := r.samples[r.index[name]].Value; v.Kind() {
			case metrics.KindUint64:
				total += float64(v.Uint64())
			case metrics.KindFloat64:
				total += v.Float64()
			default:
				return 0, false
			}
		}
		return total, true
	}
}

// Names of runtime metrics.
const (
	heapObjects  = "/memory/classes/heap/objects:bytes"
	heapUnused   = "/memory/classes/heap/unused:bytes"
	heapFree     = "/memory/classes/heap/free:bytes"
	heapReleased = "/memory/classes/heap/released:bytes"
	tinyAllocs   = "/gc/heap/tiny/allocs:objects"
)

func runtimeMetrics() []string {
	return []string{
		heapObjects, heapUnused, heapFree, heapReleased, tinyAllocs,
		"/sched/goroutines:goroutines", "/sched/gomaxprocs:threads", "/gc/gomemlimit:bytes",
		"/gc/cycles/total:gc-cycles", "/gc/heap/allocs:bytes", "/gc/heap/allocs:objects", "/gc/heap/frees:objects",
		"/gc/heap/objects:objects", "/gc/heap/goal:bytes", "/memory/classes/total:bytes", "/memory/classes/heap/stacks:bytes",
	}
}

func rows() []row {
	known := func(f func(*osValues) float64) func(*reader) (float64, bool) {
		return func(r *reader) (float64, bool) { return f(&r.os), r.os.known }
	}
	return []row{
		{"process.cpu_seconds_total", "Total user and system CPU time spent in seconds.", "seconds", true, known(func(o *osValues) float64 { return o.cpuSeconds })},
		{"process.resident_memory_bytes", "Resident memory size in bytes.", "bytes", false, known(func(o *osValues) float64 { return o.resident })},
		{"process.virtual_memory_bytes", "Virtual memory size in bytes.", "bytes", false, known(func(o *osValues) float64 { return o.virtual })},
		{"process.open_fds", "Number of open file descriptors.", "", false, func(r *reader) (float64, bool) { return r.os.fds, r.os.knownFDs }},
		{"process.max_fds", "Maximum number of open file descriptors.", "", false, known(func(o *osValues) float64 { return o.maxFDs })},
		{"process.start_time_seconds", "Start time of the process since the Unix epoch in seconds.", "seconds", false, func(r *reader) (float64, bool) { return r.os.startSeconds, r.os.knownStartTime }},

		{"go.goroutines", "Number of goroutines that currently exist.", "", false, sum("/sched/goroutines:goroutines")},
		{"go.sched.gomaxprocs_threads", "The current GOMAXPROCS setting.", "threads", false, sum("/sched/gomaxprocs:threads")},
		{"go.gc.gomemlimit_bytes", "Go runtime memory limit configured by the user.", "bytes", false, sum("/gc/gomemlimit:bytes")},
		{"go.gc.cycles_total", "Count of completed garbage collection cycles.", "", true, sum("/gc/cycles/total:gc-cycles")},
		{"go.memstats.alloc_bytes", "Bytes of allocated heap objects that are in use.", "bytes", false, sum(heapObjects)},
		{"go.memstats.alloc_bytes_total", "Bytes allocated for heap objects since the start.", "bytes", true, sum("/gc/heap/allocs:bytes")},
		{"go.memstats.mallocs_total", "Number of allocated heap objects since the start.", "", true, sum("/gc/heap/allocs:objects", tinyAllocs)},
		{"go.memstats.frees_total", "Number of freed heap objects since the start.", "", true, sum("/gc/heap/frees:objects", tinyAllocs)},
		{"go.memstats.heap_alloc_bytes", "Bytes of heap objects, including unreachable objects not yet freed.", "bytes", false, sum(heapObjects)},
		{"go.memstats.heap_inuse_bytes", "Bytes in heap spans that are in use.", "bytes", false, sum(heapObjects, heapUnused)},
		{"go.memstats.heap_idle_bytes", "Bytes in heap spans that are not in use.", "bytes", false, sum(heapFree, heapReleased)},
		{"go.memstats.heap_released_bytes", "Bytes of heap memory returned to the operating system.", "bytes", false, sum(heapReleased)},
		{"go.memstats.heap_sys_bytes", "Bytes of heap memory obtained from the operating system.", "bytes", false, sum(heapObjects, heapUnused, heapFree, heapReleased)},
		{"go.memstats.heap_objects", "Number of heap objects.", "", false, sum("/gc/heap/objects:objects")},
		{"go.memstats.next_gc_bytes", "Heap size target of the next garbage collection in bytes.", "bytes", false, sum("/gc/heap/goal:bytes")},
		{"go.memstats.stack_inuse_bytes", "Bytes of memory in use by stacks of goroutines.", "bytes", false, sum("/memory/classes/heap/stacks:bytes")},
		{"go.memstats.sys_bytes", "Bytes of memory obtained from the operating system.", "bytes", false, sum("/memory/classes/total:bytes")},
	}
}

// Register creates the metrics in st and keeps them up to date until remove is
// called. Metrics that the system does not provide are absent. The error is due to
// the first metric that st refuses for a reason other than its stats matcher.
func Register(st *store.Store) (remove func(), err error) {
	r := &reader{index: make(map[string]int)}
	for i, name := range runtimeMetrics() {
		r.samples = append(r.samples, metrics.Sample{Name: name})
		r.index[name] = i
	}
	r.read()
	sc := st.Own().ScopeWith("", store.ScopeOptions{})
	type gauge struct {
		*store.FloatGauge
		read func(*reader) (float64, bool)
	}
	var gauges []gauge
	for _, row := range rows() {
		if _, ok := row.read(r); !ok {
			continue
		}
		sc.Describe(row.name, store.Description{Help: row.help, Unit: row.unit, Counter: row.counter})
		g, err := sc.TryFloatGauge(row.name)
		if err != nil && !errors.Is(err, store.ErrRejected) {
			sc.Close()
			return nil, fmt.Errorf("process: %w", err)
		}
		gauges = append(gauges, gauge{g, row.read})
	}
	sc.Describe("go.info", store.Description{Help: "Information about the Go environment."})
	_ = sc.FloatGauge("go.info", tags.Tag{Name: "version", Value: runtime.Version()}).Set(1)
	unregister := st.BeforeRead(func() {
		r.read()
		for _, g := range gauges {
			if v, ok := g.read(r); ok {
				_ = g.Set(v) // refuses only values that are not finite
			}
		}
	})
	return func() {
		unregister()
		sc.Close()
	}, nil
}

func (r *reader) read() {
	metrics.Read(r.samples)
	r.os = readOS()
}
