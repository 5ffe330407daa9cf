//go:build !race

package server_test

import (
	"fmt"
	"net"
	"net/url"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/bench/budget"
	"github.com/statsd-admin/statsd-admin/internal/waittest"
)

// attacked is a server under attack by one kind of input.
type attacked struct {
	*running
	t     testing.TB
	sent  int // bytes
	conns []net.Conn
}

// connect opens a connection to an address and writes text to it. It stays open
// until the attack ends.
func (a *attacked) connect(address, text string) {
	a.t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		a.t.Fatal(err)
	}
	a.conns = append(a.conns, c)
	a.write(c, text)
}

func (a *attacked) write(c net.Conn, text string) {
	a.t.Helper()
	if _, err := c.Write([]byte(text)); err != nil {
		a.t.Fatal(err)
	}
	a.sent += len(text)
}

// admin connects to the administration port, sends a head and what follows it, and
// waits for the start of an answer if one is due.
func (a *attacked) admin(head, rest string, answered bool) {
	a.t.Helper()
	a.connect(a.Admin().Addr().String(), head+"\r\nhost: localhost\r\n"+rest)
	if answered {
		c := a.conns[len(a.conns)-1]
		if err := c.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
			a.t.Fatal(err)
		}
		if _, err := c.Read(make([]byte, 12)); err != nil {
			a.t.Fatal(err)
		}
	}
}

// mutate requests a mutation with a query.
func (a *attacked) mutate(path, query string) {
	a.sent += len(path) + len(query)
	a.Admin().Request("POST", path+"?"+query, nil)
}

// lines sends StatsD lines over TCP and waits until the last one counts.
func (a *attacked) lines(n int, line func(i int) string) {
	a.t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(a.StatsD().Report().Listeners[0].Address, "tcp://"))
	if err != nil {
		a.t.Fatal(err)
	}
	defer c.Close()
	before := a.StatsD().Report().Listeners[0].Lines
	var b strings.Builder
	for i := range n {
		b.WriteString(line(i) + "\n")
	}
	a.write(c, b.String())
	waittest.Until(a.t, "all lines count", func() bool { return a.StatsD().Report().Listeners[0].Lines == before+uint64(n) })
}

// attack is a kind of input that a client can make the process keep something for,
// as large and as often as is legal.
type attack struct {
	name  string
	yaml  string
	most  int // bytes that may be kept
	run   func(a *attacked)
	undo  func(a *attacked) // beside closing connections
	stays int               // bytes that may be kept afterwards; default 1 MiB
}

// attacks returns the attacks. Plain requests, which cost least, come first.
func attacks() []attack {
	const mib = 1 << 20
	long := func(i, n int) string { return fmt.Sprintf("%d%s", i, strings.Repeat("x", n)) }
	headers := strings.Repeat("x-"+strings.Repeat("h", 50)+": "+strings.Repeat("v", 50)+"\r\n", 60)
	return []attack{
		{name: "requests", most: mib, run: func(a *attacked) {
			for range 10_000 {
				a.sent += len("/ready")
				a.Admin().Request("GET", "/ready", nil)
			}
		}},
		{name: "headers", most: 200 * 64 << 10, run: func(a *attacked) {
			for range 200 {
				a.admin("GET /live HTTP/1.1", headers+"\r\n", true)
			}
		}},
		{name: "half-requests", most: 200 * 64 << 10, run: func(a *attacked) {
			for range 200 {
				a.admin("GET /live HTTP/1.1", headers, false)
			}
		}},
		{name: "half-bodies", most: 200 * 256 << 10, run: func(a *attacked) {
			for range 200 {
				a.admin("POST /runtime_modify HTTP/1.1", "content-length: 65000\r\n\r\n"+strings.Repeat("x", 64_000), false)
			}
		}},
		{name: "unread-answers", most: 200 * 256 << 10, run: func(a *attacked) {
			for range 200 {
				a.admin("GET /stats?format=json HTTP/1.1", "\r\n"+strings.Repeat("GET /stats?format=html HTTP/1.1\r\nhost: localhost\r\n\r\n", 50), false)
			}
		}},
		{name: "filters", most: 34 * mib, stays: 34 * mib, run: func(a *attacked) {
			for i := range 300 {
				q := "filter=" + url.QueryEscape(fmt.Sprintf("(a{100}|%d)", i)+strings.Repeat("[a-z]", 150))
				a.sent += len(q)
				a.get(a.t, "/stats?"+q)
			}
		}},
		{name: "runtime-values", most: 8 * mib, stays: 3 * mib, run: func(a *attacked) {
			for i := range 600 {
				a.mutate("/runtime_modify", fmt.Sprintf("k%d=%s", i, long(i, 4000)))
			}
		}, undo: func(a *attacked) {
			for i := range 600 {
				a.mutate("/runtime_modify", fmt.Sprintf("k%d=", i))
			}
		}},
		{name: "runtime-keys", most: 16 * mib, stays: 4 * mib, run: func(a *attacked) {
			for i := range 120 {
				a.mutate("/runtime_modify", join(100, func(j int) string { return fmt.Sprintf("k%d=1", i*100+j) }))
			}
		}, undo: func(a *attacked) {
			for i := range 120 {
				a.mutate("/runtime_modify", join(100, func(j int) string { return fmt.Sprintf("k%d=", i*100+j) }))
			}
		}},
		{name: "log-patterns", most: mib, run: func(a *attacked) {
			for i := range 200 {
				a.mutate("/logging", "paths="+join(500, func(j int) string { return fmt.Sprintf("%d*:3", i*500+j) }, ','))
			}
		}},
		{name: "audit", most: 3 * mib, stays: 3 * mib, run: func(a *attacked) {
			for i := range 1500 {
				a.mutate("/logging", "level="+long(i, 4000))
				a.mutate("/reset_counters", "filter="+long(i, 1000)+"&x="+long(i, 3000))
			}
		}},
		{name: "unknown-paths", most: mib, run: func(a *attacked) {
			for i := range 1500 {
				a.mutate("/"+long(i, 4000), long(i, 3000))
			}
		}},
		{name: "dry-runs", most: 3 * mib, stays: 3 * mib, run: func(a *attacked) {
			for i := range 500 {
				a.mutate("/runtime_modify", "dry_run&"+fmt.Sprintf("k%d=%s", i, long(i, 4000)))
			}
		}},
		{name: "temporary-settings", most: 8 * mib, stays: 3 * mib, run: func(a *attacked) {
			for i := range 600 {
				a.mutate("/runtime_modify", fmt.Sprintf("ttl=1h&k%d=%s", i, long(i, 4000)))
			}
		}, undo: func(a *attacked) {
			for i := range 600 {
				a.mutate("/runtime_modify", fmt.Sprintf("k%d=", i))
			}
		}},
		{name: "lookups", most: 3 * mib, stays: 3 * mib, run: func(a *attacked) {
			a.mutate("/stats/recentlookups/enable", "")
			a.lines(2000, func(i int) string { return fmt.Sprintf("%s%d:1|c", strings.Repeat("n", 240), i) })
		}},
		{name: "rejected-lines", most: mib, run: func(a *attacked) {
			a.lines(2000, func(i int) string { return long(i, 8000) })
		}},
		{name: "events", most: 3 * mib, stays: 3 * mib, run: func(a *attacked) {
			a.lines(2000, func(i int) string {
				title, text := long(i, 3000), long(i, 4000)
				return fmt.Sprintf("_e{%d,%d}:%s|%s", len(title), len(text), title, text)
			})
		}},
		{name: "stats-streams", most: 32 * mib, run: func(a *attacked) {
			for i := range 64 {
				a.admin("GET /stats/stream?filter="+fmt.Sprintf("(%d|.*)", i)+strings.Repeat("x*", 400)+" HTTP/1.1", "\r\n", true)
			}
			for round := range 3 {
				a.lines(3000, func(i int) string { return fmt.Sprintf("stream.%d:%d|g", i, round) })
			}
		}, undo: func(a *attacked) { a.StatsD().Forget(func(string) bool { return true }) }, stays: 16 * mib}, // in the history
		{name: "circuit-streams", yaml: "stats_sinks: [{name: envoy.stat_sinks.hystrix}]\n", most: 4 * mib, run: func(a *attacked) {
			for range 16 {
				a.admin("GET /hystrix_event_stream HTTP/1.1", "\r\n", true)
			}
		}},
		{name: "bundles", most: mib, run: func(a *attacked) {
			for range 5 {
				a.mutate("/bundle", "")
			}
		}},
		{name: "relay", yaml: "RELAY", most: 8 * mib, run: func(a *attacked) {
			for part := range 20 {
				a.lines(2000, func(i int) string { return fmt.Sprintf("relayed:%d|c|#v:%s", part, strings.Repeat("v", 200)) })
			}
		}, stays: 8 * mib},
	}
}

// start returns a server that is ready for tt.
func (tt attack) start(t testing.TB) *attacked {
	text := `
layered_runtime: {layers: [{name: admin, admin_layer: {}}]}
stats_flush_interval: 0.1s
`
	listener := "statsd: {listeners: [{address: \"tcp://127.0.0.1:0\"}]"
	if tt.yaml == "RELAY" {
		listener += ", relay: [{targets: [{name: a, address: \"tcp://127.0.0.1:1\", queue_bytes: 2097152}]}]"
	} else {
		text += tt.yaml
	}
	a := &attacked{running: run(t, fromText(t, text+listener+"}\n")), t: t}
	a.lines(1, func(int) string { return "warm:1|c" })
	a.get(t, "/stats")
	a.get(t, "/config_dump") // the first one prepares messages once
	return a
}

// memory returns the bytes in use by heap and stacks.
func memory() int {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc + m.StackInuse)
}

// TestAmplification runs each attack and compares the memory of heap and stacks with a
// bound. What ends with the client returns to the start.
func TestAmplification(t *testing.T) {
	for _, tt := range attacks() {
		t.Run(tt.name, func(t *testing.T) {
			a := tt.start(t)
			before := memory()
			tt.run(a)
			kept := memory() - before
			if kept > tt.most {
				t.Errorf("%d bytes are kept of %d sent, at most %d are allowed", kept, a.sent, tt.most)
			}
			for _, c := range a.conns {
				c.Close()
			}
			if tt.undo != nil {
				tt.undo(a)
			}
			stays, left := max(tt.stays, 1<<20), 0
			waittest.Until(t, "memory returns", func() bool {
				left = memory() - before
				return left <= stays
			})
			t.Logf("%s: %d KiB kept of %d KiB sent, at most %d allowed; %d KiB after the end",
				tt.name, kept>>10, a.sent>>10, tt.most>>10, left>>10)
		})
	}
}

// BenchmarkAmplification measures the processor time that the attacks take for each
// byte sent, clients included.
func BenchmarkAmplification(b *testing.B) {
	for _, tt := range attacks() {
		b.Run("input="+tt.name, func(b *testing.B) {
			m := budget.StartMeter(b)
			sent := 0
			for range b.N {
				m.Stop()
				a := tt.start(b)
				runtime.GC()
				m.Start()
				tt.run(a)
				m.Stop()
				sent = a.sent
				for _, c := range a.conns {
					c.Close()
				}
			}
			m.Report("cpu-ns/B", sent)
		})
	}
}

// join joins n texts.
func join(n int, text func(i int) string, sep ...rune) string {
	if sep == nil {
		sep = []rune{'&'}
	}
	var all []string
	for i := range n {
		all = append(all, text(i))
	}
	return strings.Join(all, string(sep))
}
