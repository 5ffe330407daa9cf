package server_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/statsd-admin/statsd-admin/admin"
	"github.com/statsd-admin/statsd-admin/bootstrap"
	"github.com/statsd-admin/statsd-admin/server"
)

// TestLimitsOfAFile checks that each limit of the file sets the corresponding limit
// of the server.
func TestLimitsOfAFile(t *testing.T) {
	load := func(limits string) server.Config {
		b, err := bootstrap.Parse("a.yaml", []byte(`
stats_sinks: [{name: proxy.stat_sinks.hystrix, typed_config: {"@type": type.googleapis.com/envoy.config.metrics.v3.HystrixSink, num_buckets: 19}}]
admin:
  address: {socket_address: {address: 127.0.0.1, port_value: 0}}
  limits: {`+limits+`}
`), bootstrap.Options{})
		if err != nil {
			t.Fatal(err)
		}
		cfg, err := b.Server(bootstrap.Startup{})
		if err != nil {
			t.Fatal(err)
		}
		return cfg
	}
	cfg := load("header_bytes: 1, target_bytes: 2, body_bytes: 3, headers: 4, query_parameters: 5, query_value_bytes: 6, connections: 7, " +
		"connections_per_address: 8, read_timeout: 9s, idle_timeout: 10s, stream_stall: 11s, response_time: 12s, shutdown_time: 13s, heavy_running: 14, " +
		"heavy_waiting: 15, heavy_wait: 16s, compressors: 17, regex_bytes: 18, regex_program: 20, regex_budget: 21s, regex_parallel: 22, " +
		"circuit_streams: 23, stats_streams: 25, audit_entries: 24, audit_bytes: 26")
	want := admin.Limits{
		HeaderBytes: 1, TargetBytes: 2, BodyBytes: 3, Headers: 4, QueryParams: 5, QueryValue: 6, Connections: 7, ConnectionsPerPeer: 8,
		ReadTimeout: 9 * time.Second, IdleTimeout: 10 * time.Second, StreamStall: 11 * time.Second, ResponseTime: 12 * time.Second, ShutdownTime: 13 * time.Second,
		HeavyRunning: 14, HeavyWaiting: 15, HeavyWait: 16 * time.Second, Compressors: 17, RegexBytes: 18, RegexProgram: 20, RegexBudget: 21 * time.Second,
		RegexParallel: 22, StatsStreams: 25, AuditEntries: 24, AuditBytes: 26,
	}
	if diff := cmp.Diff(want, cfg.Admin.Limits); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if s := cfg.CircuitStream; s == nil || s.Clients != 23 || s.Buckets != 19 {
		t.Errorf("circuit stream: %+v", s)
	}
	if got := load("target_bytes: 100").Admin.Limits; got.TargetBytes != 100 || got.HeaderBytes == 0 || got.ReadTimeout != 5*time.Second {
		t.Errorf("with one limit alone: %+v", got)
	}
}

// TestAddressesOfAFile checks that the admin port listens on the address in the file.
func TestAddressesOfAFile(t *testing.T) {
	for text, want := range map[string]admin.Config{
		"{socket_address: {address: 127.0.0.1, port_value: 19}}": {Address: "127.0.0.1:19"},
		`{socket_address: {address: "::1", port_value: 0}}`:      {Address: "[::1]:0"},
		"{pipe: {path: /run/a.sock, mode: 432}}":                 {Address: "unix:/run/a.sock", SocketMode: 0o660},
		`{pipe: {path: "@a"}}`:                                   {Address: "unix:@a", SocketMode: 0o600},
	} {
		b, err := bootstrap.Parse("a.yaml", []byte("admin: {address: "+text+"}"), bootstrap.Options{})
		if err != nil {
			t.Fatal(err)
		}
		cfg, err := b.Server(bootstrap.Startup{})
		if err != nil {
			t.Fatal(err)
		}
		if got := cfg.Admin; got.Address != want.Address || want.SocketMode != 0 && got.SocketMode != want.SocketMode {
			t.Errorf("%s: %s with mode %v", text, got.Address, got.SocketMode)
		}
	}
}
