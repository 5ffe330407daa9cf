package transport

import "testing"

// TestDNSNames: only a wildcard stands for a label, and only for the first one.
func TestDNSNames(t *testing.T) {
	for _, tt := range []struct {
		pattern, name string
		want          bool
	}{
		{"example.com", "Example.COM", true},
		{"example.com", "a.example.com", false},
		{"a.example.com", "example.com", false},
		{"*.example.com", "a.EXAMPLE.com", true},
		{"*.example.com", "example.com", false},
		{"*.example.com", "a.b.example.com", false},
		{"*.example.com", ".example.com", false},
		{"*.example.com", "a.example.org", false},
		{"a*.example.com", "ab.example.com", false},
		{"a.*.com", "a.example.com", false},
		{"*", "com", false},
		{"", "", true},
	} {
		if got := matchDNS(tt.pattern, tt.name); got != tt.want {
			t.Errorf("%q matches %q: %t", tt.pattern, tt.name, got)
		}
	}
}
