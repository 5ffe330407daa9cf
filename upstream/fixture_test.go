package upstream

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/config/decode"
	"github.com/statsd-admin/statsd-admin/upstream/host"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// parse decodes a cluster in v3 form.
func parse(t testing.TB, text string) *decode.ParsedCluster {
	t.Helper()
	p, err := decode.NewDecoder(decode.Options{}).ClusterText("test.yaml", []byte(text), config.FormV3)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// static is a STATIC cluster of endpoints at 10.0.0.1:80 and up, with more
// lines of configuration.
func static(name string, hosts int, more string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "name: %s\nconnect_timeout: 1s\n%s\nload_assignment:\n  cluster_name: %s\n  endpoints:\n  - lb_endpoints:\n", name, more, name)
	for i := range hosts {
		fmt.Fprintf(&b, "    - endpoint: {address: {socket_address: {address: 10.0.%d.%d, port_value: 80}}}\n", i/250, i%250+1)
	}
	return b.String()
}

// byEDS is a cluster whose hosts come from outside.
func byEDS(name, more string) string {
	return fmt.Sprintf("name: %s\nconnect_timeout: 1s\ntype: EDS\neds_cluster_config: {service_name: %s-service, eds_config: {ads: {}}}\n%s\n", name, name, more)
}

// rig is a manager with its store and the recorded calls of hooks.
type rig struct {
	*Manager
	t  testing.TB
	st *store.Store

	mu      sync.Mutex // guards what follows
	told    []string
	sources map[string]*manual
}

// manual is a source that a test moves.
type manual struct{ started chan *Cluster }

func (s *manual) Run(ctx context.Context, c *Cluster) {
	s.started <- c
	<-ctx.Done()
}

func newRig(t testing.TB, change func(*Config)) *rig {
	st := store.New(store.Options{})
	r := &rig{t: t, st: st, sources: map[string]*manual{}}
	note := func(what string) func(*Cluster, *host.Host) {
		return func(c *Cluster, h *host.Host) {
			r.mu.Lock()
			defer r.mu.Unlock()
			name := "all"
			if h != nil {
				name = h.AddressText()
			}
			r.told = append(r.told, what+" "+c.Config().Name+" "+name)
		}
	}
	cluster := func(what string) func(*Cluster) {
		f := note(what)
		return func(c *Cluster) { f(c, nil) }
	}
	c := Config{
		Store: st,
		Source: func(c *config.Cluster) (Source, error) {
			s := &manual{make(chan *Cluster, 1)}
			r.mu.Lock()
			defer r.mu.Unlock()
			r.sources[c.Name] = s
			return s, nil
		},
		Hooks: Hooks{
			HostAdded: note("added"), HostRemoved: note("removed"), HealthChanged: note("health"), CloseConnections: note("close"),
			ClusterReady: cluster("ready"), ClusterUpdated: cluster("updated"), ClusterRemoved: cluster("gone"),
		},
	}
	if change != nil {
		change(&c)
	}
	r.Manager = New(c)
	t.Cleanup(r.Close)
	return r
}

// events returns the calls of hooks since the last call.
func (r *rig) events() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := strings.Join(r.told, "\n")
	r.told = nil
	return s
}

// add adds clusters through the API and returns the last one's current version.
func (r *rig) add(texts ...string) {
	r.t.Helper()
	for _, text := range texts {
		if _, err := r.AddOrUpdate(parse(r.t, text), "v"); err != nil {
			r.t.Fatal(err)
		}
	}
}

// source waits for the source of a cluster to run.
func (r *rig) source(name string) *Cluster {
	r.t.Helper()
	r.mu.Lock()
	s := r.sources[name]
	r.mu.Unlock()
	return <-s.started
}

// value returns a counter or gauge by its full name.
func (r *rig) value(name string) uint64 {
	r.t.Helper()
	v := r.st.View()
	defer v.Close()
	c, ok := v.Find(name)
	if !ok {
		r.t.Fatalf("no stat %s", name)
	}
	return c.Uint()
}

func (r *rig) check(prefix string, want map[string]uint64) {
	r.t.Helper()
	for name, w := range want {
		if got := r.value(prefix + name); got != w {
			r.t.Errorf("%s%s = %d, want %d", prefix, name, got, w)
		}
	}
}

func spec(i int, change ...func(*host.Spec)) host.Spec {
	s := host.Spec{Address: config.Address{IP: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}), 80)}}
	for _, c := range change {
		c(&s)
	}
	return s
}

func hosts(list ...host.Spec) *Assignment {
	return &Assignment{Priorities: []PriorityHosts{{Hosts: list}}}
}

// shown lists the hosts of a cluster with their flags.
func shown(c *Cluster) string {
	var b strings.Builder
	for p, s := range c.Sets() {
		for _, h := range s.Hosts {
			fmt.Fprintf(&b, "%d:%s%s ", p, strings.TrimPrefix(strings.TrimSuffix(h.AddressText(), ":80"), "10.0.0."), strings.TrimPrefix(h.Flags().String(), "healthy"))
		}
	}
	return strings.TrimSpace(b.String())
}
