//go:build amd64 && !purego

package fingerprint

import "golang.org/x/sys/cpu"

func hasAES() bool { return cpu.X86.HasAES && cpu.X86.HasSSE41 && cpu.X86.HasSSSE3 }

// aes reads exactly the bytes of text.
//
//go:noescape
func aes(keys *[9][16]byte, text string) (lo, hi uint64)

// find is [findPortable] in one go: it is entered once and touches no memory but
// the text, its keys and what it looks at in m.
//
//go:noescape
func find(m *Map, keys *Keys, salt *Salt, text string) (value int64)
