package peers

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"runtime"
	"sync"
	"testing"

	metrics "github.com/rcrowley/go-metrics"

	"github.com/statsd-admin/statsd-admin/bench/budget"
	"github.com/statsd-admin/statsd-admin/bench/workload"
)

const warmUp = 1 << 16

// onAllCores distributes n calls over one goroutine per core.
func onAllCores(n int, f loop) {
	cores := runtime.GOMAXPROCS(0)
	var wg sync.WaitGroup
	for core := range cores {
		wg.Go(func() { f(core, (n+core)/cores) })
	}
	wg.Wait()
}

// handles runs the three cases of contention for a loop over a handle.
func handles(b *testing.B, name string, make func() loop) {
	if make == nil {
		return
	}
	b.Run("case=one/impl="+name, func(b *testing.B) {
		f := make()
		f(0, warmUp)
		b.ReportAllocs()
		b.ResetTimer()
		m := budget.StartMeter(b)
		f(0, b.N)
		m.Report("cpu-ns/op", 1)
	})
	b.Run("case=same/impl="+name, func(b *testing.B) {
		f := make()
		onAllCores(warmUp, f)
		b.ResetTimer()
		m := budget.StartMeter(b)
		onAllCores(b.N, f)
		m.Report("cpu-ns/op", 1)
	})
	b.Run("case=distinct/impl="+name, func(b *testing.B) {
		var fs []loop
		for range runtime.GOMAXPROCS(0) {
			fs = append(fs, make())
		}
		own := func(core, n int) { fs[core](core, n) }
		onAllCores(warmUp, own)
		b.ResetTimer()
		m := budget.StartMeter(b)
		onAllCores(b.N, own)
		m.Report("cpu-ns/op", 1)
	})
}

func BenchmarkCounter(b *testing.B) {
	for _, l := range libraries() {
		handles(b, l.name, l.counter)
	}
}

func BenchmarkHistogram(b *testing.B) {
	vals := workload.Lognormal(4096, 7)
	for _, l := range libraries() {
		if l.record != nil {
			handles(b, l.name, func() loop { return l.record(vals) })
		}
	}
}

func BenchmarkGauge(b *testing.B) {
	for _, l := range libraries() {
		for op, make := range map[string]func() loop{"set": l.gaugeSet, "add": l.gaugeAdd} {
			if make == nil {
				continue
			}
			f := make()
			b.Run("op="+op+"/impl="+l.name, func(b *testing.B) {
				m := budget.StartMeter(b)
				f(0, b.N)
				m.Report("cpu-ns/op", 1)
			})
		}
	}
}

// BenchmarkLookup asks for names that the caller has composed (names=composed): the
// text is equal to that of the creation but lies in other memory, next to the names
// asked for just before, and the order differs from that of creation. With names=held
// it passes the very strings that created the counters, so libraries that keep them
// compare pointers instead of texts.
func BenchmarkLookup(b *testing.B) {
	for _, how := range []string{"composed", "held"} {
		for _, l := range libraries() {
			if l.byName == nil {
				continue
			}
			names := workload.Dynamic(10_000)
			f := l.byName(names)
			f(0, 2*len(names))
			workload.Spread(names)
			if how == "composed" {
				workload.Compose(names)
			}
			b.Run("names="+how+"/case=one/impl="+l.name, func(b *testing.B) {
				b.ReportAllocs()
				m := budget.StartMeter(b)
				f(0, b.N)
				m.Report("cpu-ns/op", 1)
			})
			b.Run("names="+how+"/case=all/impl="+l.name, func(b *testing.B) {
				m := budget.StartMeter(b)
				onAllCores(b.N, f)
				m.Report("cpu-ns/op", 1)
			})
		}
	}
}

func BenchmarkLookupTags(b *testing.B) {
	es := workload.Endpoints(10_000)
	for _, l := range libraries() {
		if l.byTags == nil {
			continue
		}
		f := l.byTags(es)
		f(0, 2*len(es))
		workload.Spread(es)
		workload.ComposeEndpoints(es)
		b.Run("case=one/impl="+l.name, func(b *testing.B) {
			b.ReportAllocs()
			m := budget.StartMeter(b)
			f(0, b.N)
			m.Report("cpu-ns/op", 1)
		})
		b.Run("case=all/impl="+l.name, func(b *testing.B) {
			m := budget.StartMeter(b)
			onAllCores(b.N, f)
			m.Report("cpu-ns/op", 1)
		})
	}
}

func heap() (bytes, objects uint64) {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc, m.HeapObjects
}

// many is the number of names in benchmarks of whole populations.
func many() int {
	if testing.Short() {
		return 10_000
	}
	return 1_000_000
}

// BenchmarkCreate creates counters by name and reports the memory they keep. Each
// name is a separate allocation, as if it came from a request or a configuration.
func BenchmarkCreate(b *testing.B) {
	names := workload.Clusters(many())
	for _, l := range libraries() {
		if l.create == nil || l.name == "expvar" && !testing.Short() {
			continue
		}
		b.Run(fmt.Sprintf("names=%d/impl=%s", len(names), l.name), func(b *testing.B) {
			var bytes, objects uint64
			m := budget.StartMeter(b)
			for b.Loop() {
				b.StopTimer()
				m.Stop()
				own := make([]string, len(names))
				for i, n := range names {
					own[i] = string([]byte(n))
				}
				keys := own
				before, objectsBefore := heap()
				m.Start()
				b.StartTimer()
				p := l.create(keys)
				b.StopTimer()
				m.Stop()
				// Names that the library does not keep are freed; the others count.
				clear(own)
				after, objectsAfter := heap()
				names := uint64(0)
				for _, n := range workload.Clusters(len(own)) {
					names += uint64(len(n)+15) &^ 15
				}
				bytes = after + names - before
				objects = objectsAfter + uint64(len(own)) - objectsBefore
				runtime.KeepAlive(p)
				m.Start()
				b.StartTimer()
			}
			n := float64(len(names))
			m.Report("cpu-ns/name", len(names))
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/name")
			b.ReportMetric(float64(bytes)/n, "B/name")
			b.ReportMetric(float64(objects)/n, "objects/name")
		})
	}
}

// BenchmarkCollect is one garbage collection with the counters alive.
func BenchmarkCollect(b *testing.B) {
	for _, l := range libraries() {
		if l.create == nil || l.name == "limit" || l.name == "expvar" && !testing.Short() {
			continue
		}
		b.Run("impl="+l.name, func(b *testing.B) {
			p := l.create(workload.Clusters(many()))
			runtime.GC()
			b.ResetTimer()
			m := budget.StartMeter(b)
			for b.Loop() {
				runtime.GC()
			}
			m.Report("cpu-ns/op", 1)
			runtime.KeepAlive(p)
		})
	}
}

// BenchmarkRender writes all counters in the text form of the library, the exposition
// format where it has one.
func BenchmarkRender(b *testing.B) {
	names := workload.Clusters(many())
	for _, l := range libraries() {
		if l.create == nil {
			continue
		}
		few := names
		if l.name == "expvar" {
			few = names[:10_000]
		}
		var p population
		made := func() population {
			if p == nil {
				p = l.create(few)
			}
			return p
		}
		perName := func(b *testing.B, m *budget.Meter) {
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(few)), "ns/name")
			m.Report("cpu-ns/name", len(few))
		}
		b.Run("format=text/impl="+l.name, func(b *testing.B) {
			if err := made().write(io.Discard); errors.Is(err, errCannot) {
				b.Skip(err)
			}
			b.ReportAllocs()
			m := budget.StartMeter(b)
			for b.Loop() {
				if err := made().write(io.Discard); err != nil {
					b.Fatal(err)
				}
			}
			perName(b, m)
		})
		if l.json == nil {
			continue
		}
		b.Run("format=json/impl="+l.name, func(b *testing.B) {
			must(0, l.json(made(), io.Discard))
			b.ReportAllocs()
			m := budget.StartMeter(b)
			for b.Loop() {
				must(0, l.json(made(), io.Discard))
			}
			perName(b, m)
		})
	}
}

// BenchmarkRenderHistograms writes 10,000 histograms that hold 1000 values each.
func BenchmarkRenderHistograms(b *testing.B) {
	names := workload.Clusters(min(many(), 10_000))
	if testing.Short() {
		names = names[:100]
	}
	for _, l := range libraries() {
		if l.histograms == nil {
			continue
		}
		b.Run("impl="+l.name, func(b *testing.B) {
			p := l.histograms(names)
			b.ReportAllocs()
			b.ResetTimer()
			m := budget.StartMeter(b)
			for b.Loop() {
				must(0, p.write(io.Discard))
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(names)), "ns/name")
			m.Report("cpu-ns/name", len(names))
		})
	}
}

// BenchmarkFlush takes the deltas of an interval in which 1 % changed.
func BenchmarkFlush(b *testing.B) {
	names := workload.Clusters(many())
	for _, l := range libraries() {
		if l.flush == nil {
			continue
		}
		b.Run("changed=1%/impl="+l.name, func(b *testing.B) {
			change, flush := l.flush(names)
			flush()
			b.ResetTimer()
			m := budget.StartMeter(b)
			for b.Loop() {
				b.StopTimer()
				m.Stop()
				change()
				m.Start()
				b.StartTimer()
				flush()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(names)), "ns/name")
			m.Report("cpu-ns/name", len(names))
		})
	}
}

// BenchmarkFilter filters with go-metrics in the usual way, by matching each name.
func BenchmarkFilter(b *testing.B) {
	names := workload.Clusters(many())
	r := metrics.NewRegistry()
	for _, n := range names {
		metrics.NewRegisteredCounter(n, r)
	}
	re := regexp.MustCompile(`service_\d+\.upstream_.*_(77|x)$`)
	b.Run("pattern=re2/impl=go-metrics+regexp", func(b *testing.B) {
		hits := 0
		m := budget.StartMeter(b)
		for b.Loop() {
			r.Each(func(name string, _ any) {
				if re.MatchString(name) {
					hits++
				}
			})
		}
		runtime.KeepAlive(hits)
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(names)), "ns/name")
		m.Report("cpu-ns/name", len(names))
	})
}

func BenchmarkQuantiles(b *testing.B) {
	vals := workload.Lognormal(100_000, 7)
	for _, l := range libraries() {
		if l.quantiles == nil {
			continue
		}
		b.Run("impl="+l.name, func(b *testing.B) {
			read := l.quantiles(vals)
			b.ReportAllocs()
			b.ResetTimer()
			m := budget.StartMeter(b)
			for b.Loop() {
				read()
			}
			m.Report("cpu-ns/op", 1)
		})
	}
}
