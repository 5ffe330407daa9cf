package upstream

import (
	"testing"

	"github.com/statsd-admin/statsd-admin/upstream/host"
	"github.com/statsd-admin/statsd-admin/upstream/lb"
)

// counted counts the updates of a balancer.
type counted struct {
	lb.Balancer
	n int
}

func (b *counted) Update(sets []*host.Set, local *host.Set) {
	b.n++
	b.Balancer.Update(sets, local)
}

// TestRuntimeChangesThatConcernOthers: a change of a value costs no update of the
// balancers that do not read it.
func TestRuntimeChangesThatConcernOthers(t *testing.T) {
	for _, tt := range []struct {
		key     string
		updates int
		slow    int // of a cluster with slow start
	}{
		{"upstream.maintenance_mode.other", 0, 1},
		{"circuit_breakers.c.default.max_requests", 0, 1},
		{"upstream.zone_routing.enabled", 0, 1}, // read at picks
		{"upstream.healthy_panic_threshold", 1, 1},
		{"upstream.zone_routing.min_cluster_size", 1, 1},
	} {
		for _, more := range []string{"", "round_robin_lb_config: {slow_start_config: {slow_start_window: 60s}}"} {
			rt := &values{}
			r, c := started(t, func(c *Config) { c.Runtime = rt }, static("c", 2, more))
			b := &counted{Balancer: c.balancer}
			c.balancer = b
			rt.set(tt.key, 7)
			r.RuntimeChanged()
			want := tt.updates
			if more != "" {
				want = tt.slow
			}
			if b.n != want {
				t.Errorf("%s %s: %d updates, want %d", tt.key, more, b.n, want)
			}
		}
	}
}
