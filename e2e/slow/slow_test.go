package slow

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/e2e/daemon"
)

const config = `
admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}
stats_flush_interval: 0.2s
statsd:
  listeners: [{name: tcp, address: "tcp://127.0.0.1:0"}]
  limits: {new_series_per_second: -1, series_per_name: -1}
`

const (
	series    = 150_000
	stall     = 10 * time.Second // how long the server waits for 64 KiB to leave
	maxGrowth = 64 << 20         // bytes of resident memory
)

// TestSlowClients occupies all slots for large answers with two clients that stop
// reading and two that read 10 KiB a second. Meanwhile /ready answers, lines are
// applied, flushes go on, other scrapes are answered or rejected, and memory does not
// grow. Clients that do not read are disconnected.
func TestSlowClients(t *testing.T) {
	d := daemon.Start(t, daemon.Config{YAML: config})
	input := create(t, d)
	for range 3 {
		if n := scrape(t, d); n < 10<<20 {
			t.Fatalf("a scrape has %d bytes: too few to fill the buffers of the system", n)
		}
	}
	idle := d.Resident()
	dropped := d.Stats().Number("server.dropped_stat_flushes")

	start := time.Now()
	var stuck []*client
	for range 2 {
		stuck = append(stuck, open(t, d))
	}
	for range 2 {
		go open(t, d).crawl()
	}
	var answers []time.Duration
	peak, refused, sent := idle, 0, 0
	nextScrape := start.Add(time.Second)
	for time.Since(start) < stall+time.Second {
		asked := time.Now()
		if status, _ := get(t, d, "/ready"); status != 200 {
			t.Fatalf("/ready: status %d", status)
		}
		answers = append(answers, time.Since(asked))
		if _, err := fmt.Fprint(input, "meanwhile:1|c\nlatency:5|ms\n"); err != nil {
			t.Fatal(err)
		}
		sent++
		peak = max(peak, d.Resident())
		if time.Now().After(nextScrape) {
			nextScrape = time.Now().Add(5 * time.Second)
			asked := time.Now()
			status, _ := get(t, d, "/stats/metrics")
			if took := time.Since(asked); status == 503 {
				refused++
			} else if status != 200 {
				t.Errorf("another scrape: status %d after %v", status, took)
			}
		}
		time.Sleep(5 * time.Millisecond)
	}
	slices.Sort(answers)
	median, p99 := answers[len(answers)/2], answers[len(answers)*99/100]
	t.Logf("%d answers of /ready: median %v, p99 %v, longest %v; resident %d MiB, %+d MiB at most; %d scrapes turned away",
		len(answers), median, p99, answers[len(answers)-1], idle>>20, (peak-idle)>>20, refused)
	if peak-idle > maxGrowth {
		t.Errorf("resident memory grew from %d to %d MiB", idle>>20, peak>>20)
	}
	if refused == 0 {
		t.Error("no scrape was turned away while all places were taken")
	}
	for i, c := range stuck {
		if rest, err := c.rest(); err == nil {
			t.Errorf("client %d did not read for %v, then got the whole answer, %d bytes", i, stall+time.Second, rest)
		}
	}
	s := d.Wait("what was sent meanwhile", func(s daemon.Stats) bool { return s.Number("meanwhile") == float64(sent) })
	t.Logf("%.0f of %.0f flushes were missed", s.Number("server.dropped_stat_flushes")-dropped, time.Since(start).Seconds()/0.2)
	scrape(t, d)
}

// create creates the series and returns the connection for more lines.
func create(t *testing.T, d *daemon.Daemon) net.Conn {
	t.Helper()
	return createNames(t, d, series, func(i int) string {
		return fmt.Sprintf("load.service_with_a_long_name.requests:1|c|#instance:instance-%06d,zone:europe-west", i)
	})
}

// createNames creates n counters, each from its line or name, and returns the
// connection for more lines.
func createNames(t *testing.T, d *daemon.Daemon, n int, name func(i int) string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", d.Address("tcp"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	w := bufio.NewWriterSize(c, 64<<10)
	for i := range n {
		line := name(i)
		if !strings.Contains(line, ":") {
			line += ":1|c"
		}
		fmt.Fprintln(w, line)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	var last float64
	d.Until("all series", func() bool {
		_, body := get(t, d, "/stats?filter=%5Eingest.series.kind.counter%24")
		_, _ = fmt.Sscanf(body, "ingest.series.kind.counter: %g", &last)
		return last == float64(n)
	})
	return c
}

func get(t *testing.T, d *daemon.Daemon, path string) (int, string) {
	t.Helper()
	resp, err := http.Get("http://" + d.Admin + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return resp.StatusCode, string(body)
}

// scrape reads a whole exposition as soon as there is a free slot, and returns its
// size.
func scrape(t *testing.T, d *daemon.Daemon) (n int) {
	t.Helper()
	d.Until("a scrape", func() bool {
		status, body := get(t, d, "/stats/metrics")
		n = len(body)
		return status == 200
	})
	return n
}

// client has requested an exposition and read only its beginning.
type client struct {
	conn net.Conn
	resp *http.Response
}

func open(t *testing.T, d *daemon.Daemon) *client {
	t.Helper()
	c, err := net.Dial("tcp", d.Admin)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.(*net.TCPConn).SetReadBuffer(16 << 10); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintf(c, "GET /stats/metrics HTTP/1.1\r\nHost: %s\r\n\r\n", d.Admin); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReaderSize(c, 1<<10), nil)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != 200 {
		t.Fatalf("status %s for the first scrapes", strconv.Itoa(resp.StatusCode))
	}
	return &client{c, resp}
}

// crawl reads 10 KiB a second until the connection is closed.
func (c *client) crawl() {
	for {
		if _, err := io.CopyN(io.Discard, c.resp.Body, 1<<10); err != nil {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// rest reads the rest of the answer. The error is nil if it is complete.
func (c *client) rest() (int64, error) {
	if err := c.conn.SetReadDeadline(time.Now().Add(daemon.Patience)); err != nil {
		return 0, err
	}
	return io.Copy(io.Discard, c.resp.Body)
}
