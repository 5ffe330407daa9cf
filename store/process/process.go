package process

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/metrics"
	"slices"

	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/store/tags"
)

// Segments returns the first segments of the names, for [naming.Rules].
//
// [naming.Rules]: https://pkg.go.dev/github.com/statsd-admin/statsd-admin/render/naming#Rules
func Segments() []string { return []string{"process", "go"} }

// row is a metric. Its value is the sum of runtime metrics, or without them the value that
// [readOS] returns for its name.
type row struct {
	name, help, unit string
	counter          bool
	from             []string
}

// reader holds the values of one read. Values that the system does not provide are absent.
type reader struct {
	samples []metrics.Sample
	values  map[string]float64
}

// Names of runtime metrics.
const (
	heapObjects  = "/memory/classes/heap/objects:bytes"
	heapUnused   = "/memory/classes/heap/unused:bytes"
	heapFree     = "/memory/classes/heap/free:bytes"
	heapReleased = "/memory/classes/heap/released:bytes"
	tinyAllocs   = "/gc/heap/tiny/allocs:objects"
)

func rows() []row {
	return []row{
		{"process.cpu_seconds_total", "Total user and system CPU time spent in seconds.", "seconds", true, nil},
		{"process.resident_memory_bytes", "Resident memory size in bytes.", "bytes", false, nil},
		{"process.virtual_memory_bytes", "Virtual memory size in bytes.", "bytes", false, nil},
		{"process.open_fds", "Number of open file descriptors.", "", false, nil},
		{"process.max_fds", "Maximum number of open file descriptors.", "", false, nil},
		{"process.start_time_seconds", "Start time of the process since the Unix epoch in seconds.", "seconds", false, nil},

		{"go.goroutines", "Number of goroutines that currently exist.", "", false, []string{"/sched/goroutines:goroutines"}},
		{"go.sched.gomaxprocs_threads", "The current GOMAXPROCS setting.", "threads", false, []string{"/sched/gomaxprocs:threads"}},
		{"go.gc.gomemlimit_bytes", "Go runtime memory limit configured by the user.", "bytes", false, []string{"/gc/gomemlimit:bytes"}},
		{"go.gc.cycles_total", "Count of completed garbage collection cycles.", "", true, []string{"/gc/cycles/total:gc-cycles"}},
		{"go.memstats.alloc_bytes", "Bytes of allocated heap objects that are in use.", "bytes", false, []string{heapObjects}},
		{"go.memstats.alloc_bytes_total", "Bytes allocated for heap objects since the start.", "bytes", true, []string{"/gc/heap/allocs:bytes"}},
		{"go.memstats.mallocs_total", "Number of allocated heap objects since the start.", "", true, []string{"/gc/heap/allocs:objects", tinyAllocs}},
		{"go.memstats.frees_total", "Number of freed heap objects since the start.", "", true, []string{"/gc/heap/frees:objects", tinyAllocs}},
		{"go.memstats.heap_alloc_bytes", "Bytes of heap objects, including unreachable objects not yet freed.", "bytes", false, []string{heapObjects}},
		{"go.memstats.heap_inuse_bytes", "Bytes in heap spans that are in use.", "bytes", false, []string{heapObjects, heapUnused}},
		{"go.memstats.heap_idle_bytes", "Bytes in heap spans that are not in use.", "bytes", false, []string{heapFree, heapReleased}},
		{"go.memstats.heap_released_bytes", "Bytes of heap memory returned to the operating system.", "bytes", false, []string{heapReleased}},
		{"go.memstats.heap_sys_bytes", "Bytes of heap memory obtained from the operating system.", "bytes", false, []string{heapObjects, heapUnused, heapFree, heapReleased}},
		{"go.memstats.heap_objects", "Number of heap objects.", "", false, []string{"/gc/heap/objects:objects"}},
		{"go.memstats.next_gc_bytes", "Heap size target of the next garbage collection in bytes.", "bytes", false, []string{"/gc/heap/goal:bytes"}},
		{"go.memstats.stack_inuse_bytes", "Bytes of memory in use by stacks of goroutines.", "bytes", false, []string{"/memory/classes/heap/stacks:bytes"}},
		{"go.memstats.sys_bytes", "Bytes of memory obtained from the operating system.", "bytes", false, []string{"/memory/classes/total:bytes"}},
	}
}

// Register creates the metrics in st and keeps them up to date until remove is
// called. Metrics that the system does not provide are absent. The error is due to
// the first metric that st refuses for a reason other than its stats matcher.
func Register(st *store.Store) (remove func(), err error) {
	r, list := new(reader), rows()
	for i, w := range list {
		if w.from == nil {
			list[i].from = []string{w.name}
		}
		for _, name := range w.from {
			r.samples = append(r.samples, metrics.Sample{Name: name})
		}
	}
	r.read()
	list = slices.DeleteFunc(list, func(w row) bool { _, ok := r.sum(w.from); return !ok })
	sc := st.Own().ScopeWith("", store.ScopeOptions{})
	gauges := make([]*store.FloatGauge, len(list))
	for i, w := range list {
		sc.Describe(w.name, store.Description{Help: w.help, Unit: w.unit, Counter: w.counter})
		if gauges[i], err = sc.TryFloatGauge(w.name); err != nil && !errors.Is(err, store.ErrRejected) {
			sc.Close()
			return nil, fmt.Errorf("process: %w", err)
		}
	}
	sc.Describe("go.info", store.Description{Help: "Information about the Go environment."})
	_ = sc.FloatGauge("go.info", tags.Tag{Name: "version", Value: runtime.Version()}).Set(1)
	unregister := st.BeforeRead(func() {
		r.read()
		for i, w := range list {
			if v, ok := r.sum(w.from); ok {
				_ = gauges[i].Set(v) // refuses only values that are not finite
			}
		}
	})
	return func() {
		unregister()
		sc.Close()
	}, nil
}

func (r *reader) read() {
	r.values = readOS()
	metrics.Read(r.samples)
	for _, s := range r.samples {
		if s.Value.Kind() == metrics.KindUint64 {
			r.values[s.Name] = float64(s.Value.Uint64())
		}
	}
}

// sum returns the sum of the named values, and whether the system provides all of them.
func (r *reader) sum(names []string) (total float64, ok bool) {
	for _, name := range names {
		x, ok := r.values[name]
		if !ok {
			return 0, false
		}
		total += x
	}
	return total, true
}
