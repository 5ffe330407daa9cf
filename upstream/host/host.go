package host

import (
	"math"
	"sync/atomic"

	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/status"
)

// Spec describes a host as discovery knows it.
type Spec struct {
	Address config.Address
	// Additional lists fallback addresses in order of preference. Only Address
	// identifies the host, and only HealthCheckAddress is checked.
	Additional []config.Address

	Hostname string
	Locality config.Locality
	Weight   uint32 // 0 means 1
	Priority uint32
	Metadata config.Metadata
	Canary   bool
	EDS      status.Flags // of [status.EDSFlags]; others are ignored

	HealthCheckAddress  config.Address // zero means Address
	HealthCheckHostname string         // host header or authority of checks; empty: not given
	DisableActiveHC     bool           // no active checks for this host
}

// Host is one upstream host. It is safe for concurrent use.
type Host struct {
	hostname            string
	locality            config.Locality
	healthCheckHostname string
	disableActiveHC     bool

	addr     atomic.Pointer[addresses]
	flags    flagWord
	weight   atomic.Uint32
	priority atomic.Uint32
	canary   atomic.Bool
	metadata atomic.Pointer[config.Metadata]
	monitor  atomic.Pointer[Monitor]
	check    atomic.Pointer[status.Check] // the last one, written by the health checker

	successRate      atomic.Uint64 // float64 bits, written by the outlier detector
	localSuccessRate atomic.Uint64

	// InPool counts the connections in each pool of the host. The code that makes
	// connections defines the meaning of the indexes.
	InPool [4]Gauge

	// Stats are the statistics of this host object. They start at 0.
	Stats Stats
}

// addresses belong together: a logical host changes them in one step.
type addresses struct {
	all         []config.Address  // the first one is what the host is known by
	first       [1]config.Address // holds it where there are no others
	text        string
	healthCheck config.Address
}

// New returns a host that is healthy except for the flags in s.EDS.
func New(s Spec) *Host {
	h := &Host{
		hostname:            s.Hostname,
		locality:            s.Locality,
		healthCheckHostname: s.HealthCheckHostname,
		disableActiveHC:     s.DisableActiveHC,
	}
	h.SetAddress(s.Address, s.HealthCheckAddress, s.Additional...)
	h.flags.set(s.EDS & status.EDSFlags)
	h.weight.Store(max(s.Weight, 1))
	h.priority.Store(s.Priority)
	h.canary.Store(s.Canary)
	if len(s.Metadata) > 0 {
		h.metadata.Store(&s.Metadata)
	}
	h.successRate.Store(math.Float64bits(-1))
	h.localSuccessRate.Store(math.Float64bits(-1))
	return h
}

// Replace returns a new host for s that replaces old. Its stats start at 0. If inherit
// is set, it keeps the results of active checks.
func Replace(old *Host, s Spec, inherit bool) *Host {
	h := New(s)
	if inherit {
		h.flags.set(old.Flags() & activeHCFlags)
		h.check.Store(old.check.Load())
	}
	return h
}

// Address returns the address of the host.
func (h *Host) Address() config.Address { return h.addr.Load().all[0] }

// Addresses returns all addresses of the host, [Host.Address] first. The caller must
// not change the slice.
func (h *Host) Addresses() []config.Address { return h.addr.Load().all }

// AddressText returns the address as text.
func (h *Host) AddressText() string { return h.addr.Load().text }

// HealthCheckAddress returns the address for health checks.
func (h *Host) HealthCheckAddress() config.Address { return h.addr.Load().healthCheck }

// SetAddress moves the host and replaces its additional addresses. Only a host that
// stands for a name can move; the address of any other host is its identity.
func (h *Host) SetAddress(a, healthCheck config.Address, additional ...config.Address) {
	if healthCheck.IsZero() {
		healthCheck = a
	}
	now := &addresses{first: [1]config.Address{a}, text: a.String(), healthCheck: healthCheck}
	// The array has no room for more, so append copies it.
	now.all = append(now.first[:], additional...)
	h.addr.Store(now)
}

// Hostname returns the name of the host, or "" if it has none.
func (h *Host) Hostname() string { return h.hostname }

// HealthCheckHostname returns the host name for checks, or "" if none is
// configured.
func (h *Host) HealthCheckHostname() string { return h.healthCheckHostname }

// DisableActiveHC reports whether active checks are disabled for the host.
func (h *Host) DisableActiveHC() bool { return h.disableActiveHC }

// Locality returns the locality of the host.
func (h *Host) Locality() config.Locality { return h.locality }

// Flags returns the current flags.
func (h *Host) Flags() status.Flags { return h.flags.load() }

// SetFlags sets the flags f and returns the previous flags.
func (h *Host) SetFlags(f status.Flags) status.Flags { return h.flags.set(f) }

// ClearFlags clears the flags f and returns the previous flags.
func (h *Host) ClearFlags(f status.Flags) status.Flags { return h.flags.clear(f) }

// PutFlags sets the flags under mask to bits and returns the previous flags.
func (h *Host) PutFlags(mask, bits status.Flags) status.Flags { return h.flags.put(mask, bits) }

// Health returns the coarse health by the current flags.
func (h *Host) Health() status.Health { return h.flags.load().Health() }

// Weight returns the balancing weight, at least 1.
func (h *Host) Weight() uint32 { return h.weight.Load() }

// SetWeight changes the weight; 0 means 1.
func (h *Host) SetWeight(w uint32) { h.weight.Store(max(w, 1)) }

// Priority returns the priority of the host.
func (h *Host) Priority() uint32 { return h.priority.Load() }

// SetPriority moves the host to another priority.
func (h *Host) SetPriority(p uint32) { h.priority.Store(p) }

// Canary reports whether the host is a canary.
func (h *Host) Canary() bool { return h.canary.Load() }

// SetCanary marks the host as a canary or clears the mark.
func (h *Host) SetCanary(c bool) { h.canary.Store(c) }

// Metadata returns the metadata. The caller must not change it.
func (h *Host) Metadata() config.Metadata {
	if m := h.metadata.Load(); m != nil {
		return *m
	}
	return nil
}

// SetMetadata replaces the metadata. The caller must not change m afterwards.
func (h *Host) SetMetadata(m config.Metadata) { h.metadata.Store(&m) }

// LastCheck returns the last active health check, or nil if there was none. The caller
// must not change it.
func (h *Host) LastCheck() *status.Check { return h.check.Load() }

// SetLastCheck publishes a completed health check. The caller must not change c
// afterwards.
func (h *Host) SetLastCheck(c *status.Check) { h.check.Store(c) }

// SuccessRate returns the success rate of the last interval in percent, or -1 if there
// were too few requests.
func (h *Host) SuccessRate() float64 { return math.Float64frombits(h.successRate.Load()) }

// LocalOriginSuccessRate is like [Host.SuccessRate] for events of local origin:
// connections that succeeded or failed.
func (h *Host) LocalOriginSuccessRate() float64 {
	return math.Float64frombits(h.localSuccessRate.Load())
}

// SetSuccessRates publishes the rates of an interval.
func (h *Host) SetSuccessRates(external, local float64) {
	h.successRate.Store(math.Float64bits(external))
	h.localSuccessRate.Store(math.Float64bits(local))
}

// Result is the result of a request as seen by the proxy.
type Result uint8

// The results a proxy reports.
const (
	ConnectSuccess Result = iota // a connection was established
	ConnectFailed                // it could not be established
	ConnectTimeout               // it was not established in time
	RequestTimeout               // no answer in time
	RequestFailed                // the answer is an error (without HTTP)
	RequestSuccess               // the answer is good (without HTTP)
)

// Monitor takes the results of requests to one host. It must be safe for
// concurrent use and must not block.
type Monitor interface {
	// PutCode records an answer with an HTTP status.
	PutCode(status int)
	// PutResult records a result. status is the HTTP status of the result, 0 if there
	// is none.
	PutResult(r Result, status int)
}

// SetMonitor sets the monitor of the host; nil removes it.
func (h *Host) SetMonitor(m Monitor) {
	if m == nil {
		h.monitor.Store(nil)
		return
	}
	h.monitor.Store(&m)
}

// ReportCode reports an answer with an HTTP status to the monitor, if there is one.
func (h *Host) ReportCode(status int) {
	if m := h.monitor.Load(); m != nil {
		(*m).PutCode(status)
	}
}

// ReportResult reports a result to the monitor, if there is one. status is the HTTP
// status of the result, 0 if there is none.
func (h *Host) ReportResult(r Result, status int) {
	if m := h.monitor.Load(); m != nil {
		(*m).PutResult(r, status)
	}
}

// Stats are the statistics of one host. The proxy updates them directly.
type Stats struct {
	CxActive      Gauge
	CxConnectFail Counter
	CxTotal       Counter
	RqActive      Gauge
	RqError       Counter
	RqSuccess     Counter
	RqTimeout     Counter
	RqTotal       Counter
}

// All returns the values sorted by name.
func (s *Stats) All() [8]status.HostStat {
	return [8]status.HostStat{
		{Name: "cx_active", Gauge: true, Value: s.CxActive.Value()},
		{Name: "cx_connect_fail", Gauge: false, Value: s.CxConnectFail.Value()},
		{Name: "cx_total", Gauge: false, Value: s.CxTotal.Value()},
		{Name: "rq_active", Gauge: true, Value: s.RqActive.Value()},
		{Name: "rq_error", Gauge: false, Value: s.RqError.Value()},
		{Name: "rq_success", Gauge: false, Value: s.RqSuccess.Value()},
		{Name: "rq_timeout", Gauge: false, Value: s.RqTimeout.Value()},
		{Name: "rq_total", Gauge: false, Value: s.RqTotal.Value()},
	}
}

// Counter is a counter of a host.
type Counter struct{ n atomic.Uint64 }

// Inc adds one.
func (c *Counter) Inc() { c.n.Add(1) }

// Value returns the count.
func (c *Counter) Value() uint64 { return c.n.Load() }

// Gauge is a gauge of a host.
type Gauge struct{ n atomic.Int64 }

// Inc adds one.
func (g *Gauge) Inc() { g.n.Add(1) }

// Dec subtracts one.
func (g *Gauge) Dec() { g.n.Add(-1) }

// Value returns the value, at least 0.
func (g *Gauge) Value() uint64 { return uint64(max(g.n.Load(), 0)) }
