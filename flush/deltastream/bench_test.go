package deltastream_test

import (
	"fmt"
	"testing"

	"github.com/statsd-admin/statsd-admin/flush/deltastream"
	"github.com/statsd-admin/statsd-admin/render"
	"github.com/statsd-admin/statsd-admin/store"
)

// sink counts the bytes of a client.
type sink struct{ bytes int }

func (s *sink) Write(b []byte) (int, error) { s.bytes += len(b); return len(b), nil }
func (*sink) Flush() error                  { return nil }

// BenchmarkTick is a second of one stream: 1 % of the stats change, the stream
// looks at the store, and a client gets the event.
func BenchmarkTick(b *testing.B) {
	for _, stats := range []int{10_000, 1_000_000} {
		for _, pattern := range []string{"", "7"} {
			b.Run(fmt.Sprintf("stats=%d/filter=%t", stats, pattern != ""), func(b *testing.B) {
				st := store.New(store.Options{})
				counters := make([]*store.Counter, stats)
				for i := range counters {
					counters[i] = st.Root().Counter(fmt.Sprintf("cluster.c%d.upstream_rq_%d", i/100, i%100))
				}
				var r deltastream.Request
				if pattern != "" {
					f, err := render.NewFilter(render.RE2, pattern, render.FilterLimits{})
					if err != nil {
						b.Fatal(err)
					}
					r.Options.Filter = f
				}
				stream := deltastream.New(deltastream.Config{Store: st})
				client, err := stream.Subscribe(r)
				if err != nil {
					b.Fatal(err)
				}
				defer client.Close()
				out := new(sink)
				if err := client.Turn(out); err != nil { // the first event
					b.Fatal(err)
				}
				out.bytes = 0
				next := 0
				b.ReportAllocs()
				for b.Loop() {
					for range stats / 100 {
						counters[next%stats].Inc()
						next += 101 // all over the store
					}
					stream.Tick()
					if err := client.Turn(out); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(out.bytes)/float64(b.N), "B/event")
			})
		}
	}
}

// BenchmarkIdleTick is a second in which nothing changes.
func BenchmarkIdleTick(b *testing.B) {
	st := store.New(store.Options{})
	for i := range 1_000_000 {
		st.Root().Counter(fmt.Sprintf("cluster.c%d.upstream_rq_%d", i/100, i%100))
	}
	stream := deltastream.New(deltastream.Config{Store: st})
	client, err := stream.Subscribe(deltastream.Request{})
	if err != nil {
		b.Fatal(err)
	}
	defer client.Close()
	for b.Loop() {
		stream.Tick()
	}
}
