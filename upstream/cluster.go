package upstream

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/statsd-admin/statsd-admin/internal/guard"
	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/eventlog"
	"github.com/statsd-admin/statsd-admin/upstream/health"
	"github.com/statsd-admin/statsd-admin/upstream/host"
	"github.com/statsd-admin/statsd-admin/upstream/lb"
	"github.com/statsd-admin/statsd-admin/upstream/outlier"
	"github.com/statsd-admin/statsd-admin/upstream/transport"
)

// ErrNoHost is returned by [Cluster.Pick], which counts it, if no host is
// available.
var ErrNoHost = errors.New("upstream: no healthy host")

// Source finds the hosts of a cluster.
type Source interface {
	// Run passes hosts to [Cluster.UpdateHosts] until ctx is done. It calls
	// [Cluster.DiscoveryDone] after the first answer, even if that is an error.
	Run(ctx context.Context, c *Cluster)
}

// A Provider is a [Source] that supplies the balancer of its cluster.
type Provider interface {
	Source
	Balancer() lb.Balancer
}

// A Dependent is a [Source] that can need other clusters to find its hosts. If
// Secondary is true at the start, its cluster waits until the primary clusters are
// ready. EDS sources need not implement it: their configuration decides.
type Dependent interface {
	Source
	Secondary() bool
}

// environment holds the state that all clusters of a manager share.
type environment struct {
	Config    // with defaults
	root      *store.Scope
	product   string
	local     config.Locality
	knowLocal bool
	guard     guard.Guard
	manager   managerStats
	answers   answerRegistry

	immediateFailure, canary string // names of headers

	localSet     atomic.Pointer[host.Set] // of the local cluster; nil: none
	localChanged func()                   // rebalances all clusters but the local one
}

// Hooks are called on changes of clusters and hosts, from any goroutine and without
// a lock that picks or readers need. Nil hooks are skipped. A hook must not change
// hosts or clusters.
//
// HostAdded and HostRemoved report changes of a running cluster. They are not called
// for the hosts of a version that is removed or replaced.
type Hooks struct {
	HostAdded, HostRemoved func(c *Cluster, h *host.Host)
	// HealthChanged is called when a check or the outlier detector has changed the
	// flags of a host.
	HealthChanged func(c *Cluster, h *host.Host)
	// CloseConnections asks to close the TCP tunnels to h, except that [Conn.Tunnel]
	// ends by itself, or, if h is nil, to drain all connections of the cluster.
	CloseConnections                             func(c *Cluster, h *host.Host)
	ClusterReady, ClusterUpdated, ClusterRemoved func(c *Cluster)
	OutlierEvent                                 func(c *Cluster, e outlier.Event)
}

// complete replaces nil hooks by functions that do nothing.
func (h *Hooks) complete() {
	for _, f := range []*func(*Cluster, *host.Host){&h.HostAdded, &h.HostRemoved, &h.HealthChanged, &h.CloseConnections} {
		if *f == nil {
			*f = func(*Cluster, *host.Host) {}
		}
	}
	for _, f := range []*func(*Cluster){&h.ClusterReady, &h.ClusterUpdated, &h.ClusterRemoved} {
		if *f == nil {
			*f = func(*Cluster) {}
		}
	}
	if h.OutlierEvent == nil {
		h.OutlierEvent = func(*Cluster, outlier.Event) {}
	}
}

// Cluster is one version of a cluster. A change of its configuration makes another
// Cluster.
type Cluster struct {
	config *config.Cluster
	env    *environment
	scope  *store.Scope
	stats  *Stats

	breakers [2]Breakers
	answers  *answers
	// users counts what needs the statistics: the manager, requests, connections
	// and callers of [Handle.Acquire]. It is far below 0 once they are given up.
	users atomic.Int64

	balancer lb.Balancer
	original *lb.OriginalDst // nil unless the type is that
	checker  *health.Checker // nil: no active checks
	detector *outlier.Detector
	events   []*eventlog.File // of health checks
	dialer   *transport.Dialer
	source   Source // nil: STATIC or original destination

	maintenanceKey string // of the runtime value
	panicThreshold atomic.Uint32
	zoneEnabled    atomic.Uint32
	zoneLeast      atomic.Uint64 // size of a cluster with zone-aware routing
	dropOverload   atomic.Uint64 // float64 bits
	dropped        atomic.Uint64 // requests, because of it

	sets atomic.Pointer[[]*host.Set] // by priority, as of now

	tunnels sync.Map // *Conn to its context.CancelFunc

	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup

	// updating is held during a whole membership update, callbacks included.
	// It comes before mu.
	updating sync.Mutex

	mu         sync.Mutex
	groups     [][][]*host.Host // by group, by priority
	assigned   *Assignment      // the hosts of a STATIC cluster until it starts
	assignment Assignment       // weights and factors; hosts are not kept
	deliveries []delivery       // by priority
	refreshes  []refresh        // by priority
	originals  originals        // of type ORIGINAL_DST
	delivered  []*host.Set      // what the balancer has
	local      *host.Set        // of the local cluster, as the balancer has it; nil: none
	isLocal    bool
	beside     bool   // another version serves until this one is ready, and has the gauges
	heaviest   uint64 // weight of a host in the priority that was updated last; 0: none was
	discovered bool
	unchecked  map[*host.Host]bool // hosts whose first check is awaited; nil: not waiting
	ready      bool
	closed     bool
	onReady    []func()
}

// delivery records when a priority was last passed to the balancer.
type delivery struct {
	last  time.Time
	timer *time.Timer // nil: none runs
}

// newCluster builds a cluster without starting it.
func newCluster(c *config.Cluster, env *environment, source Source, stats *store.Scope) (*Cluster, error) {
	cl := &Cluster{config: c, env: env, source: source, scope: stats, maintenanceKey: "upstream.maintenance_mode." + c.Name}
	cl.ctx, cl.cancel = context.WithCancel(context.Background())
	cl.users.Store(1)
	cl.answers = env.answers.acquire(env.root, c.StatName)
	var err error
	if cl.dialer, err = env.Transport.Dialer(c, cl.scope); err != nil {
		cl.abandon()
		return nil, err
	}
	cl.stats = newStats(cl.scope, c.Track)
	cl.breakers[DefaultPriority].init(cl.scope, cl.stats, c.Name, DefaultPriority, &c.CircuitBreakers.Default, env.Runtime)
	cl.breakers[HighPriority].init(cl.scope, cl.stats, c.Name, HighPriority, &c.CircuitBreakers.High, env.Runtime)
	cl.sets.Store(new([]*host.Set))
	cl.readRuntime()
	cl.newBalancer()
	if o := c.Outlier; o != nil {
		cl.detector = outlier.New(outlier.Config{
			Settings: o, Stats: outlierStats(cl.scope), Runtime: env.Runtime, Rand: env.Rand,
			Changed: cl.healthChanged,
			Log: func(e outlier.Event) {
				if env.OutlierLog != nil {
					_, _ = env.OutlierLog.Write(e.AppendJSON(nil, c.Name)) // the log counts what it loses
				}
				env.Hooks.OutlierEvent(cl, e)
			},
		})
	}
	if len(c.HealthChecks) > 0 {
		if err := cl.newChecker(&c.HealthChecks[0]); err != nil {
			cl.abandon()
			return nil, err
		}
	}
	return cl, nil
}

// abandon closes a rejected cluster and removes its statistics.
func (c *Cluster) abandon() {
	c.cancel()
	if c.dialer != nil {
		c.dialer.Close()
	}
	c.closeEvents()
	c.drop()
}

// hold keeps the statistics of c until the matching drop. It reports false if they
// are given up already.
func (c *Cluster) hold() bool { return c.users.Add(1) > 0 }

// drop ends a hold. The last one gives the statistics up, unless another cluster or
// version holds them too.
func (c *Cluster) drop() {
	if c.users.Add(-1) == 0 && c.users.CompareAndSwap(0, math.MinInt64/2) {
		c.scope.Close()
		c.env.answers.release(c.config.StatName, c.answers)
	}
}

// Release ends the use of a cluster that [Handle.Acquire] returned. Release of
// a nil Cluster does nothing.
func (c *Cluster) Release() {
	if c != nil {
		c.drop()
	}
}

// openEvents opens the files that take events of a health check.
func (c *Cluster) openEvents(hc *config.HealthCheck) error {
	if len(hc.EventSinks) > 0 {
		return fmt.Errorf("health_checks[0].event_logger: %q is not supported; use a file", hc.EventSinks[0].Name)
	}
	for _, path := range hc.EventLogs {
		if c.env.Logs == nil {
			return fmt.Errorf("health_checks[0].event_log_path: %q: event logs are not supported here", path)
		}
		f, err := c.env.Logs.Open(path)
		if err != nil {
			return fmt.Errorf("health_checks[0].event_log_path: %w", err)
		}
		c.events = append(c.events, f)
	}
	return nil
}

func (c *Cluster) closeEvents() {
	for _, f := range c.events {
		if err := f.Close(); err != nil {
			c.env.Logger.Warn("event log", "cluster", c.config.Name, "error", err.Error())
		}
	}
}

func (c *Cluster) newChecker(hc *config.HealthCheck) error {
	o := health.Config{
		Check: *hc, Cluster: c.config.Name, Product: c.env.product, Stats: healthStats(c.scope),
		Traffic: func() bool { return c.stats.CxTotal.Total() > 0 },
		Runtime: c.env.Runtime, Rand: c.env.Rand, Done: c.checkDone, Logger: c.env.Logger,
		ProtocolError: c.stats.CxProtocolError.Inc,
		IsLocal: func(err error) bool {
			failed, ok := errors.AsType[*transport.Error](err)
			return ok && failed.Local
		},
	}
	if hc.Kind == config.CustomCheck && c.env.CustomCheck != nil {
		prober, err := c.env.CustomCheck(c.config)
		if err != nil {
			return err
		}
		o.Custom = prober
	}
	o.Dial = c.dialer.DialCheck
	if dial := c.env.Dial; dial != nil {
		o.Dial = func(ctx context.Context, h *host.Host, a config.Address) (net.Conn, error) {
			return dial(ctx, c.config, h, a)
		}
	}
	if err := c.openEvents(hc); err != nil {
		return err
	}
	if len(c.events) > 0 {
		o.Log = func(e health.Event) {
			line := e.AppendJSON(nil, c.config.Name, hc.Kind)
			for _, f := range c.events {
				_, _ = f.Write(line)
			}
		}
	}
	k, err := health.New(o)
	c.checker = k
	return err
}

func (c *Cluster) newBalancer() {
	l := &c.config.LB
	switch {
	case c.config.Type == config.OriginalDst:
		c.original = lb.NewOriginalDst(lb.OriginalDstConfig{
			UseHeader: l.OriginalDst.UseHTTPHeader, Port: l.OriginalDst.PortOverride,
			ClusterName: c.config.Name, Limit: max(c.env.OriginalHosts, 0), Added: c.addOriginal,
			Invalid: c.stats.OriginalDstHostInvalid, Overflow: c.scope.Counter("original_dst_host_overflow"),
		})
		c.balancer = c.original
		return
	case l.Policy == config.ClusterProvidedPolicy:
		if p, ok := c.source.(Provider); ok {
			c.balancer = p.Balancer()
			return
		}
	}
	o := lb.Config{
		Policy: l.Policy, Subset: l.Subset, Stats: balancerStats(c.scope, l), Rand: c.env.Rand, Seed: c.env.Seed,
		PanicThreshold:   c.panicThreshold.Load,
		LocalityWeighted: l.LocalityWeighted,
		Zone:             lb.ZoneConfig{Enabled: c.zoneEnabled.Load},
		ChoiceCount:      int(l.LeastRequest.ChoiceCount), Ring: l.RingHash, MaglevTableSize: l.Maglev.TableSize,
		HashBalanceFactor: l.HashBalanceFactor, ActiveRequests: c.stats.RqActive.Value,
		UseHostname: l.UseHostnameForHashing, Done: c.ctx.Done(),
		MetadataNamespace: c.env.product + ".lb", AltNamespace: "envoy.lb",
	}
	if b := l.LeastRequest.Bias; l.Policy == config.LeastRequestPolicy && (b.Key != "" || b.Default != 1) {
		o.ActiveRequestBias = c.bias(b)
	}
	if slow := l.SlowStart; slow != nil {
		o.SlowStart = lb.SlowStart{Window: slow.Window, MinWeight: slow.MinWeightPercent / 100}
		if a := slow.Aggression; a.Key != "" || a.Default != 1 {
			o.SlowStart.Aggression = func() float64 { return a.Value(c.env.Runtime) }
		}
	}
	if z := l.ZoneAware; z != nil {
		o.FailOnPanic = z.FailTrafficOnPanic
		if f := z.ForceLocal; f != nil {
			o.Zone.ForceLocal = max(f.MinSize, 1)
		}
	}
	o.Zone.MinClusterSize = c.zoneLeast.Load
	c.balancer = lb.New(o)
}

// bias returns the function that reads the bias of least request. An invalid value
// is logged once; the balancer uses 1 instead.
func (c *Cluster) bias(b config.RuntimeDouble) func() float64 {
	var once sync.Once
	return func() float64 {
		x := b.Value(c.env.Runtime)
		if !(x >= 0) { // also if it is no number
			once.Do(func() {
				c.env.Logger.Warn("active request bias must be at least 0, using 1", "cluster", c.config.Name, "key", b.Key, "value", x)
			})
		}
		return x
	}
}

// readRuntime stores the runtime values of the balancer, and reports whether updates
// of the balancer would differ.
func (c *Cluster) readRuntime() (changed bool) {
	enabled, least := uint64(100), uint64(6)
	if z := c.config.LB.ZoneAware; z != nil {
		enabled, least = uint64(z.RoutingEnabled), z.MinClusterSize
	}
	c.zoneEnabled.Store(uint32(min(c.env.Runtime.Uint("upstream.zone_routing.enabled", enabled), 100)))
	least = c.env.Runtime.Uint("upstream.zone_routing.min_cluster_size", least)
	percent := uint32(min(c.env.Runtime.Uint("upstream.healthy_panic_threshold", uint64(c.config.LB.PanicThreshold)), 100))
	changed = c.zoneLeast.Swap(least) != least
	return c.panicThreshold.Swap(percent) != percent || changed
}

// runtimeChanged applies changed runtime values. Most changes concern other clusters,
// so the balancer is only updated if its values changed, or if they are unknown.
func (c *Cluster) runtimeChanged() {
	changed := c.readRuntime()
	for i := range c.breakers {
		c.breakers[i].refresh(c.env.Runtime)
	}
	l := &c.config.LB
	if changed || l.SlowStart != nil || l.Policy == config.ClusterProvidedPolicy {
		c.rebalance()
	}
}

// Config returns the configuration. The caller must not change it.
func (c *Cluster) Config() *config.Cluster { return c.config }

// Stats returns the statistics, some of which the proxy updates.
func (c *Cluster) Stats() *Stats { return c.stats }

// Scope returns the scope of this version's statistics.
func (c *Cluster) Scope() *store.Scope { return c.scope }

// Breakers returns the circuit breakers for requests of a priority.
func (c *Cluster) Breakers(p Priority) *Breakers { return &c.breakers[p&1] }

// Dialer returns the dialer of the cluster, which counts no connections. Use
// [Cluster.Connect] to serve requests.
func (c *Cluster) Dialer() *transport.Dialer { return c.dialer }

// Sets returns the current hosts by priority. The sets are immutable.
func (c *Cluster) Sets() []*host.Set { return *c.sets.Load() }

// Pick returns a host, or [ErrNoHost], or [ErrNoCluster] if c is nil. A nil context is
// the zero [lb.Context].
func (c *Cluster) Pick(ctx *lb.Context) (*host.Host, error) {
	if c == nil {
		return nil, ErrNoCluster
	}
	if h := c.balancer.Pick(ctx); h != nil {
		return h, nil
	}
	c.stats.CxNoneHealthy.Inc()
	return nil, ErrNoHost
}

// MaintenanceMode decides at random whether to refuse a request because the cluster
// is under maintenance, and counts the refusal.
func (c *Cluster) MaintenanceMode() bool {
	percent := c.env.Runtime.Uint(c.maintenanceKey, 0)
	if percent == 0 || c.env.Rand()%100 >= percent {
		return false
	}
	c.stats.RqMaintenanceMode.Inc()
	return true
}

// ReportImmediateFailure marks h as failed. Call it when a response of h carries the
// header for immediate health check failure.
func (c *Cluster) ReportImmediateFailure(h *host.Host) {
	if c.checker != nil {
		c.checker.ReportImmediateFailure(h)
	}
}

// start lets the cluster find its hosts once the secrets for their connections have
// arrived. It calls done once the cluster is ready, and does nothing if the cluster
// is closed.
func (c *Cluster) start(done func()) {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return
	}
	c.onReady = append(c.onReady, done)
	// close waits for running once it has set closed, so nothing can be added later.
	if c.detector != nil {
		c.running.Go(func() {
			for !c.env.guard.Run("outlier detection", func() { _ = c.detector.Run(c.ctx) }) {
				select { // its first step may panic each time
				case <-c.ctx.Done():
				case <-time.After(time.Second):
				}
			}
		})
	}
	c.mu.Unlock()
	c.dialer.Follow(c.discover)
}

// discover lets the cluster find its hosts.
func (c *Cluster) discover() {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return
	}
	switch {
	case c.source != nil:
		c.running.Go(func() {
			if !c.env.guard.Run("source of hosts", func() { c.source.Run(c.ctx, c) }) {
				c.env.guard.Run("end of discovery", c.DiscoveryDone) // others wait for the cluster
			}
		})
		c.mu.Unlock()
		return
	case c.original != nil:
		c.running.Go(func() {
			for !c.env.guard.Run("removal of hosts", c.sweep) { // it begins with a wait
			}
		})
		c.mu.Unlock()
	default:
		c.running.Add(1) // until the hosts are updated
		a := c.assigned
		c.assigned = nil
		c.mu.Unlock()
		c.UpdateHosts(0, a)
		c.running.Done()
	}
	c.DiscoveryDone()
}

// close stops all activity of the cluster.
func (c *Cluster) close() {
	c.cancel()
	c.mu.Lock()
	again := c.closed
	c.closed = true
	for i := range c.deliveries {
		if t := c.deliveries[i].timer; t != nil {
			t.Stop()
		}
	}
	for i := range c.refreshes {
		if t := c.refreshes[i].timer; t != nil {
			t.Stop()
		}
	}
	if t := c.originals.timer; t != nil {
		t.Stop()
	}
	c.mu.Unlock()
	c.running.Wait()
	if c.checker != nil {
		c.checker.Close()
	}
	if c.detector != nil {
		c.detector.Close()
	}
	for i := range c.breakers {
		for _, r := range c.breakers[i].all() {
			r.hide() // connections can stay open for long
		}
	}
	c.leaveLocal()
	c.dialer.Close()
	if !again {
		c.closeEvents()
		c.drop()
	}
}

// AwaitedSecrets returns the names of the secrets that the cluster waits for
// before it discovers its hosts.
func (c *Cluster) AwaitedSecrets() []string { return c.dialer.Awaited() }

// Discovered reports whether the first answer about the hosts has arrived.
func (c *Cluster) Discovered() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.discovered
}

// Ready reports whether the cluster has discovered its hosts and checked them
// once.
func (c *Cluster) Ready() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ready
}
