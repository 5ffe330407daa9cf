package transport_test

import (
	"crypto/tls"
	"testing"

	"github.com/statsd-admin/statsd-admin/upstream/config"
	"github.com/statsd-admin/statsd-admin/upstream/host"
	"github.com/statsd-admin/statsd-admin/upstream/transport"
)

// matching returns a cluster with a TLS socket named "mtls" for endpoints with the
// metadata mtls and a list, a plain text socket for version 2, and TLS for all
// others.
func matching(c *config.TLS) *config.Cluster {
	out := cluster(c)
	secure := out.Sockets.Default
	out.Sockets.Matches = []config.SocketMatch{
		{Name: "mtls", Match: map[string]any{"mtls": true, "of": []any{"a", 1.0}}, Socket: secure},
		{Name: "plain", Match: map[string]any{"version": 2.0}},
	}
	return out
}

func TestSocketIsChosenByMetadata(t *testing.T) {
	ca := authorityFor(t, "root", 1, nil)
	secure := serve(t, &tls.Config{Certificates: []tls.Certificate{ca.issue(t, 10, nil).tls()}})
	clear := serve(t, nil)
	d := dialer(t, matching(trust(ca, nil)))
	tests := []struct {
		name     string
		metadata map[string]any
		want     bool
		count    string
	}{
		{"all-keys", map[string]any{"mtls": true, "of": []any{"a", 1.0}, "more": nil}, true, "mtls.total_match_count"},
		{"in-order", map[string]any{"mtls": true, "of": []any{"a", 1.0}, "version": 2.0}, true, "mtls.total_match_count"},
		{"one-key-missing", map[string]any{"mtls": true}, true, "default.total_match_count"},
		{"other-value", map[string]any{"mtls": "true", "of": []any{"a", 1.0}, "version": 2.0}, false, "plain.total_match_count"},
		{"list-is-not-any", map[string]any{"version": []any{2.0}}, true, "default.total_match_count"},
		{"no-metadata", nil, true, "defaulttotal_match_count"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			at := clear
			if tt.want {
				at = secure
			}
			h := hostAt(at.address, tt.metadata)
			if got := d.Secure(h); got != tt.want {
				t.Errorf("before the host is resolved: TLS %t, want %t", got, tt.want)
			}
			before := d.count(tt.count)
			d.Resolve(h)
			if got := d.count(tt.count) - before; got != 1 {
				t.Errorf("%s rose by %d, want 1", tt.count, got)
			}
			d.mustSay(t, h, transport.Options{})
			if got := d.count(tt.count) - before; got != 1 {
				t.Errorf("%s rose by %d after a connection, want 1", tt.count, got)
			}
			d.Forget(h)
		})
	}
}

func TestSocketFollowsMetadata(t *testing.T) {
	d := dialer(t, matching(&config.TLS{}))
	h := hostAt(config.Address{}, nil)
	d.Resolve(h)
	h.SetMetadata(config.Metadata{"proxy.transport_socket_match": {"version": 2.0}})
	if !d.Secure(h) {
		t.Error("the socket changed before the host was resolved again")
	}
	if d.Resolve(h); d.Secure(h) {
		t.Error("the socket did not change with the metadata")
	}
}

func TestEmptyMatchFitsAll(t *testing.T) {
	c := cluster(&config.TLS{})
	c.Sockets.Matches = []config.SocketMatch{{Name: "all"}}
	d := dialer(t, c)
	for _, metadata := range []map[string]any{nil, {"a": 1.0}} {
		if h := hostAt(config.Address{}, metadata); d.Secure(h) {
			t.Errorf("a host with metadata %v is not in the match of all", metadata)
		}
	}
}

func TestHealthChecksHaveTheirOwnSocket(t *testing.T) {
	ca := authorityFor(t, "root", 1, nil)
	s := serve(t, &tls.Config{Certificates: []tls.Certificate{ca.issue(t, 10, nil).tls()}, NextProtos: []string{"check", "h2"}})
	c := matching(trust(ca, func(c *config.TLS) { c.ALPN = []string{"h2"} }))
	check := func(hc config.HealthCheck, h *host.Host) (negotiated string, secure bool) {
		c.HealthChecks = []config.HealthCheck{hc}
		conn, err := dialer(t, c).DialCheck(t.Context(), h, s.address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		x, ok := conn.(*tls.Conn)
		if !ok {
			return "", false
		}
		return x.ConnectionState().NegotiatedProtocol, true
	}
	plain := hostAt(config.Address{}, map[string]any{"version": 2.0})
	if _, secure := check(config.HealthCheck{}, plain); secure {
		t.Error("without criteria the check does not use the socket of the host")
	}
	if got, secure := check(config.HealthCheck{TransportSocketMatch: map[string]any{"none": 1.0}}, plain); !secure || got != "h2" {
		t.Errorf("criteria that fit no entry: TLS %t, protocol %q; want the default socket with h2", secure, got)
	}
	if got, _ := check(config.HealthCheck{TransportSocketMatch: map[string]any{}, ALPN: []string{"check"}}, plain); got != "check" {
		t.Errorf("protocol %q, want that of the check", got)
	}
	if _, secure := check(config.HealthCheck{TransportSocketMatch: map[string]any{"version": 2.0}}, hostAt(config.Address{}, nil)); secure {
		t.Error("the criteria do not choose the socket")
	}
	c.HealthChecks = nil
	conn, err := dialer(t, c).DialCheck(t.Context(), plain, s.address)
	if err != nil {
		t.Fatalf("without a configured check: %v", err)
	}
	conn.Close()
}
