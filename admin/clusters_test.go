package admin

import (
	"fmt"
	"io"
	"math"
	"net/netip"
	"slices"
	"strings"
	"testing"

	adminv3 "github.com/envoyproxy/go-control-plane/envoy/admin/v3"

	"github.com/statsd-admin/statsd-admin/internal/guard"
	"github.com/statsd-admin/statsd-admin/internal/wire"
	"github.com/statsd-admin/statsd-admin/upstream/status"
)

// clusterRows are requests for clusters; see goldenRows.
var clusterRows = []goldenRow{
	{"clusters", "GET", "/clusters", "", nil},
	{"clusters-version", "GET", "/clusters?format=", "", func(w *world) { w.clusterVersion = "v7" }},
	{"clusters-not-loaded", "GET", "/clusters", "", func(w *world) { w.clusterVersion, w.clusters = "", nil }},
	{"clusters-unknown-format", "GET", "/clusters?format=xml", "", func(w *world) { w.clusters = nil }},
	{"clusters-json", "GET", "/clusters?format=json", "", nil},
	{"clusters-json-none", "GET", "/clusters?format=json", "", func(w *world) { w.clusters = nil }},
}

type worldClusters world

func (c *worldClusters) Version() string { return c.clusterVersion }

// Statuses reuses one variable for all clusters and one for all hosts, as
// implementations can.
func (c *worldClusters) Statuses(yield func(*status.Cluster) bool) { c.show(c.clusters, yield) }

func (c *worldClusters) Tracked(yield func(*status.Cluster) bool) {
	c.show(slices.DeleteFunc(slices.Clone(c.clusters), func(w worldCluster) bool { return !slices.Contains(c.tracked, w.Name) }), yield)
}

func (c *worldClusters) show(clusters []worldCluster, yield func(*status.Cluster) bool) {
	var shown status.Cluster
	for _, w := range clusters {
		shown = w.Cluster
		if w.hosts != nil {
			shown.Hosts = func(yield func(*status.Host) bool) {
				var shown status.Host
				for _, h := range w.hosts {
					shown = h
					if !yield(&shown) {
						return
					}
				}
			}
		}
		if !yield(&shown) {
			return
		}
	}
}

// worldCluster is a cluster with its hosts.
type worldCluster struct {
	status.Cluster
	hosts []status.Host
}

func limits(connections, pending, requests, retries uint64) status.BreakerLimits {
	return status.BreakerLimits{MaxConnections: connections, MaxPendingRequests: pending, MaxRequests: requests, MaxRetries: retries}
}

func rates(average, threshold, localAverage, localThreshold float64) *status.OutlierRates {
	return &status.OutlierRates{Average: average, Threshold: threshold, LocalAverage: localAverage, LocalThreshold: localThreshold}
}

func usualBreakers() [2]status.BreakerLimits {
	return [2]status.BreakerLimits{limits(2048, 1024, 1024, 3), limits(1024, 1024, 1024, 3)}
}

func usualStats(n uint64) []status.HostStat {
	return []status.HostStat{{Name: "cx_active", Gauge: true, Value: 2 * n}, {Name: "cx_connect_fail", Gauge: false, Value: 0}, {Name: "cx_total", Gauge: false, Value: 19 * n}, {Name: "rq_active", Gauge: true, Value: n},
		{Name: "rq_error", Gauge: false, Value: 3 * n}, {Name: "rq_success", Gauge: false, Value: 240 * n}, {Name: "rq_timeout", Gauge: false, Value: 0}, {Name: "rq_total", Gauge: false, Value: 243 * n}}
}

func usualClusters() []worldCluster {
	at := netip.MustParseAddrPort
	host := func(h status.Host, n uint64) status.Host {
		h.Stats, h.Weight = usualStats(n), max(h.Weight, 1)
		return h
	}
	none := rates(-1, -1, -1, -1)
	return []worldCluster{
		{status.Cluster{Name: "a:empty", ObservabilityName: "shown_so", AddedViaAPI: true, EDSServiceName: "svc/empty",
			Breakers: [2]status.BreakerLimits{limits(0, 1<<40, 1, 2), {}}}, nil},
		{status.Cluster{Name: "backend_a", ObservabilityName: "backend_a", Outlier: none, Breakers: usualBreakers()}, []status.Host{
			host(status.Host{Address: at("10.20.0.7:8080"), Hostname: "a1.example.net", Zone: "z-2", SuccessRate: -1, LocalOriginSuccessRate: -1}, 1)}},
		{status.Cluster{Name: "many", ObservabilityName: "many", Outlier: rates(97.25, 12.5, 99.12345, 0), Breakers: usualBreakers()}, []status.Host{
			host(status.Host{Address: at("[2001:db8::1]:443"), Region: "r<1>", Zone: "z", SubZone: "s", Canary: true, Weight: 100,
				Health: status.FailedActiveHC | status.FailedOutlierCheck | status.FailedEDSHealth | status.ActiveHCTimeout, SuccessRate: 100, LocalOriginSuccessRate: 87.5}, 0),
			host(status.Host{Pipe: "/run/b.sock", Health: status.DegradedActiveHC | status.DegradedEDSHealth, Priority: 1, SuccessRate: 0, LocalOriginSuccessRate: 1e-7}, 2),
			host(status.Host{Address: at("10.0.0.1:0"), Health: 1<<10 - 1, Priority: 2, SuccessRate: 100.0 / 3, LocalOriginSuccessRate: 0}, math.MaxUint64/1000),
			{Address: at("10.0.0.2:1"), Health: status.PendingDynamicRemoval | status.PendingActiveHC | status.ExcludedViaImmediateHCFail, SuccessRate: -1, LocalOriginSuccessRate: -1},
		}},
		{status.Cluster{Name: "odd\nname\xff", ObservabilityName: "\"ö\"", Breakers: usualBreakers()}, []status.Host{
			host(status.Host{Pipe: "@a\nb", Hostname: "h\r\nc::d", SuccessRate: -1, LocalOriginSuccessRate: -1}, 1)}},
	}
}

// TestClustersJSONIsTheMessage decodes the response as a Clusters message and
// compares it with its canonical encoding.
func TestClustersJSONIsTheMessage(t *testing.T) {
	worlds := map[string][]worldCluster{"none": nil, "usual": usualClusters(), "no-names": {{}}}
	for bit := range 10 {
		worlds["flags "+status.Flags(1<<bit).String()] = []worldCluster{{status.Cluster{Name: "c"}, []status.Host{{Health: 1 << bit}}}}
	}
	for name, clusters := range worlds {
		w := newWorld()
		w.clusters = clusters
		s := newServer(t, Config{Sources: w.sources()})
		body := s.Request("GET", "/clusters?format=json", nil).Body
		checkMessage(t, name, body, &adminv3.Clusters{}, wire.OmitDefaults)
	}
}

// TestClustersWithoutThreshold checks that each unset ejection threshold is omitted
// from the JSON.
func TestClustersWithoutThreshold(t *testing.T) {
	for want, found := range map[string]*status.OutlierRates{
		"success_rate_ejection_threshold":              rates(50, 12.5, 50, 0),
		"local_origin_success_rate_ejection_threshold": rates(50, 0, 50, 12.5),
	} {
		w := newWorld()
		w.clusters = []worldCluster{{status.Cluster{Name: "c", Outlier: found}, nil}}
		body := string(newServer(t, Config{Sources: w.sources()}).Request("GET", "/clusters?format=json", nil).Body)
		if strings.Count(body, "_threshold\"") != 1 || !strings.Contains(body, "\""+want+"\": {\n    \"value\": 12.5\n   }") {
			t.Errorf("%+v: want %s alone in\n%s", found, want, body)
		}
	}
}

// manyClusters generates clusters one by one.
type manyClusters struct {
	clusters, hosts int
	seen            int // clusters handed out
}

func (c *manyClusters) Version() string { return "" }

func (c *manyClusters) Tracked(func(*status.Cluster) bool) {}

func (c *manyClusters) Statuses(yield func(*status.Cluster) bool) {
	var name []byte
	cluster := status.Cluster{Breakers: usualBreakers()}
	h := status.Host{Weight: 1, SuccessRate: -1, LocalOriginSuccessRate: -1, Hostname: "host.example.net", Zone: "z", Stats: usualStats(1)}
	cluster.Hosts = func(yield func(*status.Host) bool) {
		for i := range c.hosts {
			h.Address = netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}), 80)
			if !yield(&h) {
				return
			}
		}
	}
	for i := range c.clusters {
		c.seen++
		name = fmt.Appendf(name[:0], "cluster_%06d", i)
		cluster.Name = string(name)
		cluster.ObservabilityName = cluster.Name
		if !yield(&cluster) {
			return
		}
	}
}

// TestClustersAreStreamed compares the memory use of responses of very different
// sizes.
func TestClustersAreStreamed(t *testing.T) {
	for _, format := range []string{"text", "json"} {
		measure := func(clusters int) (allocs float64, bytes int64) {
			s := newServer(t, Config{Sources: Sources{Clusters: &manyClusters{clusters: clusters, hosts: 10}}})
			allocs = testing.AllocsPerRun(2, func() {
				r := &Request{query: Query{{"format", format}}}
				sink := discard{}
				w := s.response(&sink, r)
				if err := w.finish(s.clusters(w, r)); err != nil {
					t.Fatal(err)
				}
				bytes = sink.n
				if sink.longest > 2*responseBuffer {
					t.Errorf("%s: a chunk of %d bytes", format, sink.longest)
				}
			})
			return allocs, bytes
		}
		few, small := measure(10)
		many, large := measure(510)
		if large < 40*small {
			t.Fatalf("%s: %d and %d bytes", format, small, large)
		}
		// The source allocates two objects for each cluster name.
		if perHost := (many - few - 2*500) / 5000; perHost > 0.5 && format == "text" || perHost > 1.5 {
			t.Errorf("%s: %.2f allocations for each host", format, perHost)
		}
	}
}

// discard is a transport that counts and discards bytes.
type discard struct {
	n       int64
	longest int
	gone    bool
}

func (d *discard) begin(*Response, int) error        { return nil }
func (d *discard) end() error                        { return nil }
func (d *discard) abort()                            {}
func (d *discard) hangUp()                           {}
func (d *discard) watch(guard.Guard) <-chan struct{} { return nil }
func (d *discard) body(a, b []byte) error {
	if d.gone {
		return ErrGone
	}
	d.n += int64(len(a) + len(b))
	d.longest = max(d.longest, len(a)+len(b))
	return nil
}

// TestClustersStopWhenTheClientIsGone checks that no more clusters are visited after
// the client stops reading.
func TestClustersStopWhenTheClientIsGone(t *testing.T) {
	for _, format := range []string{"text", "json"} {
		source := &manyClusters{clusters: 1000, hosts: 10}
		s := newServer(t, Config{Sources: Sources{Clusters: source}})
		r := &Request{query: Query{{"format", format}}}
		w := s.response(&discard{gone: true}, r)
		if err := s.clusters(w, r); err == nil {
			t.Errorf("%s: no error though no client reads", format)
		}
		if source.seen > 100 {
			t.Errorf("%s: asked for %d clusters", format, source.seen)
		}
	}
}

var _ io.Writer = (*Response)(nil)

// TestStatsDoNotWalkClusters checks that a request for stats visits only clusters
// with per-host statistics.
func TestStatsDoNotWalkClusters(t *testing.T) {
	source := &manyClusters{clusters: 1000, hosts: 10}
	s := newServer(t, Config{Sources: Sources{Clusters: source}})
	for _, query := range []string{"", "?format=json", "?format=html", "?format=prometheus", "?usedonly", "/prometheus"} {
		if r := s.Request("GET", "/stats"+query, nil); r.Status != 200 || source.seen != 0 {
			t.Errorf("/stats%s: status %d after %d clusters", query, r.Status, source.seen)
		}
	}
}
