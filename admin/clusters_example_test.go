package admin_test

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/statsd-admin/statsd-admin/admin"
)

// ownManager is the cluster manager of a proxy: it replaces its list of
// upstreams as a whole, so that readers need no lock.
type ownManager struct{ upstreams []upstream }

type upstream struct {
	name     string
	backends []netip.AddrPort
}

// Version implements admin.Clusters.
func (m *ownManager) Version() string { return "" }

// WithHostStats implements admin.Clusters: no hosts have statistics of their own.
func (m *ownManager) WithHostStats(func(*admin.Cluster) bool) {}

// All implements admin.Clusters with one variable for all clusters and one for
// all hosts.
func (m *ownManager) All(yield func(*admin.Cluster) bool) {
	var c admin.Cluster
	var h admin.Host
	for _, u := range m.upstreams {
		c = admin.Cluster{Name: u.name, ObservabilityName: u.name, Hosts: func(yield func(*admin.Host) bool) {
			for _, address := range u.backends {
				h = admin.Host{Address: address, Weight: 1, SuccessRate: -1, LocalOriginSuccessRate: -1}
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

// A proxy with a cluster manager of its own shows its clusters.
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
