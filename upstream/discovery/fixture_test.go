package discovery

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/upstream"
	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/config/decode"
)

// book is a resolver with fixed answers.
type book struct {
	began time.Time

	mu      sync.Mutex
	answers map[string][]Record
	errs    map[string]error
	delay   map[string]time.Duration
	asked   map[string][]time.Duration // since began
	queries []Query
	late    time.Duration // how long a lookup goes on when it is not wanted any more
}

func newBook() *book {
	return &book{
		began: time.Now(), answers: map[string][]Record{}, errs: map[string]error{},
		delay: map[string]time.Duration{}, asked: map[string][]time.Duration{},
	}
}

func (b *book) Lookup(ctx context.Context, q Query) ([]Record, error) {
	b.mu.Lock()
	b.queries = append(b.queries, q)
	b.asked[q.Name] = append(b.asked[q.Name], time.Since(b.began))
	answer, err, delay := slices.Clone(b.answers[q.Name]), b.errs[q.Name], b.delay[q.Name]
	b.mu.Unlock()
	if delay > 0 {
		select {
		case <-ctx.Done():
			time.Sleep(b.late)
			return nil, ctx.Err()
		case <-time.After(delay):
		}
	}
	return answer, err
}

// put makes the answer for a name: addresses, each with a TTL in seconds after a
// slash if it has one.
func (b *book) put(name string, list ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.errs, name)
	b.answers[name] = records(list...)
}

func records(list ...string) []Record {
	var out []Record
	for _, text := range list {
		addr, ttl, _ := strings.Cut(text, "/")
		r := Record{Addr: netip.MustParseAddr(addr)}
		if ttl != "" {
			r.TTL, _ = time.ParseDuration(ttl + "s")
		}
		out = append(out, r)
	}
	return out
}

func (b *book) fail(name string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.errs[name] = err
}

// times returns when a name was asked for since the last call.
func (b *book) times(name string) []time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	list := b.asked[name]
	b.asked[name] = nil
	return list
}

// rig is a manager with one cluster.
type rig struct {
	*upstream.Manager
	t  testing.TB
	st *store.Store
	c  *upstream.Cluster
}

// start runs the cluster that text describes.
func start(t testing.TB, c Config, text string, hooks upstream.Hooks) *rig {
	t.Helper()
	st := store.New(store.Options{})
	s := New(c)
	m := upstream.New(upstream.Config{Store: st, Source: s.Source, Hooks: hooks})
	t.Cleanup(m.Close)
	p, err := decode.NewDecoder(decode.Options{ClusterTypes: s.ClusterTypes()}).ClusterText("test.yaml", []byte(text), config.FormV3)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.AddStatic(p); err != nil {
		t.Fatal(err)
	}
	r := &rig{Manager: m, t: t, st: st, c: m.Cluster(p.Cluster.Name).Current()}
	m.Start()
	return r
}

// cluster describes a cluster of that type with endpoints name:port.
func cluster(kind, more string, endpoints ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "name: c\ntype: %s\n%s\nload_assignment:\n  cluster_name: c\n  endpoints:\n  - lb_endpoints:\n", kind, more)
	for _, e := range endpoints {
		i := strings.LastIndex(e, ":")
		fmt.Fprintf(&b, "    - endpoint: {address: {socket_address: {address: %q, port_value: %s}}}\n", e[:i], e[i+1:])
	}
	return b.String()
}

// check compares counters and gauges of the cluster.
func (r *rig) check(want map[string]uint64) {
	r.t.Helper()
	v := r.st.View()
	defer v.Close()
	for name, w := range want {
		s, ok := v.Find("cluster.c." + name)
		if !ok {
			r.t.Errorf("no stat %s", name)
		} else if got := s.Uint(); got != w {
			r.t.Errorf("%s = %d, want %d", name, got, w)
		}
	}
}

// shown lists the hosts by priority.
func (r *rig) shown() string {
	var list []string
	for p, s := range r.c.Sets() {
		for _, h := range s.Hosts {
			text := h.AddressText()
			if p > 0 {
				text = fmt.Sprintf("%d:%s", p, text)
			}
			list = append(list, text)
		}
	}
	return strings.Join(list, " ")
}

func (r *rig) wantHosts(want string) {
	r.t.Helper()
	if got := r.shown(); got != want {
		r.t.Errorf("hosts %q, want %q", got, want)
	}
}

func seconds(list ...float64) []time.Duration {
	var out []time.Duration
	for _, s := range list {
		out = append(out, time.Duration(s*float64(time.Second)))
	}
	return out
}
