//go:build amd64 && !purego

package fingerprint

import "golang.org/x/sys/cpu"

func hasAES() bool { return cpu.X86.HasAES && cpu.X86.HasSSE41 && cpu.X86.HasSSSE3 }

// aes reads exactly the bytes of text.
//
//go:noescape
func aes(keys *[9][16]byte, text string) (lo, hi uint64)

// find is [findPortable] as one function, which reads only the text, its keys and the
// visited parts of m.
//
//go:noescape
func find(m *Map, keys *Keys, salt *Salt, text string) (value int64)
