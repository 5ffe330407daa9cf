//go:build !schedule && gc && go1.26 && !go1.27 && amd64 && !race && !msan && !asan && !purego

package percpu

import "unsafe"

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

// getm returns the address of the thread, a struct of the runtime.
//
//go:linkname getm runtime.getm
func getm() unsafe.Pointer

// offset is where the thread has the pointer to its slot, whose number is the first word
// there. If it is not known, it is 0, and Hold returns any number.
var offset = slotOffset(Pin)

// CanHold reports whether Hold can be used.
func CanHold() bool { return offset != 0 }

// Hold returns the number of the scheduler slot of the calling goroutine, which keeps it
// until its next call. The calling function must be marked go:nosplit: the runtime does
// not preempt such a function except at its calls.
//
//go:nosplit
func Hold() int {
	return int(**(**int32)(unsafe.Add(getm(), offset)))
}

// Release ends what Hold began.
func Release() {}

// slotOffset reads from the code of procPin where it finds the slot. That differs between
// operating systems. The result is 0 if the code is not what Go 1.26 makes of
//
//	mp := getg().m
//	mp.locks++
//	return int(mp.p.ptr().id)
func slotOffset(procPin func() int) uintptr {
	const any = 0xcc
	known := [...]byte{
		0x49, 0x8b, 0x4e, 0x30, // MOVQ 0x30(R14), CX
		0xff, 0x81, any, any, any, any, // INCL any(CX)
		0x48, 0x8b, 0x89, any, any, 0, 0, // MOVQ any(CX), CX
		0x48, 0x63, 0x01, // MOVLQSX 0(CX), AX
		0xc3, // RET
	}
	code := **(***[len(known)]byte)(unsafe.Pointer(&procPin))
	for i, b := range known {
		if b != any && code[i] != b {
			return 0
		}
	}
	return uintptr(code[13]) | uintptr(code[14])<<8
}
