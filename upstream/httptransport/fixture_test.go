package httptransport

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/upstream"
	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/config/decode"
	"github.com/statsd-admin/statsd-admin/upstream/host"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a transport to a cluster of hosts.
type rig struct {
	*Transport
	t  testing.TB
	st *store.Store
	m  *upstream.Manager
}

// clusterText is the cluster "c" of hosts at addresses.
func clusterText(fields string, addresses ...string) string {
	text := "name: c\nconnect_timeout: 5s\n" + fields + "\nload_assignment:\n  cluster_name: c\n  endpoints:\n  - lb_endpoints:\n"
	for _, a := range addresses {
		h, port, _ := net.SplitHostPort(a)
		text += fmt.Sprintf("    - endpoint: {address: {socket_address: {address: %s, port_value: %s}}}\n", h, port)
	}
	return text
}

func newRig(t testing.TB, fields string, addresses ...string) *rig {
	t.Helper()
	return newRigOf(t, "", fields, addresses...)
}

// newRigOf is newRig for a product.
func newRigOf(t testing.TB, product, fields string, addresses ...string) *rig {
	t.Helper()
	r := &rig{t: t, st: store.New(store.Options{Product: product})}
	pools := new(Pools)
	r.m = upstream.New(upstream.Config{Store: r.st, Hooks: pools.Hooks(upstream.Hooks{})})
	r.m.Start()
	r.Transport = &Transport{Pools: pools, Cluster: func() *upstream.Handle { return r.m.Cluster("c") }, Timeout: time.Minute}
	t.Cleanup(func() {
		pools.Drain(nil, nil)
		r.checkReleased()
		r.m.Close()
	})
	r.put(clusterText(fields, addresses...))
	return r
}

// put adds or updates the cluster.
func (r *rig) put(text string) {
	r.t.Helper()
	p, err := decode.NewDecoder(decode.Options{}).ClusterText("test.yaml", []byte(text), config.FormV3)
	if err != nil {
		r.t.Fatal(err)
	}
	if _, err := r.m.AddOrUpdate(p, "v"); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) host(i int) *host.Host { return r.m.Cluster("c").Current().Sets()[0].Hosts[i] }

// value returns a counter or gauge of the cluster, 0 if there is none.
func (r *rig) value(name string) int {
	v := r.st.View()
	defer v.Close()
	if c, ok := v.Find("cluster.c." + name); ok {
		return int(c.Uint())
	}
	return 0
}

func (r *rig) check(want map[string]int) {
	r.t.Helper()
	for name, w := range want {
		if got := r.value(name); got != w {
			r.t.Errorf("%s = %d, want %d", name, got, w)
		}
	}
}

// checkReleased checks that the circuit breakers hold nothing, and that nothing was
// released that was not taken.
func (r *rig) checkReleased() {
	r.t.Helper()
	c := r.m.Cluster("c").Current()
	if c == nil {
		return
	}
	for p := range upstream.Priority(2) {
		b := c.Breakers(p)
		for name, held := range map[string]*upstream.Resource{
			"connections": &b.Connections, "pending": &b.Pending, "requests": &b.Requests, "retries": &b.Retries, "pools": &b.Pools,
		} {
			held.Take()
			if n := held.Current(); n != 1 {
				r.t.Errorf("priority %d: the circuit breaker counts %d %s, want only the one just taken", p, n, name)
			}
			held.Release()
		}
	}
}

func serve(t testing.TB, h http.HandlerFunc) string {
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// scripted is a host that reads requests and answers each with the text, then
// closes the connection.
func scripted(t testing.TB, text string) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
					_, _ = c.Write([]byte(text))
				}
			}()
		}
	}()
	return l.Addr().String()
}

func request(t testing.TB, method, body string) *http.Request {
	r, err := http.NewRequest(method, "http://example.test/path?q", nil)
	if body != "" {
		r, err = http.NewRequest(method, "http://example.test/path?q", strings.NewReader(body))
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}
