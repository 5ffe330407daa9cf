package server

import (
	"github.com/statsd-admin/statsd-admin/admin"
	"github.com/statsd-admin/statsd-admin/upstream"
	"github.com/statsd-admin/statsd-admin/upstream/host"
)

// clusterViews shows the clusters of a manager to the admin port.
type clusterViews struct{ m *upstream.Manager }

// Version implements [admin.Clusters].
func (c clusterViews) Version() string { return c.m.Version() }

// All implements [admin.Clusters].
func (c clusterViews) All(yield func(*admin.Cluster) bool) { showClusters(c.m.Clusters, yield) }

// WithHostStats implements [admin.Clusters].
func (c clusterViews) WithHostStats(yield func(*admin.Cluster) bool) {
	showClusters(c.m.Tracked, yield)
}

// showClusters calls yield with each cluster of a walk. Each call has one
// variable for all clusters and one for all hosts.
func showClusters(walk func(func(*upstream.View) bool), yield func(*admin.Cluster) bool) {
	var shown admin.Cluster
	var rates admin.OutlierRates
	var hosts hostView
	walk(func(v *upstream.View) bool {
		shown = admin.Cluster{
			Name: v.Name, ObservabilityName: v.ObservabilityName, AddedViaAPI: v.AddedViaAPI, EDSServiceName: v.EDSServiceName,
			Hosts: func(yield func(*admin.Host) bool) {
				v.Hosts(func(h *host.Host) bool { return yield(hosts.show(h)) })
			},
		}
		if v.Outlier != nil {
			rates = admin.OutlierRates(*v.Outlier)
			shown.Outlier = &rates
		}
		for p, l := range v.Breakers {
			shown.Breakers[p] = admin.BreakerLimits(l)
		}
		return yield(&shown)
	})
}

// hostView holds what is shown of one host at a time.
type hostView struct {
	admin.Host
	stats [8]admin.HostStat
}

// show returns h until the next call.
func (v *hostView) show(h *host.Host) *admin.Host {
	a, l := h.Address(), h.Locality()
	for i, s := range h.Stats.All() {
		v.stats[i] = admin.HostStat(s)
	}
	v.Host = admin.Host{
		Address: a.IP, Pipe: a.Pipe, Hostname: h.Hostname(), Health: admin.HostHealth(h.Flags()), Weight: h.Weight(),
		Region: l.Region, Zone: l.Zone, SubZone: l.SubZone, Canary: h.Canary(), Priority: h.Priority(),
		SuccessRate: h.SuccessRate(), LocalOriginSuccessRate: h.LocalOriginSuccessRate(), Stats: v.stats[:],
	}
	return &v.Host
}
