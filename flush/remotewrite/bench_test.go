package remotewrite

import (
	"fmt"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/flush/sinkqueue"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/store/tags"
)

// BenchmarkFlush reports the time for a sample of a flush of 100,000 series, of which
// 1 % or all are sent, from the end of the flush to the compressed requests.
func BenchmarkFlush(b *testing.B) {
	for _, bb := range []struct {
		name    string
		version Version
		full    bool
	}{{"changed1/v2", Version2, false}, {"all/v2", Version2, true}, {"changed1/v1", Version1, false}, {"all/v1", Version1, true}} {
		b.Run(bb.name, func(b *testing.B) {
			const series = 100_000
			now := time.Unix(1000, 0)
			st := store.New(store.Options{Now: func() time.Time { return now }})
			counters := make([]*store.Counter, series)
			sc := st.ScopeWith("", store.ScopeOptions{Network: true})
			for i := range counters {
				counters[i] = sc.Counter(fmt.Sprint("shop.requests.", i%100), tags.Tag{Name: "host", Value: fmt.Sprint("h", i/100)}, tags.Tag{Name: "route", Value: fmt.Sprint("/r", i%7)})
				counters[i].Inc()
			}
			s, err := New(Config{Options: sinkqueue.Options{Store: st, QueueBytes: 1, Tags: []tags.Tag{{Name: "instance", Value: "a"}}}, HTTP: to("http://127.0.0.1:1"), Version: bb.version, Refresh: 1000 * time.Hour})
			if err != nil {
				b.Fatal(err)
			}
			samples := func() uint64 {
				return st.Own().Scope("sink").Counter("dropped_metrics", tags.Tag{Name: "sink", Value: "remote_write"}).Value()
			}
			flush := func() {
				now = now.Add(10 * time.Second)
				snap := st.Flush(store.FlushOptions{Totals: true})
				b.StartTimer()
				err := s.Flush(snap)
				b.StopTimer()
				snap.Close()
				if err != nil {
					b.Fatal(err)
				}
			}
			b.ReportAllocs()
			b.StopTimer()
			flush()
			b.ResetTimer()
			before := samples()
			for i := range b.N {
				if bb.full {
					s.again.Store(true)
				}
				for j := i % 100; j < series; j += 100 {
					counters[j].Inc()
				}
				flush()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(samples()-before), "ns/sample")
		})
	}
}
