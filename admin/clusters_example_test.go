package admin_test

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/statsd-admin/statsd-admin/admin"
	"github.com/statsd-admin/statsd-admin/upstream/status"
)

// ownManager is the cluster manager of a proxy. It replaces its list of upstreams as
// a whole, so readers need no lock.
type ownManager struct{ upstreams []upstream }

type upstream struct {
	name     string
	backends []netip.AddrPort
}

// Version implements admin.Clusters.
func (m *ownManager) Version() string { return "static" }

// Tracked implements admin.Clusters. No cluster has per-host statistics.
func (m *ownManager) Tracked(func(*status.Cluster) bool) {}

// Statuses implements admin.Clusters, reusing one variable for all clusters and one
// for all hosts.
func (m *ownManager) Statuses(yield func(*status.Cluster) bool) {
	var c status.Cluster
	var h status.Host
	for _, u := range m.upstreams {
		c = status.Cluster{Name: u.name, ObservabilityName: u.name, Hosts: func(yield func(*status.Host) bool) {
			for _, address := range u.backends {
				h = status.Host{Address: address, Weight: 1, SuccessRate: -1, LocalOriginSuccessRate: -1}
				if !yield(&h) {
					return
				}
			}
		}}
		if !yield(&c) {
			return
		}
	}
}

// A proxy shows the clusters of its own cluster manager.
func ExampleClusters() {
	m := &ownManager{[]upstream{{"checkout", []netip.AddrPort{netip.MustParseAddrPort("10.20.0.7:8080")}}}}
	s, err := admin.New(admin.Config{Sources: admin.Sources{Clusters: m}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for line := range strings.Lines(string(s.Request("GET", "/clusters", nil).Body)) {
		if strings.Contains(line, "10.20.0.7:8080::h") || strings.HasPrefix(line, "version") {
			fmt.Print(line)
		}
	}
	// Output:
	// version_info::static
	// checkout::10.20.0.7:8080::hostname::
	// checkout::10.20.0.7:8080::health_flags::healthy
	// checkout::10.20.0.7:8080::healthy::healthy
}
