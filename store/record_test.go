package store

import (
	"strings"
	"testing"
)

// TestPlainName checks each byte at each place of a word, and behind the words.
func TestPlainName(t *testing.T) {
	for c := range 256 {
		want := c >= 0x20 && c < 0x7f && !strings.ContainsRune(`"\<>`, rune(c))
		for at := range 11 {
			b := []byte("~ az09!#=?;")
			b[at] = byte(c)
			if got := plainName(string(b)); got != want {
				t.Fatalf("plainName(%q) is %t, want %t", b, got, want)
			}
		}
	}
}
