package status

// Flags are the reasons why a host is not plainly healthy. Their texts are shown
// in bit order.
type Flags uint32

// The flags of a host.
const (
	FailedActiveHC             Flags = 1 << iota // failed active health checks, or new and not yet checked
	FailedOutlierCheck                           // ejected by the outlier detector
	FailedEDSHealth                              // UNHEALTHY or TIMEOUT in the assignment
	DegradedActiveHC                             // degraded according to the last passed check
	DegradedEDSHealth                            // DEGRADED in the assignment
	PendingDynamicRemoval                        // gone from discovery, kept until it fails a check
	PendingActiveHC                              // new, ignored until its first check
	ExcludedViaImmediateHCFail                   // asked to be excluded at once
	ActiveHCTimeout                              // failed active checks, the last one by a timeout
	EDSStatusDraining                            // DRAINING in the assignment
)

// EDSFlags are the flags that an assignment sets.
const EDSFlags = FailedEDSHealth | DegradedEDSHealth | EDSStatusDraining

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

// AppendText appends the texts of the flags in bit order, or "healthy" if f is 0.
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

// String returns the text that [Flags.AppendText] appends.
func (f Flags) String() string { return string(f.AppendText(nil)) }

// Health is the coarse health of a host, by which it is balanced.
type Health uint8

// The values of [Health].
const (
	Healthy Health = iota
	Degraded
	Unhealthy
)

// Health returns the coarse health of a host with the flags f.
func (f Flags) Health() Health {
	switch {
	case f&unhealthyFlags != 0:
		return Unhealthy
	case f&degradedFlags != 0:
		return Degraded
	}
	return Healthy
}

// Excluded reports whether the host is left out of the denominators of priority
// load, panic and locality weight.
func (f Flags) Excluded() bool { return f&excludedFlags != 0 }
