package upstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net"
	"net/textproto"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/guard"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/eventlog"
	"github.com/statsd-admin/statsd-admin/upstream/health"
	"github.com/statsd-admin/statsd-admin/upstream/host"
	"github.com/statsd-admin/statsd-admin/upstream/transport"
)

// Config configures a [Manager].
type Config struct {
	// Store takes the statistics. It must be set.
	Store *store.Store
	// Runtime overrides numbers; nil overrides nothing. Call
	// [Manager.RuntimeChanged] when its values change.
	Runtime config.Runtime
	// Rand returns uniform random numbers and must be safe for concurrent use;
	// nil means math/rand/v2.
	Rand func() uint64
	// Seed is the position at which round robin starts; 0 is the first host. Processes
	// that start together should have different seeds, or all begin with the same host.
	Seed uint64
	// Local is the locality of this process, nil if it is unknown.
	Local *config.Locality
	// Logger takes warnings; nil discards them.
	Logger *slog.Logger
	// LocalCluster is the name of the cluster that this process belongs to, empty if
	// there is none. Zone-aware routing needs it.
	LocalCluster string
	// Source returns the source of hosts for a cluster that is neither STATIC nor
	// ORIGINAL_DST. Nil rejects such clusters.
	Source func(*config.Cluster) (Source, error)
	// OriginalHosts is the maximum number of hosts in a cluster of type
	// ORIGINAL_DST. Picks for further hosts fail and are counted in
	// original_dst_host_overflow. 0 means 10,000, a negative number no limit.
	OriginalHosts int
	// Supported lists the optional cluster fields that the proxy implements itself,
	// such as "filters", "connection_pool_per_downstream_connection" and
	// "preconnect_policy". A cluster that uses any other optional field is rejected with
	// an [*Unsupported], or the field is logged if the cluster can do without it.
	Supported []string
	// Accept returns an error, preferably an [*Unsupported], for a cluster that the
	// proxy cannot serve. Nil accepts all.
	Accept func(*config.Cluster) error
	// Added is called for each cluster that is accepted, new versions included,
	// before it serves. It can be called concurrently; nil is not called.
	Added func(Parsed)
	// Transport makes connections. If nil, the manager uses a factory that neither
	// reports nor reloads its certificates.
	Transport *transport.Factory
	// Dial replaces Transport for health checks if it is not nil.
	Dial func(ctx context.Context, c *config.Cluster, h *host.Host, a config.Address) (net.Conn, error)
	// CustomCheck returns the function that makes the probers of a custom health check.
	// Nil rejects such checks.
	CustomCheck func(*config.Cluster) (func(*host.Host) health.Prober, error)

	// Logs holds the event logs of health checks; the caller runs it. Nil rejects
	// clusters with event logs.
	Logs *eventlog.Logs
	// OutlierLog gets a line of JSON for each ejection and return of a host. It must not
	// block. Nil logs nothing.
	OutlierLog io.Writer

	Hooks Hooks
}

// Parsed is a cluster with the message it was decoded from, such as a
// *decode.ParsedCluster.
type Parsed interface {
	// Config returns the values in effect, which never change.
	Config() *config.Cluster
	// Hash returns a number that is equal for equal messages. An update with the
	// hash of the version in effect changes nothing.
	Hash() uint64
}

// managerStats are named "cluster_manager.…".
type managerStats struct {
	added, modified, removed                                   *store.Counter
	updated, updatedViaMerge, mergeCancelled, outOfMergeWindow *store.Counter
	active, warming                                            *store.Gauge
}

// Manager holds the clusters of a process. All methods are safe for concurrent
// use.
type Manager struct {
	env environment

	active  clusterIndex
	tracked clusterIndex // the active clusters with statistics per host
	version atomic.Pointer[string]

	applying sync.Mutex // held while runtime values are applied; taken before mu
	adding   sync.Mutex // held while a cluster is added; taken before mu

	mu          sync.Mutex
	handles     map[string]*Handle // active or warming
	waiting     []*Cluster         // not started; only secondary ones after the start, none once initialized
	unready     map[*Cluster]bool  // true: primary
	primaries   int                // of unready
	actives     int                // handles with an active cluster
	warming     int                // handles with a warming cluster
	started     bool
	expected    int // calls of Expect that are not done
	initialized bool
	closed      bool
	primaryDone chan struct{}
	staticDone  chan struct{}
	allDone     chan struct{}
}

// Handle stands for a cluster name. It survives updates of the cluster.
type Handle struct {
	name    string
	current atomic.Pointer[entry]
	warming *entry // guarded by the manager's mu; nil: none
}

// entry is a cluster with its origin.
type entry struct {
	cluster *Cluster
	parsed  Parsed
	hash    uint64
	version string
	updated time.Time
	viaAPI  bool
}

// Name returns the name of the cluster.
func (h *Handle) Name() string { return h.name }

// Current returns the active cluster, or nil if it was removed or h is nil.
func (h *Handle) Current() *Cluster {
	if h == nil {
		return nil
	}
	if e := h.current.Load(); e != nil {
		return e.cluster
	}
	return nil
}

// Acquire returns the active cluster for one request or connection, or nil if
// it was removed, the manager is closed, or h is nil; Pick and Release accept a nil
// Cluster. The cluster's statistics stay until [Cluster.Release] even if it is
// replaced or removed meanwhile, so that none of the request's counts are lost.
func (h *Handle) Acquire() *Cluster {
	c := h.Current()
	for c != nil && !c.hold() {
		closed := c
		if c = h.Current(); c == closed { // with the manager, not replaced
			return nil
		}
	}
	return c
}

// New returns a manager without clusters.
func New(c Config) *Manager {
	if c.Runtime == nil {
		c.Runtime = config.NoRuntime{}
	}
	if c.Rand == nil {
		c.Rand = rand.Uint64
	}
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	if c.Transport == nil {
		c.Transport = transport.New(transport.Config{Logger: c.Logger})
	}
	sc := c.Store.Own().Scope("cluster_manager")
	sc.Help(map[string]string{
		"cluster_added": "Added clusters.", "cluster_modified": "Modified clusters.", "cluster_removed": "Removed clusters.",
		"cluster_updated": "Updates of hosts of clusters.", "cluster_updated_via_merge": "Updates of hosts that were merged with others.",
		"update_merge_cancelled": "Waiting merges that a change of membership delivered early.", "update_out_of_merge_window": "Updates delivered at once because the merge window was over.",
		"active_clusters": "Active clusters.", "warming_clusters": "Clusters that are not yet active.",
	})
	c.OriginalHosts = cmp.Or(c.OriginalHosts, defaultOriginalHosts)
	c.Hooks.complete()
	m := &Manager{
		handles: make(map[string]*Handle), unready: make(map[*Cluster]bool),
		primaryDone: make(chan struct{}), staticDone: make(chan struct{}), allDone: make(chan struct{}),
	}
	m.env.Config, m.env.root, m.env.product = c, c.Store.Own(), c.Store.Product()
	header := func(name string) string { return textproto.CanonicalMIMEHeaderKey("x-" + m.env.product + name) }
	m.env.immediateFailure, m.env.canary = header("-immediate-health-check-fail"), header("-upstream-canary")
	m.env.localChanged, m.env.guard = m.localChanged, guard.New(c.Logger)
	if c.Local != nil {
		m.env.local, m.env.knowLocal = *c.Local, true
	}
	m.env.manager = managerStats{
		added: sc.Counter("cluster_added"), modified: sc.Counter("cluster_modified"), removed: sc.Counter("cluster_removed"),
		updated: sc.Counter("cluster_updated"), updatedViaMerge: sc.Counter("cluster_updated_via_merge"),
		mergeCancelled: sc.Counter("update_merge_cancelled"), outOfMergeWindow: sc.Counter("update_out_of_merge_window"),
		active: sc.GaugeWithMode("active_clusters", store.NeverImport), warming: sc.GaugeWithMode("warming_clusters", store.NeverImport),
	}
	m.SetVersion(StaticVersion)
	return m
}

// Cluster returns the handle of an active cluster, or nil if there is none with
// that name. The handle stays valid until the cluster is removed.
func (m *Manager) Cluster(name string) *Handle {
	return m.active.find(name)
}

// AddStatic adds a cluster of the static configuration. Such clusters can
// neither be updated nor removed.
func (m *Manager) AddStatic(p Parsed) error {
	_, err := m.add(p, "", false)
	return err
}

// AddOrUpdate adds a cluster or a new version of it. It returns false and does
// nothing if the cluster is unchanged or belongs to the static configuration. A
// new version becomes active as soon as it has discovered and checked its
// hosts.
func (m *Manager) AddOrUpdate(p Parsed, version string) (changed bool, err error) {
	return m.add(p, version, true)
}

var errClosed = errors.New("upstream: the manager is closed")

func (m *Manager) add(p Parsed, version string, viaAPI bool) (bool, error) {
	e := &entry{parsed: p, version: version, updated: time.Now(), viaAPI: viaAPI}
	if viaAPI {
		e.hash = p.Hash() // static clusters are not compared
	}
	begin, replaced, err := m.put(e)
	if e.cluster == nil || err != nil {
		return false, err
	}
	if replaced != nil {
		replaced.close()
	}
	if m.env.Added != nil {
		m.env.Added(p)
	}
	m.applying.Lock() // runtime values may have changed since it was built
	e.cluster.runtimeChanged()
	m.applying.Unlock()
	m.begin(begin)
	m.progress()
	return true, nil
}

// put builds and registers the cluster of e if it is new. It returns the clusters that
// can start now, and the warming cluster to close that it replaces.
func (m *Manager) put(e *entry) (begin []*Cluster, replaced *Cluster, err error) {
	m.adding.Lock()
	defer m.adding.Unlock()
	m.mu.Lock()
	wanted, err := m.wantedLocked(e)
	m.mu.Unlock()
	if !wanted {
		return nil, nil, err
	}
	// build reads files, so it does not run under mu. Since adding is held, a cluster of
	// that name can be removed meanwhile but not added.
	cl, err := m.build(e.parsed.Config())
	if err != nil {
		return nil, nil, err
	}
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		cl.abandon()
		return nil, nil, errClosed
	}
	defer m.mu.Unlock()
	e.cluster = cl
	name := cl.config.Name
	hd := m.handles[name]
	if hd == nil {
		hd = &Handle{name: name}
		m.handles[name] = hd
		m.env.manager.added.Inc()
	} else {
		m.env.manager.modified.Inc()
		if hd.warming != nil {
			replaced = hd.warming.cluster
			m.warmLocked(hd, nil)
			m.forgetLocked(replaced)
		}
	}
	if hd.current.Load() == nil && !m.initialized {
		// Before everything is initialized a new cluster needs not wait.
		hd.current.Store(e)
		m.listLocked(hd)
		m.trackLocked(hd)
	} else {
		cl.beside = hd.current.Load() != nil
		m.warmLocked(hd, e)
	}
	if !cl.beside {
		cl.showBreakers()
	}
	cl.stats.WarmingState.Set(1)
	m.unready[cl] = cl.primary()
	if cl.primary() {
		m.primaries++
	}
	m.gaugesLocked()
	return m.beginLocked(cl), replaced, nil
}

// wantedLocked reports whether the cluster of e is new. m.mu must be held.
func (m *Manager) wantedLocked(e *entry) (bool, error) {
	name := e.parsed.Config().Name
	hd := m.handles[name]
	switch {
	case m.closed:
		return false, errClosed
	case hd == nil:
		return true, nil
	case !e.viaAPI:
		return false, fmt.Errorf("upstream: name: %q is already used by another cluster", name)
	}
	newest := hd.warming
	if newest == nil {
		newest = hd.current.Load()
	}
	return newest.viaAPI && newest.hash != e.hash, nil
}

// build makes a cluster without starting it.
func (m *Manager) build(c *config.Cluster) (*Cluster, error) {
	if err := m.accept(c); err != nil {
		return nil, err
	}
	var source Source
	if c.Type != config.Static && c.Type != config.OriginalDst {
		if m.env.Source == nil {
			return nil, fmt.Errorf("upstream: cluster %q: there is no source of hosts for its type", c.Name)
		}
		s, err := m.env.Source(c)
		if err != nil {
			return nil, fmt.Errorf("upstream: cluster %q: %w", c.Name, err)
		}
		source = s
	}
	var assigned *Assignment
	if c.Type == config.Static {
		var err error
		if assigned, err = ResolveAssignment(c.Assignment); err != nil {
			return nil, fmt.Errorf("upstream: cluster %q: %w", c.Name, err)
		}
	}
	cl, err := newCluster(c, &m.env, source, m.env.root.Scope("cluster."+c.StatName))
	if err != nil {
		return nil, fmt.Errorf("upstream: cluster %q: %w", c.Name, err)
	}
	cl.assigned = assigned
	cl.isLocal = m.env.LocalCluster != "" && c.Name == m.env.LocalCluster
	return cl, nil
}

// primary reports whether the cluster can find its hosts, and the secrets for their
// connections, without another cluster.
func (c *Cluster) primary() bool {
	if c.dialer.Dependent() {
		return false
	}
	if d, ok := c.source.(Dependent); ok {
		return !d.Secondary()
	}
	return c.config.Type != config.EDSDiscovery || c.config.EDS == nil || c.config.EDS.Source.Kind == config.SourcePath
}

// beginLocked returns the cluster if it can start now, else it queues it: secondary
// clusters wait only until all clusters were ready once. m.mu must be held.
func (m *Manager) beginLocked(c *Cluster) []*Cluster {
	if !m.started || !m.initialized && !c.primary() && m.primaries > 0 {
		m.waiting = append(m.waiting, c)
		return nil
	}
	return []*Cluster{c}
}

// warmLocked sets or clears the warming cluster of a handle. m.mu must be held.
func (m *Manager) warmLocked(hd *Handle, e *entry) {
	if hd.warming != nil {
		m.warming--
	}
	if e != nil {
		m.warming++
	}
	hd.warming = e
}

func (m *Manager) begin(list []*Cluster) {
	for _, c := range list {
		c.start(func() { m.clusterReady(c) })
	}
}

// Start starts host discovery for all clusters: first for the primary ones and,
// when they are ready, for the others.
func (m *Manager) Start() {
	m.mu.Lock()
	if m.started || m.closed {
		m.mu.Unlock()
		return
	}
	m.started = true
	begin := m.dueLocked()
	m.mu.Unlock()
	m.begin(begin)
	m.progress()
}

// dueLocked removes and returns the waiting clusters that can start. m.mu must be held.
func (m *Manager) dueLocked() []*Cluster {
	busy := m.primaries > 0
	var due []*Cluster
	m.waiting = slices.DeleteFunc(m.waiting, func(c *Cluster) bool {
		if busy && !c.primary() {
			return false
		}
		due = append(due, c)
		return true
	})
	return due
}

// progress starts waiting clusters that are due and closes the channels of finished
// stages.
func (m *Manager) progress() {
	m.mu.Lock()
	if !m.started || m.primaries > 0 {
		m.mu.Unlock()
		return
	}
	closeOnce(m.primaryDone)
	if len(m.unready) == 0 {
		closeOnce(m.staticDone)
		if m.expected == 0 {
			m.initialized = true
			closeOnce(m.allDone)
		}
	}
	due := m.dueLocked()
	m.mu.Unlock()
	m.begin(due)
}

// closeOnce closes c unless it is closed. The manager's mu must be held.
func closeOnce(c chan struct{}) {
	select {
	case <-c:
	default:
		close(c)
	}
}

// PrimaryReady is closed when all primary clusters are ready for the first time.
func (m *Manager) PrimaryReady() <-chan struct{} { return m.primaryDone }

// Expect announces clusters that are added later but are part of startup:
// [Manager.Ready] waits until done is called and they are ready. Later calls
// have no effect.
func (m *Manager) Expect() (done func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.expected++
	return sync.OnceFunc(func() {
		m.mu.Lock()
		m.expected--
		m.mu.Unlock()
		m.progress()
	})
}

// StaticReady is closed when all present clusters are ready for the first time,
// regardless of [Manager.Expect].
func (m *Manager) StaticReady() <-chan struct{} { return m.staticDone }

// Ready is closed when all clusters are ready for the first time.
func (m *Manager) Ready() <-chan struct{} { return m.allDone }

// Unready returns the clusters that are not ready yet, sorted by name.
func (m *Manager) Unready() []*Cluster {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.SortedFunc(maps.Keys(m.unready), func(a, b *Cluster) int { return strings.Compare(a.config.Name, b.config.Name) })
}

// clusterReady activates a cluster.
func (m *Manager) clusterReady(c *Cluster) {
	m.mu.Lock()
	if _, expected := m.unready[c]; !expected {
		m.mu.Unlock()
		return
	}
	m.forgetLocked(c)
	c.stats.WarmingState.Set(0)
	hd := m.handles[c.config.Name]
	var old *Cluster
	if hd.warming != nil && hd.warming.cluster == c {
		if e := hd.current.Load(); e != nil {
			old = e.cluster
		}
		hd.current.Store(hd.warming)
		m.trackLocked(hd)
		m.warmLocked(hd, nil)
		if old == nil {
			m.listLocked(hd)
		} else {
			m.forgetLocked(old)
		}
	}
	m.gaugesLocked()
	m.mu.Unlock()
	m.env.Hooks.ClusterReady(c)
	if old != nil {
		m.env.Hooks.CloseConnections(old, nil)
		m.env.Hooks.ClusterUpdated(c)
		old.close()
		c.takeOver()
	}
	c.followLocal()
	m.progress()
}

// forgetLocked removes a cluster from the start sequence. m.mu must be held.
func (m *Manager) forgetLocked(c *Cluster) {
	if m.unready[c] {
		m.primaries--
	}
	delete(m.unready, c)
	m.waiting = slices.DeleteFunc(m.waiting, func(x *Cluster) bool { return x == c })
}

// listLocked adds a handle to the active ones. m.mu must be held.
func (m *Manager) listLocked(hd *Handle) {
	m.active.put(hd)
	m.actives++
}

// trackLocked adds a handle to the tracked ones or removes it, as its active cluster is
// configured. m.mu must be held.
func (m *Manager) trackLocked(hd *Handle) {
	if hd.current.Load().cluster.config.Track.PerEndpointStats {
		m.tracked.put(hd)
	} else {
		m.tracked.drop(hd)
	}
}

// Remove removes the active and the warming version of a cluster that was added by
// AddOrUpdate, and reports whether there was one.
func (m *Manager) Remove(name string) bool {
	m.mu.Lock()
	hd := m.handles[name]
	if hd == nil || m.closed {
		m.mu.Unlock()
		return false
	}
	entries := []*entry{hd.current.Load(), hd.warming}
	for _, e := range entries {
		if e != nil && !e.viaAPI {
			m.mu.Unlock()
			return false
		}
	}
	delete(m.handles, name)
	m.warmLocked(hd, nil)
	if hd.current.Swap(nil) != nil {
		m.active.drop(hd)
		m.tracked.drop(hd)
		m.actives--
	}
	for _, e := range entries {
		if e != nil {
			m.forgetLocked(e.cluster)
		}
	}
	m.env.manager.removed.Inc()
	m.gaugesLocked()
	m.mu.Unlock()
	for _, e := range entries {
		if e == nil {
			continue
		}
		e.cluster.close()
		m.env.Hooks.ClusterRemoved(e.cluster)
	}
	m.progress()
	return true
}

// gaugesLocked sets the gauges. m.mu must be held.
func (m *Manager) gaugesLocked() {
	m.env.manager.active.Set(uint64(m.actives))
	m.env.manager.warming.Set(uint64(m.warming))
}

// StaticVersion is the version of a set of clusters that nothing updates.
const StaticVersion = "static"

// SetVersion stores the version of the last update of clusters. A source of updates
// sets "" when it starts.
func (m *Manager) SetVersion(v string) { m.version.Store(&v) }

// Version returns the version of the last update, or [StaticVersion] if there is no
// source of updates.
func (m *Manager) Version() string { return *m.version.Load() }

// RuntimeChanged applies changed runtime values to all clusters.
func (m *Manager) RuntimeChanged() {
	m.applying.Lock() // the last caller applies the latest values
	defer m.applying.Unlock()
	m.mu.Lock()
	all := m.allLocked()
	m.mu.Unlock()
	for _, c := range all {
		c.runtimeChanged()
	}
}

// allLocked returns all clusters, active and warming. m.mu must be held.
func (m *Manager) allLocked() []*Cluster {
	var all []*Cluster
	for _, h := range m.handles {
		if e := h.current.Load(); e != nil {
			all = append(all, e.cluster)
		}
		if h.warming != nil {
			all = append(all, h.warming.cluster)
		}
	}
	return all
}

// localChanged rebalances all clusters except the local one.
func (m *Manager) localChanged() {
	for _, h := range m.active.list() {
		if c := h.Current(); c != nil && !c.isLocal {
			c.rebalance()
		}
	}
}

// StopDiscovery ends host discovery of all clusters, and the construction of rings for
// hosts that are found. Hosts and statistics remain until Close.
func (m *Manager) StopDiscovery() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range m.allLocked() {
		c.cancel()
	}
}

// CloseConnections calls the hook of that name for all clusters. A program calls it
// when it sends no further requests, so that its last flush counts the connections as
// closed.
func (m *Manager) CloseConnections() {
	m.mu.Lock()
	all := m.allLocked()
	m.mu.Unlock()
	for _, c := range all {
		m.env.Hooks.CloseConnections(c, nil)
	}
}

// Close closes all clusters and waits for their goroutines.
func (m *Manager) Close() {
	m.mu.Lock()
	m.closed = true
	all := m.allLocked()
	clear(m.unready)
	m.primaries = 0
	m.mu.Unlock()
	for _, c := range all {
		c.close()
	}
}
