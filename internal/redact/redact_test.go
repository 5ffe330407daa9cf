package redact

import "testing"

func TestLooksSecret(t *testing.T) {
	const token = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhIn0.c2ln"
	for s, want := range map[string]bool{
		"": false, "edge": false, "eyJ": false, "eyJ.a": false, "a.eyJ.b.c": false, "-----BEGIN CERTIFICATE-----": false, "a PRIVATE KEY----- alone": false,
		"keyJhbGciOiJIUzI1NiJ9.eyJz.c2ln": false,

		"eyJ.a.b": true, token: true, "Bearer " + token: true, "{a: " + token + ", b: 1.5}": true,
		"https://host/a?b=c&d=e": false, "https://host:1/a@b": false, "https://me@host/": false, "a?token=&b=1": false, "token=a": false,
		"a bearer of news": false, "bearer token": false, "x@y http://a:1/": false,
		"https://[::1]:80/a@b": false, "https://host:80/a?b=c@d": false,
		"amqp://u:p/q@host/v": true, "amqp://u:1a/q@host": true, "amqp://:/q@host": false, "ftp://u:p@q@host": true,
		"postgres://u:p@host/db": true, "at https://:p@host": true, "https://host/a?b=c&Access_Token=x": true, "/health?api-key=x": true,
		"a Bearer 0123456789abcdef": true, "bearer  0123456789abcdef": true,

		"-----BEGIN PRIVATE KEY-----": true, "a\n-----BEGIN RSA PRIVATE KEY-----\nb": true, "-----END EC PRIVATE KEY-----": true,
	} {
		if LooksSecret(s) != want {
			t.Errorf("%q: %v, want %v", s, !want, want)
		}
	}
}
