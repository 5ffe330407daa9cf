package upstream

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/config/decode"
	"github.com/statsd-admin/statsd-admin/upstream/health"
	"github.com/statsd-admin/statsd-admin/upstream/host"
	"github.com/statsd-admin/statsd-admin/upstream/status"
)

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func names(m *Manager) string {
	var out []string
	m.Clusters(func(v *View) bool { out = append(out, v.Name); return true })
	return strings.Join(out, " ")
}

func byDNS(name string) string {
	return fmt.Sprintf("name: %s\nconnect_timeout: 1s\ntype: STRICT_DNS\nload_assignment: {cluster_name: %s, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: a.example, port_value: 80}}}}]}]}\n", name, name)
}

func TestInitOrder(t *testing.T) {
	r := newRig(t, nil)
	for _, text := range []string{byEDS("second", ""), byDNS("first"), static("third", 1, "")} {
		if err := r.AddStatic(parse(t, text)); err != nil {
			t.Fatal(err)
		}
	}
	if got := names(r.Manager); got != "first second third" {
		t.Errorf("shown: %s; static clusters are active from the start", got)
	}
	r.check("cluster_manager.", map[string]uint64{"cluster_added": 3, "active_clusters": 3, "warming_clusters": 0})
	r.check("cluster.second.", map[string]uint64{"warming_state": 1})
	r.Start()
	first := r.source("first")
	r.mu.Lock()
	waiting := len(r.sources["second"].started)
	r.mu.Unlock()
	if waiting != 0 || isClosed(r.PrimaryReady()) {
		t.Error("a secondary cluster started before the primary ones were ready")
	}
	if got := fmt.Sprint(clusterNames(r.Unready())); got != "[first second]" {
		t.Errorf("unready %s", got)
	}
	first.UpdateHosts(0, hosts(spec(1)))
	first.DiscoveryDone()
	<-r.PrimaryReady()
	second := r.source("second")
	if isClosed(r.Ready()) {
		t.Error("ready before the secondary cluster is")
	}
	second.DiscoveryDone()
	<-r.Ready()
	r.check("cluster.second.", map[string]uint64{"warming_state": 0})
	if got := fmt.Sprint(clusterNames(r.Unready())); got != "[]" {
		t.Errorf("unready %s", got)
	}
}

// dependent is a source that needs other clusters or does not.
type dependent struct {
	*manual
	secondary bool
}

func (d dependent) Secondary() bool { return d.secondary }

// TestSourcesSayWhetherTheyDepend: the word of a source counts more than the type of its
// cluster.
func TestSourcesSayWhetherTheyDepend(t *testing.T) {
	for _, secondary := range []bool{false, true} {
		r := newRig(t, func(c *Config) {
			source := c.Source
			c.Source = func(cl *config.Cluster) (Source, error) {
				s, err := source(cl)
				if err == nil && cl.Name == "c" {
					s = dependent{s.(*manual), secondary}
				}
				return s, err
			}
		})
		r.Expect() // the start goes on
		r.Start()
		r.add(byDNS("first"), byEDS("c", ""))
		first := r.source("first")
		r.mu.Lock()
		started := r.sources["c"].started
		r.mu.Unlock()
		if !secondary {
			<-started
		}
		if n := len(r.Manager.waiting); (n == 1) != secondary {
			t.Errorf("secondary %t: %d clusters wait", secondary, n)
		}
		first.DiscoveryDone()
		if secondary {
			<-started
		}
	}
}

// TestReadyTwice: a cluster that is ready again, or was removed meanwhile, changes nothing.
func TestReadyTwice(t *testing.T) {
	r := newRig(t, nil)
	r.Start()
	r.add(byDNS("c"), byDNS("gone"))
	c, gone := r.source("c"), r.source("gone")
	c.DiscoveryDone()
	r.Remove("gone")
	r.events()
	r.clusterReady(c)
	r.clusterReady(gone)
	if got := r.events(); got != "" {
		t.Errorf("told %q", got)
	}
	r.check("cluster_manager.", map[string]uint64{"active_clusters": 1, "warming_clusters": 0})
}

func TestSecondaryAddedWhilePrimariesWait(t *testing.T) {
	r := newRig(t, nil)
	r.Expect() // the start goes on
	r.Start()
	r.add(byDNS("first"), byEDS("second", ""))
	first := r.source("first")
	r.mu.Lock()
	waiting := len(r.sources["second"].started)
	r.mu.Unlock()
	if waiting != 0 || first.Ready() {
		t.Error("the secondary cluster did not wait")
	}
	if len(r.Manager.waiting) != 1 {
		t.Errorf("%d clusters wait, want 1", len(r.Manager.waiting))
	}
	// A cluster that is removed while it waits is never started.
	r.add(byEDS("third", ""))
	r.Remove("third")
	first.DiscoveryDone()
	r.source("second")
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.sources["third"].started) != 0 {
		t.Error("a removed cluster was started")
	}
}

// TestReplacedBeforeInitialization: the start does not wait for a version of a cluster
// that was replaced before it was ready.
func TestReplacedBeforeInitialization(t *testing.T) {
	r := newRig(t, nil)
	r.Start()
	r.add(byDNS("c"))
	first := r.source("c")
	r.add(byDNS("c") + "lb_policy: RANDOM\n")
	r.source("c") // is never ready
	r.add(byDNS("c") + "lb_policy: LEAST_REQUEST\n")
	last := r.source("c")
	first.DiscoveryDone()
	last.DiscoveryDone()
	if !isClosed(r.PrimaryReady()) || !isClosed(r.Ready()) {
		t.Error("not initialized")
	}
}

func TestNothingToInitialise(t *testing.T) {
	r := newRig(t, nil)
	r.Start()
	<-r.Ready()
	<-r.PrimaryReady()
}

func TestAddUpdateRemove(t *testing.T) {
	r := newRig(t, nil)
	if err := r.AddStatic(parse(t, static("fixed", 1, ""))); err != nil {
		t.Fatal(err)
	}
	if err := r.AddStatic(parse(t, static("fixed", 2, ""))); err == nil || !strings.Contains(err.Error(), `name: "fixed" is already used by another cluster`) {
		t.Errorf("same name: %v", err)
	}
	r.Start()
	<-r.Ready()
	add := func(text, version string) bool {
		t.Helper()
		changed, err := r.AddOrUpdate(parse(t, text), version)
		if err != nil {
			t.Fatal(err)
		}
		return changed
	}
	if add(static("fixed", 3, ""), "1") || r.Remove("fixed") {
		t.Error("a static cluster was changed")
	}
	if !add(byEDS("c", ""), "1") || add(byEDS("c", ""), "2") {
		t.Error("want a change for a new cluster and none for the same")
	}
	r.check("cluster_manager.", map[string]uint64{"cluster_added": 2, "cluster_modified": 0, "active_clusters": 1, "warming_clusters": 1})
	if names(r.Manager) != "fixed" {
		t.Errorf("shown: %s, want no warming cluster", names(r.Manager))
	}
	v1 := r.source("c")
	v1.UpdateHosts(0, hosts(spec(1)))
	v1.DiscoveryDone()
	hd := r.Cluster("c")
	if hd.Current() != v1 || names(r.Manager) != "c fixed" {
		t.Fatalf("shown: %s", names(r.Manager))
	}

	// A new version warms beside the old one; a newer one takes its place.
	if !add(byEDS("c", "connect_timeout: 2s")[:0]+strings.Replace(byEDS("c", ""), "1s", "2s", 1), "3") {
		t.Error("another timeout is no change")
	}
	v2 := r.source("c")
	var warming []string
	r.Warming(func(v *View) bool { warming = append(warming, v.Name+" "+v.Version); return true })
	if hd.Current() != v1 || fmt.Sprint(warming) != "[c 3]" {
		t.Errorf("warming %v", warming)
	}
	if add(strings.Replace(byEDS("c", ""), "1s", "2s", 1), "4") {
		t.Error("the same as the warming one is a change")
	}
	if !add(strings.Replace(byEDS("c", ""), "1s", "3s", 1), "5") {
		t.Error("no change")
	}
	v3 := r.source("c")
	v2.UpdateHosts(0, hosts(spec(9)))
	v2.DiscoveryDone() // too late
	if hd.Current() != v1 {
		t.Error("a replaced version became active")
	}
	r.events()
	v3.UpdateHosts(0, hosts(spec(2), spec(3)))
	v3.DiscoveryDone()
	if hd.Current() != v3 || r.Cluster("c") != hd {
		t.Error("the new version is not active, or under another handle")
	}
	if got := r.events(); got != "added c 10.0.0.2:80\nadded c 10.0.0.3:80\nready c all\nclose c all\nupdated c all" {
		t.Errorf("told %q", got)
	}
	r.check("cluster_manager.", map[string]uint64{"cluster_added": 2, "cluster_modified": 2, "active_clusters": 2, "warming_clusters": 0})
	r.check("cluster.c.", map[string]uint64{"membership_total": 2, "warming_state": 0})
	if !errors.Is(v1.ctx.Err(), v1.ctx.Err()) || v1.ctx.Err() == nil || v3.ctx.Err() != nil {
		t.Error("the old version still runs, or the new one does not")
	}

	// Both versions go.
	add(strings.Replace(byEDS("c", ""), "1s", "4s", 1), "6")
	v4 := r.source("c")
	if !r.Remove("c") || r.Remove("c") {
		t.Error("want one removal")
	}
	if hd.Current() != nil || r.Cluster("c") != nil || v3.ctx.Err() == nil || v4.ctx.Err() == nil {
		t.Error("something is left")
	}
	r.check("cluster_manager.", map[string]uint64{"cluster_removed": 1, "active_clusters": 1, "warming_clusters": 0})
	if names(r.Manager) != "fixed" {
		t.Errorf("shown: %s", names(r.Manager))
	}
	view := r.st.View()
	defer view.Close()
	if _, ok := view.Find("cluster.c.membership_total"); ok {
		t.Error("its statistics are left")
	}
}

func TestRefusedClusters(t *testing.T) {
	r := newRig(t, func(c *Config) {
		c.Source = func(*config.Cluster) (Source, error) { return nil, errors.New("no resolver") }
	})
	if _, err := r.AddOrUpdate(parse(t, byDNS("c")), ""); err == nil || !strings.Contains(err.Error(), `cluster "c": no resolver`) {
		t.Errorf("err = %v", err)
	}
	r = newRig(t, func(c *Config) { c.Source = nil })
	if _, err := r.AddOrUpdate(parse(t, byDNS("c")), ""); err == nil {
		t.Error("a cluster without a discovery of hosts was taken")
	}
	r.check("cluster_manager.", map[string]uint64{"cluster_added": 0, "active_clusters": 0})
	r.Close()
	if _, err := r.AddOrUpdate(parse(t, static("c", 1, "")), ""); err == nil {
		t.Error("a closed manager took a cluster")
	}
}

func TestView(t *testing.T) {
	r, _ := started(t, nil, strings.Replace(static("a:b", 2, `alt_stat_name: other:one
outlier_detection: {}
circuit_breakers: {thresholds: [{max_connections: 5, max_retries: 0}]}`), "name: a:b", "name: 'a:b'", 1))
	r.add(byEDS("e", ""))
	e := r.source("e")
	e.DiscoveryDone()
	r.SetVersion("7")
	var views []View
	r.Clusters(func(v *View) bool { views = append(views, *v); return true })
	if len(views) != 2 || r.Version() != "7" {
		t.Fatalf("%d clusters, version %s", len(views), r.Version())
	}
	var shown []status.Cluster
	r.Statuses(func(c *status.Cluster) bool { shown = append(shown, *c); return true })
	a, b := views[0], views[1]
	if a.Name != "a:b" || !a.AddedViaAPI || a.Version != "v1" || a.LastUpdated.IsZero() || a.EDSServiceName() != "" || a.Parsed == nil {
		t.Errorf("view %+v", a)
	}
	if s := shown[0]; s.Name != "a:b" || s.ObservabilityName != "other:one" || !s.AddedViaAPI || s.Version != "v1" || s.EDSServiceName != "" {
		t.Errorf("status %+v", s)
	}
	if o := shown[0].Outlier; o == nil || o.Average != -1 || shown[1].Outlier != nil {
		t.Errorf("outlier %v, %v", o, shown[1].Outlier)
	}
	if got := shown[0].Breakers; got != [2]status.BreakerLimits{limits(5, 1024, 1024, 0), limits(1024, 1024, 1024, 3)} {
		t.Errorf("breakers %v", got)
	}
	var addrs []string
	a.Hosts(func(h *host.Host) bool { addrs = append(addrs, h.AddressText()); return len(addrs) < 2 })
	if !slices.Equal(addrs, []string{"10.0.0.1:80", "10.0.0.2:80"}) {
		t.Errorf("hosts %v", addrs)
	}
	if b.EDSServiceName() != "e-service" || shown[1].ObservabilityName != "e" || shown[1].EDSServiceName != "e-service" {
		t.Errorf("view %+v, status %+v", b, shown[1])
	}
	if r.value("cluster.other_one.membership_total") != 2 {
		t.Error("statistics are not under the alternative name")
	}
}

// TestWalksStop: whoever has seen enough is shown no more, and else sees all.
func TestWalksStop(t *testing.T) {
	r, c := started(t, nil, static("c", 2, "track_cluster_stats: {per_endpoint_stats: true}"))
	c.UpdateHosts(0, &Assignment{Priorities: []PriorityHosts{{Hosts: []host.Spec{spec(1), spec(2)}}, {Hosts: []host.Spec{spec(3), spec(4)}}}})
	r.add(static("d", 1, "track_cluster_stats: {per_endpoint_stats: true}"), byEDS("w2", ""), byEDS("w1", ""))
	names := func(walk func(func(*status.Cluster) bool)) func(func(string) bool) {
		return func(yield func(string) bool) { walk(func(v *status.Cluster) bool { return yield(v.Name) }) }
	}
	views := func(walk func(func(*View) bool)) func(func(string) bool) {
		return func(yield func(string) bool) { walk(func(v *View) bool { return yield(v.Name) }) }
	}
	for what, tt := range map[string]struct {
		walk func(yield func(string) bool)
		want string
	}{
		"clusters": {views(r.Clusters), "c d"},
		"warming":  {views(r.Warming), "w1 w2"},
		"statuses": {names(r.Statuses), "c d"},
		"tracked":  {names(r.Tracked), "c d"},
		"hosts": {func(yield func(string) bool) {
			r.Clusters(func(v *View) bool {
				v.Hosts(func(h *host.Host) bool { return yield(h.AddressText()) })
				return false
			})
		}, "10.0.0.1:80 10.0.0.2:80 10.0.0.3:80 10.0.0.4:80"},
		"hosts of a status": {func(yield func(string) bool) {
			r.Statuses(func(c *status.Cluster) bool {
				c.Hosts(func(h *status.Host) bool { return yield(h.Address.String()) })
				return false
			})
		}, "10.0.0.1:80 10.0.0.2:80 10.0.0.3:80 10.0.0.4:80"},
	} {
		want := strings.Fields(tt.want)
		for n := range len(want) {
			var got []string
			tt.walk(func(name string) bool { got = append(got, name); return len(got) <= n })
			if !slices.Equal(got, want[:n+1]) {
				t.Errorf("%s: the first %d are %q, want %q", what, n+1, got, want[:n+1])
			}
		}
		var got []string
		tt.walk(func(name string) bool { got = append(got, name); return true })
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
}

// TestTracked: clusters whose hosts show statistics are listed from when they are
// active until they are removed or do not ask for it any more.
func TestTracked(t *testing.T) {
	const asking = "track_cluster_stats: {per_endpoint_stats: true}"
	r := newRig(t, nil)
	if err := r.AddStatic(parse(t, static("s", 1, asking))); err != nil {
		t.Fatal(err)
	}
	check := func(want string) {
		t.Helper()
		var got []string
		r.Tracked(func(v *status.Cluster) bool { got = append(got, v.Name); return true })
		if !slices.Equal(got, strings.Fields(want)) {
			t.Errorf("%v are tracked, want %v", got, strings.Fields(want))
		}
	}
	check("s")
	r.Start()
	r.add(static("b", 1, asking))
	r.add(static("a", 1, ""))
	check("b s")
	r.add(static("a", 1, asking))
	check("a b s")
	r.add(static("b", 1, ""))
	check("a s")
	r.add(byEDS("e", asking))
	check("a s")
	r.source("e").DiscoveryDone()
	check("a e s")
	list := &r.tracked.list()[0]
	r.add(static("other", 1, ""))
	if list != &r.tracked.list()[0] {
		t.Error("the list was made again for a cluster that is not on it")
	}
	r.Remove("a")
	r.Remove("e")
	check("s")
}

// TestReadersAndWriters runs picks and views while clusters and hosts change.
func TestReadersAndWriters(t *testing.T) {
	r := newRig(t, nil)
	r.Start()
	r.add(static("fixed", 5, "outlier_detection: {max_ejection_percent: 100}"))
	r.add(byEDS("c", "common_lb_config: {update_merge_window: 0.001s}"))
	c := r.source("c")
	c.UpdateHosts(0, hosts(spec(1)))
	c.DiscoveryDone()
	stop := make(chan struct{})
	var wg sync.WaitGroup
	loop := func(f func()) {
		wg.Go(func() {
			for !isClosed(stop) {
				f()
			}
		})
	}
	fixed := r.Cluster("fixed").Current()
	loop(func() {
		if h, err := fixed.Pick(nil); err == nil {
			fixed.RequestStarted(h)
			fixed.RequestFinished(h, RequestEnd{Status: 503})
		} else {
			t.Error(err)
		}
	})
	loop(func() {
		if _, err := c.Pick(nil); err != nil {
			t.Error(err)
		}
	})
	loop(func() {
		r.Clusters(func(v *View) bool {
			v.Hosts(func(h *host.Host) bool { _ = h.Stats.All(); _ = h.Flags().String(); return true })
			return true
		})
	})
	for i := range 100 {
		c.UpdateHosts(0, hosts(spec(1), spec(i%5+2), spec(i%3+20, weighing(uint32(i+1)))))
		r.add(static("more", i%4+1, ""))
		if i%10 == 9 {
			r.Remove("more")
		}
	}
	close(stop)
	wg.Wait()
}

func TestReadyWaitsForExpectedClusters(t *testing.T) {
	r := newRig(t, nil)
	done := r.Expect()
	closed := func(c <-chan struct{}) bool {
		select {
		case <-c:
			return true
		default:
			return false
		}
	}
	if err := r.AddStatic(parse(t, static("a", 1, ""))); err != nil {
		t.Fatal(err)
	}
	r.Start()
	if !closed(r.StaticReady()) || closed(r.Ready()) {
		t.Fatalf("static ready %t, ready %t, want true and false while clusters are expected", closed(r.StaticReady()), closed(r.Ready()))
	}
	r.add(static("b", 1, ""))
	if r.Cluster("b") == nil {
		t.Error("a cluster of the start is not active at once")
	}
	done()
	done()
	if !closed(r.Ready()) {
		t.Error("not ready though all that was expected is there")
	}
}

func clusterNames(all []*Cluster) []string {
	var names []string
	for _, c := range all {
		names = append(names, c.Config().Name)
	}
	return names
}

func TestMembershipIsThatOfTheVersionThatServes(t *testing.T) {
	r := newRig(t, nil)
	r.Start()
	r.add(byEDS("c", ""))
	c := r.source("c")
	c.UpdateHosts(0, hosts(spec(1), spec(2), spec(3)))
	c.DiscoveryDone()
	for _, more := range []string{"per_connection_buffer_limit_bytes: 7", "per_connection_buffer_limit_bytes: 8"} { // the first never gets ready
		r.add(byEDS("c", more))
		c = r.source("c")
		c.UpdateHosts(0, hosts(spec(1)))
		r.check("cluster.c.", map[string]uint64{"membership_total": 3, "membership_healthy": 3, "warming_state": 1})
	}
	c.DiscoveryDone()
	r.check("cluster.c.", map[string]uint64{"membership_total": 1, "membership_healthy": 1, "warming_state": 0})
	c.UpdateHosts(0, hosts(spec(1), spec(2)))
	r.check("cluster.c.", map[string]uint64{"membership_total": 2, "membership_healthy": 2})
}

// TestBreakersShownAreThoseOfTheVersionThatServes replaces a cluster whose
// connections continue.
func TestBreakersShownAreThoseOfTheVersionThatServes(t *testing.T) {
	limits := func(n int) string {
		return fmt.Sprintf("circuit_breakers: {thresholds: [{max_connections: %d, track_remaining: true}]}", n)
	}
	r := newRig(t, nil)
	r.Start()
	r.add(byEDS("c", limits(2)))
	check := func(when string, open, left, heaviest uint64) {
		t.Helper()
		if o, l, w := r.value("cluster.c.circuit_breakers.default.cx_open"), r.value("cluster.c.circuit_breakers.default.remaining_cx"), r.value("cluster.c.max_host_weight"); o != open || l != left || w != heaviest {
			t.Errorf("%s: cx_open %d, remaining_cx %d, max_host_weight %d, want %d, %d, %d", when, o, l, w, open, left, heaviest)
		}
	}
	check("at first", 0, 2, 0)
	heavy := func(w uint32) func(*host.Spec) { return func(s *host.Spec) { s.Weight = w } }
	first := r.source("c")
	first.UpdateHosts(0, hosts(spec(1, heavy(7))))
	first.DiscoveryDone()
	old := &first.Breakers(DefaultPriority).Connections
	old.Take()
	old.Take()
	check("both taken", 1, 0, 7)

	r.add(byEDS("c", limits(5)))
	second := r.source("c")
	second.UpdateHosts(0, hosts(spec(1, heavy(3))))
	check("while the next version warms", 1, 0, 7)
	second.DiscoveryDone()
	check("with the next version", 0, 5, 3)
	now := &second.Breakers(DefaultPriority).Connections
	for range 5 {
		now.Take()
	}
	check("all of the next version taken", 1, 0, 3)
	old.Release()
	old.Release()
	check("the old connections have ended", 1, 0, 3)
	now.Release()
	check("one of the new ones as well", 0, 1, 3)

	now.Take()
	r.Remove("c")
	r.add(byEDS("c", limits(4)))
	r.source("c").DiscoveryDone()
	check("added again", 0, 4, r.value("cluster.c.max_host_weight"))
}

func TestClusterThatWentBeforeItsStartDoesNothing(t *testing.T) {
	const watched = "outlier_detection: {}"
	for name, text := range map[string]string{
		"of a source": byEDS("c", watched), "static": static("c", 1, watched),
		"original destination": "name: c\nconnect_timeout: 1s\ntype: ORIGINAL_DST\nlb_policy: CLUSTER_PROVIDED\n" + watched,
	} {
		for how, end := range map[string]func(*rig){
			"removed": func(r *rig) { r.Remove("c") }, "closed": func(r *rig) { r.Close() },
		} {
			t.Run(name+"/"+how, func(t *testing.T) {
				r := newRig(t, nil)
				r.add(text)
				c := r.Cluster("c").Current()
				r.Manager.mu.Lock()
				r.started = true
				due := r.dueLocked()
				r.Manager.mu.Unlock()
				if len(due) != 1 || due[0] != c {
					t.Fatalf("%d clusters are due, want the one", len(due))
				}
				end(r) // between the choice of what starts and the start
				r.events()
				r.begin(due)
				c.running.Wait()
				if s := r.sources["c"]; s != nil && len(s.started) > 0 {
					t.Error("the source ran")
				}
				if c.Ready() || c.Discovered() || len(c.onReady) > 0 || len(c.Sets()) > 0 {
					t.Errorf("ready %t, discovered %t, %d wait for it, sets %v", c.Ready(), c.Discovered(), len(c.onReady), c.Sets())
				}
				if told := r.events(); told != "" {
					t.Errorf("hooks were told:\n%s", told)
				}
			})
		}
	}
}

// TestBuildingHoldsUpNobody builds a cluster, which takes until the test says so.
func TestBuildingHoldsUpNobody(t *testing.T) {
	rt := &values{}
	building, goOn := make(chan string), make(chan struct{})
	var slow atomic.Bool
	r := newRig(t, func(c *Config) {
		c.Runtime = rt
		c.CustomCheck = func(c *config.Cluster) (func(*host.Host) health.Prober, error) {
			if slow.Load() {
				building <- c.Name
				<-goOn
			}
			return func(*host.Host) health.Prober { return nil }, nil
		}
	})
	r.Start()
	r.add(byEDS("c", ""))
	r.source("c").DiscoveryDone()
	slow.Store(true)
	added := make(chan error)
	add := func(text string) {
		p, err := decode.NewDecoder(decode.Options{HealthCheckers: []string{"ping"}}).ClusterText("test.yaml", []byte(text), config.FormV3)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			_, err := r.AddOrUpdate(p, "2")
			added <- err
		}()
		<-building
	}

	// Other goroutines continue, and their changes apply to the new version too.
	add(byEDS("c", customCheck))
	if names(r.Manager) != "c" || len(r.Unready()) != 0 || !r.Remove("c") {
		t.Error("the version that serves cannot be removed")
	}
	rt.set("circuit_breakers.c.default.max_requests", 7)
	r.RuntimeChanged()
	goOn <- struct{}{}
	if err := <-added; err != nil {
		t.Fatal(err)
	}
	c := r.source("c")
	c.DiscoveryDone()
	if got := c.Breakers(DefaultPriority).Requests.Max(); got != 7 {
		t.Errorf("max_requests is %d, want the 7 that came while the cluster was built", got)
	}
	if r.Cluster("c") == nil || r.Cluster("c").Current() != c {
		t.Error("the new version does not serve")
	}
	r.check("cluster_manager.", map[string]uint64{"cluster_added": 2, "cluster_modified": 0, "cluster_removed": 1, "active_clusters": 1, "warming_clusters": 0})

	// Late clusters are not added.
	add(byEDS("late", customCheck))
	r.Close()
	goOn <- struct{}{}
	if err := <-added; !errors.Is(err, errClosed) {
		t.Errorf("added after the end: %v", err)
	}
	v := r.st.View()
	defer v.Close()
	if _, ok := v.Find("cluster.late.upstream_cx_total"); ok {
		t.Error("statistics of the cluster that came too late are left")
	}
}

// TestStatusesAllocateNothingPerHost walks few and many clusters: the variables
// of the walk are all it allocates, but for a few of other goroutines.
func TestStatusesAllocateNothingPerHost(t *testing.T) {
	r := newRig(t, nil)
	r.Start()
	measure := func() (hosts int, allocs float64) {
		ofHost := func(h *status.Host) bool { hosts += len(h.Stats); return true }
		ofCluster := func(c *status.Cluster) bool { c.Hosts(ofHost); return true }
		allocs = testing.AllocsPerRun(50, func() {
			hosts = 0
			r.Statuses(ofCluster)
		})
		return hosts, allocs
	}
	r.add(static("first", 1, "outlier_detection: {}"))
	few, small := measure()
	for i := range 30 {
		r.add(static(fmt.Sprint("c", i), 10, "outlier_detection: {}"))
	}
	many, large := measure()
	if few != 8 || many != 8*301 || large > small+10 {
		t.Errorf("%d values: %v allocations; %d values: %v", few, small, many, large)
	}
}

// TestStopDiscoveryEndsLargeRings starts a cluster, whose ring takes seconds, after
// discovery has stopped. Without a ring it has no host to pick.
func TestStopDiscoveryEndsLargeRings(t *testing.T) {
	r := newRig(t, nil)
	if err := r.AddStatic(parse(t, static("a", 1, "lb_policy: RING_HASH\nring_hash_lb_config: {minimum_ring_size: 8388608}\n"))); err != nil {
		t.Fatal(err)
	}
	r.StopDiscovery()
	r.Start()
	r.check("cluster.a.ring_hash_lb.", map[string]uint64{"size": 0})
	r.check("cluster.a.", map[string]uint64{"membership_total": 1})
}

// TestLaterClustersDoNotWaitForEachOther adds a primary cluster that finds no hosts once
// all others are ready. A secondary one is requested nevertheless.
func TestLaterClustersDoNotWaitForEachOther(t *testing.T) {
	r := newRig(t, nil)
	r.Start()
	<-r.Ready()
	r.add("name: never\nconnect_timeout: 1s\ntype: STRICT_DNS\nload_assignment: {cluster_name: never, endpoints: []}", byEDS("c", ""))
	r.source("never")
	select {
	case c := <-r.sources["c"].started:
		c.DiscoveryDone()
	case <-time.After(10 * time.Second):
		t.Fatal("the source of the secondary cluster is not started")
	}
	if r.Cluster("c") == nil {
		t.Error("the cluster is not active")
	}
}
