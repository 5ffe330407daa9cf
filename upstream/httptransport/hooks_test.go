package httptransport

import (
	"net/http"
	"testing"

	"github.com/statsd-admin/statsd-admin/upstream"
	"github.com/statsd-admin/statsd-admin/upstream/host"
)

// TestHooksCloseIdleConnections calls each hook with a connection that is idle, with and
// without a hook of the program behind it.
func TestHooksCloseIdleConnections(t *testing.T) {
	a := serve(t, func(http.ResponseWriter, *http.Request) {})
	for name, call := range map[string]func(upstream.Hooks, *upstream.Cluster, *host.Host){
		"host removed":      func(k upstream.Hooks, c *upstream.Cluster, h *host.Host) { k.HostRemoved(c, h) },
		"cluster removed":   func(k upstream.Hooks, c *upstream.Cluster, _ *host.Host) { k.ClusterRemoved(c) },
		"connections close": func(k upstream.Hooks, c *upstream.Cluster, _ *host.Host) { k.CloseConnections(c, nil) },
	} {
		calls := 0
		for _, next := range []upstream.Hooks{{}, {
			HostRemoved:      func(*upstream.Cluster, *host.Host) { calls++ },
			ClusterRemoved:   func(*upstream.Cluster) { calls++ },
			CloseConnections: func(*upstream.Cluster, *host.Host) { calls++ },
		}} {
			r := newRig(t, "", a)
			resp, err := r.RoundTrip(request(t, "GET", ""))
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			r.check(map[string]int{"upstream_cx_active": 1})
			call(r.Pools.Hooks(next), r.m.Cluster("c").Current(), r.host(0))
			if n := r.value("upstream_cx_active"); n != 0 {
				t.Errorf("%s: %d connections stay", name, n)
			}
		}
		if calls != 1 {
			t.Errorf("%s: the program's hook ran %d times", name, calls)
		}
	}
}
