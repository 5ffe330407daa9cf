package admin

import (
	"net/netip"
	"testing"

	"github.com/statsd-admin/statsd-admin/upstream/status"
)

// oneHost is a cluster with per-host statistics.
type oneHost struct{ stats []status.HostStat }

func (oneHost) Version() string { return "" }

func (o oneHost) Statuses(yield func(*status.Cluster) bool) {
	yield(&status.Cluster{Name: "c", ObservabilityName: "c", Hosts: func(yield func(*status.Host) bool) {
		yield(&status.Host{Address: netip.MustParseAddrPort("1.2.3.4:5"), Stats: o.stats})
	}})
}

func (o oneHost) Tracked(yield func(*status.Cluster) bool) { o.Statuses(yield) }

// TestRepeatedHostStatsAreOneSeries: a program can list a name twice, or a name of the
// server itself.
func TestRepeatedHostStatsAreOneSeries(t *testing.T) {
	s := start(t, Config{Sources: Sources{Clusters: oneHost{[]status.HostStat{
		{Name: "cx_total", Value: 7}, {Name: "cx_total", Value: 8}, {Name: "healthy", Value: 4}, {Name: "healthy", Gauge: true, Value: 3},
	}}}})
	for path, want := range map[string]string{
		"/stats?filter=endpoint": "cluster.c.endpoint.1.2.3.4_5.cx_total: 15\ncluster.c.endpoint.1.2.3.4_5.healthy: 1\n",
		"/stats?filter=endpoint&format=json": `{"stats":[{"name":"cluster.c.endpoint.1.2.3.4_5.cx_total","value":15},` +
			`{"name":"cluster.c.endpoint.1.2.3.4_5.healthy","value":1}]}`,
		"/stats/metrics?filter=endpoint": "# TYPE proxy_cluster_endpoint_cx_total counter\n" +
			`proxy_cluster_endpoint_cx_total{proxy_cluster_name="c",proxy_endpoint_address="1.2.3.4:5"} 15` + "\n" +
			"# TYPE proxy_cluster_endpoint_healthy gauge\n" +
			`proxy_cluster_endpoint_healthy{proxy_cluster_name="c",proxy_endpoint_address="1.2.3.4:5"} 1` + "\n",
	} {
		if a := get(t, s, path); a.body != want {
			t.Errorf("%s: got %s\nwant %s", path, a.body, want)
		}
	}
}
