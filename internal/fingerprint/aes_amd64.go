//go:build amd64 && !purego

package fingerprint

import "golang.org/x/sys/cpu"

func hasAES() bool { return cpu.X86.HasAES && cpu.X86.HasSSE41 }

// aes reads exactly the bytes of text.
//
//go:noescape
func aes(keys *[9][16]byte, text string) (lo, hi uint64)
