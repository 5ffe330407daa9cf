// Command load measures the cost of StatsD ingestion: CPU seconds of the receiving
// process per million accepted lines, by transport.
//
//	go run ./bench/load                       # all cases
//	go run ./bench/load -case udp -seconds 10 -rate 500000
//	go run ./bench/load -rate 0               # as fast as the senders can
//	go run ./bench/load -case relay           # lines relayed over TCP to three targets
//
// It sends lines for 1,000 names: 60 % counters, 30 % timers, 10 % gauges. The
// receiver is a separate process of this program with a store, a StatsD server and a
// flush every second. All traffic stays on loopback.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/statsd-admin/statsd-admin/statsd/relay"
)

func main() {
	serveAt := flag.String("serve", "", "be the receiver with this `configuration` (used by the program itself)")
	only := flag.String("case", "", "measure only the cases whose name begins so")
	seconds := flag.Float64("seconds", 3, "how long to send in each case")
	rate := flag.Int("rate", 400_000, "lines a second to send; 0: as many as possible")
	rounds := flag.Int("rounds", 1, "how often to measure each case, alternating")
	flag.Parse()
	var err error
	if *serveAt != "" {
		err = serve(*serveAt, os.Stdin, os.Stdout)
	} else {
		err = run(os.Stdout, *only, time.Duration(*seconds*float64(time.Second)), *rate, *rounds)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(w io.Writer, only string, length time.Duration, rate, rounds int) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "load")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	fmt.Fprintf(w, "%s, %d CPUs, %s\n", runtime.Version(), runtime.NumCPU(), time.Now().Format(time.DateOnly))
	fmt.Fprintf(w, "%-16s %10s %10s %8s %9s %8s %8s %9s %9s %9s\n", "case", "sent", "accepted", "lost", "CPU s/M", "user", "system", "lines/s", "allocs/ln", "RSS MiB")
	found := false
	for range rounds {
		for _, c := range cases(dir) {
			if !strings.HasPrefix(c.name, only) {
				continue
			}
			found = true
			r, err := measure(self, c, length, rate)
			if err != nil {
				return fmt.Errorf("load: %s: %w", c.name, err)
			}
			million := float64(r.accepted) / 1e6
			fmt.Fprintf(w, "%-16s %10d %10d %8d %9.3f %8.3f %8.3f %9.0f %9.5f %9.1f\n", c.name, r.sent, r.accepted, r.lost,
				(r.user+r.system)/million, r.user/million, r.system/million,
				float64(r.accepted)/r.wall.Seconds(), float64(r.mallocs)/float64(r.accepted), float64(r.rss)/(1<<20))
		}
	}
	if !found {
		return fmt.Errorf("load: no case begins with %q", only)
	}
	return nil
}

// testCase is one way to send lines.
type testCase struct {
	name    string
	address string // to listen on; port 0 for any
	tags    bool   // three of them on each line
	lines   int    // in a packet
	maxRate int    // lines a second if a rate is asked for; 0 for no limit
	relay   relay.Key
	only    bool // the receiver only relays
}

func cases(dir string) []testCase {
	return []testCase{
		{name: "udp", address: "udp://127.0.0.1:0", lines: 25},
		{name: "udp-tags", address: "udp://127.0.0.1:0", lines: 25, tags: true},
		{name: "tcp", address: "tcp://127.0.0.1:0", lines: 25},
		{name: "tcp-tags", address: "tcp://127.0.0.1:0", lines: 25, tags: true},
		{name: "unixgram", address: "unixgram://" + filepath.Join(dir, "gram"), lines: 25},
		{name: "unixgram-tags", address: "unixgram://" + filepath.Join(dir, "gramtags"), lines: 25, tags: true},
		{name: "unixlines", address: "unixlines://" + filepath.Join(dir, "lines"), lines: 25},
		{name: "single-udp", address: "udp://127.0.0.1:0", lines: 1, maxRate: 100_000},
		{name: "relay-series", address: "tcp://127.0.0.1:0", lines: 25, tags: true, relay: relay.Series, only: true},
		{name: "relay-name", address: "tcp://127.0.0.1:0", lines: 25, tags: true, relay: relay.Name, only: true},
		{name: "relay-and-stats", address: "tcp://127.0.0.1:0", lines: 25, tags: true, relay: relay.Series},
	}
}

// result is the outcome of a case.
type result struct {
	sent, accepted, lost, mallocs uint64
	user, system                  float64 // seconds
	wall                          time.Duration
	rss                           uint64
}

// measure starts a receiver, sends every series once, and measures from there on.
func measure(self string, c testCase, length time.Duration, rate int) (r result, err error) {
	cfg := configuration{Address: c.address, Hash: c.relay, RelayOnly: c.only}
	if c.relay != relay.None {
		for range 3 {
			l, err := discard()
			if err != nil {
				return r, err
			}
			defer l.Close()
			cfg.Targets = append(cfg.Targets, "tcp://"+l.Addr().String())
		}
	}
	rc, err := startReceiver(self, cfg)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, rc.stop()) }()
	s, err := newSender(rc.address, packets(c))
	if err != nil {
		return r, err
	}
	defer s.close()
	// Twice, so that tables and pages have settled.
	warm, err := s.send(2 * len(s.packets))
	if err != nil {
		return r, err
	}
	before, err := rc.settle(uint64(warm * c.lines))
	if err != nil {
		return r, err
	}
	if c.maxRate != 0 {
		rate = min(rate, c.maxRate)
	}
	start := time.Now()
	n, err := s.sendFor(length, rate/c.lines)
	if err != nil {
		return r, err
	}
	r.wall = time.Since(start)
	r.sent = uint64(n * c.lines)
	after, err := rc.settle(before.Lines + r.sent)
	if err != nil {
		return r, err
	}
	r.accepted = after.Applied - before.Applied
	r.lost = r.sent - r.accepted
	r.mallocs = after.Mallocs - before.Mallocs
	r.user, r.system = after.User-before.User, after.System-before.System
	r.rss = after.RSS
	return r, nil
}

// discard returns a listener whose connections are read until it is closed.
func discard() (net.Listener, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_, _ = io.Copy(io.Discard, c)
			}()
		}
	}()
	return l, nil
}

// packets returns the datagrams or chunks of the case, which together hold one line
// for each of 1,000 names.
func packets(c testCase) [][]byte {
	const names = 1000
	var all [][]byte
	var p []byte
	for i := range names {
		kind, value := "counter", "1|c"
		switch {
		case i%10 >= 9:
			kind, value = "gauge", "42|g"
		case i%10 >= 6:
			kind, value = "timer", "12.5|ms"
		}
		p = fmt.Appendf(p, "app.requests.%s.name%d:%s", kind, i, value)
		if c.tags {
			p = fmt.Appendf(p, "|#region:eu-west-%d,service:checkout%d,status:%d", i%3, i%50, 200+i%5)
		}
		p = append(p, '\n')
		if (i+1)%c.lines == 0 {
			all = append(all, p)
			p = nil
		}
	}
	return all
}
