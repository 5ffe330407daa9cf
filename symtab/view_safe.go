//go:build purego

package symtab

// view returns b as a string. This build copies it.
func view(b []byte) string { return string(b) }
