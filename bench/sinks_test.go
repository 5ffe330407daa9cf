package bench

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/bench/budget"
	"github.com/statsd-admin/statsd-admin/flush"
	"github.com/statsd-admin/statsd-admin/flush/graphite"
	"github.com/statsd-admin/statsd-admin/flush/otlp"
	"github.com/statsd-admin/statsd-admin/flush/remotewrite"
	"github.com/statsd-admin/statsd-admin/flush/sinkhttp"
	"github.com/statsd-admin/statsd-admin/flush/sinkqueue"
	"github.com/statsd-admin/statsd-admin/flush/statsdsink"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/store/tags"
)

// nowhere is a receiver of OpenTelemetry metrics that forgets them.
type nowhere struct{}

func (nowhere) Export(context.Context, []byte) ([]byte, error) { return nil, nil }
func (nowhere) Target() string                                 { return "nowhere" }
func (nowhere) Close()                                         {}

// sinkKinds are the sinks that [BenchmarkSinks] compares. Nothing goes over the network:
// remote write has a queue without room, and the packets of StatsD and Graphite, which
// would come back as increments that are owed, stay in the queue.
var sinkKinds = []struct {
	name   string
	queue  int // bytes
	sends  bool
	create func(sinkqueue.Options) (flush.Sink, error)
}{
	{"remote_write-2.0", 1, true, func(o sinkqueue.Options) (flush.Sink, error) {
		return remotewrite.New(remotewrite.Config{Options: o, HTTP: sinkhttp.Config{URL: "http://127.0.0.1:1"}, Version: remotewrite.Version2, Refresh: time.Hour})
	}},
	{"remote_write-1.0", 1, true, func(o sinkqueue.Options) (flush.Sink, error) {
		return remotewrite.New(remotewrite.Config{Options: o, HTTP: sinkhttp.Config{URL: "http://127.0.0.1:1"}, Version: remotewrite.Version1, Refresh: time.Hour})
	}},
	{"otlp-cumulative", 1 << 30, true, func(o sinkqueue.Options) (flush.Sink, error) {
		return otlp.New(otlp.Config{Options: o, Transport: nowhere{}, Refresh: time.Hour})
	}},
	{"otlp-delta", 1 << 30, true, func(o sinkqueue.Options) (flush.Sink, error) {
		return otlp.New(otlp.Config{Options: o, Transport: nowhere{}, Delta: true})
	}},
	{"dogstatsd", 1 << 30, false, func(o sinkqueue.Options) (flush.Sink, error) {
		return statsdsink.New(statsdsink.Config{Options: o, Address: "127.0.0.1:1", Format: statsdsink.DogStatsD})
	}},
	{"graphite", 1 << 30, false, func(o sinkqueue.Options) (flush.Sink, error) {
		return graphite.New(graphite.Config{Options: o, Address: "127.0.0.1:1", Tagged: true})
	}},
}

// BenchmarkSinks encodes, and for remote write compresses, the 1 % of received counters
// with two tags that changed since the flush before. The collections that the flush of
// the store causes are not measured. B/series is what the sink keeps after it has sent
// all counters, its queue excluded.
func BenchmarkSinks(b *testing.B) {
	sizes(b, func(b *testing.B, n int) {
		st := store.New(store.Options{})
		sc := st.ScopeWith("", store.ScopeOptions{Network: true})
		counters := make([]*store.Counter, n)
		for i := range counters {
			counters[i] = sc.Counter(fmt.Sprint("shop.requests.", i%100), tags.Tag{Name: "host", Value: fmt.Sprint("h", i/100)}, tags.Tag{Name: "route", Value: fmt.Sprint("/r", i%7)})
		}
		v := st.View()
		v.ByFamily(store.KindCounter) // the order belongs to the store
		v.Close()
		for _, kind := range sinkKinds {
			b.Run("sink="+kind.name, func(b *testing.B) {
				totals := false
				snap := func(every, from int) *store.Snapshot {
					for j := from; j < n; j += every {
						counters[j].Inc()
					}
					return st.Flush(store.FlushOptions{Totals: totals})
				}
				snap(1, 0).Close()
				before, _ := heap()
				sink, err := kind.create(sinkqueue.Options{Store: st, QueueBytes: kind.queue, Tags: []tags.Tag{{Name: "instance", Value: "a"}}})
				if err != nil {
					b.Fatal(err)
				}
				if kind.sends {
					var done sync.WaitGroup
					done.Go(func() { sink.(flush.Runner).Run(context.Background()) })
					defer done.Wait()
				}
				defer sink.(flush.Runner).Close()
				if t, ok := sink.(flush.Totaler); ok {
					totals = t.NeedsTotals()
				}
				first := snap(1, 0)
				if err := sink.Flush(first); err != nil { // all series
					b.Fatal(err)
				}
				first.Close()
				first = nil
				after, _ := heap()
				kept := int64(after-before) - int64(sink.(flush.Reporter).Delivery().Bytes)
				b.ReportAllocs()
				m := budget.StartMeter(b)
				for i := 0; b.Loop(); i++ {
					m.Stop()
					b.StopTimer()
					s := snap(100, i%100)
					runtime.GC()
					b.StartTimer()
					m.Start()
					if err := sink.Flush(s); err != nil {
						b.Fatal(err)
					}
					m.Stop()
					b.StopTimer()
					s.Close()
					b.StartTimer()
					m.Start()
				}
				m.Report("cpu-ns/point", n/100)
				b.ReportMetric(float64(kept)/float64(n), "B/series")
			})
		}
	})
}
