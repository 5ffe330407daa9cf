package lb

import (
	"fmt"
	"testing"

	"github.com/statsd-admin/statsd-admin/internal/upstreamtest"
	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/host"
	"github.com/statsd-admin/statsd-admin/upstream/status"
)

func weight(w uint32) func(*host.Spec) { return func(s *host.Spec) { s.Weight = w } }
func zone(z string) func(*host.Spec)   { return func(s *host.Spec) { s.Locality.Zone = z } }
func flags(f status.Flags) func(*host.Spec) {
	return func(s *host.Spec) { s.EDS = f }
}
func values(kv ...any) func(*host.Spec) {
	return func(s *host.Spec) {
		m := map[string]any{}
		for i := 0; i < len(kv); i += 2 {
			m[kv[i].(string)] = kv[i+1]
		}
		s.Metadata = config.Metadata{"proxy.lb": m}
	}
}

// mixed returns n hosts of which the first are healthy and the next degraded.
func mixed(n, healthy, degraded int) []*host.Host {
	out := make([]*host.Host, n)
	for i := range out {
		switch {
		case i < healthy:
			out[i] = upstreamtest.Host(i)
		case i < healthy+degraded:
			out[i] = upstreamtest.Host(i, flags(status.DegradedEDSHealth))
		default:
			out[i] = upstreamtest.Host(i, flags(status.FailedEDSHealth))
		}
	}
	return out
}

func plainSet(hosts ...*host.Host) *host.Set { return host.NewSet(0, hosts, host.SetOptions{}) }

func priorities(lists ...[]*host.Host) []*host.Set {
	sets := make([]*host.Set, len(lists))
	for p, l := range lists {
		sets[p] = host.NewSet(uint32(p), l, host.SetOptions{})
	}
	return sets
}

func weightedHosts(weights ...uint32) []*host.Host {
	out := make([]*host.Host, len(weights))
	for i, w := range weights {
		out[i] = upstreamtest.Host(i, weight(w))
	}
	return out
}

// numbers returns a source of random numbers that gives these over and over.
func numbers(xs ...uint64) func() uint64 {
	i := 0
	return func() uint64 { i++; return xs[(i-1)%len(xs)] }
}

// split picks n times and counts by host.
func split(b Balancer, ctx *Context, n int) map[*host.Host]int {
	got := make(map[*host.Host]int)
	for range n {
		got[b.Pick(ctx)]++
	}
	return got
}

func checkSplit(t *testing.T, got map[*host.Host]int, hosts []*host.Host, want ...int) {
	t.Helper()
	for i, w := range want {
		if got[hosts[i]] != w {
			t.Errorf("host %d got %d picks, want %d (all: %s)", i, got[hosts[i]], w, showSplit(got, hosts))
		}
	}
	if got[nil] > 0 {
		t.Errorf("%d picks found no host", got[nil])
	}
}

func showSplit(got map[*host.Host]int, hosts []*host.Host) string {
	var out []int
	for _, h := range hosts {
		out = append(out, got[h])
	}
	return fmt.Sprint(out)
}
