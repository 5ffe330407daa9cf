//go:build !purego

package symtab

import "unsafe"

// view returns b as a string without copying it. The string is valid until b
// changes.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
