package transport

import "testing"

// FuzzMatchDNS checks that a name matches itself, and that a wildcard matches exactly
// one label.
func FuzzMatchDNS(f *testing.F) {
	for _, s := range []string{"a.example.com", "*.example.com", "example.com", "", ".", "*."} {
		f.Add(s, "a.example.com")
	}
	f.Fuzz(func(t *testing.T, pattern, name string) {
		if !matchDNS(name, name) {
			t.Errorf("%q does not match itself", name)
		}
		if matchDNS("*."+pattern, "."+pattern) {
			t.Errorf("a wildcard of %q stands for an empty label", pattern)
		}
		if matchDNS("*."+pattern, "a.b."+pattern) {
			t.Errorf("a wildcard of %q stands for two labels", pattern)
		}
	})
}
