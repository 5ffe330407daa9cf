//go:build !schedule && amd64 && !race && !msan && !asan && !purego

package percpu

import _ "unsafe" // for go:linkname

// Enabled tells whether Pin really pins. It is a constant, so that the branch
// not taken costs nothing.
const Enabled = true

// Pin keeps the calling goroutine on its scheduler slot until Unpin and
// returns the slot's number.
//
//go:linkname Pin runtime.procPin
func Pin() int

// Unpin ends what Pin began.
//
//go:linkname Unpin runtime.procUnpin
func Unpin()
