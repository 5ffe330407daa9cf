package server_test

import (
	"strings"
	"testing"
	"time"

	"github.com/statsd-admin/statsd-admin/admin"
	"github.com/statsd-admin/statsd-admin/flush"
	"github.com/statsd-admin/statsd-admin/server"
)

// TestStatsStream: increments reach the stream without a flush, and it ends with
// the server.
func TestStatsStream(t *testing.T) {
	r := start(t, server.Config{
		Admin: admin.Config{Address: "127.0.0.1:0"}, Flush: flush.Config{Interval: 4 * time.Minute},
	})
	c := r.Store().Root().Counter("cart.items")
	e := listen(t, r, "/stats/stream?filter=^cart", "")
	if got := e.head["content-type"]; got != "text/event-stream" {
		t.Errorf("content type %q", got)
	}
	e.event() // reset
	e.event() // the values at the beginning
	c.Add(3)
	if got := e.event(); !strings.Contains(got, ",3,") {
		t.Errorf("event %q", got)
	}
}
