package scrape

import (
	"testing"

	"github.com/statsd-admin/statsd-admin/e2e/daemon"
	"github.com/statsd-admin/statsd-admin/e2e/need"
	"github.com/statsd-admin/statsd-admin/e2e/promserver"
)

// TestPrometheusServer lets a Prometheus server with its defaults scrape the daemon, and
// queries it for known values and for the types of all metrics.
func TestPrometheusServer(t *testing.T) {
	need.Program(t, "prometheus")
	d := daemon.Start(t, daemon.Config{})
	populate(t, d)
	p := promserver.Start(t, promserver.Config{Targets: []string{d.Admin}})
	p.Expect(`up{job="daemon"}`, promserver.Is(1))
	p.Expect(`sum({__name__=~"shop_orders(_total)?"})`, promserver.Is(100))
	send(t, d, "shop.orders:17|c|#host:h1", "shop.level:12|g|#floor:1,room:a\\b\"c")
	p.Expect(`{__name__=~"shop_orders(_total)?", host="h1"}`, promserver.Is(67))
	p.Expect(`max_over_time({__name__=~"shop_orders(_total)?", host="h1"}[5m]) - min_over_time({__name__=~"shop_orders(_total)?", host="h1"}[5m])`, promserver.Is(17))
	p.Expect(`increase({__name__=~"shop_orders(_total)?", host="h1"}[5m])`, promserver.Within(17, 40)) // it extrapolates
	p.Expect(`shop_level{floor="1"}`, promserver.Is(12))
	p.Expect(`shop_level{room="a\\b\"c"}`, promserver.Is(12))
	p.Expect(`shop_depth`, promserver.Is(-2.5))
	p.Expect(`shop_latency_count`, promserver.Is(100))
	p.Expect(`shop_latency_sum`, promserver.Is(5050))
	p.Expect(`shop_latency_bucket{le="50"}`, promserver.Is(50))
	p.Expect(`shop_latency_bucket{le="+Inf"}`, promserver.Is(100))
	p.Expect(`histogram_quantile(0.5, shop_latency_bucket)`, promserver.Within(25, 50.001))
	p.Expect(`histogram_quantile(0.95, shop_latency_bucket)`, promserver.Within(50, 100))
	p.Expect(`shop_sampled_count`, promserver.Is(1000))
	types := p.Types()
	for name, want := range map[string]string{"shop_orders": "counter", "shop_level": "gauge", "shop_latency": "histogram", "proxy_ingest_lines": "counter"} {
		if types[name] != want {
			t.Errorf("Prometheus takes %s for a %q, want %q", name, types[name], want)
		}
	}
	for name, typ := range types {
		if typ == "unknown" {
			t.Errorf("Prometheus does not know the type of %s", name)
		}
	}
	p.Expect(`max_over_time(up{job="daemon"}[5m]) == min_over_time(up{job="daemon"}[5m])`, promserver.Is(1))
	p.Expect(`scrape_samples_scraped{job="daemon"} == scrape_samples_post_metric_relabeling{job="daemon"}`, promserver.Within(100, 1e6))
}
