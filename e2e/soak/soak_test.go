package soak

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/e2e/daemon"
)

// config has limits that the senders reach, and stats that expire.
const config = `
admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}
stats_flush_interval: 0.5s
statsd:
  listeners:
  - {name: udp, address: "udp://127.0.0.1:0"}
  - {name: tcp, address: "tcp://127.0.0.1:0"}
  - {name: unixstream, address: "unixstream://$DIR/stream.sock"}
  limits: {series: 5000, series_per_name: 500, values_per_tag_key: 2000}
  ttl: {counter: 20s, gauge: 20s, histogram: 20s, set: 20s}
`

// pieces are the parts of hostile lines.
func pieces() []string {
	return []string{
		"a", "b.c", "x-y", "häß", "\xff\xfe", "\x00", "|", ":", "#", "@", ",", ";", "[", "]", "=", "\r", " ", "1", "-1", "1e308", "nan", "inf", "0x10",
		"c", "g", "ms", "h", "d", "s", "@0.1", "@1e-6", "@0", "#k:v", "#le:1,__name__:x", "_e{5,5}:hello|world", "_e{9,9}:a|b", "_sc|db|2|m:x", "_sc|",
		strings.Repeat("long", 3000), strings.Repeat("s.", 40), "T1700000000", "c:ci-1", "e:x", "card:low",
	}
}

func hostile(r *rand.Rand, all []string) string {
	var b strings.Builder
	for range 1 + r.IntN(12) {
		b.WriteString(all[r.IntN(len(all))])
	}
	if r.IntN(2) == 0 { // one that is right, with ever new names and tags
		fmt.Fprintf(&b, "\nn%d:%d|%s|#k%d:%d\n", r.IntN(20_000), r.IntN(100), []string{"c", "g", "ms", "s"}[r.IntN(4)], r.IntN(3), r.IntN(5000))
	}
	return b.String()
}

// work runs f repeatedly until ctx is done.
func work(wg *sync.WaitGroup, ctx context.Context, f func(r *rand.Rand)) {
	seed := rand.Uint64()
	wg.Go(func() {
		r := rand.New(rand.NewPCG(seed, 1))
		for ctx.Err() == nil {
			f(r)
		}
	})
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

func TestSoak(t *testing.T) {
	length := 5 * time.Second
	if s := os.Getenv("SOAKTIME"); s != "" {
		var err error
		if length, err = time.ParseDuration(s); err != nil {
			t.Fatal(err)
		}
	}
	d := daemon.Start(t, daemon.Config{YAML: config})
	ctx, stop := context.WithTimeout(t.Context(), length)
	defer stop()
	var wg sync.WaitGroup
	all := pieces()

	// Counts that must be exact in the end. They are written all the time, so their
	// stats do not expire.
	var tracked atomic.Uint64
	steady, err := net.Dial("tcp", d.Address("tcp"))
	if err != nil {
		t.Fatal(err)
	}
	work(&wg, ctx, func(*rand.Rand) {
		if _, err := io.WriteString(steady, "tracked.total:1|c\ntracked.timer:7|ms\n"); err != nil {
			t.Error(err)
		}
		tracked.Add(1)
		pause(ctx, time.Millisecond)
	})
	var packets atomic.Uint64
	udp, err := net.Dial("udp", d.Address("udp"))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		work(&wg, ctx, func(r *rand.Rand) {
			if _, err := io.WriteString(udp, hostile(r, all)); err == nil {
				packets.Add(1)
			}
			pause(ctx, 500*time.Microsecond)
		})
	}
	for _, to := range []struct{ network, address string }{{"tcp", d.Address("tcp")}, {"unix", filepath.Join(d.Dir, "stream.sock")}} {
		work(&wg, ctx, func(r *rand.Rand) { // connections that end anyhow
			c, err := net.Dial(to.network, to.address)
			if err != nil {
				t.Error(err)
				return
			}
			for range r.IntN(20) {
				_, _ = io.WriteString(c, hostile(r, all)) // the daemon may have closed it
			}
			if tcp, ok := c.(*net.TCPConn); ok && r.IntN(3) == 0 {
				_ = tcp.SetLinger(0)
			}
			_ = c.Close()
			pause(ctx, 5*time.Millisecond)
		})
	}
	client := &http.Client{Timeout: daemon.Patience}
	var requests atomic.Uint64
	ask := func(method, path string, header ...string) {
		req, err := http.NewRequestWithContext(ctx, method, "http://"+d.Admin+path, nil)
		if err != nil {
			t.Error(err)
			return
		}
		for i := 0; i < len(header); i += 2 {
			req.Header.Set(header[i], header[i+1])
		}
		resp, err := client.Do(req)
		if err != nil {
			if ctx.Err() == nil {
				t.Errorf("%s %s: %v", method, path, err)
			}
			return
		}
		defer resp.Body.Close()
		_, _ = io.Copy(io.Discard, resp.Body)
		requests.Add(1)
		if resp.StatusCode >= 500 && resp.StatusCode != 503 {
			t.Errorf("%s %s: status %d", method, path, resp.StatusCode)
		}
	}
	accepts := []string{
		"text/plain;version=0.0.4", "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8",
		"application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;escaping=values", "text/plain;version=1.0.0;escaping=dots",
	}
	for _, accept := range accepts {
		work(&wg, ctx, func(*rand.Rand) {
			ask("GET", "/stats/metrics", "accept", accept)
			pause(ctx, 100*time.Millisecond)
		})
	}
	paths := []string{
		"/", "/stats", "/stats?format=json&usedonly", "/stats?format=html&filter=n1", "/stats?histogram_buckets=detailed", "/ingest", "/ingest?format=json",
		"/ingest/events", "/ingest/explain?line=a:1%7Cc", "/server_info", "/memory", "/ready", "/stats/recentlookups", "/stats?filter=(a%2B)%2Bx", "/nothing",
	}
	work(&wg, ctx, func(r *rand.Rand) {
		ask("GET", paths[r.IntN(len(paths))])
		pause(ctx, 20*time.Millisecond)
	})
	mutations := []string{
		"/stats/recentlookups/enable", "/stats/recentlookups/disable", "/stats/recentlookups/clear", "/logging?level=warning",
		"/runtime_modify?soak=1", "/runtime_modify?soak=", "/reopen_logs", "/healthcheck/fail", "/healthcheck/ok", "/ingest/forget?prefix=n1",
	}
	work(&wg, ctx, func(r *rand.Rand) {
		ask("POST", mutations[r.IntN(len(mutations))])
		pause(ctx, 50*time.Millisecond)
	})
	var events atomic.Uint64
	for range 4 {
		work(&wg, ctx, func(r *rand.Rand) {
			stream(ctx, d, &events, time.Duration(r.IntN(3000))*time.Millisecond)
			pause(ctx, 100*time.Millisecond)
		})
	}

	warm := length / 3
	pause(ctx, warm)
	before := resident(t, d)
	wg.Wait()
	after := resident(t, d)
	if err := steady.Close(); err != nil {
		t.Error(err)
	}
	want := strconv.FormatUint(tracked.Load(), 10)
	d.Wait("the tracked counter to be "+want, func(s daemon.Stats) bool { return s["tracked.total"] == want })
	stats := d.Stats()
	lines, kept := 0.0, 0.0
	for name, value := range stats {
		n, err := strconv.ParseFloat(value, 64)
		switch {
		case err != nil:
		case strings.HasPrefix(name, "ingest.lines.listener."):
			lines += n
		case strings.HasPrefix(name, "ingest.rejected."), strings.HasPrefix(name, "ingest.limited."):
			kept += n
		case strings.HasPrefix(name, "server.recovered_panics"):
			if n != 0 {
				t.Errorf("%v panics", n)
			}
		}
	}
	if lines == 0 || kept == 0 || kept > lines {
		t.Errorf("%v lines, of which %v were rejected or limited", lines, kept)
	}
	t.Logf("%v: %v lines, %v of them rejected or limited, %d datagrams, %d requests, %d lines of events; resident %d MiB, %+.1f MiB since %v",
		length, lines, kept, packets.Load(), requests.Load(), events.Load(), after>>20, float64(after-before)/(1<<20), warm)
	if after > 512<<20 {
		t.Errorf("%d MiB are resident", after>>20)
	}
}

// stream reads the event stream for a while.
func stream(ctx context.Context, d *daemon.Daemon, events *atomic.Uint64, length time.Duration) {
	ctx, stop := context.WithTimeout(ctx, length)
	defer stop()
	req, err := http.NewRequestWithContext(ctx, "GET", "http://"+d.Admin+"/circuit_event_stream", nil)
	if err != nil {
		return
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return // its time is over
	}
	defer resp.Body.Close()
	for s := bufio.NewScanner(resp.Body); s.Scan(); {
		events.Add(1)
	}
}

// resident returns the resident memory of the daemon in bytes.
func resident(t *testing.T, d *daemon.Daemon) int {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", d.PID))
	if err != nil {
		t.Skip("the system does not tell how much memory a process has")
	}
	f := strings.Fields(string(b))
	pages, err := strconv.Atoi(f[1])
	if err != nil {
		t.Fatal(err)
	}
	return pages * os.Getpagesize()
}
