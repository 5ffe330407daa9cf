package upstream

import (
	"testing"

	"github.com/statsd-admin/statsd-admin/upstream/host"
	"github.com/statsd-admin/statsd-admin/upstream/lb"
)

// TestSubsetsOfOneHost walks the setting from the text to picks and gauge.
func TestSubsetsOfOneHost(t *testing.T) {
	tagged := func(v any) func(*host.Spec) {
		return func(s *host.Spec) { s.Metadata = map[string]map[string]any{"proxy.lb": {"v": v}} }
	}
	v := func(x any) *lb.Context { return &lb.Context{Criteria: lb.NewCriteria(map[string]any{"v": x})} }
	r := newRig(t, nil)
	c := r.eds("lb_subset_config: {subset_selectors: [{keys: [v], single_host_per_subset: true}], list_as_any: true}")
	picked := func(value any) (all string) {
		for range 3 {
			h, err := c.Pick(v(value))
			if err != nil {
				return err.Error()
			}
			all += h.AddressText()[len("10.0.0."):] + " "
		}
		return all
	}
	c.UpdateHosts(0, &Assignment{Priorities: []PriorityHosts{
		{Hosts: []host.Spec{spec(1, tagged("a")), spec(2, tagged("a")), spec(3), spec(4, tagged([]any{"b", "b"}))}},
		{Hosts: []host.Spec{spec(5, tagged("c")), spec(6, tagged("a"))}},
	}})
	c.DiscoveryDone()
	for value, want := range map[string]string{"a": "1:80 1:80 1:80 ", "b": "4:80 4:80 4:80 ", "c": "5:80 5:80 5:80 ", "d": ErrNoHost.Error()} {
		if got := picked(value); got != want {
			t.Errorf("%s: picked %q, want %q", value, got, want)
		}
	}
	const duplicates = "lb_subsets_single_host_per_subset_duplicate"
	r.check("cluster.c.", map[string]uint64{duplicates: 2, "lb_subsets_active": 3})
	c.UpdateHosts(0, &Assignment{Priorities: []PriorityHosts{{Hosts: []host.Spec{spec(2, tagged("a"))}}, {}}})
	if got := picked("a"); got != "2:80 2:80 2:80 " {
		t.Errorf("picked %q after the first host left", got)
	}
	r.check("cluster.c.", map[string]uint64{duplicates: 0, "lb_subsets_active": 1})
}
