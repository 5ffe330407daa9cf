package bench

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/bench/budget"
	"github.com/statsd-admin/statsd-admin/flush"
	"github.com/statsd-admin/statsd-admin/flush/otlp"
	"github.com/statsd-admin/statsd-admin/flush/remotewrite"
	"github.com/statsd-admin/statsd-admin/flush/sinkhttp"
	"github.com/statsd-admin/statsd-admin/flush/sinkqueue"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/store/tags"
)

// nowhere is a receiver of OpenTelemetry metrics that forgets them.
type nowhere struct{}

func (nowhere) Export(context.Context, []byte) ([]byte, error) { return nil, nil }
func (nowhere) Target() string                                 { return "nowhere" }
func (nowhere) Close()                                         {}

// BenchmarkSinks encodes, and for remote write compresses, the 1 % of received counters
// with two tags that changed since the flush before. Nothing goes over the network.
func BenchmarkSinks(b *testing.B) {
	kinds := []struct {
		name   string
		queue  int // bytes: without room, nothing is sent
		create func(sinkqueue.Options) (flush.Sink, error)
	}{
		{"remote_write-2.0", 1, func(o sinkqueue.Options) (flush.Sink, error) {
			return remotewrite.New(remotewrite.Config{Options: o, HTTP: sinkhttp.Config{URL: "http://127.0.0.1:1"}, Version: remotewrite.Version2, Refresh: time.Hour})
		}},
		{"remote_write-1.0", 1, func(o sinkqueue.Options) (flush.Sink, error) {
			return remotewrite.New(remotewrite.Config{Options: o, HTTP: sinkhttp.Config{URL: "http://127.0.0.1:1"}, Version: remotewrite.Version1, Refresh: time.Hour})
		}},
		{"otlp-cumulative", 1 << 30, func(o sinkqueue.Options) (flush.Sink, error) {
			return otlp.New(otlp.Config{Options: o, Transport: nowhere{}, Refresh: time.Hour})
		}},
		{"otlp-delta", 1 << 30, func(o sinkqueue.Options) (flush.Sink, error) {
			return otlp.New(otlp.Config{Options: o, Transport: nowhere{}, Delta: true})
		}},
	}
	sizes(b, func(b *testing.B, n int) {
		st := store.New(store.Options{})
		sc := st.ScopeWith("", store.ScopeOptions{Network: true})
		counters := make([]*store.Counter, n)
		for i := range counters {
			counters[i] = sc.Counter(fmt.Sprint("shop.requests.", i%100), tags.Tag{Name: "host", Value: fmt.Sprint("h", i/100)}, tags.Tag{Name: "route", Value: fmt.Sprint("/r", i%7)})
		}
		for _, kind := range kinds {
			b.Run("sink="+kind.name, func(b *testing.B) {
				sink, err := kind.create(sinkqueue.Options{Store: st, QueueBytes: kind.queue, Tags: []tags.Tag{{Name: "instance", Value: "a"}}})
				if err != nil {
					b.Fatal(err)
				}
				var done sync.WaitGroup
				done.Go(func() { sink.(flush.Runner).Run(context.Background()) })
				defer done.Wait()
				defer sink.(flush.Runner).Close()
				totals := sink.(flush.Totaler).NeedsTotals()
				snap := func(i int) *store.Snapshot {
					for j := i % 100; j < n; j += 100 {
						counters[j].Inc()
					}
					return st.Flush(store.FlushOptions{Totals: totals})
				}
				first := snap(0)
				if err := sink.Flush(first); err != nil { // all series
					b.Fatal(err)
				}
				first.Close()
				b.ReportAllocs()
				m := budget.StartMeter(b)
				for i := 0; b.Loop(); i++ {
					m.Stop()
					b.StopTimer()
					s := snap(i)
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
			})
		}
	})
}
