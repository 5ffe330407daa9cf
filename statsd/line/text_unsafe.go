//go:build !purego

package line

import "unsafe"

// text returns b as a string that must not outlive this moment: b is
// overwritten by the next line.
func text(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
