package health

import (
	"context"
	"net/http"
	"testing"

	"github.com/statsd-admin/statsd-admin/upstream/config"
)

// TestSpecialHeadersFirst puts Host and User-Agent first in lists, with other headers
// behind them.
func TestSpecialHeadersFirst(t *testing.T) {
	check := config.HealthCheck{Kind: config.HTTPCheck, HTTP: config.HTTPHealthCheck{
		Path: "/",
		HeadersToAdd: []config.HeaderToAdd{
			{Name: "Host", Value: "given.example", Append: config.OverwriteOrAdd}, {Name: "X-Empty"}, {Name: "X-One", Value: "1"}, {Name: "X-Two", Value: "2"},
		},
		HeadersToRemove: []string{"User-Agent", "X-One"},
	}}
	p := proberFor(t, Config{Check: check}, hostAt("127.0.0.1:1")).(*httpProber)
	r := p.request(context.Background())
	if r.Host != "given.example" || r.Header.Get("X-Two") != "2" {
		t.Errorf("host %q, headers %v: the header behind Host is missing", r.Host, r.Header)
	}
	if _, ok := r.Header["X-Empty"]; ok {
		t.Errorf("headers %v: the empty one is sent", r.Header)
	}
	if _, ok := r.Header["X-One"]; ok || r.Header.Get("User-Agent") != "" {
		t.Errorf("headers %v: the one behind User-Agent is not removed", r.Header)
	}
	if r := (&http.Request{Header: http.Header{}}); true {
		addHeaders(r, []config.HeaderToAdd{{Name: ":authority", Value: "kept", Append: config.AppendOrAdd}, {Name: "X", Value: "1"}})
		if r.Host != "" || r.Header.Get("X") != "1" {
			t.Errorf("host %q, headers %v", r.Host, r.Header)
		}
	}
}

// TestBadGRPCAnswers: an answer that is not one plain message with a status is not
// healthy.
func TestBadGRPCAnswers(t *testing.T) {
	for name, frame := range map[string][]byte{
		"nothing": nil, "part of a frame": {0, 0, 0}, "empty message": {0, 0, 0, 0, 0}, "unknown status": {0, 0, 0, 0, 2, 8, 0},
		"a compressed message": {1, 0, 0, 0, 2, 8, 1}, "half a message": {0, 0, 0, 0, 4, 8, 1}, "two messages": {0, 0, 0, 0, 2, 8, 1, 0, 0, 0, 0, 2, 8, 1},
		"a text where the status belongs": {0, 0, 0, 0, 3, 10, 1, 1},
	} {
		if s := servingStatus(frame); s == grpcServing {
			t.Errorf("%s: serving", name)
		}
	}
	if s := servingStatus([]byte{0, 0, 0, 0, 2, 8, 1}); s != grpcServing {
		t.Errorf("status %d, want serving", s)
	}
}
