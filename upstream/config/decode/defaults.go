package decode

import (
	"math"
	"time"

	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/durationpb"
)

// Defaults of absent fields.
const (
	defaultConnectTimeout  = 5 * time.Second
	defaultBufferLimit     = 1 << 20
	defaultIdleTimeout     = time.Hour
	defaultDNSRefresh      = 5 * time.Second
	defaultCleanup         = 5 * time.Second
	defaultMergeWindow     = time.Second
	defaultPanicThreshold  = 50
	defaultZoneRouting     = 100
	defaultMinClusterSize  = 6
	defaultOverprovision   = 140
	defaultMinRingSize     = 1024
	defaultMaxRingSize     = 8 << 20
	defaultChoiceCount     = 2
	defaultMaglevSize      = 65537
	defaultNoTraffic       = 60 * time.Second
	defaultBodyBuffer      = 1024
	defaultFetchTimeout    = 15 * time.Second
	defaultBudgetPercent   = 20.0
	defaultRetryFloor      = 3
	defaultMaxEjectionTime = 300 * time.Second
)

// minTimer is the minimum duration of timers. Shorter ones except 0 are raised to it.
const minTimer = time.Millisecond

// timer returns the duration of a timer, def if it is absent.
func timer(d *durationpb.Duration, def time.Duration) time.Duration {
	if d == nil {
		return def
	}
	if v := d.AsDuration(); v <= 0 || v >= minTimer {
		return v
	}
	return minTimer
}

// given returns the value of a wrapper message, or def if it is absent.
func given[M any, P interface {
	*M
	GetValue() T
}, T any](p P, def T) T {
	if p == nil {
		return def
	}
	return p.GetValue()
}

// wholePercent rounds a percentage down. It takes the floor of the value and not of a
// fraction computed from it, so that 29 stays 29.
func wholePercent(p *typev3.Percent, def uint32) uint32 {
	return uint32(math.Floor(given(p, float64(def))))
}

// tenTimes multiplies without overflow.
func tenTimes(d time.Duration) time.Duration {
	if d > math.MaxInt64/10 {
		return math.MaxInt64
	}
	return 10 * d
}
