package upstream

import (
	"slices"
	"strings"
	"time"

	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/host"
	"github.com/statsd-admin/statsd-admin/upstream/status"
)

// View is one version of a cluster with its configuration and its hosts.
type View struct {
	Name         string
	AddedViaAPI  bool
	Version      string    // of the update that brought it
	LastUpdated  time.Time // when the update was accepted
	Config       *config.Cluster
	Parsed       Parsed      // as it was added
	Sets         []*host.Set // by priority; values of hosts are read live
	DropOverload float64     // percentage of requests to drop
}

// EDSServiceName returns the name under which EDS knows the cluster, or "" if
// that is the cluster's name or its hosts do not come from EDS.
func (v *View) EDSServiceName() string {
	if eds := v.Config.EDS; eds != nil && eds.ServiceName != v.Name {
		return eds.ServiceName
	}
	return ""
}

// Hosts calls yield with all hosts in order, priority by priority.
func (v *View) Hosts(yield func(*host.Host) bool) {
	for _, s := range v.Sets {
		for _, h := range s.Hosts {
			if !yield(h) {
				return
			}
		}
	}
}

func (e *entry) view(v *View) {
	c := e.cluster
	*v = View{
		Name: c.config.Name, AddedViaAPI: e.viaAPI, Version: e.version, LastUpdated: e.updated,
		Config: c.config, Parsed: e.parsed, Sets: c.Sets(), DropOverload: c.DropOverload(),
	}
}

// Clusters calls yield with each active cluster, ordered by name. It takes no lock
// and blocks no picks. The view is valid until yield returns.
func (m *Manager) Clusters(yield func(*View) bool) {
	var v View
	m.active.entries(func(e *entry) bool {
		e.view(&v)
		return yield(&v)
	})
}

// Statuses calls yield with the status of each active cluster, ordered by name. It
// takes no lock and blocks no picks. The status is valid until yield returns: one
// variable serves all clusters, and one all hosts.
func (m *Manager) Statuses(yield func(*status.Cluster) bool) { m.active.statuses(yield) }

// Tracked is like [Manager.Statuses] for the clusters with per_endpoint_stats. It
// does not visit other clusters.
func (m *Manager) Tracked(yield func(*status.Cluster) bool) { m.tracked.statuses(yield) }

// entries calls yield with the active entry of each handle.
func (r *clusterIndex) entries(yield func(*entry) bool) {
	for _, h := range r.list() {
		if e := h.current.Load(); e != nil && !yield(e) {
			return
		}
	}
}

func (r *clusterIndex) statuses(yield func(*status.Cluster) bool) {
	v := newStatusView()
	r.entries(func(e *entry) bool {
		v.show(e)
		return yield(&v.cluster)
	})
}

// statusView holds the status of a cluster and a host, so that a walk allocates nothing per cluster or host.
type statusView struct {
	view    View
	cluster status.Cluster
	hosts   func(yield func(*status.Host) bool) // those of view
	rates   status.OutlierRates
	host    status.Host
	stats   [8]status.HostStat
}

func newStatusView() *statusView {
	v := new(statusView)
	v.hosts = func(yield func(*status.Host) bool) {
		for h := range v.view.Hosts {
			v.showHost(h)
			if !yield(&v.host) {
				return
			}
		}
	}
	return v
}

// show fills in the cluster. It is valid until the next call.
func (v *statusView) show(e *entry) {
	c := e.cluster
	e.view(&v.view)
	v.cluster = status.Cluster{
		Name: c.config.Name, ObservabilityName: c.config.Name, AddedViaAPI: e.viaAPI, Version: e.version,
		EDSServiceName: v.view.EDSServiceName(), Hosts: v.hosts,
	}
	if alt := c.config.AltStatName; alt != "" {
		v.cluster.ObservabilityName = alt // as given; only names of statistics are changed
	}
	if c.detector != nil {
		v.rates = c.detector.Rates()
		v.cluster.Outlier = &v.rates
	}
	for p := range c.breakers {
		b := &c.breakers[p]
		v.cluster.Breakers[p] = status.BreakerLimits{
			MaxConnections: b.Connections.Max(), MaxPendingRequests: b.Pending.Max(),
			MaxRequests: b.Requests.Max(), MaxRetries: b.Retries.Max(),
		}
		v.cluster.InUse[p] = status.BreakerUse{
			Connections: b.Connections.Current(), PendingRequests: b.Pending.Current(),
			Requests: b.Requests.Current(), Retries: b.Retries.Current(),
		}
	}
}

// showHost fills in the host. It is valid until the next call.
func (v *statusView) showHost(h *host.Host) {
	a, l := h.Address(), h.Locality()
	v.stats = h.Stats.All()
	v.host = status.Host{
		Address: a.IP, Pipe: a.Pipe, Hostname: h.Hostname(), Health: h.Flags(), Weight: h.Weight(),
		Region: l.Region, Zone: l.Zone, SubZone: l.SubZone, Canary: h.Canary(), Priority: h.Priority(),
		SuccessRate: h.SuccessRate(), LocalOriginSuccessRate: h.LocalOriginSuccessRate(), Check: h.LastCheck(), Stats: v.stats[:],
	}
}

// Warming calls yield with each cluster that is not active yet, ordered by name.
func (m *Manager) Warming(yield func(*View) bool) {
	m.mu.Lock()
	var list []*entry
	for _, h := range m.handles {
		if h.warming != nil {
			list = append(list, h.warming)
		}
	}
	m.mu.Unlock()
	slices.SortFunc(list, func(a, b *entry) int { return strings.Compare(a.cluster.config.Name, b.cluster.config.Name) })
	var v View
	for _, e := range list {
		e.view(&v)
		if !yield(&v) {
			return
		}
	}
}
