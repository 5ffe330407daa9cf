package xds

import (
	"cmp"
	"fmt"
	"math"
	"sync"

	"github.com/statsd-admin/statsd-admin/store"
)

// Default limits on the resources that the client keeps, over all control
// planes and files.
const (
	DefaultMaxResources     = 100_000
	DefaultMaxResourceBytes = 512 << 20
)

// budget limits the resources that are kept. Its methods are safe for concurrent use.
type budget struct {
	maxCount, maxBytes int

	overflow         *store.Counter
	countNow, sizeIs *store.Gauge

	mu           sync.Mutex // guards the fields below
	count, bytes int
}

func newBudget(o *Config) *budget {
	b := &budget{maxCount: limit(o.MaxResources, DefaultMaxResources), maxBytes: limit(o.MaxResourceBytes, DefaultMaxResourceBytes)}
	sc := o.Store.Own().Scope("xds")
	sc.Help(map[string]string{
		"resource_overflow": "Resources refused because of the limits.", "resources": "Resources held.", "resource_bytes": "Bytes of the resources held.",
	})
	b.overflow = sc.Counter("resource_overflow")
	b.countNow = sc.GaugeWithMode("resources", store.NeverImport)
	b.sizeIs = sc.GaugeWithMode("resource_bytes", store.NeverImport)
	return b
}

// limit returns a configured limit: 0 is the default, and a negative one is none.
func limit(n, byDefault int) int {
	if n < 0 {
		return math.MaxInt
	}
	return cmp.Or(n, byDefault)
}

// charge is the part of the budget that one resource uses. The zero charge is none.
type charge struct {
	used  bool
	bytes int
}

// replace exchanges the charge old of a resource for size bytes. It returns an error
// and keeps old if the resource grew beyond the limits.
func (b *budget) replace(old *charge, name string, size int) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	count, bytes := b.count, b.bytes-old.bytes+size
	if !old.used {
		count++
	}
	switch {
	case count > b.maxCount && count > b.count:
		b.overflow.Inc()
		return fmt.Errorf("xds: resource %q exceeds the limit of %d resources", name, b.maxCount)
	case bytes > b.maxBytes && bytes > b.bytes:
		b.overflow.Inc()
		return fmt.Errorf("xds: resource %q exceeds the limit of %d bytes of all resources", name, b.maxBytes)
	}
	*old = charge{true, size}
	b.setLocked(count, bytes)
	return nil
}

// restore sets the charge c back to a former value, whatever the limits.
func (b *budget) restore(c *charge, former charge) {
	b.mu.Lock()
	defer b.mu.Unlock()
	count := b.count
	if c.used {
		count--
	}
	if former.used {
		count++
	}
	b.setLocked(count, b.bytes-c.bytes+former.bytes)
	*c = former
}

func (b *budget) setLocked(count, bytes int) {
	b.count, b.bytes = count, bytes
	b.countNow.Set(uint64(count))
	b.sizeIs.Set(uint64(bytes))
}
