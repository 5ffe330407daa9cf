package statsd

import (
	"testing"
	"time"
)

// TestTTLSentence expects round times without their zeros.
func TestTTLSentence(t *testing.T) {
	ttl := TTL{Counter: 24 * time.Hour, Gauge: 90 * time.Minute, Histogram: 10 * time.Minute, Set: 10 * time.Second}
	if got, want := ttl.String(), "series without samples expire: counter after 24h, gauge after 1h30m, histogram after 10m, set after 10s"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
