package bench

import (
	"testing"

	"github.com/statsd-admin/statsd-admin/bench/budget"
	"github.com/statsd-admin/statsd-admin/flush/deltastream"
)

// BenchmarkStream is a second of a live stream of all stats, without the bytes on the
// way: 1 % of the stats changed, all over the store, or none.
func BenchmarkStream(b *testing.B) {
	sizes(b, func(b *testing.B, n int) {
		st, cs := clusters(n)
		stream := deltastream.New(deltastream.Config{Store: st})
		turns := make(chan struct{})
		client, err := stream.Subscribe(deltastream.Request{Began: func() { turns <- struct{}{} }})
		must(b, err)
		var out counted
		served := make(chan error)
		go func() {
			defer client.Close()
			served <- client.Serve(&out, nil)
		}()
		wait := func(event bool) {
			if event {
				<-turns
			}
			<-turns // there is no other event
		}
		wait(true) // all values
		next := 0
		for _, c := range []struct {
			name string
			part int
		}{{"0", 0}, {"1%-spread", n / 100}} {
			b.Run("changed="+c.name+"/impl=ours", func(b *testing.B) {
				b.ReportAllocs()
				m := budget.StartMeter(b)
				m.Stop()
				out = 0
				for b.Loop() {
					b.StopTimer()
					for range c.part {
						cs[next%n].Inc()
						next += 101
					}
					b.StartTimer()
					m.Start()
					stream.Tick()
					wait(c.part > 0)
					m.Stop()
				}
				m.Report("cpu-ns/name", n)
				b.ReportMetric(float64(out)/float64(b.N), "B/event")
			})
		}
		stream.Close()
		must(b, <-served)
	})
}

// counted counts the bytes of a stream.
type counted int

func (c *counted) Write(b []byte) (int, error) { *c += counted(len(b)); return len(b), nil }
func (*counted) Flush() error                  { return nil }
