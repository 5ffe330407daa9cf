package bench

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/bench/budget"
	"github.com/statsd-admin/statsd-admin/statsd"
	"github.com/statsd-admin/statsd-admin/store"
)

const (
	linesPerPacket = 25
	// packetsUnderWay packets fit in the smallest common receive buffer.
	packetsUnderWay = 64
)

// packetCounter counts packets: each starts with a line for it.
const packetCounter = "app.packets"

// statsdPackets returns packets of the same size with lines of 960 names: 60 %
// counters, 30 % timers, 10 % gauges. If framed, a length precedes each.
func statsdPackets(framed bool) (packets [][]byte) {
	for n := range 40 {
		text := packetCounter + ":1|c\n"
		for i := range linesPerPacket - 1 {
			kind := "c"
			if i >= 22 {
				kind = "g"
			} else if i >= 14 {
				kind = "ms"
			}
			text += fmt.Sprintf("app.service_%02d.requests_%02d:%02d|%s\n", n, i, 10+(n+i)%90, kind)
		}
		if framed {
			text = string(binary.LittleEndian.AppendUint32(nil, uint32(len(text)))) + text
		}
		packets = append(packets, []byte(text))
	}
	return packets
}

// BenchmarkStatsD ingests lines over each transport. Sender and receiver share a
// process, so impl=receive, which reads and discards the same packets, is the lower
// bound. bench/load measures a receiver in its own process.
func BenchmarkStatsD(b *testing.B) {
	dir := b.TempDir()
	for _, transport := range []struct{ name, address, network string }{
		{"udp", "udp://127.0.0.1:0", "udp"},
		{"tcp", "tcp://127.0.0.1:0", "tcp"},
		{"unixgram", "unixgram://" + filepath.Join(dir, "gram"), "unixgram"},
		{"unixstream", "unixstream://" + filepath.Join(dir, "stream"), "unix"},
		{"unixlines", "unixlines://" + filepath.Join(dir, "lines"), "unix"},
	} {
		if runtime.GOOS == "windows" && strings.HasPrefix(transport.name, "unix") {
			continue
		}
		packets := statsdPackets(transport.name == "unixstream")
		b.Run("transport="+transport.name+"/impl=ours", func(b *testing.B) {
			srv, err := statsd.New(statsd.Config{
				Store:     store.New(store.Options{}),
				Listeners: []statsd.ListenerConfig{{Address: transport.address}},
				Limits:    statsd.Limits{NewPerSecond: -1},
			})
			must(b, err)
			must(b, srv.Listen())
			ctx, cancel := context.WithCancel(b.Context())
			done := make(chan error)
			go func() { done <- srv.Run(ctx) }()
			at := srv.Report().Listeners[0].Address
			at = at[strings.Index(at, "://")+3:]
			sendLines(b, transport.network, at, packets, srv.Scope().Counter(packetCounter).Value)
			cancel()
			must(b, <-done)
		})
		b.Run("transport="+transport.name+"/impl=receive", func(b *testing.B) {
			place := filepath.Join(b.TempDir(), "plain")
			if transport.network == "udp" || transport.network == "tcp" {
				place = "127.0.0.1:0"
			}
			at, received, end := plainReceiver(b, transport.network, place)
			sendLines(b, transport.network, at, packets, func() uint64 { return received() / uint64(len(packets[0])) })
			end()
		})
	}
}

// sendLines sends b.N lines and waits until all have arrived; received returns the
// number of packets that did. Over UDP, it never has more in flight than fit in a
// receive buffer.
func sendLines(b *testing.B, network, at string, packets [][]byte, received func() uint64) {
	conn, err := net.Dial(network, at)
	must(b, err)
	defer conn.Close()
	sent := 0
	send := func(n int) {
		for i := range n {
			_, err := conn.Write(packets[sent%len(packets)])
			must(b, err)
			sent++
			if network == "udp" && i%packetsUnderWay == packetsUnderWay-1 || i == n-1 {
				for began := time.Now(); received() < uint64(sent); time.Sleep(20 * time.Microsecond) {
					if time.Since(began) > 30*time.Second {
						b.Fatalf("%d packets were sent, %d came", sent, received())
					}
				}
			}
		}
	}
	send(2 * len(packets)) // names are made once
	b.ReportAllocs()
	b.ResetTimer()
	m := budget.StartMeter(b)
	send((b.N + linesPerPacket - 1) / linesPerPacket)
	m.Report("cpu-ns/op", 1)
}

// plainReceiver reads and discards. It returns its address, a function for the number
// of bytes so far, and a function that stops it.
func plainReceiver(b *testing.B, network, place string) (at string, received func() uint64, end func()) {
	var n atomic.Uint64
	read := func(r io.Reader) {
		buf := make([]byte, 64<<10)
		for {
			k, err := r.Read(buf)
			n.Add(uint64(k))
			if err != nil {
				return
			}
		}
	}
	if network == "udp" || network == "unixgram" {
		conn, err := net.ListenPacket(network, place)
		must(b, err)
		go read(conn.(net.Conn))
		return conn.LocalAddr().String(), n.Load, func() { conn.Close() }
	}
	l, err := net.Listen(network, place)
	must(b, err)
	go func() {
		if conn, err := l.Accept(); err == nil {
			read(conn)
			conn.Close()
		}
	}()
	return l.Addr().String(), n.Load, func() { l.Close() }
}
