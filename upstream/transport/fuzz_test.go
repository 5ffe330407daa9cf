package transport

import (
	"encoding/hex"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/certinfo"
)

// outline resembles an OCSP response, as a seed for the fuzzer.
const outline = "30540a0100a04f304d06092b06010505073001010440303e302fa205040301020318" +
	"0f32303236303130323033303430355a301830163000"

// FuzzStaple checks that every accepted OCSP response has a start time, and that each
// prefix of it is rejected or has one too.
func FuzzStaple(f *testing.F) {
	seed, err := hex.DecodeString(outline)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed)
	f.Add([]byte{0x30, 3, 10, 1, 6})
	f.Add([]byte(nil))
	f.Fuzz(func(t *testing.T, der []byte) {
		v, err := stapleValidity(der)
		if err != nil {
			if v != (certinfo.Validity{}) {
				t.Errorf("%x: %v with an error", der, v)
			}
			return
		}
		if v.From.IsZero() || v.From.Location() != time.UTC {
			t.Errorf("%x: good from %v", der, v.From)
		}
		if len(der) > 0 {
			if _, err := stapleValidity(der[:len(der)-1]); err == nil {
				t.Errorf("%x: good without its last byte", der)
			}
		}
	})
}

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
