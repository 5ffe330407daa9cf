package bench

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"strings"
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
	"github.com/statsd-admin/statsd-admin/render"
	"github.com/statsd-admin/statsd-admin/statsd"
	"github.com/statsd-admin/statsd-admin/store"
)

// BenchmarkDeadSink writes, takes in lines, renders and flushes once per operation, so
// 600 operations are ten minutes of flushes each second. The sinks of the second part
// send to an address that accepts connections and never answers. Their queues stay
// within their limits, or the benchmark fails.
func BenchmarkDeadSink(b *testing.B) {
	const names, limit, rounds, packetsOfLines = 10_000, 1 << 20, 10, 40
	for _, dead := range []bool{false, true} {
		b.Run(fmt.Sprintf("dead=%v", dead), func(b *testing.B) {
			st, cs := clusters(names)
			var sinks []flush.Sink
			if dead {
				sinks = deadSinks(b, sinkqueue.Options{Store: st, QueueBytes: limit})
			}
			ctx, cancel := context.WithCancel(context.Background())
			var done sync.WaitGroup
			srv, err := statsd.New(statsd.Config{
				Store: st, Listeners: []statsd.ListenerConfig{{Address: "tcp://127.0.0.1:0"}}, Limits: statsd.Limits{NewPerSecond: -1},
			})
			must(b, err)
			must(b, srv.Listen())
			done.Go(func() { must(b, srv.Run(ctx)) })
			conn, err := net.Dial("tcp", strings.TrimPrefix(srv.Report().Listeners[0].Address, "tcp://"))
			must(b, err)
			defer conn.Close()
			received, sent := srv.Scope().Counter(packetCounter), uint64(0)
			lines := bytes.Join(statsdPackets(false), nil)
			for _, s := range sinks {
				done.Go(func() { s.(flush.Runner).Run(ctx) })
			}
			defer done.Wait()
			defer cancel()
			meters := [4]*budget.Meter{}
			for i := range meters {
				meters[i] = budget.StartMeter(b)
				meters[i].Stop()
			}
			write, ingest, scrape, encode := meters[0], meters[1], meters[2], meters[3]
			for b.Loop() {
				ingest.Start()
				for range rounds {
					_, err := conn.Write(lines)
					must(b, err)
					sent += packetsOfLines
				}
				for received.Value() < sent {
					time.Sleep(100 * time.Microsecond)
				}
				ingest.Stop()
				write.Start()
				for range rounds {
					for _, c := range cs {
						c.Inc()
					}
				}
				write.Stop()
				scrape.Start()
				must(b, render.Exposition(io.Discard, st, render.Options{}))
				scrape.Stop()
				snap := st.Flush(store.FlushOptions{Totals: true})
				encode.Start()
				for _, s := range sinks {
					must(b, s.Flush(snap))
					if d := s.(flush.Reporter).Delivery(); d.Bytes > limit {
						b.Fatalf("sink %s has %d bytes in its queue", s.Name(), d.Bytes)
					}
				}
				encode.Stop()
				snap.Close()
			}
			write.Report("write-ns/increment", rounds*len(cs))
			ingest.Report("ingest-ns/line", rounds*packetsOfLines*linesPerPacket)
			scrape.Report("scrape-ns/name", len(cs))
			if dead {
				encode.Report("encode-ns/point", len(sinks)*len(cs))
			}
		})
	}
}

// deadSinks returns a sink of each protocol.
func deadSinks(b *testing.B, o sinkqueue.Options) []flush.Sink {
	l, err := net.Listen("tcp", "127.0.0.1:0") // the kernel accepts, and nobody reads
	must(b, err)
	b.Cleanup(func() { _ = l.Close() })
	address := l.Addr().String()
	write, err := remotewrite.New(remotewrite.Config{Options: o, HTTP: sinkhttp.Config{URL: "http://" + address}})
	must(b, err)
	delta, err := otlp.New(otlp.Config{Options: o, HTTP: sinkhttp.Config{URL: "http://" + address}, Delta: true})
	must(b, err)
	lines, err := statsdsink.New(statsdsink.Config{Options: o, Network: statsdsink.TCP, Address: address})
	must(b, err)
	paths, err := graphite.New(graphite.Config{Options: o, Address: address})
	must(b, err)
	return []flush.Sink{write, delta, lines, paths}
}
