//go:build unix

package fingerprint

import (
	"syscall"
	"testing"
	"unsafe"
)

// TestNothingBeyondTheTextIsRead places texts at both ends of a page between two
// inaccessible pages.
func TestNothingBeyondTheTextIsRead(t *testing.T) {
	page := syscall.Getpagesize()
	mem, err := syscall.Mmap(-1, 0, 3*page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Munmap(mem)
	for _, guard := range [][]byte{mem[:page], mem[2*page:]} {
		if err := syscall.Mprotect(guard, syscall.PROT_NONE); err != nil {
			t.Fatal(err)
		}
	}
	mid := mem[page : 2*page]
	for i := range mid {
		mid[i] = byte(i)
	}
	k := NewKeys()
	for n := 1; n < 300; n++ {
		for _, at := range []int{0, page - n} {
			text := unsafe.String(&mid[at], n)
			lo, hi := k.Of(text)
			if otherLo, otherHi := k.Of(string([]byte(text))); lo != otherLo || hi != otherHi {
				t.Fatalf("%d bytes at %d: another fingerprint than of a copy", n, at)
			}
		}
	}
}
