package server_test

import (
	"net"
	"strings"
	"testing"

	"github.com/statsd-admin/statsd-admin/bootstrap"
	"github.com/statsd-admin/statsd-admin/server"
)

// TestSettingsOfInput reads settings of the StatsD input from a file and looks
// for their effect where users do.
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
		{"style-off", "parse: {graphite: false}}", "hits;a=b:3|c", "/stats", "hits;a=b: 3\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, err := bootstrap.Parse("test.yaml", []byte(common+tt.yaml), bootstrap.Options{})
			if err != nil {
				t.Fatal(err)
			}
			cfg, err := server.FromBootstrap(c, server.Boot{})
			if err != nil {
				t.Fatal(err)
			}
			s := start(t, cfg)
			conn, err := net.Dial("udp", strings.TrimPrefix(s.StatsD().Listeners()[0].Address, "udp://"))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if _, err := conn.Write([]byte(tt.line)); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the line", func() bool { return s.StatsD().Report().Listeners[0].Lines == 1 })
			if got := s.get(t, tt.path); !strings.Contains(got, tt.want) {
				t.Errorf("%s has no %q:\n%s", tt.path, tt.want, got)
			}
		})
	}
}
