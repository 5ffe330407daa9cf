package statsd

import (
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/waittest"
)

// patient has l wait as long as a test may take, for places and at the end: on a
// busy machine all is slow.
func patient(l *live) *live {
	for _, l := range l.listeners {
		l.conns.patience, l.linger = time.Minute, time.Minute
	}
	return l
}

// TestShortConnectionsWait makes many connections from one address before the
// server takes in any, as clients do with one connection per line when the
// server is busy or being replaced. They are more than may be open at a time,
// but each has logs all it has to: none may be lost.
func TestShortConnectionsWait(t *testing.T) {
	for _, tt := range []struct {
		name string
		cfg  ListenerConfig
	}{
		{"per-address", ListenerConfig{PerAddress: 4}},
		{"total", ListenerConfig{Connections: 4, PerAddress: -1}},
		{"default", ListenerConfig{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.cfg.Address = "tcp://127.0.0.1:0"
			l := patient(newLive(t, Config{Listeners: []ListenerConfig{tt.cfg}}))
			const n = 500
			for i := range n {
				c, err := net.Dial("tcp", l.address(0))
				if err != nil {
					t.Fatal(err)
				}
				write(t, c, fmt.Sprintf("a:1|c\nb:%d|g\n", i))
				if err := c.Close(); err != nil {
					t.Fatal(err)
				}
			}
			l.run()
			waittest.Until(t, "all connections have ended", func() bool {
				r := l.report(0)
				ended := uint64(0)
				for _, k := range r.Ended {
					ended += k
				}
				return ended == n
			})
			if r := l.report(0); r.Ended["closed eof"] != n || l.counter("a") != n {
				t.Errorf("%d of %d lines; connections ended: %v", l.counter("a"), n, r.Ended)
			}
		})
	}
}

// TestStopTakesBacklog stops a server while connections wait to be accepted:
// their input is applied.
func TestStopTakesBacklog(t *testing.T) {
	for i := range 20 {
		l := patient(newLive(t, Config{Listeners: []ListenerConfig{{Address: "tcp://127.0.0.1:0"}}}))
		const n = 50
		for range n {
			c := l.dial(0)
			write(t, c, "a:1|c\n")
			if err := c.Close(); err != nil {
				t.Fatal(err)
			}
		}
		l.run()
		l.stop()
		if got := l.counter("a"); got != n {
			t.Fatalf("round %d: %d lines of %d", i, got, n)
		}
	}
}

// TestHandOverUnderShortConnections lets a line of servers follow each other
// while clients make a connection for each line. Each line is applied once,
// whichever server accepts its connection and whichever ends meanwhile.
func TestHandOverUnderShortConnections(t *testing.T) {
	rounds := 12
	if testing.Short() {
		rounds = 3
	}
	cfg := Config{Listeners: []ListenerConfig{{Address: "tcp://127.0.0.1:0", PerAddress: 8}}}
	server := patient(newLive(t, cfg)).run()
	place := server.address(0)
	stop := make(chan struct{})
	var senders sync.WaitGroup
	sent := make([]uint64, 4)
	progress := make(chan struct{}, 1)
	for i := range sent {
		senders.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				c, err := net.Dial("tcp", place)
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := io.WriteString(c, "a:1|c\n"); err != nil {
					t.Error(err)
				}
				if err := c.Close(); err != nil {
					t.Error(err)
				}
				sent[i]++
				select {
				case progress <- struct{}{}:
				default:
				}
			}
		})
	}
	var total uint64
	var ended []map[string]uint64
	for range rounds {
		for range 200 {
			<-progress
		}
		next := patient(newLive(t, inherit(t, server, cfg))).run()
		server.HandOver()
		server.TakeConnections(func(c Connection) bool {
			if err := next.Adopt(c); err != nil {
				t.Error(err)
			}
			return true
		})
		server.stop()
		total += server.counter("a")
		ended = append(ended, server.report(0).Ended)
		if logs := server.log.String(); strings.Contains(logs, "panic") {
			t.Error(logs)
		}
		server = next
	}
	close(stop)
	senders.Wait()
	want := uint64(0)
	for _, n := range sent {
		want += n
	}
	for end := time.Now().Add(30 * time.Second); total+server.counter("a") < want && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	if got := total + server.counter("a"); got != want {
		t.Errorf("%d lines of %d; connections ended: %v, at last %v, open %d", got, want, ended, server.report(0).Ended, server.Connections())
	}
}

// TestAdoptOfConnectionThatWasReset adopts a connection whose client is gone:
// it has no address any more, but its input still counts.
func TestAdoptOfConnectionThatWasReset(t *testing.T) {
	l := newLive(t, Config{Listeners: []ListenerConfig{{Address: "tcp://127.0.0.1:0"}}}).run()
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	client, err := net.Dial("tcp", other.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	conn, err := other.Accept()
	if err != nil {
		t.Fatal(err)
	}
	write(t, client, "a:1|c\n")
	if err := client.(*net.TCPConn).SetLinger(0); err != nil {
		t.Fatal(err)
	}
	if err := client.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := conn.(*net.TCPConn).File()
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	if err := l.Adopt(Connection{Address: "tcp://127.0.0.1:0", File: f, Read: []byte("b:1|c\n")}); err != nil {
		t.Fatal(err)
	}
	waittest.Until(t, "the connection ends", func() bool { return l.report(0).Connections == 0 && l.report(0).ConnectionsTotal == 1 })
	if a, b := l.counter("a"), l.counter("b"); a != 1 || b != 1 {
		t.Errorf("a = %d, b = %d; connections ended: %v", a, b, l.report(0).Ended)
	}
}
