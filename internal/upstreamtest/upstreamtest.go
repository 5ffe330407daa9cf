// Package upstreamtest has the hosts, runtime values and stats that tests of health
// checks, outlier detection and load balancing need.
//
// Only test files import this package.
package upstreamtest

import (
	"net/netip"

	"github.com/statsd-admin/statsd-admin/store"
	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/host"
)

// Host returns the host with the address 10.0.0.0 + i, changed by change.
func Host(i int, change ...func(*host.Spec)) *host.Host {
	a := netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})
	s := host.Spec{Address: config.Address{IP: netip.AddrPortFrom(a, 80)}}
	for _, c := range change {
		c(&s)
	}
	return host.New(s)
}

// Runtime is a [config.Runtime] with integers only.
type Runtime map[string]uint64

// Uint returns the value of key.
func (r Runtime) Uint(key string, otherwise uint64) uint64 {
	if n, ok := r[key]; ok {
		return n
	}
	return otherwise
}

// Float returns otherwise.
func (r Runtime) Float(_ string, otherwise float64) float64 { return otherwise }

// Count is a counter or a gauge in a separate store.
type Count struct {
	counter *store.Counter
	gauge   *store.Gauge
}

// Counter makes c a counter.
func (c *Count) Counter() *store.Counter {
	c.counter = store.New(store.Options{}).Root().Counter("n")
	return c.counter
}

// Gauge makes c a gauge.
func (c *Count) Gauge() *store.Gauge {
	c.gauge = store.New(store.Options{}).Root().GaugeWithMode("n", store.NeverImport)
	return c.gauge
}

// Value returns the value of the counter or gauge.
func (c *Count) Value() uint64 { return c.counter.Value() + c.gauge.Value() }
