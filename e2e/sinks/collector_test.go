package sinks

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"syscall"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	collectorpb "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	metrics "go.opentelemetry.io/proto/otlp/metrics/v1"
	"google.golang.org/protobuf/proto"

	"github.com/statsd-admin/statsd-admin/e2e/need"
)

// port is a TCP port that outlives the program behind it.
type port struct {
	net.Listener

	mu     sync.Mutex // guards the rest
	target string     // empty: connections are closed
	open   map[net.Conn]bool
}

func newPort(t *testing.T) *port {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &port{Listener: l, open: map[net.Conn]bool{}}
	var done sync.WaitGroup
	done.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			done.Go(func() { p.forward(c) })
		}
	})
	t.Cleanup(func() { _ = l.Close(); p.to(""); done.Wait() })
	return p
}

// to connects the port with a program, and breaks the connections with the last one.
func (p *port) to(target string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = target
	for c := range p.open {
		_ = c.Close()
	}
}

func (p *port) forward(client net.Conn) {
	defer client.Close()
	p.mu.Lock()
	target := p.target
	p.mu.Unlock()
	if target == "" {
		return
	}
	server, err := net.Dial("tcp", target)
	if err != nil {
		return
	}
	defer server.Close()
	p.mu.Lock()
	if p.target != target {
		p.mu.Unlock()
		return
	}
	p.open[client], p.open[server] = true, true
	p.mu.Unlock()
	var both sync.WaitGroup
	pipe := func(dst, src net.Conn) {
		_, _ = io.Copy(dst, src)
		_ = client.Close()
		_ = server.Close()
	}
	both.Go(func() { pipe(server, client) })
	both.Go(func() { pipe(client, server) })
	both.Wait()
	p.mu.Lock()
	delete(p.open, client)
	delete(p.open, server)
	p.mu.Unlock()
}

// otelCollector is the Collector's OTLP receiver behind two ports.
type otelCollector struct {
	t          *testing.T
	dir        string
	http, grpc *port
	cmd        *exec.Cmd
	ended      chan struct{}
}

func newCollector(t *testing.T) *otelCollector {
	t.Helper()
	c := &otelCollector{t: t, dir: t.TempDir(), http: newPort(t), grpc: newPort(t)}
	c.verdict("ok")
	c.start()
	t.Cleanup(c.kill)
	return c
}

// verdict sets what becomes of requests; see e2e/collector.
func (c *otelCollector) verdict(v string) {
	c.t.Helper()
	path := filepath.Join(c.dir, "verdict")
	if err := os.WriteFile(path+".new", []byte(v), 0o600); err != nil {
		c.t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		c.t.Fatal(err)
	}
}

// start starts the program on ports that were free a moment ago, until it gets them.
func (c *otelCollector) start() {
	c.t.Helper()
	for {
		var addresses [2]string
		var held [2]net.Listener
		for i := range held {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				c.t.Fatal(err)
			}
			held[i], addresses[i] = l, l.Addr().String()
		}
		for _, l := range held {
			_ = l.Close()
		}
		cmd := exec.Command(need.Collector(c.t), addresses[0], addresses[1], filepath.Join(c.dir, "requests"), filepath.Join(c.dir, "verdict"))
		var log bytes.Buffer
		cmd.Stderr = &log
		out, err := cmd.StdoutPipe()
		if err != nil {
			c.t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			c.t.Fatal(err)
		}
		if line, _ := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
			_ = cmd.Wait()
			if cmd.ProcessState.ExitCode() == 3 {
				continue
			}
			c.t.Fatalf("the collector ended:\n%s", &log)
		}
		c.cmd, c.ended = cmd, make(chan struct{})
		go func(ended chan struct{}) { _ = cmd.Wait(); close(ended) }(c.ended)
		c.http.to(addresses[0])
		c.grpc.to(addresses[1])
		return
	}
}

func (c *otelCollector) kill() {
	_ = c.cmd.Process.Kill()
	<-c.ended
	c.http.to("")
	c.grpc.to("")
}

// received is what a sink has delivered, by series as the exposition writes them.
type received struct {
	last  map[string]point // the last value
	sum   map[string]point // all values added
	falls []string         // totals that went back or have no start
}

// requests returns what arrived, by the attribute "sink" of the resource.
func (c *otelCollector) requests() map[string]*received {
	c.t.Helper()
	b, err := os.ReadFile(filepath.Join(c.dir, "requests"))
	if err != nil {
		c.t.Fatal(err)
	}
	all := map[string]*received{}
	for len(b) > 0 {
		n, w := binary.Uvarint(b)
		if w <= 0 || uint64(len(b)-w) < n {
			return all // it is being written
		}
		var req collectorpb.ExportMetricsServiceRequest
		if err := proto.Unmarshal(b[w:][:n], &req); err != nil {
			c.t.Fatal(err)
		}
		b = b[w:][n:]
		for _, rm := range req.ResourceMetrics {
			sink := labelsOf("", rm.Resource.Attributes).Get("sink")
			r := all[sink]
			if r == nil {
				r = &received{last: map[string]point{}, sum: map[string]point{}}
				all[sink] = r
			}
			for _, sm := range rm.ScopeMetrics {
				for _, m := range sm.Metrics {
					r.add(m)
				}
			}
		}
	}
	return all
}

func labelsOf(name string, attributes []*common.KeyValue) labels.Labels {
	set := map[string]string{}
	for _, a := range attributes {
		set[a.Key] = a.Value.GetStringValue()
	}
	if name != "" {
		set["__name__"] = name
	}
	return labels.FromMap(set)
}

func (r *received) add(m *metrics.Metric) {
	const ended = uint32(metrics.DataPointFlags_DATA_POINT_FLAGS_NO_RECORDED_VALUE_MASK)
	note := func(attributes []*common.KeyValue, p point, flags uint32, start uint64, total bool) {
		if flags&ended != 0 {
			return
		}
		id := labelsOf(m.Name, attributes).String()
		if total && (start == 0 || p.value < r.last[id].value || p.count < r.last[id].count) {
			r.falls = append(r.falls, id)
		}
		sum := r.sum[id]
		r.last[id], r.sum[id] = p, point{sum.value + p.value, sum.count + p.count, sum.sum + p.sum}
	}
	const cumulative = metrics.AggregationTemporality_AGGREGATION_TEMPORALITY_CUMULATIVE
	for _, p := range m.GetSum().GetDataPoints() {
		note(p.Attributes, point{value: float64(p.GetAsInt())}, p.Flags, p.StartTimeUnixNano, m.GetSum().AggregationTemporality == cumulative)
	}
	for _, p := range m.GetGauge().GetDataPoints() {
		note(p.Attributes, point{value: p.GetAsDouble()}, p.Flags, 0, false)
	}
	for _, p := range m.GetExponentialHistogram().GetDataPoints() {
		inBuckets := p.ZeroCount
		for _, n := range p.Positive.GetBucketCounts() {
			inBuckets += n
		}
		if inBuckets != p.Count {
			r.falls = append(r.falls, m.Name)
		}
		note(p.Attributes, point{count: float64(p.Count), sum: p.GetSum()}, p.Flags, p.StartTimeUnixNano, m.GetExponentialHistogram().AggregationTemporality == cumulative)
	}
}

// of returns the sum of counters and the number of values in a set of series.
func of(series map[string]point) (increments, values float64) {
	for id, p := range series {
		if counter.MatchString(id) {
			increments += p.value
		}
		values += p.count
	}
	return increments, values
}

var counter = regexp.MustCompile(`"shop\.c`)

// own returns a metric of a sink.
func own(t *testing.T, page, name, sink string) float64 {
	t.Helper()
	m := regexp.MustCompile(`(?m)^proxy_sink_` + name + `\{sink="` + sink + `"\} (\S+)$`).FindStringSubmatch(page)
	if m == nil {
		t.Fatalf("no %s of %s in\n%s", name, sink, page)
	}
	v, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestCollector sends totals and increments over HTTP and gRPC to the Collector's
// receiver, which is busy, refuses, is killed and dies between taking a request and
// answering. Totals are exact in the end. Of increments nothing counts twice, and
// missing points are counted as lost or doubtful.
func TestCollector(t *testing.T) {
	c := newCollector(t)
	sinks := []string{"http-total", "grpc-total", "http-delta", "grpc-delta"}
	yaml := ""
	for i, name := range sinks {
		p := []*port{c.http, c.grpc}[i%2]
		yaml += fmt.Sprintf(`
- name: %s
  filters: {include: [{prefix: shop}]}
  otlp: {url: "http://%s", protocol: %s, temporality: %s, compression: %s, timeout: 5s, batch_points: 7, refresh: 1s, resource: {sink: %[1]s}}
`, name, p.Addr(), []string{"http", "grpc"}[i%2], []string{"cumulative", "delta"}[i/2], []string{"none", "gzip", "gzip", "none"}[i])
	}
	d := start(t, "0s", yaml)
	r := rand.New(rand.NewPCG(5, 6))
	// through sends traffic until each sink has seen an error.
	through := func(what string) {
		t.Helper()
		before := d.Get("/stats/metrics?filter=^sink")
		send(t, d, traffic(r)...)
		for _, name := range sinks {
			d.Until(what+" at "+name, func() bool {
				return own(t, d.Get("/stats/metrics?filter=^sink"), "send_errors", name) > own(t, before, "send_errors", name)
			})
		}
	}
	send(t, d, traffic(r)...)
	for _, verdict := range []string{"busy", "later", "refused"} {
		c.verdict(verdict)
		through(verdict)
		c.verdict("ok")
	}
	c.kill()
	through("no receiver")
	c.start()
	for range 3 { // each time another sink may be first
		c.verdict("killed")
		send(t, d, traffic(r)...)
		select {
		case <-c.ended:
		case <-t.Context().Done():
		}
		c.kill()
		c.verdict("ok")
		c.start()
	}
	send(t, d, traffic(r)...)

	differ := ""
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%s\n%s", differ, d.Get("/sinks"))
		}
	})
	d.Until("everything to arrive", func() bool {
		page, want, got := d.Get("/stats/metrics?filter=^sink"), exposed(t, d, formats["otlp"]), c.requests()
		increments, values := of(want)
		differ = ""
		for i, name := range sinks {
			if got[name] == nil || own(t, page, "queue_bytes", name)+own(t, page, "owed_series", name) > 0 {
				differ += name + " is not done\n"
				continue
			}
			if i < 2 {
				differ += difference(got[name].last, want)
				continue
			}
			gotIncrements, gotValues := of(got[name].sum)
			missing, missingValues := increments-gotIncrements, values-gotValues
			lost, lostValues := own(t, page, "lost_increments", name), own(t, page, "lost_values", name)
			if missing < lost || missing > lost+own(t, page, "ambiguous_increments", name) ||
				missingValues < lostValues || missingValues > lostValues+own(t, page, "ambiguous_values", name) {
				differ += fmt.Sprintf("%s: %v increments and %v values are missing\n", name, missing, missingValues)
			}
		}
		return differ == ""
	})
	want := exposed(t, d, formats["otlp"])
	for name, got := range c.requests() {
		if len(got.falls) > 0 {
			t.Errorf("%s: totals fell: %q", name, got.falls)
		}
		if name != "http-delta" && name != "grpc-delta" {
			continue
		}
		for id, p := range got.sum {
			if counter.MatchString(id) && p.value > want[id].value || p.count > want[id].count {
				t.Errorf("%s: %s is %v, more than %v", name, id, p, want[id])
			}
		}
		if own(t, d.Get("/stats/metrics?filter=^sink"), "lost_increments", name) == 0 {
			t.Errorf("%s: nothing was refused", name)
		}
	}
	d.Signal(syscall.SIGTERM)
	if status := d.Exit(); status != 0 {
		t.Errorf("status %d", status)
	}
}
