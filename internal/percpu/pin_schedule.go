//go:build schedule && gc && go1.26 && !go1.27 && amd64 && !race && !msan && !asan && !purego

package percpu

import "github.com/statsd-admin/statsd-admin/internal/schedule"

// Enabled reports whether Pin pins: here, to the processors of explored
// programs.
const Enabled = true

// Pin keeps the running program on its processor.
func Pin() int { return schedule.Pin() }

// Unpin ends what Pin began.
func Unpin() { schedule.Unpin() }

// CanHold reports whether Hold can be used.
func CanHold() bool { return true }

// Hold is Pin.
func Hold() int { return schedule.Pin() }

// Release ends what Hold began.
func Release() { schedule.Unpin() }
