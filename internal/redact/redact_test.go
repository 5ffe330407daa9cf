package redact

import "testing"

func TestLooksSecret(t *testing.T) {
	const token = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhIn0.c2ln"
	for s, want := range map[string]bool{
		"": false, "edge": false, "eyJ": false, "eyJ.a": false, "a.eyJ.b.c": false, "-----BEGIN CERTIFICATE-----": false, "a PRIVATE KEY----- alone": false,
		"keyJhbGciOiJIUzI1NiJ9.eyJz.c2ln": false,

		"eyJ.a.b": true, token: true, "Bearer " + token: true, "{a: " + token + ", b: 1.5}": true,
		"-----BEGIN PRIVATE KEY-----": true, "a\n-----BEGIN RSA PRIVATE KEY-----\nb": true, "-----END EC PRIVATE KEY-----": true,
	} {
		if LooksSecret(s) != want {
			t.Errorf("%q: %v, want %v", s, !want, want)
		}
	}
}
