package server_test

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/bootstrap"
	"github.com/statsd-admin/statsd-admin/internal/waittest"
	"github.com/statsd-admin/statsd-admin/statsd/report"
)

// TestSettingsOfInput reads settings of the StatsD input from a file and checks their
// visible effects.
func TestSettingsOfInput(t *testing.T) {
	const common = "admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}\nstats_flush_on_admin: true\n" +
		"statsd: {listeners: [{name: in, address: 'udp://127.0.0.1:0'}], "
	for _, tt := range []struct {
		name, yaml, line, path, want string
	}{
		{"negative-counters", "parse: {negative_counters: gauge, gauge_counters: [{prefix: jobs.}]}}", "jobs.running:-2.5|c", "/stats", "jobs.running: -2.5\n"},
		{"observer", "exposition: {observer: summary}}", "rt:12:14|ms", "/stats/metrics", "# TYPE rt summary\nrt{quantile=\"0\"} "},
		{"observer-count", "exposition: {observer: summary}}", "rt:12:14|ms", "/stats/metrics?histogram_buckets=cumulative", "# TYPE rt histogram\n"},
		{"timer-unit", "exposition: {timer_unit: s}}", "rt:1500|ms", "/stats/metrics", "rt_sum{} 1.5\n"},
		{"counter-suffix", "exposition: {counter_suffix: total}}", "hits:3|c", "/stats/metrics", "hits_total{} 3\n"},
		{"prefix", "exposition: {prefix: my_}}", "hits:3|c", "/stats/metrics", "my_hits{} 3\n"},
		{"gauge-signs", "parse: {gauge_signs: absolute}}", "level:-3|g", "/stats", "level: -3\n"},
		{"container", "parse: {container: tag}}", "hits:3|c|c:ci-abc", "/stats/metrics", "hits{container_id=\"abc\"} 3\n"},
		{"compat", "exposition: {compat: statsd_exporter}}", "a--é:1|c", "/stats/metrics", "a__{} 1\n"},
		{"name-prefix", "prefix: in}", "hits:3|c", "/stats", "in.hits: 3\n"},
		{"no-tags-extracted", "prefix: ''}", "cluster.shop.rq_total:3|c", "/stats/metrics", "cluster_shop_rq_total{} 3\n"},
		{"tags-extracted", "extract_tags: true}", "cluster.shop.rq_total:3|c", "/stats/metrics", "cluster_rq_total{proxy_cluster_name=\"shop\"} 3\n"},
		{"tags-given", "extract_tags: true}", "cluster.shop.rq_total:3|c|#a:b", "/stats/metrics", "cluster_shop_rq_total{a=\"b\"} 3\n"},
		{"self-metrics", "self_metrics: statsd_exporter}", "hits:3|c|#a:b", "/stats/metrics", "\nstatsd_exporter_events_total{type=\"counter\"} 1\n"},
		{"self-metrics-name", "self_metrics: statsd_exporter}", "hits:3|c|#a:b", "/stats", "compat.statsd_exporter_tags_total: 1\n"},
		{"style-off", "parse: {graphite: false}}", "hits;a=b:3|c", "/stats", "hits;a=b: 3\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, conn := startUDP(t, common+tt.yaml)
			if _, err := conn.Write([]byte(tt.line)); err != nil {
				t.Fatal(err)
			}
			waittest.Until(t, "the line", func() bool { return s.StatsD().Report().Listeners[0].Lines == 1 })
			if got := s.get(t, tt.path); !strings.Contains(got, tt.want) {
				t.Errorf("%s has no %q:\n%s", tt.path, tt.want, got)
			}
		})
	}
}

// startUDP starts a server with this configuration and connects to its first StatsD
// listener, which uses UDP.
func startUDP(t *testing.T, yaml string) (*running, net.Conn) {
	t.Helper()
	c, err := bootstrap.Parse("test.yaml", []byte(yaml), bootstrap.Options{})
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := c.Server(bootstrap.Startup{})
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, cfg)
	conn, err := net.Dial("udp", strings.TrimPrefix(s.StatsD().Listeners()[0].Address, "udp://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return s, conn
}

// TestEventsReachSinks sends events and service checks through a sink for DogStatsD, which
// gets them at the last flush at the latest, and one for plain lines.
func TestEventsReachSinks(t *testing.T) {
	var receivers [2]net.PacketConn
	for i := range receivers {
		c, err := net.ListenPacket("udp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		receivers[i] = c
	}
	s, conn := startUDP(t, `
admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}
stats_flush_interval: 60s
statsd: {listeners: [{address: 'udp://127.0.0.1:0'}]}
sinks:
- {name: dog, filters: {origin: received}, prefix: p, statsd: {address: "`+receivers[0].LocalAddr().String()+`", format: dogstatsd}}
- {name: plain, filters: {origin: received}, statsd: {address: "`+receivers[1].LocalAddr().String()+`"}}
`)
	const events = "_e{2,3}:ab|c\\n|t:error|#k:v\n_sc|disk|1|m:full"
	if _, err := conn.Write([]byte("a:1|c\n _e{2,3}:ab|c\\n|t:error|#k:v\r\n_sc|disk|1|m:full\n_sc|disk|9\n_e{9,9}:a|b")); err != nil {
		t.Fatal(err)
	}
	waittest.Until(t, "all lines are counted", func() bool { return s.StatsD().Report().Listeners[0].Lines == 5 })
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"p.a:1|c\n" + events, "a:1|c"} {
		buf := make([]byte, 1<<16)
		if err := receivers[i].SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
			t.Fatal(err)
		}
		n, _, err := receivers[i].ReadFrom(buf)
		if string(buf[:n]) != want {
			t.Errorf("sink %d sent %q (%v), want %q", i, buf[:n], err, want)
		}
	}
}

// TestExplainedSeriesAreScraped compares the series and stats in explanations with
// the real ones after the lines have arrived.
func TestExplainedSeriesAreScraped(t *testing.T) {
	lines := []string{
		"plain:1|c", "9-lives.a b:1|c", "bare:1|c|#canary", "order:1|c|#b:1,a1:2,a:3", "same:1|c|#a-b:1,a.b:2", "own:1|c|#le:5,__x:6",
		"cluster.shop.rq:1|c", "cluster.cart.rq:1|c", "cluster.shop.depth:1|g", "listener.127.0.0.1_80.conns:7|g",
		"cluster.shop.given:1|c|#a:b", "cluster.shop.users:anna|s", "twice:1|c", "twice:1|g", "h--ö:1|g",
	}
	for name, settings := range map[string]string{
		"default":   "prefix: ''",
		"extract":   "extract_tags: true",
		"prefix":    "prefix: in, extract_tags: true",
		"prefixes":  "prefix: in, exposition: {prefix: my_, counter_suffix: total}",
		"extracted": "extract_tags: true, exposition: {prefix: my_, counter_suffix: total, compat: statsd_exporter, type_conflict: suffix}",
	} {
		t.Run(name, func(t *testing.T) {
			s, conn := startUDP(t, "admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}\nstats_flush_on_admin: true\n"+
				"statsd: {listeners: [{name: in, address: 'udp://127.0.0.1:0'}], "+settings+"}")
			var announced []report.Sample
			for i, line := range lines {
				announced = append(announced, s.StatsD().Explain([]byte(line)).Samples...)
				if _, err := conn.Write([]byte(line)); err != nil {
					t.Fatal(err)
				}
				waittest.Until(t, line, func() bool { return s.StatsD().Report().Listeners[0].Lines == uint64(i+1) })
			}
			if len(announced) != len(lines) {
				t.Fatalf("%d samples explained of %d", len(announced), len(lines))
			}
			scrape, stats := "\n"+s.get(t, "/stats/metrics"), "\n"+s.get(t, "/stats")
			for i, x := range announced {
				if !strings.Contains(scrape, "\n"+x.Series+" ") {
					t.Errorf("%q: the exposition has no %s", lines[i], x.Series)
				}
				if !strings.Contains(stats, "\n"+x.Stat+": ") {
					t.Errorf("%q: there is no stat %s", lines[i], x.Stat)
				}
			}
			if t.Failed() {
				t.Log(scrape)
			}
		})
	}
}

// TestStatsDOverTLS sends a line over TLS to listeners in both notations.
func TestStatsDOverTLS(t *testing.T) {
	dir := t.TempDir()
	root := x509.NewCertPool()
	root.AddCert(pair(t, dir, 1, time.Now().Add(time.Hour)))
	s := start(t, fromYAML(t, dir, `
admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}
statsd:
  listeners:
  - {address: "tls://127.0.0.1:0", tls: {certificate_chain: $DIR/cert.pem, private_key: $DIR/key.pem}}
  - {address: "tcp://127.0.0.1:0", tls: {certificate_chain: $DIR/cert.pem, private_key: $DIR/key.pem}}
`))
	for i, l := range s.StatsD().Listeners() {
		_, place, _ := strings.Cut(l.Address, "://")
		conn, err := tls.Dial("tcp", place, &tls.Config{RootCAs: root, ServerName: "admin.test"})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := conn.Write([]byte("hits:3|c\n")); err != nil {
			t.Fatal(err)
		}
		waittest.Until(t, l.Address, func() bool { return s.StatsD().Report().Listeners[i].Applied == 1 })
	}
	if got := s.get(t, "/stats?filter=^hits"); got != "hits: 6\n" {
		t.Errorf("%q", got)
	}
}
