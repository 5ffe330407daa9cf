package sinks

import (
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"

	"github.com/statsd-admin/statsd-admin/e2e/daemon"
	"github.com/statsd-admin/statsd-admin/e2e/need"
	"github.com/statsd-admin/statsd-admin/e2e/promserver"
)

// settings configures a daemon with StatsD input over TCP and, behind the flag -c,
// sinks.
const settings = `
admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}
stats_flush_interval: 0.2s
statsd:
  listeners: [{name: tcp, address: "tcp://127.0.0.1:0"}]
  ttl: {counter: %s}
sinks:
%s
`

func start(t *testing.T, ttl, sinks string) *daemon.Daemon {
	t.Helper()
	return daemon.Start(t, daemon.Config{YAML: fmt.Sprintf(settings, ttl, sinks)})
}

// send sends lines over TCP and returns once they have been applied.
func send(t *testing.T, d *daemon.Daemon, lines ...string) {
	t.Helper()
	before := d.Stats().Number("ingest.lines.listener.tcp")
	c, err := net.Dial("tcp", d.Address("tcp"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprint(c, strings.Join(lines, "\n"), "\n"); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	d.Wait("the lines", func(s daemon.Stats) bool { return s.Number("ingest.lines.listener.tcp") == before+float64(len(lines)) })
}

// TestPrometheusReceiver: Debian's Prometheus knows version 1.0 only. It is away for a
// while and doubts a request.
func TestPrometheusReceiver(t *testing.T) {
	need.Program(t, "prometheus")
	is, within := promserver.Is, promserver.Within
	g := open(t, "/api/v1/write")
	p := promserver.Start(t, promserver.Config{Args: []string{"--web.enable-remote-write-receiver"}})
	g.to(t, p.URL)
	d := start(t, "0s", fmt.Sprintf(`
- name: prom
  tags: {instance: "edge:1", job: statsd}
  filters: {include: [{prefix: shop}]}
  remote_write: {url: "%s", refresh: 1s, timeout: 1s}
`, g.url))
	var lines []string
	for i := range 100 {
		lines = append(lines, "shop.orders:1|c|#host:h1", fmt.Sprintf("shop.latency:%d|ms", i+1))
	}
	send(t, d, append(lines, "shop.depth:-2.5|g", "shop.depth:-2.5|g|#room:ünï\"", "other:1|c")...)
	p.Expect(`shop_orders{host="h1",instance="edge:1",job="statsd"}`, is(100))
	p.Expect(`shop_depth{room=""}`, is(-2.5))
	p.Expect(`shop_depth{room="ünï\""}`, is(-2.5))
	p.Expect(`shop_latency_count`, is(100))
	p.Expect(`shop_latency_sum`, is(5050))
	p.Expect(`shop_latency_bucket{le="50"}`, is(50))
	p.Expect(`histogram_quantile(0.95, shop_latency_bucket)`, within(50, 100))
	p.Expect(`increase(shop_orders[1m])`, within(99, 250)) // the first value counts; it extrapolates
	if v, found := p.Query(`other`); found {
		t.Errorf("a filtered counter is %v", v)
	}
	page := d.Get("/sinks")
	for _, want := range []string{"kind: remote_write\n", "target: " + g.url + "\n", "sent:\n"} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q in\n%s", want, page)
		}
	}

	want := 100.0
	for _, f := range faults {
		failed := g.failed.Load()
		g.fault.Store(f)
		send(t, d, "shop.orders:7|c|#host:h1")
		d.Until(f.name, func() bool { return g.failed.Load() > failed })
		g.to(t, p.URL)
		want += 7
		p.Expect(`shop_orders{host="h1"}`, is(want))
	}
	p.Expect(`max_over_time(shop_orders[5m]) - min_over_time(shop_orders[5m])`, is(want)) // from the 0 at its start

	d.Signal(syscall.SIGTERM)
	if status := d.Exit(); status != 0 {
		t.Errorf("status %d", status)
	}
	p.Gone(`shop_orders`)
}

// TestExpiredSeriesAreStale: what expires at the daemon vanishes in Prometheus at once.
func TestExpiredSeriesAreStale(t *testing.T) {
	need.Program(t, "prometheus")
	p := promserver.Start(t, promserver.Config{Args: []string{"--web.enable-remote-write-receiver"}})
	d := start(t, "1s", fmt.Sprintf(`
- tags: {instance: a}
  filters: {include: [{prefix: shop}]}
  remote_write: {url: "%s/api/v1/write", refresh: 0.5s, version: "1.0"}
`, p.URL))
	send(t, d, "shop.orders:5|c", "shop.level:1|g")
	p.Expect(`shop_orders`, promserver.Is(5))
	p.Gone(`shop_orders`)
	p.Expect(`shop_level`, promserver.Is(1))
	p.Expect(`max_over_time(shop_orders[5m])`, promserver.Is(5))
	send(t, d, "shop.orders:2|c")
	p.Expect(`shop_orders`, promserver.Is(2))
}
