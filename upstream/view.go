package upstream

import (
	"slices"
	"time"

	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/host"
	"github.com/statsd-admin/statsd-admin/upstream/outlier"
)

// View is what there is to show of a cluster.
type View struct {
	Name              string
	ObservabilityName string // the alternative name if given, else Name
	EDSServiceName    string // empty unless hosts come from EDS under another name
	AddedViaAPI       bool
	Version           string         // of the update that brought it
	LastUpdated       time.Time      // when it was accepted
	Outlier           *outlier.Rates // nil: no detector
	Breakers          [2]Limits      // by Priority
	Config            *config.Cluster
	Parsed            *config.ParsedCluster // with the message as given
	Sets              []*host.Set           // by priority; values of hosts are read live
	DropOverload      float64               // percent of requests to drop
}

// Limits are the maxima of one request priority that are shown.
type Limits struct {
	MaxConnections, MaxPendingRequests, MaxRequests, MaxRetries uint64
}

// Hosts calls yield with all hosts, priority by priority, in order.
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
		Name: c.config.Name, ObservabilityName: c.config.Name, AddedViaAPI: e.viaAPI,
		Version: e.version, LastUpdated: e.updated, Config: c.config, Parsed: e.parsed, Sets: c.Sets(), DropOverload: c.DropOverload(),
	}
	if alt := c.config.AltStatName; alt != "" {
		v.ObservabilityName = alt // as given; only names of statistics are changed
	}
	if eds := c.config.EDS; eds != nil && eds.ServiceName != c.config.Name {
		v.EDSServiceName = eds.ServiceName
	}
	if c.detector != nil {
		r := c.detector.Rates()
		v.Outlier = &r
	}
	for p := range c.breakers {
		b := &c.breakers[p]
		v.Breakers[p] = Limits{b.Connections.Max(), b.Pending.Max(), b.Requests.Max(), b.Retries.Max()}
	}
}

// Clusters calls yield with each active cluster in the order of names. It takes
// no lock and never holds up picks. The view is good until yield returns.
func (m *Manager) Clusters(yield func(*View) bool) { m.active.views(yield) }

// Tracked is [Manager.Clusters] for those with per_endpoint_stats. It costs
// nothing for all others.
func (m *Manager) Tracked(yield func(*View) bool) { m.tracked.views(yield) }

func (r *roster) views(yield func(*View) bool) {
	var v View
	for _, h := range r.list() {
		e := h.current.Load()
		if e == nil {
			continue // removed meanwhile
		}
		e.view(&v)
		if !yield(&v) {
			return
		}
	}
}

// Warming calls yield with each cluster that is not active yet, in the order of
// names.
func (m *Manager) Warming(yield func(*View) bool) {
	m.mu.Lock()
	var list []*entry
	for _, h := range m.handles {
		if h.warming != nil {
			list = append(list, h.warming)
		}
	}
	m.mu.Unlock()
	slices.SortFunc(list, func(a, b *entry) int {
		if a.cluster.config.Name < b.cluster.config.Name {
			return -1
		}
		return 1
	})
	var v View
	for _, e := range list {
		e.view(&v)
		if !yield(&v) {
			return
		}
	}
}
