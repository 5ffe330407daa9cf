// Package clocktest sets the clock of the system in tests.
package clocktest

import (
	"fmt"
	"time"
	"unsafe"
)

// Set returns now, a result of [time.Now], as it reads after the clock of the system was
// set by d, in whole seconds: the time of day moves, the monotonic clock does not.
func Set(now time.Time, d time.Duration) time.Time {
	set := now
	*(*uint64)(unsafe.Pointer(&set)) += uint64(d/time.Second) << 30 // seconds of the time of day
	if set.Sub(now) != 0 || set.Round(0).Sub(now.Round(0)) != d {
		panic(fmt.Sprintf("clocktest: time.Time has another layout, or %v no monotonic clock", now))
	}
	return set
}
