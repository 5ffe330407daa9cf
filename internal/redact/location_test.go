package redact

import "testing"

func TestURLPath(t *testing.T) {
	for path, want := range map[string]string{
		"": "", "/": "/", "/api/v1/write": "/api/v1/write", "/v1/metrics": "/v1/metrics", "/opentelemetrycollector/push": "/opentelemetrycollector/push",
		"/insert/0/prometheus/api/v1/write": "/insert/0/prometheus/api/v1/write", "/tokens": "/tokens", "/tokens/": "/tokens/",

		"/services/T0/B0/x1y2z3x1y2z3x1y2": "/" + Mark, "/hook/abcdefghABCDEFGH": "/" + Mark, "/0123456789abcdef/write": "/" + Mark,
		"/api/token/abc": "/" + Mark, "/secret/a/b": "/" + Mark, "/w/eyJ.a.b": "/" + Mark,
	} {
		if got := URLPath(path); got != want {
			t.Errorf("%q: %q, want %q", path, got, want)
		}
	}
}

func TestFileName(t *testing.T) {
	for name, want := range map[string]bool{
		"token": true, "token.txt": true, "tokens-2024-production.txt": true, "etc/secrets/statsd/token": true, "statsd-admin-token": true,
		"/run/0123456789abcdef/token": true, "./ghp_0123456789abcdef": true, "../ghp_0123456789abcdef": true,

		"ghp_0123456789abcdef": false, "AbCdEfGhIjKlMnOp": false, "hvs.CAES0123456789abcdef": false, "0123456789abcde/0123456789abcdef": false, "conf.d/0123456789abcdef": false,
		"eyJ.a.b": false, "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhIn0.c2ln": false, ".0123456789abcdef": false, "/-----BEGIN PRIVATE KEY-----": false,
	} {
		if FileName(name) != want {
			t.Errorf("%q: %v, want %v", name, !want, want)
		}
	}
}
