//go:build !purego

package symtab

import "unsafe"

// view returns b as a string without copying it. The caller must not keep it
// beyond the time that b stays unchanged.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
