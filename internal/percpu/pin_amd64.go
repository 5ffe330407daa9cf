//go:build !schedule && gc && go1.26 && !go1.27 && amd64 && !race && !msan && !asan && !purego

package percpu

import _ "unsafe" // for go:linkname

// Enabled reports whether Pin pins. It is a constant, so the other branch costs
// nothing.
const Enabled = true

// Pin keeps the calling goroutine on its scheduler slot until Unpin and returns
// the number of the slot.
//
//go:linkname Pin runtime.procPin
func Pin() int

// Unpin ends what Pin began.
//
//go:linkname Unpin runtime.procUnpin
func Unpin()
