package host

import "sync/atomic"

// Flags are the reasons why a host is not plainly healthy. The order of the
// bits is the order in which texts are shown.
type Flags uint32

// The flags a host can carry.
const (
	FailedActiveHC             Flags = 1 << iota // failed active health checks, or new and not yet checked
	FailedOutlierCheck                           // ejected by the outlier detector
	FailedEDSHealth                              // the assignment says UNHEALTHY or TIMEOUT
	DegradedActiveHC                             // its last good check said it is degraded
	DegradedEDSHealth                            // the assignment says DEGRADED
	PendingDynamicRemoval                        // gone from discovery, kept until it fails a check
	PendingActiveHC                              // new, ignored until its first check
	ExcludedViaImmediateHCFail                   // asked to be excluded at once
	ActiveHCTimeout                              // failed active checks, the last one by a timeout
	EDSStatusDraining                            // the assignment says DRAINING
)

// EDSFlags are the flags that come with an assignment.
const EDSFlags = FailedEDSHealth | DegradedEDSHealth | EDSStatusDraining

// activeHCFlags are the flags that active checks own and that a replacement
// of a host inherits.
const activeHCFlags = FailedActiveHC | DegradedActiveHC | PendingActiveHC | ActiveHCTimeout

const (
	unhealthyFlags = FailedActiveHC | FailedOutlierCheck | FailedEDSHealth | EDSStatusDraining
	degradedFlags  = DegradedActiveHC | DegradedEDSHealth
	excludedFlags  = PendingActiveHC | ExcludedViaImmediateHCFail | EDSStatusDraining
)

// flagTexts is indexed by bit number.
var flagTexts = [...]string{
	"/failed_active_hc",
	"/failed_outlier_check",
	"/failed_eds_health",
	"/degraded_active_hc",
	"/degraded_eds_health",
	"/pending_dynamic_removal",
	"/pending_active_hc",
	"/excluded_via_immediate_hc_fail",
	"/active_hc_timeout",
	"/eds_status_draining",
}

// AppendText appends the texts of all flags of f in bit order, or "healthy"
// if there is none.
func (f Flags) AppendText(dst []byte) []byte {
	if f == 0 {
		return append(dst, "healthy"...)
	}
	for i, s := range flagTexts {
		if f&(1<<i) != 0 {
			dst = append(dst, s...)
		}
	}
	return dst
}

// String returns what [Flags.AppendText] appends.
func (f Flags) String() string { return string(f.AppendText(nil)) }

// Health is what balancing makes of the flags of a host.
type Health uint8

// The coarse health of a host.
const (
	Healthy Health = iota
	Degraded
	Unhealthy
)

// Health returns the coarse health.
func (f Flags) Health() Health {
	switch {
	case f&unhealthyFlags != 0:
		return Unhealthy
	case f&degradedFlags != 0:
		return Degraded
	}
	return Healthy
}

// Excluded tells whether the host is left out of the denominators of priority
// load, panic and locality weight.
func (f Flags) Excluded() bool { return f&excludedFlags != 0 }

// flagWord is the live flags of a host.
type flagWord struct{ w atomic.Uint32 }

func (f *flagWord) load() Flags         { return Flags(f.w.Load()) }
func (f *flagWord) set(b Flags) Flags   { return Flags(f.w.Or(uint32(b))) }
func (f *flagWord) clear(b Flags) Flags { return Flags(f.w.And(^uint32(b))) }
func (f *flagWord) put(mask, bits Flags) Flags {
	for {
		old := f.w.Load()
		if f.w.CompareAndSwap(old, old&^uint32(mask)|uint32(bits&mask)) {
			return Flags(old)
		}
	}
}
