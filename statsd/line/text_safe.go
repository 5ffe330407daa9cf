//go:build purego

package line

// text returns b as a string.
func text(b []byte) string { return string(b) }
