package eventstream_test

import (
	"fmt"
	"io"
	"math"
	"testing"

	"github.com/statsd-admin/statsd-admin/flush/eventstream"
	"github.com/statsd-admin/statsd-admin/store"
)

type discard struct{ io.Writer }

func (discard) Flush() error { return nil }

// BenchmarkFlush is the cost of a flush for the stream, with 1000 clusters
// among 200,000 stats.
func BenchmarkFlush(b *testing.B) {
	st := store.New(store.Options{})
	for i := range 1000 {
		sc := st.Scope(fmt.Sprint("cluster.c", i))
		for f := range 100 {
			sc.Counter(fmt.Sprint("other_", f))
			st.Root().Counter(fmt.Sprint("http.", i, ".", f))
		}
		sc.Counter("upstream_rq_2xx").Add(3)
		sc.Counter("upstream_rq_5xx").Add(1)
		sc.GaugeWithMode("membership_total", store.NeverImport).Set(2)
		sc.Histogram("upstream_rq_time", store.Milliseconds).Record(5)
	}
	snap := st.Flush(store.FlushOptions{})
	defer snap.Close()
	s := eventstream.New(eventstream.Config{QueueBytes: math.MaxInt})
	flush := func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := s.Flush(snap); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.Run("nobody", flush)
	c, err := s.Subscribe()
	if err != nil {
		b.Fatal(err)
	}
	stop, done := make(chan struct{}), make(chan error, 1)
	go func() { done <- c.Serve(discard{io.Discard}, stop) }()
	if err := s.Flush(snap); err != nil { // judges all names once
		b.Fatal(err)
	}
	b.Run("somebody", flush)
	close(stop)
	<-done
}
