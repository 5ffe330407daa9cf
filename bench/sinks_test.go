package bench

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strconv"
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

// sinkKinds are the sinks that [BenchmarkSinks] compares, by the network of their
// receiver.
var sinkKinds = []struct {
	name, network string
	create        func(address string, o sinkqueue.Options) (flush.Sink, error)
}{
	{"remote_write-2.0", "http", func(a string, o sinkqueue.Options) (flush.Sink, error) {
		return remotewrite.New(remotewrite.Config{Options: o, HTTP: sinkhttp.Config{URL: "http://" + a}, Version: remotewrite.Version2, Refresh: time.Hour})
	}},
	{"remote_write-1.0", "http", func(a string, o sinkqueue.Options) (flush.Sink, error) {
		return remotewrite.New(remotewrite.Config{Options: o, HTTP: sinkhttp.Config{URL: "http://" + a}, Version: remotewrite.Version1, Refresh: time.Hour})
	}},
	{"otlp-cumulative", "http", func(a string, o sinkqueue.Options) (flush.Sink, error) {
		return otlp.New(otlp.Config{Options: o, HTTP: sinkhttp.Config{URL: "http://" + a}, Refresh: time.Hour})
	}},
	{"otlp-delta", "http", func(a string, o sinkqueue.Options) (flush.Sink, error) {
		return otlp.New(otlp.Config{Options: o, HTTP: sinkhttp.Config{URL: "http://" + a}, Delta: true})
	}},
	{"dogstatsd", "udp", func(a string, o sinkqueue.Options) (flush.Sink, error) {
		return statsdsink.New(statsdsink.Config{Options: o, Address: a, Format: statsdsink.DogStatsD})
	}},
	{"dogstatsd-8192", "udp", func(a string, o sinkqueue.Options) (flush.Sink, error) {
		return statsdsink.New(statsdsink.Config{Options: o, Address: a, Format: statsdsink.DogStatsD, PacketBytes: 8192})
	}},
	{"dogstatsd-tcp", "tcp", func(a string, o sinkqueue.Options) (flush.Sink, error) {
		return statsdsink.New(statsdsink.Config{Options: o, Network: statsdsink.TCP, Address: a, Format: statsdsink.DogStatsD})
	}},
	{"graphite", "tcp", func(a string, o sinkqueue.Options) (flush.Sink, error) {
		return graphite.New(graphite.Config{Options: o, Address: a, Tagged: true})
	}},
}

// BenchmarkSinks sends the 1 % of received counters with two tags that changed since the
// flush before to a receiver in another process, which reads and forgets. Neighbors among
// them differ in the metric and in both tags. Queues are held while a sink encodes, so
// that encoding and sending are measured apart. The collections that the flush of the
// store causes are not measured. B/series is what the sink keeps after it has sent all
// counters, B/point what it sends for each.
func BenchmarkSinks(b *testing.B) {
	addresses := forgetful(b)
	sizes(b, func(b *testing.B, n int) {
		st := store.New(store.Options{})
		sc := st.ScopeWith("", store.ScopeOptions{Network: true})
		counters := make([]*store.Counter, n)
		for i := range counters {
			counters[i] = sc.Counter(fmt.Sprint("shop.requests.", (i+i/100)%100), tags.Tag{Name: "host", Value: fmt.Sprint("h", i/100)}, tags.Tag{Name: "route", Value: fmt.Sprint("/r", i/100%7)})
		}
		v := st.View()
		v.ByFamily(store.KindCounter) // the order belongs to the store
		v.Close()
		change := func(every, from int, totals bool) *store.Snapshot {
			for j := from; j < n; j += every {
				counters[j].Inc()
			}
			return st.Flush(store.FlushOptions{Totals: totals})
		}
		b.Run("sink=lines", func(b *testing.B) { held(b, n) })
		for _, kind := range sinkKinds {
			b.Run("sink="+kind.name, func(b *testing.B) {
				change(1, 0, false).Close()
				before, _ := heap()
				s, err := kind.create(addresses[kind.network], sinkqueue.Options{Store: st, QueueBytes: 1 << 30, Tags: []tags.Tag{{Name: "instance", Value: "a"}}})
				must(b, err)
				sink := s.(interface {
					flush.Sink
					flush.Reporter
					flush.Movable
				})
				var done sync.WaitGroup
				done.Go(func() { sink.Run(b.Context()) })
				defer done.Wait()
				defer sink.Close()
				t, ok := s.(flush.TotalsSink)
				totals := ok && t.NeedsTotals()
				encode, send := budget.StartMeter(b), budget.StartMeter(b)
				encode.Stop()
				send.Stop()
				sent := 0
				round := func(every, from int) {
					snap := change(every, from, totals)
					defer snap.Close()
					if left := sink.Hold(b.Context()); len(left) > 0 {
						b.Fatalf("%d packets are left", len(left))
					}
					runtime.GC()
					encode.Start()
					must(b, sink.Flush(snap))
					encode.Stop()
					sent += sink.Delivery().Bytes
					send.Start()
					sink.Release(false)
					for sink.Delivery().Bytes > 0 {
						time.Sleep(5 * time.Millisecond) // waking up is not free
					}
					send.Stop()
				}
				round(1, 0) // all series
				after, _ := heap()
				encode, send = budget.StartMeter(b), budget.StartMeter(b)
				encode.Stop()
				send.Stop()
				b.ReportAllocs()
				i := 0
				sent = 0
				for b.Loop() {
					round(100, i%100)
					i++
				}
				if d := sink.Delivery(); d.Failed > 0 || d.Dropped > 0 {
					b.Fatalf("%+v", d)
				}
				encode.Report("encode-ns/point", n/100)
				send.Report("send-ns/point", n/100)
				b.ReportMetric(float64(sent)/float64(i*(n/100)), "B/point")
				b.ReportMetric(float64(int64(after-before))/float64(n), "B/series")
			})
		}
	})
}

// held appends a line for each changed counter, whose name and tags are held as text: the
// least that a sink of lines could do.
func held(b *testing.B, n int) {
	heads := make([]string, n)
	for i := range heads {
		heads[i] = fmt.Sprint("shop.requests.", (i+i/100)%100, ";instance=a;host=h", i/100, ";route=/r", i/100%7)
	}
	var dst []byte
	m := budget.StartMeter(b)
	for i := 0; b.Loop(); i++ {
		m.Stop()
		runtime.GC()
		m.Start()
		dst = dst[:0]
		for j := i % 100; j < n; j += 100 {
			dst = append(dst, heads[j]...)
			dst = strconv.AppendUint(append(dst, ' '), uint64(j), 10)
			dst = append(dst, " 1700000000\n"...)
		}
	}
	m.Report("encode-ns/point", n/100)
	keepAlive(heads, dst)
}

// forgetfulEnv turns the test binary into the other process of [forgetful].
const forgetfulEnv = "BENCH_FORGETFUL_RECEIVER"

// receive reads and discards its input, until its input ends. It prints its
// addresses.
func receive() error {
	packets, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return err
	}
	if err := packets.SetReadBuffer(4 << 20); err != nil {
		return err
	}
	go forget(packets)
	streams, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go func() {
		for {
			if c, err := streams.Accept(); err == nil {
				go forget(c)
			}
		}
	}()
	requests, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go func() {
		fmt.Fprintln(os.Stderr, http.Serve(requests, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.Header().Set("X-Prometheus-Remote-Write-Samples-Written", "1000000")
			w.WriteHeader(http.StatusNoContent)
		})))
	}()
	fmt.Println(packets.LocalAddr(), streams.Addr(), requests.Addr())
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// forget reads until an error.
func forget(r io.Reader) {
	buf := make([]byte, 256<<10)
	for {
		if _, err := r.Read(buf); err != nil {
			return
		}
	}
}

// forgetful starts a process that reads and discards its input, and returns its
// addresses by network.
func forgetful(b *testing.B) map[string]string {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), forgetfulEnv+"=1")
	in, err := cmd.StdinPipe()
	must(b, err)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	must(b, err)
	must(b, cmd.Start())
	b.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	var udp, tcp, requests string
	if _, err := fmt.Fscan(out, &udp, &tcp, &requests); err != nil {
		b.Fatal("the receiver did not start: ", err)
	}
	return map[string]string{"udp": udp, "tcp": tcp, "http": requests}
}
